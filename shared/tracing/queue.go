package tracing

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	sdk "go.opentelemetry.io/otel/sdk/trace"

	"github.com/veneer-skins/veneer/shared/ratelimit"
)

var (
	spansSent    = promauto.NewCounter(prometheus.CounterOpts{Name: "veneer_spans_sent_total", Help: "Spans that the collector has taken."})
	spansDropped = promauto.NewCounterVec(prometheus.CounterOpts{
		Name: "veneer_spans_dropped_total", Help: "Spans that were dropped, by reason: the queue was full, or the collector did not take them.",
	}, []string{"reason"})
	droppedByQueue     = spansDropped.WithLabelValues("queue")
	droppedByCollector = spansDropped.WithLabelValues("collector")
)

// maxQueued is how many spans wait to be sent, or are on their way. The library sends
// up to 512 at once, after at most five seconds.
const maxQueued = 2048

// queue is the library's queue, but counts what it drops, which that keeps to itself.
// Nobody waits for it: a span that it has no room for is lost.
type queue struct {
	sdk.SpanProcessor
	queued *atomic.Int64
}

// newQueue returns a queue before an exporter.
func newQueue(exporter sdk.SpanExporter, log *slog.Logger) *queue {
	s := &countingExporter{SpanExporter: exporter, log: log, errorLog: ratelimit.New[struct{}](1, time.Minute, 1)}
	return &queue{SpanProcessor: sdk.NewBatchSpanProcessor(s, sdk.WithMaxQueueSize(maxQueued)), queued: &s.queued}
}

// OnEnd takes a span that has ended.
func (q *queue) OnEnd(span sdk.ReadOnlySpan) {
	if q.queued.Add(1) > maxQueued {
		q.queued.Add(-1)
		droppedByQueue.Inc()
		return
	}
	q.SpanProcessor.OnEnd(span)
}

// countingExporter is an exporter that counts what it sends.
type countingExporter struct {
	sdk.SpanExporter
	queued   atomic.Int64
	log      *slog.Logger
	errorLog *ratelimit.Limiter[struct{}] // about a collector that does not take spans
}

// ExportSpans sends spans. Its error is told here, as the library would not use our log.
func (s *countingExporter) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	err := s.SpanExporter.ExportSpans(ctx, spans)
	s.queued.Add(-int64(len(spans)))
	if err == nil {
		spansSent.Add(float64(len(spans)))
		return nil
	}
	droppedByCollector.Add(float64(len(spans)))
	if s.errorLog.Take(struct{}{}, time.Now()).Wait == 0 {
		s.log.WarnContext(ctx, "traces cannot be sent", "spans", len(spans), "error", err)
	}
	return nil
}
