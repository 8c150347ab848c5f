// Package breaker spares callers a dependency that is away: after some failures
// in a row they fail at once, and only now and then one of them tries whether it
// is back.
package breaker

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/veneer-skins/veneer/shared/fault"
)

const (
	// failureThreshold is how many failures in a row open a breaker. Single ones happen to
	// everything, and more would only keep more callers waiting.
	failureThreshold = 5
	// An open breaker lets nobody through for a pause. Each is twice the one before,
	// up to the longest, which is how late it may be noticed that all is well again.
	minPause = 50 * time.Millisecond
	maxPause = time.Second
)

// ErrOpen is in the chain of the error of a call that was refused.
var ErrOpen = errors.New("it failed several times in a row, and is left alone for a moment")

var (
	byDependency = []string{"dependency"}

	open     = promauto.NewGaugeVec(prometheus.GaugeOpts{Name: "veneer_breaker_open", Help: "1 while a dependency is left alone, since it fails."}, byDependency)
	opened   = promauto.NewCounterVec(prometheus.CounterOpts{Name: "veneer_breaker_opened_total", Help: "Times when a dependency was left alone."}, byDependency)
	rejected = promauto.NewCounterVec(prometheus.CounterOpts{Name: "veneer_breaker_rejected_total", Help: "Calls refused, since a dependency is left alone."}, byDependency)
)

// Breaker stands before one dependency. All methods may be called at once.
type Breaker struct {
	dependency       string
	open             prometheus.Gauge
	opened, rejected prometheus.Counter

	mu       sync.Mutex
	failures int // in a row
	pause    time.Duration
	retryAt  time.Time // when somebody may try again; zero while closed
}

// New returns a breaker, which is closed. The name of the dependency stands in
// faults and in metrics.
func New(dependency string) *Breaker {
	return &Breaker{
		dependency: dependency,
		open:       open.WithLabelValues(dependency),
		opened:     opened.WithLabelValues(dependency),
		rejected:   rejected.WithLabelValues(dependency),
	}
}

// ErrNotAttempted is in the chain of the error of a call that never came as far as the
// dependency.
var ErrNotAttempted = errors.New("not tried")

// Call calls the dependency, or returns an Unavailable fault at once if it is
// known to be away.
//
// Only an Unavailable fault of the call's counts as a failure: any other answer
// shows that somebody is there. That a caller left, by its context's
// cancellation, shows nothing, and neither does ErrNotAttempted.
func (b *Breaker) Call(call func() error) error {
	probe, ok := b.begin()
	if !ok {
		return b.reject()
	}
	err := call()
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, ErrNotAttempted):
	case fault.KindOf(err) == fault.Unavailable:
		b.fail(probe)
	default:
		b.succeed()
	}
	return err
}

// Allow returns what Call would refuse a caller with who came at this moment,
// and nil if it would not: for those who would first have to wait in line.
func (b *Breaker) Allow() error {
	b.mu.Lock()
	isRejecting := !b.retryAt.IsZero() && time.Now().Before(b.retryAt)
	b.mu.Unlock()
	if isRejecting {
		return b.reject()
	}
	return nil
}

// IsOpen reports whether callers are refused, but for one now and then that finds out
// whether the dependency is back.
func (b *Breaker) IsOpen() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return !b.retryAt.IsZero()
}

// Reset lets everybody through again: somebody has seen in another way that the
// dependency is there.
func (b *Breaker) Reset() { b.succeed() }

func (b *Breaker) reject() error {
	b.rejected.Inc()
	return fault.NewUnavailable(b.dependency, ErrOpen)
}

// begin reports whether a caller may go on, and whether it is to find out if the
// dependency is back.
func (b *Breaker) begin() (probe, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.retryAt.IsZero() {
		return false, true
	}
	now := time.Now()
	if now.Before(b.retryAt) {
		return false, false
	}
	// The next one waits for this one's outcome, but not for ever: what hangs can
	// take long to fail.
	b.retryAt = now.Add(maxPause)
	return true, true
}

func (b *Breaker) succeed() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failures = 0
	if !b.retryAt.IsZero() {
		b.retryAt = time.Time{}
		b.open.Set(0)
	}
}

func (b *Breaker) fail(probe bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failures++
	switch isOpen := !b.retryAt.IsZero(); {
	case isOpen && probe:
		b.pause = min(2*b.pause, maxPause)
	case !isOpen && b.failures >= failureThreshold:
		b.pause = minPause
		b.open.Set(1)
		b.opened.Inc()
	default: // too few, or a call from before it was opened
		return
	}
	// Jitter keeps programs apart that lost the same dependency at the same moment.
	b.retryAt = time.Now().Add(b.pause/2 + rand.N(b.pause/2)) //nolint:gosec // not a secret
}
