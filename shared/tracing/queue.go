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
	spansSent    = promauto.NewCounter(prometheus.CounterOpts{Name: "veneer_spans_sent_total", Help: "Spans that the collector has accepted."})
	spansDropped = promauto.NewCounterVec(prometheus.CounterOpts{
		Name: "veneer_spans_dropped_total", Help: "Spans that were dropped, by reason: the queue was full, or the collector did not accept them.",
	}, []string{"reason"})
	droppedByQueue     = spansDropped.WithLabelValues("queue")
	droppedByCollector = spansDropped.WithLabelValues("collector")
)

// maxQueued is the most spans that are queued or being sent. The library sends up to 512 at
// once, after at most five seconds.
const maxQueued = 2048

// queue is the library's batch processor with a count of dropped spans, which the library
// does not expose. It never blocks: a span beyond its capacity is dropped.
type queue struct {
	sdk.SpanProcessor
	queued *atomic.Int64
}

// newQueue returns a queue before an exporter.
func newQueue(exporter sdk.SpanExporter, log *slog.Logger) *queue {
	s := &countingExporter{SpanExporter: exporter, log: log, errorLog: ratelimit.New[struct{}](1, time.Minute, 1)}
	return &queue{SpanProcessor: sdk.NewBatchSpanProcessor(s, sdk.WithMaxQueueSize(maxQueued)), queued: &s.queued}
}

// OnEnd queues a span that has ended.
func (q *queue) OnEnd(span sdk.ReadOnlySpan) {
	if q.queued.Add(1) > maxQueued {
		q.queued.Add(-1)
		droppedByQueue.Inc()
		return
	}
	q.SpanProcessor.OnEnd(span)
}

// countingExporter counts the spans that it exports.
type countingExporter struct {
	sdk.SpanExporter
	queued   atomic.Int64
	log      *slog.Logger
	errorLog *ratelimit.Limiter[struct{}] // bounds the log lines about failed exports
}

// ExportSpans exports spans. It logs the error itself, since the library would use another
// logger.
func (c *countingExporter) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	err := c.SpanExporter.ExportSpans(ctx, spans)
	c.queued.Add(-int64(len(spans)))
	if err == nil {
		spansSent.Add(float64(len(spans)))
		return nil
	}
	droppedByCollector.Add(float64(len(spans)))
	if c.errorLog.Take(struct{}{}, time.Now()).Wait == 0 {
		c.log.WarnContext(ctx, "trace export failed", "spans", len(spans), "error", err)
	}
	return nil
}
