package edge

import (
	"context"
	"errors"
	"net/netip"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/veneer-skins/veneer/shared/edgeproto"
	"github.com/veneer-skins/veneer/shared/fault"
)

// scriptedCore is a core whose answers the test gives, when it likes.
type scriptedCore struct {
	lookups      chan *pendingLookup
	rejects      map[edgeproto.Key]error
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

func (d scriptedCore) StartLookup(_ context.Context, key edgeproto.Key, answer func(edgeproto.Mapping, edgeproto.Cursor, error)) error {
	if err := d.rejects[key]; err != nil {
		return err
	}
	return answerAsync(d.lookup, key, answer)
}

// coreTimeout is how long answers are waited for at most.
const coreTimeout = 5 * time.Second

// answerAsync has a question answered by what may wait.
func answerAsync(
	look func(context.Context, edgeproto.Key) (edgeproto.Mapping, edgeproto.Cursor, error),
	key edgeproto.Key, answer func(edgeproto.Mapping, edgeproto.Cursor, error),
) error {
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), coreTimeout)
		defer cancel()
		answer(look(ctx, key))
	}()
	return nil
}

func (d scriptedCore) lookup(ctx context.Context, key edgeproto.Key) (edgeproto.Mapping, edgeproto.Cursor, error) {
	q := &pendingLookup{key: key, answer: make(chan lookupReply)}
	select {
	case d.lookups <- q:
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

func (d scriptedCore) WouldReject(key edgeproto.Key, _ netip.Prefix) error { return d.rejects[key] }

// Probe is answered, unless core is mute.
func (d scriptedCore) Probe(done func(error)) {
	if !d.unresponsive.Load() {
		go done(nil)
	}
}

// script is mappings in front of a desk, in a bubble where time stands still
// until everybody waits.
type script struct {
	*testing.T
	core     scriptedCore
	resolver *Resolver
}

// runScript runs a script that begins live, at revision 10 of epoch "a".
func runScript(t *testing.T, scene func(s script)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := script{T: t, core: scriptedCore{make(chan *pendingLookup), map[edgeproto.Key]error{}, new(atomic.Bool)}}
		m, err := NewResolver(ResolverConfig{Bytes: 1 << 20, NegativeBytes: 1 << 20, MaxStale: 24 * time.Hour}, s.core)
		if err != nil {
			t.Fatal(err)
		}
		s.resolver = m
		s.apply(edgeproto.Event{Cursor: at(10), Start: true})
		s.heartbeat(10)
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

func (s script) heartbeat(revision int64) {
	s.Helper()
	s.apply(edgeproto.Event{Cursor: at(revision)})
}

func (s script) change(revision int64, keys ...edgeproto.Key) {
	s.Helper()
	s.apply(edgeproto.Event{Cursor: at(revision), Keys: keys})
}

// lookupOutcome is what a look-up came to.
type lookupOutcome struct {
	TID    int64 // 0: nothing
	Result LookupResult
	Kind   string // of the fault, if there was one
}

// lookup begins a look-up, whose outcome comes later.
func (s script) lookup(key edgeproto.Key) <-chan lookupOutcome {
	done := make(chan lookupOutcome, 1)
	go func() {
		leads, source, err := s.resolver.Lookup(s.Context(), key)
		o := lookupOutcome{Result: source}
		if err != nil {
			o.Kind = fault.KindOf(err).String()
		}
		if leads.Texture != nil {
			o.TID = leads.Texture.TID
		}
		done <- o
	}()
	synctest.Wait()
	return done
}

// nextLookup returns the question that has reached core.
func (s script) nextLookup(key edgeproto.Key) *pendingLookup {
	s.Helper()
	synctest.Wait()
	select {
	case q := <-s.core.lookups:
		if q.key != key {
			s.Fatalf("core is asked for %s; want %s", q.key, key)
		}
		return q
	default:
		s.Fatalf("core is not asked for %s", key)
		return nil
	}
}

// wantNoLookup demands that no question waits for core.
func (s script) wantNoLookup() {
	s.Helper()
	synctest.Wait()
	select {
	case q := <-s.core.lookups:
		s.Errorf("core is asked for %s", q.key)
	default:
	}
}

func (s script) answer(q *pendingLookup, leads edgeproto.Mapping, position edgeproto.Cursor) {
	q.answer <- lookupReply{mapping: leads, position: position}
	synctest.Wait()
}

// learn makes the mappings remember a key.
func (s script) learn(key edgeproto.Key, tid, revision int64) {
	s.Helper()
	got := s.lookup(key)
	s.answer(s.nextLookup(key), texture(tid), at(revision))
	s.want(got, lookupOutcome{TID: tid, Result: LookupMiss})
	s.wantHit(key, tid)
}

func (s script) want(got <-chan lookupOutcome, want lookupOutcome) {
	s.Helper()
	synctest.Wait()
	select {
	case got := <-got:
		if diff := cmp.Diff(want, got); diff != "" {
			s.Errorf("look-up (-want +got):\n%s", diff)
		}
	default:
		s.Errorf("a look-up still waits; want %+v", want)
	}
}

// wantHit demands that a key is answered from memory.
func (s script) wantHit(key edgeproto.Key, tid int64) {
	s.Helper()
	s.want(s.lookup(key), lookupOutcome{TID: tid, Result: LookupHit})
}

// wantMiss demands that core is asked about a key, and fails the question.
func (s script) wantMiss(key edgeproto.Key) {
	s.Helper()
	got := s.lookup(key)
	s.nextLookup(key).answer <- lookupReply{err: fault.NewUnavailable("core", errors.New("away"))}
	s.want(got, lookupOutcome{Result: LookupMiss, Kind: "unavailable"})
}

// wantStale demands that core is asked about the key, fails the question, and demands
// that the memory of texture 1 steps in.
func (s script) wantStale() {
	s.Helper()
	got := s.lookup(key)
	s.nextLookup(key).answer <- lookupReply{err: fault.NewUnavailable("core", errors.New("away"))}
	s.want(got, lookupOutcome{TID: 1, Result: LookupStale})
}

func (s script) advance(d time.Duration) { <-time.After(d) }

const key edgeproto.Key = "name:steve"
