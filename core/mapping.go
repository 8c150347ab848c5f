package core

import (
	"context"
	"fmt"

	"github.com/veneer-skins/veneer/shared/edgeproto"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/skin"
)

// MappingStore knows what keys lead to.
type MappingStore interface {
	// Mappings returns what keys lead to, in their order, all read in one snapshot,
	// with that snapshot's position. A key it cannot make sense of leads nowhere.
	Mappings(ctx context.Context, keys []edgeproto.Key) (edgeproto.LookupResponse, error)

	// MostLiked returns the files of at most so many public textures, in the order
	// that mapping.Liked says. A file of several textures may be there several times.
	MostLiked(ctx context.Context, limit int) ([]skin.Hash, error)
}

// Mappings answers what edges ask.
type Mappings struct {
	store    MappingStore
	likedSem chan struct{} // a token is a question for what is liked
}

// NewMappings returns the mappings of a store.
func NewMappings(store MappingStore) *Mappings {
	return &Mappings{store: store, likedSem: make(chan struct{}, 1)}
}

// Resolve returns what the keys lead to. More than mapping.MaxKeys are an Invalid
// fault.
func (m *Mappings) Resolve(ctx context.Context, req edgeproto.LookupRequest) (edgeproto.LookupResponse, error) {
	if n := len(req.Keys); n > edgeproto.MaxKeys {
		return edgeproto.LookupResponse{}, fault.Field("keys", "%d keys are too many: at most %d can be asked for at once.", n, edgeproto.MaxKeys)
	}
	return m.store.Mappings(ctx, req.Keys)
}

// MostLiked returns the files of at most so many textures, by how many closets hold them.
// A limit below 1 or above mapping.MaxLiked is an Invalid fault.
func (m *Mappings) MostLiked(ctx context.Context, limit int) (edgeproto.LikedTextures, error) {
	if limit < 1 || limit > edgeproto.MaxLiked {
		return edgeproto.LikedTextures{}, fault.Field("limit", "The limit must be from 1 to %d.", edgeproto.MaxLiked)
	}
	// An answer can be some megabytes: edges that are started together wait for each
	// other.
	select {
	case m.likedSem <- struct{}{}:
		defer func() { <-m.likedSem }()
	case <-ctx.Done():
		return edgeproto.LikedTextures{}, fmt.Errorf("wait for others who ask what is liked: %w", ctx.Err())
	}
	hashes, err := m.store.MostLiked(ctx, limit)
	return edgeproto.LikedTextures{Hashes: hashes}, err
}
