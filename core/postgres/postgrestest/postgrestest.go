// Package postgrestest gives each test its own database in a real PostgreSQL.
package postgrestest

import (
	"context"
	"crypto/rand"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/veneer-skins/veneer/core/postgres"
)

// variable is the environment variable with the URL of a database on the test server. Its role may
// create others, and is a member of veneer_service.
const variable = "TEST_DATABASE_URL"

// Empty returns the URL of a new database with an empty schema, the first in the search path. The
// database is dropped when the test ends. No other has its name. Without a server the test is skipped.
func Empty(tb testing.TB) string {
	tb.Helper()
	address := create(tb, openServer(tb), "template1")
	execute(tb, address, "CREATE SCHEMA "+schema)
	return address
}

// URL returns the URL of a new database, as Empty, with a migrated schema.
func URL(tb testing.TB) string {
	tb.Helper()
	s := openServer(tb)
	return create(tb, s, s.template(tb))
}

// Name returns the name of the database at a URL, for an application_name by which the connections of
// a test are told from connections of other tests: tests compare it with current_database().
func Name(address string) string {
	_, name, _ := strings.Cut(address, "@")
	_, name, _ = strings.Cut(name, "/")
	name, _, _ = strings.Cut(name, "?")
	return name
}

// create creates a database from a template, and returns its URL.
func create(tb testing.TB, s *server, template string) string {
	tb.Helper()
	name := "test_" + strings.ToLower(rand.Text()[:16])
	s.create(tb, name, template)
	tb.Cleanup(func() {
		// The option FORCE would fail if autovacuum is in the database.
		s.execute(tb, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '"+name+"' AND pg_has_role(usesysid, 'USAGE')")
		s.execute(tb, "DROP DATABASE "+name)
	})
	return s.address(name)
}

// AsService returns a URL of URL with the role of core serve on a site where another one owns the tables.
func AsService(address string) string { return address + "&user=veneer_service" }

// Connect opens the database at a URL, with the role of AsService, and closes it when the test ends.
func Connect(tb testing.TB, address string) *postgres.DB {
	tb.Helper()
	return ConnectOwner(tb, AsService(address))
}

// ConnectOwner is Connect with the role of the URL.
func ConnectOwner(tb testing.TB, address string) *postgres.DB {
	tb.Helper()
	db, err := postgres.Open(tb.Context(), postgres.Config{URL: address, Connections: 8})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(db.Close)
	return db
}

// Open returns a new database with a migrated schema.
func Open(tb testing.TB) *postgres.DB {
	tb.Helper()
	return Connect(tb, URL(tb))
}

// Conn returns a connection to the database at a URL, for statements of the test itself.
func Conn(tb testing.TB, address string) *pgx.Conn {
	tb.Helper()
	conn, err := pgx.Connect(tb.Context(), address)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = conn.Close(context.Background()) }) //nolint:usetesting // the test's context has ended
	return conn
}
