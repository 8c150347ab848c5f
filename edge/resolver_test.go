package edge

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/veneer-skins/veneer/shared/edgeproto"
	"github.com/veneer-skins/veneer/shared/fault"
)

func TestResultIsCached(t *testing.T) {
	t.Parallel()
	runScript(t, func(s script) {
		s.learn(key, 1, 10)
		for range 100 {
			s.advance(250 * time.Millisecond)
			s.heartbeat(10)
			s.wantHit(key, 1)
		}
	})
}

func TestConcurrentLookupsShareOneCall(t *testing.T) {
	t.Parallel()
	runScript(t, func(s script) {
		var all []<-chan lookupOutcome
		for range 100 {
			all = append(all, s.lookup(key))
		}
		s.answer(s.nextLookup(key), texture(1), at(10))
		for _, got := range all {
			s.want(got, lookupOutcome{TID: 1, Result: LookupMiss})
		}
	})
}

// A slow call may return the mapping of the time when it started. That is too old for later
// callers, and must not replace the result of a later call.
func TestOldCallIsNotJoined(t *testing.T) {
	t.Parallel()
	runScript(t, func(s script) {
		early := s.lookup(key)
		slow := s.nextLookup(key)
		s.advance(trustWindow - time.Millisecond)
		companion := s.lookup(key)
		s.advance(2 * time.Millisecond)
		late := s.lookup(key)
		quick := s.nextLookup(key)

		s.answer(quick, texture(2), at(10))
		s.want(late, lookupOutcome{TID: 2, Result: LookupMiss})
		s.answer(slow, texture(1), at(10))
		s.want(early, lookupOutcome{TID: 1, Result: LookupMiss})
		s.want(companion, lookupOutcome{TID: 1, Result: LookupMiss})
		s.heartbeat(10)
		s.wantHit(key, 2)
	})
}

func TestFinishedCallIsFoundInCache(t *testing.T) {
	t.Parallel()
	runScript(t, func(s script) {
		s.learn(key, 1, 10)
		// Like a caller that has missed just before the call ended.
		if cached, c, _ := s.resolver.startCall(s.Context(), key); c != nil || cached.mapping.Texture.TID != 1 {
			s.Errorf("startCall() = %+v, %+v; want the cached mapping and no call", cached, c)
		}
	})
}

func TestCanceledCallerKeepsCall(t *testing.T) {
	t.Parallel()
	runScript(t, func(s script) {
		ctx, leave := context.WithCancel(s.Context())
		failed := make(chan error, 1)
		go func() { _, _, err := s.resolver.Lookup(ctx, key); failed <- err }()
		synctest.Wait()
		patient := s.lookup(key)
		leave()
		if err := <-failed; !errors.Is(err, context.Canceled) {
			s.Errorf("the look-up of a cancelled caller: %v; want it cancelled", err)
		}
		s.answer(s.nextLookup(key), texture(1), at(10))
		s.want(patient, lookupOutcome{TID: 1, Result: LookupMiss})
		s.wantHit(key, 1)
	})
}

func TestLateResultDoesNotUndoChange(t *testing.T) {
	t.Parallel()
	runScript(t, func(s script) {
		early := s.lookup(key)
		before := s.nextLookup(key)
		s.change(11, key)

		// The revision does not show that the result is too old: the snapshot may be from
		// after another change. Only the call shows it.
		s.answer(before, texture(1), at(11))
		s.want(early, lookupOutcome{TID: 1, Result: LookupMiss})
		s.learn(key, 2, 11)
	})
}

func TestInvalidatedCallIsNotJoined(t *testing.T) {
	t.Parallel()
	runScript(t, func(s script) {
		early := s.lookup(key)
		before := s.nextLookup(key)
		s.change(11, key)
		late := s.lookup(key)
		after := s.nextLookup(key)

		// The later call may end first.
		s.answer(after, texture(2), at(11))
		s.want(late, lookupOutcome{TID: 2, Result: LookupMiss})
		s.answer(before, texture(1), at(10))
		s.want(early, lookupOutcome{TID: 1, Result: LookupMiss})
		s.wantHit(key, 2)
	})
}

func TestResultOfLaggingCoreIsNotCached(t *testing.T) {
	t.Parallel()
	runScript(t, func(s script) {
		s.change(11, key)
		got := s.lookup(key)
		s.answer(s.nextLookup(key), texture(1), at(10))
		s.want(got, lookupOutcome{TID: 1, Result: LookupMiss})
		s.learn(key, 2, 11)
	})
}

func TestResultOfOtherEpochIsNotCached(t *testing.T) {
	t.Parallel()
	runScript(t, func(s script) {
		got := s.lookup(key)
		s.answer(s.nextLookup(key), texture(1), edgeproto.Cursor{Epoch: "b", Revision: 10})
		s.want(got, lookupOutcome{TID: 1, Result: LookupMiss})
		s.wantMiss(key)
	})
}

func TestNothingIsCachedBeforeStreamStarts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := script{T: t, core: scriptedCore{lookups: make(chan *pendingLookup), rejects: map[edgeproto.Key]error{}}}
		s.resolver, _ = NewResolver(ResolverConfig{Bytes: 1 << 20, NegativeBytes: 1 << 20, MaxStale: time.Hour}, s.core)
		if err := s.resolver.Check(t.Context()); err == nil {
			t.Error("Check before the stream has started: nil")
		}
		got := s.lookup(key)
		s.answer(s.nextLookup(key), texture(1), at(10))
		s.want(got, lookupOutcome{TID: 1, Result: LookupMiss})
		s.wantMiss(key)
	})
}

func TestOtherHistoryFlushesCache(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		start edgeproto.Cursor
	}{
		{"a gap that was trimmed", at(50)},
		{"a head before our own position", at(5)},
		{"a new epoch", edgeproto.Cursor{Epoch: "b", Revision: 10}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			runScript(t, func(s script) {
				s.learn(key, 1, 10)
				early := s.lookup("tid:1")
				flying := s.nextLookup("tid:1")
				s.apply(edgeproto.Event{Cursor: test.start, Start: true})
				s.apply(edgeproto.Event{Cursor: test.start})
				if got := s.resolver.Cursor(); got != test.start {
					s.Errorf("Position() = %+v; want %+v", got, test.start)
				}
				s.wantMiss(key)

				// A running call is from the other history, whatever its cursor says.
				late := s.lookup("tid:1")
				s.answer(s.nextLookup("tid:1"), texture(2), test.start)
				s.want(late, lookupOutcome{TID: 2, Result: LookupMiss})
				s.answer(flying, texture(1), test.start)
				s.want(early, lookupOutcome{TID: 1, Result: LookupMiss})
				s.wantHit("tid:1", 2)
			})
		})
	}
}

func TestSameHistoryKeepsCache(t *testing.T) {
	t.Parallel()
	runScript(t, func(s script) {
		s.learn(key, 1, 10)
		s.apply(edgeproto.Event{Cursor: at(10), Start: true})
		s.heartbeat(10)
		s.wantHit(key, 1)
	})
}

func TestCreationInvalidatesNegativeEntry(t *testing.T) {
	t.Parallel()
	runScript(t, func(s script) {
		got := s.lookup(key)
		s.answer(s.nextLookup(key), edgeproto.Mapping{}, at(10))
		s.want(got, lookupOutcome{Result: LookupMiss})
		s.wantHit(key, 0)
		s.change(11, key)
		s.learn(key, 1, 11)
	})
}

func TestRenameInvalidatesBothNames(t *testing.T) {
	t.Parallel()
	runScript(t, func(s script) {
		s.learn("name:steve", 1, 10)
		s.learn("name:alex", 2, 10)
		s.learn("name:herobrine", 3, 10)
		s.change(11, "name:steve", "name:alex")
		s.wantHit("name:herobrine", 3)
		s.wantMiss("name:steve")
		s.wantMiss("name:alex")
	})
}

func TestSilenceEndsTrust(t *testing.T) {
	t.Parallel()
	runScript(t, func(s script) {
		s.learn(key, 1, 10)
		s.advance(trustWindow - time.Millisecond)
		s.wantHit(key, 1)
		s.advance(2 * time.Millisecond)
		if err := s.resolver.Check(s.Context()); err == nil {
			s.Error("Check after a second of silence: nil")
		}
		// The next look-up asks core. Its result is valid for a second without a heartbeat.
		got := s.lookup(key)
		s.answer(s.nextLookup(key), texture(1), at(10))
		s.want(got, lookupOutcome{TID: 1, Result: LookupMiss})
		s.advance(trustWindow - time.Millisecond)
		s.wantHit(key, 1)
		s.advance(2 * time.Millisecond)
		s.wantStale()

		s.heartbeat(10)
		s.wantHit(key, 1)
		if err := s.resolver.Check(s.Context()); err != nil {
			s.Errorf("Check after a heartbeat: %v", err)
		}
	})
}

// A heartbeat that arrives late says nothing about the present.
func TestLateHeartbeatCountsFromItsTime(t *testing.T) {
	t.Parallel()
	runScript(t, func(s script) {
		s.learn(key, 1, 10)
		sent := time.Now()
		s.advance(trustWindow + time.Millisecond)
		late := edgeproto.Event{Cursor: at(10)}
		if err := s.resolver.Apply(late, sent); err != nil {
			s.Fatal(err)
		}
		s.wantStale()
		if err := s.resolver.Check(s.Context()); err == nil {
			s.Error("Check after a heartbeat from a second ago: nil")
		}

		// It counts from its own time, and an older one does not shorten the window.
		if err := s.resolver.Apply(late, time.Now().Add(-trustWindow/2)); err != nil {
			s.Fatal(err)
		}
		if err := s.resolver.Apply(late, sent); err != nil {
			s.Fatal(err)
		}
		s.advance(trustWindow/2 - time.Millisecond)
		s.wantHit(key, 1)
		s.advance(2 * time.Millisecond)
		s.wantStale()
	})
}

func TestSlowResultIsAsOldAsItsCall(t *testing.T) {
	t.Parallel()
	runScript(t, func(s script) {
		s.advance(2 * trustWindow)
		got := s.lookup(key)
		q := s.nextLookup(key)
		s.advance(trustWindow + time.Millisecond)
		s.answer(q, texture(1), at(10))
		s.want(got, lookupOutcome{TID: 1, Result: LookupMiss})
		s.wantStale()
	})
}

func TestCatchingUpIsNotLive(t *testing.T) {
	t.Parallel()
	runScript(t, func(s script) {
		s.learn(key, 1, 10)
		s.advance(2 * trustWindow)
		s.apply(edgeproto.Event{Cursor: at(10), Start: true})
		s.change(11, "name:alex")
		s.wantStale()
		s.change(12, "name:alex")
		s.advance(retryInterval)
		s.wantStale()
		s.heartbeat(12)
		s.wantHit(key, 1)
	})
}

func TestMaxStale(t *testing.T) {
	t.Parallel()
	runScript(t, func(s script) {
		s.learn(key, 1, 10)
		s.advance(24*time.Hour - time.Second)
		s.wantStale()
		// A key that is not cached fails.
		s.wantMiss("name:alex")
		s.advance(2 * time.Second)
		s.wantMiss(key)

		s.heartbeat(10)
		s.wantHit(key, 1)
	})
}

// Once core has failed to answer, stale mappings are returned at once, while one look-up per
// retryInterval asks core again. Its first answer ends that.
func TestUnreachableCoreIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	runScript(t, func(s script) {
		s.learn(key, 1, 10)
		s.learn("name:alex", 1, 10)
		s.advance(2 * trustWindow)
		s.wantStale()

		s.want(s.lookup(key), lookupOutcome{TID: 1, Result: LookupStale})
		s.wantNoLookup()
		s.advance(retryInterval)
		s.want(s.lookup(key), lookupOutcome{TID: 1, Result: LookupStale})
		s.want(s.lookup("name:alex"), lookupOutcome{TID: 1, Result: LookupStale})
		s.answer(s.nextLookup(key), texture(2), at(10))
		s.wantNoLookup()
		s.wantHit(key, 2)
		got := s.lookup("name:alex")
		s.answer(s.nextLookup("name:alex"), texture(2), at(10))
		s.want(got, lookupOutcome{TID: 2, Result: LookupMiss})
	})
}

// A core that hangs delays the first look-up of a stale mapping by refreshTimeout, and later
// ones not at all.
func TestHangingCoreIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	runScript(t, func(s script) {
		s.learn(key, 1, 10)
		s.learn("name:alex", 1, 10)
		s.advance(2 * trustWindow)
		got := s.lookup(key)
		q := s.nextLookup(key)
		s.advance(refreshTimeout)
		s.want(got, lookupOutcome{TID: 1, Result: LookupStale})
		s.want(s.lookup("name:alex"), lookupOutcome{TID: 1, Result: LookupStale})
		s.want(s.lookup(key), lookupOutcome{TID: 1, Result: LookupStale})

		// A late result is cached.
		s.answer(q, texture(2), at(10))
		s.wantHit(key, 2)
		got = s.lookup("name:alex")
		s.answer(s.nextLookup("name:alex"), texture(2), at(10))
		s.want(got, lookupOutcome{TID: 2, Result: LookupMiss})
	})
}

// That a core has stopped answering is known before the trust window ends, so that not even
// the first look-up waits for it.
func TestSilentCoreIsProbed(t *testing.T) {
	t.Parallel()
	runScript(t, func(s script) {
		s.learn(key, 1, 10)
		s.learn("name:alex", 1, 10)
		s.heartbeat(10)
		s.core.unresponsive.Store(true)
		s.advance(trustWindow - time.Millisecond)
		s.wantHit(key, 1)
		s.advance(time.Millisecond)
		s.want(s.lookup(key), lookupOutcome{TID: 1, Result: LookupStale})
		s.want(s.lookup("name:alex"), lookupOutcome{TID: 1, Result: LookupStale})

		// It is asked once per retryInterval, and is reachable again once it answers.
		s.advance(retryInterval)
		s.want(s.lookup(key), lookupOutcome{TID: 1, Result: LookupStale})
		s.answer(s.nextLookup(key), texture(2), at(10))
		s.wantHit(key, 2)
		got := s.lookup("name:alex")
		s.answer(s.nextLookup("name:alex"), texture(2), at(10))
		s.want(got, lookupOutcome{TID: 2, Result: LookupMiss})
	})
}

// The trust window and the probe count from the time of a heartbeat, not from its arrival.
func TestSilenceAfterLateHeartbeatIsProbed(t *testing.T) {
	t.Parallel()
	runScript(t, func(s script) {
		s.learn(key, 1, 10)
		s.core.unresponsive.Store(true)
		sent := time.Now()
		s.advance(probeAfter - time.Millisecond)
		if err := s.resolver.Apply(edgeproto.Event{Cursor: at(10)}, sent); err != nil {
			s.Fatal(err)
		}
		s.advance(trustWindow - probeAfter)
		s.wantHit(key, 1)
		s.advance(time.Millisecond)
		s.want(s.lookup(key), lookupOutcome{TID: 1, Result: LookupStale})
		s.answer(s.nextLookup(key), texture(1), at(10))
	})
}

// A change shows that core is reachable, and drops the stale mapping.
func TestChangeWhileCoreHangsIsWaitedFor(t *testing.T) {
	t.Parallel()
	runScript(t, func(s script) {
		s.learn(key, 1, 10)
		s.advance(2 * trustWindow)
		got := s.lookup(key)
		late := s.nextLookup(key)
		s.change(11, key)
		s.advance(refreshTimeout)
		s.answer(s.nextLookup(key), texture(2), at(11))
		s.want(got, lookupOutcome{TID: 2, Result: LookupMiss})
		s.answer(late, texture(1), at(10))
		s.heartbeat(11)
		s.wantHit(key, 2)
	})
}

// A look-up that is shed does not mean that core is unreachable.
func TestBusyCoreIsNotUnreachable(t *testing.T) {
	t.Parallel()
	runScript(t, func(s script) {
		s.learn(key, 1, 10)
		s.advance(2 * trustWindow)
		got := s.lookup("name:alex")
		s.nextLookup("name:alex").answer <- lookupReply{err: fault.NewUnavailable("core", ErrShed)}
		s.want(got, lookupOutcome{Result: LookupMiss, Kind: "unavailable"})
		s.core.rejects["name:alex"] = fault.NewUnavailable("core", ErrShed)
		s.want(s.lookup("name:alex"), lookupOutcome{Result: LookupMiss, Kind: "unavailable"})
		s.wantNoLookup()

		got = s.lookup(key)
		s.answer(s.nextLookup(key), texture(2), at(10))
		s.want(got, lookupOutcome{TID: 2, Result: LookupMiss})
	})
}

// A look-up that core would reject is not started, but may join a running call.
func TestRejectedLookupFailsAtOnce(t *testing.T) {
	t.Parallel()
	runScript(t, func(s script) {
		s.learn(key, 1, 10)
		first := s.lookup("name:alex")
		s.core.rejects[key] = fault.NewUnavailable("core", errors.New("away"))
		s.core.rejects["name:alex"] = s.core.rejects[key]
		s.core.rejects["name:bob"] = s.core.rejects[key]
		second := s.lookup("name:alex")
		s.answer(s.nextLookup("name:alex"), texture(2), at(10))
		s.want(first, lookupOutcome{TID: 2, Result: LookupMiss})
		s.want(second, lookupOutcome{TID: 2, Result: LookupMiss})

		s.want(s.lookup("name:bob"), lookupOutcome{Result: LookupMiss, Kind: "unavailable"})
		s.wantHit(key, 1)
		s.advance(2 * trustWindow)
		s.want(s.lookup(key), lookupOutcome{TID: 1, Result: LookupStale})
		s.wantNoLookup()
	})
}

func TestChangeWhileCoreIsTriedIsNotServedStale(t *testing.T) {
	t.Parallel()
	runScript(t, func(s script) {
		s.learn(key, 1, 10)
		s.advance(2 * trustWindow)
		got := s.lookup(key)
		q := s.nextLookup(key)
		s.change(11, key)
		q.answer <- lookupReply{err: fault.NewUnavailable("core", errors.New("away"))}
		s.want(got, lookupOutcome{Result: LookupMiss, Kind: "unavailable"})
	})
}

func TestOnlyUnreachableCoreIsServedStale(t *testing.T) {
	t.Parallel()
	runScript(t, func(s script) {
		s.learn(key, 1, 10)
		s.advance(2 * trustWindow)
		got := s.lookup(key)
		s.nextLookup(key).answer <- lookupReply{err: errors.New("a bug")}
		s.want(got, lookupOutcome{Result: LookupMiss, Kind: "internal"})
	})
}

func TestCoreTimeout(t *testing.T) {
	t.Parallel()
	runScript(t, func(s script) {
		got := s.lookup(key)
		s.nextLookup(key)
		s.advance(coreTimeout)
		s.want(got, lookupOutcome{Result: LookupMiss, Kind: "unavailable"})
	})
}

func TestApplyRejectsEventsOutOfOrder(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		event edgeproto.Event
	}{
		{"a heartbeat of another epoch", edgeproto.Event{Cursor: edgeproto.Cursor{Epoch: "b", Revision: 10}}},
		{"a change from before", edgeproto.Event{Cursor: at(9), Keys: []edgeproto.Key{key}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			runScript(t, func(s script) {
				if err := s.resolver.Apply(test.event, time.Now()); err == nil {
					s.Errorf("Apply(%+v): nil", test.event)
				}
				if got := s.resolver.Cursor(); got != at(10) {
					s.Errorf("Position() = %+v; want %+v", got, at(10))
				}
			})
		})
	}
}

func TestNewResolverRejects(t *testing.T) {
	t.Parallel()
	f := func(config ResolverConfig) {
		t.Helper()
		if _, err := NewResolver(config, scriptedCore{}); err == nil {
			t.Errorf("NewMappings(%+v): nil", config)
		}
	}
	f(ResolverConfig{Bytes: 1, NegativeBytes: 1 << 20, MaxStale: time.Hour})
	f(ResolverConfig{Bytes: 1 << 20, NegativeBytes: 1, MaxStale: time.Hour})
	f(ResolverConfig{Bytes: 1 << 20, NegativeBytes: 1 << 20, MaxStale: -1})
}
