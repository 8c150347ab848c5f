package console_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/core/api"
	"github.com/veneer-skins/veneer/core/console"
	"github.com/veneer-skins/veneer/core/postgres/postgrestest"
	"github.com/veneer-skins/veneer/shared/config"
	"github.com/veneer-skins/veneer/shared/httpserver"
	"github.com/veneer-skins/veneer/shared/httpserver/clientip"
)

const (
	email, password = "ann@example.com", "correct horse"
	signIn          = `{"email":"` + email + `","password":"` + password + `"}`
	sessionPath     = "/console/session"
	tokenPath       = sessionPath + "/token"
)

// testConfig has the settings of the program core that tests set.
type testConfig struct {
	API api.Config
	core.SessionLimits
	Players core.PlayerLimits `envPrefix:"PLAYER_"`
	Logins  core.LoginLimits  `envPrefix:"LIMIT_"`
	Limits  httpserver.Limits
	Proxies clientip.Config
}

// testSite is a database with one user, shared by the servers of a test.
type testSite struct {
	setup testConfig
	url   string
	sql   *pgx.Conn
	now   atomic.Int64 // of the servers, in seconds
	log   bytes.Buffer
}

// newSite returns a site. environ are settings as NAME=value; the others have their defaults.
func newSite(t *testing.T, environ ...string) *testSite {
	t.Helper()
	settings, err := config.Read[testConfig]("", environ)
	if err != nil {
		t.Fatal(err)
	}
	address := postgrestest.URL(t)
	s := &testSite{setup: settings, url: address, sql: postgrestest.Conn(t, address)}
	s.now.Store(time.Date(2031, 2, 3, 4, 5, 6, 0, time.UTC).Unix())
	return s
}

func (s *testSite) advance(d time.Duration) { s.now.Add(int64(d / time.Second)) }

// sessions returns the number of sessions.
func (s *testSite) sessions(t *testing.T) int {
	t.Helper()
	var n int
	if err := s.sql.QueryRow(t.Context(), "SELECT count(*) FROM sessions").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func (s *testSite) exec(t *testing.T, sql string) {
	t.Helper()
	if _, err := s.sql.Exec(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
}

// serve starts a server, with its own connections to the database, and returns a client.
func (s *testSite) serve(t *testing.T) client {
	t.Helper()
	clock := func() time.Time { return time.Unix(s.now.Load(), 0) }
	names, err := core.NewPlayerNames(s.setup.Players)
	if err != nil {
		t.Fatal(err)
	}
	var ring core.KeyRing
	if err := ring.UnmarshalText([]byte("test:a2tra2tra2tra2tra2tra2tra2tra2tra2tra2tra2s=")); err != nil {
		t.Fatal(err)
	}
	db, passwords := postgrestest.Connect(t, s.url), core.NewPasswords()
	logins := core.NewLogins(db, passwords, s.setup.Logins, clock)
	sessions := core.NewSessions(db, logins, core.NewTokens(ring, "veneer", s.setup.TokenTTL, clock), s.setup.SessionLimits, clock)
	log := slog.New(slog.NewTextHandler(&s.log, nil))
	options := httpserver.Options{Log: log, Limits: s.setup.Limits, Proxies: clientip.New(s.setup.Proxies, slog.New(slog.DiscardHandler))}
	public, err := api.New(options, api.Services{
		Sessions: sessions, Users: core.NewUsers(db, passwords, names, core.Scores{}, false), Accounts: core.NewAccounts(db, logins, passwords, false), Check: db.Check,
	}, s.setup.API, 1<<20, clock)
	if err != nil {
		t.Fatal(err)
	}
	server, err := console.New(options, sessions, console.Site{UserJSON: api.UserJSON}, public.Limiters())
	if err != nil {
		t.Fatal(err)
	}
	public.MountConsole(api.Mount{Root: console.Root, Handler: server.Handler})
	return connect(t, public.HTTP())
}

// start starts a server on a new site, registers its user and returns a client.
func start(t *testing.T, environ ...string) (*testSite, client) {
	t.Helper()
	s := newSite(t, environ...)
	c := s.serve(t)
	s.register(t, c)
	return s, c
}

// register registers the user of the site and returns the token of its first session.
func (s *testSite) register(t *testing.T, c client) (token string) {
	t.Helper()
	response := c.send(t, "POST", "/api/auth/register", `{"email":"`+email+`","password":"`+password+`","nickname":"Ann"}`, "Content-Type", "application/json")
	var registered struct{ Data struct{ Token string } }
	if err := json.Unmarshal(response.Body(), &registered); err != nil || registered.Data.Token == "" {
		t.Fatalf("register: %d %s", response.StatusCode(), response.Body())
	}
	return registered.Data.Token
}

// ownPage are the headers of a page's request, with a cookie unless it is empty.
func ownPage(cookie string) []string {
	headers := []string{"Sec-Fetch-Site", "same-origin", "Origin", "https://veneer.test", "Content-Type", "application/json"}
	if cookie != "" {
		headers = append(headers, "Cookie", "__Secure-veneer="+cookie)
	}
	return headers
}

// answer is the response of a session route.
type answer struct {
	status    int
	body      string
	token     string
	expiresIn int
	cookie    *fasthttp.Cookie // nil if none is set
	setCookie string           // as it is sent
}

func (c client) call(t *testing.T, method, path, body string, headers ...string) answer {
	t.Helper()
	response := c.send(t, method, path, body, headers...)
	checkHeaders(t, method+" "+path, response, map[string]string{
		"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
		"Cross-Origin-Resource-Policy": "same-origin", "Access-Control-Allow-Origin": "", "Access-Control-Allow-Credentials": "",
	})
	a := answer{status: response.StatusCode(), body: string(response.Body()), setCookie: string(response.Header.Peek("Set-Cookie"))}
	if a.setCookie != "" {
		a.cookie = new(fasthttp.Cookie)
		if err := a.cookie.Parse(a.setCookie); err != nil {
			t.Fatal(err)
		}
	}
	if a.status == 200 {
		var content map[string]any
		if err := json.Unmarshal(response.Body(), &content); err != nil || len(content) != 3 {
			t.Fatalf("%s %s: %s", method, path, a.body)
		}
		expiresIn, _ := content["expires_in"].(float64)
		a.token, _ = content["token"].(string)
		a.expiresIn = int(expiresIn)
		if a.cookie == nil || string(a.cookie.Value()) != a.token {
			t.Errorf("%s %s: the cookie is %q; want the token %q", method, path, a.setCookie, a.token)
		}
	}
	return a
}

// is checks the status and the beginning of the body.
func (a answer) is(t *testing.T, what string, status int, body string) answer {
	t.Helper()
	if a.status != status || !strings.HasPrefix(a.body, body) {
		t.Errorf("%s: %d %s; want %d %s", what, a.status, a.body, status, body)
	}
	return a
}

// deletes checks that a response deletes the cookie.
func (a answer) deletes(t *testing.T, what string) {
	t.Helper()
	const want = "__Secure-veneer=; expires=Tue, 10 Nov 2009 23:00:00 GMT; path=/console/session; HttpOnly; secure; SameSite=Strict"
	if a.setCookie != want {
		t.Errorf("%s: Set-Cookie is %q; want %q", what, a.setCookie, want)
	}
}

// works checks whether the API accepts a token.
func (c client) works(t *testing.T, token string, want bool) {
	t.Helper()
	if got := c.send(t, "GET", "/api/user", "", "Authorization", "Bearer "+token).StatusCode(); (got == 200) != want {
		t.Errorf("the API answers a token with %d; want it to work: %t", got, want)
	}
}

// The root of core leads to the console, and tells launchers nothing where there is no API for them.
func TestRoot(t *testing.T) {
	t.Parallel()
	c := newSite(t).serve(t)
	for _, method := range []string{"GET", "HEAD"} {
		got := c.send(t, method, "/", "", "Accept", "text/html")
		if got.StatusCode() != 302 || string(got.Header.Peek("Location")) != "/console/" {
			t.Errorf("%s /: %d to %q", method, got.StatusCode(), got.Header.Peek("Location"))
		}
		checkHeaders(t, "/", got, map[string]string{"Cache-Control": "no-store", "X-Authlib-Injector-Api-Location": ""})
	}
	if got := c.send(t, "GET", "/consoles", "").StatusCode(); got != 404 {
		t.Errorf("/consoles: %d; want 404", got)
	}
}

func TestSignIn(t *testing.T) {
	t.Parallel()
	site, c := start(t)
	got := c.call(t, "POST", sessionPath, signIn, ownPage("")...).is(t, "sign in", 200, `{"token":"`)
	if want := string(c.send(t, "GET", "/api/user", "", "Authorization", "Bearer "+got.token).Body()); !strings.HasSuffix(got.body, `"user":`+want+"}") {
		t.Errorf("signing in responds with %s; want the user as in %s", got.body, want)
	}
	if want := "__Secure-veneer=" + got.token + "; max-age=1209600; path=/console/session; HttpOnly; secure; SameSite=Strict"; got.setCookie != want {
		t.Errorf("Set-Cookie is %q; want %q", got.setCookie, want)
	}
	if got.expiresIn != 3600 {
		t.Errorf("the token works for %d s; want 3600", got.expiresIn)
	}
	c.works(t, got.token, true)

	for body, want := range map[string]string{
		`{}`:                          `{"code":4,"message":"The e-mail address and the password are required.","errors":{"email":["The field email is required."],"password":["The field password is required."]}}`,
		`{"email":"ann@example.com"}`: `{"code":4,"message":"The e-mail address and the password are required.","errors":{"password":["The field password is required."]}}`,
		`{"email":"a\u0000b","password":"correct horse"}`: `{"code":4,"message":"The e-mail address must be text without control characters.","errors":{"email":["`,
	} {
		if a := c.call(t, "POST", sessionPath, body, ownPage("")...).is(t, body, 422, want); a.cookie != nil {
			t.Errorf("%s sets %s", body, a.setCookie)
		}
	}
	for _, body := range []string{"", "{", "[]", `{"email":5,"password":"x"}`, `{"email":"\ud83d","password":"x"}`} {
		want := 400
		if body == "" {
			want = 422
		}
		c.call(t, "POST", sessionPath, body, ownPage("")...).is(t, body, want, `{"code":4,`)
	}
	c.call(t, "POST", sessionPath, `{"email":"`+strings.Repeat("x", 20<<10)+`"}`, ownPage("")...).is(t, "a large body", 413, `{"code":4,`)

	// Refusals are those of the API.
	for _, body := range []string{`{"email":"ann@example.com","password":"wrong horse"}`, `{"email":"eve@example.com","password":"correct horse"}`} {
		want := c.send(t, "POST", "/api/auth/login", body, "Content-Type", "application/json")
		a := c.call(t, "POST", sessionPath, body, ownPage("")...).is(t, body, 401, string(want.Body()))
		if a.cookie != nil {
			t.Errorf("%s sets %s", body, a.setCookie)
		}
	}
	site.exec(t, "UPDATE users SET permission = -1")
	c.call(t, "POST", sessionPath, signIn, ownPage("")...).is(t, "a banned user", 403, `{"code":-1,`)
}

// Log-ins of the console and of the API count for the same limits, and so do requests.
func TestLimitsAreShared(t *testing.T) {
	t.Parallel()
	_, c := start(t, "LIMIT_LOGIN_FAILURES=2")
	const wrong = `{"email":"ann@example.com","password":"wrong horse"}`
	c.call(t, "POST", sessionPath, wrong, ownPage("")...).is(t, "first", 401, "")
	if got := c.send(t, "POST", "/api/auth/login", wrong, "Content-Type", "application/json").StatusCode(); got != 401 {
		t.Errorf("second: %d", got)
	}
	c.call(t, "POST", sessionPath, signIn, ownPage("")...).is(t, "third", 429, `{"code":8,`)

	_, c = start(t, "LIMIT_REQUESTS=1", "LIMIT_REQUESTS_BURST=2") // the registration was the first
	c.call(t, "POST", tokenPath, "{}", ownPage("")...).is(t, "second request", 204, "")
	c.call(t, "POST", tokenPath, "{}", ownPage("")...).is(t, "third request", 429, `{"code":8,`)
	c.call(t, "POST", tokenPath, "{}", "Sec-Fetch-Site", "cross-site").is(t, "a foreign request", 429, `{"code":8,`)
}

// No page of another site can use the session routes, whatever it sends.
func TestForeignRequests(t *testing.T) {
	t.Parallel()
	site, c := start(t)
	cookie := c.call(t, "POST", sessionPath, signIn, ownPage("")...).token
	const json, own = "application/json", "https://veneer.test"
	sessions := site.sessions(t)
	f := func(status int, headers ...string) {
		t.Helper()
		headers = append(headers, "Cookie", "__Secure-veneer="+cookie)
		for _, request := range [][3]string{{"POST", sessionPath, signIn}, {"POST", tokenPath, "{}"}, {"DELETE", sessionPath, "{}"}} {
			what := fmt.Sprintf("%s %s with %q", request[0], request[1], headers)
			if a := c.call(t, request[0], request[1], request[2], headers...).is(t, what, status, ""); a.cookie != nil {
				t.Errorf("%s sets %s", what, a.setCookie)
			}
		}
	}
	// Sec-Fetch-Site decides; Origin does not help against it.
	for _, foreign := range []string{"cross-site", "same-site", "none", "", "Same-Origin", "same-origin, cross-site"} {
		f(403, "Sec-Fetch-Site", foreign, "Origin", own, "Content-Type", json)
	}
	f(403, "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Site", "same-origin", "Content-Type", json)
	f(403, "Sec-Fetch-Site", "same-origin", "Sec-Fetch-Site", "same-origin", "Content-Type", json)
	// Without it Origin does.
	for _, foreign := range []string{"https://evil.test", "https://veneer.test.evil.test", "https://evil.test/veneer.test", "https://veneer.test:8443", "null", "", "veneer.test", "https://veneer.test@evil.test", "://"} {
		f(403, "Origin", foreign, "Content-Type", json)
	}
	f(403, "Content-Type", json)
	f(403, "Referer", own+"/console/", "Content-Type", json)
	f(403, "Origin", own, "Origin", "https://evil.test", "Content-Type", json)
	f(403, "Origin", "https://evil.test", "X-Forwarded-Host", "evil.test", "Content-Type", json)
	// A form cannot send JSON.
	for _, kind := range []string{"", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/json; charset=latin1", "text/plain; application/json"} {
		f(415, "Sec-Fetch-Site", "same-origin", "Origin", own, "Content-Type", kind)
	}
	// There are no preflights, and nothing to be fetched.
	for _, path := range []string{sessionPath, tokenPath} {
		for _, method := range []string{"OPTIONS", "GET", "HEAD", "PUT"} {
			c.call(t, method, path, "", append(ownPage(cookie), "Access-Control-Request-Method", "POST")...).is(t, method+" "+path, 405, "")
		}
	}
	if got := site.sessions(t); got != sessions {
		t.Errorf("there are %d sessions; want %d", got, sessions)
	}
	c.works(t, cookie, true)

	// Browsers without Sec-Fetch-Site, and with other spellings of the same.
	for _, headers := range [][]string{
		{"Origin", own, "Content-Type", json},
		{"Origin", "https://VENEER.test", "Content-Type", "Application/JSON; charset=UTF-8"},
		{"Origin", "https://skins.test:8443", "Host", "skins.test:8443", "Content-Type", json},
	} {
		c.call(t, "POST", tokenPath, "", append(headers, "Cookie", "__Secure-veneer="+cookie)...).is(t, fmt.Sprint(headers), 200, "")
	}
}

// Behind trusted proxies the host is the one that they forward.
func TestForwardedHost(t *testing.T) {
	t.Parallel()
	_, c := start(t, "TRUSTED_PROXIES=0.0.0.0/32") // the address of the tests' connections
	f := func(status int, origin string, headers ...string) {
		t.Helper()
		c.call(t, "POST", tokenPath, "", append(headers, "Origin", origin, "Content-Type", "application/json")...).is(t, origin+fmt.Sprint(headers), status, "")
	}
	f(204, "https://skins.test", "X-Forwarded-Host", "skins.test")
	f(204, "https://skins.test", "X-Forwarded-Host", "skins.test, core.test")
	f(204, "https://veneer.test")
	f(403, "https://veneer.test", "X-Forwarded-Host", "skins.test")
	f(403, "https://core.test", "X-Forwarded-Host", "skins.test, core.test")
}

// The cookie brings back the same token until it is about to expire, and then its successor.
func TestToken(t *testing.T) {
	t.Parallel()
	site, c := start(t)
	c.call(t, "POST", tokenPath, "{}", ownPage("")...).is(t, "without a cookie", 204, "")
	first := c.call(t, "POST", sessionPath, signIn, ownPage("")...).token
	site.advance(49*time.Minute + 59*time.Second)
	same := c.call(t, "POST", tokenPath, "{}", ownPage(first)...).is(t, "before", 200, "")
	if same.token != first || same.expiresIn != 601 {
		t.Errorf("with 601 s left: %s for %d s; want the same token", same.token, same.expiresIn)
	}
	site.advance(time.Second)

	// Tabs that ask at once get the same successor.
	const tabs = 8
	tokens := make([]string, tabs)
	var asking sync.WaitGroup
	for i := range tabs {
		asking.Go(func() { tokens[i] = c.call(t, "POST", tokenPath, "{}", ownPage(first)...).token })
	}
	asking.Wait()
	second := tokens[0]
	for _, token := range tokens {
		if token == first || token != second {
			t.Errorf("tabs got %q", tokens)
			break
		}
	}
	c.works(t, first, true) // for 30 s
	c.works(t, second, true)
	site.advance(31 * time.Second)
	c.works(t, first, false)

	// A server that starts anew continues the session, also after days, when the token has expired.
	c = site.serve(t)
	site.advance(13 * 24 * time.Hour)
	c.works(t, second, false)
	third := c.call(t, "POST", tokenPath, "{}", ownPage(second)...).is(t, "after days", 200, "")
	if third.token == second || third.expiresIn != 3600 {
		t.Errorf("after days: %s for %d s", third.token, third.expiresIn)
	}
	c.works(t, third.token, true)

	// A cookie that was stolen and used ends the session, as with the API.
	site.advance(time.Minute)
	c.call(t, "POST", tokenPath, "{}", ownPage(second)...).is(t, "a replaced token", 401, `{"code":5,`).deletes(t, "a replaced token")
	c.works(t, third.token, false)
	c.call(t, "POST", tokenPath, "{}", ownPage(third.token)...).is(t, "an ended session", 401, `{"code":5,`).deletes(t, "an ended session")
}

func TestTokenIsRefused(t *testing.T) {
	t.Parallel()
	site, c := start(t)
	token := c.call(t, "POST", sessionPath, signIn, ownPage("")...).token
	for what, cookie := range map[string]string{"nonsense": "nonsense", "a forged token": token[:len(token)-4] + "AAAA"} {
		c.call(t, "POST", tokenPath, "{}", ownPage(cookie)...).is(t, what, 401, `{"code":5,`).deletes(t, what)
	}
	// A cookie without the prefix could come from a page on plain HTTP.
	c.call(t, "POST", tokenPath, "{}", append(ownPage(""), "Cookie", "veneer="+token)...).is(t, "a cookie of plain HTTP", 204, "")

	// A ban may be lifted, so the cookie stays.
	site.exec(t, "UPDATE users SET permission = -1")
	for range 2 {
		if a := c.call(t, "POST", tokenPath, "{}", ownPage(token)...).is(t, "a banned user", 403, `{"code":-1,`); a.cookie != nil {
			t.Errorf("a ban sets %s", a.setCookie)
		}
		site.advance(55 * time.Minute)
	}
	site.exec(t, "UPDATE users SET permission = 0")
	fresh := c.call(t, "POST", tokenPath, "{}", ownPage(token)...).is(t, "after the ban", 200, "").token

	site.advance(14*24*time.Hour + time.Second)
	c.call(t, "POST", tokenPath, "{}", ownPage(fresh)...).is(t, "after two weeks", 401, `{"code":5,`).deletes(t, "after two weeks")
}

// Tokens that live for less than an hour are replaced at a sixth of their life.
func TestShortTokens(t *testing.T) {
	t.Parallel()
	site, c := start(t, "TOKEN_TTL=60s")
	token := c.call(t, "POST", sessionPath, signIn, ownPage("")...).token
	site.advance(49 * time.Second)
	if got := c.call(t, "POST", tokenPath, "{}", ownPage(token)...); got.token != token || got.expiresIn != 11 {
		t.Errorf("with 11 s left: %d %d; want the same token", got.status, got.expiresIn)
	}
	site.advance(time.Second)
	if got := c.call(t, "POST", tokenPath, "{}", ownPage(token)...); got.token == token || got.expiresIn != 60 {
		t.Errorf("with 10 s left: %d %d; want a new token", got.status, got.expiresIn)
	}
}

func TestSignOut(t *testing.T) {
	t.Parallel()
	site, c := start(t)
	c.call(t, "DELETE", sessionPath, "{}", ownPage("")...).is(t, "without a cookie", 204, "").deletes(t, "without a cookie")
	c.call(t, "DELETE", sessionPath, "", ownPage("nonsense")...).is(t, "with nonsense", 204, "").deletes(t, "with nonsense")
	for _, wait := range []time.Duration{0, 2 * time.Hour} { // an expired token too
		token := c.call(t, "POST", sessionPath, signIn, ownPage("")...).token
		site.advance(wait)
		c.call(t, "DELETE", sessionPath, "", ownPage(token)...).is(t, "sign out", 204, "").deletes(t, "sign out")
		c.works(t, token, false)
		c.call(t, "DELETE", sessionPath, "", ownPage(token)...).is(t, "once more", 204, "").deletes(t, "once more")
		c.call(t, "POST", tokenPath, "{}", ownPage(token)...).is(t, "the token", 401, `{"code":5,`)
	}
}

// The session that a registration opens is kept in the cookie too.
func TestSignInWithToken(t *testing.T) {
	t.Parallel()
	site := newSite(t)
	c := site.serve(t)
	token := site.register(t, c)
	sessions := site.sessions(t)
	got := c.call(t, "POST", sessionPath, `{"token":"`+token+`"}`, ownPage("")...).is(t, "a token", 200, "")
	if got.token != token || got.cookie.MaxAge() != 14*24*3600 {
		t.Errorf("Set-Cookie is %q; want the token %s", got.setCookie, token)
	}
	if n := site.sessions(t); n != sessions {
		t.Errorf("there are %d sessions; want %d", n, sessions)
	}
	c.call(t, "POST", sessionPath, `{"token":""}`, ownPage("")...).is(t, "an empty token", 401, `{"code":5,`)
	c.call(t, "POST", sessionPath, `{"token":"x.y.z"}`, ownPage("")...).is(t, "a forged token", 401, `{"code":5,`)
}

// Over plain HTTP browsers accept no Secure cookie, but on loopback they do.
func TestPlainHTTP(t *testing.T) {
	t.Parallel()
	site, c := start(t)
	f := func(origin, want string) {
		t.Helper()
		host := strings.TrimPrefix(strings.TrimPrefix(origin, "http://"), "https://")
		headers := []string{"Origin", origin, "Host", host, "Content-Type", "application/json"}
		got := c.call(t, "POST", sessionPath, signIn, headers...).is(t, origin, 200, "")
		if want = strings.ReplaceAll(want, "TOKEN", got.token); got.setCookie != want {
			t.Errorf("%s: Set-Cookie is %q; want %q", origin, got.setCookie, want)
		}
		name, _, _ := strings.Cut(want, "=")
		if again := c.call(t, "POST", tokenPath, "", append(headers, "Cookie", name+"="+got.token)...); again.token != got.token || again.setCookie != want {
			t.Errorf("%s: the cookie %s brings %d, %q", origin, name, again.status, again.setCookie)
		}
	}
	const rest = "=TOKEN; max-age=1209600; path=/console/session; HttpOnly; "
	for _, origin := range []string{"https://skins.test", "https://192.0.2.1:8443", "http://127.0.0.1:8081", "http://127.1.2.3", "http://localhost:8081", "http://skins.localhost", "http://[::1]:8081"} {
		f(origin, "__Secure-veneer"+rest+"secure; SameSite=Strict")
	}
	if logged := site.log.String(); logged != "" {
		t.Errorf("the log has %s", logged)
	}
	for _, origin := range []string{"http://skins.test", "http://192.0.2.1:8081", "http://localhost.evil.test", "http://[2001:db8::1]"} {
		f(origin, "veneer"+rest+"SameSite=Strict")
	}
	if logged := site.log.String(); strings.Count(logged, "plain HTTP") != 1 || !strings.Contains(logged, "origin=http://skins.test") {
		t.Errorf("the log has %s; want one warning", logged)
	}
	headers := []string{"Origin", "http://skins.test", "Host", "skins.test", "Content-Type", "application/json"}
	token := c.call(t, "POST", sessionPath, signIn, headers...).token
	c.call(t, "POST", tokenPath, "", append(headers, "Cookie", "__Secure-veneer="+token)...).is(t, "the secure cookie over plain HTTP", 204, "")
	if got := c.call(t, "DELETE", sessionPath, "", append(headers, "Cookie", "veneer="+token)...).setCookie; got != "veneer=; expires=Tue, 10 Nov 2009 23:00:00 GMT; path=/console/session; HttpOnly; SameSite=Strict" {
		t.Errorf("signing out sets %q", got)
	}
	c.works(t, token, false)
}
