package edge

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"math"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"go.opentelemetry.io/otel/attribute"

	"github.com/veneer-skins/veneer/shared/edgeproto"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/sieve"
	"github.com/veneer-skins/veneer/shared/tracing"
)

// ResolverConfig bounds the cache of mappings.
// Its settings are EDGE_MAPPING_BYTES, EDGE_NEGATIVE_BYTES, EDGE_MAX_STALE.
type ResolverConfig struct {
	Bytes         int64         `env:"MAPPING_BYTES" envDefault:"33554432" min:"65536" help:"memory for the mappings of names and numbers to textures, in bytes"`
	NegativeBytes int64         `env:"NEGATIVE_BYTES" envDefault:"4194304" min:"65536" help:"memory for names and numbers that do not exist, in bytes"`
	MaxStale      time.Duration `env:"MAX_STALE" envDefault:"24h" min:"0s" help:"longest time that cached mappings are used while core is unreachable; 0s: they are not"`
}

const (
	// trustWindow is how long cached mappings stay valid after the last heartbeat.
	trustWindow = edgeproto.TrustWindow
	// probeAfter is how long after the time of a heartbeat core is probed, so that its answer
	// is there before the trust window ends.
	probeAfter = trustWindow / 2
	// refreshTimeout bounds how long a look-up waits for core when there is a stale mapping.
	refreshTimeout = 250 * time.Millisecond
	// retryInterval is how often an unreachable core is asked again about a stale mapping.
	retryInterval = 100 * time.Millisecond
	// shardCount keeps concurrent look-ups from waiting for the same lock.
	shardCount = 64
)

// Core looks up the mappings of keys.
type Core interface {
	// StartLookups starts look-ups of up to MaxBatch keys and returns at once. They go to core in one
	// request. The context has the id of the client's request, if there is one, and the network of
	// the client; its end does not end the look-ups. StartLookups returns an Unavailable fault when
	// core is known to be unreachable, with ErrShed in its chain when there are too many look-ups;
	// done is never called then. Otherwise another goroutine calls done once for each key, within a
	// bounded time, with its index, the mapping and the cursor of the snapshot in which it was read,
	// or with an Unavailable fault.
	StartLookups(ctx context.Context, keys []edgeproto.Key, done LookupsDone) error
	// WouldReject returns the fault that StartLookups would return for a key and the network of
	// a client, nil if none. The zero Prefix stands for an unknown network.
	WouldReject(key edgeproto.Key, network netip.Prefix) error
	// Probe finds out whether core answers look-ups, and returns at once. Another goroutine
	// calls done once, with nil or with an Unavailable fault.
	Probe(done func(error))
}

// LookupsDone receives the result of the look-up of the key with an index.
type LookupsDone func(i int, mapping edgeproto.Mapping, cursor edgeproto.Cursor, err error)

// LookupResult says where a mapping came from.
type LookupResult uint8

// The results of a look-up.
const (
	LookupHit   LookupResult = iota // cached and valid
	LookupMiss                      // asked of core, successfully or not
	LookupStale                     // cached and no longer valid, as core is unreachable
)

var (
	// A request that is no hit makes several look-ups. Hits are counted in the shards.
	lookups = [...]prometheus.Counter{
		LookupMiss:  promauto.NewCounter(lookupCounterOpts("miss")),
		LookupStale: promauto.NewCounter(lookupCounterOpts("stale")),
	}
	lookupsFailed      = promauto.NewCounter(prometheus.CounterOpts{Name: "veneer_edge_lookups_failed_total", Help: "Look-ups that failed."})
	lookupsDiscarded   = promauto.NewCounter(prometheus.CounterOpts{Name: "veneer_edge_lookups_discarded_total", Help: "Results of look-ups that were not cached, since a change in the meantime may have made them wrong."})
	changesReceived    = promauto.NewCounter(prometheus.CounterOpts{Name: "veneer_edge_changes_total", Help: "Changes received from core."})
	heartbeatsReceived = promauto.NewCounter(prometheus.CounterOpts{Name: "veneer_edge_heartbeats_total", Help: "Heartbeats received from core."})
	cacheFlushes       = promauto.NewCounter(prometheus.CounterOpts{Name: "veneer_edge_mapping_cache_flushes_total", Help: "Times when all mappings were dropped."})
)

// lookupCounterOpts returns the options of the counter of look-ups with a result.
func lookupCounterOpts(result string) prometheus.CounterOpts {
	return prometheus.CounterOpts{
		Name: "veneer_edge_lookups_total", Help: "Look-ups of mappings by result.",
		ConstLabels: prometheus.Labels{"result": result},
	}
}

// Resolver maps keys to textures. It caches the mappings of core, and drops them when core's
// stream of changes names their keys.
//
// The stream is in the order of revisions. A heartbeat in it has a time, and says that the
// stream is complete as of then. So a mapping that was cached before that time, and was named
// by no change up to the heartbeat, was still right then. While heartbeats arrive, all cached
// mappings are valid. A second after the time of the last one, each is looked up again when it
// is next needed.
//
// A result and a change can overtake each other. A result is therefore discarded if one of
// these happened after its look-up started: a change named its key, the stream started anew
// with another history, or the core that answered is itself behind this edge. Callers that
// waited for the look-up still get the result, since they came before the change arrived.
// Later callers start a look-up of their own.
type Resolver struct {
	core     Core
	maxStale time.Duration
	start    time.Time
	seed     maphash.Seed
	shards   [shardCount]shard

	// mu makes an event's changes of the cursor and of the shards atomic for look-ups that
	// start or end, which hold it for reading. It is locked before the lock of a shard. Hits
	// need at most the lock of the shard.
	mu         sync.RWMutex
	cursor     edgeproto.Cursor
	probeTimer *time.Timer // runs probe when no heartbeat comes; nil before the first one
	probing    atomic.Bool // whether a probe is running

	// validAsOf is the time of the last heartbeat, since start.
	validAsOf atomic.Int64
	// retryAt is when to ask an unreachable core again, since start; 0 if core answered last
	// time.
	retryAt atomic.Int64
}

// closedChan is a closed channel.
var closedChan = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

// NewResolver returns a resolver with an empty cache. It caches nothing before the first
// event of a stream.
func NewResolver(config ResolverConfig, core Core) *Resolver {
	r := &Resolver{core: core, maxStale: config.MaxStale, start: time.Now(), seed: maphash.MakeSeed()}
	r.validAsOf.Store(math.MinInt64 / 2)
	for i := range r.shards {
		r.shards[i].seed = r.seed
		r.shards[i].positive = sieve.New[uint64, mappingEntry](config.Bytes / shardCount)
		r.shards[i].negative = sieve.New[uint64, mappingEntry](config.NegativeBytes / shardCount)
		r.shards[i].flush()
	}
	return r
}

// TryLookup returns the mapping of a key if it is cached and valid at a time, which is now
// or just was. It does not ask core, does not keep the key and does not allocate.
func (r *Resolver) TryLookup(key edgeproto.Key, at time.Time) (edgeproto.Mapping, bool) {
	if found := r.tryFind(key, at); found != nil {
		return found.Value.mapping, true
	}
	return edgeproto.Mapping{}, false
}

// tryFind returns the entry of the mapping that TryLookup returns, nil if there is none.
func (r *Resolver) tryFind(key edgeproto.Key, at time.Time) *foundMapping {
	hash := maphash.String(r.seed, string(key))
	s := r.shardOf(hash)
	validAsOf := r.validAsOf.Load() // before the cached mapping, as in getCached
	s.mu.RLock()
	found := s.entry(hash, key)
	s.mu.RUnlock()
	if found == nil || at.Sub(r.start)-found.Value.lastValid(validAsOf) >= trustWindow {
		return nil
	}
	s.hits.Add(1)
	return found
}

// tryAgain counts another hit of a mapping, and reports whether tryFind would return it at a time. It takes no lock:
// Apply removes what a change names from the cache before it returns.
func (r *Resolver) tryAgain(found *foundMapping, at time.Time) bool {
	validAsOf := r.validAsOf.Load() // first, as in getCached
	if !found.TryAgain() || at.Sub(r.start)-found.Value.lastValid(validAsOf) >= trustWindow {
		return false
	}
	r.shardOf(found.Key).hits.Add(1)
	return true
}

// Lookup returns the mapping of a key and where it came from. The mapping of a key that does
// not exist is zero. It returns an Unavailable fault when core is unreachable and no recent
// enough mapping is cached.
//
// The players, users and textures of a mapping are shared: they must not be changed.
func (r *Resolver) Lookup(ctx context.Context, key edgeproto.Key) (edgeproto.Mapping, LookupResult, error) {
	cached, age, ok := r.getCached(key)
	if ok && age < trustWindow {
		r.shard(key).hits.Add(1)
		return cached.mapping, LookupHit, nil
	}

	var mapping edgeproto.Mapping
	var err error
	result := LookupMiss
	ctx, span := tracing.Start(ctx, "lookup")
	defer func() {
		if span.IsRecording() {
			span.SetAttributes(attribute.Bool("stale", result == LookupStale))
		}
		tracing.End(span, &err)
	}()
	if ok && age <= r.maxStale {
		mapping, result, err = r.refresh(ctx, key, cached)
	} else {
		mapping, err = r.fetch(ctx, key)
	}
	if err != nil {
		lookupsFailed.Inc()
		return edgeproto.Mapping{}, LookupMiss, err
	}
	lookups[result].Inc()
	return mapping, result, nil
}

// WouldReject returns the fault with which Lookup would reject a key that is not cached at
// once, nil if none. The network is the client's, the zero Prefix if it is unknown.
func (r *Resolver) WouldReject(key edgeproto.Key, network netip.Prefix) error {
	if r.shard(key).hasOrPending(key) {
		return nil
	}
	err := r.core.WouldReject(key, network)
	if err != nil {
		r.observeResult(err)
		lookupsFailed.Inc()
	}
	return err
}

// IsCurrent reports whether a mapping that was just looked up is still the key's.
func (r *Resolver) IsCurrent(key edgeproto.Key, mapping edgeproto.Mapping) bool {
	cached, age, ok := r.getCached(key)
	return ok && age < trustWindow && cached.mapping == mapping
}

// refresh looks a key up again, since the cached mapping is no longer valid, and returns the
// cached one if core does not answer within refreshTimeout.
func (r *Resolver) refresh(ctx context.Context, key edgeproto.Key, cached cachedMapping) (edgeproto.Mapping, LookupResult, error) {
	if retryAt := r.retryAt.Load(); retryAt != 0 {
		// Core has just failed to answer, so the stale mapping is returned at once. One
		// look-up per retryInterval is started all the same; its answer resets retryAt.
		if now := r.now(); int64(now) >= retryAt && r.retryAt.CompareAndSwap(retryAt, int64(now+retryInterval)) {
			r.startCall(ctx, key)
		}
		return cached.mapping, LookupStale, nil
	}

	refreshCtx, cancel := context.WithTimeout(ctx, refreshTimeout)
	defer cancel()
	mapping, err := r.fetch(refreshCtx, key)
	expired := refreshCtx.Err() != nil
	if expired {
		r.markUnreachable()
	} else if fault.KindOf(err) != fault.Unavailable {
		return mapping, LookupMiss, err
	}
	// A change may have dropped the mapping in the meantime.
	if cached, ok := r.shard(key).get(key); ok {
		return cached.mapping, LookupStale, nil
	}
	if expired { // core is reachable, since the change came from it
		mapping, err = r.fetch(ctx, key)
	}
	return mapping, LookupMiss, err
}

// probe finds out whether a core that has sent no heartbeat answers look-ups. If it does
// not, that is known before the trust window ends. Otherwise all requests would find out at
// the same time, and each would wait for refreshTimeout.
func (r *Resolver) probe() {
	if r.probing.Swap(true) {
		return
	}
	var mu sync.Mutex // orders the time-out and the result
	answered, before := false, r.validAsOf.Load()
	timer := time.AfterFunc(refreshTimeout, func() {
		mu.Lock()
		defer mu.Unlock()
		if !answered {
			r.markUnreachable()
		}
	})
	r.core.Probe(func(err error) {
		mu.Lock()
		defer mu.Unlock()
		answered = true
		timer.Stop()
		// A failure that is older than a heartbeat says nothing about core.
		if err == nil || r.validAsOf.Load() == before {
			r.observeResult(err)
		}
		r.probing.Store(false)
	})
}

// Cursor returns the cursor of the last event that was applied.
func (r *Resolver) Cursor() edgeproto.Cursor {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.cursor
}

// Check returns an error unless the stream of changes is alive and complete.
func (r *Resolver) Check(context.Context) error {
	switch silence := r.now() - time.Duration(r.validAsOf.Load()); {
	case silence < trustWindow:
		return nil
	case silence > r.now()+trustWindow:
		return errors.New("no heartbeat from core yet")
	default:
		return fmt.Errorf("no heartbeat from core for %s", silence.Round(time.Second))
	}
}

// Apply applies the next event of the stream; asOf is the time of a heartbeat. A look-up that
// starts after Apply has returned does not return a mapping from before the event. Apply
// returns an error for an event that cannot follow the last one; the stream must then be
// opened again.
func (r *Resolver) Apply(event edgeproto.Event, asOf time.Time) error {
	r.mu.Lock()
	defer r.mu.Unlock()

	if event.Start {
		if event.Cursor != r.cursor {
			cacheFlushes.Inc()
			for i := range r.shards {
				r.shards[i].flush()
			}
			r.cursor = event.Cursor
		}
		return nil
	}
	if event.Epoch != r.cursor.Epoch || event.Revision < r.cursor.Revision {
		return fmt.Errorf("an event of epoch %q, revision %d cannot follow epoch %q, revision %d",
			event.Epoch, event.Revision, r.cursor.Epoch, r.cursor.Revision)
	}
	for _, key := range event.Keys {
		r.shard(key).invalidate(key)
	}
	r.cursor = event.Cursor
	if event.IsHeartbeat() {
		heartbeatsReceived.Inc()
		// A former stream may have had a later heartbeat, which still holds.
		r.validAsOf.Store(max(r.validAsOf.Load(), int64(asOf.Sub(r.start))))
		wait := max(0, probeAfter-(r.now()-time.Duration(r.validAsOf.Load())))
		if r.probeTimer == nil {
			r.probeTimer = time.AfterFunc(wait, r.probe)
		} else {
			r.probeTimer.Reset(wait)
		}
	} else {
		changesReceived.Inc()
	}
	return nil
}

// fetch returns the mapping of a key from core, by a call that it starts or joins.
func (r *Resolver) fetch(ctx context.Context, key edgeproto.Key) (edgeproto.Mapping, error) {
	for isLast := false; ; isLast = true {
		cached, c, isJoined := r.startCall(ctx, key)
		if c == nil {
			return cached.mapping, nil
		}
		mapping, err := c.wait(ctx)
		// A call that is refused was so for the network that started it.
		if !isJoined || isLast || !errors.Is(err, ErrShed) {
			return mapping, err
		}
	}
}

// wait waits for the result of a call.
func (c *call) wait(ctx context.Context) (edgeproto.Mapping, error) {
	select {
	case <-c.done:
		return c.mapping, c.err
	case <-ctx.Done():
		return edgeproto.Mapping{}, ctx.Err()
	}
}

// newCall returns a call that starts now. The caller holds mu for reading.
func (r *Resolver) newCall() *call {
	return &call{revision: r.cursor.Revision, startedAt: r.now(), done: make(chan struct{})}
}

// startCall starts or joins the call that looks a key up. It returns no call but a cached
// mapping if a call has ended since the caller looked.
func (r *Resolver) startCall(ctx context.Context, key edgeproto.Key) (cached cachedMapping, c *call, isJoined bool) {
	// Held until the call is in the shard, so that every change after its revision finds it.
	r.mu.RLock()
	defer r.mu.RUnlock()
	s := r.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if cached, c, ok := r.current(s, key); ok {
		return cached, c, true
	}
	c = r.newCall()
	err := r.core.StartLookups(ctx, []edgeproto.Key{key}, func(_ int, mapping edgeproto.Mapping, cursor edgeproto.Cursor, err error) {
		r.finishCall(key, c, mapping, cursor, err)
	})
	if err != nil {
		r.observeResult(err)
		return cachedMapping{}, &call{done: closedChan, err: err}, false
	}
	s.calls[key] = c
	return cachedMapping{}, c, false
}

// current returns the valid mapping of a key or the call that looks it up, and reports whether there
// is one of these. The caller holds mu for reading, and the lock of the shard.
func (r *Resolver) current(s *shard, key edgeproto.Key) (cachedMapping, *call, bool) {
	if cached, ok := s.getLocked(key); ok && r.now()-cached.lastValid(r.validAsOf.Load()) < trustWindow {
		return cached, nil, true
	}
	if c, ok := s.calls[key]; ok {
		if r.now()-c.startedAt < trustWindow {
			return cachedMapping{}, c, true
		}
		// Its result may be older than the trust window.
		c.invalidated = true
	}
	return cachedMapping{}, nil, false
}

// finishCall hands the result of a call to all waiting callers, and caches it.
func (r *Resolver) finishCall(key edgeproto.Key, c *call, mapping edgeproto.Mapping, cursor edgeproto.Cursor, err error) {
	r.observeResult(err)

	r.mu.RLock()
	defer r.mu.RUnlock()
	s := r.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.calls[key] == c {
		delete(s.calls, key)
	}
	c.mapping, c.err = compact(mapping), err
	close(c.done)
	switch {
	case err != nil:
	case c.invalidated || cursor.Epoch != r.cursor.Epoch || cursor.Revision < c.revision:
		lookupsDiscarded.Inc()
	default:
		// Core may have read the mapping as early as the call was started.
		s.put(key, cachedMapping{mapping: c.mapping, fetchedAt: c.startedAt})
	}
}

// observeResult records whether core is reachable, by the result of a call.
func (r *Resolver) observeResult(err error) {
	switch {
	case fault.KindOf(err) != fault.Unavailable:
		r.retryAt.Store(0)
	case !errors.Is(err, ErrShed):
		r.markUnreachable()
	}
}

// markUnreachable records that core does not answer.
func (r *Resolver) markUnreachable() { r.retryAt.CompareAndSwap(0, int64(r.now()+retryInterval)) }

func (r *Resolver) shard(key edgeproto.Key) *shard {
	return r.shardOf(maphash.String(r.seed, string(key)))
}

// shardOf returns the shard of a key with a hash.
func (r *Resolver) shardOf(hash uint64) *shard { return &r.shards[hash%shardCount] }

func (r *Resolver) now() time.Duration { return time.Since(r.start) }

// getCached returns the cached mapping of a key and how long ago it was last known to be
// right. The time of the heartbeat is read first: a mapping that is still cached after that
// was right then, while one that was read before may have been dropped by a change.
func (r *Resolver) getCached(key edgeproto.Key) (cached cachedMapping, age time.Duration, ok bool) {
	validAsOf := r.validAsOf.Load()
	cached, ok = r.shard(key).get(key)
	return cached, r.now() - cached.lastValid(validAsOf), ok
}

// lastValid returns when a mapping was last known to be right, given the time of the last
// heartbeat; both since the start of the resolver.
func (m cachedMapping) lastValid(validAsOf int64) time.Duration {
	return max(m.fetchedAt, time.Duration(validAsOf))
}

// Expose registers the metrics of the resolver.
func (r *Resolver) Expose(registry prometheus.Registerer) {
	register := promauto.With(registry)
	gauge := func(name, help string, value func() float64) {
		register.NewGaugeFunc(prometheus.GaugeOpts{Name: "veneer_edge_" + name, Help: help}, value)
	}
	gauge("stream_live", "1 while heartbeats arrive from core, 0 otherwise.", func() float64 {
		if r.Check(context.Background()) != nil {
			return 0
		}
		return 1
	})
	gauge("stream_lag_seconds", "Time since the latest heartbeat of core was sent.", func() float64 {
		// Before the first heartbeat, it is the time since the start.
		return (r.now() - max(0, time.Duration(r.validAsOf.Load()))).Seconds()
	})
	gauge("revision", "Revision of the latest change that was applied.", func() float64 { return float64(r.Cursor().Revision) })
	register.NewCounterFunc(lookupCounterOpts("hit"), func() (hits float64) {
		for i := range r.shards {
			hits += float64(r.shards[i].hits.Load())
		}
		return hits
	})
	for name, of := range map[string]struct {
		what string
		part func(*shard) *mappingCache
	}{
		"mappings":          {"Mappings", func(s *shard) *mappingCache { return s.positive }},
		"negative_mappings": {"Keys that do not exist", func(s *shard) *mappingCache { return s.negative }},
	} {
		gauge(name, of.what+" in the cache.", func() float64 { return float64(r.usage(of.part).count) })
		gauge(name+"_bytes", of.what+": bytes that they take.", func() float64 { return float64(r.usage(of.part).bytes) })
		gauge(name+"_budget_bytes", of.what+": bytes that they may take.", func() float64 { return float64(r.usage(of.part).budget) })
		register.NewCounterFunc(prometheus.CounterOpts{
			Name: "veneer_edge_" + name + "_evicted_total", Help: of.what + " that were evicted to make room for others.",
		}, func() float64 { return float64(r.usage(of.part).evicted) })
	}
}

// usage is the size of a part of the cache.
type usage struct {
	count         int
	bytes, budget int64
	evicted       uint64
}

// usage returns the size of a part, summed over all shards.
func (r *Resolver) usage(part func(*shard) *mappingCache) (sum usage) {
	for i := range r.shards {
		s := &r.shards[i]
		s.mu.RLock()
		cached := part(s)
		sum.count += cached.Len()
		sum.bytes += cached.Cost()
		sum.budget += cached.Budget()
		sum.evicted += cached.Evicted()
		s.mu.RUnlock()
	}
	return sum
}
