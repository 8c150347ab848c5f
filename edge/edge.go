// Package edge draws pictures of textures for everybody who asks, and remembers
// nothing that it could not fetch again.
//
// A request names a picture by way of something that may change: a player's
// name, a user, a number. Mappings knows what such a key leads to. It asks core
// once, keeps the answer, and drops it within milliseconds of a change, because
// core streams the changes of all keys to every edge; what it may keep, and for
// how long, is told there.
//
// At the end of every mapping lies a texture file, named by its hash. From there
// on nothing can change: a View is the hash together with all that decides what
// the picture looks like, so a picture is right for ever and a View is both its
// key in memory and, together with the renderer's revision, its entity tag.
//
// Pictures answers with a finished picture from memory, or makes it: the sheet
// comes from memory or from the object store, a worker is waited for, the renderer
// draws. Decoding and drawing are done on threads of a lower priority, and only so many
// pictures are in the making at once, so that they do not delay those in memory. While
// more is wanted than can be drawn, client networks have equal shares of the workers,
// whatever the number of their requests. However many ask for a picture at a moment, it
// is fetched and drawn once, and nobody who gives up waiting spoils it for the others.
//
// The packages around this one are its door (api), the places that things come
// from (origin), and the drawing itself (render). It needs of them only what the
// small interfaces here say.
package edge

import (
	"bytes"
	"context"
	"fmt"
	"runtime"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/veneer-skins/veneer/edge/render"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/tracing"
)

// Config bounds what pictures cost.
type Config struct {
	CacheBytes           int64         `env:"CACHE_BYTES" envDefault:"268435456" help:"memory for finished pictures, in bytes"`
	SheetBytes           int64         `env:"SHEET_BYTES" envDefault:"8388608" help:"memory for decoded textures, in bytes"`
	RenderWorkers        int           `env:"RENDER_WORKERS" envDefault:"0" help:"most pictures that are drawn at once; 0 means one less than there are cores, but at least one; each may take 50 MiB"`
	RenderQueuePerWorker int           `env:"RENDER_QUEUE_PER_WORKER" envDefault:"64" help:"most pictures that are fetched or wait to be drawn, for each slot; beyond that the newest one of the client network (IPv4 /24, IPv6 /56) with the most work waiting is answered with 503"`
	RenderQueueTimeout   time.Duration `env:"RENDER_QUEUE_TIMEOUT" envDefault:"1s" help:"longest time that a picture waits to be drawn before it is answered with 503"`
}

// Workers returns how many pictures are drawn at once.
func (c Config) Workers() int {
	if c.RenderWorkers > 0 {
		return c.RenderWorkers
	}
	return max(1, runtime.GOMAXPROCS(0)-1)
}

// maxWorkers is the most slots that can be set. Each is a thread.
const maxWorkers = 1024

// loadTimeout bounds the making of one picture. Nobody else does: it belongs to
// no single caller.
const loadTimeout = 15 * time.Second

// Files fetches the files of textures.
type Files interface {
	// File returns a NotFound fault only when the store is known to hold no such
	// file.
	File(ctx context.Context, hash skin.Hash) ([]byte, error)
}

// Renderer draws.
type Renderer interface {
	// Render returns the encoded picture of a sheet, and how long it took. The caller
	// bounds how many run at once.
	Render(sheet skin.Sheet, view render.View) ([]byte, render.Timing, error)
	// Cost returns about how long Render takes for a sheet that is so many texels wide.
	Cost(view render.View, width int) time.Duration
	// Revision changes whenever the bytes that Render returns could.
	Revision() string
	// CanWebP reports whether WebP can be written.
	CanWebP() bool
}

// Pictures finds out what is to be seen and shows it: from memory, or fetched
// and drawn once.
type Pictures struct {
	resolver *Resolver
	files    Files
	renderer Renderer
	revision string
	canWebP  bool

	// defaultSkin is the sheet of the default avatar. It lies in no store, so the
	// digest of its pixels stands in for the hash of a file.
	defaultSkin     skin.Sheet
	defaultSkinHash skin.Hash

	pictureCache *cache[Picture]
	textureCache *cache[*textureFile]
	workers      *workerPool
}

// NewPictures returns pictures of what mappings lead to. nobody is the skin of
// the default avatar, drawn as Steve's.
func NewPictures(config Config, resolver *Resolver, files Files, renderer Renderer, defaultSkin skin.Sheet) (*Pictures, error) {
	switch {
	case config.RenderWorkers < 0 || config.RenderWorkers > maxWorkers:
		return nil, fmt.Errorf("RENDER_WORKERS is %d, but must be 0 to %d", config.RenderWorkers, maxWorkers)
	case config.RenderQueuePerWorker < 0:
		return nil, fmt.Errorf("RENDER_QUEUE_PER_WORKER is %d, but must not be negative", config.RenderQueuePerWorker)
	case config.RenderQueueTimeout <= 0:
		return nil, fmt.Errorf("RENDER_QUEUE_TIMEOUT is %s, but must be longer than 0", config.RenderQueueTimeout)
	}
	pictureCache, err := newCache("picture", config.CacheBytes, 1<<10, func(picture Picture) int { return cap(picture.Body) })
	if err != nil {
		return nil, fmt.Errorf("CACHE_BYTES %w", err)
	}
	textureCache, err := newCache("sheet", config.SheetBytes, 16<<10, (*textureFile).size)
	if err != nil {
		return nil, fmt.Errorf("SHEET_BYTES %w", err)
	}
	return &Pictures{
		resolver:        resolver,
		files:           files,
		renderer:        renderer,
		revision:        renderer.Revision(),
		canWebP:         renderer.CanWebP(),
		defaultSkin:     defaultSkin,
		defaultSkinHash: defaultSkin.Digest(),
		pictureCache:    pictureCache,
		textureCache:    textureCache,
		workers:         newWorkerPool(config.Workers(), config.Workers()*config.RenderQueuePerWorker, config.RenderQueueTimeout),
	}, nil
}

// Close waits until the pictures being drawn are finished, and lets no further
// one begin: the renderer may be closed then.
func (p *Pictures) Close() { p.workers.close() }

// Revision returns the revision of the renderer behind the pictures.
func (p *Pictures) Revision() string { return p.revision }

// Picture is a finished picture or a stored file. It is shared with everybody who
// asks: send it, never change it.
type Picture struct {
	ETag ETag
	Body []byte
}

// Cached returns the picture of a view if it is in memory. With ViewKeySize of
// room in scratch, which it overwrites, it allocates nothing but, for every 64 calls,
// what the store notes them in.
func (p *Pictures) Cached(view View, scratch []byte) (Picture, bool) {
	return p.pictureCache.get(view.appendKey(scratch[:0]))
}

// Picture returns the picture of a view and how it was come by. What has to be done for it
// counts for the network that ctx has.
//
// A NotFound fault says that the texture's file is missing from the store.
func (p *Pictures) Picture(ctx context.Context, view View) (Picture, Outcome, error) {
	name := view.appendKey(nil)
	if picture, ok := p.pictureCache.get(name); ok {
		return picture, Hit, nil
	}
	// The stages are a part of what the first one who asks waits for.
	ctx, span := tracing.Start(ctx, "picture")
	demand := p.workers.demand(NetworkOf(ctx))
	picture, outcome, err := p.pictureCache.load(ctx, name, demand, func(ctx context.Context) (Picture, error) {
		body, err := p.load(ctx, demand, view)
		return Picture{ETag: p.ETag(view), Body: body}, err
	})
	span.SetAttributes(attribute.Stringer("outcome", outcome))
	tracing.End(span, &err)
	return picture, outcome, err
}

// load makes a picture, or fetches a file, with a permit of its own.
func (p *Pictures) load(ctx context.Context, demand *demand, view View) (body []byte, err error) {
	permit, err := p.workers.admit(demand)
	if err != nil {
		return nil, err
	}
	defer permit.release()
	if view.File {
		file, err := p.fetch(ctx, permit, demand, view)
		return bytes.Clone(file), err // without the room that reading it took
	}
	texture, err := p.texture(ctx, permit, demand, view)
	if err != nil {
		// That is remembered with the texture. Remembered twice, it would be for longer.
		return nil, transientError{err}
	}
	cost := texture.decodeCost() + p.renderer.Cost(view.View, texture.width)
	err = permit.draw(ctx, demand, cost, func() error {
		sheet, err := texture.decode(ctx, view)
		if err != nil {
			return err
		}
		var took render.Timing
		if body, took, err = p.renderer.Render(sheet, view.View); err == nil {
			view.observeRender(ctx, took)
		}
		return err
	})
	if err == nil {
		view.observeStage(queueing, permit.waited)
	}
	return body, err
}

// texture returns a view's texture. The file is fetched with the permit of the picture
// that needs it first.
func (p *Pictures) texture(ctx context.Context, permit *permit, demand *demand, view View) (*textureFile, error) {
	hash := view.Texture
	if hash == p.defaultSkinHash {
		return decodedTextureFile(p.defaultSkin), nil
	}
	if texture, ok := p.textureCache.get(hash[:]); ok {
		return texture, nil
	}
	part := demand.newDependency()
	texture, _, err := p.textureCache.load(ctx, hash[:], part, func(ctx context.Context) (*textureFile, error) {
		file, err := p.fetch(ctx, permit, part, view)
		if err != nil {
			return nil, err
		}
		return newTextureFile(file)
	})
	return texture, err
}

// fetch returns the file of a view's texture.
func (p *Pictures) fetch(ctx context.Context, permit *permit, demand *demand, view View) (file []byte, err error) {
	err = permit.fetch(ctx, demand, func() (err error) {
		began := time.Now()
		ctx, span := tracing.Start(ctx, stageNames[fetching])
		defer tracing.End(span, &err)
		if file, err = p.files.File(ctx, view.Texture); err == nil {
			view.observeStage(fetching, time.Since(began))
		}
		return err
	})
	return file, err
}
