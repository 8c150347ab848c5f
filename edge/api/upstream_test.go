package api_test

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/shared/httpserver"
	"github.com/veneer-skins/veneer/shared/logging/loggingtest"
	"github.com/veneer-skins/veneer/shared/testenv"
	"github.com/veneer-skins/veneer/shared/testenv/cmptest"
)

// openForwarding opens a server that forwards /api to a handler.
func openForwarding(t *testing.T, handler http.HandlerFunc, changes ...func(*setup)) *testServer {
	t.Helper()
	upstream := httptest.NewServer(handler)
	t.Cleanup(upstream.Close)
	return open(t, append(changes, func(s *setup) { s.api.APIUpstream = upstream.URL })...)
}

// limited changes the limits of a server.
func limited(change func(*httpserver.Limits)) func(*setup) {
	return func(s *setup) { s.limits = change }
}

// streamFew is a limit of 32 streamed bodies at a time.
func streamFew(l *httpserver.Limits) { l.BodiesBytes = 2 << 20 }

// discardBody is an upstream that reads whole bodies.
func discardBody(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }

// trusting makes a server trust proxies of networks.
func trusting(networks ...string) func(*setup) {
	return func(s *setup) {
		for _, network := range networks {
			s.proxies.TrustedProxies = append(s.proxies.TrustedProxies, netip.MustParsePrefix(network))
		}
	}
}

func TestForwardedUnchanged(t *testing.T) {
	t.Parallel()
	type passed struct {
		method, uri, host, body string
		header                  http.Header
	}
	seen := make(chan passed, 1)
	s := openForwarding(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		seen <- passed{r.Method, r.RequestURI, r.Host, string(body), r.Header}
		w.Header()["Set-Cookie"] = []string{"a=1", "b=2"}
		w.Header()["X-Twice"] = []string{"one", "two"}
		w.Header().Set("Access-Control-Allow-Origin", "https://site.example")
		w.Header().Set("Keep-Alive", "timeout=5")
		w.Header().Set("Connection", "X-Private")
		w.Header().Set("X-Private", "for the edge only")
		w.Header().Set("Content-Type", "application/vnd.test")
		w.Header().Set("Cache-Control", "no-store")
		w.WriteHeader(http.StatusTeapot)
		_, _ = io.WriteString(w, "short and stout")
	})

	for _, method := range []string{"GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"} {
		body := ""
		if method != "GET" {
			body = "a body\x00\xff of " + method
		}
		got := s.do(t, method, "/api/closet/%E2%9C%93%2F..;x?q=a%20b&q=%2B&empty", http.Header{
			"Authorization": {"Bearer token"}, "Content-Type": {"application/x-test"}, "X-Twice": {"1", "2"}, "Cookie": {"c=d"},
			"Connection": {"X-Mine"}, "X-Mine": {"between us"}, "Te": {"trailers"}, "Proxy-Authorization": {"Basic x"},
			"X-Forwarded-For": {"6.6.6.6"}, "Forwarded": {"for=6.6.6.6"}, "X-Forwarded-Host": {"evil.test"}, "X-Request-Id": {"r-1"}, "User-Agent": {"test"}, "If-None-Match": {"*"},
		}, body)
		p := <-seen
		if p.method != method || p.uri != "/api/closet/%E2%9C%93%2F..;x?q=a%20b&q=%2B&empty" || p.body != body {
			t.Errorf("forwarded: %s %s with %q", p.method, p.uri, p.body)
		}
		p.header.Del("Accept-Encoding")
		p.header.Del("Content-Length")
		cmptest.Same(t, p.header, http.Header{
			"Authorization": {"Bearer token"}, "Content-Type": {"application/x-test"}, "X-Twice": {"1", "2"}, "Cookie": {"c=d"},
			"X-Forwarded-For": {"127.0.0.1"}, "X-Forwarded-Host": {strings.TrimPrefix(s.url, "http://")}, "X-Request-Id": {"r-1"}, "User-Agent": {"test"}, "If-None-Match": {"*"},
		}, "forwarded header of %s", method)
		got.expect(t, method, http.StatusTeapot, "body", "short and stout")
		got.header.Del("Date")
		cmptest.Same(t, got.header, http.Header{
			"Set-Cookie": {"a=1", "b=2"}, "X-Twice": {"one", "two"}, "Access-Control-Allow-Origin": {"https://site.example"},
			"Content-Type": {"application/vnd.test"}, "Content-Length": {"15"}, "Cache-Control": {"no-store"},
			"Cache-Status": {"veneer; fwd=bypass"},
		}, "header of the answer of %s", method)
		testenv.Equal(t, got.id, "r-1", "the id of the answer of %s", method)
	}
	s.do(t, http.MethodPost, "/api/auth/logout", nil, "")
	p := <-seen
	testenv.Check(t, p.header.Values("Content-Type") == nil, "a Content-Type was made up: %v", p.header)
	testenv.Check(t, s.backend.fetched.Load() == 0, "an API request fetched a picture")
}

func TestForwardedResponses(t *testing.T) {
	t.Parallel()
	s := openForwarding(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/api/none":
			w.WriteHeader(http.StatusNoContent)
		case "/api/head":
			w.Header().Set("Content-Length", "1234")
		case "/api/chunks":
			for range 3 {
				_, _ = io.WriteString(w, "chunk ")
				_ = http.NewResponseController(w).Flush()
			}
		case "/api":
			_, _ = io.WriteString(w, "root")
		case "/console":
			_, _ = io.WriteString(w, "console")
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	})
	s.get(t, "/api/none").expect(t, "204", http.StatusNoContent, "body", "", "Content-Type", "")
	s.do(t, http.MethodHead, "/api/head", nil, "").expect(t, "HEAD", http.StatusOK,
		"body", "", "Content-Length", "1234")
	s.get(t, "/api/chunks").expect(t, "chunks", http.StatusOK, "body", "chunk chunk chunk ", "Content-Length", "18")
	s.get(t, "/api").expect(t, "/api", http.StatusOK, "body", "root")
	s.get(t, "/console").expect(t, "/console", http.StatusOK, "body", "console")
	// Paths of the edge.
	s.get(t, "/consoles").expect(t, "/consoles", http.StatusNotFound, "code", "3")
	s.get(t, "/apiary").expect(t, "/apiary", http.StatusNotFound, "code", "3")
	s.get(t, "/api/../avatar/99").expect(t, "/api/../avatar/99", http.StatusNotFound,
		"Cache-Control", "public, max-age=15")
}

// Core gets the host that the client requested, also from a proxy in front.
func TestHostIsForwarded(t *testing.T) {
	t.Parallel()
	seen := make(chan string, 1)
	handler := func(_ http.ResponseWriter, r *http.Request) { seen <- r.Header.Get("X-Forwarded-Host") }
	f := func(s *testServer, want, host string, header http.Header) {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/console/session", nil)
		testenv.Do(t, err)
		request.Host, request.Header = host, header
		response, err := http.DefaultClient.Do(request)
		testenv.Do(t, err)
		testenv.Do(t, response.Body.Close())
		testenv.Equal(t, <-seen, want, "the host that core gets")
	}
	forged := http.Header{"X-Forwarded-Host": {"evil.test", "worse.test"}}
	alone, behind := openForwarding(t, handler), openForwarding(t, handler, trusting("127.0.0.0/8"))
	f(alone, "skins.test:8443", "skins.test:8443", http.Header{})
	f(alone, "skins.test", "skins.test", forged)
	f(behind, "skins.test", "skins.test", http.Header{})
	f(behind, "skins.test", "edge.test", http.Header{"X-Forwarded-Host": {"skins.test"}})
}

// An edge does not limit the size of a body and does not buffer it: the limits are core's.
func TestBodiesAreForwardedWhole(t *testing.T) {
	t.Parallel()
	s := openForwarding(t, func(w http.ResponseWriter, r *http.Request) {
		sum := sha256.New()
		n, _ := io.Copy(sum, r.Body)
		_, _ = fmt.Fprintf(w, "%d %d %x", r.ContentLength, n, sum.Sum(nil))
	})
	noise := make([]byte, 20<<20)
	_, _ = rand.NewChaCha8([32]byte{}).Read(noise)
	for _, size := range []int{1, 8191, 8192, 8193, 1 << 20, len(noise)} {
		for _, header := range []http.Header{nil, {"Expect": {"100-continue"}}} {
			want := fmt.Sprintf("%d %d %x", size, size, sha256.Sum256(noise[:size]))
			got := s.do(t, http.MethodPost, "/api/textures", header, string(noise[:size]))
			got.expect(t, fmt.Sprintf("a body of %d bytes", size), http.StatusOK, "body", want)
		}
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/api/textures", struct{ io.Reader }{bytes.NewReader(noise[:size])})
		testenv.Do(t, err)
		response, err := http.DefaultClient.Do(request)
		testenv.Do(t, err)
		body := testenv.Must(io.ReadAll(response.Body))(t)
		_ = response.Body.Close()
		announced := -1 // chunked, unless the edge has buffered it
		if size <= 8192 {
			announced = size
		}
		testenv.Equal(t, string(body), fmt.Sprintf("%d %d %x", announced, size, sha256.Sum256(noise[:size])),
			"a chunked body of %d bytes is answered with", size)
	}
}

// A response that core sends before the end of the body reaches the client, even one that sends
// the whole body before it reads.
func TestEarlyResponsesAreForwarded(t *testing.T) {
	t.Parallel()
	s := openForwarding(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.CopyN(io.Discard, r.Body, 10_000)
		w.Header().Set("Connection", "close")
		w.WriteHeader(http.StatusRequestEntityTooLarge)
		_, _ = io.WriteString(w, "too large")
	})
	const head = "POST /api/textures HTTP/1.1\r\nHost: x\r\nContent-Length: 10000000\r\n\r\n"
	for _, size := range []int{20_000, 10_000_000} { // a client that waits, and one that sends all of it
		got := dial(t, s.url, "").send(t, head+strings.Repeat("x", size)).reply(t, http.MethodPost)
		got.expect(t, fmt.Sprintf("%d bytes", size), http.StatusRequestEntityTooLarge, "body", "too large")
	}
}

// A body that does not arrive is no failure of core, and no connection to core is used before
// 8 KiB of it have arrived.
func TestBodiesThatDoNotArrive(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	s := openForwarding(t, func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(http.StatusTeapot)
	}, limited(func(l *httpserver.Limits) {
		l.ReadTimeout, l.UploadTimeout = 200*time.Millisecond, 400*time.Millisecond
	}))
	const head = "POST /api/textures HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n"
	for range 10 { // more than the failures that open the breaker
		for _, part := range []int{0, 1, 8192, 50_000} {
			got := dial(t, s.url, "").send(t, head+strings.Repeat("x", part)).reply(t, http.MethodPost)
			got.expect(t, fmt.Sprintf("%d bytes of a body", part), http.StatusRequestTimeout, "code", "4")
			if got := asked.Load(); part < 8192 && got != 0 {
				t.Fatalf("core is asked before 8 KiB have arrived")
			}
		}
		asked.Store(0)
	}
	gone := dial(t, s.url, "").send(t, head+strings.Repeat("x", 50_000))
	testenv.Do(t, gone.Close())
	s.do(t, http.MethodPost, "/api/textures", nil, strings.Repeat("x", 50_000)).expect(t, "all", http.StatusTeapot)
}

// Stalled bodies, however many, leave connections to core for other requests.
func TestStalledBodiesLeaveConnections(t *testing.T) {
	t.Parallel()
	s := openForwarding(t, discardBody, limited(streamFew))
	const head = "POST /api/textures HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n"
	var answered sync.WaitGroup
	statuses := make(chan int, 2000)
	for range 1200 { // more than there are connections to core
		connection := dial(t, s.url, "").send(t, head+strings.Repeat("x", 20_000))
		answered.Go(func() {
			response, err := http.ReadResponse(bufio.NewReader(connection), nil)
			if err == nil {
				statuses <- response.StatusCode
				_ = response.Body.Close()
			}
		})
	}
	s.do(t, http.MethodPost, "/api/auth/login", nil, "email=x").expect(t, "a small body", http.StatusOK)
	testenv.Eventually(t, "a stalled body is aborted for one that arrives", func() bool {
		return s.do(t, http.MethodPost, "/api/textures", nil, strings.Repeat("x", 50_000)).status == http.StatusOK
	})
	for range 1000 {
		if status := <-statuses; status != http.StatusServiceUnavailable && status != http.StatusRequestTimeout {
			t.Errorf("a stalled body is answered with %d", status)
		}
	}
}

// The body of a request for a picture is not waited for.
func TestBodiesOfPictures(t *testing.T) {
	t.Parallel()
	s := open(t)
	for request, want := range map[string]int{"POST /avatar/1": http.StatusMethodNotAllowed, "GET /avatar/0": 0, "PUT /": http.StatusMethodNotAllowed, "POST /api/x": http.StatusNotFound} {
		if want == 0 {
			want = s.get(t, "/avatar/0").status
		}
		for _, framing := range []string{"Content-Length: 1114111\r\n\r\nx", "Transfer-Encoding: chunked\r\n\r\n"} {
			got := dial(t, s.url, "").send(t, request+" HTTP/1.1\r\nHost: x\r\n"+framing).reply(t, http.MethodGet)
			testenv.Equal(t, got.status, want, "%s with %q", request, framing)
		}
	}
}

func TestClientAddress(t *testing.T) {
	t.Parallel()
	address := func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, strings.Join(r.Header.Values("X-Forwarded-For"), "|"))
	}
	f := func(s *testServer, want string, forwarded ...string) {
		t.Helper()
		testenv.Equal(t, s.do(t, http.MethodGet, "/api/x", http.Header{"X-Forwarded-For": forwarded}, "").body, want,
			"X-Forwarded-For: %q", forwarded)
	}

	behind := openForwarding(t, address, trusting("127.0.0.0/8", "10.0.0.0/8"))
	f(behind, "127.0.0.1")
	f(behind, "203.0.113.9", "6.6.6.6, 203.0.113.9", "10.1.2.3")
	f(behind, "2001:db8:2::1", "2001:db8:2::1")

	wary := openForwarding(t, address)
	f(wary, "127.0.0.1", "6.6.6.6")
	testenv.Contains(t, wary.log.String(), "header=X-Forwarded-For", "the log, which warns of a forgery")
}

// A forwarded request has the same id in the logs of both programs.
func TestOneIDInBothLogs(t *testing.T) {
	t.Parallel()
	log := &loggingtest.Buffer{}
	opts := httpserver.Options{Log: slog.New(slog.NewTextHandler(log, nil)), LogSampleRate: 1, Limits: httpserver.Limits{HeaderBytes: 4096, MaxConnections: 10, BodiesBytes: 64 << 20}}
	core := listen(t, httpserver.Listener{Server: opts.NewServer(func(rc *fasthttp.RequestCtx) { rc.SetStatusCode(fasthttp.StatusTeapot) })})
	s := open(t, func(s *setup) { s.api.APIUpstream, s.sample = core, 1 })

	f := func(header http.Header) {
		t.Helper()
		id := s.do(t, http.MethodGet, "/api/x", header, "").id
		sent := header.Get("X-Request-Id")
		testenv.Check(t, sent == "" || id == sent, "the answer to a request with the id %q has the id %q", sent, id)
		for program, text := range map[string]string{"core": log.String(), "edge": s.log.String()} {
			if want := "msg=request request_id=" + id + " "; strings.Count(text, want) != 1 {
				t.Errorf("the log of %s lacks a line with %q:\n%s", program, want, text)
			}
		}
	}

	f(http.Header{})
	f(http.Header{"X-Request-Id": {"r-1"}})
}

func TestUpstreamAway(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	s := openForwarding(t, func(http.ResponseWriter, *http.Request) {
		asked.Add(1)
		panic(http.ErrAbortHandler)
	})
	for _, method := range []string{"POST", "PUT", "DELETE"} {
		asked.Store(0)
		got := s.do(t, method, "/api/players", http.Header{"X-Request-Id": {"r-2"}}, "name=x")
		got.expect(t, method, http.StatusServiceUnavailable,
			"code", "9", "Retry-After", "1", "Cache-Control", "no-store", "Access-Control-Allow-Origin", "*")
		testenv.Equal(t, got.id, "r-2", "the id of the answer to %s", method)
		testenv.Equal(t, asked.Load(), 1, "how often %s was sent", method)
	}
	asked.Store(0)
	testenv.Equal(t, s.get(t, "/api/players").status, http.StatusServiceUnavailable, "GET")
	testenv.Equal(t, asked.Load(), 2, "how often GET was sent")
	unreachable := open(t, func(s *setup) { s.api.APIUpstream = "http://127.0.0.1:1" })
	testenv.Equal(t, unreachable.get(t, "/api/players").status, http.StatusServiceUnavailable, "without a listener")
}

// An API that does not answer gets few requests, and all of them again as soon as it answers.
func TestUpstreamBreaker(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	var works atomic.Bool
	s := openForwarding(t, func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		if works.Load() {
			w.WriteHeader(http.StatusInternalServerError) // a response, whatever the status
			return
		}
		panic(http.ErrAbortHandler)
	})
	post := func() int { return s.do(t, http.MethodPost, "/api/players", nil, "name=x").status }

	const requests = 200
	for range requests {
		if got := post(); got != http.StatusServiceUnavailable {
			t.Fatalf("a request is answered with %d; want 503", got)
		}
	}
	n := asked.Load()
	testenv.Check(t, n >= 5 && n <= requests/2, "of %d requests %d were forwarded; want 5, and then a few", requests, n)
	works.Store(true)
	testenv.Eventually(t, "the API, which answers again, gets requests", func() bool { return post() == http.StatusInternalServerError })
	for range requests {
		if got := post(); got != http.StatusInternalServerError {
			t.Fatalf("a request is answered with %d; want what the API says", got)
		}
	}
}

// Requests of one network that the API does not answer leave connections for other networks.
func TestRequestsOfOneNetworkLeaveConnections(t *testing.T) {
	t.Parallel()
	held := make(chan struct{})
	defer close(held)
	s := openForwarding(t, func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/slow" {
			<-held
		}
	})
	const many = 1100 // more than there are connections to the API
	before := s.handled.Load()
	for range many {
		dial(t, s.url, "127.0.2.1").send(t, "GET /api/slow HTTP/1.1\r\nHost: x\r\n\r\n")
	}
	testenv.Eventually(t, "all requests are there", func() bool { return s.handled.Load()-before == many })
	for range 10 {
		if status := dial(t, s.url, "127.0.3.1").get(t, "/api/user").status; status != http.StatusOK {
			t.Fatalf("a request from another network is answered with %d", status)
		}
	}
}

// Requests of several networks that wait for core leave connections for streamed bodies.
func TestRequestsOfManyNetworksLeaveConnectionsForBodies(t *testing.T) {
	t.Parallel()
	held := make(chan struct{})
	defer close(held)
	var reached atomic.Int64
	s := openForwarding(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if r.URL.Path == "/api/slow" {
			reached.Add(1)
			<-held
		}
	}, limited(streamFew))
	const networks, each = 3, 400
	before := s.handled.Load()
	for network := range networks {
		for range each {
			dial(t, s.url, fmt.Sprintf("127.0.%d.1", 2+network)).send(t, "GET /api/slow HTTP/1.1\r\nHost: x\r\n\r\n")
		}
	}
	testenv.Eventually(t, "all requests are there", func() bool { return s.handled.Load()-before == networks*each && reached.Load() >= 1024 })
	s.do(t, http.MethodPost, "/api/textures", nil, strings.Repeat("x", 50_000)).expect(t, "a body", http.StatusOK)
	testenv.Equal(t, reached.Load(), 1024, "requests wait for core")
}

// When core is back, a slow upload does not keep the breaker open for other requests.
func TestASlowUploadIsNoProbe(t *testing.T) {
	t.Parallel()
	var away atomic.Bool
	arrived := make(chan struct{}, 1)
	s := openForwarding(t, func(_ http.ResponseWriter, r *http.Request) {
		if away.Load() {
			panic(http.ErrAbortHandler)
		}
		if r.Method == http.MethodPost {
			arrived <- struct{}{}
			_, _ = io.Copy(io.Discard, r.Body)
		}
	})
	away.Store(true)
	for range 5 { // as many failures as open the breaker
		if got := s.do(t, http.MethodPut, "/api/user", nil, "x"); got.status != http.StatusServiceUnavailable {
			t.Fatalf("without core a request is answered with %d %s", got.status, got.body)
		}
	}
	away.Store(false)
	for isRefused := true; isRefused; {
		connection := dial(t, s.url, "").send(t, "POST /api/textures HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n"+strings.Repeat("x", 50_000))
		refused := make(chan int, 1)
		go func() {
			if response, err := http.ReadResponse(bufio.NewReader(connection), nil); err == nil {
				_ = response.Body.Close()
				refused <- response.StatusCode
			}
		}()
		select {
		case <-arrived:
			isRefused = false
		case status := <-refused:
			if status != http.StatusServiceUnavailable {
				t.Fatalf("an upload is answered with %d before it has arrived", status)
			}
		}
	}
	s.get(t, "/api/user").expect(t, "while an upload arrives, a request", http.StatusOK)
}
