package edge

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"github.com/veneer-skins/veneer/shared/fault"
)

var (
	rendersRunning = metrics.NewGauge("veneer_edge_renders_running", nil)
	rendersWaiting = metrics.NewGauge("veneer_edge_renders_waiting", nil)
	rendersRefused = metrics.NewCounter("veneer_edge_renders_refused_total")
)

// slots lets so many draw at once, so many more wait for their turn, and turns
// all others away at once: a picture that comes late is worth less than quick
// pictures for everybody else.
type slots struct {
	taken   chan struct{} // a token for every slot in use
	waiting atomic.Int64
	queue   int64
	wait    time.Duration
}

func newSlots(n, queue int, wait time.Duration) *slots {
	return &slots{taken: make(chan struct{}, n), queue: int64(queue), wait: wait}
}

// take waits for a slot, which the caller must leave when it is done.
func (s *slots) take(ctx context.Context) error {
	select {
	case s.taken <- struct{}{}:
		rendersRunning.Inc()
		return nil
	default:
	}

	defer s.waiting.Add(-1)
	if s.waiting.Add(1) > s.queue {
		return refuse()
	}
	rendersWaiting.Inc()
	defer rendersWaiting.Dec()
	timer := time.NewTimer(s.wait)
	defer timer.Stop()
	select {
	case s.taken <- struct{}{}:
		rendersRunning.Inc()
		return nil
	case <-timer.C:
		return refuse()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// full reports whether whoever comes now would be turned away.
func (s *slots) full() bool {
	return len(s.taken) == cap(s.taken) && s.waiting.Load() >= s.queue
}

func (s *slots) leave() {
	rendersRunning.Dec()
	<-s.taken
}

// close takes every slot and gives none back.
func (s *slots) close() {
	for range cap(s.taken) {
		s.taken <- struct{}{}
	}
}

// ErrShed is the cause of every fault that says no because too much is asked for.
var ErrShed = errors.New("shed")

func refuse() error {
	rendersRefused.Inc()
	return &fault.Error{
		Kind:       fault.Unavailable,
		Message:    "Too many pictures are being drawn at the moment. Please try again.",
		RetryAfter: time.Second,
		Cause:      ErrShed,
	}
}
