package e2e

import (
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"net/url"
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

	"github.com/veneer-skins/veneer/bench/system/stack"
	"github.com/veneer-skins/veneer/core/postgres/postgrestest"
	"github.com/veneer-skins/veneer/shared/blobstore"
	"github.com/veneer-skins/veneer/shared/blobstore/blobstoretest"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// top is the root of the repository.
const top = "../../.."

// page is a page of docs/operations with commands to run.
type page struct {
	blocks   []block
	settings map[string]string // they replace its first block
	environ  []string          // further environment of the commands
}

// block is a fenced block of shell commands, with the words after "sh" as its labels.
type block struct {
	labels   []string
	commands string
}

var (
	fence   = regexp.MustCompile("(?ms)^```sh(.*?)\n(.*?)^```$")
	exports = regexp.MustCompile(`(?m)^export (\w+)=`)
)

// blocksOf returns the blocks of a page.
func blocksOf(t *testing.T, path string) (blocks []block) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(top, path))
	if err != nil {
		t.Fatal(err)
	}
	for _, match := range fence.FindAllStringSubmatch(string(content), -1) {
		blocks = append(blocks, block{strings.Fields(match[1]), match[2]})
	}
	return blocks
}

// openPage reads a page. Its settings must be exactly those given.
func openPage(t *testing.T, path string, settings map[string]string) *page {
	t.Helper()
	p := &page{settings: settings, blocks: blocksOf(t, path)}
	if len(p.blocks) == 0 || !slices.Equal(p.blocks[0].labels, []string{"settings"}) {
		t.Fatalf("%s does not begin with settings", path)
	}
	named := map[string]string{}
	for _, export := range exports.FindAllStringSubmatch(p.blocks[0].commands, -1) {
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
		if !slices.ContainsFunc(b.labels, func(word string) bool { return !slices.Contains(wanted, word) }) {
			script.WriteString(b.commands)
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

// storeFixture is a texture store as the page handles it.
type storeFixture struct {
	backup, restore []string           // labels of its blocks
	files           blobstore.Config   // for core
	textures        string             // for the page
	environ         []string           // of the page's commands
	programs        string             // directory with the programs they need
	empty           func(t *testing.T) // deletes all files
	// prepare creates core's database in a new server and returns its URL. Without it, that is
	// the server's own.
	prepare func(t *testing.T, p *stack.Postgres) (url string)
	// done checks what else the commands did; nil for nothing.
	done func(t *testing.T)
}

// database returns the URL of core's database in a new server.
func (f storeFixture) database(t *testing.T, p *stack.Postgres) (url string) {
	t.Helper()
	if f.prepare == nil {
		return p.URL(p.Address)
	}
	return f.prepare(t, p)
}

// directoryStore returns a store in a directory.
func directoryStore(t *testing.T) storeFixture {
	t.Helper()
	if _, err := exec.LookPath("rsync"); err != nil {
		testenv.Skip(t, "rsync is not installed; make test installs it")
	}
	files := blobstoretest.Directory(t).Config
	root := strings.TrimPrefix(files.URL, "file://")
	return storeFixture{backup: []string{"backup", "directory"}, restore: []string{"restore", "dump", "directory"}, files: files, textures: root, empty: func(t *testing.T) {
		t.Helper()
		if err := os.RemoveAll(root); err != nil {
			t.Fatal(err)
		}
	}}
}

// bucketStore returns a store in a MinIO bucket. MinIO's client takes minutes to build, so the test
// is skipped where it was not built; CI builds it.
func bucketStore(t *testing.T) storeFixture {
	t.Helper()
	match, err := filepath.Glob(filepath.Join(top, ".dev/bin/mc@*"))
	if err != nil {
		t.Fatal(err)
	}
	if len(match) == 0 {
		testenv.Skip(t, "mc is not there; deploy/dev/tools mc builds it")
	}
	client, err := filepath.Abs(match[len(match)-1])
	if err != nil {
		t.Fatal(err)
	}
	files := blobstoretest.Bucket(t).Config
	programs, home := t.TempDir(), t.TempDir()
	if err := os.Symlink(client, filepath.Join(programs, "mc")); err != nil {
		t.Fatal(err)
	}
	endpoint, err := url.Parse(files.Endpoint)
	if err != nil {
		t.Fatal(err)
	}
	endpoint.User = url.UserPassword(files.AccessKey, files.SecretKey)
	k := storeFixture{
		backup: []string{"backup", "bucket"}, restore: []string{"restore", "dump", "bucket"},
		files: files, textures: "site/" + strings.TrimPrefix(files.URL, "s3://"), programs: programs, environ: []string{
			"MC_CONFIG_DIR=" + home, "MC_HOST_site=" + endpoint.String(),
		},
	}
	k.empty = func(t *testing.T) {
		t.Helper()
		remove := exec.CommandContext(t.Context(), client, "rm", "--quiet", "--recursive", "--force", k.textures)
		remove.Env = append(os.Environ(), k.environ...)
		if output, err := remove.CombinedOutput(); err != nil {
			t.Fatalf("empty the bucket: %v\n%s", err, output)
		}
	}
	return k
}

// composeStore returns a MinIO bucket, and databases like those of docker-compose.yml, with a
// stand-in for the docker command.
func composeStore(t *testing.T) storeFixture {
	t.Helper()
	k := bucketStore(t)
	k.backup, k.restore = []string{"compose-backup"}, []string{"compose-restore"}
	docker, err := filepath.Abs("testdata/docker")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(docker, filepath.Join(k.programs, "docker")); err != nil {
		t.Fatal(err)
	}
	secrets, done := t.TempDir(), filepath.Join(t.TempDir(), "done")
	for _, role := range []string{"reader", "writer"} {
		for name, key := range map[string]string{"access_key": k.files.AccessKey, "secret_key": k.files.SecretKey} {
			if err := os.WriteFile(filepath.Join(secrets, "s3_"+role+"_"+name), []byte(key), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	k.environ = append(k.environ, "FAKE_MINIO="+strings.TrimPrefix(k.files.Endpoint, "http://"), "FAKE_BUCKET="+strings.TrimPrefix(k.files.URL, "s3://"),
		"FAKE_SECRETS="+secrets, "FAKE_LOG="+done)
	k.prepare = func(t *testing.T, p *stack.Postgres) string {
		t.Helper()
		conn := postgrestest.Conn(t, p.URL(p.Address))
		for _, statement := range []string{"CREATE ROLE veneer LOGIN", "CREATE DATABASE veneer OWNER veneer"} { // as deploy/compose/database.sh does
			if _, err := conn.Exec(t.Context(), statement); err != nil {
				t.Fatal(err)
			}
		}
		return "postgres://veneer@" + p.Address + "/veneer?sslmode=disable"
	}
	k.done = func(t *testing.T) {
		t.Helper()
		content, err := os.ReadFile(done)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff("build --quiet\nup --wait --detach postgres minio\nrun bucket\nstop core\nup --detach\n", string(content)); diff != "" {
			t.Errorf("what was done with containers (-want +got):\n%s", diff)
		}
	}
	return k
}

// A system is restored from its backup: accounts can log in, every picture is the same to the byte,
// and edges that had served later changes serve the restored state.
func TestRestore(t *testing.T) {
	t.Parallel()
	t.Run("with a directory", func(t *testing.T) {
		t.Parallel()
		restore(t, directoryStore(t))
	})
	t.Run("with a bucket", func(t *testing.T) {
		t.Parallel()
		restore(t, bucketStore(t))
	})
	t.Run("with docker compose", func(t *testing.T) {
		t.Parallel()
		restore(t, composeStore(t))
	})
}

func restore(t *testing.T, k storeFixture) {
	t.Helper()
	lost, empty := stack.NewPostgres(t), stack.NewPostgres(t)
	oldURL, newURL := k.database(t, lost), k.database(t, empty)
	core := stack.NewCoreAt(t, k.files, oldURL)
	core.Set("CORE_DEMO", "1")
	serveLaunchers(t, core)
	core.Start(t)
	core.FixAddresses(t)
	base := "http://" + core.Address(t, "public")
	running := []*stack.Process{stack.NewEdge(t, k.files, core), stack.NewEdge(t, k.files, core)}
	for _, edge := range running {
		edge.Start(t)
		edge.AwaitReady(t)
	}

	ann := signUp(t, base)
	first := ann.upload(t, "first", drawSheet(10)).Data
	pid := ann.call(t, http.MethodPost, "/api/players", map[string]any{"name": "Ann_1"}).Data.PID
	texturesPath := fmt.Sprintf("/api/players/%d/textures", pid)
	ann.call(t, http.MethodPut, texturesPath, map[string]any{"skin": first.TID})
	textures := texturesIn(t, oldURL)
	players := []string{"/avatar/player/ann_1?png", "/avatar/player/late?png"}
	paths := append(slices.Clone(players), "/avatar/player/demo?3d", "/csl/demo.json")
	for tid, hash := range textures {
		for _, path := range []string{"/textures/" + hash, "/preview/%d?png", "/preview/%d", "/avatar/%d?png&3d", "/avatar/%d"} {
			paths = append(paths, strings.ReplaceAll(path, "%d", fmt.Sprint(tid)))
		}
	}
	before := fetchAll(t, running[0], paths)
	game := launcher{http: &http.Client{}, root: base + "/api/yggdrasil", email: "ann@example.com"}
	revoked, err := game.authenticate(t)
	if err != nil {
		t.Fatal(err)
	}
	game.validate(t, revoked.AccessToken, http.StatusNoContent)

	backup := t.TempDir()
	openBackup(t, core, lost, k, backup).run(t, k.backup...)

	// Changes after the backup.
	if err := game.post(t, "/authserver/invalidate", map[string]any{"accessToken": revoked.AccessToken}, http.StatusNoContent, nil); err != nil {
		t.Fatal(err)
	}
	second := ann.upload(t, "second", drawSheet(200)).Data
	ann.call(t, http.MethodPut, texturesPath, map[string]any{"skin": second.TID})
	late := ann.call(t, http.MethodPost, "/api/players", map[string]any{"name": "Late"}).Data.PID
	ann.call(t, http.MethodPut, fmt.Sprintf("/api/players/%d/textures", late), map[string]any{"skin": second.TID})
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

	if err := core.Stop(t); err != nil {
		t.Fatal(err)
	}
	lost.Kill(t)
	k.empty(t)
	core.Set("CORE_DATABASE_URL", newURL)
	openBackup(t, core, empty, k, backup).run(t, k.restore...)
	core.Start(t)
	core.AwaitReady(t)

	if diff := cmp.Diff(textures, texturesIn(t, newURL)); diff != "" {
		t.Errorf("textures (-before +after):\n%s", diff)
	}
	freshEdge := stack.NewEdge(t, k.files, core)
	freshEdge.Start(t)
	freshEdge.AwaitReady(t)
	for i, edge := range append(running, freshEdge) {
		eventually(t, fmt.Sprintf("edge %d serves the restored data", i), func() string { return cmp.Diff(before, fetchAll(t, edge, paths)) })
	}
	if k.done != nil {
		k.done(t)
	}
	if status := statusFor(t, ann, "/api/user"); status != http.StatusUnauthorized {
		t.Errorf("with a token from before: %d; want 401", status)
	}
	game.http = &http.Client{Transport: &http.Transport{}} // connections to the last process are dead
	game.validate(t, revoked.AccessToken, http.StatusForbidden)
	for email, password := range map[string]string{"ann@example.com": "correct horse", "demo@example.com": "demo-password"} {
		returned := &client{http: &http.Client{}, base: base}
		returned.token = returned.call(t, http.MethodPost, "/api/auth/login", map[string]any{"email": email, "password": password}).Token
		if tid := returned.upload(t, "third", drawSheet(uint8(len(email)))).Data.TID; tid <= second.TID {
			t.Errorf("a texture is number %d; %d was the last one before", tid, second.TID)
		}
	}
}

// The machines' nightly backup scripts contain the page's commands, in its order.
func TestMachinesBackUpByThePage(t *testing.T) {
	t.Parallel()
	blocks := blocksOf(t, "docs/operations/backup.md")
	for script, labelSets := range map[string][][]string{
		"veneer-backup":           {{"patroni", "settings"}, {"backup"}, {"backup", "bucket"}},
		"veneer-backup-directory": {{"backup"}, {"backup", "directory"}},
	} {
		content, err := os.ReadFile(filepath.Join(top, "deploy/machines", script))
		if err != nil {
			t.Fatal(err)
		}
		rest := string(content)
		for _, labels := range labelSets {
			i := slices.IndexFunc(blocks, func(b block) bool { return slices.Equal(b.labels, labels) })
			if i < 0 {
				t.Fatalf("the page has no commands for %v", labels)
			}
			var ok bool
			if _, rest, ok = strings.Cut(rest, blocks[i].commands); !ok {
				t.Fatalf("%s lacks the page's commands for %v, or has them too early:\n%s", script, labels, blocks[i].commands)
			}
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
	core := stack.NewCoreAt(t, k.files, postgres.URL(postgres.Address))
	core.Start(t)
	core.FixAddresses(t)
	edge := stack.NewEdge(t, k.files, core)
	edge.Start(t)
	edge.AwaitReady(t)
	avatar := "http://" + edge.Address(t, "public") + "/avatar/player/ann_1?png"
	ann := signUp(t, "http://"+core.Address(t, "public"))
	first, second := drawSheet(10), drawSheet(200)
	skins := []int{ann.upload(t, "first", first).Data.TID, ann.upload(t, "second", second).Data.TID}
	pid := ann.call(t, http.MethodPost, "/api/players", map[string]any{"name": "Ann_1"}).Data.PID
	setSkin := func(skin int) {
		t.Helper()
		ann.call(t, http.MethodPut, fmt.Sprintf("/api/players/%d/textures", pid), map[string]any{"skin": skin})
	}
	setSkin(skins[0])

	snapshot := filepath.Join(t.TempDir(), "snapshot")
	meanwhile := func(from, to string) {
		t.Helper()
		if err := core.Stop(t); err != nil {
			t.Fatal(err)
		}
		postgres.Kill(t)
		if err := os.RemoveAll(to); err != nil {
			t.Fatal(err)
		}
		if output, err := exec.CommandContext(t.Context(), "cp", "--archive", from, to).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, output)
		}
		postgres.Start(t)
	}
	meanwhile(postgres.Data(), snapshot)
	core.Start(t)
	core.AwaitReady(t)
	changed := time.Now()
	setSkin(skins[1])
	awaitAvatar(t, avatar, second, changed)

	meanwhile(snapshot, postgres.Data())
	openBackup(t, core, postgres, k, t.TempDir()).run(t, "restore")
	edge.Pause(t)
	core.Start(t)
	core.AwaitReady(t)
	ann.token = ann.call(t, http.MethodPost, "/api/auth/login", map[string]any{"email": "ann@example.com", "password": "correct horse"}).Token
	for n := range 5 {
		ann.call(t, http.MethodPost, "/api/players", map[string]any{"name": fmt.Sprint("Later_", n)})
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
		if metrics := getText(t, "http://"+edge.Address(t, "operators")+"/metrics"); !strings.Contains(metrics, "\nveneer_edge_revision "+lastRevision+"\n") {
			return metrics
		}
		return ""
	})
	picture, status := fetch(t, avatar)
	if picture == nil {
		t.Fatalf("the restored picture: %d", status)
	}
	if problem := difference(picture, first); problem != "" {
		t.Errorf("the edge does not serve the restored data: %s", problem)
	}
}

// openBackup returns the page on backups, for a core with its store, and a server.
func openBackup(t *testing.T, core *stack.Process, on *stack.Postgres, k storeFixture, backup string) *page {
	t.Helper()
	programs := t.TempDir()
	if err := os.Symlink(stack.Binary(t, "core"), filepath.Join(programs, "core")); err != nil {
		t.Fatal(err)
	}
	p := openPage(t, "docs/operations/backup.md", map[string]string{"DATABASE": on.URL(on.Address), "TEXTURES": k.textures, "BACKUP": backup})
	p.environ = append(slices.Concat(core.Environ(), k.environ), "FAKE_POSTGRES="+on.Address)
	p.environ = append(p.environ, "PATH="+strings.Join([]string{programs, k.programs, on.Programs(), os.Getenv("PATH")}, string(os.PathListSeparator)))
	return p
}

// texturesIn returns the hashes of all textures.
func texturesIn(t *testing.T, database string) map[int64]string {
	t.Helper()
	rows, _ := postgrestest.Conn(t, database).Query(t.Context(), "SELECT tid, encode(hash, 'hex') FROM textures") // ForEachRow reports the error
	textures := map[int64]string{}
	var tid int64
	var hash string
	if _, err := pgx.ForEachRow(rows, []any{&tid, &hash}, func() error { textures[tid] = hash; return nil }); err != nil {
		t.Fatal(err)
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
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+edge.Address(t, "public")+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		digest := sha256.New()
		_, err = io.Copy(digest, response.Body)
		_ = response.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		answers[path] = fmt.Sprintf("%d %x", response.StatusCode, digest.Sum(nil))
		if hash, ok := strings.CutPrefix(path, "/textures/"); ok && answers[path] != "200 "+hash {
			answers[path] += ", not that file"
		}
	}
	return answers
}

// statusFor returns the status of a client's GET request.
func statusFor(t *testing.T, c *client, path string) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.base+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+c.token)
	response, err := c.http.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	return response.StatusCode
}

// eventually waits for half a minute until problem returns "".
func eventually(t *testing.T, what string, problem func() string) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(30 * time.Second); ; <-tick.C {
		match := problem()
		if match == "" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("not within half a minute: %s\n%s", what, match)
		}
	}
}
