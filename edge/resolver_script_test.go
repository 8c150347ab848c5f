package edge

import (
	"context"
	"errors"
	"net/netip"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/veneer-skins/veneer/shared/edgeproto"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/testenv/cmptest"
)

// scriptedCore is a core that returns what the test tells it, when the test does.
type scriptedCore struct {
	lookups      chan *pendingLookup
	rejects      map[edgeproto.Key]error
	before       map[edgeproto.Key]func() // is called before a look-up is started or rejected
	unresponsive *atomic.Bool
}

type pendingLookup struct {
	key    edgeproto.Key
	answer chan lookupReply
}

type lookupReply struct {
	mapping  edgeproto.Mapping
	position edgeproto.Cursor
	err      error
}

func (s scriptedCore) StartLookups(_ context.Context, keys []edgeproto.Key, done LookupsDone) error {
	for _, key := range keys {
		if before := s.before[key]; before != nil {
			before()
		}
		if err := s.rejects[key]; err != nil {
			return err
		}
	}
	return answerAsync(s.lookup, keys, done)
}

// coreTimeout bounds a look-up.
const coreTimeout = 5 * time.Second

// answerAsync calls a blocking look-up of each key from another goroutine.
func answerAsync(
	look func(context.Context, edgeproto.Key) (edgeproto.Mapping, edgeproto.Cursor, error),
	keys []edgeproto.Key, done LookupsDone,
) error {
	for i, key := range keys {
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), coreTimeout)
			defer cancel()
			mapping, position, err := look(ctx, key)
			done(i, mapping, position, err)
		}()
	}
	return nil
}

func (s scriptedCore) lookup(ctx context.Context, key edgeproto.Key) (edgeproto.Mapping, edgeproto.Cursor, error) {
	q := &pendingLookup{key: key, answer: make(chan lookupReply)}
	select {
	case s.lookups <- q:
	case <-ctx.Done():
		return edgeproto.Mapping{}, edgeproto.Cursor{}, fault.NewUnavailable("core", ctx.Err())
	}
	select {
	case a := <-q.answer:
		return a.mapping, a.position, a.err
	case <-ctx.Done():
		return edgeproto.Mapping{}, edgeproto.Cursor{}, fault.NewUnavailable("core", ctx.Err())
	}
}

func (s scriptedCore) WouldReject(key edgeproto.Key, _ netip.Prefix) error { return s.rejects[key] }

// Probe succeeds unless core is unresponsive.
func (s scriptedCore) Probe(done func(error)) {
	if !s.unresponsive.Load() {
		go done(nil)
	}
}

// script is a resolver with a scripted core, in a synctest bubble: time advances only while
// all goroutines wait.
type script struct {
	*testing.T
	core     scriptedCore
	resolver *Resolver
}

// runScript runs a script with a live stream at revision 10 of epoch "a".
func runScript(t *testing.T, scene func(s script)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := script{T: t, core: scriptedCore{
			lookups: make(chan *pendingLookup), rejects: map[edgeproto.Key]error{}, before: map[edgeproto.Key]func(){},
			unresponsive: new(atomic.Bool),
		}}
		m := NewResolver(ResolverConfig{Bytes: 1 << 20, NegativeBytes: 1 << 20, MaxStale: 24 * time.Hour}, s.core)
		s.resolver = m
		s.begin()
		scene(s)
	})
}

func at(revision int64) edgeproto.Cursor { return edgeproto.Cursor{Epoch: "a", Revision: revision} }

func texture(tid int64) edgeproto.Mapping {
	return edgeproto.Mapping{Texture: &edgeproto.Texture{TID: tid}}
}

func (s script) apply(event edgeproto.Event) {
	s.Helper()
	if err := s.resolver.Apply(event, time.Now()); err != nil {
		s.Fatalf("Apply(%+v): %v", event, err)
	}
}

// begin begins a live stream at revision 10.
func (s script) begin() {
	s.Helper()
	s.apply(edgeproto.Event{Cursor: at(10), Start: true})
	s.heartbeat(10)
}

func (s script) heartbeat(revision int64) {
	s.Helper()
	s.apply(edgeproto.Event{Cursor: at(revision)})
}

func (s script) change(revision int64, keys ...edgeproto.Key) {
	s.Helper()
	s.apply(edgeproto.Event{Cursor: at(revision), Keys: keys})
}

// lookupOutcome is the result of a look-up.
type lookupOutcome struct {
	TID    int64 // 0: none
	Result LookupResult
	Kind   string // of the fault, empty if there is none
}

// stale is the outcome of a stale mapping of texture 1.
var stale = lookupOutcome{TID: 1, Result: LookupStale}

func miss(tid int64) lookupOutcome     { return lookupOutcome{TID: tid, Result: LookupMiss} }
func failed(kind string) lookupOutcome { return lookupOutcome{Result: LookupMiss, Kind: kind} }

// outcomeOf returns the outcome of the results of Lookup.
func outcomeOf(mapping edgeproto.Mapping, result LookupResult, err error) lookupOutcome {
	o := lookupOutcome{Result: result}
	if err != nil {
		o.Kind = fault.KindOf(err).String()
	}
	if mapping.Texture != nil {
		o.TID = mapping.Texture.TID
	}
	return o
}

// lookup starts a look-up and returns a channel for its outcome.
func (s script) lookup(key edgeproto.Key) <-chan lookupOutcome {
	done := make(chan lookupOutcome, 1)
	go func() {
		done <- outcomeOf(s.resolver.Lookup(s.Context(), key))
	}()
	synctest.Wait()
	return done
}

// nextLookup returns the look-up that waits in core.
func (s script) nextLookup(key edgeproto.Key) *pendingLookup {
	s.Helper()
	synctest.Wait()
	select {
	case q := <-s.core.lookups:
		if q.key != key {
			s.Fatalf("core looks up %s; want %s", q.key, key)
		}
		return q
	default:
		s.Fatalf("core does not look up %s", key)
		return nil
	}
}

// wantNoLookup checks that no look-up waits in core.
func (s script) wantNoLookup() {
	s.Helper()
	synctest.Wait()
	select {
	case q := <-s.core.lookups:
		s.Errorf("core looks up %s", q.key)
	default:
	}
}

func (s script) answer(q *pendingLookup, mapping edgeproto.Mapping, position edgeproto.Cursor) {
	q.answer <- lookupReply{mapping: mapping, position: position}
	synctest.Wait()
}

// ask looks up a key that is not cached, and answers for core.
func (s script) ask(key edgeproto.Key, mapping edgeproto.Mapping, position edgeproto.Cursor) {
	s.Helper()
	got := s.lookup(key)
	s.answer(s.nextLookup(key), mapping, position)
	s.want(got, outcomeOf(mapping, LookupMiss, nil))
}

// learn makes the resolver cache a key.
func (s script) learn(key edgeproto.Key, tid, revision int64) {
	s.Helper()
	s.ask(key, texture(tid), at(revision))
	s.wantHit(key, tid)
}

func (s script) want(got <-chan lookupOutcome, want lookupOutcome) {
	s.Helper()
	synctest.Wait()
	select {
	case got := <-got:
		cmptest.Same(s, got, want, "look-up")
	default:
		s.Errorf("a look-up still waits; want %+v", want)
	}
}

// wantHit checks that a key is cached and valid.
func (s script) wantHit(key edgeproto.Key, tid int64) {
	s.Helper()
	s.want(s.lookup(key), lookupOutcome{TID: tid, Result: LookupHit})
}

// wantMiss checks that core is asked about a key, and fails that look-up.
func (s script) wantMiss(key edgeproto.Key) {
	s.Helper()
	got := s.lookup(key)
	s.nextLookup(key).answer <- lookupReply{err: fault.NewUnavailable("core", errors.New("away"))}
	s.want(got, failed("unavailable"))
}

// wantStale checks that core is asked about the key, fails that look-up, and checks that the
// stale mapping of texture 1 is returned.
func (s script) wantStale() {
	s.Helper()
	got := s.lookup(key)
	s.nextLookup(key).answer <- lookupReply{err: fault.NewUnavailable("core", errors.New("away"))}
	s.want(got, stale)
}

func (s script) advance(d time.Duration) { <-time.After(d) }

const key edgeproto.Key = "name:steve"
