package console_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/core/api"
	"github.com/veneer-skins/veneer/core/console"
	"github.com/veneer-skins/veneer/core/coretest"
	"github.com/veneer-skins/veneer/shared/testenv"
	"github.com/veneer-skins/veneer/shared/testenv/cmptest"
)

const (
	email, password = "ann@example.com", "correct horse"
	signIn          = `{"email":"` + email + `","password":"` + password + `"}`
	sessionPath     = "/console/session"
	tokenPath       = sessionPath + "/token"
)

// testSite is a site with one user, and the log of its servers.
type testSite struct {
	*coretest.Site
	log *bytes.Buffer
}

// newSite returns a site. environ are settings as NAME=value; the others have their defaults.
func newSite(t *testing.T, environ ...string) testSite {
	t.Helper()
	s := testSite{coretest.NewSite(t, environ...), new(bytes.Buffer)}
	s.Log = slog.New(slog.NewTextHandler(s.log, nil))
	return s
}

// sessions returns the number of sessions.
func (s testSite) sessions(t *testing.T) int {
	t.Helper()
	return s.Count(t, "SELECT count(*) FROM sessions")
}

// serve starts a server, with its own connections to the database, and returns a client.
func (s testSite) serve(t *testing.T) client {
	t.Helper()
	d := s.NewDomain(t)
	public := s.NewAPI(t, s.Options(), d.Services)
	site := console.Site{Branding: s.Setup.Site, Texts: s.Pages.Texts, UserJSON: api.UserJSON}
	server := testenv.Must(console.New(s.Options(), d.Sessions, site, public.Limiters()))(t)
	public.MountConsole(api.Mount{Root: console.Root, Handler: server.Handler})
	return connect(t, public.HTTP())
}

// start starts a server on a new site, registers its user and returns a client.
func start(t *testing.T, environ ...string) (testSite, client) {
	t.Helper()
	s := newSite(t, environ...)
	c := s.serve(t)
	s.register(t, c)
	return s, c
}

// register registers the user of the site and returns the token of its first session.
func (s testSite) register(t *testing.T, c client) (token string) {
	t.Helper()
	got := c.Post(t, "/api/auth/register", map[string]string{"email": email, "password": password, "nickname": "Ann"})
	return got.Field(t, "data", "token")
}

// ownPage are the headers of a page's request, with a cookie unless it is empty.
func ownPage(cookie string) []string {
	headers := []string{"Sec-Fetch-Site", "same-origin", "Origin", "https://veneer.test", "Content-Type", "application/json"}
	if cookie != "" {
		headers = append(headers, "Cookie", "__Host-veneer="+cookie)
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
	response := c.Send(t, method, path, coretest.Raw("", body), headers...)
	checkHeaders(t, method+" "+path, response, map[string]string{
		"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
		"Cross-Origin-Resource-Policy": "same-origin", "Access-Control-Allow-Origin": "", "Access-Control-Allow-Credentials": "",
	})
	a := answer{status: response.Status, body: string(response.Body), setCookie: response.Header.Get("Set-Cookie")}
	if a.setCookie != "" {
		a.cookie = new(fasthttp.Cookie)
		testenv.Do(t, a.cookie.Parse(a.setCookie))
	}
	if a.status == 200 {
		var content map[string]any
		response.Decode(t, &content)
		testenv.Equal(t, len(content), 3, "%s %s: %s: the number of fields", method, path, a.body)
		expiresIn, _ := content["expires_in"].(float64)
		a.token, _ = content["token"].(string)
		a.expiresIn = int(expiresIn)
		testenv.Check(t, a.cookie != nil && string(a.cookie.Value()) == a.token,
			"%s %s: the cookie is %q; want the token %q", method, path, a.setCookie, a.token)
	}
	return a
}

// is checks the status and the beginning of the body.
func (a answer) is(t *testing.T, what string, status int, body string) answer {
	t.Helper()
	testenv.Check(t, a.status == status && strings.HasPrefix(a.body, body),
		"%s: %d %s; want %d %s", what, a.status, a.body, status, body)
	return a
}

// deletes checks that a response deletes the cookie.
func (a answer) deletes(t *testing.T, what string) {
	t.Helper()
	const want = "__Host-veneer=; expires=Tue, 10 Nov 2009 23:00:00 GMT; path=/; HttpOnly; secure; SameSite=Strict"
	testenv.Equal(t, a.setCookie, want, "%s: Set-Cookie", what)
}

// user asks the API for the user of a token.
func (c client) user(t *testing.T, token string) coretest.Response {
	t.Helper()
	c.Token = token
	return c.Get(t, "/api/user")
}

// works checks whether the API accepts a token.
func (c client) works(t *testing.T, token string, want bool) {
	t.Helper()
	got := c.user(t, token).Status
	testenv.Equal(t, got == 200, want, "the API answers a token with %d, so it works", got)
}

func TestSignIn(t *testing.T) {
	t.Parallel()
	site, c := start(t)
	got := c.call(t, "POST", sessionPath, signIn, ownPage("")...).is(t, "sign in", 200, `{"token":"`)
	if user := string(c.user(t, got.token).Body); !strings.HasSuffix(got.body, `"user":`+user+"}") {
		t.Errorf("signing in responds with %s; want the user as in %s", got.body, user)
	}
	const rest = "; max-age=1209600; path=/; HttpOnly; secure; SameSite=Strict"
	testenv.Equal(t, got.setCookie, "__Host-veneer="+got.token+rest, "Set-Cookie")
	testenv.Equal(t, got.expiresIn, 3600, "the seconds for which the token works")
	c.works(t, got.token, true)

	for body, want := range map[string]string{
		`{}`:                          `{"code":4,"message":"The player name or e-mail address and the password are required.","errors":{"email":["The field email is required."],"password":["The field password is required."]}}`,
		`{"email":"ann@example.com"}`: `{"code":4,"message":"The player name or e-mail address and the password are required.","errors":{"password":["The field password is required."]}}`,
		`{"email":"a\u0000b","password":"correct horse"}`: `{"code":4,"message":"The e-mail address must be text without control characters.","errors":{"email":["`,
	} {
		a := c.call(t, "POST", sessionPath, body, ownPage("")...).is(t, body, 422, want)
		testenv.Equal(t, a.setCookie, "", "%s: Set-Cookie", body)
	}
	for body, want := range map[string]int{
		"": 422, "{": 400, "[]": 400, `{"email":5,"password":"x"}`: 400, `{"email":"\ud83d","password":"x"}`: 400,
	} {
		c.call(t, "POST", sessionPath, body, ownPage("")...).is(t, body, want, `{"code":4,`)
	}
	c.call(t, "POST", sessionPath, `{"email":"`+strings.Repeat("x", 20<<10)+`"}`, ownPage("")...).is(t, "a large body", 413, `{"code":4,`)

	for _, body := range []string{
		`{"email":"ann@example.com","password":"wrong horse"}`, `{"email":"eve@example.com","password":"correct horse"}`,
		`{"email":"Steve","password":"wrong horse"}`, `{"email":"Alex","password":"correct horse"}`, `{"email":"","password":"correct horse"}`,
	} {
		a := c.call(t, "POST", sessionPath, body, ownPage("")...).is(t, body, 401, refused)
		testenv.Equal(t, a.setCookie, "", "%s: Set-Cookie", body)
	}
	site.Exec(t, "UPDATE users SET permission = -1")
	c.call(t, "POST", sessionPath, signIn, ownPage("")...).is(t, "a banned user", 403, `{"code":-1,`)
}

const refused = `{"code":5,"message":"The player name or e-mail address, or the password, is wrong."}`

// addPlayer gives the user of the site a player.
const addPlayer = "INSERT INTO players (uid, name, name_key, uuid, last_modified) SELECT uid, 'Élan_1', 'élan_1', gen_random_uuid(), now() FROM users"

// The console signs in by the name of a player as well, as launchers do. The API does not.
func TestSignInByName(t *testing.T) {
	t.Parallel()
	site, c := start(t)
	site.Exec(t, addPlayer)
	for _, name := range []string{"Élan_1", "élan_1", " ÉLAN_1\u200b"} {
		got := c.call(t, "POST", sessionPath, `{"email":"`+name+`","password":"`+password+`"}`, ownPage("")...).is(t, name, 200, `{"token":"`)
		c.works(t, got.token, true)
	}
	c.Post(t, "/api/auth/login", map[string]string{"email": "Élan_1", "password": password}).IsError(t, 401, 5)
	// An attempt by the name of no player counts as one on an account that does not exist.
	_, c = start(t, "LIMIT_LOGIN_FAILURES=2")
	const wrong = `{"email":"Nobody","password":"wrong horse"}`
	c.call(t, "POST", sessionPath, wrong, ownPage("")...).is(t, "first", 401, refused)
	c.call(t, "POST", sessionPath, wrong, ownPage("")...).is(t, "second", 401, refused)
	c.call(t, "POST", sessionPath, wrong, ownPage("")...).is(t, "third", 429, `{"code":8,`)
}

// Log-ins of the console and of the API count for the same limits, and so do requests.
func TestLimitsAreShared(t *testing.T) {
	t.Parallel()
	site, c := start(t, "LIMIT_LOGIN_FAILURES=2")
	site.Exec(t, addPlayer)
	const wrong = `{"email":"ann@example.com","password":"wrong horse"}`
	c.call(t, "POST", sessionPath, `{"email":"Élan_1","password":"wrong horse"}`, ownPage("")...).is(t, "first", 401, "")
	c.Post(t, "/api/auth/login", wrong).HasStatus(t, 401)
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
		headers = append(headers, "Cookie", "__Host-veneer="+cookie)
		for _, request := range [][3]string{{"POST", sessionPath, signIn}, {"POST", tokenPath, "{}"}, {"DELETE", sessionPath, "{}"}} {
			what := fmt.Sprintf("%s %s with %q", request[0], request[1], headers)
			a := c.call(t, request[0], request[1], request[2], headers...).is(t, what, status, "")
			testenv.Equal(t, a.setCookie, "", "%s: Set-Cookie", what)
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
	testenv.Equal(t, site.sessions(t), sessions, "the number of sessions")
	c.works(t, cookie, true)

	// Browsers without Sec-Fetch-Site, and with other spellings of the same.
	for _, headers := range [][]string{
		{"Origin", own, "Content-Type", json},
		{"Origin", "https://VENEER.test", "Content-Type", "Application/JSON; charset=UTF-8"},
		{"Origin", "https://skins.test:8443", "Host", "skins.test:8443", "Content-Type", json},
	} {
		c.call(t, "POST", tokenPath, "", append(headers, "Cookie", "__Host-veneer="+cookie)...).is(t, fmt.Sprint(headers), 200, "")
	}
}

// Behind trusted proxies the host is the one that they forward.
func TestForwardedHost(t *testing.T) {
	t.Parallel()
	_, c := start(t, "TRUSTED_PROXIES=192.0.2.1/32") // the address of the tests' connections
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
	site.Advance(49*time.Minute + 59*time.Second)
	same := c.call(t, "POST", tokenPath, "{}", ownPage(first)...).is(t, "before", 200, "")
	testenv.Equal(t, same.token, first, "with 601 s left the token")
	testenv.Equal(t, same.expiresIn, 601, "the seconds that are left")
	site.Advance(time.Second)

	// Tabs that ask at once get the same successor.
	const tabs = 8
	tokens := make([]string, tabs)
	var asking sync.WaitGroup
	for i := range tabs {
		asking.Go(func() { tokens[i] = c.call(t, "POST", tokenPath, "{}", ownPage(first)...).token })
	}
	asking.Wait()
	second := tokens[0]
	testenv.Equal(t, second != first, true, "the tabs get another token")
	cmptest.Same(t, tokens, slices.Repeat([]string{second}, tabs), "the tabs' tokens")
	c.works(t, first, true) // for 30 s
	c.works(t, second, true)
	site.Advance(31 * time.Second)
	c.works(t, first, false)

	// A server that starts anew continues the session, also after days, when the token has expired.
	c = site.serve(t)
	site.Advance(13 * 24 * time.Hour)
	c.works(t, second, false)
	third := c.call(t, "POST", tokenPath, "{}", ownPage(second)...).is(t, "after days", 200, "")
	testenv.Check(t, third.token != second && third.expiresIn == 3600,
		"after days: %s for %d s", third.token, third.expiresIn)
	c.works(t, third.token, true)

	// A cookie that was stolen and used ends the session, as with the API.
	site.Advance(time.Minute)
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
	site.Exec(t, "UPDATE users SET permission = -1")
	for range 2 {
		a := c.call(t, "POST", tokenPath, "{}", ownPage(token)...).is(t, "a banned user", 403, `{"code":-1,`)
		testenv.Equal(t, a.setCookie, "", "with a ban Set-Cookie")
		site.Advance(55 * time.Minute)
	}
	site.Exec(t, "UPDATE users SET permission = 0")
	fresh := c.call(t, "POST", tokenPath, "{}", ownPage(token)...).is(t, "after the ban", 200, "").token

	site.Advance(14*24*time.Hour + time.Second)
	c.call(t, "POST", tokenPath, "{}", ownPage(fresh)...).is(t, "after two weeks", 401, `{"code":5,`).deletes(t, "after two weeks")
}

// Tokens that live for less than an hour are replaced at a sixth of their life.
func TestShortTokens(t *testing.T) {
	t.Parallel()
	site, c := start(t, "TOKEN_TTL=60s")
	token := c.call(t, "POST", sessionPath, signIn, ownPage("")...).token
	site.Advance(49 * time.Second)
	got := c.call(t, "POST", tokenPath, "{}", ownPage(token)...)
	testenv.Check(t, got.token == token && got.expiresIn == 11,
		"with 11 s left: %d %d; want the same token", got.status, got.expiresIn)
	site.Advance(time.Second)
	got = c.call(t, "POST", tokenPath, "{}", ownPage(token)...)
	testenv.Check(t, got.token != token && got.expiresIn == 60,
		"with 10 s left: %d %d; want a new token", got.status, got.expiresIn)
}

func TestSignOut(t *testing.T) {
	t.Parallel()
	site, c := start(t)
	c.call(t, "DELETE", sessionPath, "{}", ownPage("")...).is(t, "without a cookie", 204, "").deletes(t, "without a cookie")
	c.call(t, "DELETE", sessionPath, "", ownPage("nonsense")...).is(t, "with nonsense", 204, "").deletes(t, "with nonsense")
	for _, wait := range []time.Duration{0, 2 * time.Hour} { // an expired token too
		token := c.call(t, "POST", sessionPath, signIn, ownPage("")...).token
		site.Advance(wait)
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
	testenv.Equal(t, got.token, token, "the token")
	testenv.Equal(t, got.cookie.MaxAge(), 14*24*3600, "the age of the cookie %q", got.setCookie)
	testenv.Equal(t, site.sessions(t), sessions, "the number of sessions")
	c.call(t, "POST", sessionPath, `{"token":""}`, ownPage("")...).is(t, "an empty token", 401, `{"code":5,`)
	c.call(t, "POST", sessionPath, `{"token":"x.y.z"}`, ownPage("")...).is(t, "a forged token", 401, `{"code":5,`)
}

// Signing in again ends the session that it replaces, and no other. Two cookies are refused: another page
// of the domain may have set one.
func TestReplacedSession(t *testing.T) {
	t.Parallel()
	site, c := start(t)
	first := c.call(t, "POST", sessionPath, signIn, ownPage("")...).token
	second := c.call(t, "POST", sessionPath, signIn, ownPage("")...).token
	third := c.call(t, "POST", sessionPath, signIn, ownPage(first)...).token
	c.works(t, first, false)
	c.works(t, second, true)
	c.call(t, "POST", sessionPath, `{"token":"`+second+`"}`, ownPage(third)...).is(t, "a token", 200, "")
	c.works(t, third, false)
	c.call(t, "POST", sessionPath, `{"token":"`+second+`"}`, ownPage(second)...).is(t, "the own token", 200, "")
	c.works(t, second, true)

	// An expired token's session may live.
	sessions := site.sessions(t)
	site.Advance(2 * time.Hour)
	second = c.call(t, "POST", sessionPath, signIn, ownPage(second)...).token
	testenv.Equal(t, site.sessions(t), sessions, "the number of sessions after an expired token")
	for _, request := range [][3]string{{"POST", sessionPath, signIn}, {"POST", tokenPath, "{}"}, {"DELETE", sessionPath, "{}"}} {
		c.call(t, request[0], request[1], request[2], ownPage(second+"; __Host-veneer=x")...).is(t, "two cookies", 422, `{"code":4,"message":"The browser sends two`)
	}
	testenv.Equal(t, site.sessions(t), sessions, "the number of sessions")
}

// Over plain HTTP Safari accepts no Secure cookie even on loopback, and other browsers none elsewhere.
func TestPlainHTTP(t *testing.T) {
	t.Parallel()
	site, c := start(t)
	f := func(origin, want string) {
		t.Helper()
		host := strings.TrimPrefix(strings.TrimPrefix(origin, "http://"), "https://")
		headers := []string{"Origin", origin, "Host", host, "Content-Type", "application/json"}
		got := c.call(t, "POST", sessionPath, signIn, headers...).is(t, origin, 200, "")
		want = strings.ReplaceAll(want, "TOKEN", got.token)
		testenv.Equal(t, got.setCookie, want, "%s: Set-Cookie", origin)
		name, _, _ := strings.Cut(want, "=")
		again := c.call(t, "POST", tokenPath, "", append(headers, "Cookie", name+"="+got.token)...)
		testenv.Check(t, again.token == got.token && again.setCookie == want,
			"%s: the cookie %s brings %d, %q", origin, name, again.status, again.setCookie)
	}
	const rest = "=TOKEN; max-age=1209600; path="
	for _, origin := range []string{"https://skins.test", "https://192.0.2.1:8443"} {
		f(origin, "__Host-veneer"+rest+"/; HttpOnly; secure; SameSite=Strict")
	}
	for _, origin := range []string{"http://127.0.0.1:8081", "http://127.1.2.3", "http://localhost:8081", "http://skins.localhost", "http://[::1]:8081"} {
		f(origin, "veneer"+rest+"/console/session; HttpOnly; SameSite=Strict")
	}
	testenv.Equal(t, site.log.String(), "", "the log")
	for _, origin := range []string{"http://skins.test", "http://192.0.2.1:8081", "http://localhost.evil.test", "http://[2001:db8::1]"} {
		f(origin, "veneer"+rest+"/console/session; HttpOnly; SameSite=Strict")
	}
	testenv.Equal(t, strings.Count(site.log.String(), "plain HTTP"), 1, "the number of warnings")
	testenv.Contains(t, site.log.String(), "origin=http://skins.test", "the log")
	headers := []string{"Origin", "http://skins.test", "Host", "skins.test", "Content-Type", "application/json"}
	token := c.call(t, "POST", sessionPath, signIn, headers...).token
	c.call(t, "POST", tokenPath, "", append(headers, "Cookie", "__Host-veneer="+token)...).is(t, "the secure cookie over plain HTTP", 204, "")
	got := c.call(t, "DELETE", sessionPath, "", append(headers, "Cookie", "veneer="+token)...).setCookie
	const gone = "veneer=; expires=Tue, 10 Nov 2009 23:00:00 GMT; path=/console/session; HttpOnly; SameSite=Strict"
	testenv.Equal(t, got, gone, "signing out: Set-Cookie")
	c.works(t, token, false)
}
