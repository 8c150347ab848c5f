//go:build !race

package core

import (
	"fmt"
	"log/slog"
	"runtime"
	"strings"
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

// TestProfilesAllocateWhatTheyCost compares the cost of profiles and of names with the growth of the
// heap, after many were added and evicted. No test runs in parallel.
func TestProfilesAllocateWhatTheyCost(t *testing.T) {
	testenv.SkipShort(t)
	const budget = 8 << 20
	site := &scriptedSite{profiles: map[uuid.UUID]Profile{}}
	profiles := newProfileCache(site, nil, NewFeed(site, slog.New(slog.DiscardHandler)), budget, newProfileKey/8)
	checkHeap(t, profiles.feedCache, func(i int) {
		profile := namedProfile(uuid.New(), fmt.Sprintf("Player_%d", i))
		profiles.put(profile.UUID, signedProfile{Profile: profile}, profiles.era)
		profiles.addSignature(profile, make([]byte, newProfileKey/8), 1)
	})
	names := newNameCache(site, nil, NewFeed(site, slog.New(slog.DiscardHandler)), budget)
	checkHeap(t, names.feedCache, func(i int) {
		name := fmt.Sprintf("Player_%d", i)
		names.put(strings.ToLower(name), NamedPlayer{UUID: uuid.New(), Name: name}, names.era)
	})
}

func checkHeap[K comparable, V any](t *testing.T, c *feedCache[K, V], add func(i int)) {
	t.Helper()
	before := heapInUse()
	for i := range 200_000 {
		add(i)
	}
	grown, n := heapInUse()-before, int64(c.entries.Len())
	t.Logf("%d entries take %d bytes each of the heap, and cost %d", n, grown/n, c.entries.Cost()/n)
	if cost := c.entries.Cost(); cost > c.budget || grown > cost*11/10 || grown < cost*8/10 {
		t.Errorf("the heap grew by %d bytes for a cost of %d and a bound of %d", grown, cost, c.budget)
	}
	runtime.KeepAlive(c)
}
