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
	"github.com/veneer-skins/veneer/core/postgres"
	"github.com/veneer-skins/veneer/core/postgres/postgrestest"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/skin"
)

// reportTest is a database with an administrator and users that report each other.
type reportTest struct {
	db      *postgres.DB
	address string
	boss    core.User
	by      core.Actor // boss
	ann     core.User  // the uploader
	bob     core.User
	cid     core.User
}

func newReportTest(t *testing.T) *reportTest {
	t.Helper()
	db, address := openNamed(t)
	r := &reportTest{db: db, address: address, boss: addUser(t, db, "boss"), ann: addUser(t, db, "ann"), bob: addUser(t, db, "bob"), cid: addUser(t, db, "cid")}
	r.permit(t, r.boss, core.Administrator)
	r.by = core.Actor{ID: r.boss.ID, Permission: core.Administrator, From: netip.MustParseAddr("192.0.2.7")}
	return r
}

func (r *reportTest) permit(t *testing.T, user core.User, permission core.Permission) {
	t.Helper()
	if err := r.db.SetPermission(t.Context(), user.ID, permission); err != nil {
		t.Fatal(err)
	}
}

func (r *reportTest) texture(t *testing.T, word string, public bool) core.Texture {
	t.Helper()
	return addTexture(t, r.db, texture(r.ann.ID, skin.Classic, word, public))
}

// report adds a report and returns its id.
func (r *reportTest) report(t *testing.T, reporter core.User, texture core.Texture) core.ReportID {
	t.Helper()
	if err := r.db.AddReport(t.Context(), reporter.ID, texture.ID, "because"); err != nil {
		t.Fatal(err)
	}
	return r.list(t, core.ReportOpen)[0].ID
}

func (r *reportTest) list(t *testing.T, state core.ReportState) []core.Report {
	t.Helper()
	return must(r.db.Reports(t.Context(), core.ReportQuery{State: state, Page: 1, PerPage: 100}))(t).Reports
}

func (r *reportTest) settle(t *testing.T, report core.ReportID, state core.ReportState) core.Report {
	t.Helper()
	return must(r.db.SettleReport(t.Context(), r.by, report, state))(t)
}

// wantRejected checks that a report cannot be settled, and that nothing is logged.
func (r *reportTest) wantRejected(t *testing.T, report core.ReportID, state core.ReportState, want fault.Kind) {
	t.Helper()
	before := r.auditEntries(t)
	_, err := r.db.SettleReport(t.Context(), r.by, report, state)
	wantKind(t, err, want)
	if diff := cmp.Diff(before, r.auditEntries(t)); diff != "" {
		t.Errorf("a rejected settlement is in the audit log (-before +after):\n%s", diff)
	}
}

// auditEntries returns the audit log, one line for each entry.
func (r *reportTest) auditEntries(t *testing.T) []string {
	t.Helper()
	var entries []string
	if err := postgrestest.Conn(t, r.address).QueryRow(t.Context(),
		"SELECT coalesce(array_agg(actor || ' ' || action || ' ' || subject || ' ' || details::text ORDER BY id), '{}') FROM audit_log").Scan(&entries); err != nil {
		t.Fatal(err)
	}
	return entries
}

func (r *reportTest) wantAuditEntries(t *testing.T, want ...string) {
	t.Helper()
	for i := range want {
		want[i] = fmt.Sprintf("%d %s", r.boss.ID, want[i])
	}
	if diff := cmp.Diff(want, r.auditEntries(t), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("the audit log (-want +got):\n%s", diff)
	}
}

func TestAddReport(t *testing.T) {
	t.Parallel()
	r := newReportTest(t)
	public, private := r.texture(t, "public", true), r.texture(t, "private", false)
	f := func(reporter core.User, tid core.TextureID, want fault.Kind) {
		t.Helper()
		wantKind(t, r.db.AddReport(t.Context(), reporter.ID, tid, "because"), want)
	}

	first := r.report(t, r.bob, public)
	want := core.Report{
		ID: first, Texture: public.ID, Uploader: r.ann.ID, Reporter: r.bob.ID, State: core.ReportOpen, Reason: "because",
		TextureName: "public", UploaderNickname: r.ann.Nickname, ReporterNickname: r.bob.Nickname,
	}
	got := r.list(t, "")
	if diff := cmp.Diff([]core.Report{want}, got, cmpopts.IgnoreFields(core.Report{}, "ReportedAt")); diff != "" || got[0].ReportedAt.IsZero() {
		t.Errorf("the reports (-want +got):\n%s", diff)
	}
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
	addToCloset(t, r.db, r.bob, private.ID)
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
	outcomes := make(chan error, 20)
	for range cap(outcomes) {
		go func() { outcomes <- r.db.AddReport(t.Context(), r.bob.ID, tid, "because") }()
	}
	if got := countKinds(t, outcomes); got[nil] != 1 || got[fault.Duplicate] != 19 {
		t.Errorf("outcomes %v; want one success and duplicates", got)
	}
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
		got := must(r.db.Reports(t.Context(), core.ReportQuery{State: state, Page: page, PerPage: perPage}))(t)
		var listed []core.ReportID
		for _, report := range got.Reports {
			listed = append(listed, report.ID)
		}
		if !slices.Equal(listed, want) || got.Total != total {
			t.Errorf("page %d of the reports in state %q is %v of %d; want %v of %d", page, state, listed, got.Total, want, total)
		}
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
	if got := r.settle(t, bobs, core.ReportRejected); got.ID != bobs || got.State != core.ReportRejected || got.SettledAt == nil {
		t.Errorf("settled, it is %+v", got)
	}
	r.wantAuditEntries(t, fmt.Sprintf(`report.settle report:%d {"tid": %d, "state": "rejected", "uploader": %d}`, bobs, tid.ID, r.ann.ID))
	must(r.db.Texture(t.Context(), tid.ID))(t)
	if got := r.list(t, core.ReportOpen); len(got) != 1 || got[0].ID != cids {
		t.Errorf("open are %+v; want the other report", got)
	}
	for _, user := range []core.User{r.ann, r.bob, r.cid} {
		if notified := len(unread(t, r.db, user.ID)); (notified == 1) != (user == r.bob) {
			t.Errorf("%s has %d notifications; want one for the reporter only", user.Nickname, notified)
		}
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
	wearer := addWearingPlayer(t, r.db, r.cid, "Wearer", target.ID)
	bobs, cids, others := r.report(t, r.bob, target), r.report(t, r.cid, target), r.report(t, r.bob, other)
	wantKeys := watchChanges(t, r.db)
	calls := 0
	r.db.OnChange(func() { calls++ })

	if got := r.settle(t, cids, core.ReportDeleted); got.ID != cids || got.State != core.ReportDeleted {
		t.Errorf("settled, it is %+v", got)
	}
	wantKeys("the settlement", slices.Concat(textureKeys(target), playerKeys(wearer))...)
	if calls == 0 {
		t.Error("onChange was not called")
	}
	_, err := r.db.Texture(t.Context(), target.ID)
	wantKind(t, err, fault.NotFound)
	if got := r.list(t, core.ReportOpen); len(got) != 1 || got[0].ID != others {
		t.Errorf("open are %+v; want the report about another texture", got)
	}
	for _, user := range []core.User{r.bob, r.cid} {
		if got := titles(t, r.db, user.ID); len(got) != 1 {
			t.Errorf("%s has the notifications %q; want one", user.Nickname, got)
		}
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
	wantKeys := watchChanges(t, r.db)
	r.settle(t, first, core.ReportBanned)
	wantKeys("a ban")
	r.wantAuditEntries(t,
		fmt.Sprintf(`user.permission user:%d {"to": -1, "from": 0, "email": "ann@example.com", "report": %d, "nickname": "ann"}`, r.ann.ID, first),
		fmt.Sprintf(`report.settle report:%d {"tid": %d, "state": "banned", "uploader": %d}`, first, tid.ID, r.ann.ID))
	banned := must(r.db.UserByEmail(t.Context(), "ann@example.com"))(t)
	if banned.Permission != core.Banned {
		t.Errorf("the uploader's permission is %d", banned.Permission)
	}
	must(r.db.Texture(t.Context(), tid.ID))(t)
	if got := r.list(t, core.ReportOpen); len(got) != 2 {
		t.Errorf("%d reports are open; want the other two", len(got))
	}

	// Banning a banned user changes nothing; a deleted one cannot be banned.
	r.settle(t, second, core.ReportBanned)
	if err := r.db.DeleteUser(t.Context(), credentialsOf(r.ann)); err != nil {
		t.Fatal(err)
	}
	r.wantRejected(t, third, core.ReportBanned, fault.NotFound)
	r.settle(t, third, core.ReportDeleted)
}

// A report about the administrator's own texture cannot ban the administrator, but can delete
// the texture.
func TestSettleReportOnOwnTexture(t *testing.T) {
	t.Parallel()
	r := newReportTest(t)
	own := addTexture(t, r.db, texture(r.boss.ID, skin.Classic, "own", true))
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
	must(r.db.ChangeTexture(t.Context(), private.ID, core.TextureChange{Public: new(false)}, core.Scores{}))(t)
	f := func(id core.ReportID, texture core.TextureID, uploader, reporter core.UserID) {
		t.Helper()
		i := slices.IndexFunc(r.list(t, ""), func(report core.Report) bool { return report.ID == id })
		if got := r.list(t, "")[i]; got.Texture != texture || got.Uploader != uploader || got.Reporter != reporter || got.State != core.ReportOpen {
			t.Errorf("the report is %+v; want texture %d of %d, reported by %d, open", got, texture, uploader, reporter)
		}
	}

	// The reporter is deleted.
	if err := r.db.DeleteUser(t.Context(), credentialsOf(r.cid)); err != nil {
		t.Fatal(err)
	}
	f(cids, private.ID, r.ann.ID, 0)
	// The uploader deletes the texture, and can still be banned for it.
	if err := r.db.DeleteTexture(t.Context(), public.ID); err != nil {
		t.Fatal(err)
	}
	f(boss, public.ID, r.ann.ID, r.boss.ID)
	r.settle(t, boss, core.ReportBanned)
	// The uploader is deleted, and with them the private texture.
	if err := r.db.DeleteUser(t.Context(), credentialsOf(r.ann)); err != nil {
		t.Fatal(err)
	}
	f(bobs, private.ID, 0, r.bob.ID)

	// A texture that no longer exists counts as deleted, and a deleted reporter gets no
	// notification.
	wantKeys := watchChanges(t, r.db)
	r.settle(t, cids, core.ReportDeleted)
	wantKeys("the deletion of a deleted texture")
	if got := r.list(t, core.ReportOpen); len(got) != 0 {
		t.Errorf("open are %+v", got)
	}
	if got := titles(t, r.db, r.bob.ID); len(got) != 1 {
		t.Errorf("the remaining reporter has the notifications %q; want one", got)
	}
}

// Of concurrent settlements of a report, one succeeds, with one entry in the audit log.
func TestSettleInParallel(t *testing.T) {
	t.Parallel()
	r := newReportTest(t)
	states := []core.ReportState{core.ReportRejected, core.ReportDeleted, core.ReportBanned}
	settlements := func() int {
		t.Helper()
		return strings.Count(strings.Join(r.auditEntries(t), "\n"), "report.settle")
	}
	for round := range 4 {
		report := r.report(t, r.bob, r.texture(t, fmt.Sprint(round), true))
		before := settlements()
		outcomes := make(chan error, 12)
		for i := range cap(outcomes) {
			go func() {
				_, err := r.db.SettleReport(t.Context(), r.by, report, states[i%3])
				outcomes <- err
			}()
		}
		if got := countKinds(t, outcomes); got[nil] != 1 || got[fault.Duplicate] != 11 {
			t.Errorf("outcomes %v; want one success and duplicates", got)
		}
		if n := settlements() - before; n != 1 {
			t.Errorf("%d settlements are logged; want one", n)
		}
		if n := len(unread(t, r.db, r.bob.ID)); n != round+1 {
			t.Errorf("the reporter has %d notifications; want %d", n, round+1)
		}
		r.permit(t, r.ann, core.Normal)
	}
}

// A report that waits for the deletion of its texture is not added.
func TestReportAfterWaitingForADeletion(t *testing.T) {
	t.Parallel()
	r := newReportTest(t)
	tid := r.texture(t, "public", true).ID
	other := beginLockTx(t, r.address)
	other.exec(t, "DELETE FROM closet_items WHERE tid = $1", tid)
	other.exec(t, "DELETE FROM textures WHERE tid = $1", tid)
	reported := make(chan error, 1)
	go func() { reported <- r.db.AddReport(t.Context(), r.bob.ID, tid, "because") }()
	other.commitOnceBlocked(t, 1)
	wantKind(t, <-reported, fault.NotFound)
}

// A report locks the uploader before the texture, as the deletion of a user does.
func TestReportLocksUsersFirst(t *testing.T) {
	t.Parallel()
	r := newReportTest(t)
	tid := r.texture(t, "public", true).ID
	other := beginLockTx(t, r.address)
	other.exec(t, "SELECT FROM users WHERE uid = $1 FOR UPDATE", r.ann.ID)
	reported := make(chan error, 1)
	go func() { reported <- r.db.AddReport(t.Context(), r.bob.ID, tid, "because") }()
	other.waitBlocked(t, 1)
	other.exec(t, "SELECT FROM textures WHERE tid = $1 FOR UPDATE NOWAIT", tid)
	other.exec(t, "UPDATE textures SET uploader = NULL WHERE tid = $1", tid)
	other.exec(t, "DELETE FROM users WHERE uid = $1", r.ann.ID)
	other.commitOnceBlocked(t, 1)
	if err := <-reported; err != nil {
		t.Fatal(err)
	}
	if got := r.list(t, "")[0]; got.Uploader != 0 {
		t.Errorf("the uploader is %d; want none", got.Uploader)
	}
}

// A settlement does not wait for a reporter that is being deleted, and does not notify them.
func TestSettleWhileTheReporterIsDeleted(t *testing.T) {
	t.Parallel()
	r := newReportTest(t)
	report := r.report(t, r.bob, r.texture(t, "public", true))
	other := beginLockTx(t, r.address)
	other.exec(t, "SELECT FROM users WHERE uid = $1 FOR UPDATE", r.bob.ID)
	r.settle(t, report, core.ReportDeleted)
	other.exec(t, "DELETE FROM users WHERE uid = $1", r.bob.ID)
	if err := other.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := r.list(t, "")[0]; got.Reporter != 0 || got.State != core.ReportDeleted {
		t.Errorf("the report is %+v", got)
	}
	var messages int
	if err := postgrestest.Conn(t, r.address).QueryRow(t.Context(), "SELECT count(*) FROM messages").Scan(&messages); err != nil {
		t.Fatal(err)
	}
	if messages != 0 {
		t.Errorf("there are %d messages; want none", messages)
	}
}
