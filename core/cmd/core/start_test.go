package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/veneer-skins/veneer/core/postgres/postgrestest"
	"github.com/veneer-skins/veneer/shared/blobstore"
	"github.com/veneer-skins/veneer/shared/blobstore/blobstoretest"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// begins checks that an error begins with a text, contains all others, and contains no password.
func begins(t *testing.T, err error, begin string, more ...string) {
	t.Helper()
	if err == nil || !strings.HasPrefix(err.Error(), begin) || strings.Contains(err.Error(), "hunter2") {
		t.Fatalf("the error is %v; want one that begins with %q, without a password", err, begin)
	}
	for _, want := range more {
		testenv.ErrorHas(t, err, want, "the error")
	}
}

// wantServeFails runs core serve, which must fail before it listens. Its error must begin with
// a text and contain all others.
func wantServeFails(t *testing.T, environ []string, begin string, more ...string) {
	t.Helper()
	begins(t, serveError(t, environ, `"msg":"listening"`), begin, more...)
}

// wantServeWaits runs core serve, which must log a failed check of a dependency and then
// listen.
func wantServeWaits(t *testing.T, environ []string, dependency string, wants ...string) *serveProcess {
	t.Helper()
	s := startServe(t, environ)
	expect(t, "http://"+s.operators+"/livez", 200, "true")
	s.end(t)
	for _, line := range s.log {
		if strings.Contains(line, `"msg":"listening"`) {
			break
		}
		if !strings.Contains(line, `"msg":"dependency is not available","dependency":"`+dependency+`"`) {
			continue
		}
		for _, want := range wants {
			testenv.Contains(t, line, want, "the log has")
		}
		return s
	}
	t.Errorf("the log has no failed check of %s before core listens:\n%s", dependency, strings.Join(s.log, "\n"))
	return s
}

// changeURL returns a modified URL.
func changeURL(t *testing.T, address string, change func(*url.URL)) string {
	t.Helper()
	parsed := testenv.Must(url.Parse(address))(t)
	change(parsed)
	return parsed.String()
}

func TestServeWithoutItsDatabase(t *testing.T) {
	t.Parallel()

	database := postgrestest.URL(t)
	environ := environment(t, database)
	succeed(t, environ, "", "migrate")
	password := changeURL(t, database, func(u *url.URL) { u.User = url.UserPassword(u.User.Username(), "hunter2") })
	user := changeURL(t, database, func(u *url.URL) { u.User = url.UserPassword("veneer_unknown", "hunter2") })
	name := changeURL(t, database, func(u *url.URL) { u.Path = "/veneer_nowhere" })
	secure := changeURL(t, database, func(u *url.URL) {
		query := u.Query()
		query.Set("sslmode", "require")
		u.RawQuery = query.Encode()
	})
	gone := changeURL(t, database, func(u *url.URL) { u.Host = "127.0.0.1:1" })

	const example = "; for example CORE_DATABASE_URL=postgres://"
	wantServeFails(t, withSetting(environ, "CORE_DATABASE_URL", password), "CORE_DATABASE_URL has a user or a password that the server refuses: ", example)
	wantServeFails(t, withSetting(environ, "CORE_DATABASE_URL", user), "CORE_DATABASE_URL has a user or a password that the server refuses: ", "veneer_unknown", example)
	wantServeFails(t, withSetting(environ, "CORE_DATABASE_URL", name), "CORE_DATABASE_URL names a database that does not exist; create it, or name another: ", "veneer_nowhere", example)
	wantServeFails(t, withSetting(environ, "CORE_LISTEN_DATABASE_URL", password), "CORE_LISTEN_DATABASE_URL has a user or a password that the server refuses: ",
		"; for example CORE_LISTEN_DATABASE_URL=postgres://")
	wantServeFails(t, withSetting(environ, "CORE_LIBRARY_DATABASE_URL", password), "CORE_LIBRARY_DATABASE_URL has a user or a password that the server refuses: ",
		"; for example CORE_LIBRARY_DATABASE_URL=postgres://")
	wantServeFails(t, withSetting(environ, "CORE_DATABASE_URL", secure), "CORE_DATABASE_URL has an sslmode that asks for TLS, but the server offers none; leave sslmode out, or set sslmode=disable: ", example)
	wantServeWaits(t, withSetting(environ, "CORE_DATABASE_URL", gone), "postgres", "CORE_DATABASE_URL leads to a server that does not answer; start PostgreSQL, or correct the URL (", "connection refused", example)
	wantServeWaits(t, withSetting(environ, "CORE_LISTEN_DATABASE_URL", gone), "postgres for LISTEN", "CORE_LISTEN_DATABASE_URL leads to a server that does not answer; start PostgreSQL, or correct the URL (", "; for example CORE_LISTEN_DATABASE_URL=postgres://")
	wantServeWaits(t, withSetting(environ, "CORE_LIBRARY_DATABASE_URL", gone), "postgres for lists", "CORE_LIBRARY_DATABASE_URL leads to a server that does not answer; start PostgreSQL, or correct the URL (", "; for example CORE_LIBRARY_DATABASE_URL=postgres://")

	// Other commands report the same.
	fails(t, "CORE_DATABASE_URL has a user or a password that the server refuses: ", withSetting(environ, "CORE_DATABASE_URL", password), "", "migrate")
	fails(t, "CORE_LISTEN_DATABASE_URL has a user or a password that the server refuses: ", withSetting(environ, "CORE_LISTEN_DATABASE_URL", password), "", "migrate")
	fails(t, "CORE_DATABASE_URL names a database that does not exist", withSetting(environ, "CORE_DATABASE_URL", name), "correct horse", "user", "add", "ann@example.com")
	fails(t, "CORE_DATABASE_URL leads to a server that does not answer", withSetting(environ, "CORE_DATABASE_URL", gone), "", "notify", "-all", "Title")
}

// Without a schema and a prepared texture store, core starts and waits for core migrate.
func TestServeBeforeMigrate(t *testing.T) {
	t.Parallel()

	environ := environment(t, postgrestest.Empty(t))
	s := wantServeWaits(t, environ, "postgres", "CORE_DATABASE_URL leads to a database without a schema; run core migrate")
	if !s.logged(`"dependency":"objects","error":"CORE_OBJECTS_URL is \"file://`) || !s.logged("no texture store was prepared; run core migrate") {
		t.Errorf("the log lacks the texture store:\n%s", strings.Join(s.log, "\n"))
	}
	fails(t, "CORE_DATABASE_URL leads to a database without a schema; run core migrate", environ, "correct horse", "user", "add", "ann@example.com")
	wantServeFails(t, append(environ, "CORE_DEMO=1"), "CORE_DATABASE_URL leads to a database without a schema; run core migrate")
}

func TestServeWithoutItsStore(t *testing.T) {
	t.Parallel()

	environ := environment(t, postgrestest.URL(t))
	wantServeFails(t, environ, `CORE_OBJECTS_URL is "file://`, "no texture store was prepared; run core migrate", "not mounted", "; for example CORE_OBJECTS_URL=file:///var/lib/veneer/textures")
	wantServeFails(t, withSetting(environ, "CORE_OBJECTS_URL", "file:///dev/null/textures"), `CORE_OBJECTS_URL is "file:///dev/null/textures", a directory that this user cannot use: `)
	_, err := invoke(t, withSetting(environ, "CORE_OBJECTS_URL", "file:///dev/null/textures"), "", "migrate")
	begins(t, err, `CORE_OBJECTS_URL is "file:///dev/null/textures", a directory that this user cannot use: `)

	place := blobstoretest.Bucket(t)
	with := func(change func(*blobstore.Config)) []string {
		c, changed := place.Config, environ
		change(&c)
		for name, value := range map[string]string{
			"URL": c.URL, "ENDPOINT": c.Endpoint, "ACCESS_KEY": c.AccessKey, "SECRET_KEY": c.SecretKey, "REGION": c.Region,
		} {
			changed = withSetting(changed, "CORE_OBJECTS_"+name, value)
		}
		return changed
	}
	same := func(*blobstore.Config) {}
	wantServeFails(t, with(same), `CORE_OBJECTS_URL is "s3://`, "there is no such bucket; run core migrate", "; for example CORE_OBJECTS_URL=s3://veneer")
	succeed(t, with(same), "", "migrate")
	startServe(t, with(same)).end(t)
	wantServeFails(t, with(func(c *blobstore.Config) { c.URL += "/else" }), `CORE_OBJECTS_URL is "s3://`, "no texture store was prepared; run core migrate")
	other := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(other.Close)
	wantServeFails(t, with(func(c *blobstore.Config) { c.Endpoint = other.URL }), `CORE_OBJECTS_ENDPOINT is "`+other.URL+`", where no S3 store answers: `, "; for example CORE_OBJECTS_ENDPOINT=http")
	_, err = invoke(t, with(func(c *blobstore.Config) { c.Endpoint = other.URL }), "", "migrate")
	begins(t, err, `CORE_OBJECTS_ENDPOINT is "`+other.URL+`", where no S3 store answers: `)
	wantServeFails(t, with(func(c *blobstore.Config) { c.AccessKey = "unknown" }), "CORE_OBJECTS_ACCESS_KEY is none that the store at", "; for example CORE_OBJECTS_ACCESS_KEY=veneer")
	wantServeFails(t, with(func(c *blobstore.Config) { c.SecretKey = "hunter2hunter2" }), "CORE_OBJECTS_SECRET_KEY is not the one of the access key", "; for example CORE_OBJECTS_SECRET_KEY=")
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, "<Error><Code>AuthorizationHeaderMalformed</Code><Message>expecting 'eu-west-1'</Message><Region>eu-west-1</Region></Error>")
	}))
	t.Cleanup(elsewhere.Close)
	wantServeFails(t, with(func(c *blobstore.Config) { c.Endpoint = elsewhere.URL }), "CORE_OBJECTS_REGION is not that of the store", "eu-west-1", "; for example CORE_OBJECTS_REGION=us-east-1")

	wantServeWaits(t, with(func(c *blobstore.Config) { c.Endpoint = "http://127.0.0.1:1" }), "objects", `CORE_OBJECTS_ENDPOINT is \"http://127.0.0.1:1\", where the store does not answer; start it, or correct the address: `, "; for example CORE_OBJECTS_ENDPOINT=http://")
	starting := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }))
	t.Cleanup(starting.Close)
	wantServeWaits(t, with(func(c *blobstore.Config) { c.Endpoint = starting.URL }), "objects", "where the store does not answer; ")
}

// The error for two listeners at one address differs from that for another program there.
func TestServeTwiceAtOneAddress(t *testing.T) {
	t.Parallel()

	environ := environment(t, postgrestest.URL(t))
	succeed(t, environ, "", "migrate")
	s := startServe(t, environ)
	address := s.edges
	s.end(t)
	err := serveError(t, withSetting(withSetting(environ, "CORE_EDGES_LISTEN", address), "CORE_OPS_LISTEN", address), "")
	want := "CORE_OPS_LISTEN is " + address + ", which is taken by CORE_EDGES_LISTEN=" + address +
		": each needs an address of its own; for example CORE_OPS_LISTEN=127.0.0.1:9080"
	testenv.Equal(t, err.Error(), want, "the error")
}
