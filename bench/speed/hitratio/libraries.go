package main

import (
	"hash/maphash"

	"github.com/dgraph-io/ristretto/v2"
	"github.com/maypok86/otter/v2"
)

// costFunc returns the cost of a view in a library's cache: the same as in the edge's.
type costFunc func(view int) int64

// counters are the numbers of counters of ristretto for each picture that fits. Its documentation
// asks for ten. More are better for a constant popularity, and worse for one that changes.
var counters = []int64{10, 30, 100}

// simulateBestRistretto returns the hits of ristretto with the best number of counters.
func simulateBestRistretto(trace []uint32, cost costFunc, budget, fit int64) (best int, err error) {
	for _, each := range counters {
		hits, err := simulateRistretto(trace, cost, budget, each*fit)
		if err != nil {
			return 0, err
		}
		best = max(best, hits)
	}
	return best, nil
}

// simulateRistretto returns the hits of ristretto with its own policy, TinyLFU with a cost in bytes
// and admission by frequency. Every set is applied before the next request.
func simulateRistretto(trace []uint32, cost costFunc, budget, counters int64) (hits int, err error) {
	seed := maphash.MakeSeed()
	cache, err := ristretto.NewCache(&ristretto.Config[uint64, struct{}]{
		KeyToHash:          func(key uint64) (uint64, uint64) { return maphash.Comparable(seed, key), 0 },
		MaxCost:            budget,
		IgnoreInternalCost: true,
		NumCounters:        counters,
		BufferItems:        64,
	})
	if err != nil {
		return 0, err
	}
	defer cache.Close()
	for _, view := range trace {
		if _, ok := cache.Get(uint64(view)); ok {
			hits++
			continue
		}
		cache.Set(uint64(view), struct{}{}, cost(int(view)))
		cache.Wait()
	}
	return hits, nil
}

// simulateOtter returns the hits of otter v2: an adaptive W-TinyLFU with a weight in bytes. Its
// maintenance runs within the calls that cause it.
func simulateOtter(trace []uint32, cost costFunc, budget int64) (hits int, err error) {
	cache, err := otter.New(&otter.Options[uint32, struct{}]{
		MaximumWeight: uint64(budget),
		Weigher:       func(view uint32, _ struct{}) uint32 { return uint32(cost(int(view))) },
		Executor:      func(task func()) { task() },
	})
	if err != nil {
		return 0, err
	}
	for _, view := range trace {
		if _, ok := cache.GetIfPresent(view); ok {
			hits++
			continue
		}
		cache.Set(view, struct{}{})
	}
	return hits, nil
}
