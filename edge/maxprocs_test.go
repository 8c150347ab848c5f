package edge

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/veneer-skins/veneer/shared/testenv"
	"github.com/veneer-skins/veneer/shared/testenv/cmptest"
)

// GOMAXPROCS is raised before a job runs, and until a while after it. Raising it counts as
// waiting. Before run is called and after its context has ended, no job waits for that.
func TestProcsBoost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, end := context.WithCancel(t.Context())
		defer end()
		const long, toWiden = 10*boostLinger + boostLinger/10, boostLinger / 4
		start := time.Now()
		var happened []string
		note := func(what string) { happened = append(happened, what+" at "+time.Since(start).String()) }
		s := newWorkerPool(1, 1, 10*time.Second)
		defer s.close()
		use := func(waits time.Duration) {
			t.Helper()
			permit := testenv.Must(s.admit(s.requesters(testNetwork)))(t)
			defer permit.release()
			if err := permit.draw(ctx, s.requesters(testNetwork), time.Millisecond, func() error { note("used"); <-time.After(long); return nil }); err != nil {
				t.Error(err)
			}
			testenv.Equal(t, permit.waited, waits, "a job waited for")
		}
		use(0)
		var watched bool
		go func() {
			s.boost.run(ctx, func() { <-time.After(toWiden); note("widened") }, func() { note("narrowed") })
			watched = true
		}()
		<-time.After(time.Second)
		use(toWiden)
		use(0)
		<-time.After(time.Second)
		use(toWiden)
		<-time.After(time.Second)
		end()
		synctest.Wait()
		ctx = t.Context()
		use(0)
		testenv.Check(t, watched, "run has not returned after the end of its context")
		want := []string{
			"used at 0s", "narrowed at 1.11s",
			"widened at 2.035s", "used at 2.035s", "used at 3.045s", "narrowed at 4.235s",
			"widened at 5.08s", "used at 5.08s", "narrowed at 6.28s",
			"used at 7.09s",
		}
		cmptest.Same(t, happened, want, "what happened")
	})
}
