package blobstore

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/veneer-skins/veneer/shared/testenv"
)

func TestCallLimiter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newCallLimiter()
		for range maxCalls {
			testenv.Do(t, l.acquire(t.Context()))
		}
		began, outcomes := time.Now(), make(chan error, maxQueued)
		for range maxQueued {
			go func() { outcomes <- l.acquire(t.Context()) }()
		}
		synctest.Wait()
		if err := l.acquire(t.Context()); !errors.Is(err, errQueueFull) || time.Since(began) != 0 {
			t.Errorf("with a full queue: %v after %v; want an error at once", err, time.Since(began))
		}
		l.release()
		synctest.Wait()
		testenv.Is(t, <-outcomes, nil, "the next in the queue after a release")
		for range maxQueued - 1 {
			if err := <-outcomes; !errors.Is(err, errQueueTimeout) {
				t.Fatalf("in the queue without a release: %v; want a timeout", err)
			}
		}
		testenv.Equal(t, time.Since(began), queueTimeout, "the queue waited for")
	})
}
