package raster

import (
	"sync"
	"testing"

	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/testenv"
)

func head32(scale int) testMap { return testMap{true, skin.Classic, 32, scale} }

// Concurrent calls for a sample map get the same one.
func TestConcurrentSampleMaps(t *testing.T) {
	t.Parallel()
	cache := NewMapCache[testMap](64 << 20)
	var all sync.WaitGroup
	got := make([][]*SampleMap, 8)
	for i := range got {
		all.Go(func() {
			for scale := 1; scale <= 4; scale++ {
				got[i] = append(got[i], cache.Get(head32(scale)))
			}
		})
	}
	all.Wait()
	for i := range got {
		for j := range got[i] {
			if got[i][j] != got[0][j] {
				t.Fatalf("the map for scale %d was built twice", j+1)
			}
		}
	}

	bytes := 0
	for _, p := range got[0] {
		bytes += p.Bytes()
	}
	testenv.Check(t, cache.entries.Cost() == int64(bytes) && cache.entries.Len() == 4,
		"%d maps of %d bytes are cached; want 4 of %d", cache.entries.Len(), cache.entries.Cost(), bytes)
}

// The oldest map that was not used again is evicted first, and no more than necessary.
func TestMapCacheEvicts(t *testing.T) {
	t.Parallel()
	var keys []testMap
	limit := -1
	for size := 64; size <= 104; size += 8 {
		keys = append(keys, testMap{true, skin.Classic, size, 1})
	}
	for _, key := range keys {
		limit += key.Build().Bytes() // too little for all by one byte
	}
	cache := NewMapCache[testMap](limit)
	var first []*SampleMap
	for _, key := range keys[:5] {
		first = append(first, cache.Get(key))
	}
	cache.Get(keys[0])
	cache.Get(keys[5]) // only the first was used again

	for i, key := range keys[:5] {
		entry := cache.entries.Peek(key)
		if cached := entry != nil; cached != (i != 1) {
			t.Errorf("map %d is cached: %t", i, cached)
		} else if cached && *entry != first[i] {
			t.Errorf("map %d is another one", i)
		}
	}
	testenv.Check(t, cache.entries.Cost() <= int64(limit),
		"maps of %d bytes are cached; want at most %d", cache.entries.Cost(), limit)
}

// A map larger than the cache is built for every call.
func TestLargeMapsAreNotCached(t *testing.T) {
	t.Parallel()
	cache := NewMapCache[testMap](head32(1).Build().Bytes() - 1)
	one, other := cache.Get(head32(1)), cache.Get(head32(1))
	testenv.Check(t, one != nil && one != other && cache.entries.Len() == 0 && len(cache.inflight) == 0,
		"a large map is cached: %d maps of %d bytes", cache.entries.Len(), cache.entries.Cost())
}

// A panic while building is not cached.
func TestPanicIsNotCached(t *testing.T) {
	t.Parallel()
	broken := testMap{true, skin.Classic, -8, 1}
	cache := NewMapCache[testMap](64 << 20)
	for range 2 {
		func() {
			defer func() {
				testenv.Check(t, recover() != nil, "a picture of -8 pixels has a map")
			}()
			cache.Get(broken)
		}()
		if cache.entries.Len() != 0 || len(cache.inflight) != 0 {
			t.Fatalf("%d maps are cached, %d in flight", cache.entries.Len(), len(cache.inflight))
		}
	}
}

// Crisp pictures have full maps, and smooth ones unless a map would be too large or too slow.
func TestIsMapped(t *testing.T) {
	t.Parallel()
	f := func(isHead bool, size, scale int, want bool) {
		t.Helper()
		key := testMap{isHead, skin.Classic, size, scale}
		p := key.Build()
		testenv.Check(t, (p.scanned == nil) == want, "%s is mapped: %t", key, !want)
	}

	f(true, 256, 5, true)
	f(true, 64, 6, false)
	f(true, 512, 8, true) // crisp
	f(false, 400, 5, true)
	f(false, 448, 5, false)
	f(false, 64, 6, false)
	f(false, 640, 4, true) // crisp
	f(false, 64, skin.MaxScale, false)
}
