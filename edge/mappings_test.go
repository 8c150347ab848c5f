package edge

import (
	"context"
	"errors"
	"fmt"
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

func (d desk) Ask(key mapping.Key, answer func(mapping.Mapping, mapping.Position, error)) error {
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

func (d desk) Refusal(key mapping.Key) error { return d.refuses[key] }

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
		s := script{T: t, desk: desk{questions: make(chan *asked), refuses: map[mapping.Key]error{}}}
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

func TestAnswerIsKept(t *testing.T) {
	t.Parallel()
	play(t, func(s script) {
		s.learn(key, 1, 10)
		for range 100 {
			s.pass(250 * time.Millisecond)
			s.beat(10)
			s.kept(key, 1)
		}
	})
}

func TestOneQuestionHoweverManyAsk(t *testing.T) {
	t.Parallel()
	play(t, func(s script) {
		var all []<-chan outcome
		for range 100 {
			all = append(all, s.ask(key))
		}
		s.answer(s.question(key), texture(1), at(10))
		for _, got := range all {
			s.want(got, outcome{TID: 1, Source: Asked})
		}
	})
}

// A question that is long under way may be answered with what was true when it
// went out, which is too old for those who come now, and must not be kept once
// another answer is.
func TestNobodyJoinsAnOldFlight(t *testing.T) {
	t.Parallel()
	play(t, func(s script) {
		early := s.ask(key)
		slow := s.question(key)
		s.pass(doubt - time.Millisecond)
		companion := s.ask(key)
		s.pass(2 * time.Millisecond)
		late := s.ask(key)
		quick := s.question(key)

		s.answer(quick, texture(2), at(10))
		s.want(late, outcome{TID: 2, Source: Asked})
		s.answer(slow, texture(1), at(10))
		s.want(early, outcome{TID: 1, Source: Asked})
		s.want(companion, outcome{TID: 1, Source: Asked})
		s.beat(10)
		s.kept(key, 2)
	})
}

func TestWhoComesAsAFlightLandsNeedsNoOther(t *testing.T) {
	t.Parallel()
	play(t, func(s script) {
		s.learn(key, 1, 10)
		// As one who looked before the flight landed and embarks after.
		if known, f := s.m.embark(key); f != nil || known.mapping.Texture.TID != 1 {
			s.Errorf("embark() = %+v, %+v; want the memory and no flight", known, f)
		}
	})
}

func TestCallerWhoLeavesSpoilsNothing(t *testing.T) {
	t.Parallel()
	play(t, func(s script) {
		ctx, leave := context.WithCancel(s.Context())
		failed := make(chan error, 1)
		go func() { _, _, err := s.m.Lookup(ctx, key); failed <- err }()
		synctest.Wait()
		patient := s.ask(key)
		leave()
		if err := <-failed; !errors.Is(err, context.Canceled) {
			s.Errorf("the look-up of a caller who left: %v; want it cancelled", err)
		}
		s.answer(s.question(key), texture(1), at(10))
		s.want(patient, outcome{TID: 1, Source: Asked})
		s.kept(key, 1)
	})
}

func TestLateAnswerDoesNotUndoAChange(t *testing.T) {
	t.Parallel()
	play(t, func(s script) {
		early := s.ask(key)
		before := s.question(key)
		s.change(11, key)

		// Its revision does not give it away: the snapshot may be from after another
		// change and yet the answer overtook this one. Only the flight knows.
		s.answer(before, texture(1), at(11))
		s.want(early, outcome{TID: 1, Source: Asked})
		s.learn(key, 2, 11)
	})
}

func TestOutdatedFlightIsNotJoined(t *testing.T) {
	t.Parallel()
	play(t, func(s script) {
		early := s.ask(key)
		before := s.question(key)
		s.change(11, key)
		late := s.ask(key)
		after := s.question(key)

		// The later question may be answered first.
		s.answer(after, texture(2), at(11))
		s.want(late, outcome{TID: 2, Source: Asked})
		s.answer(before, texture(1), at(10))
		s.want(early, outcome{TID: 1, Source: Asked})
		s.kept(key, 2)
	})
}

func TestAnswerOfACoreThatLagsIsServedOnce(t *testing.T) {
	t.Parallel()
	play(t, func(s script) {
		s.change(11, key)
		got := s.ask(key)
		s.answer(s.question(key), texture(1), at(10))
		s.want(got, outcome{TID: 1, Source: Asked})
		s.learn(key, 2, 11)
	})
}

func TestAnswerOfAnotherEpochIsServedOnce(t *testing.T) {
	t.Parallel()
	play(t, func(s script) {
		got := s.ask(key)
		s.answer(s.question(key), texture(1), mapping.Position{Epoch: "b", Revision: 10})
		s.want(got, outcome{TID: 1, Source: Asked})
		s.unkept(key)
	})
}

func TestNothingIsKeptBeforeTheStreamBegins(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := script{T: t, desk: desk{questions: make(chan *asked), refuses: map[mapping.Key]error{}}}
		s.m, _ = NewMappings(MappingsConfig{Bytes: 1 << 20, NegativeBytes: 1 << 20, MaxStale: time.Hour}, s.desk)
		if err := s.m.Check(t.Context()); err == nil {
			t.Error("Check of mappings that heard nothing: nil")
		}
		got := s.ask(key)
		s.answer(s.question(key), texture(1), at(10))
		s.want(got, outcome{TID: 1, Source: Asked})
		s.unkept(key)
	})
}

func TestOtherHistoryForgetsEverything(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		start mapping.Position
	}{
		{"a gap that was trimmed", at(50)},
		{"a head before our own position", at(5)},
		{"a new epoch", mapping.Position{Epoch: "b", Revision: 10}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			play(t, func(s script) {
				s.learn(key, 1, 10)
				early := s.ask("tid:1")
				flying := s.question("tid:1")
				s.apply(mapping.Event{Position: test.start, Start: true})
				s.apply(mapping.Event{Position: test.start})
				if got := s.m.Position(); got != test.start {
					s.Errorf("Position() = %+v; want %+v", got, test.start)
				}
				s.unkept(key)

				// What was under way is from the other history, whatever it claims.
				late := s.ask("tid:1")
				s.answer(s.question("tid:1"), texture(2), test.start)
				s.want(late, outcome{TID: 2, Source: Asked})
				s.answer(flying, texture(1), test.start)
				s.want(early, outcome{TID: 1, Source: Asked})
				s.kept("tid:1", 2)
			})
		})
	}
}

func TestSameHistoryForgetsNothing(t *testing.T) {
	t.Parallel()
	play(t, func(s script) {
		s.learn(key, 1, 10)
		s.apply(mapping.Event{Position: at(10), Start: true})
		s.beat(10)
		s.kept(key, 1)
	})
}

func TestCreationEndsARememberedAbsence(t *testing.T) {
	t.Parallel()
	play(t, func(s script) {
		got := s.ask(key)
		s.answer(s.question(key), mapping.Mapping{}, at(10))
		s.want(got, outcome{Source: Asked})
		s.kept(key, 0)
		s.change(11, key)
		s.learn(key, 1, 11)
	})
}

func TestRenameTouchesBothNames(t *testing.T) {
	t.Parallel()
	play(t, func(s script) {
		s.learn("name:steve", 1, 10)
		s.learn("name:alex", 2, 10)
		s.learn("name:herobrine", 3, 10)
		s.change(11, "name:steve", "name:alex")
		s.kept("name:herobrine", 3)
		s.unkept("name:steve")
		s.unkept("name:alex")
	})
}

func TestSilenceRaisesDoubt(t *testing.T) {
	t.Parallel()
	play(t, func(s script) {
		s.learn(key, 1, 10)
		s.pass(doubt - time.Millisecond)
		s.kept(key, 1)
		s.pass(2 * time.Millisecond)
		if err := s.m.Check(s.Context()); err == nil {
			s.Error("Check after a second of silence: nil")
		}
		// Asked again; the answer holds for a second without a beat.
		got := s.ask(key)
		s.answer(s.question(key), texture(1), at(10))
		s.want(got, outcome{TID: 1, Source: Asked})
		s.pass(doubt - time.Millisecond)
		s.kept(key, 1)
		s.pass(2 * time.Millisecond)
		s.stale()

		s.beat(10)
		s.kept(key, 1)
		if err := s.m.Check(s.Context()); err != nil {
			s.Errorf("Check after a beat: %v", err)
		}
	})
}

// A beat that was long on its way says nothing about the present.
func TestLateBeatVouchesForItsMoment(t *testing.T) {
	t.Parallel()
	play(t, func(s script) {
		s.learn(key, 1, 10)
		sent := time.Now()
		s.pass(doubt + time.Millisecond)
		late := mapping.Event{Position: at(10)}
		if err := s.m.Apply(late, sent); err != nil {
			s.Fatal(err)
		}
		s.stale()
		if err := s.m.Check(s.Context()); err == nil {
			s.Error("Check after a beat from a second ago: nil")
		}

		// It counts from its moment, and takes nothing back.
		if err := s.m.Apply(late, time.Now().Add(-doubt/2)); err != nil {
			s.Fatal(err)
		}
		if err := s.m.Apply(late, sent); err != nil {
			s.Fatal(err)
		}
		s.pass(doubt/2 - time.Millisecond)
		s.kept(key, 1)
		s.pass(2 * time.Millisecond)
		s.want(s.ask(key), outcome{TID: 1, Source: Stale})
		s.answer(s.question(key), texture(1), at(10))
	})
}

func TestSlowAnswerIsAsOldAsItsQuestion(t *testing.T) {
	t.Parallel()
	play(t, func(s script) {
		s.pass(2 * doubt)
		got := s.ask(key)
		q := s.question(key)
		s.pass(doubt + time.Millisecond)
		s.answer(q, texture(1), at(10))
		s.want(got, outcome{TID: 1, Source: Asked})
		s.stale()
	})
}

func TestCatchingUpIsNotLive(t *testing.T) {
	t.Parallel()
	play(t, func(s script) {
		s.learn(key, 1, 10)
		s.pass(2 * doubt)
		s.apply(mapping.Event{Position: at(10), Start: true})
		s.change(11, "name:alex")
		s.stale()
		s.change(12, "name:alex")
		s.pass(retryEvery)
		s.stale()
		s.beat(12)
		s.kept(key, 1)
	})
}

func TestStaleIsServedForSoLong(t *testing.T) {
	t.Parallel()
	play(t, func(s script) {
		s.learn(key, 1, 10)
		s.pass(24*time.Hour - time.Second)
		s.stale()
		// A key that is not remembered gets no picture of somebody else.
		s.unkept("name:alex")
		s.pass(2 * time.Second)
		s.unkept(key)

		s.beat(10)
		s.kept(key, 1)
	})
}

// Once core has failed to answer, what is remembered is given at once, while one
// question now and then goes on asking; the first answer ends that.
func TestNobodyWaitsForACoreThatIsAway(t *testing.T) {
	t.Parallel()
	play(t, func(s script) {
		s.learn(key, 1, 10)
		s.learn("name:alex", 1, 10)
		s.pass(2 * doubt)
		s.stale()

		s.want(s.ask(key), outcome{TID: 1, Source: Stale})
		s.unasked()
		s.pass(retryEvery)
		s.want(s.ask(key), outcome{TID: 1, Source: Stale})
		s.want(s.ask("name:alex"), outcome{TID: 1, Source: Stale})
		s.answer(s.question(key), texture(2), at(10))
		s.unasked()
		s.kept(key, 2)
		got := s.ask("name:alex")
		s.answer(s.question("name:alex"), texture(2), at(10))
		s.want(got, outcome{TID: 2, Source: Asked})
	})
}

// A core that hangs holds nobody up for long who can have a memory, and the next
// not at all.
func TestCoreThatHangsHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	play(t, func(s script) {
		s.learn(key, 1, 10)
		s.learn("name:alex", 1, 10)
		s.pass(2 * doubt)
		got := s.ask(key)
		q := s.question(key)
		s.pass(shortPatience)
		s.want(got, outcome{TID: 1, Source: Stale})
		s.want(s.ask("name:alex"), outcome{TID: 1, Source: Stale})
		s.want(s.ask(key), outcome{TID: 1, Source: Stale})

		// Its answer counts when it comes.
		s.answer(q, texture(2), at(10))
		s.kept(key, 2)
		got = s.ask("name:alex")
		s.answer(s.question("name:alex"), texture(2), at(10))
		s.want(got, outcome{TID: 2, Source: Asked})
	})
}

// A change shows that core is there, and makes the memory worthless.
func TestChangeWhileCoreHangsIsWaitedFor(t *testing.T) {
	t.Parallel()
	play(t, func(s script) {
		s.learn(key, 1, 10)
		s.pass(2 * doubt)
		got := s.ask(key)
		late := s.question(key)
		s.change(11, key)
		s.pass(shortPatience)
		s.answer(s.question(key), texture(2), at(11))
		s.want(got, outcome{TID: 2, Source: Asked})
		s.answer(late, texture(1), at(10))
		s.beat(11)
		s.kept(key, 2)
	})
}

// That too many others ask does not mean that core is away.
func TestBusyIsNotAway(t *testing.T) {
	t.Parallel()
	play(t, func(s script) {
		s.learn(key, 1, 10)
		s.pass(2 * doubt)
		got := s.ask("name:alex")
		s.question("name:alex").answer <- answered{err: fault.Down("core", ErrShed)}
		s.want(got, outcome{Source: Asked, Kind: "unavailable"})
		s.desk.refuses["name:alex"] = fault.Down("core", ErrShed)
		s.want(s.ask("name:alex"), outcome{Source: Asked, Kind: "unavailable"})
		s.unasked()

		got = s.ask(key)
		s.answer(s.question(key), texture(2), at(10))
		s.want(got, outcome{TID: 2, Source: Asked})
	})
}

// What core would refuse does not set out, but whoever can joins a flight.
func TestRefusedAreToldAtOnce(t *testing.T) {
	t.Parallel()
	play(t, func(s script) {
		s.learn(key, 1, 10)
		first := s.ask("name:alex")
		s.desk.refuses[key] = fault.Down("core", errors.New("away"))
		s.desk.refuses["name:alex"] = s.desk.refuses[key]
		s.desk.refuses["name:bob"] = s.desk.refuses[key]
		second := s.ask("name:alex")
		s.answer(s.question("name:alex"), texture(2), at(10))
		s.want(first, outcome{TID: 2, Source: Asked})
		s.want(second, outcome{TID: 2, Source: Asked})

		s.want(s.ask("name:bob"), outcome{Source: Asked, Kind: "unavailable"})
		s.kept(key, 1)
		s.pass(2 * doubt)
		s.want(s.ask(key), outcome{TID: 1, Source: Stale})
		s.unasked()
	})
}

func TestChangeWhileCoreIsTriedIsNotServedStale(t *testing.T) {
	t.Parallel()
	play(t, func(s script) {
		s.learn(key, 1, 10)
		s.pass(2 * doubt)
		got := s.ask(key)
		q := s.question(key)
		s.change(11, key)
		q.answer <- answered{err: fault.Down("core", errors.New("away"))}
		s.want(got, outcome{Source: Asked, Kind: "unavailable"})
	})
}

func TestOnlyAbsenceOfCoreIsCoveredUp(t *testing.T) {
	t.Parallel()
	play(t, func(s script) {
		s.learn(key, 1, 10)
		s.pass(2 * doubt)
		got := s.ask(key)
		s.question(key).answer <- answered{err: errors.New("a bug")}
		s.want(got, outcome{Source: Asked, Kind: "internal"})
	})
}

func TestCoreThatNeverAnswersIsAway(t *testing.T) {
	t.Parallel()
	play(t, func(s script) {
		got := s.ask(key)
		s.question(key)
		s.pass(askPatience)
		s.want(got, outcome{Source: Asked, Kind: "unavailable"})
	})
}

func TestApplyRefusesWhatCannotFollow(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		event mapping.Event
	}{
		{"a beat of another epoch", mapping.Event{Position: mapping.Position{Epoch: "b", Revision: 10}}},
		{"a change from before", mapping.Event{Position: at(9), Keys: []mapping.Key{key}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			play(t, func(s script) {
				if err := s.m.Apply(test.event, time.Now()); err == nil {
					s.Errorf("Apply(%+v): nil", test.event)
				}
				if got := s.m.Position(); got != at(10) {
					s.Errorf("Position() = %+v; want %+v", got, at(10))
				}
			})
		})
	}
}

func TestNewMappingsRefuses(t *testing.T) {
	t.Parallel()
	f := func(config MappingsConfig) {
		t.Helper()
		if _, err := NewMappings(config, desk{}); err == nil {
			t.Errorf("NewMappings(%+v): nil", config)
		}
	}
	f(MappingsConfig{Bytes: 1, NegativeBytes: 1 << 20, MaxStale: time.Hour})
	f(MappingsConfig{Bytes: 1 << 20, NegativeBytes: 1, MaxStale: time.Hour})
	f(MappingsConfig{Bytes: 1 << 20, NegativeBytes: 1 << 20, MaxStale: -1})
}

// instant is a core that knows every key and answers at once.
type instant struct{}

func (instant) Ask(key mapping.Key, answer func(mapping.Mapping, mapping.Position, error)) error {
	go answer(mapping.Mapping{Player: &mapping.Player{Name: string(key)}}, at(10), nil)
	return nil
}

func (instant) Refusal(mapping.Key) error { return nil }

func TestMemoryIsBoundedAndHotKeysSurviveAScan(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const budget = 1 << 18
		m, err := NewMappings(MappingsConfig{Bytes: budget, NegativeBytes: 1 << 16, MaxStale: time.Hour}, instant{})
		if err != nil {
			t.Fatal(err)
		}
		s := script{T: t, m: m}
		s.apply(mapping.Event{Position: at(10), Start: true})
		s.beat(10)

		hot := make([]mapping.Key, 64)
		for i := range hot {
			hot[i] = mapping.TID(int64(i))
		}
		look := func(key mapping.Key) Source {
			_, source, err := m.Lookup(t.Context(), key)
			if err != nil {
				t.Fatal(err)
			}
			return source
		}
		most := 0
		for i := range 20_000 {
			key := mapping.Name(fmt.Sprintf("visitor%d", i))
			look(key)
			if source := look(hot[i%len(hot)]); i > 2*len(hot) && source != Kept {
				t.Fatalf("after %d keys that nobody asks for again, a key in constant use is forgotten", i)
			}
			if i%7 == 0 {
				s.apply(mapping.Event{Position: at(10), Keys: []mapping.Key{key, mapping.Name(fmt.Sprintf("visitor%d", i/2))}})
			}
			count, bytes, _ := m.usage(existing)
			if most = max(most, count); bytes > budget {
				t.Fatalf("%d mappings take %d bytes; want at most %d", count, bytes, budget)
			}
		}
		count, bytes, _ := m.usage(existing)
		if count < 400 {
			t.Errorf("%d mappings remain; the budget has room for more", count)
		}
		m.checkLines(t)
		t.Logf("%d mappings in %d bytes", count, bytes)

		s.apply(mapping.Event{Position: at(11), Start: true})
		if count, bytes, _ := m.usage(existing); count != 0 || bytes != 0 {
			t.Errorf("after all is forgotten, %d mappings take %d bytes", count, bytes)
		}
	})
}

// existing and missing are the parts of a shard.
func existing(s *shard) *line { return &s.existing }
func missing(s *shard) *line  { return &s.missing }

// checkLines walks the lines of every shard both ways.
func (m *Mappings) checkLines(t *testing.T) {
	t.Helper()
	for i := range m.shards {
		s := &m.shards[i]
		for _, l := range []*line{&s.existing, &s.missing} {
			forth, back, bytes := 0, 0, int64(0)
			for n := l.oldest; n != nil; n = n.later {
				forth++
				bytes += n.bytes
			}
			for n := l.latest; n != nil; n = n.older {
				back++
			}
			if forth != l.count || back != l.count || bytes != l.bytes {
				t.Errorf("shard %d: %d nodes forth, %d back, %d known; %d bytes, %d known", i, forth, back, l.count, bytes, l.bytes)
			}
		}
		if known := s.existing.count + s.missing.count; known != len(s.nodes) {
			t.Errorf("shard %d: %d nodes stand in lines, %d are known", i, known, len(s.nodes))
		}
	}
}

// half is a core that knows every name that begins with a "y", and no other.
type half struct{}

func (half) Ask(key mapping.Key, answer func(mapping.Mapping, mapping.Position, error)) error {
	if key[len(mapping.NamePrefix)] == 'y' {
		return instant{}.Ask(key, answer)
	}
	go answer(mapping.Mapping{}, at(10), nil)
	return nil
}

func (half) Refusal(mapping.Key) error { return nil }

func TestNamesThatLeadNowherePushOutNoOthers(t *testing.T) {
	t.Parallel()
	for flood, others := range map[string]string{"no": "yes", "yes": "no"} {
		synctest.Test(t, func(t *testing.T) {
			const budget = 1 << 18
			m, err := NewMappings(MappingsConfig{Bytes: budget, NegativeBytes: budget, MaxStale: time.Hour}, half{})
			if err != nil {
				t.Fatal(err)
			}
			s := script{T: t, m: m}
			s.apply(mapping.Event{Position: at(10), Start: true})
			s.beat(10)
			look := func(name string) Source {
				_, source, err := m.Lookup(t.Context(), mapping.Name(name))
				if err != nil {
					t.Fatal(err)
				}
				return source
			}
			const few = 200
			for i := range few {
				look(fmt.Sprintf("%s%d", others, i))
			}
			for i := range 10_000 {
				look(fmt.Sprintf("%s%d", flood, i))
				for name, part := range map[string]func(*shard) *line{"existing": existing, "missing": missing} {
					if _, bytes, _ := m.usage(part); i%1000 == 0 && bytes > budget {
						t.Fatalf("%s: %d bytes; want at most %d", name, bytes, budget)
					}
				}
			}
			for i := range few {
				if name := fmt.Sprintf("%s%d", others, i); look(name) != Kept {
					t.Errorf("%s is forgotten after a flood of %s", name, flood)
				}
			}
			m.checkLines(t)
		})
	}
}

func TestNameMayComeToLeadSomewhere(t *testing.T) {
	t.Parallel()
	play(t, func(s script) {
		got := s.ask(key)
		s.answer(s.question(key), mapping.Mapping{}, at(10))
		s.want(got, outcome{Source: Asked})
		if count, _, _ := s.m.usage(missing); count != 1 {
			s.Errorf("%d names lead nowhere; want 1", count)
		}
		s.change(11, key)
		s.learn(key, 1, 11)
		absent, _, _ := s.m.usage(missing)
		present, _, _ := s.m.usage(existing)
		if absent != 0 || present != 1 {
			s.Errorf("%d names lead nowhere and %d somewhere; want 0 and 1", absent, present)
		}
		s.m.checkLines(s.T)
	})
}
