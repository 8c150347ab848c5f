package edge

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/veneer-skins/veneer/shared/edgeproto"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// Each scene has a resolver with a live stream at revision 10.
func TestResolver(t *testing.T) {
	t.Parallel()
	for name, scene := range scenes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			runScript(t, scene)
		})
	}
}

var scenes = map[string]func(s script){
	"result is cached": func(s script) {
		s.learn(key, 1, 10)
		for range 100 {
			s.advance(250 * time.Millisecond)
			s.heartbeat(10)
			s.wantHit(key, 1)
		}
	},
	"concurrent lookups share one call": func(s script) {
		var all []<-chan lookupOutcome
		for range 100 {
			all = append(all, s.lookup(key))
		}
		s.answer(s.nextLookup(key), texture(1), at(10))
		for _, got := range all {
			s.want(got, miss(1))
		}
	},
	// A slow call may return the mapping of the time when it started. That is too old for later
	// callers, and must not replace the result of a later call.
	"old call is not joined": func(s script) {
		early := s.lookup(key)
		slow := s.nextLookup(key)
		s.advance(trustWindow - time.Millisecond)
		companion := s.lookup(key)
		s.advance(2 * time.Millisecond)
		late := s.lookup(key)
		quick := s.nextLookup(key)

		s.answer(quick, texture(2), at(10))
		s.want(late, miss(2))
		s.answer(slow, texture(1), at(10))
		s.want(early, miss(1))
		s.want(companion, miss(1))
		s.heartbeat(10)
		s.wantHit(key, 2)
	},
	"finished call is found in cache": func(s script) {
		s.learn(key, 1, 10)
		// Like a caller that has missed just before the call ended.
		if cached, c, _ := s.resolver.startCall(s.Context(), key); c != nil || cached.mapping.Texture.TID != 1 {
			s.Errorf("startCall() = %+v, %+v; want the cached mapping and no call", cached, c)
		}
	},
	"canceled caller keeps call": func(s script) {
		ctx, leave := context.WithCancel(s.Context())
		failed := make(chan error, 1)
		go func() { _, _, err := s.resolver.Lookup(ctx, key); failed <- err }()
		synctest.Wait()
		patient := s.lookup(key)
		leave()
		testenv.Is(s, <-failed, context.Canceled, "the look-up of a cancelled caller")
		s.answer(s.nextLookup(key), texture(1), at(10))
		s.want(patient, miss(1))
		s.wantHit(key, 1)
	},
	"late result does not undo change": func(s script) {
		early := s.lookup(key)
		before := s.nextLookup(key)
		s.change(11, key)

		// The revision does not show that the result is too old: the snapshot may be from
		// after another change. Only the call shows it.
		s.answer(before, texture(1), at(11))
		s.want(early, miss(1))
		s.learn(key, 2, 11)
	},
	"invalidated call is not joined": func(s script) {
		early := s.lookup(key)
		before := s.nextLookup(key)
		s.change(11, key)
		late := s.lookup(key)
		after := s.nextLookup(key)

		// The later call may end first.
		s.answer(after, texture(2), at(11))
		s.want(late, miss(2))
		s.answer(before, texture(1), at(10))
		s.want(early, miss(1))
		s.wantHit(key, 2)
	},
	"result of lagging core is not cached": func(s script) {
		s.change(11, key)
		s.ask(key, texture(1), at(10))
		s.learn(key, 2, 11)
	},
	"result of other epoch is not cached": func(s script) {
		s.ask(key, texture(1), edgeproto.Cursor{Epoch: "b", Revision: 10})
		s.wantMiss(key)
	},
	"same history keeps cache": func(s script) {
		s.learn(key, 1, 10)
		s.apply(edgeproto.Event{Cursor: at(10), Start: true})
		s.heartbeat(10)
		s.wantHit(key, 1)
	},
	"creation invalidates negative entry": func(s script) {
		s.ask(key, edgeproto.Mapping{}, at(10))
		s.wantHit(key, 0)
		s.change(11, key)
		s.learn(key, 1, 11)
	},
	"rename invalidates both names": func(s script) {
		s.learn("name:steve", 1, 10)
		s.learn("name:alex", 2, 10)
		s.learn("name:herobrine", 3, 10)
		s.change(11, "name:steve", "name:alex")
		s.wantHit("name:herobrine", 3)
		s.wantMiss("name:steve")
		s.wantMiss("name:alex")
	},
	"silence ends trust": func(s script) {
		s.learn(key, 1, 10)
		s.advance(trustWindow - time.Millisecond)
		s.wantHit(key, 1)
		s.advance(2 * time.Millisecond)
		err := s.resolver.Check(s.Context())
		testenv.Check(s, err != nil, "Check after a second of silence: nil")
		// The next look-up asks core. Its result is valid for a second without a heartbeat.
		s.ask(key, texture(1), at(10))
		s.advance(trustWindow - time.Millisecond)
		s.wantHit(key, 1)
		s.advance(2 * time.Millisecond)
		s.wantStale()

		s.heartbeat(10)
		s.wantHit(key, 1)
		testenv.Is(s, s.resolver.Check(s.Context()), nil, "Check after a heartbeat")
	},
	// A heartbeat that arrives late says nothing about the present.
	"late heartbeat counts from its time": func(s script) {
		s.learn(key, 1, 10)
		sent := time.Now()
		s.advance(trustWindow + time.Millisecond)
		late := edgeproto.Event{Cursor: at(10)}
		testenv.Do(s, s.resolver.Apply(late, sent))
		s.wantStale()
		err := s.resolver.Check(s.Context())
		testenv.Check(s, err != nil, "Check after a heartbeat from a second ago: nil")

		// It counts from its own time, and an older one does not shorten the window.
		testenv.Do(s, s.resolver.Apply(late, time.Now().Add(-trustWindow/2)))
		testenv.Do(s, s.resolver.Apply(late, sent))
		s.advance(trustWindow/2 - time.Millisecond)
		s.wantHit(key, 1)
		s.advance(2 * time.Millisecond)
		s.wantStale()
	},
	"slow result is as old as its call": func(s script) {
		s.advance(2 * trustWindow)
		got := s.lookup(key)
		q := s.nextLookup(key)
		s.advance(trustWindow + time.Millisecond)
		s.answer(q, texture(1), at(10))
		s.want(got, miss(1))
		s.wantStale()
	},
	"catching up is not live": func(s script) {
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
	},
	"max stale": func(s script) {
		s.learn(key, 1, 10)
		s.advance(24*time.Hour - time.Second)
		s.wantStale()
		// A key that is not cached fails.
		s.wantMiss("name:alex")
		s.advance(2 * time.Second)
		s.wantMiss(key)

		s.heartbeat(10)
		s.wantHit(key, 1)
	},
	// Once core has failed to answer, stale mappings are returned at once, while one look-up per
	// retryInterval asks core again. Its first answer ends that.
	"unreachable core is not waited for": func(s script) {
		s.learn(key, 1, 10)
		s.learn("name:alex", 1, 10)
		s.advance(2 * trustWindow)
		s.wantStale()

		s.want(s.lookup(key), stale)
		s.wantNoLookup()
		s.advance(retryInterval)
		s.want(s.lookup(key), stale)
		s.want(s.lookup("name:alex"), stale)
		s.answer(s.nextLookup(key), texture(2), at(10))
		s.wantNoLookup()
		s.wantHit(key, 2)
		s.ask("name:alex", texture(2), at(10))
	},
	// A core that hangs delays the first look-up of a stale mapping by refreshTimeout, and later
	// ones not at all.
	"hanging core is not waited for": func(s script) {
		s.learn(key, 1, 10)
		s.learn("name:alex", 1, 10)
		s.advance(2 * trustWindow)
		got := s.lookup(key)
		q := s.nextLookup(key)
		s.advance(refreshTimeout)
		s.want(got, stale)
		s.want(s.lookup("name:alex"), stale)
		s.want(s.lookup(key), stale)

		// A late result is cached.
		s.answer(q, texture(2), at(10))
		s.wantHit(key, 2)
		s.ask("name:alex", texture(2), at(10))
	},
	// That a core has stopped answering is known before the trust window ends, so that not even
	// the first look-up waits for it.
	"silent core is probed": func(s script) {
		s.learn(key, 1, 10)
		s.learn("name:alex", 1, 10)
		s.heartbeat(10)
		s.core.unresponsive.Store(true)
		s.advance(trustWindow - time.Millisecond)
		s.wantHit(key, 1)
		s.advance(time.Millisecond)
		s.want(s.lookup(key), stale)
		s.want(s.lookup("name:alex"), stale)

		// It is asked once per retryInterval, and is reachable again once it answers.
		s.advance(retryInterval)
		s.want(s.lookup(key), stale)
		s.answer(s.nextLookup(key), texture(2), at(10))
		s.wantHit(key, 2)
		s.ask("name:alex", texture(2), at(10))
	},
	// The trust window and the probe count from the time of a heartbeat, not from its arrival.
	"silence after late heartbeat is probed": func(s script) {
		s.learn(key, 1, 10)
		s.core.unresponsive.Store(true)
		sent := time.Now()
		s.advance(probeAfter - time.Millisecond)
		testenv.Do(s, s.resolver.Apply(edgeproto.Event{Cursor: at(10)}, sent))
		s.advance(trustWindow - probeAfter)
		s.wantHit(key, 1)
		s.advance(time.Millisecond)
		s.want(s.lookup(key), stale)
		s.answer(s.nextLookup(key), texture(1), at(10))
	},
	// A change shows that core is reachable, and drops the stale mapping.
	"change while core hangs is waited for": func(s script) {
		s.learn(key, 1, 10)
		s.advance(2 * trustWindow)
		got := s.lookup(key)
		late := s.nextLookup(key)
		s.change(11, key)
		s.advance(refreshTimeout)
		s.answer(s.nextLookup(key), texture(2), at(11))
		s.want(got, miss(2))
		s.answer(late, texture(1), at(10))
		s.heartbeat(11)
		s.wantHit(key, 2)
	},
	// A look-up that is shed does not mean that core is unreachable.
	"busy core is not unreachable": func(s script) {
		s.learn(key, 1, 10)
		s.advance(2 * trustWindow)
		got := s.lookup("name:alex")
		s.nextLookup("name:alex").answer <- lookupReply{err: fault.NewUnavailable("core", ErrShed)}
		s.want(got, failed("unavailable"))
		s.core.rejects["name:alex"] = fault.NewUnavailable("core", ErrShed)
		s.want(s.lookup("name:alex"), failed("unavailable"))
		s.wantNoLookup()

		s.ask(key, texture(2), at(10))
	},
	// A look-up that core would reject is not started, but may join a running call.
	"rejected lookup fails at once": func(s script) {
		s.learn(key, 1, 10)
		first := s.lookup("name:alex")
		s.core.rejects[key] = fault.NewUnavailable("core", errors.New("away"))
		s.core.rejects["name:alex"] = s.core.rejects[key]
		s.core.rejects["name:bob"] = s.core.rejects[key]
		second := s.lookup("name:alex")
		s.answer(s.nextLookup("name:alex"), texture(2), at(10))
		s.want(first, miss(2))
		s.want(second, miss(2))

		s.want(s.lookup("name:bob"), failed("unavailable"))
		s.wantHit(key, 1)
		s.advance(2 * trustWindow)
		s.want(s.lookup(key), stale)
		s.wantNoLookup()
	},
	"change while core is tried is not served stale": func(s script) {
		s.learn(key, 1, 10)
		s.advance(2 * trustWindow)
		got := s.lookup(key)
		q := s.nextLookup(key)
		s.change(11, key)
		q.answer <- lookupReply{err: fault.NewUnavailable("core", errors.New("away"))}
		s.want(got, failed("unavailable"))
	},
	"only unreachable core is served stale": func(s script) {
		s.learn(key, 1, 10)
		s.advance(2 * trustWindow)
		got := s.lookup(key)
		s.nextLookup(key).answer <- lookupReply{err: errors.New("a bug")}
		s.want(got, failed("internal"))
	},
	"core timeout": func(s script) {
		got := s.lookup(key)
		s.nextLookup(key)
		s.advance(coreTimeout)
		s.want(got, failed("unavailable"))
	},
}

func TestNothingIsCachedBeforeStreamStarts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := script{T: t, core: scriptedCore{lookups: make(chan *pendingLookup), rejects: map[edgeproto.Key]error{}}}
		s.resolver = NewResolver(ResolverConfig{Bytes: 1 << 20, NegativeBytes: 1 << 20, MaxStale: time.Hour}, s.core)
		err := s.resolver.Check(t.Context())
		testenv.Check(t, err != nil, "Check before the stream has started: nil")
		s.ask(key, texture(1), at(10))
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
				testenv.Equal(s, s.resolver.Cursor(), test.start, "Cursor()")
				s.wantMiss(key)

				// A running call is from the other history, whatever its cursor says.
				s.ask("tid:1", texture(2), test.start)
				s.answer(flying, texture(1), test.start)
				s.want(early, miss(1))
				s.wantHit("tid:1", 2)
			})
		})
	}
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
				err := s.resolver.Apply(test.event, time.Now())
				testenv.Check(s, err != nil, "Apply(%+v): nil", test.event)
				testenv.Equal(s, s.resolver.Cursor(), at(10), "Cursor()")
			})
		})
	}
}
