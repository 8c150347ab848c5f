package tracing

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	sdk "go.opentelemetry.io/otel/sdk/trace"

	"github.com/veneer-skins/veneer/shared/limit"
)

var (
	sent    = promauto.NewCounter(prometheus.CounterOpts{Name: "veneer_spans_sent_total", Help: "Spans that the collector has taken."})
	dropped = promauto.NewCounterVec(prometheus.CounterOpts{
		Name: "veneer_spans_dropped_total", Help: "Spans that were dropped, by reason: the queue was full, or the collector did not take them.",
	}, []string{"reason"})
	overflowed = dropped.WithLabelValues("queue")
	unsent     = dropped.WithLabelValues("collector")
)

// mostWaiting is how many spans wait to be sent, or are on their way. The library sends
// up to 512 at once, after at most five seconds.
const mostWaiting = 2048

// queue is the library's queue, but counts what it drops, which that keeps to itself.
// Nobody waits for it: a span that it has no room for is lost.
type queue struct {
	sdk.SpanProcessor
	waiting *atomic.Int64
}

// newQueue returns a queue before an exporter.
func newQueue(exporter sdk.SpanExporter, log *slog.Logger) *queue {
	s := &sender{SpanExporter: exporter, log: log, lines: limit.New[struct{}](1, time.Minute, 1)}
	return &queue{SpanProcessor: sdk.NewBatchSpanProcessor(s, sdk.WithMaxQueueSize(mostWaiting)), waiting: &s.waiting}
}

// OnEnd takes a span that has ended.
func (q *queue) OnEnd(span sdk.ReadOnlySpan) {
	if q.waiting.Add(1) > mostWaiting {
		q.waiting.Add(-1)
		overflowed.Inc()
		return
	}
	q.SpanProcessor.OnEnd(span)
}

// sender is an exporter that counts what it sends.
type sender struct {
	sdk.SpanExporter
	waiting atomic.Int64
	log     *slog.Logger
	lines   *limit.Limiter[struct{}] // about a collector that does not take spans
}

// ExportSpans sends spans. Its error is told here, as the library would not use our log.
func (s *sender) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	err := s.SpanExporter.ExportSpans(ctx, spans)
	s.waiting.Add(-int64(len(spans)))
	if err == nil {
		sent.Add(float64(len(spans)))
		return nil
	}
	unsent.Add(float64(len(spans)))
	if s.lines.Take(struct{}{}, time.Now()).Wait == 0 {
		s.log.WarnContext(ctx, "traces cannot be sent", "spans", len(spans), "error", err)
	}
	return nil
}
