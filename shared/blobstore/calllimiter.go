package blobstore

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

const (
	// maxCalls is the most concurrent calls of a backend.
	maxCalls = 64
	// maxQueued is how many more calls may wait, and queueTimeout how long. Calls beyond fail
	// at once: a backend that is overloaded does not recover with a longer queue.
	maxQueued    = 4 * maxCalls
	queueTimeout = time.Second
)

var (
	callsQueued   = promauto.NewGauge(prometheus.GaugeOpts{Name: "veneer_objects_calls_waiting", Help: "Calls of the texture store in the queue."})
	callsRejected = promauto.NewCounter(prometheus.CounterOpts{Name: "veneer_objects_calls_rejected_total", Help: "Calls of the texture store rejected, since the queue was full or took too long."})
)

// Reasons why a call is not attempted.
var (
	errQueueFull    = errors.New("too many calls are in flight, and the queue is full")
	errQueueTimeout = errors.New("too many calls are in flight for too long")
)

// callLimiter bounds the concurrent calls and the queue.
type callLimiter struct {
	sem    chan struct{} // a token for each concurrent call
	queued atomic.Int64
}

func newCallLimiter() *callLimiter { return &callLimiter{sem: make(chan struct{}, maxCalls)} }

// acquire waits for a token; release returns it. It fails if ctx has ended already, so that
// this does not count as a failure of the backend.
func (l *callLimiter) acquire(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case l.sem <- struct{}{}:
		return nil
	default:
	}

	defer l.queued.Add(-1)
	if l.queued.Add(1) > maxQueued {
		callsRejected.Inc()
		return errQueueFull
	}
	callsQueued.Inc()
	defer callsQueued.Dec()
	timer := time.NewTimer(queueTimeout)
	defer timer.Stop()
	select {
	case l.sem <- struct{}{}:
		return nil
	case <-timer.C:
		callsRejected.Inc()
		return errQueueTimeout
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (l *callLimiter) release() { <-l.sem }
