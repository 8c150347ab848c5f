package core

import (
	"context"
	"fmt"

	"github.com/veneer-skins/veneer/shared/edgeproto"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/skin"
)

// MappingStore resolves keys.
type MappingStore interface {
	// Mappings returns the mappings of keys, in order, all read in one snapshot, with the cursor
	// of that snapshot. A malformed key resolves to nothing.
	Mappings(ctx context.Context, keys []edgeproto.Key) (edgeproto.LookupResponse, error)

	// MostLiked returns the file hashes of at most limit public textures, in the order of
	// edgeproto.LikedTextures. Textures with the same file repeat its hash.
	MostLiked(ctx context.Context, limit int) ([]skin.Hash, error)
}

// Mappings answers the look-ups of edges.
type Mappings struct {
	store    MappingStore
	likedSem chan struct{} // semaphore of one MostLiked query
}

// NewMappings returns the mappings of a store.
func NewMappings(store MappingStore) *Mappings {
	return &Mappings{store: store, likedSem: make(chan struct{}, 1)}
}

// Resolve returns the mappings of keys. More than edgeproto.MaxKeys are an Invalid fault.
func (m *Mappings) Resolve(ctx context.Context, req edgeproto.LookupRequest) (edgeproto.LookupResponse, error) {
	if n := len(req.Keys); n > edgeproto.MaxKeys {
		return edgeproto.LookupResponse{}, fault.Field("keys", "%d keys are too many: at most %d can be asked for at once.", n, edgeproto.MaxKeys)
	}
	return m.store.Mappings(ctx, req.Keys)
}

// MostLiked returns the file hashes of at most limit textures, most liked first. A limit below 1 or
// above edgeproto.MaxLiked is an Invalid fault.
func (m *Mappings) MostLiked(ctx context.Context, limit int) (edgeproto.LikedTextures, error) {
	if limit < 1 || limit > edgeproto.MaxLiked {
		return edgeproto.LikedTextures{}, fault.Field("limit", "The limit must be from 1 to %d.", edgeproto.MaxLiked)
	}
	// An answer can be some megabytes: edges that start together are served one after another.
	select {
	case m.likedSem <- struct{}{}:
		defer func() { <-m.likedSem }()
	case <-ctx.Done():
		return edgeproto.LikedTextures{}, fmt.Errorf("wait for other queries of liked textures: %w", ctx.Err())
	}
	hashes, err := m.store.MostLiked(ctx, limit)
	return edgeproto.LikedTextures{Hashes: hashes}, err
}
