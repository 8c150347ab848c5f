package breaker_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/veneer-skins/veneer/shared/breaker"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// errDown is the error of a dependency that is down.
var errDown = fault.NewUnavailable("test", errors.New("down"))

// calls is a breaker, and the number of calls that it allowed.
type calls struct {
	*testing.T
	*breaker.Breaker
	n int
}

// runInBubble runs a test in synthetic time.
func runInBubble(t *testing.T, test func(c *calls)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(&calls{T: t, Breaker: breaker.New(t.Name())}) })
}

// call makes a call with an outcome, and checks whether it is allowed.
func (c *calls) call(outcome error, allowed bool) {
	c.Helper()
	before := c.n
	if err := c.Allow(); (err == nil) != allowed {
		c.Errorf("Allow() = %v; want nil: %t", err, allowed)
	}
	err := c.Call(func() error { c.n++; return outcome })
	switch {
	case c.n-before == 1 != allowed:
		c.Errorf("the call was allowed: %t; want %t", !allowed, allowed)
	case allowed && !errors.Is(err, outcome):
		c.Errorf("Call() = %v; want %v", err, outcome)
	case !allowed && (fault.KindOf(err) != fault.Unavailable || fault.Of(err).RetryAfter == 0):
		c.Errorf("Call() = %v; want it unavailable, with a time to try again", err)
	}
}

// open opens the breaker by failures.
func (c *calls) open() {
	c.Helper()
	for range 5 {
		c.call(errDown, true)
	}
	c.call(nil, false)
}

// pauses returns how long it takes until the next call, which fails, is allowed.
func (c *calls) pauses() time.Duration {
	begin, before := time.Now(), c.n
	for c.n == before {
		<-time.After(time.Millisecond)
		_ = c.Call(func() error { c.n++; return errDown })
	}
	return time.Since(begin)
}

func TestOpensAfterFailuresInARow(t *testing.T) {
	t.Parallel()
	runInBubble(t, func(c *calls) {
		for range 10 {
			for range 4 {
				c.call(errDown, true)
			}
			c.call(nil, true)
		}
		c.open()
	})
}

func TestOnlyAnUnavailableFaultIsAFailure(t *testing.T) {
	t.Parallel()
	for _, outcome := range []error{
		errors.New("anything"), fault.New(fault.NotFound, "There is none."), fault.NewUnavailable("test", context.Canceled), context.Canceled,
	} {
		runInBubble(t, func(c *calls) {
			for range 100 {
				c.call(outcome, true)
			}
		})
	}
	runInBubble(t, func(c *calls) {
		for range 5 {
			c.call(fault.NewUnavailable("test", context.DeadlineExceeded), true)
		}
		c.call(nil, false)
	})
	// A cancelled call does not reset the count of failures.
	runInBubble(t, func(c *calls) {
		for range 5 {
			c.call(fmt.Errorf("read: %w", context.Canceled), true)
			c.call(errDown, true)
		}
		c.call(nil, false)
	})
}

func TestPausesGrow(t *testing.T) {
	t.Parallel()
	runInBubble(t, func(c *calls) {
		c.open()
		for _, milliseconds := range []int{50, 100, 200, 400, 800, 1000, 1000, 1000} {
			most := time.Duration(milliseconds) * time.Millisecond
			if got := c.pauses(); got < most/2 || got > most+time.Millisecond {
				t.Errorf("the pause is %s; want %s to %s", got, most/2, most)
			}
		}
		<-time.After(time.Second)
		c.call(nil, true)
		// The state is as it was at first.
		c.open()
		got := c.pauses()
		testenv.Check(t, got <= 51*time.Millisecond, "the first pause after a reset is %s; want 50ms at most", got)
	})
}

func TestOneProbeAtATime(t *testing.T) {
	t.Parallel()
	runInBubble(t, func(c *calls) {
		c.open()
		<-time.After(50 * time.Millisecond)
		hangs, done := make(chan error), make(chan struct{})
		try := func() {
			_ = c.Call(func() error { c.n++; return <-hangs })
			done <- struct{}{}
		}
		go try()
		synctest.Wait()
		<-time.After(999 * time.Millisecond)
		c.call(nil, false)
		// A probe that hangs does not prevent the next one.
		<-time.After(time.Millisecond)
		go try()
		synctest.Wait()
		c.call(nil, false)
		hangs <- nil
		<-done
		c.call(nil, true)
		hangs <- errDown
		<-done
		c.call(nil, true)
	})
}

func TestEarlierCallsDoNotLengthenPause(t *testing.T) {
	t.Parallel()
	runInBubble(t, func(c *calls) {
		fails, done := make(chan error), make(chan struct{})
		for range 60 {
			go func() {
				_ = c.Call(func() error { return <-fails })
				done <- struct{}{}
			}()
		}
		synctest.Wait() // until all are in flight
		for range 60 {
			fails <- errDown
			<-done
		}
		got := c.pauses()
		testenv.Check(t, got <= 51*time.Millisecond, "the first pause is %s; want 50ms at most", got)
	})
}

func TestReset(t *testing.T) {
	t.Parallel()
	runInBubble(t, func(c *calls) {
		c.open()
		c.Reset()
		for range 4 { // earlier failures do not count
			c.call(errDown, true)
		}
		c.call(nil, true)
	})
}

// TestRejectAllocations bounds the cost of a rejected call: while the breaker is open, every
// request pays it.
func TestRejectAllocations(t *testing.T) {
	b := breaker.New(t.Name())
	if allocs := testing.AllocsPerRun(1000, func() {
		_ = b.Call(func() error { return errDown })
	}); allocs > 2 {
		t.Errorf("a rejected call allocates %v times; want 2 at most, the fault and its sentence", allocs)
	}
}
