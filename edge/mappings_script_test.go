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

	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/mapping"
)

// desk is a core whose answers the test gives, when it likes.
type desk struct {
	questions chan *asked
	refuses   map[mapping.Key]error
	mute      *atomic.Bool
}

type asked struct {
	key    mapping.Key
	answer chan answered
}

type answered struct {
	leads    mapping.Mapping
	position mapping.Position
	err      error
}

func (d desk) Ask(_ context.Context, key mapping.Key, answer func(mapping.Mapping, mapping.Position, error)) error {
	if err := d.refuses[key]; err != nil {
		return err
	}
	return aside(d.look, key, answer)
}

// askPatience is how long answers are waited for at most.
const askPatience = 5 * time.Second

// aside has a question answered by what may wait.
func aside(
	look func(context.Context, mapping.Key) (mapping.Mapping, mapping.Position, error),
	key mapping.Key, answer func(mapping.Mapping, mapping.Position, error),
) error {
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), askPatience)
		defer cancel()
		answer(look(ctx, key))
	}()
	return nil
}

func (d desk) look(ctx context.Context, key mapping.Key) (mapping.Mapping, mapping.Position, error) {
	q := &asked{key: key, answer: make(chan answered)}
	select {
	case d.questions <- q:
	case <-ctx.Done():
		return mapping.Mapping{}, mapping.Position{}, fault.Down("core", ctx.Err())
	}
	select {
	case a := <-q.answer:
		return a.leads, a.position, a.err
	case <-ctx.Done():
		return mapping.Mapping{}, mapping.Position{}, fault.Down("core", ctx.Err())
	}
}

func (d desk) Refusal(key mapping.Key, _ netip.Prefix) error { return d.refuses[key] }

// Probe is answered, unless core is mute.
func (d desk) Probe(done func(error)) {
	if !d.mute.Load() {
		go done(nil)
	}
}

// script is mappings in front of a desk, in a bubble where time stands still
// until everybody waits.
type script struct {
	*testing.T
	desk desk
	m    *Mappings
}

// play runs a script that begins live, at revision 10 of epoch "a".
func play(t *testing.T, scene func(s script)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := script{T: t, desk: desk{make(chan *asked), map[mapping.Key]error{}, new(atomic.Bool)}}
		m, err := NewMappings(MappingsConfig{Bytes: 1 << 20, NegativeBytes: 1 << 20, MaxStale: 24 * time.Hour}, s.desk)
		if err != nil {
			t.Fatal(err)
		}
		s.m = m
		s.apply(mapping.Event{Position: at(10), Start: true})
		s.beat(10)
		scene(s)
	})
}

func at(revision int64) mapping.Position { return mapping.Position{Epoch: "a", Revision: revision} }

func texture(tid int64) mapping.Mapping {
	return mapping.Mapping{Texture: &mapping.Texture{TID: tid}}
}

func (s script) apply(event mapping.Event) {
	s.Helper()
	if err := s.m.Apply(event, time.Now()); err != nil {
		s.Fatalf("Apply(%+v): %v", event, err)
	}
}

func (s script) beat(revision int64) {
	s.Helper()
	s.apply(mapping.Event{Position: at(revision)})
}

func (s script) change(revision int64, keys ...mapping.Key) {
	s.Helper()
	s.apply(mapping.Event{Position: at(revision), Keys: keys})
}

// outcome is what a look-up came to.
type outcome struct {
	TID    int64 // 0: nothing
	Source Source
	Kind   string // of the fault, if there was one
}

// ask begins a look-up, whose outcome comes later.
func (s script) ask(key mapping.Key) <-chan outcome {
	done := make(chan outcome, 1)
	go func() {
		leads, source, err := s.m.Lookup(s.Context(), key)
		o := outcome{Source: source}
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

// question returns the question that has reached core.
func (s script) question(key mapping.Key) *asked {
	s.Helper()
	synctest.Wait()
	select {
	case q := <-s.desk.questions:
		if q.key != key {
			s.Fatalf("core is asked for %s; want %s", q.key, key)
		}
		return q
	default:
		s.Fatalf("core is not asked for %s", key)
		return nil
	}
}

// unasked demands that no question waits for core.
func (s script) unasked() {
	s.Helper()
	synctest.Wait()
	select {
	case q := <-s.desk.questions:
		s.Errorf("core is asked for %s", q.key)
	default:
	}
}

func (s script) answer(q *asked, leads mapping.Mapping, position mapping.Position) {
	q.answer <- answered{leads: leads, position: position}
	synctest.Wait()
}

// learn makes the mappings remember a key.
func (s script) learn(key mapping.Key, tid, revision int64) {
	s.Helper()
	got := s.ask(key)
	s.answer(s.question(key), texture(tid), at(revision))
	s.want(got, outcome{TID: tid, Source: Asked})
	s.kept(key, tid)
}

func (s script) want(got <-chan outcome, want outcome) {
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

// kept demands that a key is answered from memory.
func (s script) kept(key mapping.Key, tid int64) {
	s.Helper()
	s.want(s.ask(key), outcome{TID: tid, Source: Kept})
}

// unkept demands that core is asked about a key, and fails the question.
func (s script) unkept(key mapping.Key) {
	s.Helper()
	got := s.ask(key)
	s.question(key).answer <- answered{err: fault.Down("core", errors.New("away"))}
	s.want(got, outcome{Source: Asked, Kind: "unavailable"})
}

// stale demands that core is asked about the key, fails the question, and demands
// that the memory of texture 1 steps in.
func (s script) stale() {
	s.Helper()
	got := s.ask(key)
	s.question(key).answer <- answered{err: fault.Down("core", errors.New("away"))}
	s.want(got, outcome{TID: 1, Source: Stale})
}

func (s script) pass(d time.Duration) { <-time.After(d) }

const key mapping.Key = "name:steve"
