package ratelimit

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/veneer-skins/veneer/shared/testenv"
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
			release := testenv.Must(s.Acquire(t.Context(), "honest"))(t)
			defer release()
		}
		waited := time.Since(began)
		testenv.Check(t, waited == 0, "another client waited for %s", waited)
		testenv.Equal(t, s.size(), 2, "clients are stored")

		// A call that times out leaves nothing behind.
		expiring, cancel := context.WithTimeout(t.Context(), time.Second/2)
		defer cancel()
		testenv.Is(t, testenv.ErrOf(s.Acquire(expiring, "honest")), context.DeadlineExceeded,
			"Acquire beyond the bound")
		calls.Wait()
		testenv.Equal(t, highest.Load(), most, "concurrent calls of a client")
		testenv.Equal(t, s.size(), 1, "clients are stored after all calls of one have ended")
	})
}

// size returns the number of clients with calls.
func (s *Semaphore[C]) size() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.clients)
}
