// Package site starts the real programs for tests and benchmarks: a core and edges of package stack,
// with a database and a texture store of a test, and what their clients need.
package site

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"mime/multipart"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/veneer-skins/veneer/bench/system/stack"
	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/core/postgres/postgrestest"
	"github.com/veneer-skins/veneer/shared/blobstore"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/testenv"
	"github.com/veneer-skins/veneer/shared/tlsreload/tlsreloadtest"
)

// System is a core with an edge.
type System struct {
	Core, Edge *stack.Process
	// CoreURL is the base URL of core's public listener, EdgeURL the base URL of the edge's, which
	// serves the API, too.
	CoreURL, EdgeURL string
}

// Start starts a system with textures in a store that needs no preparation, and with settings of both
// programs as NAME=VALUE. It ends with the test.
func Start(tb testing.TB, files blobstore.Config, settings ...string) *System {
	tb.Helper()
	core := NewCore(tb, files)
	core.Set(settings...)
	return StartWith(tb, core, settings...)
}

// StartWith starts a system with a core that has not started, and with settings of the edge.
func StartWith(tb testing.TB, core *stack.Process, settings ...string) *System {
	tb.Helper()
	core.StartReady(tb)
	edge := NewEdge(tb, blobstore.Config{
		URL: core.Setting("CORE_OBJECTS_URL"), Endpoint: core.Setting("CORE_OBJECTS_ENDPOINT"),
		AccessKey: core.Setting("CORE_OBJECTS_ACCESS_KEY"), SecretKey: core.Setting("CORE_OBJECTS_SECRET_KEY"),
	}, core)
	edge.Set(settings...)
	edge.StartReady(tb)
	return &System{core, edge, core.BaseURL(tb, "public"), edge.BaseURL(tb, "public")}
}

// NewCore returns a core that has not started, with a new migrated schema.
func NewCore(tb testing.TB, files blobstore.Config) *stack.Process {
	tb.Helper()
	return NewCoreAt(tb, files, postgrestest.URL(tb))
}

// NewCoreAt returns a core that has not started, with the database at a URL, which is migrated. It
// may be one of several.
func NewCoreAt(tb testing.TB, files blobstore.Config, database string) *stack.Process {
	tb.Helper()
	return stack.NewCore(tb, objectStore(files), database)
}

// NewEdge returns an edge of a running core that has not started.
func NewEdge(tb testing.TB, files blobstore.Config, core *stack.Process) *stack.Process {
	tb.Helper()
	edge := NewEdgeAt(tb, files, core.BaseURL(tb, "edges"), stack.Secret)
	edge.Set("EDGE_API_UPSTREAM=" + core.BaseURL(tb, "public"))
	return edge
}

// NewEdgeAt returns an edge that has not started, for any server at a URL that implements core's
// listener for edges.
func NewEdgeAt(tb testing.TB, files blobstore.Config, url, secret string) *stack.Process {
	tb.Helper()
	return stack.NewEdge(tb, objectStore(files), url, secret)
}

func objectStore(files blobstore.Config) stack.ObjectStore {
	return stack.ObjectStore{URL: files.URL, Endpoint: files.Endpoint, AccessKey: files.AccessKey, SecretKey: files.SecretKey, CA: files.CA}
}

// NewMinIO starts a MinIO with TLS, and returns it with the configuration of a bucket in it that does
// not exist yet.
func NewMinIO(tb testing.TB, authority *tlsreloadtest.Authority) (*stack.MinIO, blobstore.Config) {
	tb.Helper()
	m := stack.NewMinIO(tb, authority)
	return m, blobstore.Config{
		URL: m.URL, Endpoint: m.Endpoint, AccessKey: m.AccessKey, SecretKey: m.SecretKey, CA: m.CA,
		Region: "us-east-1", Timeout: time.Minute,
	}
}

// Rows returns the rows of a query.
func Rows[T any](tb testing.TB, conn *pgx.Conn, as pgx.RowToFunc[T], sql string, args ...any) []T {
	tb.Helper()
	rows, _ := conn.Query(tb.Context(), sql, args...) // CollectRows reports the error
	return testenv.Must(pgx.CollectRows(rows, as))(tb)
}

const selectBackends = `
	SELECT pid FROM pg_stat_activity
	WHERE application_name = current_setting('application_name') AND pid <> pg_backend_pid()`

// BackendCPU returns the CPU time, by PID, of the PostgreSQL backends with the application_name of
// this connection (see Process.NameConnections).
func BackendCPU(tb testing.TB, conn *pgx.Conn) map[int]time.Duration {
	tb.Helper()
	took := map[int]time.Duration{}
	for _, pid := range Rows(tb, conn, pgx.RowTo[int], selectBackends) {
		took[pid] = stack.CPU(tb, pid)
	}
	return took
}

// ServeLaunchers has a core that has not started serve launchers at a URL, with a key of its own.
func ServeLaunchers(tb testing.TB, core *stack.Process, url string) {
	tb.Helper()
	private := testenv.Must(rsa.GenerateKey(rand.Reader, 2048))(tb) // 4096 bits, as core generates them, take seconds
	der := testenv.Must(x509.MarshalPKCS8PrivateKey(private))(tb)
	file := filepath.Join(tb.TempDir(), "yggdrasil.pem")
	testenv.Do(tb, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600))
	core.Set("CORE_PUBLIC_URL="+url, "CORE_YGGDRASIL_KEY_FILE="+file)
}

// SignedInUser is a user with a live session.
type SignedInUser struct {
	core.Token
	Bearer string // the signed token
}

const insertUsers = `
	WITH new_users AS (
		INSERT INTO users (email, email_key, nickname, password_hash, verified)
		SELECT 'person' || n || '@example.com', 'person' || n || '@example.com', 'Person ' || n, 'none', true
		FROM (SELECT count(*) FROM users) AS existing (total), generate_series(total + 1, total + $1) AS n
		RETURNING uid
	), new_sessions AS (
		INSERT INTO sessions (sid, uid, created_at, refreshed_at)
		SELECT gen_random_uuid(), uid, now(), now() FROM new_users
		RETURNING sid, uid
	), new_tokens AS (
		INSERT INTO session_tokens (jti, sid, issued_at)
		SELECT gen_random_uuid(), sid, date_trunc('second', now()) FROM new_sessions
		RETURNING jti, sid, issued_at
	)
	SELECT uid AS "user", sid AS session, jti AS id, issued_at FROM new_tokens JOIN new_sessions USING (sid) ORDER BY uid`

// SignIn inserts new users, each with a live session, into the database of a core: logging them in
// one by one would take a password hash each. The tables are vacuumed and analysed afterwards, as
// in normal operation.
func SignIn(tb testing.TB, of *stack.Process, count int) []SignedInUser {
	tb.Helper()
	var ring core.KeyRing
	testenv.Do(tb, ring.UnmarshalText([]byte(of.Setting("CORE_TOKEN_KEYS"))))
	signer := core.NewTokens(ring, "veneer", time.Hour, time.Now)

	conn := postgrestest.Conn(tb, of.Setting("CORE_DATABASE_URL"))
	tokens := Rows(tb, conn, pgx.RowToStructByName[core.Token], insertUsers, count)
	testenv.Must(conn.Exec(tb.Context(), "VACUUM ANALYZE users, sessions, session_tokens"))(tb)
	users := make([]SignedInUser, len(tokens))
	for i, token := range tokens {
		users[i].Token = token
		users[i].Bearer = testenv.Must(signer.Sign(token))(tb)
	}
	return users
}

const boundary = "veneer"

// UploadType is the content type of a form that uploads a texture.
const UploadType = "multipart/form-data; boundary=" + boundary

// UploadForm returns the form that uploads a file as a texture of a type, as skin.Type names it.
func UploadForm(name, as string, file []byte) []byte {
	var body bytes.Buffer // writes to it never fail
	form := multipart.NewWriter(&body)
	_ = form.SetBoundary(boundary)
	part, _ := form.CreateFormFile("file", "texture.png")
	_, _ = part.Write(file)
	_ = form.WriteField("name", name)
	_ = form.WriteField("type", as)
	_ = form.Close()
	return body.Bytes()
}

// SheetForm returns the form that uploads a sheet.
func SheetForm(name string, as skin.Type, sheet skin.Sheet) []byte {
	file, _ := sheet.PNG() // without texels there is no file, which core rejects
	return UploadForm(name, as.String(), file)
}
