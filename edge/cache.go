package edge

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"reflect"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dgraph-io/ristretto/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/veneer-skins/veneer/shared/sieve"
)

// Outcome says how somebody came by a value.
type Outcome uint8

// The outcomes.
const (
	Hit          Outcome = iota // it was in memory
	Coalesced                   // it was being made for somebody else
	Miss                        // it was made for them, and kept
	MissUncached                // it was made for them, and there is no room to keep it
)

// String returns hit, coalesced, rendered or unkept.
func (o Outcome) String() string { return [...]string{"hit", "coalesced", "miss", "miss_uncached"}[o] }

const (
	// entryOverhead is what it takes to have an entry in the two maps of the store and
	// in the ledger. Maps from which as much is deleted as comes in grow to twice of
	// what their entries would need.
	entryOverhead = 288
	// minBackoff and maxBackoff bound for how long a failure is remembered: the
	// longer the more often it has happened in a row.
	minBackoff, maxBackoff = 100 * time.Millisecond, 2 * time.Second
	// maxFailures is how many failures are remembered.
	maxFailures = 1024
)

// transientError is a failure that says nothing about the next try.
type transientError struct{ error }

func (p transientError) Unwrap() error { return p.error }

// cache is values that never change, by a name of up to ViewKeySize, bounded in bytes. A value that is
// not there is loaded once, however many ask for it.
//
// The store keeps the values and the ledger decides which: the store's own policy
// knows nothing of their size, and so would keep one large value in the place of
// many small ones that are used as much. It is never asked, as the ledger has
// made room before anything comes in.
type cache[V any] struct {
	kind string
	size func(V) int
	seed maphash.Seed
	now  func() time.Time

	// store is never closed: it holds nothing but memory, and a load that ends
	// late may still bring something.
	store *ristretto.Cache[uint64, *entry[V]]
	hits  [16]struct { // by the name's hash, or cores would wait for each other
		n atomic.Uint64
		_ [56]byte // to the end of a cache line
	}

	mu                sync.Mutex // of what follows
	loads             map[string]*load[V]
	failures          *sieve.Cache[string, failure]
	misses, coalesced uint64

	// policyMu is held while the store is told what the ledger says, so that it hears
	// all in the same order. It is locked after mu, if at all.
	policyMu                          sync.Mutex
	policy                            *policy
	added, evicted, rejected, dropped uint64
}

// entry is a value that may be kept.
type entry[V any] struct {
	policyEntry
	keyLen uint8             // of its name
	key    [ViewKeySize]byte // in the entry, and so no further place to wait for
	value  V
}

func newEntry[V any](name string, value V) *entry[V] {
	e := &entry[V]{value: value}
	e.keyLen = uint8(copy(e.key[:], name))
	return e
}

// matches reports whether an entry has a name.
func (e *entry[V]) matches(name []byte) bool { return string(e.key[:e.keyLen]) == string(name) }

// load is a value on its way.
type load[V any] struct {
	demand   *demand       // of all who wait for it; nil if no work of a worker pool makes it
	done     chan struct{} // closed once all else is set
	entry    *entry[V]
	admitted bool
	err      error
}

// succeeded reports whether the value is there, though it may not be in the store yet.
func (l *load[V]) succeeded() bool {
	select {
	case <-l.done:
		return l.err == nil
	default:
		return false
	}
}

// isShed reports whether the load has ended because too much was asked for.
func (l *load[V]) isShed() bool {
	select {
	case <-l.done:
		return errors.Is(l.err, ErrShed)
	default:
		return false
	}
}

// failure is a load that came to nothing.
type failure struct {
	err   error
	wait  time.Duration
	until time.Time
}

// newCache returns a cache that may take so many bytes. typical is the usual size
// of a value, and size returns that of one.
func newCache[V any](kind string, bytes, typical int64, size func(V) int) (*cache[V], error) {
	if bytes < 1<<20 {
		return nil, fmt.Errorf("is %d, but must be at least %d", bytes, 1<<20)
	}
	store, err := ristretto.NewCache(&ristretto.Config[uint64, *entry[V]]{
		KeyToHash:          func(key uint64) (uint64, uint64) { return key, 0 },
		MaxCost:            bytes,
		IgnoreInternalCost: true, // the cost is all that a value takes
		NumCounters:        1 << 10,
		BufferItems:        64,
	})
	if err != nil {
		return nil, fmt.Errorf("make the %s cache: %w", kind, err)
	}
	return &cache[V]{
		kind:     kind,
		size:     size,
		seed:     maphash.MakeSeed(),
		now:      time.Now,
		store:    store,
		loads:    map[string]*load[V]{},
		failures: sieve.New[string, failure](maxFailures),
		policy:   newPolicy(bytes, typical+entryOverhead),
	}, nil
}

// get returns the value if it is in memory.
func (c *cache[V]) get(name []byte) (V, bool) {
	if e := c.peek(name); e != nil {
		c.hit(e)
		e.touch()
		return e.value, true
	}
	var none V
	return none, false
}

// hit counts a hit.
func (c *cache[V]) hit(e *entry[V]) { c.hits[e.hash%uint64(len(c.hits))].n.Add(1) }

// peek returns what the store has by a name, nil if nothing.
func (c *cache[V]) peek(name []byte) *entry[V] {
	if e, ok := c.store.Get(maphash.Bytes(c.seed, name)); ok && e.matches(name) {
		return e
	}
	return nil
}

// load returns the value, from memory or from fetch, and how it came. Everybody
// who asks while fetch runs waits for the same outcome, each as long as their own
// ctx lets them; fetch itself gets a context of its own that outlives any of them. Their
// demands join that of the first.
//
// An error is given to whoever asks in the next moments too, and after that the
// next one tries again; unless it is passing, when they do so at once.
func (c *cache[V]) load(ctx context.Context, name []byte, demand *demand, fetch func(ctx context.Context) (V, error)) (V, Outcome, error) {
	value, outcome, err := c.loadOnce(ctx, name, demand, fetch)
	if outcome == Coalesced && errors.Is(err, ErrShed) && demand.joinedLate {
		// It was shed as the work of other networks, just before this one joined.
		return c.loadOnce(ctx, name, demand, fetch)
	}
	return value, outcome, err
}

func (c *cache[V]) loadOnce(ctx context.Context, name []byte, demand *demand, fetch func(ctx context.Context) (V, error)) (V, Outcome, error) {
	var none V
	l, outcome, err := c.loadOrJoin(ctx, name, demand, fetch)
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

// loadOrJoin returns the load of a name that is under way, or begins one. Instead, it
// returns the error of one that failed just now.
func (c *cache[V]) loadOrJoin(ctx context.Context, name []byte, demand *demand, fetch func(ctx context.Context) (V, error)) (*load[V], Outcome, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if l, ok := c.loads[string(name)]; ok && !l.isShed() {
		if l.succeeded() {
			c.hit(l.entry)
			return l, Hit, nil
		}
		c.coalesced++
		if demand != nil {
			l.demand.join(demand)
		}
		return l, Coalesced, nil
	}
	// A load may have ended since the caller looked: then the store has it by now,
	// or it is not to be kept.
	if e := c.peek(name); e != nil {
		c.hit(e)
		l := &load[V]{done: make(chan struct{}), entry: e}
		close(l.done)
		return l, Hit, nil
	}
	if f := c.failures.Get(string(name)); f != nil && c.now().Before(f.until) {
		c.coalesced++
		return nil, Coalesced, f.err
	}
	c.misses++
	l := &load[V]{demand: demand, done: make(chan struct{})}
	c.loads[string(name)] = l
	go c.run(context.WithoutCancel(ctx), string(name), l, fetch)
	return l, Miss, nil
}

// run loads. Whoever waits is answered before the value is in the store, and
// whoever comes in between still finds the load.
func (c *cache[V]) run(ctx context.Context, name string, l *load[V], fetch func(ctx context.Context) (V, error)) {
	value, err := callLoader(ctx, fetch)
	if err == nil {
		cost := int64(reflect.TypeFor[entry[V]]().Size()) + entryOverhead + int64(c.size(value))
		l.entry = newEntry(name, value)
		l.entry.hash, l.entry.cost = maphash.String(c.seed, name), cost
		l.admitted = c.admit(l.entry)
	}
	l.err = err
	close(l.done)
	if l.admitted {
		c.store.Wait()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.loads[name] == l {
		delete(c.loads, name)
	}
	c.recordResult(name, err)
}

// callLoader fetches within a time of its own. A panic is an error here: it would end the
// program.
func callLoader[V any](ctx context.Context, fetch func(ctx context.Context) (V, error)) (value V, err error) {
	defer func() {
		if caught := recover(); caught != nil {
			err = fmt.Errorf("panic: %v\n%s", caught, debug.Stack())
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, loadTimeout)
	defer cancel()
	return fetch(ctx)
}

// admit puts an entry into the store if it is worth it, and reports whether it was.
func (c *cache[V]) admit(e *entry[V]) bool {
	c.policyMu.Lock()
	defer c.policyMu.Unlock()
	victims, ok := c.policy.admit(&e.policyEntry)
	for _, v := range victims {
		c.store.Del(v.hash)
		c.evicted++
	}
	if !ok {
		c.rejected++
		return false
	}
	// The store takes no more when it lags very far behind.
	if !c.store.Set(e.hash, e, e.cost) {
		c.policy.undoAdmit()
		c.dropped++
		return false
	}
	c.added++
	return true
}

// recordResult remembers how a load ended, if that was a failure. The caller holds mu.
func (c *cache[V]) recordResult(name string, err error) {
	if _, ok := errors.AsType[transientError](err); ok || errors.Is(err, ErrShed) {
		return
	}
	if err == nil {
		c.failures.Delete(name)
		return
	}
	now, wait := c.now(), minBackoff
	if former := c.failures.Peek(name); former != nil && now.Sub(former.until) < maxBackoff {
		wait = min(2*former.wait, maxBackoff)
	}
	c.failures.Put(name, failure{err: err, wait: wait, until: now.Add(wait)}, 1)
}

func (c *cache[V]) hitCount() (n uint64) {
	for i := range c.hits {
		n += c.hits[i].n.Load()
	}
	return n
}

// hitRatio returns how many of all requests so far were hits, from 0 to 1. The caller
// holds mu.
func (c *cache[V]) hitRatio() float64 {
	hits := float64(c.hitCount())
	return hits / max(1, hits+float64(c.misses+c.coalesced))
}

// expose registers the metrics of the cache.
func (c *cache[V]) expose(register promauto.Factory) {
	of := func(lock sync.Locker, value func() float64) func() float64 {
		return func() float64 {
			lock.Lock()
			defer lock.Unlock()
			return value()
		}
	}
	name := func(of string) string { return fmt.Sprintf("veneer_edge_%s_cache_%s", c.kind, of) }
	counter := func(of, help string, value func() float64) {
		register.NewCounterFunc(prometheus.CounterOpts{Name: name(of), Help: help}, value)
	}
	counter("hits_total", "Requests whose result was in the cache.", func() float64 { return float64(c.hitCount()) })
	counter("misses_total", "Requests that loaded their result.", of(&c.mu, func() float64 { return float64(c.misses) }))
	counter("coalesced_total", "Requests that waited for the load of another.", of(&c.mu, func() float64 { return float64(c.coalesced) }))
	counter("added_total", "Entries added.", of(&c.policyMu, func() float64 { return float64(c.added) }))
	counter("evicted_total", "Entries evicted.", of(&c.policyMu, func() float64 { return float64(c.evicted) }))
	counter("sets_rejected_total", "Entries that were not worth the place of others.", of(&c.policyMu, func() float64 { return float64(c.rejected) }))
	counter("sets_dropped_total", "Entries that the store did not take.", of(&c.policyMu, func() float64 { return float64(c.dropped) }))
	gauge := func(of, help string, value func() float64) {
		register.NewGaugeFunc(prometheus.GaugeOpts{Name: name(of), Help: help}, value)
	}
	gauge("hit_ratio", "Share of all requests so far that were hits.", of(&c.mu, c.hitRatio))
	gauge("failures", "Loads that failed and are not tried again yet.", of(&c.mu, func() float64 { return float64(c.failures.Len()) }))
	gauge("items", "Entries in the cache.", of(&c.policyMu, func() float64 { return float64(len(c.policy.entries)) }))
	gauge("bytes", "Bytes that the entries take.", of(&c.policyMu, func() float64 { return float64(c.policy.used) }))
	gauge("budget_bytes", "Bytes that the entries may take.", func() float64 { return float64(c.store.MaxCost()) })
}

// Expose registers the metrics of the caches and of the workers.
func (p *Pictures) Expose(registry prometheus.Registerer) {
	register := promauto.With(registry)
	p.pictureCache.expose(register)
	p.textureCache.expose(register)
	p.workers.expose(register)
}
