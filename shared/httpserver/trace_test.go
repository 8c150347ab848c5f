package httpserver_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/shared/httpserver"
	"github.com/veneer-skins/veneer/shared/httpserver/clientip"
	"github.com/veneer-skins/veneer/shared/testenv"
	"github.com/veneer-skins/veneer/shared/tracing"
	"github.com/veneer-skins/veneer/shared/tracing/tracingtest"
)

const (
	traceID     = "0af7651916cd43dd8448eb211c80319c"
	traceparent = "Traceparent: 00-" + traceID + "-b7ad6b7169203331-01\r\n"
)

// tracer returns a tracer with a sample rate.
func tracer(t *testing.T, collector *tracingtest.Collector, sample float64) *tracing.Tracer {
	t.Helper()
	traces, err := tracing.New(t.Context(), "test", tracing.Config{URL: collector.URL, Sample: sample}, silent())
	testenv.Do(t, err)
	return traces
}

// loopbackProxies trusts all loopback addresses.
func loopbackProxies() *clientip.Proxies {
	return clientip.New(clientip.Config{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}, silent())
}

// The span of a request has the attributes of its log line; spans within the handler are its
// children.
func TestRequestsAreTraced(t *testing.T) {
	t.Parallel()
	collector := tracingtest.Start(t)
	traces := tracer(t, collector, 1)
	var out strings.Builder
	opts := httpserver.Options{Listener: "public", Log: slog.New(slog.NewJSONHandler(&out, nil)), LogSampleRate: 1, Limits: limits(), Tracer: traces}
	route := opts.Route("GET /{any}", httpserver.Label{Name: "outcome", Value: "odd"})
	server := opts.NewServer(opts.Handle(func(ctx context.Context, rc *fasthttp.RequestCtx) error {
		route.AssignTo(rc)
		_, span := tracing.Start(ctx, "stage")
		span.End()
		return errors.New("a bug")
	}))
	address := start(t, server)
	exchangeRaw(t, address, "GET /%ff HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX-Request-ID: abc-123\r\n"+traceparent+"\r\n")
	traces.Close()

	var line struct {
		Trace string `json:"trace_id"`
	}
	testenv.Do(t, json.Unmarshal([]byte(out.String()), &line))
	spans := collector.Spans()
	if len(spans) != 2 || spans[0].Name != "stage" || spans[0].Parent != spans[1].ID {
		t.Fatalf("the spans are %+v", spans)
	}
	got := spans[1]
	testenv.Check(t, got.Trace != traceID && got.Parent == "" && got.Trace == line.Trace,
		"the trace is %s, and %s in the log; the client's is %s", got.Trace, line.Trace, traceID)
	want := map[string]string{
		"request_id": "abc-123", "listener": "public", "http.request.method": "GET", "http.route": "/{any}",
		"url.path": "/\uFFFD", "http.response.status_code": "500", "outcome": "odd",
	}
	if diff := cmp.Diff(want, got.Attributes); diff != "" || got.Name != "GET /{any}" || got.Error != "a bug" {
		t.Errorf("%s failed with %q (-want +got):\n%s", got.Name, got.Error, diff)
	}
}

// The traceparent of a trusted proxy is followed, others are not. A request that a trusted
// proxy traces is left to the server.
func TestTracesOfTrustedProxiesAreFollowed(t *testing.T) {
	t.Parallel()
	const unsampled = "Traceparent: 00-" + traceID + "-b7ad6b7169203331-00\r\n"
	f := func(proxies *clientip.Proxies, sample float64, header string, wantTaken int64, wantTraces ...string) {
		t.Helper()
		collector := tracingtest.Start(t)
		e := newEcho(limits())
		e.opts.Proxies, e.opts.Tracer = proxies, tracer(t, collector, sample)
		exchangeSecond(t, e.listen(t, true), []byte("GET /short HTTP/1.1\r\nHost: x\r\n"+header+"\r\n"))
		e.opts.Tracer.Close()
		var got []string
		for _, span := range collector.Spans() {
			if span.Attributes["url.path"] == "/short" {
				got = append(got, span.Trace)
			}
		}
		if diff := cmp.Diff(wantTraces, got); diff != "" || e.fastCount.Load() != wantTaken {
			t.Errorf("%q: %d by the fast path, and the traces (-want +got):\n%s", header, e.fastCount.Load(), diff)
		}
	}
	f(loopbackProxies(), 0, traceparent, 0, traceID)
	f(loopbackProxies(), 1, unsampled, 1)
	f(loopbackProxies(), 1, "", 1)
	f(nil, 0, traceparent, 0)
	f(nil, 1, "Traceparent: nonsense\r\n", 1)
}

// A forwarded request has the traceparent of the original.
func TestForwardTrace(t *testing.T) {
	t.Parallel()
	const header = "00-" + traceID + "-b7ad6b7169203331-01"
	f := func(proxies *clientip.Proxies, ctx context.Context, want string) {
		t.Helper()
		rc := exchange(nil)
		rc.Request.Header.Set("Traceparent", header)
		var to fasthttp.RequestHeader
		httpserver.ForwardTrace(ctx, proxies, rc, &to)
		testenv.Equal(t, string(to.Peek("Traceparent")), want, "traceparent")
	}
	allProxies := clientip.New(clientip.Config{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0")}}, silent())
	f(nil, t.Context(), "")
	f(loopbackProxies(), t.Context(), "")
	f(allProxies, t.Context(), header)
}
