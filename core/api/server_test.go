package api_test

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/core/api"
	"github.com/veneer-skins/veneer/shared/httpserver"
)

func TestUnknownPaths(t *testing.T) {
	t.Parallel()

	c := start(t).signUp(t)
	f := func(method, path string) {
		t.Helper()
		c.send(t, method, path, body{}).isError(t, 404, 3)
	}

	f("GET", "/nothing")
	f("GET", "/apiary")
	f("GET", "/api/nothing")
	f("POST", "/api/auth")
	f("GET", "/API/user")
	f("GET", "/api/players/1/nothing")
	f("DELETE", "/api/players/steve")
	f("DELETE", "/api/players/1.5")
	f("DELETE", "/api/players/99999999999999999999")
	f("PUT", "/api/players/steve/name")
	f("PUT", "/api/players/steve/textures")
	f("DELETE", "/api/players/steve/textures")
}

func TestWrongMethods(t *testing.T) {
	t.Parallel()

	c := start(t).signUp(t)
	f := func(method, path, allowed string) {
		t.Helper()
		a := c.send(t, method, path, body{})
		a.isError(t, 405, 3)
		if got := a.headerValue("Allow"); got != allowed {
			t.Errorf("%s %s: Allow is %q; want %q", method, path, got, allowed)
		}
	}

	f("GET", "/api/auth/login", "OPTIONS, POST")
	f("GET", "/api/auth/logout", "OPTIONS, POST")
	f("PATCH", "/api/user", "DELETE, GET, HEAD, OPTIONS, PUT")
	f("GET", "/api/user/password", "OPTIONS, PUT")
	f("GET", "/api/user/notifications/1", "OPTIONS, POST")
	f("GET", "/api/closet/1", "DELETE, OPTIONS, PUT")
	f("PATCH", "/api/players", "GET, HEAD, OPTIONS, POST")
	f("GET", "/api/players/1", "DELETE, OPTIONS")
	f("POST", "/api/players/1/name", "OPTIONS, PUT")
	f("GET", "/api/players/1/textures", "DELETE, OPTIONS, PUT")
	f("PUT", "/api/textures", "GET, HEAD, OPTIONS, POST")
	f("POST", "/api/textures/1", "DELETE, GET, HEAD, OPTIONS, PUT")
}

// protected are routes that require a signed-in user.
var protected = []struct{ method, path string }{
	{"POST", "/api/auth/logout"},
	{"GET", "/api/user"},
	{"PUT", "/api/user"},
	{"DELETE", "/api/user"},
	{"PUT", "/api/user/avatar"},
	{"PUT", "/api/user/email"},
	{"PUT", "/api/user/password"},
	{"GET", "/api/user/notifications"},
	{"POST", "/api/user/notifications/00000000-0000-4000-8000-000000000000"},
	{"GET", "/api/closet"},
	{"POST", "/api/closet"},
	{"PUT", "/api/closet/1"},
	{"DELETE", "/api/closet/1"},
	{"GET", "/api/players"},
	{"POST", "/api/players"},
	{"DELETE", "/api/players/1"},
	{"PUT", "/api/players/1/name"},
	{"PUT", "/api/players/1/textures"},
	{"DELETE", "/api/players/1/textures"},
	{"POST", "/api/textures"},
	{"PUT", "/api/textures/1"},
	{"DELETE", "/api/textures/1"},
}

func TestSignedOut(t *testing.T) {
	t.Parallel()

	c := start(t, "LIMIT_REQUESTS=0")
	genuine := c.signUp(t).token
	for _, route := range append(protected, struct{ method, path string }{"POST", "/api/auth/refresh"}) {
		c.send(t, route.method, route.path, body{}).isError(t, 401, 5)
		for _, header := range []string{
			"", "Bearer", "Bearer ", genuine, "Basic " + genuine, "Bearer nonsense", "Bearer " + genuine + "x", "Bearer " + genuine + " " + genuine,
		} {
			c.send(t, route.method, route.path, body{}, "Authorization", header).isError(t, 401, 5)
		}
	}

	for _, header := range []string{"Bearer " + genuine, "bearer " + genuine, "BEARER  " + genuine} {
		if a := c.send(t, "GET", "/api/user", body{}, "Authorization", header); a.status != 200 {
			t.Errorf("the genuine token after %q is refused: %s", header[:7], a.body)
		}
	}
}

// Without a token, 401 comes before any error about the request's content.
func TestSignedOutComesBeforeInvalid(t *testing.T) {
	t.Parallel()

	c := start(t)
	c.post(t, "/api/players", `{`).isError(t, 401, 5)
	c.send(t, "POST", "/api/textures", body{"text/plain", []byte("x")}).isError(t, 401, 5)
	c.put(t, "/api/players/steve/name", `{}`).isError(t, 401, 5)
}

func TestBanned(t *testing.T) {
	t.Parallel()

	c := start(t).signUp(t)
	c.withPassword(t, "correct horse")
	c.site.exec(t, "UPDATE users SET permission = -1 WHERE uid = $1", c.uid)

	for _, route := range append(protected, struct{ method, path string }{"POST", "/api/auth/refresh"}) {
		c.send(t, route.method, route.path, body{}).isError(t, 403, -1)
	}
	c.post(t, "/api/auth/login", `{"email":"user1@example.com","password":"correct horse"}`).isError(t, 403, -1)
	c.post(t, "/api/auth/login", `{"email":"user1@example.com","password":"wrong horse"}`).isError(t, 401, 5)

	c.site.exec(t, "UPDATE users SET permission = 0 WHERE uid = $1", c.uid)
	if a := c.post(t, "/api/auth/login", `{"email":"user1@example.com","password":"correct horse"}`); a.status != 200 {
		t.Errorf("after the ban the log-in is answered with %d %s", a.status, a.body)
	}
}

func TestDatabaseDown(t *testing.T) {
	t.Parallel()

	c := start(t).signUp(t)
	c.db.Close()
	f := func(a response) {
		t.Helper()
		a.isError(t, 503, 9)
		if got := a.headerValue("Retry-After"); got != "1" {
			t.Errorf("%s: Retry-After is %q; want 1", a.request, got)
		}
	}

	f(c.get(t, "/api/user"))
	f(c.get(t, "/api/players"))
	f(c.post(t, "/api/auth/refresh", ""))
	f(c.post(t, "/api/auth/login", `{"email":"user1@example.com","password":"correct horse"}`))
	f(c.post(t, "/api/auth/register", `{"email":"a@example.com","password":"correct horse","nickname":"A"}`))
}

func TestRequestIDIsEchoed(t *testing.T) {
	t.Parallel()

	c := start(t)
	f := func(method, path string, body body) {
		t.Helper()
		a := c.send(t, method, path, body, "X-Request-ID", "abc-123")
		if got := a.headerValue("X-Request-ID"); got != "abc-123" {
			t.Errorf("%s %s: X-Request-ID is %q", method, path, got)
		}
	}

	f("GET", "/api/user", body{})
	f("GET", "/api/nothing", body{})
	f("GET", "/api/auth/login", body{})
	f("OPTIONS", "/api/user", body{})
	f("POST", "/api/auth/login", encodeJSON(`{}`))
}

func TestRequestsAreLogged(t *testing.T) {
	t.Parallel()

	var out strings.Builder
	s := newSite(t)
	_, services := s.services(t)
	c := s.serve(t).signUp(t)
	server, err := api.New(httpserver.Options{Log: slog.New(slog.NewTextHandler(&out, nil)), LogSampleRate: 1, Limits: s.setup.Limits}, services, s.setup.API, s.setup.Textures.Bytes, s.clock)
	if err != nil {
		t.Fatal(err)
	}
	handler := server.HTTP().Handler
	f := func(method, target, token string, wants ...string) {
		t.Helper()
		var rc fasthttp.RequestCtx
		rc.Init(&fasthttp.Request{}, &net.TCPAddr{IP: net.IPv4(203, 0, 113, 9)}, nil)
		rc.Request.Header.SetMethod(method)
		rc.Request.SetRequestURI(target)
		rc.Request.Header.Set("Authorization", "Bearer "+token)
		out.Reset()
		handler(&rc)
		for _, want := range append(wants, "listener=public", "method="+method, "client=203.0.113.9") {
			if !strings.Contains(out.String(), " "+want) {
				t.Errorf("%s %s is logged as %q; want %s in it", method, target, out.String(), want)
			}
		}
		if strings.Contains(out.String(), c.token) || strings.Count(out.String(), "\n") != 1 {
			t.Errorf("%s %s is logged as %q; want one line without the token", method, target, out.String())
		}
	}

	signedIn := fmt.Sprintf("uid=%d\n", c.uid)
	f("GET", "/api/user?token="+c.token, c.token, `route="GET /api/user"`, "path=/api/user", "status=200", signedIn)
	f("PUT", "/api/players/7/name", c.token, `route="PUT /api/players/{pid}/name"`, "path=/api/players/7/name", "status=422", signedIn)
	f("GET", "/api/user", "nonsense", `route="GET /api/user"`, "status=401")
	f("GET", "/api/nothing", c.token, "route=other", "status=404")
	f("PATCH", "/api/user", c.token, "route=other", "status=405")
	f("OPTIONS", "/api/user", "", "route=OPTIONS", "status=204")
}

func TestAnyOrigin(t *testing.T) {
	t.Parallel()

	c := start(t)
	f := func(a response) {
		t.Helper()
		if got := a.headerValue("Access-Control-Allow-Origin"); got != "*" {
			t.Errorf("%s: Access-Control-Allow-Origin is %q; want *", a.request, got)
		}
	}

	f(c.send(t, "GET", "/api/user", body{}, "Origin", "https://skins.example"))
	f(c.send(t, "GET", "/api/nothing", body{}, "Origin", "https://skins.example"))
	f(c.get(t, "/api/user"))
	signedIn := c.signUp(t)
	for _, route := range protected { // sent without a token: errors have the headers, too
		f(c.send(t, route.method, route.path, body{}, "Origin", "https://skins.example"))
		f(signedIn.send(t, route.method, route.path, body{}, "Origin", "https://skins.example"))
	}
}

func TestPreflight(t *testing.T) {
	t.Parallel()

	c := start(t)
	for _, path := range []string{"/api/user", "/api/user/", "/api/user/password", "/api/closet/1", "/api/players/1/textures", "/api/textures"} {
		a := c.send(t, "OPTIONS", path, body{}, "Origin", "https://skins.example",
			"Access-Control-Request-Method", "PUT", "Access-Control-Request-Headers", "authorization,content-type,x-requested-with")
		if a.status != 204 || a.headerValue("Access-Control-Allow-Origin") != "*" {
			t.Errorf("%s: %d, for origin %q", a.request, a.status, a.headerValue("Access-Control-Allow-Origin"))
		}
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "DELETE"} {
			if !strings.Contains(a.headerValue("Access-Control-Allow-Methods"), method) {
				t.Errorf("%s: %s is not among the methods %q", a.request, method, a.headerValue("Access-Control-Allow-Methods"))
			}
		}
		if got, want := a.headerValue("Access-Control-Allow-Headers"), "authorization, content-type, x-requested-with"; got != want {
			t.Errorf("%s: the headers are %q; want %q", a.request, got, want)
		}
	}

	var many []string
	for i := range 100 {
		many = append(many, fmt.Sprintf("x-%d", i))
	}
	for asked, want := range map[string]string{
		"":                  "",
		" X-A ,\tx-b,, x-c": "X-A, x-b, x-c",
		"x-a,x b,x:c,é,x-d": "x-a, x-d",
		"authorization, *":  "authorization, *", // * is a valid token of RFC 9110
		strings.Repeat("x", 65) + "," + strings.Repeat("y", 64): strings.Repeat("y", 64),
		strings.Join(many, ","):                                 strings.Join(many[:32], ", "),
	} {
		a := c.send(t, "OPTIONS", "/api/user", body{}, "Origin", "https://skins.example", "Access-Control-Request-Method", "PUT", "Access-Control-Request-Headers", asked)
		if got := a.headerValue("Access-Control-Allow-Headers"); a.status != 204 || got != want {
			t.Errorf("%.50q is answered with %d and %.50q; want %.50q", asked, a.status, got, want)
		}
	}
}

// HEAD has the headers of GET, without the body.
func TestHead(t *testing.T) {
	t.Parallel()

	c := start(t, "LIMIT_REQUESTS=0").signUp(t)
	c.permit(t, core.SuperAdministrator)
	c.texture(t, "name=N&type=steve", skinFile(t, 1))
	for _, client := range []client{c, c.as("nonsense")} {
		for _, e := range mustLoadContract(t).endpoints() {
			if e.method != "GET" {
				continue
			}
			get, head := client.get(t, e.path), client.send(t, "HEAD", e.path, body{})
			if head.status != get.status || len(head.body) > 0 {
				t.Errorf("HEAD %s: %d and %d bytes; GET: %d", e.path, head.status, len(head.body), get.status)
			}
			for name, value := range get.header.All() {
				if got := head.headerValue(string(name)); got != string(value) && string(name) != "X-Request-Id" && string(name) != "Date" {
					t.Errorf("HEAD %s: %s is %q; GET has %q", e.path, name, got, value)
				}
			}
		}
	}
}

// A trailing slash is ignored on every route.
func TestTrailingSlashes(t *testing.T) {
	t.Parallel()

	c := start(t, "LIMIT_REQUESTS=0").signUp(t)
	c.permit(t, core.SuperAdministrator)
	for _, e := range mustLoadContract(t).endpoints() {
		if slices.Contains([]string{"logout", "refreshToken", "signForToday"}, e.OperationID) { // these succeed only once
			continue
		}
		plain, slash, slashes := c.send(t, e.method, e.path, body{}), c.send(t, e.method, e.path+"/", body{}), c.send(t, e.method, e.path+"//?x", body{})
		if slash.status != plain.status || slashes.status != plain.status || plain.status == 404 && e.Responses.Status(404) == nil {
			t.Errorf("%s: %d, %d with a slash, %d with two", plain.request, plain.status, slash.status, slashes.status)
		}
		if !bytes.Equal(slash.body, plain.body) || !bytes.Equal(slashes.body, plain.body) {
			t.Errorf("%s: %s\nwith a slash: %s\nwith two: %s", plain.request, plain.body, slash.body, slashes.body)
		}
	}
	// The path is decoded once, with or without a slash.
	c.get(t, "/api/user%2F").isError(t, 404, 3)
	c.get(t, "/api/%2575ser/").isError(t, 404, 3)
	// The upload's limit holds there, too.
	if a := c.send(t, "POST", "/api/textures/", encodeMultipart(t, "name=N&type=steve", append(skinFile(t, 1), make([]byte, 512<<10)...))); a.status != 200 {
		t.Errorf("%s: %d %s", a.request, a.status, a.body)
	}
}

func TestConfiguredOrigins(t *testing.T) {
	t.Parallel()

	c := start(t, "CORS_ORIGINS=https://skins.example,http://localhost:3000")
	f := func(method, origin, want string) {
		t.Helper()
		a := c.send(t, method, "/api/user", body{}, "Origin", origin)
		if got := a.headerValue("Access-Control-Allow-Origin"); got != want {
			t.Errorf("%s from %q: Access-Control-Allow-Origin is %q; want %q", method, origin, got, want)
		}
		if got := a.headerValue("Vary"); got != "Origin" {
			t.Errorf("%s from %q: Vary is %q; want Origin", method, origin, got)
		}
		if method == "OPTIONS" && a.status != 204 {
			t.Errorf("the preflight from %q is answered with %d", origin, a.status)
		}
	}

	for _, method := range []string{"GET", "OPTIONS"} {
		f(method, "https://skins.example", "https://skins.example")
		f(method, "http://localhost:3000", "http://localhost:3000")
		f(method, "https://skins.example.evil.example", "")
		f(method, "http://skins.example", "")
		f(method, "null", "")
		f(method, "", "")
	}
}

func TestBodyLimit(t *testing.T) {
	t.Parallel()

	c := start(t).signUp(t)
	padded := func(n int) body {
		return encodeJSON(`{"name":"Steve"` + strings.Repeat(" ", n-len(`{"name":"Steve"}`)) + `}`)
	}
	if a := c.send(t, "POST", "/api/players", padded(64<<10)); a.status != 200 {
		t.Errorf("a body of 64 KiB is answered with %d %s", a.status, a.body)
	}
	// An upload may be larger by its file.
	c.send(t, "POST", "/api/textures?x=1", padded(1<<20+64<<10)).isError(t, 415, 4)
}

func TestNoBodyLimit(t *testing.T) {
	t.Parallel()

	c := start(t, "BODY_BYTES=0").signUp(t)
	large := strings.Repeat(" ", 5<<20)
	if a := c.send(t, "POST", "/api/players", encodeJSON(`{"name":"Steve"`+large+`}`)); a.status != 200 {
		t.Errorf("a body of 5 MiB is answered with %d %s", a.status, a.body)
	}
	c.send(t, "POST", "/api/textures", encodeJSON(`{"name":"Steve"`+large+`}`)).isError(t, 415, 4)
}

// A request that is too large or no HTTP reaches no handler, but its response has the same headers
// and form.
func TestRawRequests(t *testing.T) {
	t.Parallel()

	s := newSite(t)
	_, services := s.services(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	serveListener(t, s.httpServer(t, services), listener)
	f := func(sent string, status int, code string) {
		t.Helper()
		conn, err := net.Dial("tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		if _, err := io.WriteString(conn, sent); err != nil {
			t.Fatal(err)
		}
		answer, err := io.ReadAll(conn)
		if err != nil && len(answer) == 0 { // a reset may follow the response, as the request was not read completely
			t.Fatal(err)
		}
		got := string(answer)
		for _, want := range []string{
			http.StatusText(status) + "\r\n", `{"code":` + code + `,"message":"`, "Cache-Control: no-store\r\n", "Content-Type: application/json; charset=utf-8\r\n",
			"X-Request-Id: ", "Access-Control-Allow-Origin: *\r\n", "X-Content-Type-Options: nosniff\r\n", "Content-Security-Policy: default-src 'none'; ",
		} {
			if !strings.Contains(got, want) {
				t.Errorf("the answer to %.40q lacks %q:\n%s", sent, want, got)
			}
		}
		if err := mustLoadContract(t).CheckRaw(got); err != nil {
			t.Errorf("the answer to %.40q: %v", sent, err)
		}
	}

	const host = "Host: veneer.test\r\n"
	f("GET /api/user HTTP/1.1\r\n"+host+"X-Long: "+strings.Repeat("x", 17<<10)+"\r\n\r\n", 431, "4")
	f("GET /api/user?"+strings.Repeat("x", 17<<10)+" HTTP/1.1\r\n"+host+"\r\n", 431, "4")
	f("nonsense\r\n\r\n", 400, "4")
	f("POST /api/auth/login HTTP/1.1\r\n"+host+"Content-Length: 65537\r\n\r\n{", 413, "4")
	f("PUT /api/textures HTTP/1.1\r\n"+host+"Connection: close\r\nContent-Length: 65537\r\n\r\n{", 405, "3")
	f("POST /api/auth/login HTTP/1.1\r\n"+host+"Connection: close\r\nContent-Type: application/json\r\nContent-Length: 1\r\n\r\n{", 400, "4")
	f("GET /api/nothing HTTP/1.1\r\n"+host+"Connection: close\r\nX-Long: "+strings.Repeat("x", 15<<10)+"\r\n\r\n", 404, "3")
}

func TestRegistrationSetting(t *testing.T) {
	t.Parallel()

	if _, err := api.New(httpserver.Options{Log: slog.New(slog.DiscardHandler)}, api.Services{}, api.Config{Registration: "ajar"}, 0, time.Now); err == nil ||
		!strings.Contains(err.Error(), "REGISTRATION") {
		t.Errorf("REGISTRATION=ajar: %v; want an error that names the setting", err)
	}
	if _, err := api.New(httpserver.Options{Log: slog.New(slog.DiscardHandler)}, api.Services{}, api.Config{Registration: "confirm"}, 0, time.Now); err == nil ||
		!strings.Contains(err.Error(), "REGISTRATION") || !strings.Contains(err.Error(), "SMTP_HOST") {
		t.Errorf("REGISTRATION=confirm without e-mail: %v; want an error that names both settings", err)
	}
}
