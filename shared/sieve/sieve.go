// Package sieve is a cache with the eviction policy SIEVE (Zhang and others, NSDI 2024): a
// hit sets a bit and moves nothing, so that readers can share a lock.
package sieve

import (
	"reflect"
	"sync/atomic"
)

// Cache maps keys to values, within a budget of their costs: bytes, or 1 each to bound their
// number.
//
// The caller must lock it; for Get, GetEntry, Peek and the statistics a read lock is enough. Entry.TryAgain needs none, so
// that a bit may be set while victim clears others.
type Cache[K comparable, V any] struct {
	entries      map[K]*Entry[K, V]
	head, tail   *Entry[K, V] // the latest and the oldest
	hand         *Entry[K, V] // the next candidate for eviction; nil: the tail
	cost, budget int64
	evicted      uint64
}

// Entry is a key with its value, in a cache or formerly in one.
type Entry[K comparable, V any] struct {
	Key   K
	Value V

	cost          int64
	visited, gone atomic.Bool
	newer, older  *Entry[K, V]
}

// TryAgain counts another hit of an entry, and reports whether it is still cached. It needs no lock.
func (e *Entry[K, V]) TryAgain() bool {
	if e.gone.Load() {
		return false
	}
	// Reading first avoids moving the cache line between cores for a bit that is mostly set
	// already.
	if !e.visited.Load() {
		e.visited.Store(true)
	}
	return true
}

// New returns an empty cache with a budget.
func New[K comparable, V any](budget int64) *Cache[K, V] {
	return &Cache[K, V]{entries: map[K]*Entry[K, V]{}, budget: budget}
}

// EntrySize returns the bytes of an entry, including its key and its value, but not what they
// point to nor its slot in the map.
func EntrySize[K comparable, V any]() int { return int(reflect.TypeFor[Entry[K, V]]().Size()) }

// GetEntry returns the entry of a key, nil if there is none, and counts a hit.
func (c *Cache[K, V]) GetEntry(key K) *Entry[K, V] {
	e := c.entries[key]
	if e != nil {
		e.TryAgain()
	}
	return e
}

// Get returns the value of a key, nil if there is none, and counts a hit. The value stays
// valid after its eviction.
func (c *Cache[K, V]) Get(key K) *V {
	if e := c.GetEntry(key); e != nil {
		return &e.Value
	}
	return nil
}

// Peek returns the value of a key, nil if there is none, without counting a hit.
func (c *Cache[K, V]) Peek(key K) *V {
	if e := c.entries[key]; e != nil {
		return &e.Value
	}
	return nil
}

// Put adds a value, or replaces the value of the key, which counts as a hit, and evicts
// others to stay within the budget. It returns the stored value; nil if it costs more than
// the budget.
func (c *Cache[K, V]) Put(key K, value V, cost int64) *V {
	replaced := c.Delete(key)
	if cost > c.budget {
		return nil
	}
	for c.cost+cost > c.budget {
		c.remove(c.victim())
		c.evicted++
	}
	e := &Entry[K, V]{Key: key, Value: value, cost: cost, older: c.head}
	e.visited.Store(replaced)
	if c.head != nil {
		c.head.newer = e
	} else {
		c.tail = e
	}
	c.head = e
	c.entries[key] = e
	c.cost += cost
	return &e.Value
}

// Delete removes a key and reports whether it was there.
func (c *Cache[K, V]) Delete(key K) bool {
	e := c.entries[key]
	if e == nil {
		return false
	}
	c.remove(e)
	return true
}

// Clear removes all keys.
func (c *Cache[K, V]) Clear() {
	for c.head != nil {
		c.remove(c.head)
	}
	*c = Cache[K, V]{entries: map[K]*Entry[K, V]{}, budget: c.budget, evicted: c.evicted}
}

// Len returns the number of keys.
func (c *Cache[K, V]) Len() int { return len(c.entries) }

// Cost returns the sum of all costs.
func (c *Cache[K, V]) Cost() int64 { return c.cost }

// Budget returns the limit of Cost.
func (c *Cache[K, V]) Budget() int64 { return c.budget }

// Evicted returns the number of evictions so far.
func (c *Cache[K, V]) Evicted() uint64 { return c.evicted }

// victim moves the hand to the entry to evict: the first one without a hit since the hand
// passed it. The cache must not be empty.
func (c *Cache[K, V]) victim() *Entry[K, V] {
	e := c.hand
	if e == nil {
		e = c.tail
	}
	for e.visited.Load() {
		e.visited.Store(false)
		if e = e.newer; e == nil {
			e = c.tail
		}
	}
	c.hand = e
	return e
}

func (c *Cache[K, V]) remove(e *Entry[K, V]) {
	e.gone.Store(true)
	if c.hand == e {
		c.hand = e.newer
	}
	if e.newer != nil {
		e.newer.older = e.older
	} else {
		c.head = e.older
	}
	if e.older != nil {
		e.older.newer = e.newer
	} else {
		c.tail = e.newer
	}
	e.newer, e.older = nil, nil // an entry that is kept elsewhere must not keep others
	delete(c.entries, e.Key)
	c.cost -= e.cost
}
