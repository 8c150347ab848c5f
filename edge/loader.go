package edge

import (
	"bytes"
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/veneer-skins/veneer/edge/cache"
	"github.com/veneer-skins/veneer/edge/render"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/tracing"
)

// picture is an encoded picture or a stored file. Requests share it: it must not be changed.
type picture struct {
	etag ETag
	body []byte
}

// loader loads one picture, file or sprite that is not cached.
type loader struct {
	pictures   *Pictures
	requesters *requesters
	variant    Variant // of a sprite, the view alone
	etag       ETag
	permit     *permit // nil before load
}

// newLoader returns a loader for the client network in ctx.
func (p *Pictures) newLoader(ctx context.Context, variant Variant, etag ETag) *loader {
	return &loader{pictures: p, requesters: p.workers.requesters(NetworkOf(ctx)), variant: variant, etag: etag}
}

// child returns a loader of a part of a sprite, which may wait as long as a picture.
func (l *loader) child(requesters *requesters) *loader {
	return &loader{pictures: l.pictures, requesters: requesters, variant: l.variant, permit: l.permit.child()}
}

// picture returns a picture or a file, from the cache or loaded.
func (p *Pictures) picture(ctx context.Context, variant Variant, etag ETag) (picture, cache.Outcome, error) {
	key := variant.appendKey(nil)
	if cached, ok := p.pictureCache.TryGet(key); ok {
		return cached, cache.Hit, nil
	}
	// The spans of the stages are children of the request that starts the load.
	ctx, span := tracing.Start(ctx, "picture")
	l := p.newLoader(ctx, variant, etag)
	get := p.pictureCache.Get
	if variant.isRare() {
		get = p.pictureCache.GetRare
	}
	loaded, outcome, err := get(ctx, key, l.requesters, l.load)
	span.SetAttributes(attribute.Stringer("outcome", outcome))
	tracing.End(span, &err)
	return loaded, outcome, err
}

// load renders the picture, or fetches the file, with a permit of its own.
func (l *loader) load(ctx context.Context) (loaded picture, err error) {
	loaded.etag = l.etag
	if l.permit, err = l.pictures.workers.admit(l.requesters); err != nil {
		return loaded, err
	}
	defer l.permit.release()
	if l.variant.File {
		if byDefault := l.pictures.defaultSheet(l.variant.Texture); byDefault != nil {
			loaded.body, err = byDefault.sheet.PNG()
			return loaded, err
		}
		file, err := l.fetch(ctx, l.requesters, l.variant.Texture)
		loaded.body = bytes.Clone(file) // the buffer it was read into is larger
		return loaded, err
	}
	texture, err := l.texture(ctx, l.variant.Texture)
	worn := decodedTextureFile(skin.Sheet{})
	if err == nil && l.variant.Wear != render.WearNothing {
		worn, err = l.texture(ctx, l.variant.Worn)
	}
	if err != nil {
		// The cache of textures remembers the failure. The back-off of two caches would add up.
		return loaded, cache.Transient(err)
	}
	cost := texture.decodeCost() + worn.decodeCost() + l.pictures.renderer.Cost(l.variant.View, texture.width, worn.width)
	err = l.permit.draw(ctx, l.requesters, cost, func() error {
		loaded.body, err = l.render(ctx, texture, worn)
		return err
	})
	if err == nil {
		l.variant.observeStage(queueing, l.permit.waited)
	}
	return loaded, err
}

// render decodes the textures and renders the picture, on a worker.
func (l *loader) render(ctx context.Context, texture, worn *textureFile) ([]byte, error) {
	sheet, err := texture.decode(ctx, l.variant)
	if err != nil {
		return nil, err
	}
	wornSheet, err := worn.decode(ctx, l.variant)
	if err != nil {
		return nil, err
	}
	body, timing, err := l.pictures.renderer.Render(sheet, wornSheet, l.variant.View)
	if err == nil {
		l.variant.observeRender(ctx, timing)
	}
	return body, err
}

// cachedTexture returns a texture that is a default one or cached, nil for another one.
func (p *Pictures) cachedTexture(hash skin.Hash) *textureFile {
	if byDefault := p.defaultSheet(hash); byDefault != nil {
		return decodedTextureFile(byDefault.sheet)
	}
	texture, _ := p.textureCache.TryGet(hash[:])
	return texture
}

// texture returns a texture, whose file is fetched with the permit of the first loader that needs it.
func (l *loader) texture(ctx context.Context, hash skin.Hash) (*textureFile, error) {
	if texture := l.pictures.cachedTexture(hash); texture != nil {
		return texture, nil
	}
	requesters := l.requesters.newDependency()
	texture, _, err := l.pictures.textureCache.Get(ctx, hash[:], requesters, func(ctx context.Context) (*textureFile, error) {
		file, err := l.fetch(ctx, requesters, hash)
		if err != nil {
			return nil, err
		}
		return newTextureFile(hash, file)
	})
	return texture, err
}

// fetch returns the file of a texture. That takes no worker, and all files count the same cost.
func (l *loader) fetch(ctx context.Context, requesters *requesters, hash skin.Hash) (file []byte, err error) {
	fetches := &l.pictures.workers.fetches
	if err := l.permit.acquire(ctx, fetches, requesters, quantum); err != nil {
		return nil, err
	}
	defer l.pictures.workers.release(fetches)
	start := time.Now()
	ctx, span := tracing.Start(ctx, stageNames[fetching])
	defer tracing.End(span, &err)
	if file, err = l.pictures.files.File(ctx, hash); err == nil {
		l.variant.observeStage(fetching, time.Since(start))
	}
	return file, err
}
