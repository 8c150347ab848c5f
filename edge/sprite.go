package edge

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"sync"
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
	// View is that of each picture, which is a square of at most MaxSpriteSize, without the type.
	render.View
}

// SpriteResponse is the response to a Sprite.
type SpriteResponse struct {
	Mappings []edgeproto.Mapping // of the keys; their contents must not be changed
	Lookup   LookupResult        // the last one of the constants that any of them has
	// MayBeStale says that caches must not store the response for more than a second.
	MayBeStale bool
	ETag       ETag
	Outcome    cache.Outcome
	Body       []byte // must not be changed
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

// GetSprite returns the response to a sprite. Subjects without a skin, and those whose skin is missing
// from the object store, have the default avatar. The entity tag is known before anything is loaded;
// the precondition is as for Get.
func (p *Pictures) GetSprite(ctx context.Context, sprite Sprite, precondition func(*SpriteResponse) (needsBody bool, err error)) (res SpriteResponse, err error) {
	if res.Mappings, res.Lookup, err = p.LookupAll(ctx, sprite.Keys); err != nil {
		return res, err
	}
	defer func() {
		res.MayBeStale = res.MayBeStale || p.MayBeStale(sprite.Keys, res.Mappings, res.Lookup)
	}()
	if sprite.Format == render.WebP && !p.canWebP {
		sprite.Format = render.PNG
	}
	tiles := make([]spriteTile, len(res.Mappings))
	for i, mapping := range res.Mappings {
		tiles[i] = p.spriteTile(SkinOf(mapping))
	}
	key := spriteKey(tiles, &sprite)
	res.ETag = p.spriteETag(key)
	if needsBody, err := precondition(&res); err != nil || !needsBody {
		return res, err
	}
	if cached, ok := p.pictureCache.TryGet(key); ok {
		res.Body, res.Outcome = cached.body, cache.Hit
		return res, nil
	}
	textures, hasMissing, err := p.spriteTextures(ctx, tiles, sprite.Mode)
	if err != nil {
		return res, err
	}
	if hasMissing {
		res.MayBeStale = true
		key = spriteKey(tiles, &sprite)
		res.ETag = p.spriteETag(key)
	}
	demand := p.workers.demand(NetworkOf(ctx))
	loaded, outcome, err := p.pictureCache.GetRare(ctx, key, demand, func(ctx context.Context) (picture, error) {
		body, err := p.drawSprite(ctx, demand, tiles, textures, &sprite)
		return picture{etag: res.ETag, body: body}, err
	})
	res.Body, res.Outcome = loaded.body, outcome
	return res, err
}

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

// spriteTile returns the tile of a skin, nil for none.
func (p *Pictures) spriteTile(texture *edgeproto.Texture) spriteTile {
	if texture == nil {
		return spriteTile{p.defaultSkins[skin.Classic].hash, skin.Classic}
	}
	return spriteTile{texture.Hash, texture.Type}
}

// spriteKey returns the cache key of a sprite, which is as long as that of no variant.
func spriteKey(tiles []spriteTile, sprite *Sprite) []byte {
	digest := sha256.New()
	for _, tile := range tiles {
		digest.Write(append(tile.texture[:], byte(tile.model)))
	}
	view := Variant{View: sprite.View}
	digest.Write(binary.BigEndian.AppendUint16(view.appendKey(nil), uint16(sprite.Columns)))
	return digest.Sum([]byte{'s'})
}

// spriteETag returns the entity tag of a sprite.
func (p *Pictures) spriteETag(key []byte) ETag {
	return ETagOf(append(slices.Clip(key), p.revision...))
}

// spriteFetches is how many textures of a sprite are loaded at once.
const spriteFetches = 8

// spriteTextures loads the textures of tiles, each with a permit of its own, so that a sprite counts as
// so many pictures. It puts the default avatar in place of those that are missing from the object store.
func (p *Pictures) spriteTextures(ctx context.Context, tiles []spriteTile, mode render.Mode) (textures []*textureFile, hasMissing bool, err error) {
	textures = make([]*textureFile, len(tiles))
	var group errgroup.Group
	group.SetLimit(spriteFetches)
	var mu sync.Mutex // guards hasMissing
	for i := range tiles {
		group.Go(func() error {
			texture, err := p.spriteTexture(ctx, tiles[i].texture, mode)
			if fault.KindOf(err) == fault.NotFound {
				tiles[i] = p.spriteTile(nil)
				mu.Lock()
				hasMissing = true
				mu.Unlock()
				texture, err = p.spriteTexture(ctx, tiles[i].texture, mode)
			}
			textures[i] = texture
			return err
		})
	}
	err = group.Wait()
	return textures, hasMissing, err
}

// spriteTexture loads the texture of a tile. One that is cached takes no permit.
func (p *Pictures) spriteTexture(ctx context.Context, hash skin.Hash, mode render.Mode) (*textureFile, error) {
	if texture := p.cachedTexture(hash); texture != nil {
		return texture, nil
	}
	demand := p.workers.demand(NetworkOf(ctx))
	permit, err := p.workers.admit(demand)
	if err != nil {
		return nil, err
	}
	defer permit.release()
	return p.texture(ctx, permit, demand, hash, Variant{View: render.View{Mode: mode}})
}

// drawSprite draws a sprite as one job.
func (p *Pictures) drawSprite(ctx context.Context, demand *demand, tiles []spriteTile, textures []*textureFile, sprite *Sprite) (body []byte, err error) {
	permit, err := p.workers.admit(demand)
	if err != nil {
		return nil, err
	}
	defer permit.release()
	variant := Variant{View: sprite.View}
	var cost time.Duration
	view := sprite.View
	for i, texture := range textures {
		view.Type = tiles[i].model
		cost += texture.decodeCost() + p.renderer.Cost(view, texture.width, 0)
	}
	err = permit.draw(ctx, demand, cost, func() error {
		drawn := make([]render.Tile, len(tiles))
		for i, texture := range textures {
			sheet, err := texture.decode(ctx, variant)
			if err != nil {
				return err
			}
			drawn[i] = render.Tile{Sheet: sheet, Type: tiles[i].model}
		}
		var timing render.Timing
		if body, timing, err = p.renderer.RenderSprite(drawn, sprite.View, sprite.Columns); err == nil {
			variant.observeRender(ctx, timing)
		}
		return err
	})
	if err == nil {
		variant.observeStage(queueing, permit.waited)
	}
	return body, err
}
