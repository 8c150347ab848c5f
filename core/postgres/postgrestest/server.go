package postgrestest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"net/url"
	"os"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/veneer-skins/veneer/core/postgres"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// server is the test server. Statements that create and drop databases share a connection for the
// life of the process: starting a backend takes more processor time than they do.
type server struct {
	url *url.URL

	mu         sync.Mutex
	conn       *pgx.Conn
	isMigrated bool // the template exists
}

var shared server

// openServer returns the test server. Without one the test is skipped.
func openServer(tb testing.TB) *server {
	tb.Helper()
	address := os.Getenv(variable)
	if address == "" {
		testenv.Skip(tb, variable+" is not set; make test sets it")
	}
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.conn != nil && !shared.conn.IsClosed() {
		return &shared
	}
	var err error
	if shared.url, err = url.Parse(address); err != nil {
		tb.Fatal(err)
	}
	if shared.conn, err = pgx.Connect(tb.Context(), address); err != nil {
		tb.Fatal(err)
	}
	return &shared
}

// schema is the name of the schema in all databases: to rename one would take a connection, and a new
// backend more processor time than a new database.
const schema = "veneer_test"

// address returns the URL of a database.
func (s *server) address(database string) string {
	address := *s.url
	address.Path = "/" + database
	query := address.Query()
	query.Set("search_path", schema)
	address.RawQuery = query.Encode()
	return address.String()
}

// execute executes a statement.
func (s *server) execute(tb testing.TB, sql string) {
	tb.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.executeLocked(tb, sql)
}

func (s *server) executeLocked(tb testing.TB, sql string) {
	tb.Helper()
	if _, err := s.conn.Exec(context.Background(), sql); err != nil { //nolint:usetesting // runs in cleanups too
		tb.Fatal(err)
	}
}

// create creates a database from a template.
func (s *server) create(tb testing.TB, name, template string) {
	tb.Helper()
	s.execute(tb, createDatabase(name, template))
}

// createDatabase returns the statement that creates a database from a template. Copying the files
// takes a third of the processor time of the default, which logs each page.
func createDatabase(name, template string) string {
	return "CREATE DATABASE " + name + " TEMPLATE " + template + " STRATEGY FILE_COPY"
}

// template returns the name of a database with a migrated schema, to create others from: copying it
// takes a fraction of the time of the migrations. The first process that needs it creates it, and it stays
// on the server. Its name is a digest of the migrations.
func (s *server) template(tb testing.TB) string {
	tb.Helper()
	name := "template_" + schema + "_" + digest(tb, postgres.Migrations())
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isMigrated {
		return name
	}
	// The lock is for other processes.
	const id = "'pg_database'::regclass::bigint"
	s.executeLocked(tb, "SELECT pg_advisory_lock("+id+")")
	defer s.executeLocked(tb, "SELECT pg_advisory_unlock("+id+")")
	var exists bool
	if err := s.conn.QueryRow(tb.Context(), "SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)", name).Scan(&exists); err != nil {
		tb.Fatal(err)
	}
	if !exists {
		unfinished := name + "_unfinished" // it exists if a process was killed
		s.executeLocked(tb, "DROP DATABASE IF EXISTS "+unfinished)
		s.executeLocked(tb, createDatabase(unfinished, "template1"))
		migrate(tb, s.address(unfinished))
		s.executeLocked(tb, "ALTER DATABASE "+unfinished+" RENAME TO "+name)
	}
	s.isMigrated = true
	return name
}

// digest returns a digest of the contents of files.
func digest(tb testing.TB, files fs.FS) string {
	tb.Helper()
	names, err := fs.Glob(files, "*")
	if err != nil {
		tb.Fatal(err)
	}
	sum := sha256.New()
	for _, name := range names {
		content, err := fs.ReadFile(files, name)
		if err != nil {
			tb.Fatal(err)
		}
		sum.Write(content)
	}
	return hex.EncodeToString(sum.Sum(nil)[:8])
}

// migrate creates the schema of a URL, and migrates it.
func migrate(tb testing.TB, address string) {
	tb.Helper()
	execute(tb, address, "CREATE SCHEMA "+schema)
	cfg := postgres.Config{URL: AsService(address), OwnerURL: address, Connections: 2}
	db, err := postgres.Open(tb.Context(), cfg.AsOwner())
	if err != nil {
		tb.Fatal(err)
	}
	defer db.Close() // a database with connections cannot be renamed
	if _, _, err := db.Migrate(tb.Context(), func(string) {}); err != nil {
		tb.Fatal(err)
	}
	if _, err := db.GrantRights(tb.Context(), cfg); err != nil {
		tb.Fatal(err)
	}
}

// execute executes a statement in the database at a URL.
func execute(tb testing.TB, address, sql string) {
	tb.Helper()
	ctx := tb.Context()
	conn, err := pgx.Connect(ctx, address)
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = conn.Close(ctx) }()
	if _, err := conn.Exec(ctx, sql); err != nil {
		tb.Fatal(err)
	}
}
