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

// GetSprite returns the response to a sprite. Subjects without a skin, or with one that is missing
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
	res.ETag = ETagOf(append(slices.Clip(key), p.revision...))
	if needsBody, err := precondition(&res); err != nil || !needsBody {
		return res, err
	}
	if cached, ok := p.pictureCache.TryGet(key); ok {
		res.Body, res.Outcome = cached.body, cache.Hit
		return res, nil
	}
	demand := p.workers.demand(NetworkOf(ctx))
	loaded, outcome, err := p.pictureCache.GetRare(ctx, key, demand, func(ctx context.Context) (picture, error) {
		body, err := p.loadSprite(ctx, demand, tiles, &sprite)
		return picture{etag: res.ETag, body: body}, err
	})
	res.Body, res.Outcome = loaded.body, outcome
	if incomplete, ok := errors.AsType[incompleteSpriteError](err); ok {
		res.Body, res.Outcome, res.MayBeStale, err = incomplete, cache.MissUncached, true, nil
		res.ETag = ETagOf(res.Body)
	}
	return res, err
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
func (p *Pictures) loadSprite(ctx context.Context, demand *demand, tiles []spriteTile, sprite *Sprite) (body []byte, err error) {
	permit, err := p.workers.admit(demand)
	if err != nil {
		return nil, err
	}
	defer permit.release()
	const usualWidth = 64 // the textures are not known yet
	cost := time.Duration(len(tiles)) * p.renderer.Cost(sprite.View, usualWidth, 0)
	needsFiles := slices.ContainsFunc(tiles, func(tile spriteTile) bool { return p.cachedTexture(tile.texture) == nil })
	err = permit.compose(ctx, demand, cost, needsFiles, func() error {
		body, err = p.drawSprite(ctx, permit, demand, tiles, sprite)
		return err
	})
	return body, err
}

// drawSprite draws a sprite. Each texture and each group of tiles may wait as long as a picture. It holds the
// sprite, of at most 3.2 MB, and the textures of spriteFetches tiles.
func (p *Pictures) drawSprite(ctx context.Context, permit *permit, demand *demand, tiles []spriteTile, sprite *Sprite) (body []byte, err error) {
	picture := render.NewSprite(len(tiles), sprite.Columns, sprite.Size)
	isComplete, timing, waited := true, render.Timing{}, permit.waited
	for first := 0; first < len(tiles); first += spriteFetches {
		some := tiles[first:min(first+spriteFetches, len(tiles))]
		textures, err := p.spriteTextures(ctx, permit, some, sprite.Mode)
		if err != nil {
			return nil, cache.Transient(err)
		}
		for i, texture := range textures {
			if texture == nil {
				isComplete = false
				some[i] = p.spriteTile(nil)
				textures[i] = p.cachedTexture(some[i].texture)
			}
		}
		part := permit.part()
		took, err := p.drawTiles(ctx, part, demand, picture, first, some, textures, sprite.View)
		if err != nil {
			return nil, err
		}
		timing.Drawing += took
		waited += part.waited
	}
	variant := Variant{View: sprite.View}
	encoding := time.Duration(picture.Width*picture.Height) * encodingPixel
	part := permit.part()
	err = part.draw(ctx, demand, encoding, func() error {
		began := time.Now()
		body, err = p.renderer.Encode(picture, sprite.Format)
		timing.Encoding = time.Since(began)
		return err
	})
	if err != nil {
		return nil, err
	}
	variant.observeRender(ctx, timing)
	variant.observeStage(queueing, waited+part.waited)
	if !isComplete {
		return nil, cache.Transient(incompleteSpriteError(body))
	}
	return body, nil
}

// spriteTextures loads the textures of tiles. It returns nil for those that are missing from the object
// store.
func (p *Pictures) spriteTextures(ctx context.Context, permit *permit, tiles []spriteTile, mode render.Mode) ([]*textureFile, error) {
	textures := make([]*textureFile, len(tiles))
	group, ctx := errgroup.WithContext(ctx)
	for i, tile := range tiles {
		group.Go(func() (err error) {
			demand := p.workers.demand(NetworkOf(ctx))
			textures[i], err = p.texture(ctx, permit.part(), demand, tile.texture, Variant{View: render.View{Mode: mode}})
			if fault.KindOf(err) == fault.NotFound {
				return nil
			}
			return err
		})
	}
	return textures, group.Wait()
}

// drawTiles draws the tiles of a sprite from the number first on, in jobs of about spriteJob.
func (p *Pictures) drawTiles(ctx context.Context, permit *permit, demand *demand, sprite render.Picture, first int, tiles []spriteTile, textures []*textureFile, view render.View) (took time.Duration, err error) {
	for from := 0; from < len(tiles); {
		to, cost := from, time.Duration(0)
		for ; to < len(tiles) && cost < spriteJob; to++ {
			view.Type = tiles[to].model
			cost += textures[to].decodeCost() + p.renderer.Cost(view, textures[to].width, 0)
		}
		err = permit.draw(ctx, demand, cost, func() error {
			began := time.Now()
			defer func() { took += time.Since(began) }()
			for i := from; i < to; i++ {
				view.Type = tiles[i].model
				sheet, err := textures[i].decode(ctx, Variant{View: view})
				if err != nil {
					return err
				}
				if err := p.renderer.DrawTile(sprite, first+i, sheet, view); err != nil {
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
