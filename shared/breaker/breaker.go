// Package breaker is a circuit breaker for calls of a dependency: after some failures in a
// row calls fail at once, and only now and then a probe checks whether the dependency is
// back.
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
	// failureThreshold is how many failures in a row open a breaker. Single failures are
	// normal, and a higher threshold would keep more callers waiting.
	failureThreshold = 5
	// An open breaker rejects all calls for a pause. Each pause is twice the one before, up
	// to maxPause, which is also how late a recovery may be noticed.
	minPause = 50 * time.Millisecond
	maxPause = time.Second
)

// ErrOpen is in the error chain of a rejected call.
var ErrOpen = errors.New("circuit breaker is open after several failures in a row")

var (
	byDependency = []string{"dependency"}

	open     = promauto.NewGaugeVec(prometheus.GaugeOpts{Name: "veneer_breaker_open", Help: "1 while the circuit breaker of a dependency is open."}, byDependency)
	opened   = promauto.NewCounterVec(prometheus.CounterOpts{Name: "veneer_breaker_opened_total", Help: "Times that a circuit breaker opened."}, byDependency)
	rejected = promauto.NewCounterVec(prometheus.CounterOpts{Name: "veneer_breaker_rejected_total", Help: "Calls rejected by an open circuit breaker."}, byDependency)
)

// Breaker is the circuit breaker of one dependency. All methods are safe for concurrent use.
type Breaker struct {
	dependency       string
	open             prometheus.Gauge
	opened, rejected prometheus.Counter

	mu       sync.Mutex
	failures int // in a row
	pause    time.Duration
	retryAt  time.Time // time of the next probe; zero while closed
}

// New returns a closed breaker. The name of the dependency is used in faults and metrics.
func New(dependency string) *Breaker {
	return &Breaker{
		dependency: dependency,
		open:       open.WithLabelValues(dependency),
		opened:     opened.WithLabelValues(dependency),
		rejected:   rejected.WithLabelValues(dependency),
	}
}

// ErrNotAttempted is in the error chain of a call that did not reach the dependency.
var ErrNotAttempted = errors.New("not attempted")

// Call calls the dependency, or returns an Unavailable fault at once if it is known to be
// down.
//
// Only an Unavailable fault counts as a failure: any other result shows that the dependency
// works. A cancelled context and ErrNotAttempted count neither way.
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

// Allow returns the error with which Call would reject a call now, or nil. It is for callers
// that would have to queue before the call.
func (b *Breaker) Allow() error {
	b.mu.Lock()
	isRejecting := !b.retryAt.IsZero() && time.Now().Before(b.retryAt)
	b.mu.Unlock()
	if isRejecting {
		return b.reject()
	}
	return nil
}

// IsOpen reports whether calls are rejected, except for probes.
func (b *Breaker) IsOpen() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return !b.retryAt.IsZero()
}

// Reset closes the breaker, after another sign that the dependency works.
func (b *Breaker) Reset() { b.succeed() }

func (b *Breaker) reject() error {
	b.rejected.Inc()
	return fault.NewUnavailable(b.dependency, ErrOpen)
}

// begin reports whether a call is allowed, and whether it is a probe.
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
	// The next probe waits for the result of this one, but not longer than maxPause: a call
	// that hangs may take long to fail.
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
	default: // too few, or a call that began before the breaker opened
		return
	}
	// Jitter spreads the probes of programs that lost the same dependency at the same time.
	b.retryAt = time.Now().Add(b.pause/2 + rand.N(b.pause/2)) //nolint:gosec // not a secret
}
