//go:build !race

package core

import (
	"fmt"
	"log/slog"
	"runtime"
	"testing"

	"github.com/google/uuid"

	"github.com/veneer-skins/veneer/shared/testenv"
)

// heapInUse returns how many bytes of the heap are in use after a garbage collection.
func heapInUse() int64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.GC() // frees what finalisers and pools held
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

// TestProfilesAllocateWhatTheyCost compares the cost of profiles with the growth of the heap, after
// many were added and evicted. No test runs in parallel.
func TestProfilesAllocateWhatTheyCost(t *testing.T) {
	testenv.SkipShort(t)
	const budget = 8 << 20
	site := &scriptedSite{profiles: map[uuid.UUID]Profile{}}
	c := newProfileCache(site, NewFeed(site, slog.New(slog.DiscardHandler)), budget, newProfileKey/8)
	before := heapInUse()
	for i := range 100_000 {
		profile := namedProfile(uuid.New(), fmt.Sprintf("Player_%d", i))
		c.put(nil, profile, c.era)
		c.addSignature(profile, make([]byte, newProfileKey/8), 1)
	}
	grown, n := heapInUse()-before, int64(c.entries.Len())
	t.Logf("%d profiles take %d bytes each of the heap, and cost %d", n, grown/n, c.entries.Cost()/n)
	if cost := c.entries.Cost(); cost > budget || grown > cost*11/10 || grown < cost*8/10 {
		t.Errorf("the heap grew by %d bytes for a cost of %d and a bound of %d", grown, cost, budget)
	}
	runtime.KeepAlive(c)
}
