package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sys/unix"

	"github.com/veneer-skins/veneer/core/postgres/postgrestest"
	"github.com/veneer-skins/veneer/shared/cli"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/skin/artwork"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// backedUp is a site with textures, and the directory of its backups.
type backedUp struct {
	environ []string
	conn    *pgx.Conn
	store   string // directory of the texture store
	backups string
}

// publicDatabase returns the URL of a new database and a connection to it, in which tables are made in the schema public,
// as sites have them.
func publicDatabase(t *testing.T) (string, *pgx.Conn) {
	t.Helper()
	database, _, _ := strings.Cut(postgrestest.Empty(t), "search_path=") // the last parameter
	conn := postgrestest.Conn(t, database)
	_ = testenv.Must(conn.Exec(t.Context(), "DROP SCHEMA "+selected[string](t, conn, "SELECT nspname FROM pg_namespace WHERE nspname LIKE 'veneer%'")))(t)
	return database, conn
}

func newBackedUp(t *testing.T, sheets ...skin.Sheet) backedUp {
	t.Helper()
	database, conn := publicDatabase(t)
	s := backedUp{environment(t, database), conn, "", t.TempDir()}
	s.store = strings.TrimPrefix(s.environ[1], "CORE_OBJECTS_URL=file://")
	succeed(t, s.environ, "", "migrate")
	testenv.Equal(t, selected[string](t, conn, "SELECT current_schema()"), "public", "the schema of the site")
	succeed(t, s.environ, "correct horse", "user", "add", "steve@example.com")
	for _, sheet := range sheets {
		succeed(t, s.environ, "", "texture", "add", "-uploader", "steve@example.com", paintedFile(t, "Skin.png", sheet))
	}
	return s
}

// backUp makes a backup that must be whole, and returns its name.
func (b *backedUp) backUp(t *testing.T, args ...string) (name string) {
	t.Helper()
	out := succeed(t, b.environ, "", append([]string{"backup"}, append(args, b.backups)...)...)
	name, isWhole := strings.CutPrefix(strings.Split(out, " is whole: ")[0], "backup ")
	testenv.Check(t, isWhole, "core backup prints %q", out)
	return name
}

// fileOf returns the path of the file of a texture in a store.
func (b *backedUp) fileOf(t *testing.T, store string, tid int) string {
	t.Helper()
	var hash skin.Hash
	testenv.Do(t, b.conn.QueryRow(t.Context(), "SELECT hash FROM textures WHERE tid = $1", tid).Scan(&hash))
	return filepath.Join(store, hash.String()[:2], hash.String()+".png")
}

const deleteSecond = "WITH items AS (DELETE FROM closet_items WHERE tid = 2) DELETE FROM textures WHERE tid = 2"

// A backup that is damaged in any way is refused, and the next backup mends what the site still has.
func TestBackupVerify(t *testing.T) {
	t.Parallel()
	s := newBackedUp(t, artwork.Explorer(), artwork.Ranger())
	fails(t, "-keep", s.environ, "", "backup", "-keep", "-1", s.backups)
	fails(t, "longer than -every", s.environ, "", "backup", "-every", "24h", "-sweep", "24h", s.backups)
	fails(t, "make the directory first", s.environ, "", "backup", s.backups+"/new")
	fails(t, "no complete backup", nil, "", "backup", "verify", s.backups)
	cfg := s.conn.Config()
	keywords := fmt.Sprintf("host=%s port=%d user=%s password=%s dbname=%s", cfg.Host, cfg.Port, cfg.User, cmp.Or(cfg.Password, "hunter2"), cfg.Database)
	fails(t, "must be a URL", withSetting(s.environ, "CORE_LISTEN_DATABASE_URL", keywords), "", "backup", s.backups)
	testenv.Do(t, os.WriteFile(filepath.Join(s.backups, "2026-11-30T02-00-00.000Z.dump.unfinished"), nil, 0o600)) // of a backup that was interrupted

	name := s.backUp(t)
	for _, path := range testenv.Must(filepath.Glob(filepath.Join(s.backups, "*.*")))(t) {
		info := testenv.Must(os.Stat(path))(t)
		testenv.Check(t, strings.Contains(path, name) && info.Mode().Perm() == 0o600, "%s with mode %s", path, info.Mode())
	}
	dump, list, file := filepath.Join(s.backups, name+".dump"), filepath.Join(s.backups, name+".json"), s.fileOf(t, filepath.Join(s.backups, "textures"), 1)
	verify := []string{"backup", "verify", "-name", name, s.backups}
	testenv.Contains(t, succeed(t, nil, "", verify...), "backup "+name+" is whole: a dump and 2 texture files, ", "core backup verify prints")
	fails(t, "has no backup never, but "+name, nil, "", "backup", "verify", "-name", "never", s.backups)

	hash := strings.TrimSuffix(filepath.Base(file), ".png")
	for what, c := range map[string]struct {
		path, want string
		damage     func(content []byte) []byte // nil for a file that is removed
	}{
		"a missing file": {file, "of 2 texture files 1 are missing or damaged: get texture " + hash, nil},
		"a shorter file": {file, hash + ": texture file does not have its hash", func(b []byte) []byte { return b[:len(b)-1] }},
		"an empty file":  {file, hash, func([]byte) []byte { return nil }},
		"another byte":   {file, hash, func(b []byte) []byte { b[50] ^= 1; return b }},
		"a missing dump": {dump, "no such file", nil},
		"a shorter dump": {dump, "bytes, and ", func(b []byte) []byte { return b[:len(b)/2] }},
		"another dump":   {dump, "is damaged: its SHA-256 is ", func(b []byte) []byte { b[len(b)/2] ^= 1; return b }},
		"a shorter list": {list, "is cut off or damaged", func(b []byte) []byte { return b[:len(b)-3] }},
		"another size": {list, hash + " has ", func(b []byte) []byte {
			return bytes.Replace(b, []byte(hash+`","bytes":`), []byte(hash+`","bytes":1`), 1)
		}},
		"a file for a store": {filepath.Join(s.backups, "textures", ".veneer"), "", nil},
	} {
		content := testenv.Must(os.ReadFile(c.path))(t)
		if c.damage == nil {
			testenv.Do(t, os.Remove(c.path))
		} else {
			testenv.Do(t, os.WriteFile(c.path, c.damage(bytes.Clone(content)), 0o600))
		}
		if c.want != "" {
			t.Log(what)
			fails(t, c.want, nil, "", verify...)
			fails(t, c.want, s.environ, "", "restore", "-replace", s.backups)
		} else { // a disk that is not mounted
			fails(t, "has backups, but not their texture files", s.environ, "", "backup", s.backups)
		}
		testenv.Do(t, os.WriteFile(c.path, content, 0o600))
		succeed(t, nil, "", verify...)
	}

	testenv.Do(t, os.Truncate(file, 10))
	testenv.Contains(t, succeed(t, s.environ, "", "backup", s.backups), "1 files were new", "core backup prints")
	succeed(t, nil, "", verify...)

	// A target that cannot be written.
	folder := filepath.Dir(file)
	testenv.Do(t, os.RemoveAll(folder))
	testenv.Do(t, os.WriteFile(folder, nil, 0o600))
	names := testenv.Must(filepath.Glob(filepath.Join(s.backups, "*.*")))(t)
	fails(t, folder, s.environ, "", "backup", s.backups)
	testenv.Equal(t, len(testenv.Must(filepath.Glob(filepath.Join(s.backups, "*.*")))(t)), len(names), "files beside the textures after a backup that failed")
	testenv.Do(t, os.Remove(folder))
	testenv.Do(t, os.Mkdir(folder, 0o700))
	latest := s.backUp(t)

	// A texture whose file the site has lost: the rest is backed up, and the loss is not hidden.
	testenv.Do(t, os.Remove(s.fileOf(t, s.store, 2)))
	testenv.Do(t, os.Remove(s.fileOf(t, filepath.Join(s.backups, "textures"), 2)))
	fails(t, "lacks 1 of 2 texture files: the site had lost", s.environ, "", "backup", s.backups)
	fails(t, "lacks 1 of 2 texture files", nil, "", "backup", "verify", s.backups)
	testenv.Contains(t, succeed(t, s.environ, "", "restore", "-replace", s.backups), "1 texture files, of which 0 were missing", "core restore prints")
	fails(t, "lacks 1 of 2", s.environ, "", "backup", "-keep", "1", s.backups) // keeps the last whole one, and of the others the newest
	testenv.Equal(t, len(testenv.Must(filepath.Glob(filepath.Join(s.backups, "*.dump")))(t)), 2, "dumps")
	fails(t, "of 2 texture files 1 are missing", nil, "", "backup", "verify", "-name", latest, s.backups)
}

// A file of a texture that was deleted since stays as long as a backup that lists it, and comes back with it.
func TestBackupKeepsListedFiles(t *testing.T) {
	t.Parallel()
	s := newBackedUp(t, artwork.Explorer(), artwork.Ranger())
	file, copied := s.fileOf(t, s.store, 2), s.fileOf(t, filepath.Join(s.backups, "textures"), 2)
	there := func(path string, want bool) {
		t.Helper()
		_, err := os.Stat(path)
		testenv.Equal(t, err == nil, want, "%s exists", path)
	}
	first := s.backUp(t)
	testenv.Check(t, !selected[time.Time](t, s.conn, "SELECT began_at FROM backups").Before(time.Now().Add(-time.Minute)), "the time of the backup is not stored")
	testenv.Do(t, os.Chtimes(file, time.Time{}, time.Now().Add(-2*time.Hour)))
	succeed(t, s.environ, "", "sweep", "-age", "1h")
	_ = testenv.Must(s.conn.Exec(t.Context(), deleteSecond))(t)
	s.backUp(t, "-sweep", "1h")
	there(file, false)
	there(copied, true)

	succeed(t, s.environ, "", "restore", "-replace", "-name", first, s.backups)
	there(file, true)
	testenv.Equal(t, selected[int](t, s.conn, "SELECT count(*)::int FROM textures"), 2, "textures")
	testenv.Contains(t, succeed(t, s.environ, "", "sweep", "-dry-run"), " 0 textures without a file", "core sweep prints")
	_ = testenv.Must(s.conn.Exec(t.Context(), deleteSecond))(t)
	s.backUp(t, "-keep", "3")
	there(copied, true)
	s.backUp(t, "-keep", "3") // which drops the first
	there(copied, false)
	testenv.Equal(t, len(testenv.Must(filepath.Glob(filepath.Join(s.backups, "*.dump")))(t)), 3, "dumps")
	for _, list := range testenv.Must(filepath.Glob(filepath.Join(s.backups, "*.json")))(t) {
		succeed(t, nil, "", "backup", "verify", "-name", strings.TrimSuffix(filepath.Base(list), ".json"), s.backups)
	}
}

// A restore is one transaction that ends sessions and sign-ins, skips numbers and begins a new epoch.
func TestRestore(t *testing.T) {
	t.Parallel()
	s := newBackedUp(t, artwork.Explorer())
	succeed(t, s.environ, "correct horse", "user", "add", "-player", "Alex", "alex@example.com")
	for _, sql := range []string{
		"INSERT INTO sessions (sid, uid, created_at, refreshed_at) SELECT gen_random_uuid(), uid, now(), now() FROM users",
		"INSERT INTO launcher_tokens (token, uid, client_token, issued_at) SELECT sha256(uid::text::bytea), uid, 'client', now() FROM users",
		"INSERT INTO game_joins (pid, server, address, joined_at) SELECT pid, sha256('server'), '127.0.0.1', now() FROM players",
	} {
		_ = testenv.Must(s.conn.Exec(t.Context(), sql))(t)
	}
	epoch := selected[string](t, s.conn, "SELECT epoch::text FROM feed")
	s.backUp(t)

	fails(t, "has a site already", s.environ, "", "restore", s.backups)
	empty, conn := publicDatabase(t)
	environ := environment(t, empty)
	_ = testenv.Must(conn.Exec(t.Context(), "CREATE TABLE public.textures ()"))(t)
	fails(t, "already exists", environ, "", "restore", s.backups)
	testenv.Equal(t, selected[bool](t, conn, "SELECT to_regclass('users') IS NULL"), true, "nothing is restored")
	_ = testenv.Must(conn.Exec(t.Context(), "DROP TABLE public.textures"))(t)
	testenv.Contains(t, succeed(t, environ, "", "restore", s.backups), "all rows and 1 texture files, of which 0 were missing", "core restore prints") // the first attempt copied it
	for sql, want := range map[string]string{
		"SELECT count(*)::text FROM sessions":                   "0",
		"SELECT count(*)::text FROM launcher_tokens":            "0",
		"SELECT count(*)::text FROM game_joins":                 "0",
		"SELECT string_agg(email, ' ' ORDER BY uid) FROM users": "steve@example.com alex@example.com",
		"SELECT string_agg(tid::text, ' ') FROM textures":       "1",
	} {
		testenv.Equal(t, selected[string](t, conn, sql), want, "%s", sql)
	}
	for _, column := range []string{"users', 'uid", "players', 'pid", "textures', 'tid"} {
		next := selected[int](t, conn, "SELECT nextval(pg_get_serial_sequence('"+column+"'))::int")
		testenv.Check(t, next > 1_000_000, "the next number of %s is %d", column, next)
	}
	testenv.Check(t, selected[string](t, conn, "SELECT epoch::text FROM feed") != epoch, "the epoch is as before")
	testenv.Contains(t, succeed(t, environ, "", "sweep", "-dry-run"), " 0 textures without a file", "core sweep prints")

	// What was added later is dropped with -replace.
	succeed(t, s.environ, "correct horse", "user", "add", "later@example.com")
	succeed(t, s.environ, "", "restore", "-replace", s.backups)
	testenv.Equal(t, selected[int](t, s.conn, "SELECT count(*)::int FROM users"), 2, "users")
	const schema = `SELECT pg_get_userbyid(nspowner) || ' ' || has_schema_privilege('pg_monitor', oid, 'USAGE')::text || ' ' || has_table_privilege('pg_monitor', 'backups', 'UPDATE')::text
		FROM pg_namespace WHERE nspname = 'public'`
	testenv.Equal(t, selected[string](t, s.conn, schema), "pg_database_owner true true", "the owner of the schema, and rights of all roles")
	s.backUp(t) // as the same site

	// The backups of another site are not taken for its own.
	other := newBackedUp(t)
	fails(t, "has backups of another site", other.environ, "", "backup", s.backups)
	succeed(t, other.environ, "", "restore", "-replace", s.backups)
	succeed(t, other.environ, "", "backup", s.backups)
}

// A backup counts although the sweep after it fails, so the next one comes after the interval. Scheduled ones go on.
func TestScheduledBackups(t *testing.T) {
	t.Parallel()
	s := newBackedUp(t, artwork.Explorer())
	s.backUp(t)
	testenv.Do(t, os.Remove(s.fileOf(t, s.store, 1))) // the backup has it
	_, err := invoke(t, s.environ, "", "backup", "-sweep", "2h", s.backups)
	testenv.ErrorHas(t, err, "textures without a file: 1", "core backup")
	dumps := func() int { return len(testenv.Must(filepath.Glob(filepath.Join(s.backups, "*.dump")))(t)) }
	testenv.Equal(t, dumps(), 2, "backups")
	now := time.Now()
	for _, c := range []struct{ got, want time.Duration }{
		{nextPause(true, time.Hour), time.Hour},
		{nextPause(false, time.Hour), backupRetry},
		{nextPause(false, time.Minute), time.Minute},
		{firstPause(now, now.Add(-20*time.Minute), time.Hour), 40 * time.Minute},
		{firstPause(now, now.Add(24*time.Hour), time.Hour), time.Hour},
	} {
		testenv.Equal(t, c.got, c.want, "the pause before a backup")
	}
	testenv.Check(t, firstPause(now, time.Time{}, time.Hour) <= 0, "the first backup is not made at once")

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	lines, out := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- program().Run(ctx, cli.Invocation{Args: []string{"backup", "-every", "1ns", "-sweep", "2h", s.backups}, Environ: s.environ, Stdin: strings.NewReader(""), Stdout: out})
		_ = out.Close()
	}()
	failed := 0
	for scanner := bufio.NewScanner(lines); failed < 2 && scanner.Scan(); {
		if strings.HasPrefix(scanner.Text(), "failed: textures without a file: 1") {
			failed++
		}
	}
	cancel()
	go func() { _, _ = io.Copy(io.Discard, lines) }()
	testenv.Do(t, <-ended)
	testenv.Check(t, dumps() >= 4, "%d backups; want 4 or more", dumps())
}

// Backups and sweeps exclude each other, and so do backups into one directory.
func TestBackupOrSweep(t *testing.T) {
	t.Parallel()
	s := newBackedUp(t, artwork.Explorer())
	_ = testenv.Must(s.conn.Exec(t.Context(), "SELECT pg_advisory_lock('backups'::regclass::int, 0)"))(t)
	fails(t, "a backup is running; sweep when it has ended", s.environ, "", "sweep")
	fails(t, "a backup or a sweep is running", s.environ, "", "backup", s.backups)
	succeed(t, s.environ, "", "sweep", "-dry-run")
	_ = testenv.Must(s.conn.Exec(t.Context(), "SELECT pg_advisory_unlock_all()"))(t)
	directory := testenv.Must(os.Open(s.backups))(t)
	testenv.Do(t, unix.Flock(int(directory.Fd()), unix.LOCK_EX))
	fails(t, "which another backup may use", s.environ, "", "backup", s.backups)
	fails(t, "which another backup may use", s.environ, "", "restore", "-replace", s.backups)
	testenv.Do(t, directory.Close())
	s.backUp(t)
}
