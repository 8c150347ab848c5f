// Package edge renders pictures of textures and caches them. It is stateless: everything in
// it can be fetched again.
//
// A request names a picture by a key, of which the meaning may change: a player's name, a
// user, a number. Resolver maps such a key to a texture. It asks core once, caches the
// mapping, and drops it within milliseconds of a change, because core streams the changes of
// all keys to every edge.
//
// A texture is a file that is named by its hash, and never changes. A Variant is that hash
// together with everything else that decides what the picture looks like. So a cached
// picture never expires, and a Variant is its cache key and, together with the renderer's
// revision, its entity tag.
//
// Pictures.TryGet responds from the caches alone, and Pictures.Get does everything else: look
// the key up, get the texture from a second cache or from the object store, wait for a worker,
// render. Concurrent requests for a picture share one load, which continues when a client
// disconnects. Workers decode and render on threads of a lower priority, and their queue is
// bounded, so that cache hits stay fast. When more pictures are requested than can be
// rendered, client networks have equal shares of the workers, whatever the number of their
// requests.
//
// Package api is HTTP in and out, cache the byte-bounded cache, origin the client of core and
// of the object store, render the renderer. This package declares what it needs of origin and
// render as small interfaces.
package edge

import (
	"bytes"
	"context"
	"fmt"
	"net/netip"
	"runtime"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"go.opentelemetry.io/otel/attribute"

	"github.com/veneer-skins/veneer/edge/cache"
	"github.com/veneer-skins/veneer/edge/render"
	"github.com/veneer-skins/veneer/shared/edgeproto"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/tracing"
)

// Config bounds the memory and the processor time of pictures.
type Config struct {
	CacheBytes           int64         `env:"CACHE_BYTES" envDefault:"268435456" help:"memory for cached pictures, in bytes"`
	SheetBytes           int64         `env:"SHEET_BYTES" envDefault:"8388608" help:"memory for decoded textures, in bytes"`
	RenderWorkers        int           `env:"RENDER_WORKERS" envDefault:"0" help:"most pictures that are rendered at once; 0 means one less than there are cores, but at least one; each may take 58 MiB"`
	RenderQueuePerWorker int           `env:"RENDER_QUEUE_PER_WORKER" envDefault:"64" help:"most pictures that are fetched or wait to be rendered, for each worker; beyond that the newest one of the client network (IPv4 /24, IPv6 /56) with the most work waiting is answered with 503"`
	RenderQueueTimeout   time.Duration `env:"RENDER_QUEUE_TIMEOUT" envDefault:"1s" help:"longest time that a picture waits to be rendered before it is answered with 503"`
}

// Workers returns how many pictures are rendered at once.
func (c Config) Workers() int {
	if c.RenderWorkers > 0 {
		return c.RenderWorkers
	}
	return max(1, runtime.GOMAXPROCS(0)-1)
}

// maxWorkers bounds RENDER_WORKERS. Each worker is a thread.
const maxWorkers = 1024

// loadTimeout bounds the loading of one picture or texture, which no request's deadline
// does: several requests may wait for it.
const loadTimeout = 15 * time.Second

// Files fetches the files of textures.
type Files interface {
	// File returns a NotFound fault only when the store is known to hold no such
	// file.
	File(ctx context.Context, hash skin.Hash) ([]byte, error)
}

// Renderer renders pictures.
type Renderer interface {
	// Render returns the encoded picture of a sheet, and how long that took. worn is the sheet of
	// what the figure wears on its back, zero for nothing. The caller bounds how many calls run at
	// once.
	Render(sheet, worn skin.Sheet, view render.View) ([]byte, render.Timing, error)
	// DrawTile draws a view of a sheet as the picture with a number of a sprite, and Encode encodes that.
	DrawTile(sprite render.Picture, number int, sheet skin.Sheet, view render.View) error
	Encode(picture render.Picture, format render.Format) ([]byte, error)
	// Cost estimates how long Render takes for sheets of these widths in texels.
	Cost(view render.View, width, wornWidth int) time.Duration
	// RevisionOf changes whenever the bytes that Render returns for a view could.
	RevisionOf(view render.View) string
	// CanWebP reports whether WebP can be written.
	CanWebP() bool
}

// Pictures returns pictures and texture files: from its cache, or loaded once for all
// concurrent requests.
type Pictures struct {
	resolver *Resolver
	files    Files
	renderer Renderer
	revision string
	canWebP  bool

	defaultSkins [skin.Slim + 1]defaultSkin // by model

	exactRevision string // of pictures of exact sizes

	pictureCache *cache.Cache[picture]
	textureCache *cache.Cache[*textureFile]
	workers      *workerPool
}

// NewPictures returns pictures of the textures that a resolver finds. classic is the
// skin of the default avatar of that model. Errors begin with the name of a setting.
func NewPictures(config Config, resolver *Resolver, files Files, renderer Renderer, classic skin.Sheet) (*Pictures, error) {
	switch {
	case config.RenderWorkers < 0 || config.RenderWorkers > maxWorkers:
		return nil, fmt.Errorf("RENDER_WORKERS is %d, but must be 0 to %d", config.RenderWorkers, maxWorkers)
	case config.RenderQueuePerWorker < 0:
		return nil, fmt.Errorf("RENDER_QUEUE_PER_WORKER is %d, but must not be negative", config.RenderQueuePerWorker)
	case config.RenderQueueTimeout <= 0:
		return nil, fmt.Errorf("RENDER_QUEUE_TIMEOUT is %s, but must be longer than 0", config.RenderQueueTimeout)
	}
	pictureCache, err := newPictureCache(config.CacheBytes, time.Now)
	if err != nil {
		return nil, fmt.Errorf("CACHE_BYTES %w", err)
	}
	textureCache, err := newTextureCache(config.SheetBytes, time.Now)
	if err != nil {
		return nil, fmt.Errorf("SHEET_BYTES %w", err)
	}
	return &Pictures{
		resolver:      resolver,
		files:         files,
		renderer:      renderer,
		revision:      renderer.RevisionOf(render.View{}),
		canWebP:       renderer.CanWebP(),
		exactRevision: renderer.RevisionOf(render.View{Exact: 1}),
		defaultSkins:  newDefaultSkins(classic),
		pictureCache:  pictureCache,
		textureCache:  textureCache,
		workers:       newWorkerPool(config.Workers(), config.Workers()*config.RenderQueuePerWorker, config.RenderQueueTimeout),
	}, nil
}

func newPictureCache(bytes int64, now func() time.Time) (*cache.Cache[picture], error) {
	return cache.New(cache.Options[picture]{
		Name: "picture", Bytes: bytes, TypicalSize: 1 << 10, LoadTimeout: loadTimeout, Now: now,
		Size: func(picture picture) int { return cap(picture.body) },
	})
}

func newTextureCache(bytes int64, now func() time.Time) (*cache.Cache[*textureFile], error) {
	return cache.New(cache.Options[*textureFile]{
		Name: "sheet", Bytes: bytes, TypicalSize: 16 << 10, LoadTimeout: loadTimeout, Now: now,
		Size: (*textureFile).size,
	})
}

// Close waits until the pictures being rendered are finished, and rejects further ones. The
// renderer may be closed then.
func (p *Pictures) Close() { p.workers.close() }

// Expose registers the metrics of the caches and of the workers.
func (p *Pictures) Expose(registry prometheus.Registerer) {
	register := promauto.With(registry)
	p.pictureCache.Expose(register)
	p.textureCache.Expose(register)
	p.workers.expose(register)
}

// Revision returns the revision of the renderer behind the pictures of a view.
func (p *Pictures) Revision(view render.View) string {
	if view.Exact != 0 {
		return p.exactRevision
	}
	return p.revision
}

// CanWebP reports whether pictures can be WebP.
func (p *Pictures) CanWebP() bool { return p.canWebP }

// TryGet returns the response to a request if the mapping is cached and valid at a time, which
// is now or just was, and the picture is cached. It does not keep the request's key. It
// allocates once in 64 calls, in the access log of the cache.
func (p *Pictures) TryGet(req Request, at time.Time) (res Response, ok bool) {
	if req.Key != "" {
		if res.Mapping, ok = p.resolver.TryLookup(req.Key, at); !ok {
			return res, false
		}
	}
	if p.setVariant(&req, &res); res.Err != nil || req.Kind == KindProfile {
		return res, true
	}
	var key [variantKeySize]byte
	cached, ok := p.pictureCache.TryGet(res.Variant.appendKey(key[:0]))
	res.ETag, res.Body = cached.etag, cached.body
	return res, ok
}

// Precondition evaluates the conditions of a request on a response without its body, and
// reports whether the body is needed. An error ends the request.
type Precondition func(res *Response) (needsBody bool, err error)

// maxTries bounds how often a response is made because the mapping has changed in the
// meantime.
const maxTries = 3

// Get returns the response to a request: it looks up, fetches and renders what is not cached.
// The cost counts for the client network in ctx. The body is not loaded unless the
// precondition needs it.
//
// An Unavailable fault says that core or the object store is unreachable, or that there is too
// much load. A NotFound fault says that a texture's file is missing from the object store.
func (p *Pictures) Get(ctx context.Context, req Request, precondition Precondition) (Response, error) {
	req.Key = edgeproto.Key(strings.Clone(string(req.Key))) // the resolver keeps it
	var res Response
	for try := 1; ; try++ {
		if err := p.get(ctx, req, precondition, &res); err != nil {
			return Response{}, err
		}
		// A CDN may have been purged because of a change in the meantime, and must not keep
		// the response from before it for more than a second.
		res.MayBeStale = res.Lookup == LookupStale || req.Key != "" && !p.resolver.IsCurrent(req.Key, res.Mapping)
		if !res.MayBeStale || res.Lookup == LookupStale || try == maxTries {
			return res, nil
		}
	}
}

// get makes a response by the current mapping of its key.
func (p *Pictures) get(ctx context.Context, req Request, precondition Precondition, res *Response) (err error) {
	if req.Key != "" {
		if res.Mapping, res.Lookup, err = p.resolver.Lookup(ctx, req.Key); err != nil {
			return err
		}
	}
	if p.setVariant(&req, res); res.Err != nil {
		return nil //nolint:nilerr // it is part of the response
	}
	if req.Kind != KindProfile {
		res.ETag = p.etag(res.Variant)
	}
	needsBody, err := precondition(res)
	if err != nil || !needsBody || req.Kind == KindProfile {
		return err
	}
	var loaded picture
	loaded, res.Outcome, err = p.picture(ctx, res.Variant)
	res.Body = loaded.body
	return err
}

// WouldReject returns the fault with which Get would reject a request at once if the mapping
// of its key is not cached, nil if none. The network is that of the client, the zero Prefix if
// it is unknown.
func (p *Pictures) WouldReject(req Request, network netip.Prefix) error {
	if req.Key == "" {
		return nil
	}
	return p.resolver.WouldReject(req.Key, network)
}

// picture is an encoded picture or a stored file. Requests share it: it must not be changed.
type picture struct {
	etag ETag
	body []byte
}

// picture returns the picture of a view, from the cache or loaded.
func (p *Pictures) picture(ctx context.Context, variant Variant) (picture, cache.Outcome, error) {
	key := variant.appendKey(nil)
	if cached, ok := p.pictureCache.TryGet(key); ok {
		return cached, cache.Hit, nil
	}
	// The spans of the stages are children of the request that starts the load.
	ctx, span := tracing.Start(ctx, "picture")
	demand := p.workers.demand(NetworkOf(ctx))
	get := p.pictureCache.Get
	if variant.isRare() {
		get = p.pictureCache.GetRare
	}
	loaded, outcome, err := get(ctx, key, demand, func(ctx context.Context) (picture, error) {
		body, err := p.load(ctx, demand, variant)
		return picture{etag: p.etag(variant), body: body}, err
	})
	span.SetAttributes(attribute.Stringer("outcome", outcome))
	tracing.End(span, &err)
	return loaded, outcome, err
}

// load renders a picture, or fetches a file, with a permit of its own.
func (p *Pictures) load(ctx context.Context, demand *demand, variant Variant) (body []byte, err error) {
	permit, err := p.workers.admit(demand)
	if err != nil {
		return nil, err
	}
	defer permit.release()
	if variant.File {
		file, err := p.fetch(ctx, permit, demand, variant.Texture, variant)
		return bytes.Clone(file), err // the buffer it was read into is larger
	}
	texture, err := p.texture(ctx, permit, demand, variant.Texture, variant)
	worn := decodedTextureFile(skin.Sheet{})
	if err == nil && variant.Wear != render.WearNothing {
		worn, err = p.texture(ctx, permit, demand, variant.Worn, variant)
	}
	if err != nil {
		// The cache of textures remembers the failure. The back-off of two caches would add up.
		return nil, cache.Transient(err)
	}
	cost := texture.decodeCost() + worn.decodeCost() + p.renderer.Cost(variant.View, texture.width, worn.width)
	err = permit.draw(ctx, demand, cost, func() error {
		sheet, err := texture.decode(ctx, variant)
		if err != nil {
			return err
		}
		wornSheet, err := worn.decode(ctx, variant)
		if err != nil {
			return err
		}
		var timing render.Timing
		if body, timing, err = p.renderer.Render(sheet, wornSheet, variant.View); err == nil {
			variant.observeRender(ctx, timing)
		}
		return err
	})
	if err == nil {
		variant.observeStage(queueing, permit.waited)
	}
	return body, err
}

// cachedTexture returns a texture that is a default one or cached, nil for another one.
func (p *Pictures) cachedTexture(hash skin.Hash) *textureFile {
	for _, model := range []skin.Type{skin.Classic, skin.Slim} {
		if byDefault := &p.defaultSkins[model]; hash == byDefault.hash {
			return decodedTextureFile(byDefault.sheet)
		}
	}
	texture, _ := p.textureCache.TryGet(hash[:])
	return texture
}

// texture returns a texture of a variant. Its file is fetched with the permit of the first picture
// that needs it.
func (p *Pictures) texture(ctx context.Context, permit *permit, demand *demand, hash skin.Hash, variant Variant) (*textureFile, error) {
	if texture := p.cachedTexture(hash); texture != nil {
		return texture, nil
	}
	part := demand.newDependency()
	texture, _, err := p.textureCache.Get(ctx, hash[:], part, func(ctx context.Context) (*textureFile, error) {
		file, err := p.fetch(ctx, permit, part, hash, variant)
		if err != nil {
			return nil, err
		}
		return newTextureFile(hash, file)
	})
	return texture, err
}

// fetch returns the file of a texture of a variant.
func (p *Pictures) fetch(ctx context.Context, permit *permit, demand *demand, hash skin.Hash, variant Variant) (file []byte, err error) {
	err = permit.fetch(ctx, demand, func() (err error) {
		start := time.Now()
		ctx, span := tracing.Start(ctx, stageNames[fetching])
		defer tracing.End(span, &err)
		if file, err = p.files.File(ctx, hash); err == nil {
			variant.observeStage(fetching, time.Since(start))
		}
		return err
	})
	return file, err
}
