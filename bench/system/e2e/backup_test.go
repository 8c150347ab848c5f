package e2e

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/veneer-skins/veneer/bench/system/site"
	"github.com/veneer-skins/veneer/bench/system/stack"
	"github.com/veneer-skins/veneer/core/postgres/postgrestest"
	"github.com/veneer-skins/veneer/shared/blobstore"
	"github.com/veneer-skins/veneer/shared/blobstore/blobstoretest"
	"github.com/veneer-skins/veneer/shared/httpserver/httpservertest"
	"github.com/veneer-skins/veneer/shared/testenv"
	"github.com/veneer-skins/veneer/shared/testenv/cmptest"
)

// top is the root of the repository.
const top = "../../.."

// page is a page of docs/operations with commands to run.
type page struct {
	blocks   []stack.Block
	settings map[string]string // they replace its first block
	environ  []string          // further environment of the commands
}

var exports = regexp.MustCompile(`(?m)^export (\w+)=`)

// openPage reads a page. Its settings must be exactly those given.
func openPage(t *testing.T, path string, settings map[string]string) *page {
	t.Helper()
	p := &page{settings: settings, blocks: stack.Blocks(t, top, path)}
	if len(p.blocks) == 0 || !slices.Equal(p.blocks[0].Labels, []string{"settings"}) {
		t.Fatalf("%s does not begin with settings", path)
	}
	named := map[string]string{}
	for _, export := range exports.FindAllStringSubmatch(p.blocks[0].Commands, -1) {
		named[export[1]] = settings[export[1]]
	}
	if diff := cmp.Diff(named, settings); diff != "" {
		t.Fatalf("settings (-of %s +of the test):\n%s", path, diff)
	}
	p.blocks = p.blocks[1:]
	return p
}

// run runs the blocks that have only wanted labels, in the page's order and in one shell.
func (p *page) run(t *testing.T, wanted ...string) {
	t.Helper()
	var script strings.Builder
	for _, b := range p.blocks {
		if !slices.ContainsFunc(b.Labels, func(word string) bool { return !slices.Contains(wanted, word) }) {
			script.WriteString(b.Commands)
		}
	}
	if script.Len() == 0 {
		t.Fatalf("the page has no commands for %v", wanted)
	}
	shell := exec.CommandContext(t.Context(), "bash", "-x", "-c", script.String())
	shell.Dir, shell.Env = top, slices.Clone(p.environ)
	for name, value := range p.settings {
		shell.Env = append(shell.Env, name+"="+value)
	}
	output, err := shell.CombinedOutput()
	t.Logf("%s", output)
	if err != nil {
		t.Fatalf("the page's commands for %v: %v", wanted, err)
	}
}

// storeFixture is a texture store, and the roles of the database.
type storeFixture struct {
	files blobstore.Config // for core
	// prepare creates core's database in a new server and returns its URLs, for core and for its owner.
	// Without it, they are the server's own.
	prepare func(t *testing.T, p *stack.Postgres) (url, owner string)
	// done checks what else was restored; nil for nothing.
	done func(t *testing.T, database string)
}

// database returns the URLs of core's database in a new server.
func (f storeFixture) database(t *testing.T, p *stack.Postgres) (url, owner string) {
	t.Helper()
	if f.prepare == nil {
		return p.URL(p.Address), p.URL(p.Address)
	}
	return f.prepare(t, p)
}

func directoryStore(t *testing.T) storeFixture {
	t.Helper()
	return storeFixture{files: blobstoretest.Directory(t).Config}
}

func bucketStore(t *testing.T) storeFixture {
	t.Helper()
	return storeFixture{files: blobstoretest.Bucket(t).Config}
}

// empty removes all files of the store.
func (f storeFixture) empty(t *testing.T) {
	t.Helper()
	files := testenv.Must(blobstore.New(f.files))(t)
	for object, err := range files.List(t.Context()) {
		testenv.Do(t, err)
		testenv.Do(t, files.Delete(t.Context(), object.Hash))
	}
}

// twoRoles returns a MinIO bucket, and databases as docker-compose.yml makes them: one role owns the tables, core has another.
func twoRoles(t *testing.T) storeFixture {
	t.Helper()
	k, secrets := bucketStore(t), t.TempDir()
	testenv.Do(t, os.WriteFile(filepath.Join(secrets, "database_password"), []byte("hunter2"), 0o600))
	testenv.Do(t, os.WriteFile(filepath.Join(secrets, "owner_database_url"), []byte("postgres://veneer_owner:hunter3@postgres/veneer"), 0o600))
	k.prepare = func(t *testing.T, p *stack.Postgres) (url, owner string) {
		t.Helper()
		host, port, _ := strings.Cut(p.Address, ":")
		script := exec.CommandContext(t.Context(), "bash", "-c", strings.ReplaceAll(read(t, "deploy/compose/database.sh"), "/run/secrets", secrets))
		script.Env = []string{"PATH=" + p.Programs + ":" + os.Getenv("PATH"), "PGHOST=" + host, "PGPORT=" + port}
		stack.MustRun(t, script)
		at := "@" + p.Address + "/veneer?sslmode=disable"
		return "postgres://veneer" + at, "postgres://veneer_owner" + at
	}
	k.done = func(t *testing.T, database string) {
		t.Helper()
		const rights = `SELECT format('%s %s %s %s', current_setting('statement_timeout'), current_setting('idle_in_transaction_session_timeout'),
			has_table_privilege('audit_log', 'INSERT'), has_table_privilege('audit_log', 'UPDATE'))`
		got := site.Rows(t, postgrestest.Conn(t, database), pgx.RowTo[string], rights)
		cmptest.Same(t, got, []string{"11min 1min t f"}, "limits of core's role, and whether it may add to the audit log, and change it")
	}
	return k
}

// A system is restored from its backup: accounts can log in, every picture is the same to the byte,
// and edges that had served later changes serve the restored state.
func TestRestore(t *testing.T) {
	t.Parallel()
	for name, store := range map[string]func(*testing.T) storeFixture{
		"with a directory": directoryStore, "with a bucket": bucketStore, "with two roles": twoRoles,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			restore(t, store(t))
		})
	}
}

func restore(t *testing.T, k storeFixture) {
	t.Helper()
	lost, empty := stack.NewPostgres(t), stack.NewPostgres(t)
	oldURL, oldOwner := k.database(t, lost)
	newURL, newOwner := k.database(t, empty)
	core := site.NewCoreAt(t, k.files, oldOwner)
	core.Set("CORE_DEMO=1", "CORE_DATABASE_URL="+oldURL, "CORE_OWNER_DATABASE_URL="+oldOwner)
	core.Run(t, "migrate")
	site.ServeLaunchers(t, core, "https://skins.example.org")
	core.Set("CORE_YGGDRASIL_LOGIN_INTERVAL=0s")
	core.Start(t)
	base := core.BaseURL(t, "public")
	running := []*stack.Process{startEdge(t, k.files, core), startEdge(t, k.files, core)}

	ann := signUp(t, base)
	first := upload(t, ann, "first", drawSheet(10))
	pid := ann.AddPlayer(t, "Ann_1")
	ann.SetSkin(t, pid, first.TID)
	textures := texturesIn(t, oldURL)
	players := []string{"/avatar/player/ann_1?png", "/avatar/player/late?png"}
	paths := append(slices.Clone(players), "/avatar/player/demo?3d", "/csl/demo.json")
	for tid, hash := range textures {
		for _, path := range []string{"/textures/" + hash, "/preview/%d?png", "/preview/%d", "/avatar/%d?png&3d", "/avatar/%d"} {
			paths = append(paths, strings.ReplaceAll(path, "%d", fmt.Sprint(tid)))
		}
	}
	before := fetchAll(t, running[0], paths)
	game := launcher{Client: site.Client{Base: base + "/api/yggdrasil"}, email: "ann@example.com"}
	revoked := testenv.Must(game.authenticate(t))(t)
	game.validate(t, revoked.AccessToken, http.StatusNoContent)

	backup := t.TempDir()
	openBackup(t, core, lost, backup).run(t, "backup", "verify")

	// Changes after the backup.
	token := map[string]any{"accessToken": revoked.AccessToken}
	testenv.Do(t, game.post(t, "/authserver/invalidate", token, http.StatusNoContent, nil))
	second := upload(t, ann, "second", drawSheet(200))
	ann.SetSkin(t, pid, second.TID)
	ann.SetSkin(t, ann.AddPlayer(t, "Late"), second.TID)
	for i, edge := range running {
		eventually(t, fmt.Sprintf("edge %d serves the changes after the backup", i), func() string {
			for path, answer := range fetchAll(t, edge, players) {
				if answer == before[path] {
					return path + " is as before"
				}
			}
			return ""
		})
	}

	testenv.Do(t, core.Stop(t))
	lost.Kill(t)
	k.empty(t)
	core.Set("CORE_DATABASE_URL="+newURL, "CORE_OWNER_DATABASE_URL="+newOwner)
	openBackup(t, core, empty, backup).run(t, "restore")
	core.StartReady(t)

	cmptest.Same(t, texturesIn(t, newURL), textures, "textures after it")
	for i, edge := range append(running, startEdge(t, k.files, core)) {
		eventually(t, fmt.Sprintf("edge %d serves the restored data", i), func() string { return cmp.Diff(before, fetchAll(t, edge, paths)) })
	}
	if k.done != nil {
		k.done(t, newURL)
	}
	status, _ := ann.Do(t, http.MethodGet, "/api/user", nil)
	testenv.Equal(t, status, http.StatusUnauthorized, "with a token from before")
	game.HTTP = &http.Client{Transport: &http.Transport{}} // connections to the last process are dead
	game.validate(t, revoked.AccessToken, http.StatusForbidden)
	for email, password := range map[string]string{"ann@example.com": password, "demo@example.com": "demo-password"} {
		returned := &site.Client{Base: base}
		returned.LogIn(t, email, password)
		if tid := upload(t, returned, "third", drawSheet(uint8(len(email)))).TID; tid <= second.TID {
			t.Errorf("a texture is number %d; %d was the last one before", tid, second.TID)
		}
	}
}

// selectNumbered selects the revision of the last change, once all have one.
const selectNumbered = `SELECT revision::text FROM feed WHERE NOT EXISTS (SELECT FROM changes WHERE revision IS NULL)`

// A disk snapshot is restored like a server's copy. Edges serve its content even if they reconnect
// only after its revision has passed the one they had seen.
func TestRestoreOfASnapshot(t *testing.T) {
	t.Parallel()
	postgres, k := stack.NewPostgres(t), storeFixture{files: blobstoretest.Directory(t).Config}
	core := site.NewCoreAt(t, k.files, postgres.URL(postgres.Address))
	core.Start(t)
	edge := startEdge(t, k.files, core)
	avatar := edge.BaseURL(t, "public") + "/avatar/player/ann_1?png"
	ann := signUp(t, core.BaseURL(t, "public"))
	first, second := drawSheet(10), drawSheet(200)
	skins := []int{upload(t, ann, "first", first).TID, upload(t, ann, "second", second).TID}
	pid := ann.AddPlayer(t, "Ann_1")
	ann.SetSkin(t, pid, skins[0])

	snapshot := filepath.Join(t.TempDir(), "snapshot")
	meanwhile := func(from, to string) {
		t.Helper()
		testenv.Do(t, core.Stop(t))
		postgres.Kill(t)
		testenv.Do(t, os.RemoveAll(to))
		stack.MustRun(t, exec.CommandContext(t.Context(), "cp", "--archive", from, to))
		postgres.Start(t)
	}
	meanwhile(postgres.Data(), snapshot)
	core.StartReady(t)
	changed := time.Now()
	ann.SetSkin(t, pid, skins[1])
	awaitAvatar(t, avatar, second, changed)

	meanwhile(snapshot, postgres.Data())
	openBackup(t, core, postgres, t.TempDir()).run(t, "snapshot")
	edge.Pause(t)
	core.StartReady(t)
	ann.LogIn(t, "ann@example.com", password)
	for n := range 5 {
		ann.AddPlayer(t, fmt.Sprint("Later_", n))
	}
	var lastRevision string
	conn := postgrestest.Conn(t, postgres.URL(postgres.Address))
	eventually(t, "all changes are numbered", func() string {
		if err := conn.QueryRow(t.Context(), selectNumbered).Scan(&lastRevision); err != nil {
			return err.Error()
		}
		return ""
	})
	edge.Resume(t)
	// A request while it is disconnected would make it look up core again.
	eventually(t, "the edge has received all changes", func() string {
		if metrics := metricsOf(t, edge); !strings.Contains(metrics, "\nveneer_edge_revision "+lastRevision+"\n") {
			return metrics
		}
		return ""
	})
	picture, status := fetch(t, avatar)
	if picture == nil {
		t.Fatalf("the restored picture: %d", status)
	}
	testenv.Equal(t, difference(picture, first), "", "the difference of the picture to the restored data")
}

// openBackup returns the page on backups, for a core with its store, and a server.
func openBackup(t *testing.T, core *stack.Process, on *stack.Postgres, backup string) *page {
	t.Helper()
	programs := t.TempDir()
	testenv.Do(t, os.Symlink(stack.Binary(t, "core"), filepath.Join(programs, "core")))
	p := openPage(t, "docs/operations/backup.md", map[string]string{"BACKUP": backup})
	p.environ = append(core.Environ(), "DATABASE="+on.URL(on.Address))
	p.environ = append(p.environ, "PATH="+strings.Join([]string{programs, on.Programs, os.Getenv("PATH")}, string(os.PathListSeparator)))
	return p
}

func texturesIn(t *testing.T, database string) map[int64]string {
	t.Helper()
	textures := map[int64]string{}
	for _, one := range site.Rows(t, postgrestest.Conn(t, database), pgx.RowToStructByName[struct {
		TID  int64
		Hash string
	}], "SELECT tid, encode(hash, 'hex') AS hash FROM textures") {
		textures[one.TID] = one.Hash
	}
	if len(textures) < 10 {
		t.Fatalf("there are only %d textures", len(textures))
	}
	return textures
}

// fetchAll returns an edge's answers by path: the status and the body's hash. That of a texture
// file must be its name.
func fetchAll(t *testing.T, edge *stack.Process, paths []string) map[string]string {
	t.Helper()
	answers := map[string]string{}
	for _, path := range paths {
		response := httpservertest.Get(t, edge.BaseURL(t, "public")+path)
		answers[path] = fmt.Sprintf("%d %x", response.Status, sha256.Sum256([]byte(response.Body)))
		if hash, ok := strings.CutPrefix(path, "/textures/"); ok && answers[path] != "200 "+hash {
			answers[path] += ", not that file"
		}
	}
	return answers
}

// eventually waits for two minutes until problem returns "".
func eventually(t *testing.T, what string, problem func() string) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(2 * time.Minute); ; <-tick.C {
		match := problem()
		if match == "" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("not within two minutes: %s\n%s", what, match)
		}
	}
}
