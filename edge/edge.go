// Package edge renders pictures of textures and caches them. It is stateless: everything in
// it can be fetched again.
//
// A request names a picture by a key, whose meaning may change: a player's name, a
// user, a number. Resolver maps such a key to a texture. It asks core once, caches the
// mapping, and drops it within milliseconds of a change, because core streams the changes of
// all keys to every edge.
//
// A texture is a file that is named by its hash, and never changes. A Variant is that hash
// together with everything else that decides what the picture looks like. So a cached
// picture never expires, and a Variant is its cache key and, together with the renderer's
// revision, its entity tag.
//
// Pictures.TryGet responds from the caches alone. Otherwise Pictures.Find looks the key up, and
// Pictures.Load gets the texture from a second cache or from the object store, waits for a
// worker, and renders. Concurrent requests for a picture share one load, which continues when a client
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
	"context"
	"net/netip"
	"runtime"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/veneer-skins/veneer/edge/cache"
	"github.com/veneer-skins/veneer/edge/render"
	"github.com/veneer-skins/veneer/shared/edgeproto"
	"github.com/veneer-skins/veneer/shared/skin"
)

// Config bounds the memory and the processor time of pictures.
// Its settings are EDGE_CACHE_BYTES, EDGE_CACHE_DIR, EDGE_CACHE_DIR_BYTES, EDGE_TEXTURE_CACHE_BYTES, EDGE_RENDER_WORKERS,
// EDGE_RENDER_QUEUE_PER_WORKER, EDGE_RENDER_QUEUE_TIMEOUT.
type Config struct {
	CacheBytes           int64         `env:"CACHE_BYTES" envDefault:"268435456" min:"1048576" help:"memory for cached pictures, in bytes"`
	CacheDir             string        `env:"CACHE_DIR" example:"/var/cache/veneer" help:"existing directory that keeps the hottest pictures of this edge across restarts; empty disables it"`
	CacheDirBytes        int64         `env:"CACHE_DIR_BYTES" envDefault:"134217728" min:"1048576" help:"maximum bytes of pictures in that directory, twice as many while they are written; writing and reading take five seconds at most"`
	TextureCacheBytes    int64         `env:"TEXTURE_CACHE_BYTES" envDefault:"8388608" min:"1048576" help:"memory for decoded textures, in bytes"`
	RenderWorkers        int           `env:"RENDER_WORKERS" envDefault:"0" min:"0" max:"1024" help:"most pictures that are rendered at once; 0 means one less than there are cores, but at least one; each may take 58 MiB"`
	RenderQueuePerWorker int           `env:"RENDER_QUEUE_PER_WORKER" envDefault:"64" min:"0" help:"most pictures that are fetched or wait to be rendered, for each worker; beyond that the newest one of the client network (IPv4 /24, IPv6 /56) with the most work waiting is answered with 503"`
	RenderQueueTimeout   time.Duration `env:"RENDER_QUEUE_TIMEOUT" envDefault:"1s" above:"0s" help:"longest time that a picture waits to be rendered before it is answered with 503"`
}

// Workers returns how many pictures are rendered at once.
func (c Config) Workers() int {
	if c.RenderWorkers > 0 {
		return c.RenderWorkers
	}
	return max(1, runtime.GOMAXPROCS(0)-1)
}

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
}

// Pictures returns pictures and texture files: from its cache, or loaded once for all
// concurrent requests.
type Pictures struct {
	resolver *Resolver
	files    Files
	renderer Renderer

	defaultSheets [skin.Slim + 1]defaultSheet // by model
	// Revisions of the renderer, for most pictures and for exact sizes.
	revision, exactRevision string

	pictureCache *cache.Cache[picture]
	textureCache *cache.Cache[*textureFile]
	workers      *workerPool
}

// NewPictures returns pictures of the textures that a resolver finds. classic is the
// skin of the default avatar of that model.
func NewPictures(cfg Config, resolver *Resolver, files Files, renderer Renderer, classic skin.Sheet) *Pictures {
	return &Pictures{
		resolver:      resolver,
		files:         files,
		renderer:      renderer,
		revision:      renderer.RevisionOf(render.View{}),
		exactRevision: renderer.RevisionOf(render.View{Exact: 1}),
		defaultSheets: newDefaultSheets(classic),
		pictureCache:  newPictureCache(cfg.CacheBytes, time.Now),
		textureCache:  newTextureCache(cfg.TextureCacheBytes, time.Now),
		workers:       newWorkerPool(cfg.Workers(), cfg.Workers()*cfg.RenderQueuePerWorker, cfg.RenderQueueTimeout),
	}
}

func newPictureCache(bytes int64, now func() time.Time) *cache.Cache[picture] {
	return cache.New(cache.Options[picture]{
		Name: "picture", Bytes: bytes, TypicalSize: 1 << 10, LoadTimeout: loadTimeout, Now: now,
		Size: func(picture picture) int { return cap(picture.body) },
	})
}

func newTextureCache(bytes int64, now func() time.Time) *cache.Cache[*textureFile] {
	return cache.New(cache.Options[*textureFile]{
		Name: "texture", Bytes: bytes, TypicalSize: 16 << 10, LoadTimeout: loadTimeout, Now: now,
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

// revisionOf returns the revision of the renderer behind the pictures of a view.
func (p *Pictures) revisionOf(view render.View) string {
	if view.Exact != 0 {
		return p.exactRevision
	}
	return p.revision
}

// TryGet returns the response to a request if the mapping is cached and valid at a time, which
// is now or just was, and the picture is cached. It does not keep the request's key. It
// allocates once in 64 calls, in the access log of the cache.
func (p *Pictures) TryGet(req Request, at time.Time) (res Response, ok bool) {
	if req.Key != "" {
		if res.found = p.resolver.tryFind(req.Key, at); res.found == nil {
			return res, false
		}
		res.Mapping = res.found.Value.mapping
	}
	if p.setVariant(&req, &res); res.Err != nil || req.Kind == KindProfile {
		return res, true
	}
	var key [variantKeySize]byte
	if res.entry = p.pictureCache.TryGetEntry(res.Variant.appendKey(key[:0])); res.entry == nil {
		return res, false
	}
	cached := res.entry.Value()
	res.ETag, res.Body = cached.etag, cached.body
	return res, true
}

// TryAgain reports whether TryGet would return one of its responses with a body again at a time, which is now or just was.
// If so, it counts the hit.
func (p *Pictures) TryAgain(res *Response, at time.Time) bool {
	return (res.found == nil || p.resolver.tryAgain(res.found, at)) && p.pictureCache.TryAgain(res.entry)
}

// maxTries bounds how often a response is made because the mapping has changed in the meantime.
const maxTries = 3

// Find returns the response to a request without its body, which Load loads if it is needed. It looks up what is not
// cached.
//
// An Unavailable fault says that core is unreachable, or that there is too much load.
func (p *Pictures) Find(ctx context.Context, req Request) (res Response, err error) {
	for range maxTries {
		var isFinal bool
		if res, isFinal, err = p.find(ctx, req); err != nil || isFinal {
			break
		}
	}
	return res, err
}

// find is one try of Find, and reports whether another one would find the same.
func (p *Pictures) find(ctx context.Context, req Request) (res Response, isFinal bool, err error) {
	if req.Key != "" {
		req.Key = edgeproto.Key(strings.Clone(string(req.Key))) // the resolver keeps it
		if res.Mapping, res.Lookup, err = p.resolver.Lookup(ctx, req.Key); err != nil {
			return Response{}, false, err
		}
	}
	p.setVariant(&req, &res)
	if res.Err == nil && req.Kind != KindProfile {
		res.ETag = res.Variant.etag(res.Revision)
	}
	return res, p.isFinal(&req, &res), nil
}

// isFinal sets MayBeStale, and reports whether the mapping of a response is its key's, or the best that there is.
func (p *Pictures) isFinal(req *Request, res *Response) bool {
	// A CDN may have been purged because of a change in the meantime, and must not keep the response from before it
	// for more than a second.
	res.MayBeStale = res.Lookup == LookupStale || req.Key != "" && !p.resolver.IsCurrent(req.Key, res.Mapping)
	return !res.MayBeStale || res.Lookup == LookupStale
}

// Load adds the body to a response that Find returned: it fetches and renders what is not cached. If the mapping has
// changed in the meantime, it replaces the response. The cost counts for the client network in ctx.
//
// An Unavailable fault says that core or the object store is unreachable, or that there is too much load. A NotFound
// fault says that a texture's file is missing from the object store.
func (p *Pictures) Load(ctx context.Context, req Request, res *Response) (err error) {
	for try := 1; res.Err == nil && req.Kind != KindProfile; try++ {
		var loaded picture
		if loaded, res.Outcome, err = p.picture(ctx, res.Variant, res.ETag); err != nil {
			return err
		}
		res.Body = loaded.body
		if p.isFinal(&req, res) || try == maxTries {
			return nil
		}
		if *res, _, err = p.find(ctx, req); err != nil {
			return err
		}
	}
	return nil
}

// WouldReject returns the fault with which Find would reject a request at once if the mapping
// of its key is not cached, nil if none. The network is the client's, the zero Prefix if
// it is unknown.
func (p *Pictures) WouldReject(req Request, network netip.Prefix) error {
	if req.Key == "" {
		return nil
	}
	return p.resolver.WouldReject(req.Key, network)
}
