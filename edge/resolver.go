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
	"unsafe"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"go.opentelemetry.io/otel/attribute"

	"github.com/veneer-skins/veneer/shared/edgeproto"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/sieve"
	"github.com/veneer-skins/veneer/shared/tracing"
)

// ResolverConfig bounds what is remembered of mappings.
type ResolverConfig struct {
	Bytes         int64         `env:"MAPPING_BYTES" envDefault:"33554432" help:"memory for what names and numbers lead to, in bytes"`
	NegativeBytes int64         `env:"NEGATIVE_BYTES" envDefault:"4194304" help:"memory for names and numbers that lead nowhere, in bytes"`
	MaxStale      time.Duration `env:"MAX_STALE" envDefault:"24h" help:"longest time that remembered answers are given while core is away; 0s gives none"`
}

const (
	// trustWindow is how long a mapping is believed without a word from core.
	trustWindow = time.Second
	// probeAfter is how long after the moment of a beat core is asked whether it is there.
	// There is time for that before mappings are doubted.
	probeAfter = trustWindow / 2
	// refreshTimeout bounds the waiting of somebody who could have a memory instead.
	refreshTimeout = 250 * time.Millisecond
	// retryInterval is how often a core that did not answer is asked about memories.
	retryInterval = 100 * time.Millisecond
	// shardCount keeps visitors out of each other's way.
	shardCount = 64
)

// Core answers what keys lead to.
type Core interface {
	// StartLookup asks what a key leads to and returns at once. The context says which request it
	// is for, if that is to be told, and has the network of its client; its end ends
	// nothing. It returns an Unavailable fault when core is away, with ErrShed in its chain
	// if core is asked too much; answer is never called then. Otherwise another goroutine
	// calls answer once, before long, with what the key leads to and the position of the
	// snapshot in which that was read, or with an Unavailable fault.
	StartLookup(ctx context.Context, key edgeproto.Key, answer func(edgeproto.Mapping, edgeproto.Cursor, error)) error
	// WouldReject returns the fault that Ask would return for a key and the network of a
	// client, if it would, and nil otherwise. The zero Prefix stands for a client whose
	// network is not known.
	WouldReject(key edgeproto.Key, network netip.Prefix) error
	// Probe finds out whether core answers questions, and returns at once. Another
	// goroutine calls done once, with nil or with an Unavailable fault.
	Probe(done func(error))
}

// LookupResult says how a mapping was learned.
type LookupResult uint8

// The sources of a mapping.
const (
	LookupHit   LookupResult = iota // remembered, and believed to be right at this moment
	LookupMiss                      // core was asked, or tried to be
	LookupStale                     // remembered; core is away and may know better
)

var (
	// A request that is no hit makes several. Those that find what they want in memory are
	// counted in shards.
	lookups = [...]prometheus.Counter{
		LookupMiss:  promauto.NewCounter(lookupCounterOpts("miss")),
		LookupStale: promauto.NewCounter(lookupCounterOpts("stale")),
	}
	lookupsFailed      = promauto.NewCounter(prometheus.CounterOpts{Name: "veneer_edge_lookups_failed_total", Help: "Look-ups that failed."})
	lookupsDiscarded   = promauto.NewCounter(prometheus.CounterOpts{Name: "veneer_edge_lookups_discarded_total", Help: "Results of look-ups that a change meanwhile may have made wrong."})
	changesReceived    = promauto.NewCounter(prometheus.CounterOpts{Name: "veneer_edge_changes_total", Help: "Changes heard from core."})
	heartbeatsReceived = promauto.NewCounter(prometheus.CounterOpts{Name: "veneer_edge_heartbeats_total", Help: "Heartbeats heard from core."})
	cacheFlushes       = promauto.NewCounter(prometheus.CounterOpts{Name: "veneer_edge_mapping_cache_flushes_total", Help: "Times when all mappings were dropped."})
)

// lookupCounterOpts returns the options of the counter of look-ups with a source.
func lookupCounterOpts(result string) prometheus.CounterOpts {
	return prometheus.CounterOpts{
		Name: "veneer_edge_lookups_total", Help: "Look-ups of mappings by result.",
		ConstLabels: prometheus.Labels{"result": result},
	}
}

// Resolver remembers what keys lead to, and never believes a memory that core
// has called into question.
//
// Core's stream of changes makes that possible. It comes in the order of
// revisions, and a beat in it says that it is complete as of a moment. So what was
// remembered before that moment, and named by no change up to the beat, was still
// right then. While beats come, every memory is; a second after the moment of the
// last one each is asked about again when it is next needed.
//
// An answer and a change can pass each other on the way. An answer is therefore
// kept only if none of this happened since its question went out: a change named
// its key, the history was found to be another one, or a core answered that has
// itself not seen what this edge has seen. Whoever waited for such an answer
// still gets it, as they asked before the change arrived; whoever comes later
// waits for an answer of their own.
type Resolver struct {
	core     Core
	maxStale time.Duration
	start    time.Time
	seed     maphash.Seed
	shards   [shardCount]shard

	// mu makes a change of the position and of the shards one step for everybody
	// who sends a question or takes an answer in, and they hold it for reading.
	// It is locked before the lock of a shard. Visitors who find what they want
	// need only that of the shard.
	mu         sync.RWMutex
	position   edgeproto.Cursor
	probeTimer *time.Timer // runs probe if there is no beat for too long; nil before the first
	probing    atomic.Bool // whether a probe is under way

	// validAsOf is the moment of the last beat, since born.
	validAsOf atomic.Int64
	// retryAt is when to ask a core again that did not answer, since born; 0 if it
	// answered when it was last asked.
	retryAt atomic.Int64
}

// closedChan is closed: nobody waits for it.
var closedChan = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

// NewResolver returns mappings that know nothing. They keep nothing before they
// have been told of the beginning of a stream.
func NewResolver(config ResolverConfig, core Core) (*Resolver, error) {
	const least = 1 << 16
	switch {
	case config.Bytes < least:
		return nil, fmt.Errorf("MAPPING_BYTES is %d, but must be at least %d", config.Bytes, least)
	case config.NegativeBytes < least:
		return nil, fmt.Errorf("NEGATIVE_BYTES is %d, but must be at least %d", config.NegativeBytes, least)
	case config.MaxStale < 0:
		return nil, fmt.Errorf("MAX_STALE is %s, but must not be negative", config.MaxStale)
	}
	m := &Resolver{core: core, maxStale: config.MaxStale, start: time.Now(), seed: maphash.MakeSeed()}
	m.validAsOf.Store(math.MinInt64 / 2)
	for i := range m.shards {
		m.shards[i].seed = m.seed
		m.shards[i].positive = sieve.New[uint64, mappingEntry](config.Bytes / shardCount)
		m.shards[i].negative = sieve.New[uint64, mappingEntry](config.NegativeBytes / shardCount)
		m.shards[i].flush()
	}
	return m, nil
}

// TryLookup returns what a key leads to, if that is remembered and believed to be
// right at a moment, which is now or just was. It asks nobody, waits for nothing
// and allocates nothing.
func (m *Resolver) TryLookup(key []byte, at time.Time) (edgeproto.Mapping, bool) {
	s := &m.shards[maphash.Bytes(m.seed, key)%shardCount]
	validAsOf := m.validAsOf.Load() // before what is remembered, as in remembered
	cached, ok := s.getBytes(key)
	if !ok || at.Sub(m.start)-cached.lastValid(validAsOf) >= trustWindow {
		return edgeproto.Mapping{}, false
	}
	s.hits.Add(1)
	return cached.mapping, true
}

// Lookup returns what a key leads to and how that was learned. A key that leads
// nowhere has the zero Mapping. It returns an Unavailable fault when core is away
// and nothing recent enough is remembered.
//
// What the mapping points to is shared: never change it.
func (m *Resolver) Lookup(ctx context.Context, key edgeproto.Key) (edgeproto.Mapping, LookupResult, error) {
	cached, age, ok := m.getCached(key)
	if ok && age < trustWindow {
		m.shard(key).hits.Add(1)
		return cached.mapping, LookupHit, nil
	}

	var answer edgeproto.Mapping
	var err error
	source := LookupMiss
	ctx, span := tracing.Start(ctx, "lookup")
	defer func() {
		if span.IsRecording() {
			span.SetAttributes(attribute.Bool("stale", source == LookupStale))
		}
		tracing.End(span, &err)
	}()
	if ok && age <= m.maxStale {
		answer, source, err = m.refresh(ctx, key, cached)
	} else {
		answer, err = m.fetch(ctx, key)
	}
	if err != nil {
		lookupsFailed.Inc()
		return edgeproto.Mapping{}, LookupMiss, err
	}
	lookups[source].Inc()
	return answer, source, nil
}

// WouldReject returns the fault that Lookup would return at once for a key of which nothing
// is remembered, if it would, and nil otherwise. The network is that of the client, or the
// zero Prefix if that is not known.
func (m *Resolver) WouldReject(key []byte, network netip.Prefix) error {
	if m.shard(edgeproto.Key(unsafeString(key))).hasOrPending(edgeproto.Key(unsafeString(key))) {
		return nil
	}
	err := m.core.WouldReject(edgeproto.Key(unsafeString(key)), network)
	if err != nil {
		m.observeResult(err)
		lookupsFailed.Inc()
	}
	return err
}

// unsafeString returns a key as a text without copying it. It may not be kept.
func unsafeString(key []byte) string { return unsafe.String(unsafe.SliceData(key), len(key)) }

// refresh returns core's answer about a memory that nobody vouches for any more, and
// the memory if core does not answer soon.
func (m *Resolver) refresh(ctx context.Context, key edgeproto.Key, cached cachedMapping) (edgeproto.Mapping, LookupResult, error) {
	if again := m.retryAt.Load(); again != 0 {
		// Nobody waits for a core that did not answer just now. It is asked all the
		// same, now and then, and its first answer ends this.
		if now := m.now(); int64(now) >= again && m.retryAt.CompareAndSwap(again, int64(now+retryInterval)) {
			m.startCall(ctx, key)
		}
		return cached.mapping, LookupStale, nil
	}

	soon, cancel := context.WithTimeout(ctx, refreshTimeout)
	defer cancel()
	answer, err := m.fetch(soon, key)
	late := soon.Err() != nil
	if late {
		m.markUnreachable()
	} else if fault.KindOf(err) != fault.Unavailable {
		return answer, LookupMiss, err
	}
	// Looked up anew: a change may have arrived while core was tried.
	if cached, ok := m.shard(key).get(key); ok {
		return cached.mapping, LookupStale, nil
	}
	if late { // core is there, as the change came from it
		answer, err = m.fetch(ctx, key)
	}
	return answer, LookupMiss, err
}

// probe finds out whether a core that has sent no beat answers questions. If it does not,
// visitors need not find that out once their memories are in doubt, which would cost all
// of them their patience at the same moment.
func (m *Resolver) probe() {
	if m.probing.Swap(true) {
		return
	}
	var mu sync.Mutex // one outcome after the other
	answered, beat := false, m.validAsOf.Load()
	silent := time.AfterFunc(refreshTimeout, func() {
		mu.Lock()
		defer mu.Unlock()
		if !answered {
			m.markUnreachable()
		}
	})
	m.core.Probe(func(err error) {
		mu.Lock()
		defer mu.Unlock()
		answered = true
		silent.Stop()
		// A failure that is older than a beat says nothing about core.
		if err == nil || m.validAsOf.Load() == beat {
			m.observeResult(err)
		}
		m.probing.Store(false)
	})
}

// Cursor returns the position up to which changes have been taken in.
func (m *Resolver) Cursor() edgeproto.Cursor {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.position
}

// Check returns an error unless the stream of changes is alive and complete.
func (m *Resolver) Check(context.Context) error {
	switch silence := m.now() - time.Duration(m.validAsOf.Load()); {
	case silence < trustWindow:
		return nil
	case silence > m.now()+trustWindow:
		return errors.New("not in touch with core yet")
	default:
		return fmt.Errorf("no beat from core for %s", silence.Round(time.Second))
	}
}

// Apply takes in the next event of the stream; a beat says that the stream is
// complete as of a moment. Once it has returned, no look-up that begins leads to
// what was true before the event. It returns an error for an event that cannot
// follow the one before it; the stream is then worth nothing and must be opened
// again.
func (m *Resolver) Apply(event edgeproto.Event, asOf time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()

	if event.Start {
		if event.Cursor != m.position {
			cacheFlushes.Inc()
			for i := range m.shards {
				m.shards[i].flush()
			}
			m.position = event.Cursor
		}
		return nil
	}
	if event.Epoch != m.position.Epoch || event.Revision < m.position.Revision {
		return fmt.Errorf("an event of epoch %q, revision %d cannot follow epoch %q, revision %d",
			event.Epoch, event.Revision, m.position.Epoch, m.position.Revision)
	}
	for _, key := range event.Keys {
		m.shard(key).invalidate(key)
	}
	m.position = event.Cursor
	if event.IsHeartbeat() {
		heartbeatsReceived.Inc()
		// What a former stream has vouched for later is still true.
		m.validAsOf.Store(max(m.validAsOf.Load(), int64(asOf.Sub(m.start))))
		wait := max(0, probeAfter-(m.now()-time.Duration(m.validAsOf.Load())))
		if m.probeTimer == nil {
			m.probeTimer = time.AfterFunc(wait, m.probe)
		} else {
			m.probeTimer.Reset(wait)
		}
	} else {
		changesReceived.Inc()
	}
	return nil
}

// fetch returns core's answer to a question that was sent for this caller, or is
// under way already for others.
func (m *Resolver) fetch(ctx context.Context, key edgeproto.Key) (edgeproto.Mapping, error) {
	cached, f := m.startCall(ctx, key)
	if f == nil {
		return cached.mapping, nil
	}
	select {
	case <-f.done:
		return f.mapping, f.err
	case <-ctx.Done():
		return edgeproto.Mapping{}, ctx.Err()
	}
}

// startCall returns the flight that asks about a key, or no flight but a memory if
// one has landed since the caller looked.
func (m *Resolver) startCall(ctx context.Context, key edgeproto.Key) (cachedMapping, *call) {
	// Held until the flight is where changes find it: from its position on, none
	// may miss it.
	m.mu.RLock()
	defer m.mu.RUnlock()
	s := m.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if cached, ok := s.getLocked(key); ok && m.now()-cached.lastValid(m.validAsOf.Load()) < trustWindow {
		return cached, nil
	}
	if f, ok := s.calls[key]; ok {
		if m.now()-f.startedAt < trustWindow {
			return cachedMapping{}, f
		}
		// Its answer may be from so long ago that nobody who comes now should get it.
		f.invalidated = true
	}
	f := &call{revision: m.position.Revision, startedAt: m.now(), done: make(chan struct{})}
	err := m.core.StartLookup(ctx, key, func(answer edgeproto.Mapping, position edgeproto.Cursor, err error) {
		m.finishCall(key, f, answer, position, err)
	})
	if err != nil {
		m.observeResult(err)
		return cachedMapping{}, &call{done: closedChan, err: err}
	}
	s.calls[key] = f
	return cachedMapping{}, f
}

// finishCall takes an answer in, on behalf of everybody who waits.
func (m *Resolver) finishCall(key edgeproto.Key, f *call, answer edgeproto.Mapping, position edgeproto.Cursor, err error) {
	m.observeResult(err)

	m.mu.RLock()
	defer m.mu.RUnlock()
	s := m.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.calls[key] == f {
		delete(s.calls, key)
	}
	f.mapping, f.err = compact(answer), err
	close(f.done)
	switch {
	case err != nil:
	case f.invalidated || position.Epoch != m.position.Epoch || position.Revision < f.revision:
		lookupsDiscarded.Inc()
	default:
		// What is known is that the answer was right when it was given, which may
		// have been as early as it was asked for.
		s.put(key, cachedMapping{mapping: f.mapping, fetchedAt: f.startedAt})
	}
}

// observeResult notes what an outcome says about core.
func (m *Resolver) observeResult(err error) {
	switch {
	case fault.KindOf(err) != fault.Unavailable:
		m.retryAt.Store(0)
	case !errors.Is(err, ErrShed):
		m.markUnreachable()
	}
}

// markUnreachable notes that core does not answer.
func (m *Resolver) markUnreachable() { m.retryAt.CompareAndSwap(0, int64(m.now()+retryInterval)) }

func (m *Resolver) shard(key edgeproto.Key) *shard {
	return &m.shards[maphash.String(m.seed, string(key))%shardCount]
}

func (m *Resolver) now() time.Duration { return time.Since(m.start) }

// getCached returns what is remembered of a key, and for how long nobody has vouched
// for it. When somebody did comes first: all that is still remembered then was right,
// while what was read before may be what was forgotten meanwhile.
func (m *Resolver) getCached(key edgeproto.Key) (cached cachedMapping, age time.Duration, ok bool) {
	validAsOf := m.validAsOf.Load()
	cached, ok = m.shard(key).get(key)
	return cached, m.now() - cached.lastValid(validAsOf), ok
}

// lastValid returns when a memory was known to be right last, since birth, if all were at
// some time.
func (k cachedMapping) lastValid(validAsOf int64) time.Duration {
	return max(k.fetchedAt, time.Duration(validAsOf))
}

// Expose registers the metrics of the mappings.
func (m *Resolver) Expose(registry prometheus.Registerer) {
	register := promauto.With(registry)
	gauge := func(name, help string, value func() float64) {
		register.NewGaugeFunc(prometheus.GaugeOpts{Name: "veneer_edge_" + name, Help: help}, value)
	}
	gauge("stream_live", "1 while core is heard, 0 otherwise.", func() float64 {
		if m.Check(context.Background()) != nil {
			return 0
		}
		return 1
	})
	gauge("stream_lag_seconds", "Time since the latest heartbeat of core was sent.", func() float64 {
		// As long as there was no beat, it is how long one has been waited for.
		return (m.now() - max(0, time.Duration(m.validAsOf.Load()))).Seconds()
	})
	gauge("revision", "Revision of the latest change that was applied.", func() float64 { return float64(m.Cursor().Revision) })
	register.NewCounterFunc(lookupCounterOpts("hit"), func() (hits float64) {
		for i := range m.shards {
			hits += float64(m.shards[i].hits.Load())
		}
		return hits
	})
	for name, of := range map[string]struct {
		what string
		part func(*shard) *mappingCache
	}{
		"mappings":          {"Mappings", func(s *shard) *mappingCache { return s.positive }},
		"negative_mappings": {"Keys that lead nowhere", func(s *shard) *mappingCache { return s.negative }},
	} {
		gauge(name, of.what+" in memory.", func() float64 { return float64(m.usage(of.part).count) })
		gauge(name+"_bytes", of.what+": bytes that they take.", func() float64 { return float64(m.usage(of.part).bytes) })
		gauge(name+"_budget_bytes", of.what+": bytes that they may take.", func() float64 { return float64(m.usage(of.part).budget) })
		register.NewCounterFunc(prometheus.CounterOpts{
			Name: "veneer_edge_" + name + "_evicted_total", Help: of.what + " that were evicted to make room for others.",
		}, func() float64 { return float64(m.usage(of.part).evicted) })
	}
}

// usage is how many memories there are, in how many bytes, in how many they may be, and how
// many were evicted.
type usage struct {
	count         int
	bytes, budget int64
	evicted       uint64
}

// usage returns the sum of a part of every shard.
func (m *Resolver) usage(part func(*shard) *mappingCache) (sum usage) {
	for i := range m.shards {
		s := &m.shards[i]
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
