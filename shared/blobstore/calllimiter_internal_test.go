package blobstore

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestCallLimiter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newCallLimiter()
		for range maxCalls {
			if err := l.acquire(t.Context()); err != nil {
				t.Fatal(err)
			}
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
		if err := <-outcomes; err != nil {
			t.Errorf("the next in the queue after a release: %v", err)
		}
		for range maxQueued - 1 {
			if err := <-outcomes; !errors.Is(err, errQueueTimeout) {
				t.Fatalf("in the queue without a release: %v; want a timeout", err)
			}
		}
		if waited := time.Since(began); waited != queueTimeout {
			t.Errorf("the queue waited for %v; want %v", waited, queueTimeout)
		}
	})
}
