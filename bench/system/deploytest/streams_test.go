package deploytest

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/veneer-skins/veneer/bench/system/site"
	"github.com/veneer-skins/veneer/shared/blobstore/blobstoretest"
	"github.com/veneer-skins/veneer/shared/httpserver/httpservertest"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// smuggledRequest is a body that must never be answered as a request.
const smuggledRequest = "GET /api/site HTTP/1.1\r\nHost: a\r\nX-Request-ID: smuggled\r\n\r\n"

// siteRequests are the requests that streams are made of. None needs the database or a password
// hash: thousands take seconds, and a slow database changes no response (that of GET /api states
// whether the database responds). None is HEAD: after its response a body could not be told
// from nginx's response to HTTP/0.9, which has no header.
var siteRequests = []string{
	"GET /api/site HTTP/1.1\r\nHost: a\r\nX-Request-ID: {id}\r\n\r\n",
	"GET /api/user HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer x\r\nConnection: keep-alive\r\nX-Request-ID: {id}\r\n\r\n",
	"GET /avatar/0?size=64 HTTP/1.1\r\nHost: a\r\nX-Request-ID: {id}\r\nIf-None-Match: \"x\"\r\n\r\n",
	"GET /robots.txt HTTP/1.1\r\nHost: a\r\nX-Request-ID: {id}\r\n\r\n",
	"OPTIONS /api/players HTTP/1.1\r\nHost: a\r\nOrigin: https://a\r\nX-Request-ID: {id}\r\n\r\n",
	"POST /api/auth/login HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 13\r\nX-Request-ID: {id}\r\n\r\n{\"email\":\"a\"}",
	httpservertest.WithContentLength("POST /api/auth/login HTTP/1.1\r\nHost: a\r\nContent-Type: text/plain\r\nX-Request-ID: {id}\r\n", smuggledRequest),
	httpservertest.Chunked("POST /api/auth/login HTTP/1.1\r\nHost: a\r\nContent-Type: text/plain\r\nX-Request-ID: {id}\r\n", smuggledRequest, "abc"),
	httpservertest.WithContentLength("PUT /avatar/0 HTTP/1.1\r\nHost: a\r\nX-Request-ID: {id}\r\n", smuggledRequest),
	"POST /api/auth/login HTTP/1.1\r\nHost: a\r\nExpect: 100-Continue\r\nContent-Length: 2\r\nContent-Type: application/json\r\nX-Request-ID: {id}\r\n\r\n{}",
	"GET /api/site HTTP/1.0\r\nX-Request-ID: {id}\r\n\r\n",
	"GET /api/site HTTP/1.1\r\nHost: a\r\nConnection: close\r\nX-Request-ID: {id}\r\n\r\n",
}

// matchedIDHeader is a response header added by the balancer: the id of the request to which it
// matches the response. It differs from the id in the response if the two disagree on where a
// request ends (request smuggling).
const matchedIDHeader = "X-Matched-ID"

// idHeaderConfig are the replacements in a balancer's file that add that header. They also have
// nginx respond on a connection that the client has half-closed.
var idHeaderConfig = map[string][][2]string{
	"haproxy": {{"option forwardfor", "option forwardfor\n  http-request set-var(txn.matched_id) req.fhdr(X-Request-ID) if { req.fhdr_cnt(X-Request-ID) eq 1 } { req.fhdr(X-Request-ID) -m reg ^[-_.0-9A-Za-z]*$ }\n" +
		"  http-response set-header " + matchedIDHeader + " %[var(txn.matched_id)]"}},
	"nginx": {
		{"upstream core {", "map $http_x_request_id $matched_id {\n  ~^[-_.0-9A-Za-z]*$ $http_x_request_id;\n}\nupstream core {"},
		{"client_header_timeout 10s;", "client_header_timeout 10s;\n  proxy_ignore_client_abort on;\n  add_header " + matchedIDHeader + " $matched_id always;"},
	},
}

// Through each balancer, malformed requests are answered as without it, or rejected by one of the
// two; and every response belongs to the request to which the balancer matches it, never to the
// body of another one. TEST_STREAMS sets the number of streams.
func TestStreamsThroughBalancers(t *testing.T) {
	t.Parallel()
	streams := testenv.Must(strconv.Atoi(cmp.Or(os.Getenv("TEST_STREAMS"), "1000")))(t)
	s := site.Start(t, blobstoretest.Directory(t).Config, "CORE_LIMIT_REQUESTS=0")
	for _, b := range balancers[:2] { // Varnish would cache answers
		t.Run(b.program, func(t *testing.T) {
			t.Parallel()
			write := b.write
			b.write = func(t *testing.T, content, address, work string, servers []server) []string {
				t.Helper()
				for _, line := range idHeaderConfig[b.program] {
					content = replaceOnce(t, content, line[0], line[1])
				}
				return write(t, content, address, work, servers)
			}
			edge := addressesOf(t, s.Edge)
			url := b.startSite(t, addressesOf(t, s.Core), edge, edge)
			compareStreams(t, edge[0], strings.TrimPrefix(url, "http://"), b.program, streams)
		})
	}
}

// compareStreams sends streams to a site directly and through a balancer, from several workers.
func compareStreams(t *testing.T, direct, through, name string, streams int) {
	t.Helper()
	var workers sync.WaitGroup
	var counted sync.Mutex
	total := 0
	for worker := range 8 {
		generator := httpservertest.NewGenerator(fmt.Sprint(name[:1], worker), uint64(worker), siteRequests)
		workers.Go(func() {
			for range streams / 8 {
				if t.Failed() {
					return
				}
				n := compareStream(t, direct, through, generator.Next())
				counted.Lock()
				total += n
				counted.Unlock()
			}
		})
	}
	workers.Wait()
	if total < streams && !t.Failed() {
		t.Errorf("of %d streams only %d answers are the same", streams, total)
	}
}

// compareStream returns the number of equal responses.
func compareStream(t *testing.T, direct, through string, s httpservertest.Stream) (same int) {
	t.Helper()
	want, err := httpservertest.Exchange(t.Context(), direct, s)
	testenv.Check(t, err == nil, "directly: %v\n%s", err, s)
	got, err := httpservertest.Exchange(t.Context(), through, s)
	if err != nil && !errors.Is(err, httpservertest.ErrStatusLine) { // nginx rejects what it takes for HTTP/0.9 without a status line
		t.Errorf("through %s: %v\n%s", through, err, s)
	}
	for i, answer := range got {
		request := answer.Header.Get(matchedIDHeader)
		// The response to an unreadable request has a generated id, and one of the balancer
		// itself none.
		isRefused := answer.Status >= 400 && (answer.ID == "generated" || answer.ID == "")
		isAccepted := regexp.MustCompile(`^[-_.0-9A-Za-z]{1,64}$`).MatchString(request)
		if isAccepted && answer.ID != request && !isRefused {
			t.Errorf("answer %d is that to %q, and was taken for that to %q:\n%s", i+1, answer.ID, request, s)
		}
	}
	// After the first rejection the two sides have read different streams: the stricter one
	// closes.
	for same < min(len(want), len(got)) {
		a, b := want[same], got[same]
		if a.Status >= 400 && b.Status >= 400 {
			same++
			if a.IsLast() || b.IsLast() || a.Status != b.Status {
				return same
			}
			continue
		}
		if max(a.Status, b.Status) >= 400 || min(a.Status, b.Status) == 100 { // which a balancer may send by itself
			return same
		}
		if a.Status != b.Status || a.ID != b.ID || a.Body != b.Body {
			t.Errorf("answer %d is %d for %q; directly it is %d for %q:\n%s", same+1, b.Status, b.ID, a.Status, a.ID, s)
		}
		same++
	}
	return same
}
