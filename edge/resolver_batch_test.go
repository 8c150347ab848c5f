package edge

import (
	"testing"

	"github.com/veneer-skins/veneer/shared/edgeproto"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// A batch starts calls for the keys that have none, and joins the others.
func TestLookupAll(t *testing.T) {
	t.Parallel()
	runScript(t, func(s script) {
		const other, third = edgeproto.Key("name:bob"), edgeproto.Key("name:carol")
		s.learn(key, 1, 10)
		single := s.lookup(other)
		joined := s.nextLookup(other)
		type outcome struct {
			mappings []edgeproto.Mapping
			result   LookupResult
			err      error
		}
		done := make(chan outcome, 1)
		go func() {
			var o outcome
			o.mappings, o.result, o.err = s.resolver.LookupAll(s.Context(), []edgeproto.Key{third, key, other, third})
			done <- o
		}()
		started := s.nextLookup(third)
		s.wantNoLookup()
		s.change(11, third) // the result of the batch may be from before it
		s.answer(started, texture(3), at(10))
		s.answer(joined, texture(2), at(11))
		s.want(single, miss(2))
		// The caller came before the change, so the result counts for it, and core is not asked again.
		s.wantNoLookup()
		o := <-done
		if o.err != nil || o.result != LookupMiss {
			s.Fatalf("LookupAll() = %+v", o)
		}
		for i, want := range []int64{3, 1, 2, 3} {
			testenv.Equal(s, o.mappings[i].Texture.TID, want, "the texture of mapping %d", i)
		}
		s.heartbeat(11)
		s.wantHit(other, 2)
	})
}

// A batch that core refuses leaves no calls behind, and its callers get the fault.
func TestLookupAllIsRefused(t *testing.T) {
	t.Parallel()
	runScript(t, func(s script) {
		s.core.rejects["name:bob"] = fault.NewUnavailable("core", ErrShed)
		_, _, err := s.resolver.LookupAll(s.Context(), []edgeproto.Key{key, "name:bob"})
		testenv.Is(s, err, ErrShed, "LookupAll()")
		delete(s.core.rejects, "name:bob")
		s.learn(key, 1, 10)
		s.learn("name:bob", 2, 10)
	})
}

// A look-up that is joined to a batch is not refused with it, since that was another network's.
func TestLookupAllIsRefusedAlone(t *testing.T) {
	t.Parallel()
	runScript(t, func(s script) {
		const refused = edgeproto.Key("name:bob")
		s.core.rejects[refused] = fault.NewUnavailable("core", ErrShed)
		var single <-chan lookupOutcome
		s.core.before[key] = func() {
			delete(s.core.before, key)
			single = s.lookup(key)
		}
		_, _, err := s.resolver.LookupAll(s.Context(), []edgeproto.Key{key, refused})
		testenv.Is(s, err, ErrShed, "LookupAll()")
		s.answer(s.nextLookup(key), texture(1), at(10))
		s.want(single, miss(1))
	})
}
