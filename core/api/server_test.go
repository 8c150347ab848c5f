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

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/core/coretest"
	"github.com/veneer-skins/veneer/shared/httpserver"
	"github.com/veneer-skins/veneer/shared/testenv"
)

func TestUnknownPaths(t *testing.T) {
	t.Parallel()
	c := start(t).signUp(t)
	for method, paths := range map[string][]string{
		"GET":  {"/nothing", "/apiary", "/api/nothing", "/API/user", "/api/players/1/nothing"},
		"POST": {"/api/auth"},
		"PUT":  {"/api/players/steve/name", "/api/players/steve/textures"},
		"DELETE": {
			"/api/players/steve", "/api/players/1.5", "/api/players/99999999999999999999", "/api/players/steve/textures",
		},
	} {
		for _, path := range paths {
			c.Send(t, method, path, body{}).IsError(t, 404, 3)
		}
	}
}

func TestWrongMethods(t *testing.T) {
	t.Parallel()
	c := start(t).signUp(t)
	for route, allowed := range map[string]string{
		"GET /api/auth/login": "OPTIONS, POST", "GET /api/auth/logout": "OPTIONS, POST",
		"PATCH /api/user": "DELETE, GET, HEAD, OPTIONS, PUT", "GET /api/user/password": "OPTIONS, PUT",
		"GET /api/user/notifications/1": "OPTIONS, POST", "GET /api/closet/1": "DELETE, OPTIONS, PUT",
		"PATCH /api/players": "GET, HEAD, OPTIONS, POST", "GET /api/players/1": "DELETE, OPTIONS",
		"POST /api/players/1/name": "OPTIONS, PUT", "GET /api/players/1/textures": "DELETE, OPTIONS, PUT",
		"PUT /api/textures": "GET, HEAD, OPTIONS, POST", "POST /api/textures/1": "DELETE, GET, HEAD, OPTIONS, PUT",
	} {
		method, path, _ := strings.Cut(route, " ")
		a := c.Send(t, method, path, body{})
		a.IsError(t, 405, 3)
		testenv.Equal(t, a.Header.Get("Allow"), allowed, "%s: Allow", route)
	}
}

// protected returns the operations that require a token.
func (c contract) protected() []endpoint {
	return slices.DeleteFunc(c.endpoints(), func(e endpoint) bool { return !c.requiresToken(e) })
}

// Without a token, 401 comes before any error about the request's content.
func TestSignedOut(t *testing.T) {
	t.Parallel()
	c := start(t, "LIMIT_REQUESTS=0")
	genuine := c.signUp(t).Token
	for _, e := range mustLoadContract(t).protected() {
		for _, invalid := range []body{{}, encodeJSON(`{`), raw("text/plain", "x")} {
			c.Send(t, e.method, e.path, invalid).IsError(t, 401, 5)
		}
		for _, header := range []string{
			"", "Bearer", "Bearer ", genuine, "Basic " + genuine, "Bearer nonsense", "Bearer " + genuine + "x", "Bearer " + genuine + " " + genuine,
		} {
			c.Send(t, e.method, e.path, body{}, "Authorization", header).IsError(t, 401, 5)
		}
	}
	c.Put(t, "/api/players/steve/name", `{}`).IsError(t, 401, 5)

	for _, header := range []string{"Bearer " + genuine, "bearer " + genuine, "BEARER  " + genuine} {
		c.Send(t, "GET", "/api/user", body{}, "Authorization", header).HasStatus(t, 200)
	}
}

func TestBanned(t *testing.T) {
	t.Parallel()
	c := start(t).signUp(t)
	c.withPassword(t, "correct horse")
	c.site.Exec(t, "UPDATE users SET permission = -1 WHERE uid = $1", c.UID)

	for _, e := range mustLoadContract(t).protected() {
		c.Send(t, e.method, e.path, encodeJSON(`{`)).IsError(t, 403, -1)
	}
	c.Post(t, "/api/auth/login", `{"email":"user1@example.com","password":"correct horse"}`).IsError(t, 403, -1)
	c.Post(t, "/api/auth/login", `{"email":"user1@example.com","password":"wrong horse"}`).IsError(t, 401, 5)

	c.site.Exec(t, "UPDATE users SET permission = 0 WHERE uid = $1", c.UID)
	c.Post(t, "/api/auth/login", `{"email":"user1@example.com","password":"correct horse"}`).HasStatus(t, 200)
}

func TestDatabaseDown(t *testing.T) {
	t.Parallel()
	c := start(t).signUp(t)
	c.Domain.DB.Close()
	f := func(a response) {
		t.Helper()
		a.IsError(t, 503, 9)
		testenv.Equal(t, a.Header.Get("Retry-After"), "1", "%s: Retry-After", a.Request())
	}

	f(c.Get(t, "/api/user"))
	f(c.Get(t, "/api/players"))
	f(c.Post(t, "/api/auth/refresh", ""))
	f(c.Post(t, "/api/auth/login", `{"email":"user1@example.com","password":"correct horse"}`))
	f(c.Post(t, "/api/auth/register", `{"email":"a@example.com","password":"correct horse","nickname":"A"}`))
}

func TestRequestIDIsEchoed(t *testing.T) {
	t.Parallel()
	c := start(t)
	f := func(method, path string, body body) {
		t.Helper()
		a := c.Send(t, method, path, body, "X-Request-ID", "abc-123")
		testenv.Equal(t, a.Header.Get("X-Request-ID"), "abc-123", "%s %s: X-Request-ID", method, path)
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
	c := s.serve(t).signUp(t)
	options := httpserver.Options{Log: slog.New(slog.NewTextHandler(&out, nil)), LogSampleRate: 1, Limits: s.Setup.Limits}
	handler := s.NewAPI(t, options, c.Domain.Services).HTTP().Handler
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
			testenv.Contains(t, out.String(), " "+want, "the log of %s %s", method, target)
		}
		testenv.Check(t, !strings.Contains(out.String(), c.Token) && strings.Count(out.String(), "\n") == 1,
			"%s %s is logged as %q; want one line without the token", method, target, out.String())
	}

	signedIn := fmt.Sprintf("uid=%d\n", c.UID)
	f("GET", "/api/user?token="+c.Token, c.Token, `route="GET /api/user"`, "path=/api/user", "status=200", signedIn)
	f("PUT", "/api/players/7/name", c.Token, `route="PUT /api/players/{pid}/name"`, "path=/api/players/7/name", "status=422", signedIn)
	f("GET", "/api/user", "nonsense", `route="GET /api/user"`, "status=401")
	f("GET", "/api/nothing", c.Token, "route=other", "status=404")
	f("PATCH", "/api/user", c.Token, "route=other", "status=405")
	f("OPTIONS", "/api/user", "", "route=OPTIONS", "status=204")
}

func TestAnyOrigin(t *testing.T) {
	t.Parallel()
	c := start(t)
	f := func(a response) {
		t.Helper()
		testenv.Equal(t, a.Header.Get("Access-Control-Allow-Origin"), "*", "%s: Access-Control-Allow-Origin", a.Request())
	}

	f(c.Send(t, "GET", "/api/user", body{}, "Origin", "https://skins.example"))
	f(c.Send(t, "GET", "/api/nothing", body{}, "Origin", "https://skins.example"))
	f(c.Get(t, "/api/user"))
	signedIn := c.signUp(t)
	for _, e := range mustLoadContract(t).protected() { // sent without a token: errors have the headers, too
		f(c.Send(t, e.method, e.path, body{}, "Origin", "https://skins.example"))
		f(signedIn.Send(t, e.method, e.path, body{}, "Origin", "https://skins.example"))
	}
}

func TestPreflight(t *testing.T) {
	t.Parallel()
	c := start(t)
	for _, path := range []string{"/api/user", "/api/user/", "/api/user/password", "/api/closet/1", "/api/players/1/textures", "/api/textures"} {
		a := c.Send(t, "OPTIONS", path, body{}, "Origin", "https://skins.example",
			"Access-Control-Request-Method", "PUT", "Access-Control-Request-Headers", "authorization,content-type,x-requested-with")
		a.HasStatus(t, 204)
		testenv.Equal(t, a.Header.Get("Access-Control-Allow-Origin"), "*", "%s: Access-Control-Allow-Origin", a.Request())
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "DELETE"} {
			testenv.Contains(t, a.Header.Get("Access-Control-Allow-Methods"), method, "%s: the methods", a.Request())
		}
		headers := a.Header.Get("Access-Control-Allow-Headers")
		testenv.Equal(t, headers, "authorization, content-type, x-requested-with", "%s: the headers", a.Request())
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
		a := c.Send(t, "OPTIONS", "/api/user", body{}, "Origin", "https://skins.example",
			"Access-Control-Request-Method", "PUT", "Access-Control-Request-Headers", asked)
		a.HasStatus(t, 204)
		testenv.Equal(t, a.Header.Get("Access-Control-Allow-Headers"), want, "the headers for %.50q", asked)
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
			get, head := client.Get(t, e.path), client.Send(t, "HEAD", e.path, body{})
			testenv.Equal(t, head.Status, get.Status, "the status of HEAD %s, as of GET", e.path)
			testenv.Equal(t, len(head.Body), 0, "bytes of HEAD %s", e.path)
			for name, value := range get.Header {
				if got := head.Header[name]; !slices.Equal(got, value) && name != "X-Request-Id" && name != "Date" {
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
		plain, slash, slashes := c.Send(t, e.method, e.path, body{}), c.Send(t, e.method, e.path+"/", body{}), c.Send(t, e.method, e.path+"//?x", body{})
		testenv.Check(t, slash.Status == plain.Status && slashes.Status == plain.Status &&
			(plain.Status != 404 || e.Responses.Status(404) != nil),
			"%s: %d, %d with a slash, %d with two", plain.Request(), plain.Status, slash.Status, slashes.Status)
		testenv.Check(t, bytes.Equal(slash.Body, plain.Body) && bytes.Equal(slashes.Body, plain.Body),
			"%s: %s\nwith a slash: %s\nwith two: %s", plain.Request(), plain.Body, slash.Body, slashes.Body)
	}
	// The path is decoded once, with or without a slash.
	c.Get(t, "/api/user%2F").IsError(t, 404, 3)
	c.Get(t, "/api/%2575ser/").IsError(t, 404, 3)
	// The upload's limit holds there, too.
	c.Send(t, "POST", "/api/textures/", encodeMultipart(t, "name=N&type=steve", append(skinFile(t, 1), make([]byte, 512<<10)...))).HasStatus(t, 200)
}

func TestConfiguredOrigins(t *testing.T) {
	t.Parallel()
	c := start(t, "CORS_ORIGINS=https://skins.example,http://localhost:3000")
	f := func(method, origin, want string) {
		t.Helper()
		a := c.Send(t, method, "/api/user", body{}, "Origin", origin)
		testenv.Equal(t, a.Header.Get("Access-Control-Allow-Origin"), want, "%s from %q: who may read it", method, origin)
		testenv.Equal(t, a.Header.Get("Vary"), "Origin", "%s from %q: Vary", method, origin)
		testenv.Check(t, method != "OPTIONS" || a.Status == 204,
			"the preflight from %q is answered with %d", origin, a.Status)
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
	c.Send(t, "POST", "/api/players", padded(64<<10)).HasStatus(t, 200)
	// An upload may be larger by its file.
	c.Send(t, "POST", "/api/textures?x=1", padded(1<<20+64<<10)).IsError(t, 415, 4)
}

func TestNoBodyLimit(t *testing.T) {
	t.Parallel()
	c := start(t, "BODY_BYTES=0").signUp(t)
	large := strings.Repeat(" ", 5<<20)
	c.Send(t, "POST", "/api/players", encodeJSON(`{"name":"Steve"`+large+`}`)).HasStatus(t, 200)
	c.Send(t, "POST", "/api/textures", encodeJSON(`{"name":"Steve"`+large+`}`)).IsError(t, 415, 4)
}

// A request that is too large or no HTTP reaches no handler, but its response has the same headers
// and form.
func TestRawRequests(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	address := coretest.Listen(t, s.clientOf(t, s.NewDomain(t)).Server)
	f := func(sent string, status int, code string) {
		t.Helper()
		conn := testenv.Must(net.Dial("tcp", address))(t)
		defer func() { _ = conn.Close() }()
		testenv.Must(io.WriteString(conn, sent))(t)
		answer, err := io.ReadAll(conn)
		if err != nil && len(answer) == 0 { // a reset may follow the response, as the request was not read completely
			t.Fatal(err)
		}
		got := string(answer)
		for _, want := range []string{
			http.StatusText(status) + "\r\n", `{"code":` + code + `,"message":"`, "Cache-Control: no-store\r\n", "Content-Type: application/json; charset=utf-8\r\n",
			"X-Request-Id: ", "Access-Control-Allow-Origin: *\r\n", "X-Content-Type-Options: nosniff\r\n", "Content-Security-Policy: default-src 'none'; ",
		} {
			testenv.Contains(t, got, want, "the answer to %.40q", sent)
		}
		testenv.Is(t, mustLoadContract(t).CheckRaw(got), nil, "the answer to %.40q", sent)
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
