package render

import (
	"sync"

	"github.com/veneer-skins/veneer/shared/sieve"
	"github.com/veneer-skins/veneer/shared/skin"
)

// mapCacheBytes bounds the memory of cached sample maps. A site links to few sizes, and a map
// of one of these for classic sheets takes 0.1 to 1 MB. The rest is for other requests; the
// largest map takes 10 MB.
const mapCacheBytes = 64 << 20

// mapKey is what a cached sample map depends on: the parts of a view that concern neither colours
// nor the file, and the scales of the sheets.
type mapKey struct {
	mode   Mode
	model  skin.Type
	size   int
	wear   Wear
	scales scales
}

// isMapCached reports whether the sample map of a view is cached: in the default attitude and pose only.
func (v View) isMapCached() bool { return v.Attitude == 0 && v.Pose == Stand }

// mapKeyOf returns the key of the sample map of a view.
func mapKeyOf(view View, k scales) mapKey {
	key := mapKey{view.Mode, view.Type, view.Size, view.Wear, k}
	switch view.Mode {
	case Isometric:
		key.model = skin.Classic // both models have the same head
	case Flat, Preview, LegacySheet, Bust, Body, Front, Back, Left, Right:
	}
	return key
}

// build builds the sample map.
func (k mapKey) build() *sampleMap { return newSampleMap(k.scene(), k.scales) }

// scene returns the scene of the sample map.
func (k mapKey) scene() scene {
	return View{Mode: k.mode, Type: k.model, Size: k.size, Wear: k.wear}.scene()
}

// mapCache caches sample maps, bounded in bytes. It is safe for concurrent use.
type mapCache struct {
	mu       sync.Mutex
	entries  *sieve.Cache[mapKey, *sampleMap]
	inflight map[mapKey]func() *sampleMap // the first call builds the map, concurrent ones wait
}

func newMapCache(limit int) *mapCache {
	return &mapCache{entries: sieve.New[mapKey, *sampleMap](int64(limit)), inflight: map[mapKey]func() *sampleMap{}}
}

// get returns a sample map. Concurrent calls for one that is not cached build it once.
func (c *mapCache) get(key mapKey) *sampleMap {
	c.mu.Lock()
	if entry := c.entries.Get(key); entry != nil {
		c.mu.Unlock()
		return *entry
	}
	built := c.inflight[key]
	if built == nil {
		built = sync.OnceValue(func() *sampleMap { return c.build(key) })
		c.inflight[key] = built
	}
	c.mu.Unlock()
	return built()
}

// contains reports whether a sample map is cached.
func (c *mapCache) contains(key mapKey) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.entries.Peek(key) != nil
}

// build builds a sample map and caches it. If that panics, all waiting callers panic too, but
// the next call tries again.
func (c *mapCache) build(key mapKey) (built *sampleMap) {
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.inflight, key)
		if built != nil {
			c.entries.Put(key, built, int64(built.bytes()))
		}
	}()
	return key.build()
}
