package core

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/veneer-skins/veneer/shared/edgeproto"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/skin"
)

// blockingMappingStore answers once the test allows it.
type blockingMappingStore struct {
	MappingStore
	asked chan int
	free  chan struct{}
}

func (l blockingMappingStore) MostLiked(_ context.Context, limit int) ([]skin.Hash, error) {
	l.asked <- limit
	<-l.free
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
				if err != nil {
					t.Error(err)
				}
				answers <- len(liked.Hashes)
			}()
		}
		synctest.Wait()
		if n := len(store.asked); n != 1 {
			t.Errorf("%d queries run at once; want 1", n)
		}
		canceled, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := mappings.MostLiked(canceled, 3); !errors.Is(err, context.Canceled) {
			t.Errorf("a canceled query returns %v", err)
		}
		for range 2 {
			store.free <- struct{}{}
			if n := <-answers; n != 3 {
				t.Errorf("%d are liked; want 3", n)
			}
		}
	})
}

func TestMostLikedLimit(t *testing.T) {
	t.Parallel()
	store := blockingMappingStore{asked: make(chan int, 9), free: make(chan struct{}, 9)}
	store.free <- struct{}{}
	mappings := NewMappings(store)
	for _, limit := range []int{-1, 0, edgeproto.MaxLiked + 1} {
		if _, err := mappings.MostLiked(t.Context(), limit); fault.KindOf(err) != fault.Invalid {
			t.Errorf("Liked(%d): %v; want it invalid", limit, err)
		}
	}
	if liked, err := mappings.MostLiked(t.Context(), edgeproto.MaxLiked); err != nil || len(liked.Hashes) != edgeproto.MaxLiked {
		t.Errorf("Liked of the most: %d, %v", len(liked.Hashes), err)
	}
}
