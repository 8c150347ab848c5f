package api_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/veneer-skins/veneer/shared/httpserver"
	"github.com/veneer-skins/veneer/shared/testenv"
	"github.com/veneer-skins/veneer/shared/yggproto"
)

const (
	authenticate = yggproto.Root + "/authserver/authenticate"
	joinServer   = yggproto.Root + "/sessionserver/session/minecraft/join"
	hasJoined    = yggproto.Root + "/sessionserver/session/minecraft/hasJoined?username=x&serverId=y"
)

// isLauncherError checks for an error with exactly the two fields that launchers read.
func isLauncherError(t *testing.T, what string, status int, body string, wantStatus int, wantName string) {
	t.Helper()
	var got map[string]string
	if err := json.Unmarshal([]byte(body), &got); err != nil {
		t.Errorf("%s: %d %q: %v", what, status, body, err)
		return
	}
	testenv.Check(t, status == wantStatus && len(got) == 2 && got["error"] == wantName && got["errorMessage"] != "",
		"%s: %d %s; want %d %s", what, status, body, wantStatus, wantName)
}

// Launchers and game servers get errors of their own form from the edge, too.
func TestErrorsForLaunchers(t *testing.T) {
	t.Parallel()
	const unavailable = "Service Unavailable"
	f := func(s *testServer, method, path string, status int, name string) {
		t.Helper()
		got := s.do(t, method, path, nil, strings.Repeat("x", map[string]int{http.MethodPost: 10}[method]))
		isLauncherError(t, method+" "+path, got.status, got.body, status, name)
		if got.header.Get("Cache-Control") != "no-store" || got.header.Get("Content-Type") != "application/json; charset=utf-8" {
			t.Errorf("%s: the header is %v", path, got.header)
		}
	}

	away := open(t, func(s *setup) { s.api.APIUpstream = "http://127.0.0.1:1" })
	for range 10 { // the breaker opens after 5
		f(away, http.MethodPost, authenticate, 503, unavailable)
		f(away, http.MethodGet, hasJoined, 503, unavailable)
	}
	f(away, http.MethodPost, yggproto.Root+"/x/../authserver/authenticate", 404, "Not Found")
	testenv.Contains(t, away.get(t, "/api/yggdrasilx").body, `{"code":9,`, "an error of the site's own API")
	f(open(t), http.MethodPost, authenticate, 404, "Not Found")

	held := make(chan struct{})
	defer close(held)
	silent := func(http.ResponseWriter, *http.Request) { <-held }
	slow := openForwarding(t, silent, limited(func(l *httpserver.Limits) { l.WorkTimeout = 100 * time.Millisecond }))
	f(slow, http.MethodPost, authenticate, 503, unavailable)
}

// So it is for bodies that do not arrive or have no room, and for heads that are refused.
func TestRejectedRequestsOfLaunchers(t *testing.T) {
	t.Parallel()
	const head = "POST " + authenticate + " HTTP/1.1\r\nHost: x\r\n"
	s := openForwarding(t, discardBody, limited(func(l *httpserver.Limits) {
		l.ReadTimeout, l.UploadTimeout, l.BodiesBytes = 200*time.Millisecond, 400*time.Millisecond, 64<<10
	}))
	f := func(sent string, status int, name string) {
		t.Helper()
		got := dial(t, s.url, "").send(t, head+sent).reply(t, http.MethodPost)
		isLauncherError(t, sent[:min(len(sent), 40)], got.status, got.body, status, name)
	}
	f("Content-Length: 100\r\n\r\nx", 408, "Request Timeout")
	f("Content-Length: 100000\r\n\r\n"+strings.Repeat("x", 50_000), 408, "Request Timeout")
	f("Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 400, "Bad Request")
	f("Transfer-Encoding: chunked\r\n\r\nnonsense\r\n", 400, "Bad Request")
}

// The limit of an address does not count what game servers request for all their players, and
// launchers are told of it in a way that they understand.
func TestGameServersAreUnlimited(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	s := openForwarding(t, func(http.ResponseWriter, *http.Request) { asked.Add(1) },
		limited(func(l *httpserver.Limits) { l.AddressRequests, l.AddressBurst = 1, 1 }))
	paths := []string{
		yggproto.Root + "/", hasJoined, yggproto.Root + "/sessionserver/session/minecraft/profile/992960dfc7a54afca041760004499434",
		yggproto.Root + "/api/users/profiles/minecraft/Ann_1", yggproto.Root + "/minecraftservices/publickeys",
	}
	for range 5 {
		for _, path := range paths {
			s.get(t, path).expect(t, path, http.StatusOK)
		}
		got := s.do(t, http.MethodPost, yggproto.Root+"/api/profiles/minecraft", nil, "[]")
		testenv.Check(t, got.status == http.StatusOK, "names: %d %s", got.status, got.body)
	}
	testenv.Equal(t, asked.Load(), int64(5*(len(paths)+1)), "requests that were forwarded")

	testenv.Equal(t, s.do(t, http.MethodPost, authenticate, nil, "{}").status, http.StatusOK,
		"the first request of a launcher")
	got := s.do(t, http.MethodPost, authenticate, nil, "{}")
	isLauncherError(t, authenticate, got.status, got.body, 403, yggproto.ForbiddenOperation)
	testenv.Check(t, got.header.Get("Retry-After") == "1", "the header is %v", got.header)
	got = s.do(t, http.MethodPost, joinServer, nil, "{}")
	isLauncherError(t, joinServer, got.status, got.body, 429, "Too Many Requests")
	s.get(t, "/api/user").expect(t, "a request at the site's own API", 429, "code", "8")
}
