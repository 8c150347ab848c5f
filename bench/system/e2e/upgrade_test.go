package e2e

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"image/color"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/veneer-skins/veneer/bench/system/stack"
	"github.com/veneer-skins/veneer/core/mail/mailtest"
	"github.com/veneer-skins/veneer/core/postgres/postgrestest"
	"github.com/veneer-skins/veneer/shared/blobstore/blobstoretest"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// git runs git in the checkout, whatever user owns it, and returns its output.
func git(tb testing.TB, arguments ...string) (string, error) {
	tb.Helper()
	command := exec.CommandContext(tb.Context(), "git", append([]string{"-c", "safe.directory=*", "-C", top}, arguments...)...)
	output, err := command.Output()
	return strings.TrimSpace(string(output)), err
}

const migrations = "core/postgres/migrations"

// release is a commit that operators may run.
type release struct{ commit string }

// previousRelease returns the release before this one: the newest tag before the last commit, or,
// as long as there is none, the commit before the newest migration. Where the checkout has no
// history the test is skipped, with TEST_NO_HISTORY=1 even if every other one must run: .ci/run
// sets it where the history cannot be fetched.
func previousRelease(tb testing.TB) release {
	tb.Helper()
	if shallow, err := git(tb, "rev-parse", "--is-shallow-repository"); err != nil || shallow != "false" {
		const cause = "the clone is shallow and lacks the release before this one; git fetch --unshallow --tags fetches it"
		if os.Getenv("TEST_NO_HISTORY") == "1" {
			tb.Skip(cause)
		}
		testenv.Skip(tb, cause)
	}
	at, err := git(tb, "describe", "--tags", "--abbrev=0", "--match=v*", "HEAD^")
	if err != nil {
		if at, err = git(tb, "log", "-1", "--diff-filter=A", "--format=%H", "--", migrations); err != nil || at == "" {
			tb.Fatalf("find the newest migration: %q, %v", at, err)
		}
		at += "^"
	}
	commit, err := git(tb, "rev-parse", at+"^{commit}")
	if err != nil {
		tb.Fatal(err)
	}
	return release{commit}
}

// buildMu serialises builds: parallel tests need the same programs.
var buildMu sync.Mutex

// binary returns the path of one of the release's programs, built once.
func (r release) binary(tb testing.TB, program string) string {
	tb.Helper()
	buildMu.Lock()
	defer buildMu.Unlock()
	path, err := filepath.Abs(filepath.Join(top, ".dev/bin", program+"@"+r.commit))
	if err != nil {
		tb.Fatal(err)
	}
	if _, err := os.Stat(path); err == nil {
		return path
	}
	source := tb.TempDir()
	built := fmt.Sprintf("%s.%d", path, os.Getpid()) // of this process only
	defer func() { _ = os.Remove(built) }()          // a failed build leaves nothing
	archive, err := git(tb, "archive", "--output="+filepath.Join(source, "all.tar"), r.commit)
	if err != nil {
		tb.Fatalf("git archive: %v\n%s", err, archive)
	}
	for _, step := range [][]string{
		{"tar", "-xf", "all.tar"},
		{"go", "build", "-buildvcs=false", "-ldflags=-s -w", "-o", built, "./" + program + "/cmd/" + program},
		{"mv", built, path},
	} {
		command := exec.CommandContext(tb.Context(), step[0], step[1:]...)
		command.Dir = source
		if output, err := command.CombinedOutput(); err != nil {
			tb.Fatalf("%v: %v\n%s", step, err, output)
		}
	}
	return path
}

// A released migration is never changed.
func TestReleasedMigrationsAreUnchanged(t *testing.T) {
	t.Parallel()
	previousRelease(t) // skips without history
	tags, err := git(t, "tag", "--list", "v*", "--merged", "HEAD")
	if err != nil {
		t.Fatal(err)
	}
	for tag := range strings.FieldsSeq(tags) { // none before the first release
		changed, err := git(t, "diff", "--name-status", "--no-renames", "--diff-filter=a", tag, "--", migrations)
		if err != nil {
			t.Fatal(err)
		}
		if changed != "" {
			t.Errorf("since %s migrations were changed or removed; write another one instead:\n%s", tag, changed)
		}
	}
}

// The cores of the previous release keep working while the schema is migrated, and beside cores of
// this one, each seeing the other's writes. A core that meets an older schema is not ready, says
// why, and becomes ready after the migration. Edges of both releases see the older cores' writes
// through the newer cores, which are upgraded first.
func TestUpgrade(t *testing.T) {
	t.Parallel()
	previous := previousRelease(t)
	files := blobstoretest.Directory(t).Config
	newer := stack.NewCore(t, files)
	older := stack.NewCoreAt(t, files, newer.Setting("CORE_DATABASE_URL"))
	schema := postgrestest.Empty(t) // not the one that is migrated already
	newer.Set("CORE_DATABASE_URL", schema)
	older.Set("CORE_DATABASE_URL", schema)
	older.UseBinary(previous.binary(t, "core"))

	older.Run(t, "migrate")
	older.Start(t)
	older.AwaitReady(t)
	oldBase := "http://" + older.Address(t, "public")
	before := populate(t, oldBase, 1)

	newer.Start(t)
	newBase := "http://" + newer.Address(t, "public")
	if status, body := readiness(t, newer); strings.Contains(newer.Run(t, "migrate"), "nothing to do") {
		t.Logf("%s has this schema", previous.commit)
	} else if status != http.StatusServiceUnavailable || !strings.Contains(body, "run core migrate") {
		t.Errorf("a core with an older schema: %d %s", status, body)
	}
	newer.AwaitReady(t)

	wantSameAnswers(t, before, newBase)
	wantSameAnswers(t, populate(t, oldBase, 2), newBase)
	wantSameAnswers(t, populate(t, newBase, 3), oldBase)

	edges := []*stack.Process{stack.NewEdge(t, files, newer), stack.NewEdge(t, files, newer)}
	edges[0].UseBinary(previous.binary(t, "edge"))
	var avatars []string
	for _, edge := range edges {
		edge.Start(t)
		edge.AwaitReady(t)
		avatars = append(avatars, "http://"+edge.Address(t, "public")+"/avatar/player/walker_1?png")
		awaitAvatar(t, avatars[len(avatars)-1], drawSheet(1), time.Now())
	}
	sheet := drawSheet(101)
	tid := before.upload(t, "another", sheet).Data.TID
	changed := time.Now()
	before.call(t, http.MethodPut, fmt.Sprintf("/api/players/%d/textures", before.pid), map[string]any{"skin": tid})
	for _, avatar := range avatars {
		awaitAvatar(t, avatar, sheet, changed)
	}
}

// A registration that is pending during an upgrade is confirmed with a password that is chosen
// then, whatever was sent to the previous release.
func TestUpgradeOfPendingRegistration(t *testing.T) {
	t.Parallel()
	previous := previousRelease(t)
	files, mails := blobstoretest.Directory(t).Config, mailtest.Start(t, mailtest.Options{})
	newer := stack.NewCore(t, files)
	older := stack.NewCoreAt(t, files, newer.Setting("CORE_DATABASE_URL"))
	schema := postgrestest.Empty(t) // not the one that is migrated already
	for _, core := range []*stack.Process{newer, older} {
		core.Set("CORE_DATABASE_URL", schema)
		core.Set("CORE_REGISTRATION", "confirm")
		core.Set("CORE_SMTP_HOST", mails.Host)
		core.Set("CORE_SMTP_PORT", fmt.Sprint(mails.Port))
		core.Set("CORE_SMTP_TLS", "none")
		core.Set("CORE_SMTP_FROM", "noreply@skins.example.org")
		core.Set("CORE_MAIL_URL", "https://skins.example.org")
	}
	older.UseBinary(previous.binary(t, "core"))
	older.Run(t, "migrate")
	older.Start(t)
	older.AwaitReady(t)
	before := &client{http: &http.Client{}, base: "http://" + older.Address(t, "public")}
	if status, body := before.do(t, http.MethodPost, "/api/auth/register", map[string]any{
		"email": "ann@example.com", "password": "the registrant's", "nickname": "Ann", "player_name": "Ann_1",
	}); status != http.StatusAccepted {
		t.Fatalf("register: %d %s", status, body)
	}
	token := linkToken.FindStringSubmatch(mails.Await(t, 1)[0].Text)[1]

	newer.Run(t, "migrate")
	newer.Start(t)
	newer.AwaitReady(t)
	after := &client{http: before.http, base: "http://" + newer.Address(t, "public")}
	if status, body := after.do(t, http.MethodPost, "/api/auth/verify", map[string]any{"token": token}); status != http.StatusUnprocessableEntity || !strings.Contains(body, `"password"`) {
		t.Errorf("the link without a password: %d %s", status, body)
	}
	after.call(t, http.MethodPost, "/api/auth/verify", map[string]any{"token": token, "password": "the owner's"})
	for password, want := range map[string]int{"the registrant's": http.StatusUnauthorized, "the owner's": http.StatusOK} {
		if status, body := after.do(t, http.MethodPost, "/api/auth/login", map[string]any{"email": "ann@example.com", "password": password}); status != want {
			t.Errorf("log-in with %s password: %d %s; want %d", password, status, body, want)
		}
	}
	after.token = after.call(t, http.MethodPost, "/api/auth/login", map[string]any{"email": "ann@example.com", "password": "the owner's"}).Token
	var players []struct{ Name string }
	if after.get(t, "/api/players", &players); len(players) != 1 || players[0].Name != "Ann_1" {
		t.Errorf("the players are %v; want the one that was registered", players)
	}
}

// insertTextures inserts textures of one user, in columns that all releases have.
const insertTextures = `
	INSERT INTO textures (uploader, likes, upload_at, bytes, public, type, hash, pixels, name)
	SELECT $1, n % 7, now(), 2000, n % 20 <> 13, CASE WHEN n % 10 < 8 THEN 'steve' ELSE 'cape' END, sha256(n::text::bytea), sha256(n::text::bytea), 'Texture ' || n
	FROM generate_series(1::bigint, $2) AS n`

// BenchmarkUpgrade measures how long core migrate takes for a million textures, or
// UPGRADE_TEXTURES, of the previous release, while a core of that release uploads, likes and lists,
// and how long its users wait.
func BenchmarkUpgrade(b *testing.B) {
	textures, err := strconv.Atoi(cmp.Or(os.Getenv("UPGRADE_TEXTURES"), "1000000"))
	if err != nil {
		b.Fatal(err)
	}
	previous := previousRelease(b)
	files := blobstoretest.Directory(b).Config
	newer := stack.NewCore(b, files)
	older := newer.Clone()
	schema := postgrestest.Empty(b)
	for _, core := range []*stack.Process{newer, older} {
		core.Set("CORE_DATABASE_URL", schema)
		for _, name := range []string{"REQUESTS", "CHANGES", "UPLOADS"} {
			core.Set("CORE_LIMIT_"+name, "0")
		}
		core.Set("CORE_SCORE_REGISTRATION", "1000000")
	}
	for _, name := range []string{"TEXTURES", "TEXTURE_BYTES", "CLOSET_ITEMS"} {
		newer.Set("CORE_QUOTA_"+name, "0")
		older.Set("CORE_LIMIT_"+name, "0") // its name in the release before
	}
	older.UseBinary(previous.binary(b, "core"))
	older.Run(b, "migrate")
	older.Start(b)
	older.AwaitReady(b)
	ann := signUp(b, "http://"+older.Address(b, "public"))
	conn := postgrestest.Conn(b, schema)
	if _, err := conn.Exec(b.Context(), insertTextures, 1, textures); err != nil {
		b.Fatal(err)
	}
	if _, err := conn.Exec(b.Context(), "VACUUM ANALYZE textures"); err != nil {
		b.Fatal(err)
	}
	var list any
	ann.get(b, "/api/textures", &list) // the first one may read all of them

	stopped, uploads := make(chan struct{}), 0
	var all sync.WaitGroup
	worst := map[string]*time.Duration{"upload": new(time.Duration), "like": new(time.Duration), "list": new(time.Duration)}
	for what, do := range map[string]func(n int){
		"upload": func(n int) {
			sheet := drawSheet(uint8(n))
			sheet.SetNRGBA(0, 0, color.NRGBA{R: uint8(n >> 8), G: uint8(n >> 16), A: 255})
			ann.upload(b, fmt.Sprint("Upload ", n), sheet)
			uploads++
		},
		"like": func(n int) {
			ann.call(b, http.MethodPost, "/api/closet", map[string]any{"tid": 1 + n%textures, "name": "Liked"})
		},
		"list": func(n int) {
			var list struct{ Total int }
			if ann.get(b, fmt.Sprint("/api/textures?page=", 1+n%100), &list); list.Total == 0 {
				b.Error("a list of the release before is empty")
			}
		},
	} {
		all.Go(func() {
			tick := time.NewTicker(50 * time.Millisecond)
			defer tick.Stop()
			for n := 0; ; n++ {
				select {
				case <-stopped:
					return
				case <-tick.C:
				}
				began := time.Now()
				do(n)
				*worst[what] = max(*worst[what], time.Since(began))
			}
		})
	}
	b.ResetTimer()
	b.Log(newer.Run(b, "migrate"))
	b.StopTimer()
	close(stopped)
	all.Wait()
	for what, took := range worst {
		b.ReportMetric(took.Seconds()*1000, "worst-"+what+"-ms")
	}
	newer.Start(b)
	newer.AwaitReady(b)
	var listing struct{ Total int }
	ann.base = "http://" + newer.Address(b, "public")
	if ann.get(b, "/api/textures?q=upload", &listing); listing.Total != min(uploads, 1000) {
		b.Errorf("lists find %d uploads of %d", listing.Total, uploads)
	}
}

// readiness returns a core's response on /readyz.
func readiness(t *testing.T, core *stack.Process) (status int, body string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+core.Address(t, "operators")+"/readyz", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(content)
}

// populatedUser is a user with data from all common API calls.
type populatedUser struct {
	*client
	pid int
}

// populate makes all common API calls, as the previous release has them.
func populate(t *testing.T, base string, n uint8) populatedUser {
	t.Helper()
	email := fmt.Sprintf("walker%d@example.com", n)
	w := populatedUser{client: &client{http: &http.Client{}, base: base}}
	w.call(t, http.MethodPost, "/api/auth/register", map[string]any{"email": email, "password": "correct horse", "nickname": "Walker"})
	w.token = w.call(t, http.MethodPost, "/api/auth/login", map[string]any{"email": email, "password": "correct horse"}).Token
	w.token = w.call(t, http.MethodPost, "/api/auth/refresh", nil).Token
	w.call(t, http.MethodPut, "/api/user/password", map[string]any{"current_password": "correct horse", "new_password": "another horse"})
	w.call(t, http.MethodPut, "/api/user", map[string]any{"nickname": fmt.Sprint("Walker ", n)})
	w.call(t, http.MethodPost, "/api/user/sign", nil)

	keptTID, deletedTID := w.upload(t, "kept", drawSheet(n)).Data.TID, w.upload(t, "deleted", drawSheet(n+50)).Data.TID
	w.call(t, http.MethodPut, "/api/user/avatar", map[string]any{"tid": keptTID})
	w.pid = w.call(t, http.MethodPost, "/api/players", map[string]any{"name": fmt.Sprint("Renamed_", n)}).Data.PID
	w.call(t, http.MethodPut, fmt.Sprintf("/api/players/%d/name", w.pid), map[string]any{"name": fmt.Sprint("Walker_", n)})
	w.call(t, http.MethodPut, fmt.Sprintf("/api/players/%d/textures", w.pid), map[string]any{"skin": deletedTID})
	w.call(t, http.MethodDelete, fmt.Sprintf("/api/players/%d/textures", w.pid), map[string]any{"skin": true})
	w.call(t, http.MethodPut, fmt.Sprintf("/api/players/%d/textures", w.pid), map[string]any{"skin": keptTID})
	w.call(t, http.MethodDelete, fmt.Sprintf("/api/closet/%d", deletedTID), nil)
	w.call(t, http.MethodPost, "/api/closet", map[string]any{"tid": deletedTID, "name": "again"})
	w.call(t, http.MethodPut, fmt.Sprintf("/api/closet/%d", deletedTID), map[string]any{"name": "renamed"})
	w.call(t, http.MethodDelete, fmt.Sprintf("/api/textures/%d", deletedTID), nil)
	temporary := w.call(t, http.MethodPost, "/api/players", map[string]any{"name": fmt.Sprint("Temporary_", n)}).Data.PID
	w.call(t, http.MethodDelete, fmt.Sprintf("/api/players/%d", temporary), nil)
	return w
}

// wantSameAnswers compares the responses of two cores: one must contain all of the other's fields.
// A newer core may have more.
func wantSameAnswers(t *testing.T, w populatedUser, base string) {
	t.Helper()
	other := *w.client
	other.base = base
	for _, path := range []string{"/api/user", "/api/user/score", "/api/user/notifications", "/api/players", "/api/closet", "/api/closet?q=KEPT", "/api/textures?q=kept"} {
		var one, two any
		w.get(t, path, &one)
		other.get(t, path, &two)
		if !isSubset(one, two) && !isSubset(two, one) {
			t.Errorf("%s of %s: %v; of %s: %v", path, w.base, one, other.base, two)
		}
		if m, ok := one.(map[string]any); ok && m["code"] != nil && m["code"] != 0. {
			t.Errorf("%s: %v", path, one)
		}
	}
}

// isSubset reports whether a JSON value contains all of another one.
func isSubset(less, more any) bool {
	switch less := less.(type) {
	case map[string]any:
		other, ok := more.(map[string]any)
		for name, value := range less {
			listing, there := other[name]
			ok = ok && there && isSubset(value, listing)
		}
		return ok
	case []any:
		other, ok := more.([]any)
		ok = ok && len(other) == len(less)
		for i := range less {
			ok = ok && isSubset(less[i], other[i])
		}
		return ok
	default:
		a, _ := json.Marshal(less) //nolint:errchkjson // it was read from JSON
		b, _ := json.Marshal(more) //nolint:errchkjson // so was this
		return bytes.Equal(a, b)
	}
}
