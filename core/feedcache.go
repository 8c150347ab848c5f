package core

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/veneer-skins/veneer/shared/edgeproto"
	"github.com/veneer-skins/veneer/shared/sieve"
)

var readsDiscarded = promauto.NewCounter(prometheus.CounterOpts{Name: "veneer_core_profiles_discarded_total", Help: "Profiles and names that were not cached, since a change in the meantime may have made them wrong."})

// feedCache caches what a store has for keys that changes name.
//
// It follows the feed as edges do. A change names its players, so a cached value that no change has
// named was right at the time of the feed's last poll. While polls fail, and from a commit of this
// core until the next poll, the store is asked.
//
// A result and a change can overtake each other. So a result is not kept as current if a change
// named the key after the read began, if changes may have been missed since, or if the database that
// answered is behind the feed or has another history.
type feedCache[K comparable, V any] struct {
	feed *Feed
	feedCacheConfig[K, V]

	mu      sync.RWMutex
	entries *sieve.Cache[K, feedEntry[V]]
	reads   map[K]*feedRead
	cursor  edgeproto.Cursor // up to which changes have been applied
	// era increases when changes may have been missed.
	era int64
}

// feedCacheConfig is what differs between caches of a feed.
type feedCacheConfig[K comparable, V any] struct {
	budget int64 // bytes
	// keyOf returns the key that a change names, if it names one of this cache.
	keyOf func(edgeproto.Key) (key K, ok bool)
	// isSame reports whether a value that was read is what an older one was read from. That one stays.
	isSame func(old, read V) bool
	// cost returns how many bytes a value takes with its entry.
	cost func(V) int64
}

// feedEntry is a value as it was read last.
type feedEntry[V any] struct {
	value V
	era   int64 // the cache's while it is current
}

// feedRead is what is being read for one key. Readers that begin after a change share another one.
type feedRead struct {
	readers   int
	revision  int64 // of the cache when the first reader began
	overtaken bool  // by a change
}

func newFeedCache[K comparable, V any](feed *Feed, config feedCacheConfig[K, V]) *feedCache[K, V] {
	c := &feedCache[K, V]{
		feed: feed, feedCacheConfig: config,
		entries: sieve.New[K, feedEntry[V]](config.budget), reads: map[K]*feedRead{}, era: 1,
	}
	feed.subscribe(c.apply)
	return c
}

// current appends the cached values of keys that no change has named to dst, and returns the other keys.
func (c *feedCache[K, V]) current(dst []V, keys ...K) (values []V, missing []K) {
	if !c.feed.isCurrent() {
		return dst, keys
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	for _, key := range keys {
		if cached := c.entries.Get(key); cached != nil && cached.era == c.era {
			dst = append(dst, cached.value)
		} else {
			missing = append(missing, key)
		}
	}
	return dst, missing
}

// beginRead has changes noticed that name keys until endRead.
func (c *feedCache[K, V]) beginRead(keys ...K) []*feedRead {
	c.mu.Lock()
	defer c.mu.Unlock()
	reads := make([]*feedRead, len(keys))
	for i, key := range keys {
		read := c.reads[key]
		if read == nil {
			read = &feedRead{revision: c.cursor.Revision}
			c.reads[key] = read
		}
		read.readers++
		reads[i] = read
	}
	return reads
}

// endRead ends the reads of keys, and caches what was read at a cursor, if nothing failed. Keys without
// a value are not cached, so that made-up ones take no memory.
func (c *feedCache[K, V]) endRead(keys []K, reads []*feedRead, values map[K]V, at edgeproto.Cursor, failed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, key := range keys {
		read := reads[i]
		if read.readers--; read.readers == 0 && c.reads[key] == read {
			delete(c.reads, key)
		}
		if failed {
			continue
		}
		value, ok := values[key]
		switch {
		case !ok:
			c.entries.Delete(key)
		case !read.overtaken && at.Epoch == c.cursor.Epoch && at.Revision >= read.revision:
			c.put(key, value, c.era)
		default:
			readsDiscarded.Inc()
		}
	}
}

// put stores a value. The caller holds mu.
func (c *feedCache[K, V]) put(key K, value V, era int64) *feedEntry[V] {
	if cached := c.entries.Peek(key); cached != nil && c.isSame(cached.value, value) {
		cached.era = era
		return cached
	}
	return c.entries.Put(key, feedEntry[V]{value, era}, c.cost(value))
}

// apply drops what changes have named.
func (c *feedCache[K, V]) apply(polled polledChanges) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cursor = polled.head.Cursor
	if !polled.complete {
		c.era++
		for _, read := range c.reads {
			read.overtaken = true
		}
		clear(c.reads)
		return
	}
	for _, change := range polled.changes {
		for _, named := range change.Keys {
			if key, ok := c.keyOf(named); ok {
				c.invalidate(key)
			}
		}
	}
}

// invalidate has a key read again. The caller holds mu.
func (c *feedCache[K, V]) invalidate(key K) {
	if cached := c.entries.Peek(key); cached != nil {
		cached.era = 0
	}
	if read := c.reads[key]; read != nil {
		read.overtaken = true
		delete(c.reads, key)
	}
}

// feedEntryBytes returns the size of an entry without what it points to. A map has spare space for
// each entry: 72 bytes.
func feedEntryBytes[K comparable, V any]() int64 {
	return int64(sieve.EntrySize[K, feedEntry[V]]() + 72)
}

// stringBytes returns what the text of a string takes of the heap.
func stringBytes(text string) int64 { return int64(len(text)+15) &^ 15 }
