package edge

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/mapping"
)

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
		if known, f := s.m.embark(s.Context(), key); f != nil || known.mapping.Texture.TID != 1 {
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
		s.stale()
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

// Of a core that has fallen silent it is known before memories are in doubt, so that not
// even the first wait for it.
func TestCoreThatFallsSilentHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	play(t, func(s script) {
		s.learn(key, 1, 10)
		s.learn("name:alex", 1, 10)
		s.beat(10)
		s.desk.mute.Store(true)
		s.pass(doubt - time.Millisecond)
		s.kept(key, 1)
		s.pass(time.Millisecond)
		s.want(s.ask(key), outcome{TID: 1, Source: Stale})
		s.want(s.ask("name:alex"), outcome{TID: 1, Source: Stale})

		// It is asked now and then, and believed again once it answers.
		s.pass(retryEvery)
		s.want(s.ask(key), outcome{TID: 1, Source: Stale})
		s.answer(s.question(key), texture(2), at(10))
		s.kept(key, 2)
		got := s.ask("name:alex")
		s.answer(s.question("name:alex"), texture(2), at(10))
		s.want(got, outcome{TID: 2, Source: Asked})
	})
}

// Doubt counts from the moment of a beat, and so does the question whether core is there.
func TestSilenceAfterALateBeatHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	play(t, func(s script) {
		s.learn(key, 1, 10)
		s.desk.mute.Store(true)
		sent := time.Now()
		s.pass(overdue - time.Millisecond)
		if err := s.m.Apply(mapping.Event{Position: at(10)}, sent); err != nil {
			s.Fatal(err)
		}
		s.pass(doubt - overdue)
		s.kept(key, 1)
		s.pass(time.Millisecond)
		s.want(s.ask(key), outcome{TID: 1, Source: Stale})
		s.answer(s.question(key), texture(1), at(10))
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
