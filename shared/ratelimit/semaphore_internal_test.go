package ratelimit

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestSemaphore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const most = 3
		s := NewSemaphore[string](most)
		var running, highest atomic.Int64
		var calls sync.WaitGroup
		for range 100 {
			calls.Go(func() {
				release, err := s.Acquire(t.Context(), "hostile")
				if err != nil {
					t.Error(err)
					return
				}
				defer release()
				if n := running.Add(1); n > highest.Load() {
					highest.Store(n)
				}
				<-time.After(time.Second)
				running.Add(-1)
			})
		}
		synctest.Wait()

		// Other clients do not wait for them.
		began := time.Now()
		for range most {
			release, err := s.Acquire(t.Context(), "honest")
			if err != nil {
				t.Fatal(err)
			}
			defer release()
		}
		if waited := time.Since(began); waited > 0 {
			t.Errorf("another client waited for %s", waited)
		}
		if n := s.size(); n != 2 {
			t.Errorf("%d clients are stored; want 2", n)
		}

		// A call that times out leaves nothing behind.
		expiring, cancel := context.WithTimeout(t.Context(), time.Second/2)
		defer cancel()
		if _, err := s.Acquire(expiring, "honest"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Acquire beyond the bound = %v; want the deadline", err)
		}
		calls.Wait()
		if n := highest.Load(); n != most {
			t.Errorf("%d concurrent calls of a client; want %d", n, most)
		}
		if n := s.size(); n != 1 {
			t.Errorf("%d clients are stored after all calls of one have ended; want 1", n)
		}
	})
}

// size returns the number of clients with calls.
func (s *Semaphore[C]) size() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.clients)
}
