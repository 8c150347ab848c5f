package postgres_test

import (
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/veneer-skins/veneer/core/postgres"
	"github.com/veneer-skins/veneer/core/postgres/postgrestest"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// store is the database of a test.
type store struct {
	*postgres.DB
	address string
	conn    func() *pgx.Conn // connection of the test itself
	changed *atomic.Int64    // calls of the function that OnChange sets
}

// open returns a new database.
func open(t *testing.T) store {
	t.Helper()
	return openAt(t, postgrestest.URL(t))
}

// openEmpty returns a new database with an empty schema.
func openEmpty(t *testing.T) store {
	t.Helper()
	address := postgrestest.Empty(t)
	return newStore(t, address, postgrestest.ConnectOwner(t, address+"&application_name="+postgrestest.Name(address)))
}

// openAt opens a database. Its connections have its name as application_name, so that a test can
// count those that wait.
func openAt(t *testing.T, address string) store {
	t.Helper()
	return newStore(t, address, postgrestest.Connect(t, address+"&application_name="+postgrestest.Name(address)))
}

func newStore(t *testing.T, address string, db *postgres.DB) store {
	t.Helper()
	changed := new(atomic.Int64)
	db.OnChange(func() { changed.Add(1) })
	return store{db, address, sync.OnceValue(func() *pgx.Conn { return postgrestest.Conn(t, address) }), changed}
}

func (s store) exec(t *testing.T, sql string, args ...any) {
	t.Helper()
	must(s.conn().Exec(t.Context(), sql, args...))(t)
}

// count returns the number that a query selects.
func (s store) count(t *testing.T, sql string, args ...any) (n int) {
	t.Helper()
	do(t, s.conn().QueryRow(t.Context(), sql, args...).Scan(&n))
	return n
}

// hasCount checks the number that a query selects.
func (s store) hasCount(t *testing.T, want int, sql string, args ...any) {
	t.Helper()
	testenv.Equal(t, s.count(t, sql, args...), want, "%s, %v", sql, args)
}

// migrate migrates the schema, and returns the reported messages.
func (s store) migrate(t *testing.T) (messages []string) {
	t.Helper()
	_, _, err := s.Migrate(t.Context(), func(text string) { messages = append(messages, text) })
	do(t, err)
	return messages
}

// migration returns the number of the migration with a name.
func migration(t *testing.T, name string) int32 {
	t.Helper()
	files := must(filepath.Glob("migrations/*_" + name + ".sql"))(t)
	testenv.Equal(t, len(files), 1, "migrations called %s", name)
	return int32(must(strconv.Atoi(filepath.Base(files[0])[:3]))(t))
}

// addUsers adds users called É 1, É 2 and so on, without search keys.
func (s store) addUsers(t *testing.T, n int) {
	t.Helper()
	s.exec(t, `INSERT INTO users (email, email_key, nickname, password_hash)
		SELECT n || '@b.c', n || '@b.c', 'É ' || n, 'x' FROM generate_series(1, $1::int) n`, n)
}

// addTextures adds textures called É 1, É 2 and so on, without search keys.
func (s store) addTextures(t *testing.T, n int) {
	t.Helper()
	s.exec(t, `INSERT INTO textures (bytes, public, type, hash, pixels, name)
		SELECT 100, true, 'steve', sha256(n::text::bytea), sha256(n::text::bytea), 'É ' || n
		FROM generate_series(1, $1::int) n`, n)
}

// start starts a call.
func start(call func() error) <-chan error {
	outcome := make(chan error, 1)
	go func() { outcome <- call() }()
	return outcome
}

// atOnce calls a function n times at once. It checks how many calls succeed, and that all others fail
// with a kind of fault.
func atOnce(t *testing.T, n, successes int, kind fault.Kind, call func(i int) error) {
	t.Helper()
	outcomes := make(chan error, n)
	for i := range n {
		go func() { outcomes <- call(i) }()
	}
	succeeded := 0
	for range n {
		if err := <-outcomes; err == nil {
			succeeded++
		} else if got := fault.KindOf(err); got != kind {
			t.Errorf("%v, a %s fault; want %s", err, got, kind)
		}
	}
	testenv.Check(t, succeeded == successes, "of %d calls at once %d succeed; want %d", n, succeeded, successes)
}
