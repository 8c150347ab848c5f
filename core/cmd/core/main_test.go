package main

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/core/postgres/postgrestest"
	"github.com/veneer-skins/veneer/shared/cli"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/skin/artwork"
)

const edgeSecret = "a-secret-of-the-edges"

// keys is a value of CORE_TOKEN_KEYS.
func keys() string {
	return "test:" + base64.StdEncoding.EncodeToString(bytes.Repeat([]byte("k"), 32))
}

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
	var changed []string
	for _, setting := range environ {
		if !strings.HasPrefix(setting, name+"=") {
			changed = append(changed, setting)
		}
	}
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
	if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
		t.Errorf("core %s: %v; want one line with %q", strings.Join(args, " "), err, want)
	}
	if out != "" {
		t.Errorf("core %s fails, but prints %q", strings.Join(args, " "), out)
	}
}

// queryRow scans the only row of a query.
func queryRow(t *testing.T, conn *pgx.Conn, sql string, into ...any) {
	t.Helper()
	if err := conn.QueryRow(t.Context(), sql).Scan(into...); err != nil {
		t.Fatal(err)
	}
}

func TestHelp(t *testing.T) {
	t.Parallel()

	for _, args := range [][]string{nil, {"help"}, {"-h"}, {"--help"}} {
		out := succeed(t, nil, "", args...)
		for _, want := range []string{
			"core serve", "core migrate", "core user add EMAIL", "core user passwd EMAIL", "core user permission EMAIL", "core texture add FILE", "core notify TITLE", "core health", "_FILE",
			"CORE_LISTEN", "127.0.0.1:8080", "CORE_EDGES_LISTEN", "127.0.0.1:9090", "CORE_OPS_LISTEN", "127.0.0.1:9080", "CORE_OPS_PPROF",
			"CORE_DATABASE_URL", "CORE_LIBRARY_DATABASE_URL", "CORE_LISTEN_DATABASE_URL", "CORE_OBJECTS_URL", "CORE_OBJECTS_SECRET_KEY", "CORE_OBJECTS_CA", "CORE_TOKEN_KEYS", "CORE_TOKEN_TTL",
			"CORE_REFRESH_GRACE", "CORE_PLAYER_NAME_PATTERN", "CORE_QUOTA_PLAYERS", "CORE_LIMIT_REQUESTS", "CORE_LIMIT_LOGIN_FAILURES", "CORE_SCORE_PLAYER", "CORE_SCORE_SIGN_REWARD", "CORE_UPLOAD_MAX_BYTES", "CORE_CORS_ORIGINS", "CORE_REGISTRATION",
			"CORE_BODY_BYTES", "CORE_EDGE_SECRETS", "CORE_TLS_CERT", "CORE_EDGES_TLS_CERT", "CORE_PURGE_URL", "CORE_PURGE_SECRET", "CORE_PURGE_TIMEOUT", "CORE_SMTP_HOST", "CORE_SMTP_PASSWORD", "CORE_SMTP_FROM", "CORE_MAIL_URL", "CORE_MAIL_RESET_TTL", "CORE_LIMIT_RESETS", "CORE_DEMO", "CORE_HEADER_BYTES", "CORE_UPLOAD_TIMEOUT", "CORE_TRUSTED_PROXIES", "CORE_DRAIN_TIMEOUT", "CORE_LOG_LEVEL", "CORE_LOG_SAMPLE_RATE", "CORE_TRACES_URL", "CORE_TRACES_SAMPLE",
		} {
			if !strings.Contains(out, want) {
				t.Errorf("core %s lacks %q:\n%s", strings.Join(args, " "), want, out)
			}
		}
	}
}

// The help of every command works without settings.
func TestHelpOfCommands(t *testing.T) {
	t.Parallel()

	for _, c := range program().Commands {
		out := succeed(t, nil, "", append([]string{"help"}, strings.Fields(c.Name)...)...)
		usage, rest, _ := strings.Cut(out, "\n")
		if want := "core " + c.Name; usage != want && !strings.HasPrefix(usage, want+" ") {
			t.Errorf("the help of %s begins with %q", c.Name, usage)
		}
		if !strings.HasSuffix(usage, c.ArgsUsage) || !strings.Contains(rest, c.Help) || c.Settings != nil && !strings.Contains(rest, "\nSettings:\n  CORE_") {
			t.Errorf("the help of %s is %s", c.Name, out)
		}
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
	if again := succeed(t, nil, "", "--version"); again != out {
		t.Errorf("--version prints %q, and version %q", again, out)
	}
	environ := environment(t, postgrestest.URL(t))
	succeed(t, environ, "", "migrate")
	s := startServe(t, environ)
	expect(t, "http://"+s.operators+"/metrics", 200,
		fmt.Sprintf("veneer_build_info{go_version=%q,revision=%q,version=%q} 1\n", goVersion, revision, version))
	s.end(t)
	if want := fmt.Sprintf(`"msg":"starting","version":%q,"revision":%q,"go":%q`, version, revision, goVersion); !strings.Contains(s.log[0], want) {
		t.Errorf("the log begins with %s; want %s", s.log[0], want)
	}
}

func TestUnknownCommands(t *testing.T) {
	t.Parallel()

	fails(t, `no command "fly"`, nil, "", "fly")
	fails(t, `no command "user"; did you mean "user add", "user passwd" or "user permission"?`, nil, "", "user")
	fails(t, `no command "usr add"; did you mean "user add"?`, nil, "", "usr", "add", "ann@example.com")
	fails(t, `no command "user fly"`, nil, "", "user", "fly")
	fails(t, `"now"`, nil, "", "migrate", "now")
}

func TestSettingsAreNamed(t *testing.T) {
	t.Parallel()

	// The port is closed, as settings are checked before connecting.
	environ := environment(t, "postgres://plain:hunter2@127.0.0.1:1/plain")
	f := func(name, value string, args ...string) {
		t.Helper()
		fails(t, name, withSetting(environ, name, value), "", args...)
	}

	fails(t, "CORE_PURGE_SECRET", append(environ, "CORE_PURGE_URL=https://hooks.example.org/purge"), "", "serve")
	mail := slices.Concat(environ, []string{"CORE_SMTP_HOST=smtp.example.org", "CORE_SMTP_FROM=noreply@example.org", "CORE_MAIL_URL=https://skins.example.org"})
	for name, value := range map[string]string{
		"CORE_SMTP_HOST": "smtp.example.org:25", "CORE_SMTP_PORT": "65536", "CORE_SMTP_TLS": "maybe", "CORE_SMTP_CA": "/nowhere/ca.pem", "CORE_SMTP_USER": "operator",
		"CORE_SMTP_PASSWORD": "hunter2", "CORE_SMTP_FROM": "noreply", "CORE_SMTP_TIMEOUT": "0s",
		"CORE_MAIL_SITE": "A\nB", "CORE_MAIL_URL": "skins.example.org", "CORE_MAIL_VERIFICATION_TTL": "1s", "CORE_MAIL_RESET_TTL": "1s", "CORE_MAIL_PER_HOUR": "-1",
		"CORE_MAIL_RETRY_FOR": "0s",
	} {
		fails(t, name, withSetting(mail, name, value), "", "serve")
	}
	fails(t, "CORE_MAIL_URL", withSetting(mail, "CORE_MAIL_URL", ""), "", "serve")
	fails(t, "CORE_MAIL_URL", append(withSetting(mail, "CORE_MAIL_URL", ""), "CORE_PUBLIC_URL=https://skins.example.org", "CORE_CONSOLE=off"), "", "serve")
	f("CORE_REGISTRATION", "confirm", "serve")
	f("CORE_LIMIT_RESETS", "-1", "serve")

	f("CORE_DATABASE_URL", "", "serve")
	f("CORE_DATABASE_URL", "", "migrate")
	f("CORE_DATABASE_URL", "", "user", "add", "a@example.com")
	f("CORE_DATABASE_URL", "", "texture", "add", "-uploader", "a@example.com", "skin.png")
	f("CORE_OBJECTS_URL", "", "serve")
	f("CORE_OBJECTS_URL", "", "migrate")
	f("CORE_TOKEN_KEYS", "", "serve")
	f("CORE_EDGE_SECRETS", "", "serve")

	f("CORE_DATABASE_URL", "postgres://plain:hunter2@127.0.0.1:port/plain", "serve")
	f("CORE_LIBRARY_DATABASE_URL", "nonsense", "serve")
	f("CORE_LISTEN_DATABASE_URL", "nonsense", "serve")
	f("CORE_OBJECTS_URL", "ftp://textures", "serve")
	f("CORE_TOKEN_KEYS", "a:c2hvcnQ=", "serve")
	f("CORE_EDGE_SECRETS", "short", "serve")
	f("CORE_PURGE_URL", "hooks.example.org/purge", "serve")
	f("CORE_REGISTRATION", "ajar", "serve")
	f("CORE_BODY_BYTES", "16383", "serve")
	f("CORE_BODY_BYTES", "-1", "serve")
	f("CORE_UPLOAD_TIMEOUT", "0s", "serve")
	f("CORE_PLAYER_NAME_PATTERN", "[", "serve")
	f("CORE_PLAYER_NAME_MIN", "none", "serve")
	f("CORE_TOKEN_TTL", "soon", "serve")
	f("CORE_PLAYER_NAME_MIN", "17", "serve")
	f("CORE_PLAYER_NAME_MAX", "65", "serve")
	f("CORE_UPLOAD_MAX_BYTES", "-1", "serve")
	f("CORE_UPLOAD_MAX_SCALE", "17", "serve")
	f("CORE_UPLOAD_CONCURRENCY", "0", "serve")
	f("CORE_UPLOAD_CONCURRENCY", "16", "serve")
	f("CORE_DRAIN_WAIT", "-1s", "serve")
	f("CORE_DRAIN_TIMEOUT", "-1s", "serve")
	f("CORE_CORS_ORIGINS", "*.example.com", "serve")
	f("CORE_CORS_ORIGINS", "https://skins.example/", "serve")
	f("CORE_QUOTA_PLAYERS", "-1", "serve")
	f("CORE_SCORE_PLAYER", "-1", "serve")
	f("CORE_SCORE_LIKE_REWARD", "1000001", "serve")
	f("CORE_SCORE_RETENTION", "-1s", "serve")
	f("CORE_LIMIT_LOGIN_FAILURES", "-1", "serve")
	f("CORE_LIMIT_UPLOADS", "-1", "serve")
	f("CORE_LIMIT_PRICES", "-1", "serve")
	f("CORE_NOTIFICATION_RETENTION", "-1s", "serve")
	f("CORE_TRUSTED_PROXIES", "10.0.0.1", "serve")
	f("CORE_LOG_FORMAT", "xml", "serve")
	f("CORE_LOG_SAMPLE_RATE", "2", "serve")
	f("CORE_LOG_SAMPLE_RATE", "all", "serve")
	f("CORE_TRACES_URL", "collector:4318", "serve")
	f("CORE_TRACES_SAMPLE", "-1", "serve")
	f("CORE_TLS_CERT", "/nowhere/cert.pem", "serve")
	f("CORE_EDGES_TLS_CERT", "/nowhere/cert.pem", "serve")
	f("CORE_TOKEN_KEYS_FILE", "/nowhere/keys", "serve")

	// A misspelt setting, with every command.
	for _, args := range [][]string{{"serve"}, {"migrate"}, {"health"}} {
		f("CORE_TOKEN_KEY", "x", args...)
	}
	if _, err := invoke(t, withSetting(environ, "CORE_DATABASE_URL", "postgres://plain:hunter2@127.0.0.1:port/plain"), "", "serve"); err == nil ||
		strings.Contains(err.Error(), "hunter2") {
		t.Errorf("the error contains the password: %v", err)
	}
}

func TestMigrate(t *testing.T) {
	t.Parallel()

	database := postgrestest.Empty(t)
	environ := environment(t, database)
	first := succeed(t, environ, "", "migrate")
	if !strings.Contains(first, "schema: migrated from version 0 to ") || !strings.Contains(first, "texture store: ready") {
		t.Errorf("the first run prints %q", first)
	}
	second := succeed(t, environ, "", "migrate")
	if !strings.Contains(second, "nothing to do") || !strings.Contains(second, "texture store: ready") {
		t.Errorf("the second run prints %q", second)
	}

	// Search keys that the previous release has not written.
	var uid int
	queryRow(t, postgrestest.Conn(t, database), `INSERT INTO users (email, email_key, nickname, password_hash) VALUES ('a@b.c', 'a@b.c', 'Ann', 'x') RETURNING uid`, &uid)
	if third := succeed(t, environ, "", "migrate"); !strings.Contains(third, "search keys: made 1 that were missing\n") {
		t.Errorf("the third run prints %q", third)
	}
	if fourth := succeed(t, environ, "", "migrate"); strings.Contains(fourth, "search keys") {
		t.Errorf("the fourth run prints %q", fourth)
	}
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
	out, err := invoke(t, elsewhere, "", "migrate")
	if err == nil || !strings.Contains(err.Error(), "CORE_OBJECTS_URL") {
		t.Errorf("migrate with an empty store: %v, %q; want an error that names the setting", err, out)
	}
	missing := withSetting(environ, "CORE_OBJECTS_URL", "file:///nowhere/textures")
	if _, err := invoke(t, missing, "", "migrate"); err == nil || !strings.HasPrefix(err.Error(), "CORE_OBJECTS_URL is not the store of the textures that the database has; ") ||
		!strings.Contains(err.Error(), "the directory does not exist") || strings.Contains(err.Error(), "try again") {
		t.Errorf("migrate with a store that does not exist: %v", err)
	}
	fails(t, `CORE_OBJECTS_URL is "file:///nowhere/textures", where no texture store was prepared; run core migrate; `, missing, "", "sweep")
	fails(t, "the directory does not exist); for example CORE_OBJECTS_URL=", missing, "", "sweep", "-dry-run")
	succeed(t, elsewhere, "", "migrate", "-adopt-store")
	succeed(t, elsewhere, "", "migrate")
}

func TestUserAdd(t *testing.T) {
	t.Parallel()

	database := postgrestest.URL(t)
	environ, conn := environment(t, database), postgrestest.Conn(t, database)
	out := succeed(t, environ, " correct horse \r\nignored\n", "user", "add", "-player", "Steve", "-permission", "2", "Steve@Example.com")
	if out != "user 1 added: Steve@Example.com\n" {
		t.Errorf("it prints %q", out)
	}
	var email, nickname, hash, player string
	var permission int
	var verified bool
	queryRow(t, conn, "SELECT email, nickname, permission, verified, password_hash, players.name FROM users JOIN players USING (uid)",
		&email, &nickname, &permission, &verified, &hash, &player)
	if email != "Steve@Example.com" || nickname != "Steve" || permission != 2 || !verified || player != "Steve" {
		t.Errorf("the user is %s, %s, permission %d, verified %t, with the player %s", email, nickname, permission, verified, player)
	}
	if right, _, err := core.NewPasswords().Verify(t.Context(), hash, " correct horse "); !right || err != nil {
		t.Errorf("the password is wrong: %t, %v", right, err)
	}

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
	var users int
	queryRow(t, conn, "SELECT count(*) FROM users", &users)
	queryRow(t, conn, "SELECT nickname, permission, verified FROM users WHERE email = 'alex@example.com'", &nickname, &permission, &verified)
	if users != 2 || nickname != "Alex the Great" || permission != 0 || verified {
		t.Errorf("there are %d users; the second is %s, permission %d, verified %t", users, nickname, permission, verified)
	}
}

// wantAuditLog checks the last entries of the audit log by the terminal.
func wantAuditLog(t *testing.T, conn *pgx.Conn, want ...string) {
	t.Helper()
	var entries []string
	queryRow(t, conn, `
		SELECT array_agg(concat_ws(' ', action, subject, details) ORDER BY id) FROM (
			SELECT * FROM audit_log WHERE actor = 0 AND actor_email = '' AND address IS NULL ORDER BY id DESC LIMIT `+strconv.Itoa(len(want))+`
		) last`, &entries)
	if !slices.Equal(entries, want) {
		t.Errorf("the audit log ends with %q; want %q", entries, want)
	}
}

func TestUserPasswd(t *testing.T) {
	t.Parallel()

	database := postgrestest.URL(t)
	environ, conn := environment(t, database), postgrestest.Conn(t, database)
	for _, email := range []string{"steve@example.com", "alex@example.com"} {
		succeed(t, environ, "correct horse", "user", "add", email)
	}
	if _, err := conn.Exec(t.Context(),
		"INSERT INTO sessions (sid, uid, created_at, refreshed_at) SELECT gen_random_uuid(), uid, now(), now() FROM users, generate_series(1, 2)"); err != nil {
		t.Fatal(err)
	}
	hash := func() (hash string) {
		t.Helper()
		queryRow(t, conn, "SELECT password_hash FROM users WHERE uid = 1", &hash)
		return hash
	}

	before := hash()
	fails(t, "password", environ, "short\n", "user", "passwd", "steve@example.com")
	fails(t, "password", environ, "", "user", "passwd", "steve@example.com")
	fails(t, "no user", environ, "another horse\n", "user", "passwd", "zombie@example.com")
	fails(t, "EMAIL", environ, "another horse\n", "user", "passwd")
	fails(t, "CORE_DATABASE_URL", withSetting(environ, "CORE_DATABASE_URL", ""), "another horse\n", "user", "passwd", "steve@example.com")
	var sessions int
	queryRow(t, conn, "SELECT count(*) FROM sessions", &sessions)
	if hash() != before || sessions != 4 {
		t.Errorf("after failures there are %d sessions, and the password is the same: %t", sessions, hash() == before)
	}

	out := succeed(t, environ, " another horse \r\n", "user", "passwd", "STEVE@example.com")
	if out != "user 1 has a new password, and is signed out everywhere: steve@example.com\n" {
		t.Errorf("it prints %q", out)
	}
	if right, _, err := core.NewPasswords().Verify(t.Context(), hash(), " another horse "); !right || err != nil {
		t.Errorf("the password is wrong: %t, %v", right, err)
	}
	wantAuditLog(t, conn, `user.password user:1 {"email": "steve@example.com", "nickname": "steve"}`)
	var remaining int
	queryRow(t, conn, "SELECT count(*), count(*) FILTER (WHERE uid = 1) FROM sessions", &sessions, &remaining)
	if sessions != 2 || remaining != 0 {
		t.Errorf("there are %d sessions, %d of the user; want the 2 of the other", sessions, remaining)
	}

	// The user is notified if the site sends e-mail.
	mails := func(want int) {
		t.Helper()
		var got int
		queryRow(t, conn, "SELECT count(*) FROM mails WHERE (purpose, email) = ('password', 'steve@example.com')", &got)
		if got != want {
			t.Errorf("there are %d mails; want %d", got, want)
		}
	}
	mails(0)
	succeed(t, append(environ, "CORE_SMTP_HOST=smtp.example.org"), "third horse", "user", "passwd", "steve@example.com")
	mails(1)
}

func TestUserPermission(t *testing.T) {
	t.Parallel()

	database := postgrestest.URL(t)
	environ, conn := environment(t, database), postgrestest.Conn(t, database)
	for _, email := range []string{"steve@example.com", "alex@example.com"} {
		succeed(t, environ, "correct horse", "user", "add", email)
	}
	permissions := func(steve, alex int) {
		t.Helper()
		var gotSteve, gotAlex int
		queryRow(t, conn, "SELECT min(permission) FILTER (WHERE uid = 1), min(permission) FILTER (WHERE uid = 2) FROM users", &gotSteve, &gotAlex)
		if gotSteve != steve || gotAlex != alex {
			t.Errorf("the permissions are %d and %d; want %d and %d", gotSteve, gotAlex, steve, alex)
		}
	}

	for _, permission := range []int{2, -1, 1, 0, 1} {
		out := succeed(t, environ, "", "user", "permission", "-set", strconv.Itoa(permission), "STEVE@example.com")
		if want := fmt.Sprintf("user 1 has permission %d: steve@example.com\n", permission); out != want {
			t.Errorf("it prints %q; want %q", out, want)
		}
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

	database := postgrestest.URL(t)
	environ, conn := environment(t, database), postgrestest.Conn(t, database)
	for _, email := range []string{"steve@example.com", "alex@example.com"} {
		succeed(t, environ, "correct horse", "user", "add", email)
	}
	if out := succeed(t, environ, "A **word**\r\nand more\n", "notify", "-user", "STEVE@example.com", " For you "); out != "users notified: 1\n" {
		t.Errorf("it prints %q", out)
	}
	var title, content string
	var receivers []int
	const latest = "SELECT title, content, array_agg(uid ORDER BY uid) FROM notifications JOIN messages USING (mid) GROUP BY mid, title, content ORDER BY mid DESC LIMIT 1"
	queryRow(t, conn, latest, &title, &content, &receivers)
	if title != "For you" || content != "A **word**\nand more\n" || !slices.Equal(receivers, []int{1}) {
		t.Errorf("%q, %q is for the users %v", title, content, receivers)
	}
	if out := succeed(t, environ, "Hear!", "notify", "-all", "For all"); out != "users notified: 2\n" {
		t.Errorf("it prints %q", out)
	}
	var audience string
	queryRow(t, conn, "SELECT title, content, audience FROM broadcasts JOIN messages USING (mid)", &title, &content, &audience)
	if title != "For all" || content != "Hear!" || audience != "all" {
		t.Errorf("%q, %q is for %s", title, content, audience)
	}
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
	var messages int
	queryRow(t, conn, "SELECT count(*) FROM messages", &messages)
	if messages != 2 {
		t.Errorf("there are %d messages; want 2", messages)
	}
}

func TestTextureAdd(t *testing.T) {
	t.Parallel()

	database := postgrestest.URL(t)
	environ, conn := environment(t, database), postgrestest.Conn(t, database)
	slim := paintedFile(t, "Slim Ranger.png", artwork.Ranger())
	succeed(t, environ, "correct horse", "user", "add", "steve@example.com")
	fails(t, "texture store", environ, "", "texture", "add", "-uploader", "steve@example.com", slim) // not prepared
	succeed(t, environ, "", "migrate")

	out := succeed(t, environ, "", "texture", "add", "-uploader", "STEVE@example.com", slim)
	var title, kind, item, hash string
	var public bool
	const added = "SELECT name, type, public, encode(hash, 'hex'), item_name FROM textures JOIN closet_items USING (tid) ORDER BY tid DESC LIMIT 1"
	queryRow(t, conn, added, &title, &kind, &public, &hash, &item)
	if title != "Slim Ranger" || kind != "alex" || !public || item != "Slim Ranger" {
		t.Errorf("the texture is %s, type %s, public %t, in the closet as %s", title, kind, public, item)
	}
	if want := "texture 1 added: Slim Ranger, type alex, hash " + hash + "\n"; out != want {
		t.Errorf("it prints %q; want %q", out, want)
	}
	directory := strings.TrimPrefix(environ[1], "CORE_OBJECTS_URL=file://")
	file, err := os.ReadFile(filepath.Join(directory, hash[:2], hash+".png"))
	if err != nil || skin.HashOf(file).String() != hash {
		t.Errorf("the stored file has %d bytes, %v", len(file), err)
	}

	succeed(t, environ, "", "texture", "add", "-uploader", "steve@example.com", "-name", "Dawn", "-type", "cape", "-private",
		paintedFile(t, "cape.png", artwork.Sunrise()))
	queryRow(t, conn, added, &title, &kind, &public, &hash, &item)
	if title != "Dawn" || kind != "cape" || public {
		t.Errorf("the texture is %s, type %s, public %t", title, kind, public)
	}

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
	file, err := sheet.PNG()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, file, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
