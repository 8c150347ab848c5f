package objects

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestPool(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPool()
		for range atOnce {
			if err := p.enter(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		began, outcomes := time.Now(), make(chan error, queue)
		for range queue {
			go func() { outcomes <- p.enter(t.Context()) }()
		}
		synctest.Wait()
		if err := p.enter(t.Context()); !errors.Is(err, errFull) || time.Since(began) != 0 {
			t.Errorf("with no room to wait: %v after %v; want to be told at once", err, time.Since(began))
		}
		p.leave()
		synctest.Wait()
		if err := <-outcomes; err != nil {
			t.Errorf("the next in line when one has left: %v", err)
		}
		for range queue - 1 {
			if err := <-outcomes; !errors.Is(err, errLate) {
				t.Fatalf("in line while nobody leaves: %v; want to be told that it takes too long", err)
			}
		}
		if waited := time.Since(began); waited != longestWait {
			t.Errorf("they waited for %v; want %v", waited, longestWait)
		}
	})
}
