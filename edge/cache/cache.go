// Package cache is an in-memory cache of immutable values with a budget of bytes. Concurrent
// callers for a value that is not cached share one load, failures are cached with an
// exponential back-off, and a size-aware policy decides what is admitted and evicted.
package cache

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"reflect"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dgraph-io/ristretto/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/veneer-skins/veneer/shared/sieve"
)

// Outcome says where a value came from.
type Outcome uint8

// The outcomes.
const (
	Hit          Outcome = iota // the cache
	Coalesced                   // a load that another caller had started
	Miss                        // a load; the value was cached
	MissUncached                // a load; the value was not admitted to the cache
)

// String returns hit, coalesced, miss or miss_uncached.
func (o Outcome) String() string { return [...]string{"hit", "coalesced", "miss", "miss_uncached"}[o] }

const (
	// entryOverhead is how many bytes an entry takes in the two maps of the store and in the
	// policy. Maps with as many deletions as insertions grow to twice the size that their
	// entries need.
	entryOverhead = 288
	// minBackoff and maxBackoff bound how long a failure is cached. The time doubles with
	// each failure in a row.
	minBackoff, maxBackoff = 100 * time.Millisecond, 2 * time.Second
	// maxFailures is the most failures that are cached.
	maxFailures = 1024
)

// MaxKeySize is the length of the longest key, in bytes: two SHA-256 and twelve more.
const MaxKeySize = 76

// ErrShed is the cause of a load that was rejected because of too much load. It says nothing
// about the value, so it is not cached, and a later caller does not join such a load.
var ErrShed = errors.New("shed")

// Transient marks a failure of a loader as one that is not to be cached.
func Transient(err error) error { return transientError{err} }

type transientError struct{ error }

func (t transientError) Unwrap() error { return t.error }

// Waiter is what waits for a load on behalf of one caller.
type Waiter interface {
	// Join is called with each later waiter for the same load.
	Join(later Waiter)
	// JoinedLate reports, for a waiter that has joined, whether the load was started without
	// regard to it. If such a load is shed, it is tried again.
	JoinedLate() bool
}

// Cache holds immutable values by a key of up to MaxKeySize bytes, within a budget of bytes.
//
// The store holds the values and the policy decides which. The store's own policy ignores
// sizes, so it would hold one large value in place of many small ones with as many uses. It
// never applies, because the policy evicts values before one is added.
type Cache[V any] struct {
	options Options[V]
	seed    maphash.Seed

	// store is never closed: it holds only memory, and a load that ends late may still add to
	// it.
	store *ristretto.Cache[uint64, *Entry[V]]
	hits  [16]struct { // by the key's hash, so that cores do not share a cache line
		n atomic.Uint64
		_ [56]byte // to the end of a cache line
	}

	mu                sync.Mutex // guards the fields below
	loads             map[string]*load[V]
	failures          *sieve.Cache[string, failure]
	misses, coalesced uint64

	// policyMu serialises decisions of the policy with the writes to the store that apply
	// them. It is locked after mu if both are.
	policyMu                          sync.Mutex
	policy                            *policy
	added, evicted, rejected, dropped uint64
}

// Entry is a cached value.
type Entry[V any] struct {
	policyEntry
	keyLen uint8
	key    [MaxKeySize]byte // inline, which saves a hit one cache miss
	value  V
}

// Value returns the value, which stays right after the entry is evicted.
func (e *Entry[V]) Value() V { return e.value }

func newEntry[V any](key string, value V) *Entry[V] {
	e := &Entry[V]{value: value}
	e.keyLen = uint8(copy(e.key[:], key))
	return e
}

// matches reports whether an entry has a key: two keys may have the same hash.
func (e *Entry[V]) matches(key []byte) bool { return string(e.key[:e.keyLen]) == string(key) }

// load is a call of a loader.
type load[V any] struct {
	waiter   Waiter        // of the caller that started it; nil if it has none
	done     chan struct{} // closed once the fields below are set
	entry    *Entry[V]
	admitted bool
	err      error
}

// succeeded reports whether the value is loaded, though it may not be in the store yet.
func (l *load[V]) succeeded() bool {
	select {
	case <-l.done:
		return l.err == nil
	default:
		return false
	}
}

// isShed reports whether the load has been rejected because of too much load.
func (l *load[V]) isShed() bool {
	select {
	case <-l.done:
		return errors.Is(l.err, ErrShed)
	default:
		return false
	}
}

// failure is a load that failed, and when to try again.
type failure struct {
	err   error
	wait  time.Duration
	until time.Time
}

// Options configure a cache.
type Options[V any] struct {
	Name        string           // of the values, in the names of metrics: veneer_edge_{name}_cache_…
	Bytes       int64            // budget, everything that an entry takes included; at least 1 MiB
	TypicalSize int64            // expected size of a value, in bytes
	Size        func(V) int      // returns the size of a value, in bytes
	LoadTimeout time.Duration    // bounds a load
	Now         func() time.Time // the clock of the back-off
}

// New returns an empty cache.
func New[V any](options Options[V]) *Cache[V] {
	store, err := ristretto.NewCache(&ristretto.Config[uint64, *Entry[V]]{
		KeyToHash:          func(key uint64) (uint64, uint64) { return key, 0 },
		MaxCost:            options.Bytes,
		IgnoreInternalCost: true, // the cost is all that a value takes
		NumCounters:        1 << 10,
		BufferItems:        64,
	})
	if err != nil { // only a budget of zero is refused
		panic(fmt.Sprintf("make the %s cache: %v", options.Name, err))
	}
	return &Cache[V]{
		options:  options,
		seed:     maphash.MakeSeed(),
		store:    store,
		loads:    map[string]*load[V]{},
		failures: sieve.New[string, failure](maxFailures),
		policy:   newPolicy(options.Bytes, options.TypicalSize+entryOverhead),
	}
}

// TryGet returns the value of a key if it is cached. It allocates once in 64 calls, in the
// access log of the store.
func (c *Cache[V]) TryGet(key []byte) (V, bool) {
	if e := c.TryGetEntry(key); e != nil {
		return e.value, true
	}
	var none V
	return none, false
}

// TryGetEntry returns the entry of a key, nil if it is not cached. It allocates as TryGet does.
func (c *Cache[V]) TryGetEntry(key []byte) *Entry[V] {
	e := c.peek(key)
	if e != nil {
		c.hit(e)
		e.touch()
	}
	return e
}

// TryAgain counts another hit of an entry, and reports whether it is still cached.
func (c *Cache[V]) TryAgain(e *Entry[V]) bool {
	if e.gone.Load() {
		return false
	}
	c.hit(e)
	e.touch()
	return true
}

// hit counts a hit.
func (c *Cache[V]) hit(e *Entry[V]) { c.hits[e.hash%uint64(len(c.hits))].n.Add(1) }

// peek returns the entry of a key in the store, nil if there is none.
func (c *Cache[V]) peek(key []byte) *Entry[V] {
	if e, ok := c.store.Get(maphash.Bytes(c.seed, key)); ok && e.matches(key) {
		return e
	}
	return nil
}

// Get returns the value of a key, from the cache or from a loader, and where it came from.
// Concurrent callers share one call of a loader, and each waits no longer than its own ctx.
// The loader has a context of its own, which does not end with any of theirs. Later
// Waiters are passed to the first one's Join. Pass nil for all callers or none.
//
// A failure is cached for minBackoff to maxBackoff and returned to all callers until
// then, unless it is Transient or shed. A panic of the loader is a failure.
func (c *Cache[V]) Get(ctx context.Context, key []byte, waiter Waiter, loader func(ctx context.Context) (V, error)) (V, Outcome, error) {
	return c.get(ctx, key, waiter, 1, loader)
}

// GetRare is Get for a value that is probably not requested again: it is not cached before its
// second load. Loads are counted approximately, and forgotten after some time.
func (c *Cache[V]) GetRare(ctx context.Context, key []byte, waiter Waiter, loader func(ctx context.Context) (V, error)) (V, Outcome, error) {
	return c.get(ctx, key, waiter, rareLoads, loader)
}

// rareLoads is at which load a rare value is cached.
const rareLoads = 2

func (c *Cache[V]) get(ctx context.Context, key []byte, waiter Waiter, minLoads uint32, loader func(ctx context.Context) (V, error)) (V, Outcome, error) {
	value, outcome, err := c.getOnce(ctx, key, waiter, minLoads, loader)
	if outcome == Coalesced && errors.Is(err, ErrShed) && waiter.JoinedLate() {
		return c.getOnce(ctx, key, waiter, minLoads, loader)
	}
	return value, outcome, err
}

func (c *Cache[V]) getOnce(ctx context.Context, key []byte, waiter Waiter, minLoads uint32, loader func(ctx context.Context) (V, error)) (V, Outcome, error) {
	var none V
	l, outcome, err := c.loadOrJoin(ctx, key, waiter, minLoads, loader)
	if err != nil {
		return none, outcome, err
	}
	select {
	case <-ctx.Done():
		return none, outcome, ctx.Err()
	case <-l.done:
	}
	switch {
	case l.err != nil:
		return none, outcome, l.err
	case outcome != Miss:
		l.entry.touch()
	case !l.admitted:
		outcome = MissUncached
	}
	return l.entry.value, outcome, nil
}

// loadOrJoin starts or joins the load of a key, or returns a cached failure.
func (c *Cache[V]) loadOrJoin(ctx context.Context, key []byte, waiter Waiter, minLoads uint32, loader func(ctx context.Context) (V, error)) (*load[V], Outcome, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if l, ok := c.loads[string(key)]; ok && !l.isShed() {
		if l.succeeded() {
			c.hit(l.entry)
			return l, Hit, nil
		}
		c.coalesced++
		if waiter != nil {
			l.waiter.Join(waiter)
		}
		return l, Coalesced, nil
	}
	// A load may have ended since the caller looked. Then the value is in the store, unless it
	// was not admitted.
	if e := c.peek(key); e != nil {
		c.hit(e)
		l := &load[V]{done: make(chan struct{}), entry: e}
		close(l.done)
		return l, Hit, nil
	}
	if f := c.failures.Get(string(key)); f != nil && c.options.Now().Before(f.until) {
		c.coalesced++
		return nil, Coalesced, f.err
	}
	c.misses++
	l := &load[V]{waiter: waiter, done: make(chan struct{})}
	c.loads[string(key)] = l
	go c.run(context.WithoutCancel(ctx), string(key), l, minLoads, loader)
	return l, Miss, nil
}

// run calls the loader and caches the value. Waiting callers get the value before it is in the
// store. Until it is there, later callers find the load.
func (c *Cache[V]) run(ctx context.Context, key string, l *load[V], minLoads uint32, loader func(ctx context.Context) (V, error)) {
	value, err := callLoader(ctx, c.options.LoadTimeout, loader)
	if err == nil {
		l.entry = newEntry(key, value)
		l.entry.hash, l.entry.cost = maphash.String(c.seed, key), c.cost(value)
		l.admitted = c.admit(l.entry, minLoads)
	}
	l.err = err
	close(l.done)
	if l.admitted {
		c.store.Wait()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.loads[key] == l {
		delete(c.loads, key)
	}
	c.recordResult(key, err)
}

// callLoader calls a loader with a time-out. It returns a panic as an error: it would
// end the program.
func callLoader[V any](ctx context.Context, timeout time.Duration, loader func(ctx context.Context) (V, error)) (value V, err error) {
	defer func() {
		if caught := recover(); caught != nil {
			err = fmt.Errorf("panic: %v\n%s", caught, debug.Stack())
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return loader(ctx)
}

// admit adds an entry to the store if the policy admits it, and reports whether it did.
func (c *Cache[V]) admit(e *Entry[V], minLoads uint32) bool {
	c.policyMu.Lock()
	defer c.policyMu.Unlock()
	victims, ok := c.policy.admit(&e.policyEntry, minLoads)
	for _, v := range victims {
		c.store.Del(v.hash)
		c.evicted++
	}
	if !ok {
		c.rejected++
		return false
	}
	// The store drops writes when its buffer is full.
	if !c.store.Set(e.hash, e, e.cost) {
		c.policy.undoAdmit()
		c.dropped++
		return false
	}
	c.added++
	return true
}

// Kept is a cached value with its key and how often it was used, to be cached again by another process.
type Kept[V any] struct {
	Key   []byte
	Uses  uint8
	Value V
}

// Hottest returns the values with the most uses for their bytes, the densest first, that take at most a number of bytes
// together.
func (c *Cache[V]) Hottest(bytes int64) (hottest []Kept[V]) {
	c.policyMu.Lock()
	entries := slices.Clone(c.policy.entries)
	c.policyMu.Unlock()
	slices.SortFunc(entries, func(a, b *policyEntry) int { return cmp.Compare(b.density(), a.density()) })
	for _, entry := range entries {
		if bytes -= entry.cost; bytes < 0 {
			break
		}
		if e, ok := c.store.Get(entry.hash); ok {
			hottest = append(hottest, Kept[V]{e.key[:e.keyLen], uint8(entry.freq.Load()), e.value})
		}
	}
	return hottest
}

// Restore caches a value as if it had been used that often, and reports whether the policy admits it. The value is found
// at once, unless more than a few thousand are restored before Wait.
func (c *Cache[V]) Restore(kept Kept[V]) bool {
	e := newEntry(string(kept.Key), kept.Value)
	e.hash, e.cost = maphash.Bytes(c.seed, kept.Key), c.cost(kept.Value)
	c.policyMu.Lock()
	c.policy.bump(e.hash, kept.Uses)
	c.policyMu.Unlock()
	return c.admit(e, 1)
}

// Wait waits until the store has all values that were added.
func (c *Cache[V]) Wait() { c.store.Wait() }

// cost returns how many bytes an entry takes.
func (c *Cache[V]) cost(value V) int64 {
	return int64(reflect.TypeFor[Entry[V]]().Size()) + entryOverhead + int64(c.options.Size(value))
}

// recordResult caches a failure, or deletes an earlier one. The caller holds mu.
func (c *Cache[V]) recordResult(key string, err error) {
	if _, ok := errors.AsType[transientError](err); ok || errors.Is(err, ErrShed) {
		return
	}
	if err == nil {
		c.failures.Delete(key)
		return
	}
	now, wait := c.options.Now(), minBackoff
	if former := c.failures.Peek(key); former != nil && now.Sub(former.until) < maxBackoff {
		wait = min(2*former.wait, maxBackoff)
	}
	c.failures.Put(key, failure{err: err, wait: wait, until: now.Add(wait)}, 1)
}

func (c *Cache[V]) hitCount() (n uint64) {
	for i := range c.hits {
		n += c.hits[i].n.Load()
	}
	return n
}

// hitRatio returns the share of all requests so far that were hits, 0 to 1. The caller holds
// mu.
func (c *Cache[V]) hitRatio() float64 {
	hits := float64(c.hitCount())
	return hits / max(1, hits+float64(c.misses+c.coalesced))
}

// Stats are the statistics of a cache.
type Stats struct {
	Entries           int
	Bytes             int64 // of the entries
	Loads             int   // that are running
	Misses, Coalesced uint64
	Evicted, Rejected uint64
}

// Stats returns the current statistics.
func (c *Cache[V]) Stats() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.policyMu.Lock()
	defer c.policyMu.Unlock()
	return Stats{
		Entries: len(c.policy.entries), Bytes: c.policy.used, Loads: len(c.loads),
		Misses: c.misses, Coalesced: c.coalesced, Evicted: c.evicted, Rejected: c.rejected,
	}
}

// Expose registers the metrics of the cache.
func (c *Cache[V]) Expose(register promauto.Factory) {
	of := func(lock sync.Locker, value func() float64) func() float64 {
		return func() float64 {
			lock.Lock()
			defer lock.Unlock()
			return value()
		}
	}
	metric := func(of string) string { return fmt.Sprintf("veneer_edge_%s_cache_%s", c.options.Name, of) }
	counter := func(of, help string, value func() float64) {
		register.NewCounterFunc(prometheus.CounterOpts{Name: metric(of), Help: help}, value)
	}
	counter("hits_total", "Requests whose result was in the cache.", func() float64 { return float64(c.hitCount()) })
	counter("misses_total", "Requests that loaded their result.", of(&c.mu, func() float64 { return float64(c.misses) }))
	counter("coalesced_total", "Requests that waited for the load of another.", of(&c.mu, func() float64 { return float64(c.coalesced) }))
	counter("added_total", "Entries added.", of(&c.policyMu, func() float64 { return float64(c.added) }))
	counter("evicted_total", "Entries evicted.", of(&c.policyMu, func() float64 { return float64(c.evicted) }))
	counter("sets_rejected_total", "Entries that the policy did not admit.", of(&c.policyMu, func() float64 { return float64(c.rejected) }))
	counter("sets_dropped_total", "Entries that the store dropped, since its write buffer was full.", of(&c.policyMu, func() float64 { return float64(c.dropped) }))
	gauge := func(of, help string, value func() float64) {
		register.NewGaugeFunc(prometheus.GaugeOpts{Name: metric(of), Help: help}, value)
	}
	gauge("hit_ratio", "Share of all requests so far that were hits.", of(&c.mu, c.hitRatio))
	gauge("failures", "Loads that failed and are not tried again yet.", of(&c.mu, func() float64 { return float64(c.failures.Len()) }))
	gauge("items", "Entries in the cache.", of(&c.policyMu, func() float64 { return float64(len(c.policy.entries)) }))
	gauge("bytes", "Bytes that the entries take.", of(&c.policyMu, func() float64 { return float64(c.policy.used) }))
	gauge("budget_bytes", "Bytes that the entries may take.", func() float64 { return float64(c.store.MaxCost()) })
}
