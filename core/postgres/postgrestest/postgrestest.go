// Package postgrestest gives each test its own schema in a real PostgreSQL.
package postgrestest

import (
	"context"
	"crypto/rand"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/veneer-skins/veneer/core/postgres"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// variable is the environment variable with the URL of the test database.
const variable = "TEST_DATABASE_URL"

// Empty returns the URL of a new, empty schema, which is dropped when the test ends. Without a
// database the test is skipped.
func Empty(tb testing.TB) string {
	tb.Helper()
	server := os.Getenv(variable)
	if server == "" {
		testenv.Skip(tb, variable+" is not set; make test sets it")
	}
	schema := "test_" + strings.ToLower(rand.Text()[:16])
	execute(tb, server, "CREATE SCHEMA "+schema)
	tb.Cleanup(func() { execute(tb, server, "DROP SCHEMA "+schema+" CASCADE") })

	parsed, err := url.Parse(server)
	if err != nil {
		tb.Fatal(err)
	}
	query := parsed.Query()
	query.Set("search_path", schema)
	parsed.RawQuery = query.Encode()
	return parsed.String()
}

func execute(tb testing.TB, server, sql string) {
	tb.Helper()
	ctx := context.Background() //nolint:usetesting // runs in cleanups too
	conn, err := pgx.Connect(ctx, server)
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = conn.Close(ctx) }()
	if _, err := conn.Exec(ctx, sql); err != nil {
		tb.Fatal(err)
	}
}

// URL returns the URL of a new, migrated schema.
func URL(tb testing.TB) string {
	tb.Helper()
	address := Empty(tb)
	db := Connect(tb, address)
	if _, _, err := db.Migrate(tb.Context(), func(string) {}); err != nil {
		tb.Fatal(err)
	}
	return address
}

// Connect opens the database at a URL and closes it when the test ends.
func Connect(tb testing.TB, address string) *postgres.DB {
	tb.Helper()
	db, err := postgres.Open(tb.Context(), postgres.Config{URL: address, Connections: 8})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(db.Close)
	return db
}

// Open returns a database with a new, migrated schema.
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
