package httpserver_test

import (
	"bufio"
	"bytes"
	crand "crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/shared/httpserver"
	"github.com/veneer-skins/veneer/shared/httpserver/clientip"
	"github.com/veneer-skins/veneer/shared/metrics/metricstest"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// echo is a server that answers with the request path, for some paths on the fast path, and
// counts those.
type echo struct {
	opts      httpserver.Options
	tls       *tls.Config
	fastRoute *httpserver.Route
	fastCount atomic.Int64
}

func newEcho(limits httpserver.Limits) *echo {
	e := &echo{opts: httpserver.Options{Listener: "echo", Log: silent(), Limits: limits}}
	e.fastRoute = e.opts.Route("short")
	return e
}

// large and medium are the bodies of responses for paths that begin with /large and /medium. A medium one is copied behind
// its head, a large one is not.
var large, medium = bytes.Repeat([]byte("0123456789"), 2000), bytes.Repeat([]byte("0123456789"), 1000)

func errorBodyOf(path, query []byte) []byte {
	switch {
	case bytes.HasPrefix(path, []byte("/large")):
		return large
	case bytes.HasPrefix(path, []byte("/medium")):
		return medium
	}
	return fmt.Appendf(nil, "path %q, query %q", path, query)
}

func isUnchanged(fields []byte) bool { return bytes.Contains(fields, []byte("If-None-Match: *\r\n")) }

func (e *echo) handle(rc *fasthttp.RequestCtx) {
	rc.Response.Header.Set("Etag", `"tag"`)
	rc.Response.Header.Set("X-Named", "Veneer")
	if fields := rc.Request.Header.RawHeaders(); isUnchanged(fields) {
		rc.SetStatusCode(fasthttp.StatusNotModified)
	} else {
		rc.SetBody(errorBodyOf(rc.Path(), rc.URI().QueryString()))
	}
}

func (e *echo) tryHandle(p *httpserver.FastContext) bool {
	if !p.SplitTarget() || bytes.HasPrefix(p.Path, []byte("/long")) {
		return false
	}
	if bytes.HasPrefix(p.Path, []byte("/panic")) {
		panic("the answer is lost")
	}
	e.fastCount.Add(1)
	p.SetRoute(e.fastRoute)
	p.SetCanonical([]byte("Etag"), []byte(`"tag"`))
	p.SetCanonical([]byte("X-Named"), []byte("Veneer"))
	if isUnchanged(p.Conditions) {
		p.SetStatusCode(fasthttp.StatusNotModified)
	} else {
		p.SetBody(errorBodyOf(p.Path, p.Query))
	}
	return true
}

// listen serves until the test ends, with or without the fast path.
func (e *echo) listen(t *testing.T, withFastPath bool) (address string) {
	t.Helper()
	limiter := e.opts.AddressLimiter()
	var fastPath *httpserver.FastPath
	if withFastPath {
		fastPath = e.opts.FastPath(limiter, e.tryHandle)
	}
	server := e.opts.NewServer(limiter.Handler(e.handle))
	return serveOn(t, httpserver.Listener{Server: server, TLS: e.tls, FastPath: fastPath}).Addr().String()
}

// clientResponse is a response as the client sees it.
type clientResponse struct {
	Status int
	Close  bool
	Header http.Header
	Body   string
}

// generatedID matches request ids that the server generates.
var generatedID = regexp.MustCompile("^[0-9a-f]{16}$")

// exchangeSecond sends a request, since the first one of a connection is not for the fast
// path, and then other bytes and the end of the stream. It returns all responses but the
// first.
func exchangeSecond(t *testing.T, address string, sent []byte) []clientResponse {
	t.Helper()
	return exchangeSecondOn(t, send(t, address, ""), sent)
}

func exchangeSecondOn(t *testing.T, conn net.Conn, sent []byte) []clientResponse {
	t.Helper()
	testenv.Must(io.WriteString(conn, get))(t)
	reader := bufio.NewReader(conn)
	var all []clientResponse
	method, _, _ := strings.Cut(string(sent), " ")
	request := &http.Request{Method: http.MethodGet}
	for {
		response, err := http.ReadResponse(reader, request)
		request = &http.Request{Method: method}
		if err != nil {
			if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Fatalf("after %d answers to %q: %v", len(all), sent, err)
			}
			return all[1:]
		}
		body, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		testenv.Do(t, err)
		if _, err := http.ParseTime(response.Header.Get("Date")); err != nil && response.StatusCode >= http.StatusOK {
			t.Errorf("%q: %v", sent, err)
		}
		response.Header.Del("Date")
		if ids := response.Header["X-Request-Id"]; response.StatusCode >= http.StatusOK && len(ids) == 1 && generatedID.MatchString(ids[0]) {
			ids[0] = "generated"
		}
		all = append(all, clientResponse{response.StatusCode, response.Close, response.Header, string(body)})
		if len(all) == 1 {
			_, _ = conn.Write(sent) // the server may reject the first half and close
			end := conn
			if secure, ok := conn.(*tls.Conn); ok {
				end = secure.NetConn() // a close_notify might stay unread
			}
			if tcp, ok := end.(*net.TCPConn); ok {
				_ = tcp.CloseWrite()
			}
		}
	}
}

// The fast path answers as the server does, whatever is sent, also under TLS.
func TestFastPathEqualsServer(t *testing.T) {
	t.Parallel()
	for name, config := range map[string]*tls.Config{"plaintext": nil, "TLS": serverTLS(t)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testFastPathEqualsServer(t, config)
		})
	}
}

func testFastPathEqualsServer(t *testing.T, config *tls.Config) {
	t.Helper()
	fast, server := newEcho(limits()), newEcho(limits())
	fast.tls, server.tls = config, config
	fastAddress, serverAddress := fast.listen(t, true), server.listen(t, false)
	exchange := func(address, sent string) []clientResponse {
		t.Helper()
		conn := send(t, address, "")
		if config != nil {
			conn = tlsClient(conn)
		}
		return exchangeSecondOn(t, conn, []byte(sent))
	}
	f := func(sent string, wantFast int64) {
		t.Helper()
		before := fast.fastCount.Load()
		got := exchange(fastAddress, sent)
		if answers := fast.fastCount.Load() - before; wantFast >= 0 && answers != wantFast {
			t.Errorf("%q: the fast path answers %d times; want %d", sent, answers, wantFast)
		}
		diff := cmp.Diff(exchange(serverAddress, sent), got)
		testenv.Check(t, diff == "", "%q is answered differently (-server +fast path):\n%s", sent, diff)
	}
	line := func(target string) string { return "GET " + target + " HTTP/1.1\r\nHost: veneer.test\r\n\r\n" }
	with := func(fields string) string { return "GET /a HTTP/1.1\r\n" + fields + "\r\n" }

	f(line("/"), 1)
	f(line("/avatar/player/Steve.png?size=64&3d&x=%20+#"), 0)
	f(line("/avatar/player/Steve.png?size=64&3d&x=%20+"), 1)
	f(line("/a..b/c.d?/../?//"), 1)
	f(line("/large"), 1)
	for _, target := range []string{
		"*", "http://veneer.test/a", "//a", "/a//b", "/./a", "/a/../b", "/a/..", "/a/.b", "/%61", "/a#b", "/a?b#c", "/a?x=http://b", "/a\\b", "/a:b",
		"/\x01", "/\x80", "/ü", "/a?\x7f", "a", "/long", "/panic",
	} {
		f(line(target), 0)
	}
	f(line("/a b"), 0)
	f(line("/a")+line("/b")+line("/large?1")+line("/c")+line("/large?2"), 5)
	f(line("/medium?1")+line("/medium?2")+line("/large?3")+line("/a")+line("/medium?4"), 5)
	f(line("/a")+line("/long")+line("/b")+line("/long")+line("/long")+line("/c"), 1) // all that follows a request for the server is read by the server
	f(line("/a")+"POST /b HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc"+line("/c"), -1)
	f(line("/a")+"GET /b HTT", 1)
	f("\r\n"+line("/a"), 0)
	for _, start := range []string{"HEAD /a HTTP/1.1", "OPTIONS /a HTTP/1.1", "POST /a HTTP/1.1", "get /a HTTP/1.1", "GET /a HTTP/1.0", "GET /a HTTP/2.0", "GET  /a HTTP/1.1", "GET /a  HTTP/1.1", "GET /a HTTP/1.1 ", "GET /a", "GET\t/a HTTP/1.1"} {
		f(start+"\r\nHost: veneer.test\r\n\r\n", 0)
	}
	for _, fields := range []string{
		"Host: veneer.test\r\nAccept: image/webp,*/*;q=0.8\r\nUser-Agent: x (y; z) \"q\"\r\nCookie: a=b; c=d\r\n",
		"host:veneer.test:8080\r\nConnection: keep-alive\r\nX-Empty:\r\nX-Spaces:   a  b  \r\n",
		"HOST: 127.0.0.1\r\nconnection: Keep-Alive\r\nRange: bytes=0-1\r\nUpgrade: h2c\r\nTe: trailers\r\n",
		"If-None-Match: *\r\nHost: a\r\n",
		"Host: a\r\nIf-None-Match: *\r\nIf-Modified-Since: Sat, 21 Nov 2026 00:00:00 GMT\r\n",
		"Host: a\r\nX-Long: " + strings.Repeat("x", 1000) + "\r\n",
		"Host: a\r\nX-Request-ID: abc-123_X.y\r\n", "x-request-id: a\r\nHost: a\r\n", "Host: a\r\nX-Request-ID: " + strings.Repeat("a", 64) + "\r\n",
		"Host: a\r\nX-Request-ID: " + strings.Repeat("a", 65) + "\r\n", "Host: a\r\nX-Request-ID: a b\r\n", "Host: a\r\nX-Request-ID:\r\n", "Host: a\r\nX-Request-ID: a:b\r\n",
	} {
		f(with(fields), 1)
	}
	for _, fields := range []string{
		"", "Accept: */*\r\n", "Host: a\r\nHost: b\r\n", "Host:\r\n", "Host: a b\r\n", "Host: a/b\r\n", "Host: [::1]\r\n", "Host: a:b:c\r\n", "Host: u@a\r\n",
		"Host: a\r\nConnection: close\r\n", "Host: a\r\nConnection: Close\r\n", "Host: a\r\nConnection: keep-alive, close\r\n", "Host: a\r\nConnection:\r\n",
		"Host: a\r\nContent-Length: 0\r\n", "Host: a\r\nContent-Length: x\r\n", "Host: a\r\nContent-Length : 0\r\n", "Host: a\r\nTransfer-Encoding: chunked\r\n",
		"Host: a\r\nTransfer-Encoding : chunked\r\n", "Host: a\r\nTrailer: x\r\n", "Host: a\r\nExpect: 100-continue\r\n",
		"Host: a\r\nA: b\r\n c\r\n", "Host: a\r\n A: b\r\n", "Host: a\r\nA\r\n", "Host: a\r\n: b\r\n", "Host: a\r\nA b: c\r\n", "Host: a\r\nA: b\nC: d\r\n", "Host: a\nA: b\r\n",
		"Host: a\r\nA: b\rc\r\n", "Host: a\r\nA: \x00\r\n", "Host: a\r\nA: \x7f\r\n", "Host: a\r\nÄ: b\r\n", "Host: a\r\nA: " + strings.Repeat("x", 5000) + "\r\n",
		"Host: a\r\nA: b\tc\r\n", "Host: a\r\nX-Request-ID: a\r\nX-Request-ID: b\r\n",
	} {
		f(with(fields), 0)
	}
	f(with("Host: a\r\nA: ä\r\n"), 1)

	// Mutations of valid requests: bytes removed, doubled, swapped and changed.
	random := rand.New(rand.NewPCG(1, 2))
	seeds := []string{
		line("/a"), line("/large?size=3&x=%41"), with("Host: a\r\nConnection: keep-alive\r\nIf-None-Match: *\r\n"), line("/a/b.png") + line("/c"),
		with("Host: veneer.test\r\nAccept: */*\r\nContent-Length: 2\r\n") + "ab",
	}
	for range 400 {
		sent := []byte(seeds[random.IntN(len(seeds))])
		for range 1 + random.IntN(3) {
			at := random.IntN(len(sent))
			switch random.IntN(4) {
			case 0:
				sent = slices.Delete(sent, at, at+1)
			case 1:
				sent = slices.Insert(sent, at, sent[at])
			case 2:
				sent[at] = "\r\n\t :/.?%#-\x00\x7f\x80aA0"[random.IntN(17)]
			case 3:
				other := random.IntN(len(sent))
				sent[at], sent[other] = sent[other], sent[at]
			}
		}
		f(string(sent), -1)
	}
}

// Requests on the fast path are counted like all others.
func TestFastPathMetrics(t *testing.T) {
	t.Parallel()
	e := newEcho(limits())
	e.opts.Listener = crand.Text() // unique, so that no other test counts there
	e.fastRoute = e.opts.Route("short")
	exchangeSecond(t, e.listen(t, true), []byte(strings.Repeat("GET /a HTTP/1.1\r\nHost: a\r\n\r\n", 80)+
		strings.Repeat("GET /a HTTP/1.1\r\nHost: a\r\nIf-None-Match: *\r\n\r\n", 20)))
	labels := fmt.Sprintf("listener=%q,route=%q", e.opts.Listener, "short")
	expect(t, metricstest.Text(t, prometheus.DefaultGatherer),
		"veneer_requests_total{"+labels+",status=\"2xx\"} 80\n",
		"veneer_requests_total{"+labels+",status=\"3xx\"} 20\n",
		"veneer_request_seconds_count{"+labels+"} 100\n",
	)
}

// The log sample includes requests that the fast path would answer.
func TestFastPathLogSample(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	e := newEcho(limits())
	e.opts.Log, e.opts.LogSampleRate = slog.New(slog.NewTextHandler(&log, nil)), 0.5
	const requests = 1000
	answers := exchangeSecond(t, e.listen(t, true), []byte(strings.Repeat("GET /a HTTP/1.1\r\nHost: a\r\n\r\n", requests)))
	if len(answers) != requests {
		t.Fatalf("%d answers; want %d", len(answers), requests)
	}
	// It is outside 400 to 600 less than once in a billion runs.
	lines := strings.Count(log.String(), "path=/a ")
	testenv.Check(t, lines >= 400 && lines <= 600, "of %d requests %d are logged; want half of them", requests, lines)
}

// A 503 is answered by the fast path, or by the server, which logs it.
func TestFastPathLogsUnavailable(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	e := newEcho(limits())
	e.opts.Log = slog.New(slog.NewTextHandler(&log, nil))
	var handled, fast int
	server := e.opts.NewServer(func(rc *fasthttp.RequestCtx) {
		handled++
		rc.SetStatusCode(fasthttp.StatusServiceUnavailable)
	})
	fastPath := e.opts.FastPath(nil, func(p *httpserver.FastContext) bool {
		if p.IsUnavailableLogged() {
			return false
		}
		fast++
		p.SetRoute(e.fastRoute)
		p.SetStatusCode(fasthttp.StatusServiceUnavailable)
		return true
	})
	conn := send(t, serveOn(t, httpserver.Listener{Server: server, FastPath: fastPath}).Addr().String(), "")

	const requests = 1000
	reader := bufio.NewReader(conn)
	began := time.Now()
	for range requests {
		testenv.Must(io.WriteString(conn, get))(t)
		var response fasthttp.Response
		if err := response.Read(reader); err != nil || response.StatusCode() != fasthttp.StatusServiceUnavailable {
			t.Fatalf("%d, %v", response.StatusCode(), err)
		}
	}
	if lines := strings.Count(log.String(), "status=503"); lines != handled || handled+fast != requests {
		t.Errorf("of %d requests %d were answered on the fast path and %d by the server, with %d lines; want one for each of the server's",
			requests, fast, handled, lines)
	}
	if most := 101 + 100*time.Since(began).Seconds(); handled < 100 || float64(handled) > most {
		t.Errorf("%d requests were left to the server; want 100 to %.0f", handled, most)
	}
}

// The fast path has the same timeouts and limits.
func TestFastPathTimeouts(t *testing.T) {
	t.Parallel()
	idle := newEcho(limitsWith(func(l *httpserver.Limits) { l.IdleTimeout = 50 * time.Millisecond }))
	conn := send(t, idle.listen(t, true), get)
	reader := bufio.NewReader(conn)
	for range 5 {
		var response fasthttp.Response
		testenv.Do(t, response.Read(reader))
		testenv.Must(io.WriteString(conn, get))(t)
	}
	rest, err := io.ReadAll(reader)
	testenv.Check(t, err == nil && bytes.Count(rest, []byte("HTTP/1.1 ")) == 1,
		"one answer and a pause end in %v, after %q", err, rest)

	arriving := newEcho(limitsWith(func(l *httpserver.Limits) { l.ReadTimeout = 50 * time.Millisecond }))
	expect(t, receive(t, send(t, arriving.listen(t, true), get+get+"GET /a HT")), "HTTP/1.1 200 ", "HTTP/1.1 408 ")

	small := newEcho(limitsWith(func(l *httpserver.Limits) { l.HeaderBytes = 1024 }))
	for _, length := range []int{900, 2000} {
		slow := "GET /a HTTP/1.1\r\nHost: a\r\nX-Long: " + strings.Repeat("x", length) + "\r\n\r\n"
		want := fasthttp.StatusOK
		if length > 1024 {
			want = fasthttp.StatusRequestHeaderFieldsTooLarge
		}
		if got := exchangeSecond(t, small.listen(t, true), []byte(slow)); len(got) != 1 || got[0].Status != want {
			t.Errorf("a header of %d bytes is answered %v; want %d", length, got, want)
		}
	}

	writing := newEcho(limitsWith(func(l *httpserver.Limits) { l.WriteTimeout = 100 * time.Millisecond }))
	address := writing.listen(t, true)
	for path, most := range map[string]int64{"/large": 10_000, "/medium": 20_000} { // 200 MB: more than the socket buffers hold
		client, before := send(t, address, ""), writing.fastCount.Load()
		for err := error(nil); err == nil; { // until the connection is closed
			_, err = io.WriteString(client, strings.Repeat("GET "+path+" HTTP/1.1\r\nHost: a\r\n\r\n", 100))
		}
		n := writing.fastCount.Load() - before
		testenv.Check(t, n <= most, "%d requests for %s are answered, though no response is read", n, path)
	}
}

// Requests on the fast path count for the same address and the same limiter as on the server.
func TestFastPathAddressLimit(t *testing.T) {
	t.Parallel()
	const burst = 10
	bounds := limitsWith(func(l *httpserver.Limits) { l.AddressRequests, l.AddressBurst = 1, burst })
	bounds.HeaderBytes = 16 << 10
	for _, proxies := range []*clientip.Proxies{nil, loopbackProxies()} {
		fast := newEcho(bounds)
		fast.opts.Proxies = proxies
		// Every second request is for the server: a request that the fast path leaves counts
		// once.
		conn := send(t, fast.listen(t, true), "")
		reader := bufio.NewReader(conn)
		for _, client := range []string{"", "X-Forwarded-For: 203.0.113.7\r\n", "X-Forwarded-For: 198.51.100.9, 127.0.0.1\r\n", "Forwarded: for=192.0.2.1\r\n"} {
			if proxies == nil && client != "" {
				break // all have the same address
			}
			began, passed := time.Now(), 0
			for i := range 3 * burst {
				target := "/a"
				if i%2 == 0 {
					target = "/long"
				}
				testenv.Must(fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: a\r\n%s\r\n", target, client))(t)
				switch status, _ := readResponse(t, conn, reader); status {
				case http.StatusOK:
					passed++
				case http.StatusTooManyRequests:
				default:
					t.Fatalf("a request is answered %d", status)
				}
			}
			if most := burst + int(time.Since(began).Seconds()) + 1; passed < burst || passed > most {
				t.Errorf("of %q %d requests pass; want %d to %d", client, passed, burst, most)
			}
		}
		testenv.Check(t, fast.fastCount.Load() != 0, "the fast path never answers")
	}
}

// With TLS, no plaintext request is answered.
func TestFastPathRejectsPlaintextUnderTLS(t *testing.T) {
	t.Parallel()
	e := newEcho(limits())
	e.tls = serverTLS(t)
	conn := tlsClient(send(t, e.listen(t, true), ""))
	reader := bufio.NewReader(conn)
	for range 3 {
		testenv.Must(io.WriteString(conn, get))(t)
		readResponse(t, conn, reader)
	}
	before := e.fastCount.Load()
	testenv.Must(io.WriteString(conn.NetConn(), get))(t)
	rest, _ := io.ReadAll(conn.NetConn())
	testenv.Check(t, !bytes.Contains(rest, []byte("HTTP/1.1")), "a plaintext request is answered %q", rest)
	if n := e.fastCount.Load(); before != 2 || n != before {
		t.Errorf("the fast path answers %d times, and %d plaintext requests; want 2, and none", before, n-before)
	}
}

// A panic on the fast path is logged, but not for every request.
func TestFastPathPanicLog(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	e := newEcho(limits())
	e.opts.Log = slog.New(slog.NewTextHandler(&log, nil))
	address := e.listen(t, true)
	for range 3 {
		got := exchangeSecond(t, address, []byte("GET /panic HTTP/1.1\r\nHost: a\r\n\r\n"))
		testenv.Check(t, len(got) == 1 && got[0].Status == fasthttp.StatusOK, "the server answers %v; want 200", got)
	}
	if n := strings.Count(log.String(), "the answer is lost"); n != 1 || !strings.Contains(log.String(), "fastpath_test.go") {
		t.Errorf("three panics are logged %d times:\n%s", n, log.String())
	}
}
