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

	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/mapping"
	"github.com/veneer-skins/veneer/shared/sieve"
	"github.com/veneer-skins/veneer/shared/tracing"
)

// MappingsConfig bounds what is remembered of mappings.
type MappingsConfig struct {
	Bytes         int64         `env:"MAPPING_BYTES" envDefault:"33554432" help:"memory for what names and numbers lead to, in bytes"`
	NegativeBytes int64         `env:"NEGATIVE_BYTES" envDefault:"4194304" help:"memory for names and numbers that lead nowhere, in bytes"`
	MaxStale      time.Duration `env:"MAX_STALE" envDefault:"24h" help:"longest time that remembered answers are given while core is away; 0s gives none"`
}

const (
	// doubt is how long a mapping is believed without a word from core.
	doubt = time.Second
	// overdue is how long after the moment of a beat core is asked whether it is there.
	// There is time for that before mappings are doubted.
	overdue = doubt / 2
	// shortPatience bounds the waiting of somebody who could have a memory instead.
	shortPatience = 250 * time.Millisecond
	// retryEvery is how often a core that did not answer is asked about memories.
	retryEvery = 100 * time.Millisecond
	// shardCount keeps visitors out of each other's way.
	shardCount = 64
)

// Core answers what keys lead to.
type Core interface {
	// Ask asks what a key leads to and returns at once. The context says which request it
	// is for, if that is to be told, and has the network of its client; its end ends
	// nothing. It returns an Unavailable fault when core is away, with ErrShed in its chain
	// if core is asked too much; answer is never called then. Otherwise another goroutine
	// calls answer once, before long, with what the key leads to and the position of the
	// snapshot in which that was read, or with an Unavailable fault.
	Ask(ctx context.Context, key mapping.Key, answer func(mapping.Mapping, mapping.Position, error)) error
	// Refusal returns the fault that Ask would return for a key and the network of a
	// client, if it would, and nil otherwise. The zero Prefix stands for a client whose
	// network is not known.
	Refusal(key mapping.Key, network netip.Prefix) error
	// Probe finds out whether core answers questions, and returns at once. Another
	// goroutine calls done once, with nil or with an Unavailable fault.
	Probe(done func(error))
}

// Source says how a mapping was learned.
type Source uint8

// The sources of a mapping.
const (
	Kept  Source = iota // remembered, and believed to be right at this moment
	Asked               // core was asked, or tried to be
	Stale               // remembered; core is away and may know better
)

var (
	// A request that is no hit makes several. Those that find what they want in memory are
	// counted in shards.
	lookups = [...]prometheus.Counter{
		Asked: promauto.NewCounter(lookupsFrom("asked")),
		Stale: promauto.NewCounter(lookupsFrom("stale")),
	}
	lookupsFailed = promauto.NewCounter(prometheus.CounterOpts{Name: "veneer_edge_lookups_failed_total", Help: "Look-ups that failed."})
	answersUnkept = promauto.NewCounter(prometheus.CounterOpts{Name: "veneer_edge_answers_not_kept_total", Help: "Results of look-ups that a change meanwhile may have made wrong."})
	changesHeard  = promauto.NewCounter(prometheus.CounterOpts{Name: "veneer_edge_changes_total", Help: "Changes heard from core."})
	beatsHeard    = promauto.NewCounter(prometheus.CounterOpts{Name: "veneer_edge_beats_total", Help: "Heartbeats heard from core."})
	timesForgot   = promauto.NewCounter(prometheus.CounterOpts{Name: "veneer_edge_forgot_all_total", Help: "Times when all mappings were dropped."})
)

// lookupsFrom returns the options of the counter of look-ups with a source.
func lookupsFrom(source string) prometheus.CounterOpts {
	return prometheus.CounterOpts{
		Name: "veneer_edge_lookups_total", Help: "Look-ups of mappings by the source of their result.",
		ConstLabels: prometheus.Labels{"source": source},
	}
}

// Mappings remembers what keys lead to, and never believes a memory that core
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
type Mappings struct {
	core     Core
	maxStale time.Duration
	born     time.Time
	seed     maphash.Seed
	shards   [shardCount]shard

	// mu makes a change of the position and of the shards one step for everybody
	// who sends a question or takes an answer in, and they hold it for reading.
	// It is locked before the lock of a shard. Visitors who find what they want
	// need only that of the shard.
	mu       sync.RWMutex
	position mapping.Position
	late     *time.Timer // runs probe if there is no beat for too long; nil before the first
	probing  atomic.Bool // whether a probe is under way

	// vouched is the moment of the last beat, since born.
	vouched atomic.Int64
	// askAgain is when to ask a core again that did not answer, since born; 0 if it
	// answered when it was last asked.
	askAgain atomic.Int64
}

// landedAlready is closed: nobody waits for it.
var landedAlready = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

// NewMappings returns mappings that know nothing. They keep nothing before they
// have been told of the beginning of a stream.
func NewMappings(config MappingsConfig, core Core) (*Mappings, error) {
	const least = 1 << 16
	switch {
	case config.Bytes < least:
		return nil, fmt.Errorf("MAPPING_BYTES is %d, but must be at least %d", config.Bytes, least)
	case config.NegativeBytes < least:
		return nil, fmt.Errorf("NEGATIVE_BYTES is %d, but must be at least %d", config.NegativeBytes, least)
	case config.MaxStale < 0:
		return nil, fmt.Errorf("MAX_STALE is %s, but must not be negative", config.MaxStale)
	}
	m := &Mappings{core: core, maxStale: config.MaxStale, born: time.Now(), seed: maphash.MakeSeed()}
	m.vouched.Store(math.MinInt64 / 2)
	for i := range m.shards {
		m.shards[i].seed = m.seed
		m.shards[i].existing = sieve.New[uint64, node](config.Bytes / shardCount)
		m.shards[i].missing = sieve.New[uint64, node](config.NegativeBytes / shardCount)
		m.shards[i].forget()
	}
	return m, nil
}

// Recall returns what a key leads to, if that is remembered and believed to be
// right at a moment, which is now or just was. It asks nobody, waits for nothing
// and allocates nothing.
func (m *Mappings) Recall(key []byte, at time.Time) (mapping.Mapping, bool) {
	s := &m.shards[maphash.Bytes(m.seed, key)%shardCount]
	vouched := m.vouched.Load() // before what is remembered, as in remembered
	known, ok := s.recall(key)
	if !ok || at.Sub(m.born)-known.right(vouched) >= doubt {
		return mapping.Mapping{}, false
	}
	s.recalled.Add(1)
	return known.mapping, true
}

// Lookup returns what a key leads to and how that was learned. A key that leads
// nowhere has the zero Mapping. It returns an Unavailable fault when core is away
// and nothing recent enough is remembered.
//
// What the mapping points to is shared: never change it.
func (m *Mappings) Lookup(ctx context.Context, key mapping.Key) (mapping.Mapping, Source, error) {
	known, age, ok := m.remembered(key)
	if ok && age < doubt {
		m.shard(key).recalled.Add(1)
		return known.mapping, Kept, nil
	}

	var answer mapping.Mapping
	var err error
	source := Asked
	ctx, span := tracing.Start(ctx, "lookup")
	defer func() {
		if span.IsRecording() {
			span.SetAttributes(attribute.Bool("stale", source == Stale))
		}
		tracing.End(span, &err)
	}()
	if ok && age <= m.maxStale {
		answer, source, err = m.renew(ctx, key, known)
	} else {
		answer, err = m.ask(ctx, key)
	}
	if err != nil {
		lookupsFailed.Inc()
		return mapping.Mapping{}, Asked, err
	}
	lookups[source].Inc()
	return answer, source, nil
}

// Refusal returns the fault that Lookup would return at once for a key of which nothing
// is remembered, if it would, and nil otherwise. The network is that of the client, or the
// zero Prefix if that is not known.
func (m *Mappings) Refusal(key []byte, network netip.Prefix) error {
	if m.shard(mapping.Key(borrowed(key))).concerns(mapping.Key(borrowed(key))) {
		return nil
	}
	err := m.core.Refusal(mapping.Key(borrowed(key)), network)
	if err != nil {
		m.heard(err)
		lookupsFailed.Inc()
	}
	return err
}

// borrowed returns a key as a text without copying it. It may not be kept.
func borrowed(key []byte) string { return unsafe.String(unsafe.SliceData(key), len(key)) }

// renew returns core's answer about a memory that nobody vouches for any more, and
// the memory if core does not answer soon.
func (m *Mappings) renew(ctx context.Context, key mapping.Key, known memory) (mapping.Mapping, Source, error) {
	if again := m.askAgain.Load(); again != 0 {
		// Nobody waits for a core that did not answer just now. It is asked all the
		// same, now and then, and its first answer ends this.
		if now := m.now(); int64(now) >= again && m.askAgain.CompareAndSwap(again, int64(now+retryEvery)) {
			m.embark(ctx, key)
		}
		return known.mapping, Stale, nil
	}

	soon, cancel := context.WithTimeout(ctx, shortPatience)
	defer cancel()
	answer, err := m.ask(soon, key)
	late := soon.Err() != nil
	if late {
		m.silent()
	} else if fault.KindOf(err) != fault.Unavailable {
		return answer, Asked, err
	}
	// Looked up anew: a change may have arrived while core was tried.
	if known, ok := m.shard(key).find(key); ok {
		return known.mapping, Stale, nil
	}
	if late { // core is there, as the change came from it
		answer, err = m.ask(ctx, key)
	}
	return answer, Asked, err
}

// probe finds out whether a core that has sent no beat answers questions. If it does not,
// visitors need not find that out once their memories are in doubt, which would cost all
// of them their patience at the same moment.
func (m *Mappings) probe() {
	if m.probing.Swap(true) {
		return
	}
	var mu sync.Mutex // one outcome after the other
	answered, beat := false, m.vouched.Load()
	silent := time.AfterFunc(shortPatience, func() {
		mu.Lock()
		defer mu.Unlock()
		if !answered {
			m.silent()
		}
	})
	m.core.Probe(func(err error) {
		mu.Lock()
		defer mu.Unlock()
		answered = true
		silent.Stop()
		// A failure that is older than a beat says nothing about core.
		if err == nil || m.vouched.Load() == beat {
			m.heard(err)
		}
		m.probing.Store(false)
	})
}

// Position returns the position up to which changes have been taken in.
func (m *Mappings) Position() mapping.Position {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.position
}

// Check returns an error unless the stream of changes is alive and complete.
func (m *Mappings) Check(context.Context) error {
	switch silence := m.now() - time.Duration(m.vouched.Load()); {
	case silence < doubt:
		return nil
	case silence > m.now()+doubt:
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
func (m *Mappings) Apply(event mapping.Event, asOf time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()

	if event.Start {
		if event.Position != m.position {
			timesForgot.Inc()
			for i := range m.shards {
				m.shards[i].forget()
			}
			m.position = event.Position
		}
		return nil
	}
	if event.Epoch != m.position.Epoch || event.Revision < m.position.Revision {
		return fmt.Errorf("an event of epoch %q, revision %d cannot follow epoch %q, revision %d",
			event.Epoch, event.Revision, m.position.Epoch, m.position.Revision)
	}
	for _, key := range event.Keys {
		m.shard(key).drop(key)
	}
	m.position = event.Position
	if event.IsBeat() {
		beatsHeard.Inc()
		// What a former stream has vouched for later is still true.
		m.vouched.Store(max(m.vouched.Load(), int64(asOf.Sub(m.born))))
		wait := max(0, overdue-(m.now()-time.Duration(m.vouched.Load())))
		if m.late == nil {
			m.late = time.AfterFunc(wait, m.probe)
		} else {
			m.late.Reset(wait)
		}
	} else {
		changesHeard.Inc()
	}
	return nil
}

// ask returns core's answer to a question that was sent for this caller, or is
// under way already for others.
func (m *Mappings) ask(ctx context.Context, key mapping.Key) (mapping.Mapping, error) {
	known, f := m.embark(ctx, key)
	if f == nil {
		return known.mapping, nil
	}
	select {
	case <-f.landed:
		return f.mapping, f.err
	case <-ctx.Done():
		return mapping.Mapping{}, ctx.Err()
	}
}

// embark returns the flight that asks about a key, or no flight but a memory if
// one has landed since the caller looked.
func (m *Mappings) embark(ctx context.Context, key mapping.Key) (memory, *flight) {
	// Held until the flight is where changes find it: from its position on, none
	// may miss it.
	m.mu.RLock()
	defer m.mu.RUnlock()
	s := m.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if known, ok := s.look(key); ok && m.now()-known.right(m.vouched.Load()) < doubt {
		return known, nil
	}
	if f, ok := s.flights[key]; ok {
		if m.now()-f.asked < doubt {
			return memory{}, f
		}
		// Its answer may be from so long ago that nobody who comes now should get it.
		f.outdated = true
	}
	f := &flight{revision: m.position.Revision, asked: m.now(), landed: make(chan struct{})}
	err := m.core.Ask(ctx, key, func(answer mapping.Mapping, position mapping.Position, err error) {
		m.land(key, f, answer, position, err)
	})
	if err != nil {
		m.heard(err)
		return memory{}, &flight{landed: landedAlready, err: err}
	}
	s.flights[key] = f
	return memory{}, f
}

// land takes an answer in, on behalf of everybody who waits.
func (m *Mappings) land(key mapping.Key, f *flight, answer mapping.Mapping, position mapping.Position, err error) {
	m.heard(err)

	m.mu.RLock()
	defer m.mu.RUnlock()
	s := m.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.flights[key] == f {
		delete(s.flights, key)
	}
	f.mapping, f.err = inOnePiece(answer), err
	close(f.landed)
	switch {
	case err != nil:
	case f.outdated || position.Epoch != m.position.Epoch || position.Revision < f.revision:
		answersUnkept.Inc()
	default:
		// What is known is that the answer was right when it was given, which may
		// have been as early as it was asked for.
		s.keep(key, memory{mapping: f.mapping, confirmed: f.asked})
	}
}

// heard notes what an outcome says about core.
func (m *Mappings) heard(err error) {
	switch {
	case fault.KindOf(err) != fault.Unavailable:
		m.askAgain.Store(0)
	case !errors.Is(err, ErrShed):
		m.silent()
	}
}

// silent notes that core does not answer.
func (m *Mappings) silent() { m.askAgain.CompareAndSwap(0, int64(m.now()+retryEvery)) }

func (m *Mappings) shard(key mapping.Key) *shard {
	return &m.shards[maphash.String(m.seed, string(key))%shardCount]
}

func (m *Mappings) now() time.Duration { return time.Since(m.born) }

// remembered returns what is remembered of a key, and for how long nobody has vouched
// for it. When somebody did comes first: all that is still remembered then was right,
// while what was read before may be what was forgotten meanwhile.
func (m *Mappings) remembered(key mapping.Key) (known memory, age time.Duration, ok bool) {
	vouched := m.vouched.Load()
	known, ok = m.shard(key).find(key)
	return known, m.now() - known.right(vouched), ok
}

// right returns when a memory was known to be right last, since birth, if all were at
// some time.
func (k memory) right(vouched int64) time.Duration { return max(k.confirmed, time.Duration(vouched)) }

// Expose registers the metrics of the mappings.
func (m *Mappings) Expose(registry prometheus.Registerer) {
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
		return (m.now() - max(0, time.Duration(m.vouched.Load()))).Seconds()
	})
	gauge("revision", "Revision of the latest change that was applied.", func() float64 { return float64(m.Position().Revision) })
	register.NewCounterFunc(lookupsFrom("kept"), func() (kept float64) {
		for i := range m.shards {
			kept += float64(m.shards[i].recalled.Load())
		}
		return kept
	})
	for name, of := range map[string]struct {
		what string
		part func(*shard) *memories
	}{
		"mappings":  {"Mappings", func(s *shard) *memories { return s.existing }},
		"negatives": {"Keys that lead nowhere", func(s *shard) *memories { return s.missing }},
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
func (m *Mappings) usage(part func(*shard) *memories) (sum usage) {
	for i := range m.shards {
		s := &m.shards[i]
		s.mu.RLock()
		known := part(s)
		sum.count += known.Len()
		sum.bytes += known.Cost()
		sum.budget += known.Budget()
		sum.evicted += known.Evicted()
		s.mu.RUnlock()
	}
	return sum
}
