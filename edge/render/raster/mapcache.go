package raster

import (
	"sync"

	"github.com/veneer-skins/veneer/shared/sieve"
)

// MapKey is what a cached sample map depends on.
type MapKey interface {
	comparable
	Build() *SampleMap
}

// MapCache caches sample maps, bounded in bytes. It is safe for concurrent use.
type MapCache[K MapKey] struct {
	mu       sync.Mutex
	entries  *sieve.Cache[K, *SampleMap]
	inflight map[K]func() *SampleMap // the first call builds the map, concurrent ones wait
}

// NewMapCache returns a cache of maps that take a number of bytes at most.
func NewMapCache[K MapKey](limit int) *MapCache[K] {
	return &MapCache[K]{entries: sieve.New[K, *SampleMap](int64(limit)), inflight: map[K]func() *SampleMap{}}
}

// Len returns the number of cached maps.
func (c *MapCache[K]) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.entries.Len()
}

// Get returns a sample map. Concurrent calls for one that is not cached build it once.
func (c *MapCache[K]) Get(key K) *SampleMap {
	c.mu.Lock()
	if entry := c.entries.Get(key); entry != nil {
		c.mu.Unlock()
		return *entry
	}
	built := c.inflight[key]
	if built == nil {
		built = sync.OnceValue(func() *SampleMap { return c.build(key) })
		c.inflight[key] = built
	}
	c.mu.Unlock()
	return built()
}

// Contains reports whether a sample map is cached.
func (c *MapCache[K]) Contains(key K) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.entries.Peek(key) != nil
}

// build builds a sample map and caches it. If that panics, all waiting callers panic too, but
// the next call tries again.
func (c *MapCache[K]) build(key K) (built *SampleMap) {
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.inflight, key)
		if built != nil {
			c.entries.Put(key, built, int64(built.Bytes()))
		}
	}()
	return key.Build()
}
