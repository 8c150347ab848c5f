package cache

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/veneer-skins/veneer/shared/testenv"
)

// clock is a clock that only advance moves.
type clock struct{ time atomic.Int64 }

func (c *clock) now() time.Time          { return time.Unix(0, c.time.Load()) }
func (c *clock) advance(d time.Duration) { c.time.Add(int64(d)) }

// newTextCache returns a cache of strings with a budget of bytes.
func newTextCache(t *testing.T, bytes int64) *Cache[string] {
	t.Helper()
	return New(Options[string]{
		Name: "test", Bytes: bytes, TypicalSize: 1 << 10, Size: func(text string) int { return len(text) },
		LoadTimeout: time.Minute, Now: time.Now,
	})
}

// waitIdle waits until no load of a cache is running.
func waitIdle[V any](t *testing.T, c *Cache[V]) {
	t.Helper()
	for c.Stats().Loads > 0 {
		runtime.Gosched()
	}
}

func always(text string) func(context.Context) (string, error) {
	return func(context.Context) (string, error) { return text, nil }
}

func TestOutcomes(t *testing.T) {
	t.Parallel()
	c := newTextCache(t, 1<<20)
	begun, finish := make(chan struct{}), make(chan struct{})
	got := make(chan Outcome, 2)
	go func() {
		_, outcome, _ := c.Get(t.Context(), []byte("name"), nil, func(context.Context) (string, error) { close(begun); <-finish; return "first", nil })
		got <- outcome
	}()
	<-begun
	go func() {
		_, outcome, _ := c.Get(t.Context(), []byte("name"), nil, always("second"))
		got <- outcome
	}()
	for c.Stats().Coalesced == 0 {
		runtime.Gosched()
	}
	close(finish)
	outcomes := []string{(<-got).String(), (<-got).String()}
	slices.Sort(outcomes)
	waitIdle(t, c)
	// Like a caller that has missed just before the load ended.
	value, last, err := c.Get(t.Context(), []byte("name"), nil, always("third"))
	if diff := cmp.Diff([]string{"coalesced", "miss", "hit"}, append(outcomes, last.String())); diff != "" || value != "first" || err != nil {
		t.Errorf("Get() = %q, %v; outcomes (-want +got):\n%s", value, err, diff)
	}
	if value, ok := c.TryGet([]byte("name")); !ok || value != "first" {
		t.Errorf("TryGet() = %q, %t; want the first", value, ok)
	}
	_, ok := c.TryGet([]byte("another"))
	testenv.Check(t, !ok, "TryGet() finds a key that was not loaded")
}

// TestLoadIsFoundWhileItEnds gets values that have just been loaded by many callers, while the
// store is busy with other values.
func TestLoadIsFoundWhileItEnds(t *testing.T) {
	t.Parallel()
	c := newTextCache(t, 1<<26)
	var loaded atomic.Int64
	var callers sync.WaitGroup
	const names = 200
	for i := range names {
		name := strconv.Itoa(i)
		fetch := func(ctx context.Context) (string, error) { loaded.Add(1); return always(name)(ctx) }
		_, _, err := c.Get(t.Context(), []byte(name), nil, fetch)
		testenv.Do(t, err)
		for range 1000 {
			callers.Go(func() {
				if _, ok := c.TryGet([]byte(name)); ok {
					return
				}
				if value, outcome, err := c.Get(t.Context(), []byte(name), nil, fetch); value != name || outcome != Hit || err != nil {
					t.Errorf("Get() just after another = %q, %v, %v; want the same value, and a hit", value, outcome, err)
				}
			})
		}
	}
	callers.Wait()
	testenv.Equal(t, loaded.Load(), names, "loads of as many names")
}

func TestBackOffGrowsWhileItFails(t *testing.T) {
	t.Parallel()
	c, clock := newTextCache(t, 1<<20), &clock{}
	c.options.Now = clock.now
	trouble, tries := errors.New("trouble"), 0
	ask := func(fail error) error {
		_, _, err := c.Get(t.Context(), []byte("name"), nil, func(context.Context) (string, error) { tries++; return "", fail })
		waitIdle(t, c)
		return err
	}
	want := 0
	for _, wait := range []time.Duration{
		100 * time.Millisecond, 200 * time.Millisecond, 400 * time.Millisecond, 800 * time.Millisecond, 1600 * time.Millisecond,
		2 * time.Second, 2 * time.Second,
	} {
		want++
		for range 3 {
			if err := ask(trouble); !errors.Is(err, trouble) || tries != want {
				t.Fatalf("Get() = %v after %d tries; want the trouble after %d", err, tries, want)
			}
		}
		clock.advance(wait - 1)
		if err := ask(nil); !errors.Is(err, trouble) || tries != want {
			t.Fatalf("Get() = %v after %d tries, just before %s are over", err, tries, wait)
		}
		clock.advance(1)
	}
	if err := ask(nil); err != nil || c.failures.Len() != 0 {
		t.Errorf("Get() = %v, and %d failures are cached", err, c.failures.Len())
	}
}

func TestOldFailureIsForgotten(t *testing.T) {
	t.Parallel()
	c, clock := newTextCache(t, 1<<20), &clock{}
	c.options.Now = clock.now
	fail := func(context.Context) (string, error) { return "", errors.New("trouble") }
	for range 2 {
		_, _, _ = c.Get(t.Context(), []byte("name"), nil, fail)
		waitIdle(t, c)
		clock.advance(time.Hour)
	}
	testenv.Equal(t, c.failures.Peek("name").wait, minBackoff, "a failure an hour after another is cached for")
	for i := range 2 * maxFailures {
		_, _, _ = c.Get(t.Context(), []byte(strconv.Itoa(i)), nil, fail)
	}
	waitIdle(t, c)
	testenv.Equal(t, c.failures.Len(), maxFailures, "failures are cached")
}

// TestStoreAndPolicyAgree loads values of all sizes concurrently into a cache that is far too
// small, and compares the entries of the store with those of the policy.
func TestStoreAndPolicyAgree(t *testing.T) {
	t.Parallel()
	const budget = 1 << 20
	c := newTextCache(t, budget)
	var callers sync.WaitGroup
	var seen sync.Map // entries
	for v := range 8 {
		callers.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(v)))
			for range 5000 {
				n := random.IntN(2000)
				name, text := strconv.Itoa(n), string(make([]byte, 100+n*n/200))
				if value, _, err := c.Get(t.Context(), []byte(name), nil, always(text)); len(value) != len(text) || err != nil {
					t.Errorf("Get(%s) = %d bytes, %v; want %d bytes", name, len(value), err, len(text))
				}
				seen.Store(c.TryGetEntry([]byte(name)), nil)
			}
		})
	}
	callers.Wait()
	waitIdle(t, c)
	c.store.Wait()
	evicted := 0
	seen.Range(func(key, _ any) bool {
		if e, _ := key.(*Entry[string]); e != nil {
			isCached := c.TryAgain(e)
			testenv.Equal(t, isCached, c.peek(e.key[:e.keyLen]) == e, "an entry is a hit again")
			if !isCached {
				evicted++
			}
		}
		return true
	})
	testenv.Check(t, evicted != 0, "no entry that was seen is evicted")

	cost, names := int64(0), map[string]bool{}
	c.store.IterValues(func(e *Entry[string]) bool {
		cost += e.cost
		names[string(e.key[:e.keyLen])] = true
		return false
	})
	listed := int64(0)
	for _, a := range c.policy.entries {
		listed += a.cost
	}
	if cost != c.policy.used || listed != cost || len(names) != len(c.policy.entries) || cost > budget {
		t.Errorf("the store has %d values of %d bytes; the policy %d of %d, adding up to %d", len(names), cost, len(c.policy.entries), c.policy.used, listed)
	}
	testenv.Equal(t, c.store.RemainingCost(), budget-cost, "bytes of the store are free")
	if c.evicted == 0 || c.rejected == 0 || c.dropped != 0 || c.added-c.evicted != uint64(len(names)) {
		t.Errorf("%d added, %d evicted, %d rejected, %d dropped, %d in the store", c.added, c.evicted, c.rejected, c.dropped, len(names))
	}
}

func TestOversizedValueIsServedUncached(t *testing.T) {
	t.Parallel()
	c := newTextCache(t, 1<<20)
	for range 2 {
		text, outcome, err := c.Get(t.Context(), []byte("name"), nil, always(string(make([]byte, 1<<20))))
		testenv.Check(t, len(text) == 1<<20 && outcome == MissUncached && err == nil,
			"Get() = %d bytes, %v, %v", len(text), outcome, err)
		waitIdle(t, c)
	}
}

func ExampleOutcome() {
	fmt.Println(Hit, Coalesced, Miss, MissUncached)
	// Output: hit coalesced miss miss_uncached
}
