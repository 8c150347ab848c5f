package api_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// Every response has an X-Request-ID, the client's own if it sent a valid one.
func TestEveryResponseHasARequestID(t *testing.T) {
	t.Parallel()
	core := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X-Request-ID", "core's") }))
	t.Cleanup(core.Close)
	w := openSeeded(t, func(s *setup) { s.api.APIUpstream = core.URL })
	const host = " HTTP/1.1\r\nHost: x\r\n"
	f := func(request, fields string, status int, want string) {
		t.Helper()
		for _, url := range []string{w.url, w.slowURL} {
			conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", strings.TrimPrefix(url, "http://"))
			must(t, err)
			_, err = io.WriteString(conn, request+host+fields+"\r\n")
			must(t, err)
			response, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: strings.Fields(request)[0]})
			must(t, err)
			_ = response.Body.Close()
			_ = conn.Close()
			got := response.Header.Values("X-Request-Id")
			if response.StatusCode != status || len(got) != 1 || got[0] == "" || want != "" && got[0] != want {
				t.Errorf("%s, %.40q: %d with X-Request-ID %q; want %d with %q", request, fields, response.StatusCode, got, status, want)
			}
		}
	}
	for _, path := range []string{"/avatar/11", "/textures/" + w.robot.Hash.String()} {
		f("GET "+path, "", 200, "")
		f("GET "+path, "X-Request-ID: abc\r\n", 200, "abc")
		f("HEAD "+path, "X-Request-ID: abc\r\n", 200, "abc")
		f("GET "+path, "If-None-Match: *\r\nX-Request-ID: abc\r\n", 304, "abc")
		f("GET "+path, "If-Match: \"other\"\r\nX-Request-ID: abc\r\n", 412, "abc")
		f("OPTIONS "+path, "X-Request-ID: abc\r\n", 204, "abc")
		f("POST "+path, "Content-Length: 0\r\nX-Request-ID: abc\r\n", 405, "abc")
	}
	f("GET /avatar/player/Nobody", "X-Request-ID: abc\r\n", 404, "abc")
	f("GET /avatar/11?size=big", "X-Request-ID: abc\r\n", 422, "abc")
	f("GET /nothing", "X-Request-ID: abc\r\n", 404, "abc")
	f("GET /api/user", "X-Request-ID: abc\r\n", 200, "abc")
	f("GET /api/user", "", 200, "")
	f("GET /", "X-Long: "+strings.Repeat("x", 17<<10)+"\r\n", 431, "")
	f("GET /", "no field\r\n", 400, "")
}
