package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/shared/fault"
)

var _ core.ReportStore = (*DB)(nil)

// A report locks the users that it will name, and then the texture, so that it comes either
// before a deletion or after.
const lockReportedUsers = `
	SELECT uid FROM users WHERE uid = $1 OR uid = (SELECT uploader FROM textures WHERE tid = $2)
	ORDER BY uid FOR KEY SHARE`

const insertReport = `
	WITH validation AS (
		SELECT t.tid, t.uploader, t.pixels, t.name, t.type, CASE
			WHEN t.tid IS NULL THEN 'missing'
			WHEN NOT t.public AND t.uploader IS DISTINCT FROM u.uid AND ` + effectivePermission + ` < 1 AND NOT EXISTS (
				SELECT FROM closet_items c WHERE c.uid = u.uid AND c.tid = t.tid
			) THEN 'private'
			ELSE ''
		END AS violation
		FROM users u LEFT JOIN textures t ON t.tid = $2 WHERE u.uid = $1
	), inserted AS (
		INSERT INTO reports (tid, uploader, pixels, name, type, reporter, reason)
		SELECT tid, uploader, pixels, name, type, $1, $3 FROM validation WHERE violation = ''
		ON CONFLICT (reporter, tid) WHERE state = 'open' DO NOTHING
		RETURNING rid
	)
	SELECT violation, EXISTS (SELECT FROM inserted) AS inserted FROM validation`

// AddReport adds a report.
func (db *DB) AddReport(ctx context.Context, reporter core.UserID, texture core.TextureID, reason string) error {
	results, err := collect[struct {
		Violation string
		Inserted  bool
	}](ctx, db.writes,
		statement{lockReportedUsers, []any{reporter, texture}},
		statement{lockTextures, []any{texture, nil}},
		statement{insertReport, []any{reporter, texture, reason}},
	)
	result, err := one(results, failure("report a texture", err), core.ErrSignedOut)
	if err != nil {
		return err
	}
	if err := violationError("tid", result.Violation, &texture, "", "your closet"); err != nil {
		return err
	}
	if !result.Inserted {
		return duplicateFault("tid", "You have reported this texture already.")
	}
	return nil
}

// reportColumns are the columns of a core.Report, from the table reports as r.
const reportColumns = `r.rid AS id, r.tid AS texture, coalesce(r.uploader, 0) AS uploader, coalesce(r.reporter, 0) AS reporter,
	r.state, r.reason, r.reported_at, r.settled_at,
	coalesce((SELECT name FROM textures WHERE tid = r.tid), '') AS texture_name,
	coalesce((SELECT nickname FROM users WHERE uid = r.uploader), '') AS uploader_nickname,
	coalesce((SELECT nickname FROM users WHERE uid = r.reporter), '') AS reporter_nickname`

// Reports lists reports.
func (db *DB) Reports(ctx context.Context, query core.ReportQuery) (core.ReportPage, error) {
	var f filter
	if query.State != "" {
		f.add("state = $%d", query.State)
	}
	list := newReportList(`reports r`+f.where(), f, query)
	err := db.reads.run(ctx, func() error {
		var batch pgx.Batch
		list.queue(&batch)
		return db.reads.SendBatch(ctx, &batch).Close()
	})
	if err != nil {
		return core.ReportPage{}, failure("list reports", err)
	}
	return list.page(), nil
}

// ReportsByUser lists reports of a token's user. With the OFFSET they are read by the index of the
// reporter: the planner would read the latest reports of all users where it expects enough of this
// one's among them.
func (db *DB) ReportsByUser(ctx context.Context, token core.VerifiedToken, query core.ReportQuery) (core.ReportPage, error) {
	var f filter
	f.add("reporter = $%d", token.Token.User)
	if query.State != "" {
		f.add("state = $%d", query.State)
	}
	list := newReportList(`(SELECT * FROM reports`+f.where()+` OFFSET 0) r`, f, query)
	if err := withSession(ctx, db, token, list.queue); err != nil {
		return core.ReportPage{}, err
	}
	return list.page(), nil
}

// reportList reads a page of reports, and counts the reports of all pages.
type reportList struct {
	count, list statement
	counts      []struct{ Total int }
	reports     []core.Report
}

// newReportList returns a list of the rows of a table, the latest first. f has the table's arguments.
func newReportList(table string, f filter, query core.ReportQuery) *reportList {
	count := statement{`SELECT count(*) AS total FROM ` + table, f.args}
	list := `SELECT ` + reportColumns + ` FROM ` + table + ` ORDER BY r.rid DESC LIMIT ` + f.argument(query.PerPage) +
		` OFFSET ` + f.argument((query.Page-1)*query.PerPage)
	return &reportList{count: count, list: statement{list, f.args}}
}

func (l *reportList) queue(batch *pgx.Batch) {
	l.count.queue(batch).Query(collectInto(&l.counts))
	l.list.queue(batch).Query(collectInto(&l.reports))
}

func (l *reportList) page() core.ReportPage {
	return core.ReportPage{Reports: l.reports, Total: l.counts[0].Total}
}

const selectReport = `SELECT ` + reportColumns + ` FROM reports r WHERE r.rid = $1`

// settleReports settles a report, if it is open, and after the deletion of a texture all others
// about it. Reporters that are being deleted get no notification: the transaction that deletes
// them may wait for the reports.
const settleReports = `
	WITH open_reports AS (
		SELECT rid FROM reports WHERE state = 'open' AND (rid = $1 OR $3 = 'deleted' AND tid = $2)
		ORDER BY rid FOR UPDATE
	), settled_reports AS (
		UPDATE reports r SET state = $3, settled_at = now() FROM open_reports o WHERE r.rid = o.rid
		RETURNING r.*
	), receivers AS (
		SELECT uid FROM users WHERE uid IN (SELECT reporter FROM settled_reports) FOR KEY SHARE SKIP LOCKED
	), message AS (
		INSERT INTO messages (title, content, kind, parameters) SELECT $4, $5, $6, $7::jsonb WHERE EXISTS (SELECT FROM receivers)
		RETURNING mid
	), inserted_notifications AS (
		INSERT INTO notifications (uid, mid) SELECT uid, mid FROM receivers, message
	)
	SELECT ` + reportColumns + ` FROM settled_reports r ORDER BY r.rid = $1 DESC, r.rid`

// SettleReport settles a report, and applies its consequences.
func (db *DB) SettleReport(ctx context.Context, admin core.Actor, id core.ReportID, settlement core.Settlement) (core.Report, error) {
	state := settlement.State
	var settled []core.Report
	err := db.adminTx(ctx, "settle a report", func(tx pgx.Tx) error {
		reports, err := collect[core.Report](ctx, tx, statement{selectReport, []any{id}})
		report, err := one(reports, err, fault.New(fault.NotFound, "There is no report %d.", id))
		if err != nil {
			return err
		}
		if state == core.ReportDeleted {
			if err := lockAffectedUsers(ctx, tx, report.Texture, false, admin.ID, report.Uploader); err != nil {
				return err
			}
		}
		admin, users, err := authorise(ctx, tx, admin, report.Uploader)
		switch {
		case err != nil:
			return err
		case report.State != core.ReportOpen:
			return errSettled
		}
		if err := applySettlement(ctx, tx, admin, report, users[report.Uploader], settlement); err != nil {
			return err
		}
		settled, err = settleReportsAbout(ctx, tx, report, state)
		switch {
		case err != nil:
			return err
		case len(settled) == 0 || settled[0].ID != id: // by a concurrent request
			return errSettled
		}
		details := reportDetails{State: state, TID: report.Texture, Uploader: report.Uploader, Refused: settlement.Refuse}
		for _, other := range settled[1:] {
			details.Others = append(details.Others, other.ID)
		}
		return writeAudit(ctx, tx, admin, core.AuditReportSettle, fmt.Sprintf("report:%d", id), details)
	})
	if err != nil {
		return core.Report{}, err
	}
	return settled[0], nil
}

var errSettled = fault.New(fault.Duplicate, "This report is settled already.")

// reportDetails are the details of a settled report in the audit log.
type reportDetails struct {
	State    core.ReportState `json:"state"`
	TID      core.TextureID   `json:"tid"`
	Uploader core.UserID      `json:"uploader"`
	Others   []core.ReportID  `json:"others,omitempty"`  // settled by the same deletion
	Refused  bool             `json:"refused,omitempty"` // the pixels
}

// applySettlement deletes the texture, or bans the uploader, as the new state of a report says,
// and logs it. A texture that is already deleted needs no deletion.
func applySettlement(ctx context.Context, tx pgx.Tx, admin core.Actor, report core.Report, uploader core.User, settlement core.Settlement) error {
	switch settlement.State {
	case core.ReportDeleted:
		if uploader.ID != 0 {
			if err := admin.CanModerateContentOf(uploader); err != nil {
				return err
			}
		}
		before, err := deleteTexture(ctx, tx, admin, report.Texture, settlement.Refuse)
		switch {
		case fault.KindOf(err) == fault.NotFound && settlement.Refuse:
			return refuseReported(ctx, tx, admin, report.ID)
		case fault.KindOf(err) == fault.NotFound:
			return nil
		case err != nil:
			return err
		}
		details := textureDetails{Name: before.Name, Uploader: before.Uploader, Reports: []core.ReportID{report.ID}, Refused: settlement.Refuse}
		return writeAudit(ctx, tx, admin, core.AuditTextureDelete, textureSubject(before.ID), details)
	case core.ReportBanned:
		if uploader.ID == 0 {
			return fault.New(fault.NotFound, "The uploader's account is deleted.")
		}
		if err := admin.CanModerate(uploader); err != nil {
			return err
		}
		after, err := setPermission(ctx, tx, admin, uploader.ID, core.Banned, settlement.Ban)
		if err != nil {
			return err
		}
		details := userDetails{
			Email: uploader.Email, Nickname: uploader.Nickname, From: uploader.Permission, To: after.Permission, Report: report.ID,
		}
		details.setBan(settlement.Ban)
		return writeAudit(ctx, tx, admin, core.AuditUserPermission, userSubject(uploader.ID), details)
	case core.ReportRejected:
		// Administrators cannot reject reports about themselves. Super administrators can,
		// since there is no higher permission.
		if uploader.ID == 0 || admin.Permission >= core.SuperAdministrator {
			return nil
		}
		return admin.CanModerate(uploader)
	case core.ReportOpen:
	}
	return fmt.Errorf("a report cannot be settled as %s", settlement.State)
}

// settleReportsAbout settles an open report about a texture, or, for a deletion, all open ones,
// and notifies the reporters. It returns the settled reports, the one with the id first.
func settleReportsAbout(ctx context.Context, tx pgx.Tx, report core.Report, state core.ReportState) ([]core.Report, error) {
	report.State = state
	m := report.Notice()
	return collect[core.Report](ctx, tx, statement{settleReports, []any{report.ID, report.Texture, state, m.Title, m.Content, m.Kind, m.Parameters}})
}

const deleteSettledReports = `DELETE FROM reports WHERE settled_at < now() - interval '1 year'`

// TrimReports deletes reports that were settled over a year ago, and returns how many.
func (db *DB) TrimReports(ctx context.Context) (int, error) {
	tag, err := db.writes.Exec(ctx, deleteSettledReports)
	return int(tag.RowsAffected()), failure("trim reports", err)
}
