package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sys/unix"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/core/postgres/postgrestest"
	"github.com/veneer-skins/veneer/shared/cli"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/skin/artwork"
	"github.com/veneer-skins/veneer/shared/testenv"
	"github.com/veneer-skins/veneer/shared/testenv/cmptest"
)

const edgeSecret = "a-secret-of-the-edges"

// keys is a value of CORE_TOKEN_KEYS.
func keys() string { return "test:" + base64.StdEncoding.EncodeToString(bytes.Repeat([]byte("k"), 32)) }

// environment returns settings for all commands, with a database, a directory of the test's
// own, and free ports.
func environment(t *testing.T, database string) []string {
	t.Helper()
	return []string{
		"CORE_DATABASE_URL=" + database,
		"CORE_OBJECTS_URL=file://" + filepath.Join(t.TempDir(), "textures"),
		"CORE_TOKEN_KEYS=" + keys(),
		"CORE_EDGE_SECRETS=" + edgeSecret,
		"CORE_LISTEN=127.0.0.1:0", "CORE_EDGES_LISTEN=127.0.0.1:0", "CORE_OPS_LISTEN=127.0.0.1:0",
	}
}

// withSetting returns an environment with one setting changed, or removed if the value is
// empty.
func withSetting(environ []string, name, value string) []string {
	changed := slices.DeleteFunc(slices.Clone(environ), func(setting string) bool {
		return strings.HasPrefix(setting, name+"=")
	})
	if value != "" {
		changed = append(changed, name+"="+value)
	}
	return changed
}

// invoke runs a command and returns its standard output.
func invoke(t *testing.T, environ []string, stdin string, args ...string) (string, error) {
	t.Helper()
	var out strings.Builder
	err := program().Run(t.Context(), cli.Invocation{Args: args, Environ: environ, Stdin: strings.NewReader(stdin), Stdout: &out})
	return out.String(), err
}

// succeed runs a command that must succeed.
func succeed(t *testing.T, environ []string, stdin string, args ...string) string {
	t.Helper()
	out, err := invoke(t, environ, stdin, args...)
	if err != nil {
		t.Fatalf("core %s: %v", strings.Join(args, " "), err)
	}
	return out
}

// fails runs a command that must fail with one line that contains want.
func fails(t *testing.T, want string, environ []string, stdin string, args ...string) {
	t.Helper()
	out, err := invoke(t, environ, stdin, args...)
	testenv.Check(t, err != nil && strings.Contains(err.Error(), want) && !strings.Contains(err.Error(), "\n"),
		"core %s: %v; want one line with %q", strings.Join(args, " "), err, want)
	testenv.Check(t, out == "", "core %s fails, but prints %q", strings.Join(args, " "), out)
}

// newDatabase returns settings with a new database that has users, all with the password "correct horse", and a
// connection to it.
func newDatabase(t *testing.T, emails ...string) ([]string, *pgx.Conn) {
	t.Helper()
	database := postgrestest.URL(t)
	environ := environment(t, database)
	for _, email := range emails {
		succeed(t, environ, "correct horse", "user", "add", email)
	}
	return environ, postgrestest.Conn(t, database)
}

// selected returns the only value that a query selects.
func selected[T any](t *testing.T, conn *pgx.Conn, sql string) (value T) {
	t.Helper()
	testenv.Do(t, conn.QueryRow(t.Context(), sql).Scan(&value))
	return value
}

// isPassword checks that a hash is the one of a password.
func isPassword(t *testing.T, hash, password string) {
	t.Helper()
	right, _, err := core.NewPasswords("").Verify(t.Context(), hash, password)
	testenv.Do(t, err)
	testenv.Equal(t, right, true, "the password is %q", password)
}

func TestHelp(t *testing.T) {
	t.Parallel()

	for _, args := range [][]string{nil, {"help"}, {"-h"}, {"--help"}} {
		out := succeed(t, nil, "", args...)
		for _, want := range []string{
			"core serve", "core migrate", "core user add EMAIL", "core user passwd EMAIL", "core user permission EMAIL", "core texture add FILE", "core notify TITLE", "core health", "_FILE",
			"CORE_LISTEN", "127.0.0.1:8080", "CORE_EDGES_LISTEN", "127.0.0.1:9090", "CORE_OPS_LISTEN", "127.0.0.1:9080", "CORE_OPS_PPROF",
			"CORE_DATABASE_URL", "CORE_OWNER_DATABASE_URL", "CORE_LIBRARY_DATABASE_URL", "CORE_LISTEN_DATABASE_URL", "CORE_OBJECTS_URL", "CORE_OBJECTS_SECRET_KEY", "CORE_OBJECTS_CA", "CORE_TOKEN_KEYS", "CORE_TOKEN_TTL",
			"CORE_REFRESH_GRACE", "CORE_PLAYER_NAME_PATTERN", "CORE_QUOTA_PLAYERS", "CORE_LIMIT_REQUESTS", "CORE_LIMIT_LOGIN_FAILURES", "CORE_SCORE_PLAYER", "CORE_SCORE_SIGN_REWARD", "CORE_UPLOAD_MAX_BYTES", "CORE_CORS_ORIGINS", "CORE_REGISTRATION",
			"CORE_BODY_BYTES", "CORE_EDGE_SECRETS", "CORE_TLS_CERT", "CORE_EDGES_TLS_CERT", "CORE_PURGE_URL", "CORE_PURGE_SECRET", "CORE_PURGE_TIMEOUT", "CORE_SMTP_HOST", "CORE_SMTP_PASSWORD", "CORE_SMTP_FROM", "CORE_MAIL_URL", "CORE_MAIL_RESET_TTL", "CORE_LIMIT_RESETS", "CORE_DEMO", "CORE_HEADER_BYTES", "CORE_UPLOAD_TIMEOUT", "CORE_TRUSTED_PROXIES", "CORE_DRAIN_TIMEOUT", "CORE_LOG_LEVEL", "CORE_LOG_SAMPLE_RATE", "CORE_TRACES_URL", "CORE_TRACES_SAMPLE",
		} {
			testenv.Contains(t, out, want, "core %s", strings.Join(args, " "))
		}
	}
}

// The help of every command works without settings.
func TestHelpOfCommands(t *testing.T) {
	t.Parallel()

	for _, c := range program().Commands {
		out := succeed(t, nil, "", append([]string{"help"}, strings.Fields(c.Name)...)...)
		usage, rest, _ := strings.Cut(out, "\n")
		testenv.Check(t, strings.HasPrefix(usage+" ", "core "+c.Name+" "), "the help of %s begins with %q", c.Name, usage)
		namesSettings := c.Settings == nil || strings.Contains(rest, "\nSettings:\n  CORE_")
		testenv.Check(t, strings.HasSuffix(usage, c.ArgsUsage) && strings.Contains(rest, c.Help) && namesSettings,
			"the help of %s is %s", c.Name, out)
	}
}

// The version is the same in the terminal, the metrics and the log.
func TestVersion(t *testing.T) {
	t.Parallel()

	out := succeed(t, nil, "", "version")
	var version, revision, goVersion string
	if n, err := fmt.Sscanf(strings.ReplaceAll(out, ",", ""), "core %s revision %s %s\n", &version, &revision, &goVersion); n != 3 || err != nil {
		t.Fatalf("%q: %v", out, err)
	}
	testenv.Equal(t, succeed(t, nil, "", "--version"), out, "the output of --version")
	environ := environment(t, postgrestest.URL(t))
	succeed(t, environ, "", "migrate")
	s := startServe(t, environ)
	expect(t, "http://"+s.operators+"/metrics", 200,
		fmt.Sprintf("veneer_build_info{go_version=%q,revision=%q,version=%q} 1\n", goVersion, revision, version))
	s.end(t)
	want := fmt.Sprintf(`"msg":"starting","version":%q,"revision":%q,"go":%q`, version, revision, goVersion)
	testenv.Contains(t, s.log[0], want, "the log begins with")
}

func TestUnknownCommands(t *testing.T) {
	t.Parallel()

	fails(t, `no command "fly"`, nil, "", "fly")
	fails(t, `no command "user"; did you mean "user add", "user passwd" or "user permission"?`, nil, "", "user")
	fails(t, `no command "usr add"; did you mean "user add"?`, nil, "", "usr", "add", "ann@example.com")
	fails(t, `no command "user fly"`, nil, "", "user", "fly")
	fails(t, `"now"`, nil, "", "migrate", "now")
}

// Settings that are missing, misspelt or wrong in other ways than TestWrongSettings tries are named.
func TestSettingsAreNamed(t *testing.T) {
	t.Parallel()

	// The port is closed, as settings are checked before connecting.
	environ := environment(t, "postgres://plain:hunter2@127.0.0.1:1/plain")
	f := func(name, value string, args ...string) {
		t.Helper()
		fails(t, name, withSetting(environ, name, value), "", args...)
	}

	fails(t, "CORE_PURGE_SECRET", append(environ, "CORE_PURGE_URL=https://hooks.example.org/purge"), "", "serve")
	mail := slices.Concat(environ, withMail)
	fails(t, "CORE_MAIL_URL", withSetting(mail, "CORE_MAIL_URL", ""), "", "serve")
	fails(t, "CORE_MAIL_URL", append(withSetting(mail, "CORE_MAIL_URL", ""), "CORE_PUBLIC_URL=https://skins.example.org", "CORE_CONSOLE=off"), "", "serve")

	for _, name := range []string{"CORE_DATABASE_URL", "CORE_OBJECTS_URL", "CORE_TOKEN_KEYS", "CORE_EDGE_SECRETS"} {
		f(name, "", "serve")
	}
	f("CORE_DATABASE_URL", "", "migrate")
	f("CORE_DATABASE_URL", "", "user", "add", "a@example.com")
	f("CORE_DATABASE_URL", "", "texture", "add", "-uploader", "a@example.com", "skin.png")
	f("CORE_OBJECTS_URL", "", "migrate")

	for _, setting := range []string{
		"CORE_OBJECTS_URL=ftp://textures", "CORE_BODY_BYTES=-1", "CORE_UPLOAD_MAX_BYTES=-1", "CORE_UPLOAD_CONCURRENCY=0",
		"CORE_CORS_ORIGINS=https://skins.example/", "CORE_LOG_SAMPLE_RATE=2", "CORE_TRACES_SAMPLE=-1",
		"CORE_TOKEN_KEYS_FILE=/nowhere/keys", "CORE_REGISTRATION=confirm", "CORE_SITE_NAME=A\nB",
	} {
		name, value, _ := strings.Cut(setting, "=")
		f(name, value, "serve")
	}

	// A misspelt setting, with every command.
	for _, args := range [][]string{{"serve"}, {"migrate"}, {"health"}} {
		f("CORE_TOKEN_KEY", "x", args...)
	}
}

func TestMigrate(t *testing.T) {
	t.Parallel()

	database := postgrestest.Empty(t)
	environ := environment(t, database)
	prints := func(want string) {
		t.Helper()
		out := succeed(t, environ, "", "migrate")
		testenv.Contains(t, out, want, "the output")
		testenv.Contains(t, out, "texture store: ready", "the output")
	}
	prints("schema: migrated from version 0 to ")
	prints("nothing to do")

	// Search keys that the previous release has not written.
	const add = "INSERT INTO users (email, email_key, nickname, password_hash) VALUES ('a@b.c', 'a@b.c', 'Ann', 'x')"
	testenv.Must(postgrestest.Conn(t, database).Exec(t.Context(), add))(t)
	prints("search keys: made 1 that were missing\n")
	out := succeed(t, environ, "", "migrate")
	testenv.Check(t, !strings.Contains(out, "search keys"), "the fourth run prints %q", out)
}

// With the owner's URL core migrate gives the role of core serve its rights, also where that URL was the owner's
// before. Every command but core migrate works with that role.
func TestMigrateAsOwner(t *testing.T) {
	t.Parallel()

	database := postgrestest.Empty(t)
	environ := environment(t, database)
	migrate := func(begin string) {
		t.Helper()
		out := succeed(t, environ, "", "migrate")
		testenv.Check(t, strings.Contains(out, "rights: ") == (begin != "") && strings.Contains(out, begin), "core migrate prints %q; want %q", out, begin)
	}
	migrate("")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	log := writerFunc(func(line []byte) {
		if strings.Contains(string(line), `"msg":"the database's role may change the schema and the audit log; `) {
			cancel()
		}
	})
	testenv.Do(t, program().Run(ctx, cli.Invocation{Args: []string{"serve"}, Environ: environ, Stdin: strings.NewReader(""), Stdout: log}))

	environ = append(withSetting(environ, "CORE_DATABASE_URL", postgrestest.AsService(database)), "CORE_OWNER_DATABASE_URL="+database)
	migrate("rights: granted to the role veneer_service what core serve needs")
	migrate("")
	environ = withSetting(environ, "CORE_OWNER_DATABASE_URL", "")
	migrate("")
	succeed(t, environ, "correct horse", "user", "add", "ann@example.com")
	succeed(t, environ, "another horse", "user", "passwd", "ann@example.com")
	succeed(t, environ, "", "user", "permission", "-set", "1", "ann@example.com")
	succeed(t, environ, "", "texture", "add", "-uploader", "ann@example.com", paintedFile(t, "Explorer.png", artwork.Explorer()))
	succeed(t, environ, "Hello", "notify", "-all", "Title")
	succeed(t, environ, "", "sweep", "-age", "0s")
	startServe(t, append(environ, "CORE_DEMO=1")).end(t)

	migrateFails := func(want, owner string) {
		t.Helper()
		fails(t, want, append(environ, "CORE_OWNER_DATABASE_URL="+owner), "", "migrate")
	}
	migrateFails("CORE_OWNER_DATABASE_URL must look like postgres://", "nonsense")
	migrateFails("CORE_OWNER_DATABASE_URL has a user or a password that the server refuses: ", database+"&user=nobody")
	_, err := invoke(t, append(environ, "CORE_OWNER_DATABASE_URL="+postgrestest.AsService(database)), "", "migrate")
	testenv.ErrorHas(t, err, "CORE_OWNER_DATABASE_URL has a role that does not own the tables", "core migrate")
}

// An empty directory becomes the texture store only while there are no textures, or with
// -adopt-store: it may be an unmounted disk.
func TestMigrateRejectsEmptyStore(t *testing.T) {
	t.Parallel()

	environ := environment(t, postgrestest.Empty(t))
	succeed(t, environ, "", "migrate")
	succeed(t, environ, "correct horse", "user", "add", "ann@example.com")
	succeed(t, environ, "", "texture", "add", "-uploader", "ann@example.com", paintedFile(t, "Explorer.png", artwork.Explorer()))
	succeed(t, environ, "", "migrate")

	elsewhere := withSetting(environ, "CORE_OBJECTS_URL", "file://"+t.TempDir())
	_, err := invoke(t, elsewhere, "", "migrate")
	testenv.ErrorHas(t, err, "CORE_OBJECTS_URL", "migrate with an empty store")
	missing := withSetting(environ, "CORE_OBJECTS_URL", "file:///nowhere/textures")
	_, err = invoke(t, missing, "", "migrate")
	const other = "CORE_OBJECTS_URL is not the store of the textures that the database has; "
	begins(t, err, other, "the directory does not exist")
	testenv.Check(t, !strings.Contains(err.Error(), "try again"), "migrate with a store that does not exist: %v", err)
	fails(t, `CORE_OBJECTS_URL is "file:///nowhere/textures", where no texture store was prepared; run core migrate; `, missing, "", "sweep")
	fails(t, "the directory does not exist); for example CORE_OBJECTS_URL=", missing, "", "sweep", "-dry-run")
	succeed(t, elsewhere, "", "migrate", "-adopt-store")
	succeed(t, elsewhere, "", "migrate")
}

func TestUserAdd(t *testing.T) {
	t.Parallel()

	environ, conn := newDatabase(t)
	out := succeed(t, environ, " correct horse \r\nignored\n", "user", "add", "-player", "Steve", "-permission", "2", "Steve@Example.com")
	testenv.Equal(t, out, "user 1 added: Steve@Example.com\n", "the output")
	row := selected[string](t, conn,
		"SELECT concat_ws(', ', email, nickname, permission, verified, players.name) FROM users JOIN players USING (uid)")
	testenv.Equal(t, row, "Steve@Example.com, Steve, 2, t, Steve", "the user with the player")
	isPassword(t, selected[string](t, conn, "SELECT password_hash FROM users"), " correct horse ")

	wantAuditLog(t, conn, `user.add user:1 {"to": 2, "email": "Steve@Example.com", "nickname": "Steve"}`)

	fails(t, "e-mail", environ, "correct horse\n", "user", "add", "steve@example.com")
	fails(t, "password", environ, "short\n", "user", "add", "alex@example.com")
	fails(t, "password", environ, "", "user", "add", "alex@example.com")
	fails(t, "e-mail", environ, "correct horse\n", "user", "add", "alex")
	fails(t, "permission", environ, "correct horse\n", "user", "add", "-permission", "3", "alex@example.com")
	fails(t, "player", environ, "correct horse\n", "user", "add", "-player", "STEVE", "alex@example.com")
	fails(t, "visible", environ, "correct horse\n", "user", "add", "-nickname", "\u200b", "alex@example.com")
	fails(t, "e-mail", environ, "correct horse\n", "user", "add", "al\u200bex@example.com")
	fails(t, "EMAIL", environ, "correct horse\n", "user", "add")
	fails(t, "EMAIL", environ, "correct horse\n", "user", "add", "alex@example.com", "-player", "Alex")
	fails(t, "-fly", environ, "correct horse\n", "user", "add", "-fly", "alex@example.com")

	// The password may be the whole input, and flags override defaults.
	succeed(t, environ, "correct horse", "user", "add", "-nickname", "Alex the Great", "-verified=false", "alex@example.com")
	testenv.Equal(t, selected[int](t, conn, "SELECT count(*) FROM users"), 2, "the number of users")
	row = selected[string](t, conn,
		"SELECT concat_ws(', ', nickname, permission, verified) FROM users WHERE email = 'alex@example.com'")
	testenv.Equal(t, row, "Alex the Great, 0, f", "the second user")
}

// wantAuditLog checks the last entries of the audit log by the terminal.
// At a terminal core asks for a password twice, and shows none.
func TestPasswordAtTerminal(t *testing.T) {
	t.Parallel()
	environ, conn := newDatabase(t)
	for _, c := range []struct{ first, second, want string }{
		{"correct horse", "correct house", "the two passwords differ"},
		{"correct horse", "correct horse", ""},
	} {
		user, terminal := openTerminal(t)
		ended := make(chan error, 1)
		go func() {
			ended <- program().Run(t.Context(), cli.Invocation{Args: []string{"user", "add", "steve@example.com"}, Environ: environ, Stdin: terminal, Stdout: io.Discard})
		}()
		for _, answer := range []string{c.first, c.second} {
			testenv.Eventually(t, "core asks for a password", func() bool { // once it echoes nothing
				return testenv.Must(unix.IoctlGetTermios(int(terminal.Fd()), unix.TCGETS))(t).Lflag&unix.ECHO == 0
			})
			_ = testenv.Must(user.WriteString(answer + "\n"))(t)
		}
		if err := <-ended; c.want == "" {
			testenv.Do(t, err)
		} else {
			testenv.ErrorHas(t, err, c.want, "core user add")
		}
		testenv.Do(t, terminal.Close())
		shown, _ := io.ReadAll(user) // its error says that the other end is closed
		testenv.Equal(t, strings.ReplaceAll(string(shown), "\r", ""), "Password: \nThe same again: \n", "what the terminal shows")
	}
	isPassword(t, selected[string](t, conn, "SELECT password_hash FROM users"), "correct horse")
}

// openTerminal returns the two ends of a pseudo terminal: of the user, and of a program.
func openTerminal(t *testing.T) (user, program *os.File) {
	t.Helper()
	user = testenv.Must(os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0))(t)
	t.Cleanup(func() { _ = user.Close() })
	testenv.Do(t, unix.IoctlSetPointerInt(int(user.Fd()), unix.TIOCSPTLCK, 0))
	number := testenv.Must(unix.IoctlGetInt(int(user.Fd()), unix.TIOCGPTN))(t)
	program = testenv.Must(os.OpenFile(fmt.Sprint("/dev/pts/", number), os.O_RDWR|unix.O_NOCTTY, 0))(t)
	t.Cleanup(func() { _ = program.Close() })
	return user, program
}

func wantAuditLog(t *testing.T, conn *pgx.Conn, want ...string) {
	t.Helper()
	entries := selected[[]string](t, conn, `
		SELECT array_agg(concat_ws(' ', action, subject, details) ORDER BY id) FROM (
			SELECT * FROM audit_log WHERE actor = 0 AND actor_email = '' AND address IS NULL ORDER BY id DESC LIMIT `+strconv.Itoa(len(want))+`
		) last`)
	cmptest.Same(t, entries, want, "the audit log ends with")
}

func TestUserPasswd(t *testing.T) {
	t.Parallel()

	environ, conn := newDatabase(t, "steve@example.com", "alex@example.com")
	testenv.Must(conn.Exec(t.Context(),
		"INSERT INTO sessions (sid, uid, created_at, refreshed_at) SELECT gen_random_uuid(), uid, now(), now() FROM users, generate_series(1, 2)"))(t)
	hash := func() string { return selected[string](t, conn, "SELECT password_hash FROM users WHERE uid = 1") }
	sessions := func() string {
		return selected[string](t, conn, "SELECT concat_ws(', ', count(*), count(*) FILTER (WHERE uid = 1)) FROM sessions")
	}

	before := hash()
	fails(t, "password", environ, "short\n", "user", "passwd", "steve@example.com")
	fails(t, "password", environ, "", "user", "passwd", "steve@example.com")
	fails(t, "first that attackers try", environ, "password1\n", "user", "passwd", "steve@example.com")
	fails(t, "the name of the site or your", environ, "steve@example.com\n", "user", "passwd", "steve@example.com")
	fails(t, "the name of the site or your", append(environ, "CORE_SITE_NAME=Skinland"), "skinland1\n", "user", "passwd", "steve@example.com")
	fails(t, "no user", environ, "another horse\n", "user", "passwd", "zombie@example.com")
	fails(t, "EMAIL", environ, "another horse\n", "user", "passwd")
	fails(t, "CORE_DATABASE_URL", withSetting(environ, "CORE_DATABASE_URL", ""), "another horse\n", "user", "passwd", "steve@example.com")
	testenv.Equal(t, hash(), before, "the password's hash after failures")
	testenv.Equal(t, sessions(), "4, 2", "the sessions after failures, in all and of the user,")

	out := succeed(t, environ, " another horse \r\n", "user", "passwd", "STEVE@example.com")
	testenv.Equal(t, out, "user 1 has a new password, and is signed out everywhere: steve@example.com\n", "the output")
	isPassword(t, hash(), " another horse ")
	wantAuditLog(t, conn, `user.password user:1 {"email": "steve@example.com", "nickname": "steve"}`)
	testenv.Equal(t, sessions(), "2, 0", "the sessions, in all and of the user,")

	// The user is notified if the site sends e-mail.
	mails := func(want int) {
		t.Helper()
		got := selected[int](t, conn, "SELECT count(*) FROM mails WHERE (purpose, email) = ('password', 'steve@example.com')")
		testenv.Equal(t, got, want, "the number of mails")
	}
	mails(0)
	succeed(t, append(environ, "CORE_SMTP_HOST=smtp.example.org"), "third horse", "user", "passwd", "steve@example.com")
	mails(1)
}

func TestUserPermission(t *testing.T) {
	t.Parallel()

	environ, conn := newDatabase(t, "steve@example.com", "alex@example.com")
	permissions := func(steve, alex int) {
		t.Helper()
		got := selected[[]int](t, conn, "SELECT array_agg(permission ORDER BY uid) FROM users")
		cmptest.Same(t, got, []int{steve, alex}, "the permissions")
	}

	for _, permission := range []int{2, -1, 1, 0, 1} {
		out := succeed(t, environ, "", "user", "permission", "-set", strconv.Itoa(permission), "STEVE@example.com")
		testenv.Equal(t, out, fmt.Sprintf("user 1 has permission %d: steve@example.com\n", permission), "the output")
		permissions(permission, 0)
	}
	wantAuditLog(t, conn, `user.permission user:1 {"to": 0, "from": 1, "email": "steve@example.com", "nickname": "steve"}`,
		`user.permission user:1 {"to": 1, "from": 0, "email": "steve@example.com", "nickname": "steve"}`)
	fails(t, "-set is 3", environ, "", "user", "permission", "-set", "3", "steve@example.com")
	fails(t, "-set is -2", environ, "", "user", "permission", "-set", "-2", "steve@example.com")
	fails(t, "-set is 65536", environ, "", "user", "permission", "-set", "65536", "steve@example.com")
	fails(t, "-set", environ, "", "user", "permission", "-set", "admin", "steve@example.com")
	fails(t, "-set", environ, "", "user", "permission", "steve@example.com")
	fails(t, "no user", environ, "", "user", "permission", "-set", "1", "zombie@example.com")
	fails(t, "EMAIL", environ, "", "user", "permission", "-set", "1")
	permissions(1, 0)
}

func TestNotify(t *testing.T) {
	t.Parallel()

	environ, conn := newDatabase(t, "steve@example.com", "alex@example.com")
	out := succeed(t, environ, "A **word**\r\nand more\n", "notify", "-user", "STEVE@example.com", " For you ")
	testenv.Equal(t, out, "users notified: 1\n", "the output")
	notification := selected[string](t, conn, `
		SELECT concat_ws(', ', title, content, array_agg(uid))
		FROM notifications JOIN messages USING (mid) GROUP BY mid, title, content`)
	testenv.Equal(t, notification, "For you, A **word**\nand more\n, {1}", "the notification and its users")
	testenv.Equal(t, succeed(t, environ, "Hear!", "notify", "-all", "For all"), "users notified: 2\n", "the output")
	broadcast := selected[string](t, conn,
		"SELECT concat_ws(', ', title, content, audience) FROM broadcasts JOIN messages USING (mid)")
	testenv.Equal(t, broadcast, "For all, Hear!, all", "the broadcast")
	wantAuditLog(t, conn, `notification.send user:1 {"title": "For you", "users": 1}`, `notification.send users:all {"title": "For all", "users": 2}`)

	fails(t, "-all", environ, "Text", "notify", "Title")
	fails(t, "-all", environ, "Text", "notify", "-all", "-user", "steve@example.com", "Title")
	fails(t, "no such user", environ, "Text", "notify", "-user", "zombie@example.com", "Title")
	fails(t, "-user", environ, "Text", "notify", "-user", "normal", "Title")
	fails(t, "TITLE", environ, "Text", "notify", "-all")
	fails(t, "title", environ, "Text", "notify", "-all", " ")
	fails(t, "content", environ, "", "notify", "-all", "Title")
	fails(t, "title", environ, "Text", "notify", "-all", strings.Repeat("x", 65))
	fails(t, "content", environ, "a\x00b", "notify", "-all", "Title")
	fails(t, "content", environ, strings.Repeat("x", 20_001), "notify", "-all", "Title")
	fails(t, "content", environ, strings.Repeat("x", 2<<20), "notify", "-all", "Title")
	testenv.Equal(t, selected[int](t, conn, "SELECT count(*) FROM messages"), 2, "the number of messages")
}

func TestTextureAdd(t *testing.T) {
	t.Parallel()

	environ, conn := newDatabase(t, "steve@example.com")
	slim := paintedFile(t, "Slim Ranger.png", artwork.Ranger())
	fails(t, "texture store", environ, "", "texture", "add", "-uploader", "steve@example.com", slim) // not prepared
	succeed(t, environ, "", "migrate")

	out := succeed(t, environ, "", "texture", "add", "-uploader", "STEVE@example.com", slim)
	added := func() string {
		return selected[string](t, conn, `
			SELECT concat_ws(', ', name, type, public, item_name)
			FROM textures JOIN closet_items USING (tid) ORDER BY tid DESC LIMIT 1`)
	}
	testenv.Equal(t, added(), "Slim Ranger, alex, t, Slim Ranger", "the texture, and its name in the closet,")
	hash := selected[string](t, conn, "SELECT encode(hash, 'hex') FROM textures")
	testenv.Equal(t, out, "texture 1 added: Slim Ranger, type alex, hash "+hash+"\n", "the output")
	directory := strings.TrimPrefix(environ[1], "CORE_OBJECTS_URL=file://")
	file := testenv.Must(os.ReadFile(filepath.Join(directory, hash[:2], hash+".png")))(t)
	testenv.Equal(t, skin.HashOf(file).String(), hash, "the hash of the stored file")

	succeed(t, environ, "", "texture", "add", "-uploader", "steve@example.com", "-name", "Dawn", "-type", "cape", "-private",
		paintedFile(t, "cape.png", artwork.Sunrise()))
	testenv.Equal(t, added(), "Dawn, cape, f, Dawn", "the texture, and its name in the closet,")

	fails(t, "exists already", environ, "", "texture", "add", "-uploader", "steve@example.com", slim)
	fails(t, "no user", environ, "", "texture", "add", "-uploader", "alex@example.com", slim)
	fails(t, "visible", environ, "", "texture", "add", "-uploader", "steve@example.com", "-name", "a\u202eb", slim)
	fails(t, "-uploader", environ, "", "texture", "add", slim)
	fails(t, "FILE", environ, "", "texture", "add", "-uploader", "steve@example.com")
	fails(t, "nowhere.png", environ, "", "texture", "add", "-uploader", "steve@example.com", "/tmp/nowhere.png")
	fails(t, "no texture", environ, "", "texture", "add", "-uploader", "steve@example.com", "-type", "cape", slim)
	fails(t, "no type", environ, "", "texture", "add", "-uploader", "steve@example.com", "-type", "hat", slim)
}

// paintedFile writes a texture to a temporary file and returns its path.
func paintedFile(t *testing.T, name string, sheet skin.Sheet) string {
	t.Helper()
	file := testenv.Must(sheet.PNG())(t)
	path := filepath.Join(t.TempDir(), name)
	testenv.Do(t, os.WriteFile(path, file, 0o600))
	return path
}
