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
	// maxCalls is the most calls of a place that are under way at once.
	maxCalls = 64
	// maxQueued is how many more may wait for their turn, and queueTimeout how long.
	// Whoever comes then is told at once: a place that is behind does not catch up
	// with more of them waiting.
	maxQueued    = 4 * maxCalls
	queueTimeout = time.Second
)

var (
	callsQueued   = promauto.NewGauge(prometheus.GaugeOpts{Name: "veneer_objects_calls_waiting", Help: "Calls of the texture store that wait for others to end."})
	callsRejected = promauto.NewCounter(prometheus.CounterOpts{Name: "veneer_objects_calls_rejected_total", Help: "Calls of the texture store refused, since too many were under way."})
)

// Why a call was not even begun.
var (
	errQueueFull    = errors.New("too many calls are under way, and too many wait")
	errQueueTimeout = errors.New("too many calls are under way for too long")
)

// callLimiter bounds the calls that are under way and those that wait.
type callLimiter struct {
	sem    chan struct{} // a token for every call under way
	queued atomic.Int64
}

func newCallLimiter() *callLimiter { return &callLimiter{sem: make(chan struct{}, maxCalls)} }

// acquire waits for a caller's turn, which the caller must leave. It fails for one
// whose time is over already: that is nothing to blame a place for.
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
