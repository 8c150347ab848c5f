package compare

import (
	"cmp"
	"container/list"
	"hash/maphash"
	"math"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/dgraph-io/ristretto/v2"
	"github.com/maypok86/otter/v2"

	"github.com/veneer-skins/veneer/bench/speed/workload"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// costFunc returns the cost of a view in a cache: the same as in the edge's.
type costFunc func(view int) int64

// traces are the kinds of traces, and the goals for the cache in percentage points: at least how many
// above LRU, and at most how many below the best static choice.
var traces = []trace{
	{name: "Zipf_0.8", exponent: 0.8, belowStatic: 3},
	{name: "Zipf_0.9", exponent: 0.9, belowStatic: 3},
	{name: "Zipf_1.0", exponent: 1.0, belowStatic: 3},
	{name: "Zipf_0.9_shifting", exponent: 0.9, shifts: 10, overLRU: -1, belowStatic: math.Inf(1)},
}

type trace struct {
	name                 string
	exponent             float64
	shifts               int // how often other views become popular
	overLRU, belowStatic float64
}

// simulate returns a trace of some requests for each view on average, the costs of views in a cache of
// some bytes, and the percentages of hits there, of LRU and of the best static choice. The goals must be
// reached.
func (t trace) simulate(tb testing.TB, views, each int, budget int64) (w workload.Workload, cost costFunc, edge, lru, static float64) {
	tb.Helper()
	w = workload.New(views, views*each, t.exponent, t.shifts)
	edge, overhead, err := w.EdgeHitRatio(tb.Context(), budget, 0)
	testenv.Do(tb, err)
	cost = func(view int) int64 { return int64(w.Size(view)) + overhead }
	lru, static = percentOf(simulateLRU(w.Trace, views, cost, budget), w), percentOf(simulateStatic(w.Trace, views, cost, budget), w)
	if edge-lru < t.overLRU || static-edge > t.belowStatic {
		tb.Errorf("%s: the edge is %+.1f points beside LRU and %+.1f beside the best static choice", t.name, edge-lru, edge-static)
	}
	return w, cost, edge, lru, static
}

func percentOf(hits int, w workload.Workload) float64 {
	return 100 * float64(hits) / float64(len(w.Trace))
}

// BenchmarkHitRatio simulates the hit ratio of the edge's picture cache, beside ristretto and otter with
// their own policies, an exact LRU, all of the same bytes, and the best static choice: the pictures most
// requested for each byte, known in hindsight. The trace is synthetic, and rendering is simulated.
// HITRATIO_VIEWS, HITRATIO_EACH and HITRATIO_BYTES set other numbers of views, of requests for each on
// average, and of bytes; -short makes few of all.
func BenchmarkHitRatio(b *testing.B) {
	setting := func(name string, full, short int) int {
		if testing.Short() {
			full = short
		}
		return testenv.Must(strconv.Atoi(cmp.Or(os.Getenv(name), strconv.Itoa(full))))(b)
	}
	views, each, budget := setting("HITRATIO_VIEWS", 200_000, 10_000), setting("HITRATIO_EACH", 30, 30), int64(setting("HITRATIO_BYTES", 26_843_546, 1_310_720))
	for _, kind := range traces {
		b.Run(kind.name, func(b *testing.B) {
			w, cost, edge, lru, static := kind.simulate(b, views, each, budget)
			total := int64(0)
			for view := range views {
				total += cost(view)
			}
			for name, value := range map[string]float64{
				"edge-%": edge, "ristretto-%": percentOf(simulateRistretto(b, w.Trace, cost, budget, budget*int64(views)/total), w),
				"otter-%": percentOf(simulateOtter(b, w.Trace, cost, budget), w), "LRU-%": lru, "best-static-%": static, "ns/op": 0,
				"views-seen": float64(len(slices.Compact(slices.Sorted(slices.Values(w.Trace))))),
			} {
				b.ReportMetric(value, name)
			}
		})
	}
}

// simulateRistretto returns the hits of ristretto with its own policy, TinyLFU with a cost in bytes and
// admission by frequency, and the best number of counters for each of the pictures that fit. Its
// documentation asks for ten; more are better for a constant popularity, and worse for one that
// changes. Every set is applied before the next request.
func simulateRistretto(tb testing.TB, trace []uint32, cost costFunc, budget, fit int64) (best int) {
	tb.Helper()
	for _, counters := range []int64{10, 30, 100} {
		seed := maphash.MakeSeed()
		cache := testenv.Must(ristretto.NewCache(&ristretto.Config[uint64, struct{}]{
			KeyToHash: func(key uint64) (uint64, uint64) { return maphash.Comparable(seed, key), 0 },
			MaxCost:   budget, IgnoreInternalCost: true, NumCounters: counters * fit, BufferItems: 64,
		}))(tb)
		hits := 0
		for _, view := range trace {
			if _, ok := cache.Get(uint64(view)); ok {
				hits++
				continue
			}
			cache.Set(uint64(view), struct{}{}, cost(int(view)))
			cache.Wait()
		}
		cache.Close()
		best = max(best, hits)
	}
	return best
}

// simulateOtter returns the hits of otter v2: an adaptive W-TinyLFU with a weight in bytes. Its
// maintenance runs within the calls that cause it.
func simulateOtter(tb testing.TB, trace []uint32, cost costFunc, budget int64) (hits int) {
	tb.Helper()
	cache := testenv.Must(otter.New(&otter.Options[uint32, struct{}]{
		MaximumWeight: uint64(budget),
		Weigher:       func(view uint32, _ struct{}) uint32 { return uint32(cost(int(view))) },
		Executor:      func(task func()) { task() },
	}))(tb)
	for _, view := range trace {
		if _, ok := cache.GetIfPresent(view); ok {
			hits++
			continue
		}
		cache.Set(view, struct{}{})
	}
	return hits
}

func simulateLRU(trace []uint32, views int, cost costFunc, budget int64) (hits int) {
	order, elements := list.New(), make([]*list.Element, views)
	for _, view := range trace {
		if element := elements[view]; element != nil {
			hits++
			order.MoveToFront(element)
			continue
		}
		elements[view] = order.PushFront(view)
		for budget -= cost(int(view)); budget < 0; {
			oldest, _ := order.Remove(order.Back()).(uint32)
			elements[oldest] = nil
			budget += cost(int(oldest))
		}
	}
	return hits
}

// simulateStatic returns the hits of the views that are requested most for each byte, cached from
// the beginning.
func simulateStatic(trace []uint32, views int, cost costFunc, budget int64) (hits int) {
	type candidate struct{ requests, cost int64 }
	all := make([]candidate, views)
	for view := range all {
		all[view].cost = cost(view)
	}
	for _, view := range trace {
		all[view].requests++
	}
	slices.SortFunc(all, func(a, b candidate) int { return int(b.requests*a.cost - a.requests*b.cost) })
	for _, c := range all {
		if c.cost <= budget {
			budget -= c.cost
			hits += int(c.requests)
		}
	}
	return hits
}

func TestSimulations(t *testing.T) {
	t.Parallel()
	// Capacity for two of cost 1, or for one of cost 2.
	cost := func(view int) int64 { return int64(1 + view/2) }
	for _, test := range []struct {
		trace       []uint32
		lru, static int
	}{
		{nil, 0, 0},
		{[]uint32{0, 1, 0, 1}, 2, 4},
		{[]uint32{0, 2, 0, 2}, 0, 2},
		{[]uint32{2, 2, 2, 2, 2, 0, 1}, 4, 5},
		{[]uint32{2, 2, 2, 0, 1, 0, 1}, 4, 4},
	} {
		seen := map[uint32]bool{}
		for _, view := range test.trace {
			seen[view] = true
		}
		// With capacity for all, the libraries miss each but once, as they should.
		all := len(test.trace) - len(seen)
		got := [4]int{
			simulateLRU(test.trace, 3, cost, 2), simulateStatic(test.trace, 3, cost, 2),
			simulateRistretto(t, test.trace, cost, 100, 3), simulateOtter(t, test.trace, cost, 100),
		}
		want := [4]int{test.lru, test.static, all, all}
		testenv.Equal(t, got, want, "hits of LRU and the static choice, and of the libraries with room for all, on %v", test.trace)
	}
}

// The goals are reached by a small trace of each kind.
func TestHitRatio(t *testing.T) {
	t.Parallel()
	for _, kind := range traces {
		kind.simulate(t, 4_000, 30, 524_288)
	}
}
