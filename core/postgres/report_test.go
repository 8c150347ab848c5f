package postgres_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/testenv"
	"github.com/veneer-skins/veneer/shared/testenv/cmptest"
)

// reportTest is a database with an administrator and users that report each other.
type reportTest struct {
	store
	boss core.User
	by   core.Actor // boss
	ann  core.User  // the uploader
	bob  core.User
	cid  core.User
}

func newReportTest(t *testing.T) *reportTest {
	t.Helper()
	db := open(t)
	r := &reportTest{store: db, boss: addUser(t, db, "boss"), ann: addUser(t, db, "ann"), bob: addUser(t, db, "bob"), cid: addUser(t, db, "cid")}
	r.permit(t, r.boss, core.Administrator)
	r.by = core.Actor{ID: r.boss.ID, Permission: core.Administrator, From: netip.MustParseAddr("192.0.2.7")}
	return r
}

func (r *reportTest) permit(t *testing.T, user core.User, permission core.Permission) {
	t.Helper()
	do(t, r.ForcePermission(t.Context(), user.ID, permission))
}

func (r *reportTest) texture(t *testing.T, word string, public bool) core.Texture {
	t.Helper()
	return addTexture(t, r.store, texture(r.ann.ID, skin.Classic, word, public))
}

// report adds a report and returns its id.
func (r *reportTest) report(t *testing.T, reporter core.User, texture core.Texture) core.ReportID {
	t.Helper()
	do(t, r.AddReport(t.Context(), reporter.ID, texture.ID, "because"))
	return r.list(t, core.ReportOpen)[0].ID
}

func (r *reportTest) list(t *testing.T, state core.ReportState) []core.Report {
	t.Helper()
	return must(r.Reports(t.Context(), core.ReportQuery{State: state, Page: 1, PerPage: 100}))(t).Reports
}

func (r *reportTest) settle(t *testing.T, report core.ReportID, state core.ReportState) core.Report {
	t.Helper()
	return must(r.SettleReport(t.Context(), r.by, report, core.Settlement{State: state}))(t)
}

// wantRejected checks that a report cannot be settled, and that nothing is logged.
func (r *reportTest) wantRejected(t *testing.T, report core.ReportID, state core.ReportState, want fault.Kind) {
	t.Helper()
	before := r.auditEntries(t)
	wantKind(t, errOf(r.SettleReport(t.Context(), r.by, report, core.Settlement{State: state})), want)
	cmptest.Same(t, r.auditEntries(t), before, "a rejected settlement is in the audit log")
}

// auditEntries returns the audit log, one line for each entry.
func (r *reportTest) auditEntries(t *testing.T) []string {
	t.Helper()
	var entries []string
	do(t, r.conn().QueryRow(t.Context(),
		"SELECT coalesce(array_agg(actor || ' ' || action || ' ' || subject || ' ' || details::text ORDER BY id), '{}') FROM audit_log").Scan(&entries))
	return entries
}

func (r *reportTest) wantAuditEntries(t *testing.T, want ...string) {
	t.Helper()
	for i := range want {
		want[i] = fmt.Sprintf("%d %s", r.boss.ID, want[i])
	}
	diff := cmp.Diff(want, r.auditEntries(t), cmpopts.EquateEmpty())
	testenv.Check(t, diff == "", "the audit log (-want +got):\n%s", diff)
}

func TestAddReport(t *testing.T) {
	t.Parallel()
	r := newReportTest(t)
	public, private := r.texture(t, "public", true), r.texture(t, "private", false)
	f := func(reporter core.User, tid core.TextureID, want fault.Kind) {
		t.Helper()
		wantKind(t, r.AddReport(t.Context(), reporter.ID, tid, "because"), want)
	}

	first := r.report(t, r.bob, public)
	want := core.Report{
		ID: first, Texture: public.ID, Uploader: r.ann.ID, Reporter: r.bob.ID, State: core.ReportOpen, Reason: "because",
		TextureName: "public", UploaderNickname: r.ann.Nickname, ReporterNickname: r.bob.Nickname,
	}
	got := r.list(t, "")
	diff := cmp.Diff([]core.Report{want}, got, cmpopts.IgnoreFields(core.Report{}, "ReportedAt"))
	testenv.Check(t, diff == "" && !got[0].ReportedAt.IsZero(), "the reports (-want +got):\n%s", diff)
	f(r.bob, public.ID, fault.Duplicate)
	r.report(t, r.cid, public)
	f(r.bob, public.ID+100, fault.NotFound)
	f(core.User{ID: r.cid.ID + 100}, public.ID, fault.Unauthenticated)

	// A private texture can be reported by its uploader, by users that have it in their closet,
	// and by administrators.
	f(r.bob, private.ID, fault.Forbidden)
	r.report(t, r.ann, private)
	r.report(t, r.boss, private)
	r.permit(t, r.bob, core.Administrator)
	addToCloset(t, r.store, r.bob, private.ID)
	r.permit(t, r.bob, core.Normal)
	r.report(t, r.bob, private)

	// After a report is settled, the user may report the texture again.
	r.settle(t, first, core.ReportRejected)
	r.report(t, r.bob, public)
	f(r.bob, public.ID, fault.Duplicate)
}

// Of concurrent reports of one user about one texture, one is added.
func TestAddReportInParallel(t *testing.T) {
	t.Parallel()
	r := newReportTest(t)
	tid := r.texture(t, "public", true).ID
	atOnce(t, 20, 1, fault.Duplicate, func(int) error { return r.AddReport(t.Context(), r.bob.ID, tid, "because") })
}

// idsOf returns the ids of reports.
func idsOf(reports []core.Report) (ids []core.ReportID) {
	for _, report := range reports {
		ids = append(ids, report.ID)
	}
	return ids
}

func TestReports(t *testing.T) {
	t.Parallel()
	r := newReportTest(t)
	var ids []core.ReportID
	for i := range 5 {
		ids = append(ids, r.report(t, r.bob, r.texture(t, fmt.Sprint(i), true)))
	}
	r.settle(t, ids[1], core.ReportRejected)
	r.settle(t, ids[3], core.ReportDeleted)
	f := func(state core.ReportState, page, perPage, total int, want ...core.ReportID) {
		t.Helper()
		got := must(r.Reports(t.Context(), core.ReportQuery{State: state, Page: page, PerPage: perPage}))(t)
		cmptest.Same(t, idsOf(got.Reports), want, "page %d of the reports in state %q", page, state)
		testenv.Equal(t, got.Total, total, "the number of reports in state %q", state)
	}
	f("", 1, 10, 5, ids[4], ids[3], ids[2], ids[1], ids[0])
	f("", 2, 2, 5, ids[2], ids[1])
	f(core.ReportOpen, 1, 2, 3, ids[4], ids[2])
	f(core.ReportOpen, 2, 2, 3, ids[0])
	f(core.ReportOpen, 3, 2, 3)
	f(core.ReportRejected, 1, 10, 1, ids[1])
	f(core.ReportDeleted, 1, 10, 1, ids[3])
	f(core.ReportBanned, 1, 10, 0)
}

func TestRejectAReport(t *testing.T) {
	t.Parallel()
	r := newReportTest(t)
	tid := r.texture(t, "public", true)
	bobs, cids := r.report(t, r.bob, tid), r.report(t, r.cid, tid)
	got := r.settle(t, bobs, core.ReportRejected)
	testenv.Check(t, got.ID == bobs && got.State == core.ReportRejected && got.SettledAt != nil, "settled, it is %+v", got)
	r.wantAuditEntries(t, fmt.Sprintf(`report.settle report:%d {"tid": %d, "state": "rejected", "uploader": %d}`, bobs, tid.ID, r.ann.ID))
	must(r.Texture(t.Context(), tid.ID))(t)
	cmptest.Same(t, idsOf(r.list(t, core.ReportOpen)), []core.ReportID{cids}, "open reports")
	for _, user := range []core.User{r.ann, r.bob, r.cid} {
		testenv.Equal(t, len(unread(t, r.store, user.ID)) == 1, user == r.bob, "%s has one notification", user.Nickname)
	}

	for _, state := range []core.ReportState{core.ReportRejected, core.ReportDeleted, core.ReportBanned} {
		r.wantRejected(t, bobs, state, fault.Duplicate)
	}
	r.wantRejected(t, cids+100, core.ReportRejected, fault.NotFound)
	r.permit(t, r.boss, core.Normal)
	r.wantRejected(t, cids, core.ReportRejected, fault.Forbidden)
	r.permit(t, r.boss, core.Banned)
	r.wantRejected(t, cids, core.ReportRejected, fault.Banned)
}

// A deletion takes the texture off all players, settles all reports about it, and notifies the
// reporters.
func TestSettleByDeletion(t *testing.T) {
	t.Parallel()
	r := newReportTest(t)
	target, other := r.texture(t, "target", true), r.texture(t, "other", true)
	wearer := addWearingPlayer(t, r.store, r.cid, "Wearer", target.ID)
	bobs, cids, others := r.report(t, r.bob, target), r.report(t, r.cid, target), r.report(t, r.bob, other)
	wantKeys := watchChanges(t, r.store)

	got := r.settle(t, cids, core.ReportDeleted)
	testenv.Check(t, got.ID == cids && got.State == core.ReportDeleted, "settled, it is %+v", got)
	wantKeys("the settlement", slices.Concat(textureKeys(target), playerKeys(wearer))...)
	wantKind(t, errOf(r.Texture(t.Context(), target.ID)), fault.NotFound)
	cmptest.Same(t, idsOf(r.list(t, core.ReportOpen)), []core.ReportID{others}, "open reports")
	for _, user := range []core.User{r.bob, r.cid} {
		testenv.Equal(t, len(titles(t, r.store, user.ID)), 1, "notifications of %s", user.Nickname)
	}
	r.wantAuditEntries(t,
		fmt.Sprintf(`texture.delete texture:%d {"name": "target", "reports": [%d], "uploader": %d}`, target.ID, cids, r.ann.ID),
		fmt.Sprintf(`report.settle report:%d {"tid": %d, "state": "deleted", "others": [%d], "uploader": %d}`, cids, target.ID, bobs, r.ann.ID))
	r.wantRejected(t, bobs, core.ReportDeleted, fault.Duplicate)
}

func TestSettleByBan(t *testing.T) {
	t.Parallel()
	r := newReportTest(t)
	tid := r.texture(t, "public", true)
	first, second, third := r.report(t, r.bob, tid), r.report(t, r.cid, tid), r.report(t, r.boss, tid)

	// The uploader's permission must be lower than the actor's.
	r.permit(t, r.ann, core.Administrator)
	r.wantRejected(t, first, core.ReportBanned, fault.Forbidden)
	r.wantRejected(t, first, core.ReportDeleted, fault.Forbidden)
	r.permit(t, r.ann, core.Normal)
	wantKeys := watchChanges(t, r.store)
	r.settle(t, first, core.ReportBanned)
	wantKeys("a ban")
	r.wantAuditEntries(t,
		fmt.Sprintf(`user.permission user:%d {"to": -1, "from": 0, "email": "ann@example.com", "report": %d, "nickname": "ann"}`, r.ann.ID, first),
		fmt.Sprintf(`report.settle report:%d {"tid": %d, "state": "banned", "uploader": %d}`, first, tid.ID, r.ann.ID))
	banned := must(r.UserByEmail(t.Context(), "ann@example.com"))(t)
	testenv.Equal(t, banned.Permission, core.Banned, "the uploader's permission")
	must(r.Texture(t.Context(), tid.ID))(t)
	testenv.Equal(t, len(r.list(t, core.ReportOpen)), 2, "reports are open")

	// Banning a banned user changes nothing; a deleted one cannot be banned.
	r.settle(t, second, core.ReportBanned)
	do(t, r.DeleteUser(t.Context(), as(r.ann.ID), credentialsOf(r.ann)))
	r.wantRejected(t, third, core.ReportBanned, fault.NotFound)
	r.settle(t, third, core.ReportDeleted)
}

// A report about the administrator's own texture cannot ban the administrator, but can delete
// the texture.
func TestSettleReportOnOwnTexture(t *testing.T) {
	t.Parallel()
	r := newReportTest(t)
	own := addTexture(t, r.store, texture(r.boss.ID, skin.Classic, "own", true))
	report := r.report(t, r.bob, own)
	r.wantRejected(t, report, core.ReportBanned, fault.Forbidden)
	r.settle(t, report, core.ReportDeleted)
}

// A report outlives the users and the texture that it names.
func TestReportsOutliveUsersAndTextures(t *testing.T) {
	t.Parallel()
	r := newReportTest(t)
	private, public := r.texture(t, "private", true), r.texture(t, "public", true)
	bobs, cids, boss := r.report(t, r.bob, private), r.report(t, r.cid, private), r.report(t, r.boss, public)
	must(r.change(t.Context(), private.ID, core.TextureChange{Public: new(false)}))(t)
	f := func(id core.ReportID, texture core.TextureID, uploader, reporter core.UserID) {
		t.Helper()
		i := slices.IndexFunc(r.list(t, ""), func(report core.Report) bool { return report.ID == id })
		if got := r.list(t, "")[i]; got.Texture != texture || got.Uploader != uploader || got.Reporter != reporter || got.State != core.ReportOpen {
			t.Errorf("the report is %+v; want texture %d of %d, reported by %d, open", got, texture, uploader, reporter)
		}
	}

	// The reporter is deleted.
	do(t, r.DeleteUser(t.Context(), as(r.cid.ID), credentialsOf(r.cid)))
	f(cids, private.ID, r.ann.ID, 0)
	// The uploader deletes the texture, and can still be banned for it.
	do(t, r.DeleteTexture(t.Context(), anyOwner, public.ID, false))
	f(boss, public.ID, r.ann.ID, r.boss.ID)
	r.settle(t, boss, core.ReportBanned)
	// The uploader is deleted, and with them the private texture.
	do(t, r.DeleteUser(t.Context(), as(r.ann.ID), credentialsOf(r.ann)))
	f(bobs, private.ID, 0, r.bob.ID)

	// A texture that no longer exists counts as deleted, and a deleted reporter gets no
	// notification.
	wantKeys := watchChanges(t, r.store)
	r.settle(t, cids, core.ReportDeleted)
	wantKeys("the deletion of a deleted texture")
	testenv.Equal(t, len(r.list(t, core.ReportOpen)), 0, "open reports")
	testenv.Equal(t, len(titles(t, r.store, r.bob.ID)), 1, "notifications of the remaining reporter")
}

// Of concurrent settlements of a report, one succeeds, with one entry in the audit log.
func TestSettleInParallel(t *testing.T) {
	t.Parallel()
	r := newReportTest(t)
	states := []core.ReportState{core.ReportRejected, core.ReportDeleted, core.ReportBanned}
	settlements := func() int { return strings.Count(strings.Join(r.auditEntries(t), "\n"), "report.settle") }
	for round := range 4 {
		report := r.report(t, r.bob, r.texture(t, fmt.Sprint(round), true))
		before := settlements()
		atOnce(t, 12, 1, fault.Duplicate, func(i int) error {
			return errOf(r.SettleReport(t.Context(), r.by, report, core.Settlement{State: states[i%3]}))
		})
		testenv.Equal(t, settlements()-before, 1, "settlements are logged")
		testenv.Equal(t, len(unread(t, r.store, r.bob.ID)), round+1, "notifications of the reporter")
		r.permit(t, r.ann, core.Normal)
	}
}

// A report that waits for the deletion of its texture is not added.
func TestReportAfterWaitingForADeletion(t *testing.T) {
	t.Parallel()
	r := newReportTest(t)
	tid := r.texture(t, "public", true).ID
	other := r.lock(t, "DELETE FROM closet_items WHERE tid = $1", tid)
	other.exec(t, "DELETE FROM textures WHERE tid = $1", tid)
	report := func() error { return r.AddReport(t.Context(), r.bob.ID, tid, "because") }
	wantKind(t, other.delays(t, report), fault.NotFound)
}

// A report locks the uploader before the texture, as the deletion of a user does.
func TestReportLocksUsersFirst(t *testing.T) {
	t.Parallel()
	r := newReportTest(t)
	tid := r.texture(t, "public", true).ID
	other := r.lock(t, "SELECT FROM users WHERE uid = $1 FOR UPDATE", r.ann.ID)
	reported := start(func() error { return r.AddReport(t.Context(), r.bob.ID, tid, "because") })
	other.waitBlocked(t, 1)
	other.exec(t, "SELECT FROM textures WHERE tid = $1 FOR UPDATE NOWAIT", tid)
	other.exec(t, "UPDATE textures SET uploader = NULL WHERE tid = $1", tid)
	other.exec(t, "DELETE FROM users WHERE uid = $1", r.ann.ID)
	other.commitOnceBlocked(t, 1)
	do(t, <-reported)
	testenv.Equal(t, r.list(t, "")[0].Uploader, 0, "the uploader")
}

// A settlement does not wait for a reporter that is being deleted, and does not notify them.
func TestSettleWhileTheReporterIsDeleted(t *testing.T) {
	t.Parallel()
	r := newReportTest(t)
	report := r.report(t, r.bob, r.texture(t, "public", true))
	other := r.lock(t, "SELECT FROM users WHERE uid = $1 FOR UPDATE", r.bob.ID)
	r.settle(t, report, core.ReportDeleted)
	other.exec(t, "DELETE FROM users WHERE uid = $1", r.bob.ID)
	do(t, other.Commit(t.Context()))
	got := r.list(t, "")[0]
	testenv.Check(t, got.Reporter == 0 && got.State == core.ReportDeleted, "the report is %+v", got)
	r.hasCount(t, 0, "SELECT count(*) FROM messages")
}
