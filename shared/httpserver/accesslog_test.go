package httpserver_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/httpserver"
	"github.com/veneer-skins/veneer/shared/httpserver/clientip"
	"github.com/veneer-skins/veneer/shared/metrics/metricstest"
	"github.com/veneer-skins/veneer/shared/testenv"
	"github.com/veneer-skins/veneer/shared/testenv/cmptest"
)

// logLine is a line of the request log without the fields that change from run to run.
type logLine map[string]any

// loggingServer returns a server that logs a share of its requests, and what it has logged.
func loggingServer(sample float64) (server *fasthttp.Server, lines func(t *testing.T) []logLine) {
	var out strings.Builder
	opts := httpserver.Options{Listener: "public", Log: slog.New(slog.NewJSONHandler(&out, nil)), LogSampleRate: sample, Limits: limits()}
	players := opts.Route("GET /players/{pid}")
	server = opts.NewServer(opts.Handle(func(_ context.Context, rc *fasthttp.RequestCtx) error {
		switch string(rc.Path()) {
		case "/players/7":
			players.AssignTo(rc)
			httpserver.AddLogAttr(rc, slog.Int64("uid", 42))
			rc.SetBodyString("Steve")
			return nil
		case "/stream":
			rc.SetBodyStreamWriter(func(w *bufio.Writer) { _, _ = w.WriteString("on and on") })
			return nil
		case "/unready":
			rc.SetStatusCode(fasthttp.StatusServiceUnavailable)
			return nil
		case "/broken":
			return errors.New("a bug")
		case "/mute":
			return &fault.Error{Kind: fault.Duplicate, Message: "It exists.", Data: func() {}}
		case "/down":
			return fault.NewUnavailable("database", io.ErrUnexpectedEOF)
		case "/panic":
			panic("on the Titanic")
		case "/foreign":
			return &fault.Error{Kind: fault.Forbidden, Message: "Not yours.", Cause: errors.New("the owner")}
		default:
			return fault.New(fault.NotFound, "There is nothing at this path.")
		}
	}))
	return server, func(t *testing.T) []logLine {
		t.Helper()
		var all []logLine
		for line := range strings.Lines(out.String()) {
			var l logLine
			testenv.Do(t, json.Unmarshal([]byte(line), &l))
			if took, ok := l["duration_ms"].(float64); !ok || took < 0 || took > float64(time.Minute/time.Millisecond) {
				t.Errorf("duration_ms is %v", l["duration_ms"])
			}
			delete(l, "duration_ms")
			delete(l, "time")
			all = append(all, l)
		}
		return all
	}
}

func TestRequestLog(t *testing.T) {
	t.Parallel()
	f := func(sent string, want logLine) {
		t.Helper()
		server, lines := loggingServer(1)
		answer := exchangeRaw(t, start(t, server), sent)
		got := lines(t)
		if len(got) != 1 {
			t.Fatalf("%.40q became the lines %v; want one", sent, got)
		}
		if _, body, _ := strings.Cut(answer, "\r\n\r\n"); want["bytes"] == nil {
			want["bytes"] = float64(len(body))
		}
		maps.Copy(want, logLine{"msg": "request", "listener": "public", "request_id": "abc-123", "client": "0.0.0.0"})
		if cause, ok := got[0]["error"].(string); ok {
			got[0]["error"], _, _ = strings.Cut(cause, "\n") // a stack trace has many lines
		}
		cmptest.Same(t, got[0], want, "the line of %.40q", sent)
		expect(t, answer, "X-Request-Id: abc-123\r\n")
	}
	const rest = " HTTP/1.1\r\nHost: veneer.test\r\nConnection: close\r\nX-Request-ID: abc-123\r\n"
	ask := func(request string) string { return request + rest + "\r\n" }

	f(ask("GET /players/7"), logLine{"level": "INFO", "method": "GET", "route": "GET /players/{pid}", "path": "/players/7", "status": 200.0, "uid": 42.0})
	f(ask("HEAD /players/7"), logLine{"level": "INFO", "method": "HEAD", "route": "GET /players/{pid}", "path": "/players/7", "status": 200.0, "uid": 42.0})
	f(ask("GET /stream"), logLine{"level": "INFO", "method": "GET", "route": "other", "path": "/stream", "status": 200.0, "bytes": -1.0})
	f(ask("GET /other"), logLine{"level": "INFO", "method": "GET", "route": "other", "path": "/other", "status": 404.0})
	f(ask("GET /foreign"), logLine{"level": "INFO", "method": "GET", "route": "other", "path": "/foreign", "status": 403.0})
	f(ask("GET /unready"), logLine{"level": "WARN", "method": "GET", "route": "other", "path": "/unready", "status": 503.0})
	f(ask("GET /down"), logLine{
		"level": "WARN", "method": "GET", "route": "other", "path": "/down", "status": 503.0,
		"error": "The database cannot be reached at the moment. Please try again. (unexpected EOF)",
	})
	f(ask("GET /broken"), logLine{"level": "ERROR", "method": "GET", "route": "other", "path": "/broken", "status": 500.0, "error": "a bug"})
	f(ask("GET /panic"), logLine{"level": "ERROR", "method": "GET", "route": "other", "path": "/panic", "status": 500.0, "error": "panic: on the Titanic"})
	f(ask("GET /mute"), logLine{
		"level": "ERROR", "method": "GET", "route": "other", "path": "/mute", "status": 500.0,
		"error": `encode the answer "It exists.": json: unsupported type: func()`,
	})

	// Headers, queries and bodies may hold secrets, so none of them is logged.
	server, lines := loggingServer(1)
	listener := start(t, server)
	exchangeRaw(t, listener, "POST /players/7?password=hunter2"+rest+"Authorization: Bearer hunter2\r\nCookie: hunter2\r\nContent-Length: 7\r\n\r\nhunter2")
	exchangeRaw(t, listener, "GET http://hunter2:hunter2@veneer.test/players/7?password=hunter2#hunter2"+rest+"\r\n")
	exchangeRaw(t, listener, "GET /players/7?password=hunter2 nonsense\r\nhunter2\r\n\r\n")
	got := lines(t)
	if encoded, err := json.Marshal(got); err != nil || strings.Contains(string(encoded), "hunter2") || len(got) != 3 {
		t.Errorf("the log holds %s, %v; want three lines without the password", encoded, err)
	} else if last := got[2]; last["route"] != "bad_request" || last["status"] != 400.0 {
		t.Errorf("an invalid request is logged as %v", last)
	}
}

// Log lines are short, however long the fields of a request are.
func TestLogLineLength(t *testing.T) {
	t.Parallel()
	server, lines := loggingServer(1)
	listener := start(t, server)
	long := strings.Repeat("ä", 300)
	exchangeRaw(t, listener, "GET /unready"+long+" HTTP/1.1\r\nHost: veneer.test\r\nConnection: close\r\nUser-Agent: "+long+"\r\nX-Request-ID: "+long+"\r\n\r\n")
	exchangeRaw(t, listener, "GET"+strings.Repeat("T", 600)+" / HTTP/1.1\r\nHost: veneer.test\r\nConnection: close\r\n\r\n")
	got := lines(t)
	if len(got) != 2 {
		t.Fatalf("there are %d lines; want 2", len(got))
	}
	for _, line := range got {
		encoded := testenv.Must(json.Marshal(line))(t)
		testenv.Check(t, len(encoded) <= 700, "a line has %d bytes: %.300s", len(encoded), encoded)
	}
	if path, ok := got[0]["path"].(string); !ok || !strings.HasPrefix(path, "/unreadyää") || !strings.HasSuffix(path, "ä…") {
		t.Errorf("the path is logged as %q", got[0]["path"])
	}
}

// Nothing that a client sends becomes a label value: each would take memory until the process
// ends.
func TestMetricLabelsAreBounded(t *testing.T) {
	t.Parallel()
	server, _ := loggingServer(0)
	listener := start(t, server)
	for _, request := range []string{
		"GET /made-up-1 HTTP/1.1", "GET /players/made-up-2 HTTP/1.1", "MADE-UP-3 / HTTP/1.1", "GET /?made-up-4 HTTP/1.1",
		"GET http://made-up-5/ HTTP/1.1", "GET / MADE-UP-6",
	} {
		exchangeRaw(t, listener, request+"\r\nHost: made-up-7\r\nUser-Agent: made-up-8\r\nX-Request-ID: made-up-9\r\nConnection: close\r\n\r\n")
	}
	if lower := strings.ToLower(metricstest.Text(t, prometheus.DefaultGatherer)); strings.Contains(lower, "made-up") || !strings.Contains(lower, `route="other"`) {
		t.Error("metrics have labels from clients, or lack the route other")
	}
}

// lastID returns the request id of the last line.
func lastID(lines []logLine) string {
	if len(lines) == 0 {
		return ""
	}
	id, _ := lines[len(lines)-1]["request_id"].(string)
	return id
}

// Whatever the sample rate, failures of the server are logged and errors of clients are not.
func TestErrorsAreAlwaysLogged(t *testing.T) {
	t.Parallel()
	server, lines := loggingServer(0)
	listener := start(t, server)
	for _, path := range []string{"/players/7", "/other", "/foreign", "/broken", "/down", "/unready", "/panic", "/stream"} {
		answer := getPath(t, listener, path, "")
		if id := lastID(lines(t)); strings.Contains(answer, "HTTP/1.1 50") && !strings.Contains(answer, "X-Request-Id: "+id+"\r\n") {
			t.Errorf("the line has the id %s, but the answer is:\n%s", id, answer)
		}
	}
	exchangeRaw(t, listener, "nonsense\r\n\r\n")
	var got []any
	for _, line := range lines(t) {
		got = append(got, line["path"])
	}
	cmptest.Same(t, got, []any{"/broken", "/down", "/unready", "/panic"}, "logged are")
}

func TestLogSampleRate(t *testing.T) {
	t.Parallel()
	server, lines := loggingServer(0.25)
	const request = "GET /other HTTP/1.1\r\nHost: veneer.test\r\n"
	exchangeRaw(t, start(t, server), strings.Repeat(request+"\r\n", 3999)+request+"Connection: close\r\n\r\n")
	// By chance alone it would be more than seven standard deviations.
	n := len(lines(t))
	testenv.Check(t, n >= 800 && n <= 1200, "%d of 4,000 requests are logged; want about 1,000", n)
}

// The labels of a route are in its log lines.
func TestLogHasRouteLabels(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	opts := httpserver.Options{Log: slog.New(slog.NewTextHandler(&out, nil)), LogSampleRate: 1, Limits: limits()}
	route := opts.Route("/avatar/{tid}", httpserver.Label{Name: "format", Value: "webp"}, httpserver.Label{Name: "outcome", Value: "hit"})
	opts.NewServer(route.AssignTo).Handler(exchange(nil))
	if got := out.String(); !strings.Contains(got, "route=/avatar/{tid} ") || !strings.Contains(got, " format=webp outcome=hit\n") {
		t.Errorf("the line is %q; want it to have the route's labels", got)
	}
}

// The log has the forwarded address.
func TestLogHasClientIP(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	log := slog.New(slog.NewTextHandler(&out, nil))
	opts := httpserver.Options{Log: log, LogSampleRate: 1, Limits: limits(), Proxies: clientip.New(clientip.Config{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}, log)}
	rc := from("10.0.0.1", "203.0.113.9")
	opts.NewServer(func(*fasthttp.RequestCtx) {}).Handler(rc)
	testenv.Contains(t, out.String(), "client=203.0.113.9\n", "the line, with the client")
}

// Of a flood of 503s only some are logged.
func TestUnavailableLogRate(t *testing.T) {
	t.Parallel()
	server, lines := loggingServer(0)
	const requests = 1000
	began := time.Now()
	exchangeRaw(t, start(t, server), strings.Repeat("GET /down HTTP/1.1\r\nHost: x\r\n\r\n", requests-1)+"GET /broken HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
	logged := lines(t)
	most := 100 + int(time.Since(began)/(10*time.Millisecond)) + 1
	if n := len(logged); n < 101 || n > most+1 {
		t.Errorf("of %d requests answered with 503 %d are logged; want 100 to %d", requests-1, n-1, most)
	}
	last := logged[len(logged)-1]
	testenv.Check(t, last["path"] == "/broken", "the last line is %v; want the internal error", last)
}
