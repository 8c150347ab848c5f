package tracing_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/veneer-skins/veneer/shared/metrics/metricstest"
	"github.com/veneer-skins/veneer/shared/testenv"
	"github.com/veneer-skins/veneer/shared/testenv/cmptest"
	"github.com/veneer-skins/veneer/shared/tracing"
	"github.com/veneer-skins/veneer/shared/tracing/tracingtest"
)

// open returns a tracer of all requests.
func open(t *testing.T, url string, log *slog.Logger) *tracing.Tracer {
	t.Helper()
	return testenv.Must(tracing.New(t.Context(), "test", tracing.Config{URL: url, Sample: 1}, log))(t)
}

func silent() *slog.Logger { return slog.New(slog.DiscardHandler) }

func TestSpanParents(t *testing.T) {
	t.Parallel()
	collector := tracingtest.Start(t)
	tracer := open(t, collector.URL+"/", silent())
	root, other := tracer.StartRequest(nil, time.Now()), tracer.StartRequest(nil, time.Now())
	ctx := trace.ContextWithSpan(t.Context(), root)
	inner, stage := tracing.Start(ctx, "outer")
	began := time.Now().Add(-time.Second)
	tracing.Record(inner, "inner", began, began.Add(time.Millisecond))
	err := errors.New("bad \xff bytes")
	tracing.End(stage, &err)
	all := []trace.Span{trace.SpanFromContext(t.Context()), root, other}
	_, together := tracing.StartLinked(t.Context(), "together", slices.Values(all))
	together.End()
	root.End()
	// A span may end after its parent.
	_, late := tracing.Start(ctx, "late")
	late.End()
	tracer.Close()

	spans := map[string]tracingtest.Span{}
	for _, span := range collector.Spans() {
		if spans[span.Name] = span; span.Program != "veneer-test" || span.Trace != root.SpanContext().TraceID().String() {
			t.Errorf("%s has the program %s and the trace %s", span.Name, span.Program, span.Trace)
		}
	}
	rootID := root.SpanContext().SpanID().String()
	want := map[string][]string{
		"request": {""}, "outer": {rootID}, "inner": {spans["outer"].ID}, "late": {rootID}, "together": {rootID, other.SpanContext().SpanID().String()},
	}
	got := map[string][]string{}
	for name, span := range spans {
		got[name] = append([]string{span.Parent}, span.Links...)
	}
	cmptest.Same(t, got, want, "parents and links of the spans")
	testenv.Equal(t, spans["outer"].Error, "bad \uFFFD bytes", "the error")
	testenv.Equal(t, spans["inner"].Ended.Sub(spans["inner"].Began), time.Millisecond, "a span of a millisecond took")
}

// Without a trace there are no spans, and the context is unchanged.
func TestNoCollector(t *testing.T) {
	t.Parallel()
	tracer, err := tracing.New(t.Context(), "test", tracing.Config{Sample: 1}, silent())
	if tracer != nil || err != nil {
		t.Fatalf("without a collector New = %v, %v", tracer, err)
	}
	testenv.Check(t, tracer.Provider() == nil && tracer.Follower() == nil, "a nil tracer has a provider or a follower")
	tracer.Close()
	ctx, span := tracing.Start(t.Context(), "stage")
	testenv.Check(t, ctx == t.Context() && !span.IsRecording(), "a span without a parent is traced")
	header := propagation.HeaderCarrier{}
	if tracing.Inject(ctx, header); len(header) > 0 {
		t.Errorf("the header without a trace is %v", header)
	}
}

func TestFollower(t *testing.T) {
	t.Parallel()
	collector := tracingtest.Start(t)
	tracer := testenv.Must(tracing.New(t.Context(), "test", tracing.Config{URL: collector.URL}, silent()))(t)
	follower := tracer.Follower()
	const id = "0af7651916cd43dd8448eb211c80319c"
	f := func(by *tracing.Tracer, traceparent string, want bool) {
		t.Helper()
		span := by.StartRequest(propagation.HeaderCarrier{"Traceparent": {traceparent}}, time.Now())
		if got := span != nil && span.IsRecording(); got != want || want && span.SpanContext().TraceID().String() != id {
			t.Errorf("%q is continued with %v", traceparent, span)
		}
		// The sampling decision is passed on, or the next program would make its own.
		header := propagation.HeaderCarrier{}
		if by == tracer {
			tracing.Inject(trace.ContextWithSpan(t.Context(), span), header)
			if sent := header.Get("traceparent"); strings.HasSuffix(sent, "-01") != want || sent == "" {
				t.Errorf("%q is passed on as %q", traceparent, sent)
			}
		}
	}
	for _, by := range []*tracing.Tracer{tracer, follower} {
		f(by, "00-"+id+"-b7ad6b7169203331-01", true)
		f(by, "00-"+id+"-b7ad6b7169203331-00", false)
		f(by, "00-nonsense-01", false)
		f(by, "", false)
	}
	tracer.Close()
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	f := func(url string) {
		t.Helper()
		_, err := tracing.New(t.Context(), "test", tracing.Config{URL: url, Sample: 1}, silent())
		if err == nil || !strings.HasPrefix(err.Error(), "URL ") || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: %v; want an error about URL", url, err)
		}
	}
	f("collector:4318")
	f("ftp://collector")
	f("http://")
	f("http://user:hunter2@collector")
	f("http://collector:port")
}

// counterValue returns a counter of this process.
func counterValue(t *testing.T, series string) int {
	t.Helper()
	return int(metricstest.Value(t, metricstest.Text(t, prometheus.DefaultGatherer), series))
}

// Spans that a collector does not accept are counted, logged and dropped. Requests never wait
// for the collector, and the end of a program only briefly.
func TestCollectorFailures(t *testing.T) { //nolint:paralleltest // reads counters of the process
	const overflow, unsent, sent = `veneer_spans_dropped_total{reason="queue"}`, `veneer_spans_dropped_total{reason="collector"}`, "veneer_spans_sent_total"

	t.Run("rejects", func(t *testing.T) {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }))
		defer server.Close()
		var out bytes.Buffer
		tracer, before := open(t, server.URL, slog.New(slog.NewJSONHandler(&out, nil))), counterValue(t, unsent)
		for range 3 {
			tracer.StartRequest(nil, time.Now()).End()
		}
		tracer.Close()
		testenv.Equal(t, counterValue(t, unsent)-before, 3, "spans are counted as dropped")
		if got := out.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "trace export failed") || !strings.Contains(got, "403") {
			t.Errorf("the log is %q", got)
		}
	})

	t.Run("works", func(t *testing.T) {
		collector := tracingtest.Start(t)
		tracer, before := open(t, collector.URL, silent()), counterValue(t, sent)
		const spans = 3000 // more than the queue holds, but flushed in between
		for i := range spans {
			tracer.StartRequest(nil, time.Now()).End()
			if i%1000 == 999 {
				testenv.Do(t, flush(t.Context(), tracer))
			}
		}
		tracer.Close()
		if got := len(collector.Spans()); got != spans || counterValue(t, sent)-before != spans {
			t.Errorf("%d spans arrive, and %d are counted; want %d", got, counterValue(t, sent)-before, spans)
		}
	})

	// Run last, as its leftovers are counted later.
	t.Run("hangs", func(t *testing.T) {
		release := make(chan struct{})
		server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
		defer server.Close()
		defer close(release)
		tracer, before := open(t, server.URL, silent()), counterValue(t, overflow)
		const spans, room = 5000, 2048
		for range spans {
			tracer.StartRequest(nil, time.Now()).End()
		}
		testenv.Equal(t, counterValue(t, overflow)-before, spans-room, "spans are dropped")
		began := time.Now()
		if tracer.Close(); time.Since(began) > 20*time.Second {
			t.Errorf("Close took %s", time.Since(began))
		}
	})
}

// flush exports all queued spans.
func flush(ctx context.Context, tracer *tracing.Tracer) error {
	provider, ok := tracer.Provider().(interface{ ForceFlush(context.Context) error })
	if !ok {
		return errors.New("the provider cannot flush")
	}
	return provider.ForceFlush(ctx)
}
