package core

import (
	"context"

	"github.com/veneer-skins/veneer/shared/casefold"
	"github.com/veneer-skins/veneer/shared/edgeproto"
	"github.com/veneer-skins/veneer/shared/fault"
)

// Walls are the public skins on the front page, without those about which a report is open.
type Walls struct {
	Newest, MostLiked []Texture
}

// WornPlayer is a player with the textures that it wears.
type WornPlayer struct {
	NamedPlayer
	ID         PlayerID
	Skin, Cape *Texture // nil for none
}

// ShowcaseStore finds what the pages for visitors show.
type ShowcaseStore interface {
	// Walls returns at most limit skins in each order. A wall may be shorter than the site has skins if
	// reports are open about hundreds of those in front.
	Walls(ctx context.Context, limit int) (Walls, error)

	// WornPlayer returns the player with a comparison key, or a NotFound fault.
	WornPlayer(ctx context.Context, key string) (WornPlayer, error)

	// Texture returns a texture, or a NotFound fault.
	Texture(ctx context.Context, texture TextureID) (Texture, error)
}

// Showcase is what the site shows to visitors.
type Showcase struct{ store ShowcaseStore }

// NewShowcase returns the showcase of a store.
func NewShowcase(store ShowcaseStore) *Showcase { return &Showcase{store} }

// Walls returns at most limit of the newest and of the most liked skins.
func (s *Showcase) Walls(ctx context.Context, limit int) (Walls, error) {
	return s.store.Walls(ctx, limit)
}

// Player returns a player by its name, without regard to case, or a NotFound fault.
func (s *Showcase) Player(ctx context.Context, name string) (WornPlayer, error) {
	if len(name) > edgeproto.MaxNameBytes || !isPrintable(name) {
		return WornPlayer{}, errNoPlayer
	}
	return s.store.WornPlayer(ctx, casefold.Key(name))
}

// Texture returns a public texture. A private one is a NotFound fault, as an unknown one.
func (s *Showcase) Texture(ctx context.Context, tid TextureID) (Texture, error) {
	texture, err := s.store.Texture(ctx, tid)
	if err == nil && !texture.Public {
		err = fault.New(fault.NotFound, "There is no texture %d.", tid)
	}
	return texture, err
}

// OnChange has apply called with the keys that changes name, before edges and CDNs are told of them;
// isComplete is false if other keys may have changed as well. It is called before Run.
func (f *Feed) OnChange(apply func(keys []edgeproto.Key, isComplete bool)) {
	f.subscribe(func(polled polledChanges) {
		var keys []edgeproto.Key
		for _, change := range polled.changes {
			keys = append(keys, change.Keys...)
		}
		apply(keys, polled.complete)
	})
}
