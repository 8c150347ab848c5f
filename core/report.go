package core

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/veneer-skins/veneer/shared/fault"
)

// ReportID is the id of a report.
type ReportID int64

// ReportState is the state of a report.
type ReportState string

// The states of a report: open until an administrator settles it with one of the others.
const (
	ReportOpen     ReportState = "open"
	ReportRejected ReportState = "rejected" // the texture stays
	ReportDeleted  ReportState = "deleted"  // the texture was deleted
	ReportBanned   ReportState = "banned"   // the texture's uploader was banned
)

// Report is a complaint about a texture. It outlives the texture, its uploader and its reporter, so
// an uploader cannot get rid of it by deleting the texture.
type Report struct {
	ID         ReportID
	Texture    TextureID // also when it is deleted
	Uploader   UserID    // of the texture; 0 when deleted
	Reporter   UserID    // 0 when deleted
	State      ReportState
	Reason     string
	ReportedAt time.Time
	SettledAt  *time.Time // nil while the report is open

	// The names of the texture, its uploader and the reporter; empty when deleted.
	TextureName, UploaderNickname, ReporterNickname string
}

// Notice returns the notification to the reporters of a settled report.
func (r Report) Notice() Message {
	content := fmt.Sprintf("Thank you for reporting texture %d. ", r.Texture)
	switch r.State {
	case ReportDeleted:
		content += "It is deleted."
	case ReportBanned:
		content += "Its uploader is banned."
	case ReportRejected, ReportOpen:
		content += "We looked at it, and it stays."
	}
	return Message{
		Title: "Your report", Content: content,
		Kind: "report_" + string(r.State), Parameters: map[string]any{"tid": r.Texture, "name": r.TextureName},
	}
}

// ReportQuery selects reports.
type ReportQuery struct {
	State   ReportState // empty for all
	Page    int         // from 1
	PerPage int
}

// ReportPage is a page of the Total reports that match a query.
type ReportPage struct {
	Reports []Report
	Total   int
}

// ReportStore holds reports.
type ReportStore interface {
	// AddReport adds a report. The texture must exist (NotFound). It must be public, unless the
	// reporter uploaded it, has it in the closet or is an administrator (Forbidden). Another open
	// report of the reporter about the texture is a Duplicate fault with the field tid.
	AddReport(ctx context.Context, reporter UserID, texture TextureID, reason string) error

	// Reports lists reports, the latest first.
	Reports(ctx context.Context, query ReportQuery) (ReportPage, error)

	// ReportsByUser lists reports of the token's user, the latest first.
	ReportsByUser(ctx context.Context, token VerifiedToken, query ReportQuery) (ReportPage, error)

	// SettleReport settles a report as one act of an administrator. ReportDeleted also deletes the
	// texture, if it still exists, which settles all open reports about it. ReportBanned also bans
	// the uploader. Both require that the actor may moderate them (Forbidden). The reporters are
	// notified. An unknown report, or no uploader to ban, is a NotFound fault; a report that was
	// settled before, a Duplicate one.
	SettleReport(ctx context.Context, by Actor, report ReportID, settlement Settlement) (Report, error)
}

// Reports are the users' complaints about textures.
type Reports struct {
	store ReportStore
}

// NewReports returns the reports of a store.
func NewReports(store ReportStore) *Reports { return &Reports{store: store} }

// MaxReason is the most characters in the reason of a report.
const MaxReason = 1000

// Add reports a texture that the caller may see. A caller has at most one open report about it.
func (r *Reports) Add(ctx context.Context, caller Caller, texture TextureID, reason string) error {
	var wrong fieldFaults
	if texture < 1 {
		wrong.add(fault.Field("tid", "A TID is at least 1."))
	}
	reason, err := validateText("reason", strings.TrimSpace(reason), MaxReason)
	wrong.add(err)
	if err := wrong.fault(); err != nil {
		return err
	}
	return r.store.AddReport(ctx, caller.ID, texture, reason)
}

// check returns an Invalid fault for a malformed query.
func (q ReportQuery) check() error {
	var wrong fieldFaults
	wrong.addPage(q.Page, q.PerPage, maxPage)
	switch q.State {
	case "", ReportOpen, ReportRejected, ReportDeleted, ReportBanned:
	default:
		wrong.add(fault.Field("state", "The state must be open, rejected, deleted or banned."))
	}
	return wrong.fault()
}

// List returns a page of reports, the latest first. A page past the end is empty.
func (r *Reports) List(ctx context.Context, query ReportQuery) (ReportPage, error) {
	if err := query.check(); err != nil {
		return ReportPage{}, err
	}
	return r.store.Reports(ctx, query)
}

// ListByUser returns a page of the reports of the token's user, the latest first. A page past the end
// is empty.
func (r *Reports) ListByUser(ctx context.Context, token VerifiedToken, query ReportQuery) (ReportPage, error) {
	if err := query.check(); err != nil {
		return ReportPage{}, err
	}
	return r.store.ReportsByUser(ctx, token, query)
}

// actionStates maps the action of an administrator to the state of the settled report.
var actionStates = map[string]ReportState{"reject": ReportRejected, "delete": ReportDeleted, "ban": ReportBanned}

// Settlement is what becomes of a report.
type Settlement struct {
	State ReportState
	Ban   Ban // of the uploader, with ReportBanned
	// Refuse refuses the pixels of the texture, with ReportDeleted.
	Refuse bool
}

// SettlementRequest is a Settlement by its action instead of its state.
type SettlementRequest struct {
	Action string
	Settlement
}

// Settle settles a report: the action reject does nothing else, delete also deletes the texture,
// ban also bans its uploader.
func (r *Reports) Settle(ctx context.Context, by Actor, report ReportID, request SettlementRequest) (Report, error) {
	var ok bool
	if request.State, ok = actionStates[strings.TrimSpace(request.Action)]; !ok {
		return Report{}, fault.Field("action", "The action must be reject, delete or ban.")
	}
	if err := request.Ban.check(); err != nil {
		return Report{}, err
	}
	switch {
	case request.State != ReportBanned && request.Ban != (Ban{}):
		return Report{}, fault.Field("action", "Only a ban has a reason and an end.")
	case request.State != ReportDeleted && request.Refuse:
		return Report{}, fault.Field("refuse", "Only the pixels of a deleted texture can be refused.")
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cascadeTimeout)
	defer cancel()
	return r.store.SettleReport(ctx, by, report, request.Settlement)
}
