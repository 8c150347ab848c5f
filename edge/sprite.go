package edge

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/veneer-skins/veneer/edge/cache"
	"github.com/veneer-skins/veneer/edge/render"
	"github.com/veneer-skins/veneer/shared/edgeproto"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/skin"
)

// Bounds of sprites.
const (
	MaxSpriteSize    = 64 // of a picture, in pixels
	MaxSpriteColumns = MaxBatch
)

// Sprite is the pictures of many subjects in one.
type Sprite struct {
	Keys    []edgeproto.Key // at most MaxBatch
	Columns int
	// View is the view of each picture, a square of at most MaxSpriteSize. Its Type is filled in from the texture.
	render.View
}

// SpriteResponse is the response to a Sprite.
type SpriteResponse struct {
	Mappings []edgeproto.Mapping // of the keys; their contents must not be changed
	Lookup   LookupResult        // the last one of the constants that any of them has
	// MayBeStale says that caches must not store the response for more than a second.
	MayBeStale bool
	Revision   string // of the renderer
	ETag       ETag
	Outcome    cache.Outcome
	Body       []byte // must not be changed

	sprite Sprite
	tiles  []spriteTile
}

// LookupAll returns the mappings of at most MaxBatch keys as Resolver.LookupAll does.
func (p *Pictures) LookupAll(ctx context.Context, keys []edgeproto.Key) ([]edgeproto.Mapping, LookupResult, error) {
	return p.resolver.LookupAll(ctx, keys)
}

// MayBeStale reports whether one of the mappings may no longer be its key's.
func (p *Pictures) MayBeStale(keys []edgeproto.Key, mappings []edgeproto.Mapping, lookup LookupResult) bool {
	for i, key := range keys {
		if lookup == LookupStale || !p.resolver.IsCurrent(key, mappings[i]) {
			return true
		}
	}
	return false
}

// spriteTile is a skin of a sprite.
type spriteTile struct {
	texture skin.Hash
	model   skin.Type
}

// FindSprite returns the response to a sprite without its body, which LoadSprite loads if it is needed. Subjects
// without a skin have the default avatar.
func (p *Pictures) FindSprite(ctx context.Context, sprite Sprite) (res SpriteResponse, err error) {
	if res.Mappings, res.Lookup, err = p.LookupAll(ctx, sprite.Keys); err != nil {
		return res, err
	}
	res.sprite, res.tiles = sprite, make([]spriteTile, len(res.Mappings))
	for i, mapping := range res.Mappings {
		res.tiles[i] = p.spriteTile(SkinOf(mapping))
	}
	res.Revision = p.revisionOf(sprite.View)
	res.ETag = ETagOf(append(res.key(), res.Revision...))
	res.MayBeStale = p.MayBeStale(sprite.Keys, res.Mappings, res.Lookup)
	return res, nil
}

// LoadSprite adds the body to a response that FindSprite returned. Skins that are missing from the object store are
// replaced by the default avatar, and the entity tag by another one.
func (p *Pictures) LoadSprite(ctx context.Context, res *SpriteResponse) error {
	key := res.key()
	if cached, ok := p.pictureCache.TryGet(key); ok {
		res.Body, res.Outcome = cached.body, cache.Hit
		return nil
	}
	l := p.newLoader(ctx, Variant{View: res.sprite.View}, res.ETag)
	loaded, outcome, err := p.pictureCache.GetRare(ctx, key, l.requesters, func(ctx context.Context) (loaded picture, err error) {
		loaded.etag = l.etag
		loaded.body, err = l.loadSprite(ctx, res.tiles, res.sprite.Columns)
		return loaded, err
	})
	res.Body, res.Outcome = loaded.body, outcome
	res.MayBeStale = p.MayBeStale(res.sprite.Keys, res.Mappings, res.Lookup)
	if incomplete, ok := errors.AsType[incompleteSpriteError](err); ok {
		res.Body, res.Outcome, res.MayBeStale, err = incomplete, cache.MissUncached, true, nil
		res.ETag = ETagOf(res.Body)
	}
	return err
}

// incompleteSpriteError is a sprite with the default avatar in place of skins that are missing from the object
// store. It is an error, since it must not be cached.
type incompleteSpriteError []byte

func (incompleteSpriteError) Error() string { return "a skin is missing" }

// SkinOf returns the skin of a player, of the avatar of a user, or of a texture; nil if a mapping has
// none.
func SkinOf(mapping edgeproto.Mapping) *edgeproto.Texture {
	texture := mapping.Texture
	switch {
	case mapping.Player != nil:
		texture = mapping.Player.Skin
	case mapping.User != nil:
		texture = mapping.User.Texture
	}
	if texture == nil || !texture.Type.IsSkin() {
		return nil
	}
	return texture
}

// spriteTile returns the tile of a skin, or of the default one for nil.
func (p *Pictures) spriteTile(texture *edgeproto.Texture) spriteTile {
	if texture == nil {
		return spriteTile{p.defaultSheets[skin.Classic].hash, skin.Classic}
	}
	return spriteTile{texture.Hash, texture.Type}
}

// key returns the cache key of the sprite. No variant has a key of its length.
func (r *SpriteResponse) key() []byte {
	digest := sha256.New()
	for _, tile := range r.tiles {
		digest.Write(append(tile.texture[:], byte(tile.model)))
	}
	view := Variant{View: r.sprite.View}
	digest.Write(binary.BigEndian.AppendUint16(view.appendKey(nil), uint16(r.sprite.Columns)))
	return digest.Sum([]byte{'s'})
}

const (
	// spriteFetches is how many textures of a sprite are loaded at once, and held.
	spriteFetches = 8
	// spriteJob is the estimated time from which on tiles are drawn as another job, so that other pictures
	// wait for a few tiles and not for a hundred.
	spriteJob = 20 * time.Millisecond
	// encodingPixel is the estimated time to encode a pixel: 100 faces of 32 pixels take 14 ms in all.
	encodingPixel = 100 * time.Nanosecond
)

// loadSprite waits until few enough others are being made, and draws a sprite. It counts the cost of all its
// pictures, so that among sprites a network is shed by the number of its pictures.
func (l *loader) loadSprite(ctx context.Context, tiles []spriteTile, columns int) (body []byte, err error) {
	if l.permit, err = l.pictures.workers.admit(l.requesters); err != nil {
		return nil, err
	}
	defer l.permit.release()
	const usualWidth = 64 // the textures are not known yet
	cost := time.Duration(len(tiles)) * l.pictures.renderer.Cost(l.variant.View, usualWidth, 0)
	needsFiles := slices.ContainsFunc(tiles, func(tile spriteTile) bool { return l.pictures.cachedTexture(tile.texture) == nil })
	err = l.permit.runSprite(ctx, l.requesters, cost, needsFiles, func() error {
		body, err = l.drawSprite(ctx, tiles, columns)
		return err
	})
	return body, err
}

// drawSprite draws a sprite. Each texture and each group of tiles may wait as long as a picture. It holds the
// sprite, of at most 3.2 MB, and the textures of spriteFetches tiles.
func (l *loader) drawSprite(ctx context.Context, tiles []spriteTile, columns int) (body []byte, err error) {
	sprite := render.NewSprite(len(tiles), columns, l.variant.ShownSize())
	isComplete, timing, waited := true, render.Timing{}, l.permit.waited
	for first := 0; first < len(tiles); first += spriteFetches {
		some := tiles[first:min(first+spriteFetches, len(tiles))]
		textures, err := l.spriteTextures(ctx, some)
		if err != nil {
			return nil, cache.Transient(err)
		}
		for i, texture := range textures {
			if texture == nil {
				isComplete = false
				some[i] = l.pictures.spriteTile(nil)
				textures[i] = l.pictures.cachedTexture(some[i].texture)
			}
		}
		child := l.child(l.requesters)
		took, err := child.drawTiles(ctx, sprite, first, some, textures)
		if err != nil {
			return nil, err
		}
		timing.Drawing += took
		waited += child.permit.waited
	}
	encoding := time.Duration(sprite.Width*sprite.Height) * encodingPixel
	child := l.permit.child()
	err = child.draw(ctx, l.requesters, encoding, func() error {
		began := time.Now()
		body, err = l.pictures.renderer.Encode(sprite, l.variant.Format)
		timing.Encoding = time.Since(began)
		return err
	})
	if err != nil {
		return nil, err
	}
	l.variant.observeRender(ctx, timing)
	l.variant.observeStage(queueing, waited+child.waited)
	if !isComplete {
		return nil, cache.Transient(incompleteSpriteError(body))
	}
	return body, nil
}

// spriteTextures loads the textures of tiles. It returns nil for those that are missing from the object
// store.
func (l *loader) spriteTextures(ctx context.Context, tiles []spriteTile) ([]*textureFile, error) {
	textures := make([]*textureFile, len(tiles))
	group, ctx := errgroup.WithContext(ctx)
	for i, tile := range tiles {
		group.Go(func() (err error) {
			child := l.child(l.pictures.workers.requesters(NetworkOf(ctx)))
			if textures[i], err = child.texture(ctx, tile.texture); fault.KindOf(err) == fault.NotFound {
				return nil
			}
			return err
		})
	}
	return textures, group.Wait()
}

// drawTiles draws the tiles of a sprite from the number first on, in jobs of about spriteJob.
func (l *loader) drawTiles(ctx context.Context, sprite render.Picture, first int, tiles []spriteTile, textures []*textureFile) (took time.Duration, err error) {
	variant, renderer := l.variant, l.pictures.renderer
	for from := 0; from < len(tiles); {
		to, cost := from, time.Duration(0)
		for ; to < len(tiles) && cost < spriteJob; to++ {
			variant.Type = tiles[to].model
			cost += textures[to].decodeCost() + renderer.Cost(variant.View, textures[to].width, 0)
		}
		err = l.permit.draw(ctx, l.requesters, cost, func() error {
			began := time.Now()
			defer func() { took += time.Since(began) }()
			for i := from; i < to; i++ {
				variant.Type = tiles[i].model
				sheet, err := textures[i].decode(ctx, variant)
				if err != nil {
					return err
				}
				if err := renderer.DrawTile(sprite, first+i, sheet, variant.View); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return took, err
		}
		from = to
	}
	return took, nil
}
