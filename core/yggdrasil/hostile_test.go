package yggdrasil_test

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/core/yggdrasil"
	"github.com/veneer-skins/veneer/shared/httpserver"
)

// Bodies that are no JSON of the documented form get the protocol's error, and never a 500.
func TestMalformedBodies(t *testing.T) {
	t.Parallel()

	c := start(t)
	for _, path := range []string{
		"/authserver/authenticate", "/authserver/refresh", "/authserver/validate", "/authserver/invalidate", "/authserver/signout", "/sessionserver/session/minecraft/join", "/api/profiles/minecraft",
	} {
		for _, malformed := range []string{
			"{", "x", "1", `"x"`, `{"username":1,"accessToken":1}`, `{"username":{},"accessToken":[]}`, "{\"username\":\"\xff\",\"accessToken\":\"\xff\"}", `{"username":"\ud83d","accessToken":"\ud83d"}`,
			`{"agent":` + strings.Repeat("[", 40) + strings.Repeat("]", 40) + `}`, strings.Repeat("[", 10000), `{} {}`,
		} {
			got := c.post(t, path, malformed)
			got.isError(t, 400, "Bad Request", "")
		}
		for _, contentType := range []string{"", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/json; charset=iso-8859-1"} {
			c.send(t, "POST", path, body{contentType, []byte("{}")}).isError(t, 415, "Unsupported Media Type", "")
		}
		c.sendHead(t, "POST", path, "Content-Type: application/json\r\nContent-Length: 65537\r\n").isError(t, 413, "Request Entity Too Large", "")
		c.get(t, path).isError(t, 405, "Method Not Allowed", "")
	}
	for _, path := range []string{"/nothing", "/authserver", "/sessionserver/session/minecraft/join/x", "/%00", "/%ff", "/api/user/profile/x"} {
		c.get(t, path).isError(t, 404, "Not Found", "")
	}
	// Near the root is the site's own API.
	for _, path := range []string{"/api/yggdrasilx", "/api/yggdrasil/../nothing", "/yggdrasil"} {
		if got, err := c.exchangeAt("GET", path, body{}); err != nil || got.status != 404 || !strings.Contains(string(got.body), `"code":3`) {
			t.Errorf("%s: %d %s, %v", path, got.status, got.body, err)
		}
	}
}

// A request that does not arrive, and one that is refused before it has a route, get the protocol's
// error.
func TestRejectedRequests(t *testing.T) {
	t.Parallel()

	c := start(t, "READ_TIMEOUT=200ms")
	listener, err := net.Listen("tcp", "127.0.0.1:0") // connections in memory have other timeouts
	if err != nil {
		t.Fatal(err)
	}
	server, ended := c.public.HTTP(), make(chan error, 1)
	wrapped := httpserver.Listener{Server: server}.Wrap(listener)
	go func() { ended <- server.Serve(wrapped) }()
	t.Cleanup(func() {
		_ = listener.Close()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	c.http = &fasthttp.HostClient{Dial: func(string) (net.Conn, error) { return net.Dial("tcp", listener.Addr().String()) }}
	const path = "/authserver/authenticate"
	c.exchangeHead(t, "POST", path, "Content-Type: application/json\r\nContent-Length: 100\r\n").isError(t, 408, "Request Timeout", "")
	c.exchangeHead(t, "POST", path, "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n").isError(t, 400, "Bad Request", "")
}

// sendHead sends the head of a request and the first byte of its body, and checks the response
// against the OpenAPI document.
func (c client) sendHead(t *testing.T, method, path, lines string) response {
	t.Helper()
	got := c.exchangeHead(t, method, path, lines)
	if err := checkDocument(t, method, path, body{}, got); err != nil {
		t.Errorf("%s: %v", got.request, err)
	}
	return got
}

// exchangeHead does so, and returns the response unchecked.
func (c client) exchangeHead(t *testing.T, method, path, lines string) response {
	t.Helper()
	conn, err := c.http.Dial("")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if c.bearer != "" {
		lines += "Authorization: Bearer " + c.bearer + "\r\n"
	}
	// The first byte of the body has to arrive, too.
	if _, err := fmt.Fprintf(conn, "%s %s%s HTTP/1.1\r\nHost: veneer.test\r\n%s\r\n{", method, yggdrasil.Root, path, lines); err != nil {
		t.Fatal(err)
	}
	resp := fasthttp.AcquireResponse()
	defer fasthttp.ReleaseResponse(resp)
	if err := resp.Read(bufio.NewReader(conn)); err != nil {
		t.Fatal(err)
	}
	got := response{method + " " + path, resp.StatusCode(), new(fasthttp.ResponseHeader), bytes.Clone(resp.Body())}
	resp.Header.CopyTo(got.header)
	return got
}

// A byte order mark, other spellings of the media type and unknown fields are understood.
func TestLenientBodies(t *testing.T) {
	t.Parallel()

	c := start(t)
	u := c.signUp(t, "Ann_1")
	for _, contentType := range []string{"application/json", "Application/JSON; charset=UTF-8", "application/json;charset=utf8"} {
		text := fmt.Sprintf("\xef\xbb\xbf{\"username\":%q,\"password\":%q,\"agent\":[],\"unknown\":{\"a\":[1]},\"clientToken\":null,\"requestUser\":null}", u.email, password)
		if got := c.send(t, "POST", "/authserver/authenticate", body{contentType, []byte(text)}); got.status != 200 {
			t.Errorf("%s: %d %s", contentType, got.status, got.body)
		}
	}
}

// Preflights are answered, and pages may read the answers.
func TestCORS(t *testing.T) {
	t.Parallel()

	c := start(t)
	got := c.send(t, "OPTIONS", "/authserver/authenticate", body{})
	got.isEmpty(t)
	for _, got := range []response{got, c.get(t, ""), c.post(t, "/authserver/validate", "{}")} {
		if origin := string(got.header.Peek("Access-Control-Allow-Origin")); origin != "*" {
			t.Errorf("%s: the allowed origin is %q", got.request, origin)
		}
		if cache := string(got.header.Peek("Cache-Control")); cache != "no-store" {
			t.Errorf("%s: Cache-Control is %q", got.request, cache)
		}
	}
}

// The rows that launchers add to the database stay few for each user, and are trimmed.
func TestRowsOfLaunchersAreBounded(t *testing.T) {
	t.Parallel()

	c := start(t, "YGGDRASIL_TOKENS=2", "YGGDRASIL_LOGIN_INTERVAL=1s", "LIMIT_REQUESTS=0", "LIMIT_LOGIN_FAILURES_PER_ADDRESS=3")
	u := c.signUp(t, "Ann_1")
	f := func(table string, want int) {
		t.Helper()
		if n := c.site.count(t, "SELECT count(*) FROM "+table); n != want {
			t.Errorf("%s has %d rows; want %d", table, n, want)
		}
	}
	token := c.issue(t, u).AccessToken
	for range 3 {
		c.issue(t, u)
		token = decode[session](t, c.post(t, "/authserver/refresh", map[string]string{"accessToken": token})).AccessToken
	}
	f("launcher_tokens", 2)

	for i := range 20 {
		c.join(t, token, hexID(u.players[0].UUID), fmt.Sprint("server ", i)).isEmpty(t)
	}
	f("game_joins", 20)
	c.site.exec(t, "UPDATE game_joins SET joined_at = joined_at - interval '31 seconds'")
	c.join(t, token, hexID(u.players[0].UUID), "another server").isEmpty(t)
	f("game_joins", 1)
	c.site.exec(t, "UPDATE game_joins SET joined_at = joined_at - interval '31 seconds'")
	if n, err := c.services.Joins.Trim(t.Context()); n != 1 || err != nil {
		t.Errorf("%d joins were trimmed, %v; want 1", n, err)
	}
	f("game_joins", 0)

	for i := range 5 {
		c.post(t, "/authserver/authenticate", credentials(fmt.Sprintf("nobody%d@example.com", i), password))
	}
	f("launcher_attempts", 3)
	if _, err := c.db.TrimAttempts(t.Context(), time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	f("launcher_attempts", 0)
	c.site.exec(t, "UPDATE launcher_tokens SET issued_at = issued_at - interval '46 days'")
	if n, err := c.services.Tokens.Trim(t.Context()); n != 2 || err != nil {
		t.Errorf("%d tokens were trimmed, %v; want 2", n, err)
	}
}
