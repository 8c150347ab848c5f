package httpserver_test

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/httpserver"
	"github.com/veneer-skins/veneer/shared/testenv"
)

func TestRequestID(t *testing.T) {
	t.Parallel()
	var id string
	opts := httpserver.Options{Log: silent(), Limits: limits()}
	listener := start(t, opts.NewServer(func(rc *fasthttp.RequestCtx) { id = httpserver.RequestID(rc) }))
	f := func(sent string, accepted bool) {
		t.Helper()
		answer := getPath(t, listener, "/", "X-Request-ID: "+sent+"\r\n")
		testenv.Check(t, (id == sent) == accepted && id != "",
			"the id %q became %q; want it unchanged: %t", sent, id, accepted)
		expect(t, answer, "\r\nX-Request-Id: "+id+"\r\n")
	}

	f("abc-123_X.y", true)
	f(strings.Repeat("a", 64), true)
	f(strings.Repeat("a", 65), false)
	f("", false)
	f("a b", false)
	f(`a"b`, false)
	f("a=b", false)
	f("ä", false)
}

// responseIDs sends a request, and returns the status of the response and its ids.
func responseIDs(t *testing.T, address, sent string) (status int, ids []string) {
	t.Helper()
	method, _, _ := strings.Cut(sent, " ")
	response, err := http.ReadResponse(bufio.NewReader(send(t, address, sent)), &http.Request{Method: method})
	testenv.Do(t, err)
	defer func() { _ = response.Body.Close() }()
	testenv.Must(io.ReadAll(response.Body))(t)
	return response.StatusCode, response.Header["X-Request-Id"]
}

// Every response has the id of its request, also where no handler is reached, and on the fast
// path.
func TestEveryResponseHasRequestID(t *testing.T) {
	t.Parallel()
	bounds := limits()
	bounds.ReadTimeout, bounds.AddressRequests, bounds.AddressBurst = 100*time.Millisecond, 1_000_000, 1_000_000
	opts := httpserver.Options{Listener: "id", Log: silent(), Limits: bounds}
	route := opts.Route("POST /").AcceptBody(1024, 0)
	server := opts.NewServer(opts.AddressLimiter().Handler(opts.HandleNoContext(func(rc *fasthttp.RequestCtx) error {
		switch string(rc.Path()) {
		case "/stream":
			rc.SetBodyStreamWriter(func(w *bufio.Writer) { _, _ = w.WriteString("a stream") })
		case "/unchanged":
			rc.SetStatusCode(fasthttp.StatusNotModified)
		case "/none":
			rc.SetStatusCode(fasthttp.StatusNoContent)
		case "/other-id":
			rc.Response.Header.Set("X-Request-ID", "another one's")
		case "/reset":
			rc.Response.Reset()
		case "/panic":
			panic("in a handler")
		case "/missing":
			return fault.New(fault.NotFound, "There is nothing at this path.")
		default:
			route.AssignTo(rc)
			return httpserver.ReadBody(rc)
		}
		return nil
	})))
	address := serveTCP(t, server)

	narrow := limitsWith(func(l *httpserver.Limits) { l.AddressRequests, l.AddressBurst = 1, 1 })
	few := httpserver.Options{Listener: "few", Log: silent(), Limits: narrow}
	fewAddress := serveTCP(t, few.NewServer(few.AddressLimiter().Handler(func(*fasthttp.RequestCtx) {})))
	responseIDs(t, fewAddress, get)

	fullAddress, _ := fullServer(t, nil)
	operators := serveTCP(t, httpserver.OperatorServer(httpserver.Options{Log: silent(), Limits: limits()}, httpserver.NewHealth(), prometheus.NewRegistry(), false))
	fast := newEcho(limits())
	fastAddress := fast.listen(t, true)

	const id = "X-Request-ID: abc-123\r\n"
	seen := map[string]string{}
	f := func(address, sent string, status int, readable bool) {
		t.Helper()
		answered, got := responseIDs(t, address, sent)
		if answered != status || len(got) != 1 || !generatedID.MatchString(got[0]) || seen[got[0]] != "" {
			t.Errorf("%.60q: %d with X-Request-ID %q; want %d with a new one", sent, answered, got, status)
			return
		}
		seen[got[0]] = sent
		if !readable {
			return
		}
		line, rest, _ := strings.Cut(sent, "\r\n")
		if answered, got := responseIDs(t, address, line+"\r\n"+id+rest); answered != status || len(got) != 1 || got[0] != "abc-123" {
			t.Errorf("%.60q with an id of its own: %d with X-Request-ID %q; want %d with that", sent, answered, got, status)
		}
	}
	const rest = " HTTP/1.1\r\nHost: veneer.test\r\n\r\n"

	for path, status := range map[string]int{"/": 200, "/stream": 200, "/unchanged": 304, "/none": 204, "/other-id": 200, "/reset": 200, "/panic": 500, "/missing": 404} {
		f(address, "GET "+path+rest, status, true)
		f(address, "HEAD "+path+rest, status, true)
	}
	const post = "POST / HTTP/1.1\r\nHost: veneer.test\r\n"
	f(address, "nonsense\r\n\r\n", 400, false)
	f(address, "GET / HTTP/1.1\r\nHost: veneer.test\r\nX-Long: "+strings.Repeat("x", 5000)+"\r\n\r\n", 431, false)
	f(address, post+"Content-Length: 1025\r\n\r\n"+strings.Repeat("x", 1025), 413, true)
	f(address, post+"Content-Length: 10\r\n\r\nhalf", 408, true)
	f(address, "GET / HTTP/1.1\r\nHost: ven", 408, false)
	f(fewAddress, get, 429, true)
	f(fullAddress, get, 503, false) // answered before the request is read
	for path, status := range map[string]int{"/livez": 200, "/readyz": 200, "/metrics": 200, "/debug/pprof/cmdline": 200, "/nothing": 404} {
		f(operators, "GET "+path+rest, status, true)
	}

	f(fastAddress, "GET /a"+rest, 200, true) // by the server, as the first request of its connection
	for _, header := range []string{"", "If-None-Match: *\r\n", id} {
		before := fast.fastCount.Load()
		answers := exchangeSecond(t, fastAddress, []byte("GET /a HTTP/1.1\r\nHost: veneer.test\r\n"+header+"\r\n"))
		want := "generated"
		if header == id {
			want = "abc-123"
		}
		if len(answers) != 1 || answers[0].Header.Get("X-Request-Id") != want || fast.fastCount.Load() != before+1 {
			t.Errorf("the fast path answers %v; want one answer with the id %s", answers, want)
		}
	}
}

// The id in a response is the one in its log line, also for requests of the fast path that
// are in the log sample.
func TestRequestIDIsLogged(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	e := newEcho(limits())
	e.opts.Log, e.opts.LogSampleRate = slog.New(slog.NewTextHandler(&log, nil)), 0.5
	conn := send(t, e.listen(t, true), "")
	reader := bufio.NewReader(conn)
	ids := map[string]bool{}
	const requests = 200
	for range requests {
		testenv.Must(io.WriteString(conn, get))(t)
		var response fasthttp.Response
		testenv.Do(t, response.Read(reader))
		ids[string(response.Header.Peek("X-Request-ID"))] = true
	}
	testenv.Equal(t, len(ids), requests, "ids of as many requests")
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	for _, line := range lines {
		var id string
		if _, after, ok := strings.Cut(line, "request_id="); ok {
			_, err := fmt.Sscan(after, &id)
			testenv.Check(t, err == nil && ids[id], "the log has a line with the id %q, %v; no answer has it", id, err)
		}
	}
	if answered := e.fastCount.Load(); answered == 0 || len(lines) < 2 {
		t.Errorf("of %d requests the fast path answered %d, and the log has %d lines", requests, answered, len(lines))
	}
}
