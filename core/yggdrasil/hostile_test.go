package yggdrasil_test

import (
	"bufio"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/core/coretest"
	"github.com/veneer-skins/veneer/core/yggdrasil"
	"github.com/veneer-skins/veneer/shared/testenv"
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
			isError(t, c.Post(t, path, malformed), 400, "Bad Request", "")
		}
		for _, contentType := range []string{"", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/json; charset=iso-8859-1"} {
			isError(t, c.Send(t, "POST", path, raw(contentType, "{}")), 415, "Unsupported Media Type", "")
		}
		isError(t, c.sendHead(t, "POST", path, "Content-Type: application/json\r\nContent-Length: 65537\r\n"), 413, "Request Entity Too Large", "")
		isError(t, c.Get(t, path), 405, "Method Not Allowed", "")
	}
	for _, path := range []string{"/nothing", "/authserver", "/sessionserver/session/minecraft/join/x", "/%00", "/%ff", "/api/user/profile/x"} {
		isError(t, c.Get(t, path), 404, "Not Found", "")
	}
	// Near the root is the site's own API.
	for _, path := range []string{"/api/yggdrasilx", "/api/yggdrasil/../nothing", "/yggdrasil"} {
		got := testenv.Must(c.atRoot().Exchange("GET", path, body{}))(t)
		got.HasStatus(t, 404)
		testenv.Contains(t, string(got.Body), `"code":3`, "%s", path)
	}
}

// A request that does not arrive, and one that is refused before it has a route, get the protocol's
// error.
func TestRejectedRequests(t *testing.T) {
	t.Parallel()
	c := start(t, "READ_TIMEOUT=200ms")
	address := coretest.Listen(t, c.Server) // connections in memory have other timeouts
	c.HTTP = &fasthttp.HostClient{Dial: func(string) (net.Conn, error) { return net.Dial("tcp", address) }}
	const path = "/authserver/authenticate"
	isError(t, c.exchangeHead(t, "POST", path, "Content-Type: application/json\r\nContent-Length: 100\r\n"), 408, "Request Timeout", "")
	isError(t, c.exchangeHead(t, "POST", path, "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n"), 400, "Bad Request", "")
}

// sendHead sends the head of a request and the first byte of its body, and checks the response
// against the OpenAPI document.
func (c client) sendHead(t *testing.T, method, path, lines string) response {
	t.Helper()
	got := c.exchangeHead(t, method, path, lines)
	c.Check(t, got)
	return got
}

// exchangeHead does so, and returns the response unchecked.
func (c client) exchangeHead(t *testing.T, method, path, lines string) response {
	t.Helper()
	conn := testenv.Must(c.HTTP.Dial(""))(t)
	defer func() { _ = conn.Close() }()
	if c.Token != "" {
		lines += "Authorization: Bearer " + c.Token + "\r\n"
	}
	// The first byte of the body has to arrive, too.
	_, err := fmt.Fprintf(conn, "%s %s%s HTTP/1.1\r\nHost: veneer.test\r\n%s\r\n{", method, yggdrasil.Root, path, lines)
	testenv.Do(t, err)
	resp := fasthttp.AcquireResponse()
	defer fasthttp.ReleaseResponse(resp)
	testenv.Do(t, resp.Read(bufio.NewReader(conn)))
	return coretest.NewResponse(method, yggdrasil.Root+path, body{}, resp)
}

// A byte order mark, other spellings of the media type and unknown fields are understood.
func TestLenientBodies(t *testing.T) {
	t.Parallel()
	c, u := startForOne(t)
	for _, contentType := range []string{"application/json", "Application/JSON; charset=UTF-8", "application/json;charset=utf8"} {
		text := fmt.Sprintf("\xef\xbb\xbf{\"username\":%q,\"password\":%q,\"agent\":[],\"unknown\":{\"a\":[1]},\"clientToken\":null,\"requestUser\":null}", u.email, password)
		c.Send(t, "POST", "/authserver/authenticate", raw(contentType, text)).HasStatus(t, 200)
	}
}

// Preflights are answered, and pages may read the answers.
func TestCORS(t *testing.T) {
	t.Parallel()
	c := start(t)
	got := c.Send(t, "OPTIONS", "/authserver/authenticate", body{})
	got.IsEmpty(t)
	for _, got := range []response{got, c.Get(t, ""), c.Post(t, "/authserver/validate", "{}")} {
		testenv.Equal(t, got.Header.Get("Access-Control-Allow-Origin"), "*", "%s: the allowed origin", got.Request())
		testenv.Equal(t, got.Header.Get("Cache-Control"), "no-store", "%s: Cache-Control", got.Request())
	}
}

// The rows that launchers add to the database stay few for each user, and are trimmed.
func TestRowsOfLaunchersAreBounded(t *testing.T) {
	t.Parallel()
	c, u := startForOne(t,
		"YGGDRASIL_TOKENS=2", "YGGDRASIL_LOGIN_INTERVAL=1s", "LIMIT_REQUESTS=0", "LIMIT_LOGIN_FAILURES_PER_ADDRESS=3")
	f := func(table string, want int) {
		t.Helper()
		c.site.HasCount(t, want, "SELECT count(*) FROM "+table)
	}
	token := c.issue(t, u).AccessToken
	for range 3 {
		c.issue(t, u)
		token = decode[session](t, c.Post(t, "/authserver/refresh", map[string]string{"accessToken": token})).AccessToken
	}
	f("launcher_tokens", 2)

	for i := range 20 {
		c.join(t, token, hexID(u.players[0].UUID), fmt.Sprint("server ", i)).IsEmpty(t)
	}
	f("game_joins", 20)
	c.site.Exec(t, "UPDATE game_joins SET joined_at = joined_at - interval '30 seconds'")
	c.join(t, token, hexID(u.players[0].UUID), "another server").IsEmpty(t)
	f("game_joins", 1)
	c.site.Exec(t, "UPDATE game_joins SET joined_at = joined_at - interval '30 seconds'")
	testenv.Equal(t, testenv.Must(c.services.Joins.Trim(t.Context()))(t), 1, "the trimmed joins")
	f("game_joins", 0)

	for i := range 5 {
		c.Post(t, "/authserver/authenticate", credentials(fmt.Sprintf("nobody%d@example.com", i), password))
	}
	f("launcher_attempts", 3)
	testenv.Must(c.Domain.DB.TrimAttempts(t.Context(), time.Now().Add(time.Minute)))(t)
	f("launcher_attempts", 0)
	c.site.Exec(t, "UPDATE launcher_tokens SET issued_at = issued_at - interval '46 days'")
	testenv.Equal(t, testenv.Must(c.services.Tokens.Trim(t.Context()))(t), 2, "the trimmed tokens")
}
