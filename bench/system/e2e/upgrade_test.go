package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/veneer-skins/veneer/bench/system/site"
	"github.com/veneer-skins/veneer/bench/system/stack"
	"github.com/veneer-skins/veneer/core/postgres/postgrestest"
	"github.com/veneer-skins/veneer/shared/blobstore/blobstoretest"
	"github.com/veneer-skins/veneer/shared/httpserver/httpservertest"
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
	commit := testenv.Must(git(tb, "rev-parse", at+"^{commit}"))(tb)
	return release{commit}
}

// buildMu serialises builds: parallel tests need the same programs.
var buildMu sync.Mutex

// binary returns the path of one of the release's programs, built once.
func (r release) binary(tb testing.TB, program string) string {
	tb.Helper()
	buildMu.Lock()
	defer buildMu.Unlock()
	path := testenv.Must(filepath.Abs(filepath.Join(top, ".dev/bin", program+"@"+r.commit)))(tb)
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
		stack.MustRun(tb, command)
	}
	return path
}

// A released migration is never changed.
func TestReleasedMigrationsAreUnchanged(t *testing.T) {
	t.Parallel()
	previousRelease(t) // skips without history
	tags := testenv.Must(git(t, "tag", "--list", "v*", "--merged", "HEAD"))(t)
	for tag := range strings.FieldsSeq(tags) { // none before the first release
		changed := testenv.Must(git(t, "diff", "--name-status", "--no-renames", "--diff-filter=a", tag, "--", migrations))(t)
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
	newer := site.NewCore(t, files)
	older := site.NewCoreAt(t, files, newer.Setting("CORE_DATABASE_URL"))
	schema := postgrestest.Empty(t) // not the one that is migrated already
	newer.Set("CORE_DATABASE_URL=" + schema)
	older.Set("CORE_DATABASE_URL=" + schema)
	older.UseBinary(previous.binary(t, "core"))

	older.Run(t, "migrate")
	older.StartReady(t)
	oldBase := older.BaseURL(t, "public")
	before := populate(t, oldBase, 1)

	newer.Start(t)
	newBase := newer.BaseURL(t, "public")
	if status, body := readiness(t, newer); strings.Contains(newer.Run(t, "migrate"), "nothing to do") {
		t.Logf("%s has this schema", previous.commit)
	} else if status != http.StatusServiceUnavailable || !strings.Contains(body, "run core migrate") {
		t.Errorf("a core with an older schema: %d %s", status, body)
	}
	newer.AwaitReady(t)

	wantSameAnswers(t, before, newBase)
	wantSameAnswers(t, populate(t, oldBase, 2), newBase)
	wantSameAnswers(t, populate(t, newBase, 3), oldBase)

	edges := []*stack.Process{site.NewEdge(t, files, newer), site.NewEdge(t, files, newer)}
	edges[0].UseBinary(previous.binary(t, "edge"))
	var avatars []string
	for _, edge := range edges {
		edge.StartReady(t)
		avatars = append(avatars, edge.BaseURL(t, "public")+"/avatar/player/walker_1?png")
		awaitAvatar(t, avatars[len(avatars)-1], drawSheet(1), time.Now())
	}
	sheet := drawSheet(101)
	tid := upload(t, before.Client, "another", sheet).TID
	changed := time.Now()
	before.SetSkin(t, before.pid, tid)
	for _, avatar := range avatars {
		awaitAvatar(t, avatar, sheet, changed)
	}
}

func readiness(t *testing.T, core *stack.Process) (status int, body string) {
	t.Helper()
	response := httpservertest.Get(t, core.BaseURL(t, "operators")+"/readyz")
	return response.Status, response.Body
}

// populatedUser is a user with data from all common API calls.
type populatedUser struct {
	*site.Client
	pid int
}

// populate makes all common API calls, as the previous release has them.
func populate(t *testing.T, base string, n uint8) populatedUser {
	t.Helper()
	w := populatedUser{Client: signUpAs(t, base, fmt.Sprintf("walker%d@example.com", n))}
	w.Token = w.Call(t, http.MethodPost, "/api/auth/refresh", nil).Token
	w.Call(t, http.MethodPut, "/api/user/password", map[string]any{"current_password": password, "new_password": "another horse"})
	w.Call(t, http.MethodPut, "/api/user", map[string]any{"nickname": fmt.Sprint("Walker ", n)})
	w.Call(t, http.MethodPost, "/api/user/sign", nil)

	keptTID, deletedTID := upload(t, w.Client, "kept", drawSheet(n)).TID, upload(t, w.Client, "deleted", drawSheet(n+50)).TID
	w.Call(t, http.MethodPut, "/api/user/avatar", map[string]any{"tid": keptTID})
	w.pid = w.AddPlayer(t, fmt.Sprint("Renamed_", n))
	w.Call(t, http.MethodPut, fmt.Sprintf("/api/players/%d/name", w.pid), map[string]any{"name": fmt.Sprint("Walker_", n)})
	w.SetSkin(t, w.pid, deletedTID)
	w.Call(t, http.MethodDelete, fmt.Sprintf("/api/players/%d/textures", w.pid), map[string]any{"skin": true})
	w.SetSkin(t, w.pid, keptTID)
	w.Call(t, http.MethodDelete, fmt.Sprintf("/api/closet/%d", deletedTID), nil)
	w.Call(t, http.MethodPost, "/api/closet", map[string]any{"tid": deletedTID, "name": "again"})
	w.Call(t, http.MethodPut, fmt.Sprintf("/api/closet/%d", deletedTID), map[string]any{"name": "renamed"})
	w.Call(t, http.MethodDelete, fmt.Sprintf("/api/textures/%d", deletedTID), nil)
	temporary := w.AddPlayer(t, fmt.Sprint("Temporary_", n))
	w.Call(t, http.MethodDelete, fmt.Sprintf("/api/players/%d", temporary), nil)
	return w
}

// wantSameAnswers compares the responses of two cores: one must contain all of the other's fields.
// A newer core may have more.
func wantSameAnswers(t *testing.T, w populatedUser, base string) {
	t.Helper()
	other := *w.Client
	other.Base = base
	for _, path := range []string{"/api/user", "/api/user/score", "/api/user/notifications", "/api/players", "/api/closet", "/api/closet?q=KEPT", "/api/textures?q=kept"} {
		var one, two any
		w.Get(t, path, &one)
		other.Get(t, path, &two)
		if !isSubset(one, two) && !isSubset(two, one) {
			t.Errorf("%s of %s: %v; of %s: %v", path, w.Base, one, other.Base, two)
		}
		if m, ok := one.(map[string]any); ok && m["code"] != nil && m["code"] != 0. {
			t.Errorf("%s: %v", path, one)
		}
	}
}

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
