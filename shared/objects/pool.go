package objects

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

const (
	// atOnce is the most calls of a place that are under way at once.
	atOnce = 64
	// queue is how many more may wait for their turn, and longestWait how long.
	// Whoever comes then is told at once: a place that is behind does not catch up
	// with more of them waiting.
	queue       = 4 * atOnce
	longestWait = time.Second
)

var (
	callsWaiting = promauto.NewGauge(prometheus.GaugeOpts{Name: "veneer_objects_calls_waiting", Help: "Calls of the texture store that wait for others to end."})
	callsRefused = promauto.NewCounter(prometheus.CounterOpts{Name: "veneer_objects_calls_refused_total", Help: "Calls of the texture store refused, since too many were under way."})
)

// Why a call was not even begun.
var (
	errFull = errors.New("too many calls are under way, and too many wait")
	errLate = errors.New("too many calls are under way for too long")
)

// pool bounds the calls that are under way and those that wait.
type pool struct {
	taken   chan struct{} // a token for every call under way
	waiting atomic.Int64
}

func newPool() *pool { return &pool{taken: make(chan struct{}, atOnce)} }

// enter waits for a caller's turn, which the caller must leave. It fails for one
// whose time is over already: that is nothing to blame a place for.
func (p *pool) enter(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case p.taken <- struct{}{}:
		return nil
	default:
	}

	defer p.waiting.Add(-1)
	if p.waiting.Add(1) > queue {
		callsRefused.Inc()
		return errFull
	}
	callsWaiting.Inc()
	defer callsWaiting.Dec()
	timer := time.NewTimer(longestWait)
	defer timer.Stop()
	select {
	case p.taken <- struct{}{}:
		return nil
	case <-timer.C:
		callsRefused.Inc()
		return errLate
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (p *pool) leave() { <-p.taken }
