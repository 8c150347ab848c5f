package core

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/veneer-skins/veneer/shared/edgeproto"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// blockingMappingStore answers once the test allows it.
type blockingMappingStore struct {
	MappingStore
	asked chan int
	free  chan struct{}
}

func (b blockingMappingStore) MostLiked(_ context.Context, limit int) ([]skin.Hash, error) {
	b.asked <- limit
	<-b.free
	return make([]skin.Hash, limit), nil
}

func TestMostLikedQueriesAreSerialized(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := blockingMappingStore{asked: make(chan int, 9), free: make(chan struct{})}
		mappings := NewMappings(store)
		answers := make(chan int, 2)
		for range 2 {
			go func() {
				liked, err := mappings.MostLiked(t.Context(), 3)
				testenv.Is(t, err, nil, "a query")
				answers <- len(liked.Hashes)
			}()
		}
		synctest.Wait()
		testenv.Equal(t, len(store.asked), 1, "queries run at once")
		canceled, cancel := context.WithCancel(t.Context())
		cancel()
		testenv.Is(t, testenv.ErrOf(mappings.MostLiked(canceled, 3)), context.Canceled, "a canceled query")
		for range 2 {
			store.free <- struct{}{}
			testenv.Equal(t, <-answers, 3, "are liked")
		}
	})
}

func TestMostLikedLimit(t *testing.T) {
	t.Parallel()
	store := blockingMappingStore{asked: make(chan int, 9), free: make(chan struct{}, 9)}
	store.free <- struct{}{}
	mappings := NewMappings(store)
	for _, limit := range []int{-1, 0, edgeproto.MaxLiked + 1} {
		_, err := mappings.MostLiked(t.Context(), limit)
		testenv.Equal(t, fault.KindOf(err), fault.Invalid, "MostLiked(%d): %v", limit, err)
	}
	liked := testenv.Must(mappings.MostLiked(t.Context(), edgeproto.MaxLiked))(t)
	testenv.Equal(t, len(liked.Hashes), edgeproto.MaxLiked, "the most that are liked")
}
