//go:build !race

package main

import (
	"strings"
	"testing"
)

// TestRatios runs all traces on a small scale.
func TestRatios(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	err := run(t.Context(), &out, []string{"-views", "10000", "-each", "30", "-bytes", "1310720"})
	if err != nil {
		t.Errorf("%v\n%s", err, out.String())
	}
	if lines := strings.Count(out.String(), "\n"); lines != 2+len(kinds) {
		t.Errorf("%d lines; want one for every trace:\n%s", lines, out.String())
	}
	t.Log(out.String())
}

func TestSimulations(t *testing.T) {
	t.Parallel()
	// Capacity for two of cost 1, or for one of cost 2.
	cost := func(view int) int64 { return int64(1 + view/2) }
	f := func(trace []uint32, lru, static int) {
		t.Helper()
		if got := simulateLRU(trace, 3, cost, 2); got != lru {
			t.Errorf("LRU has %d hits on %v; want %d", got, trace, lru)
		}
		if got := simulateStatic(trace, 3, cost, 2); got != static {
			t.Errorf("the best static choice has %d hits on %v; want %d", got, trace, static)
		}
		// With capacity for all, the libraries miss each but once, as they should.
		seen := map[uint32]bool{}
		for _, view := range trace {
			seen[view] = true
		}
		if got, err := simulateBestRistretto(trace, cost, 100, 3); err != nil || got != len(trace)-len(seen) {
			t.Errorf("ristretto has %d hits on %v with room for all (%v); want %d", got, trace, err, len(trace)-len(seen))
		}
		if got, err := simulateOtter(trace, cost, 100); err != nil || got != len(trace)-len(seen) {
			t.Errorf("otter has %d hits on %v with room for all (%v); want %d", got, trace, err, len(trace)-len(seen))
		}
	}
	f(nil, 0, 0)
	f([]uint32{0, 1, 0, 1}, 2, 4)
	f([]uint32{0, 2, 0, 2}, 0, 2)
	f([]uint32{2, 2, 2, 2, 2, 0, 1}, 4, 5)
	f([]uint32{2, 2, 2, 0, 1, 0, 1}, 4, 4)
}
