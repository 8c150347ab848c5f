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
// comes from memory or from the object store, a slot is waited for, the renderer
// draws. Decoding and drawing are done on threads that stand back for all else, and
// only so many pictures are in the making at once: who asks for what is in memory
// is not to notice. However many ask for a picture at a moment, it is fetched and drawn
// once, and nobody who gives up waiting spoils it for the others.
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
	CacheBytes  int64         `env:"CACHE_BYTES" envDefault:"268435456" help:"memory for finished pictures, in bytes"`
	SheetBytes  int64         `env:"SHEET_BYTES" envDefault:"8388608" help:"memory for decoded textures, in bytes"`
	RenderSlots int           `env:"RENDER_SLOTS" envDefault:"0" help:"most pictures that are drawn at once; 0 means one less than there are cores, but at least one; each may take 50 MiB"`
	RenderQueue int           `env:"RENDER_QUEUE" envDefault:"64" help:"most pictures that are fetched or wait to be drawn, for each slot; more are answered with 503"`
	RenderWait  time.Duration `env:"RENDER_WAIT" envDefault:"1s" help:"longest time that a picture waits to be drawn before it is answered with 503"`
}

// Slots returns how many pictures are drawn at once.
func (c Config) Slots() int {
	if c.RenderSlots > 0 {
		return c.RenderSlots
	}
	return max(1, runtime.GOMAXPROCS(0)-1)
}

// mostSlots is the most slots that can be set. Each is a thread.
const mostSlots = 1024

// patience bounds the making of one picture. Nobody else does: it belongs to
// no single caller.
const patience = 15 * time.Second

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
	Render(sheet skin.Sheet, view render.View) ([]byte, render.Took, error)
	// Revision changes whenever the bytes that Render returns could.
	Revision() string
	// CanWebP reports whether WebP can be written.
	CanWebP() bool
}

// Pictures finds out what is to be seen and shows it: from memory, or fetched
// and drawn once.
type Pictures struct {
	mappings *Mappings
	files    Files
	renderer Renderer
	revision string
	canWebP  bool

	// nobody is the sheet of the default avatar. It lies in no store, so the
	// digest of its pixels stands in for the hash of a file.
	nobody     skin.Sheet
	nobodyHash skin.Hash

	finished *cache[Picture]
	decoded  *cache[skin.Sheet]
	slots    *slots
}

// NewPictures returns pictures of what mappings lead to. nobody is the skin of
// the default avatar, drawn as Steve's.
func NewPictures(config Config, mappings *Mappings, files Files, renderer Renderer, nobody skin.Sheet) (*Pictures, error) {
	switch {
	case config.RenderSlots < 0 || config.RenderSlots > mostSlots:
		return nil, fmt.Errorf("RENDER_SLOTS is %d, but must be 0 to %d", config.RenderSlots, mostSlots)
	case config.RenderQueue < 0:
		return nil, fmt.Errorf("RENDER_QUEUE is %d, but must not be negative", config.RenderQueue)
	case config.RenderWait <= 0:
		return nil, fmt.Errorf("RENDER_WAIT is %s, but must be longer than 0", config.RenderWait)
	}
	finished, err := newCache("picture", config.CacheBytes, 1<<10, func(picture Picture) int { return cap(picture.Body) })
	if err != nil {
		return nil, fmt.Errorf("CACHE_BYTES %w", err)
	}
	decoded, err := newCache("sheet", config.SheetBytes, 16<<10, func(sheet skin.Sheet) int { return cap(sheet.Pix) })
	if err != nil {
		return nil, fmt.Errorf("SHEET_BYTES %w", err)
	}
	return &Pictures{
		mappings:   mappings,
		files:      files,
		renderer:   renderer,
		revision:   renderer.Revision(),
		canWebP:    renderer.CanWebP(),
		nobody:     nobody,
		nobodyHash: nobody.Digest(),
		finished:   finished,
		decoded:    decoded,
		slots:      newSlots(config.Slots(), config.Slots()*config.RenderQueue, config.RenderWait),
	}, nil
}

// Close waits until the pictures being drawn are finished, and lets no further
// one begin: the renderer may be closed then.
func (p *Pictures) Close() { p.slots.close() }

// Revision returns the revision of the renderer behind the pictures.
func (p *Pictures) Revision() string { return p.revision }

// Picture is a finished picture or a stored file. It is shared with everybody who
// asks: send it, never change it.
type Picture struct {
	ETag ETag
	Body []byte
}

// Finished returns the picture of a view if it is in memory. With ViewNameBytes of
// room in scratch, which it overwrites, it allocates nothing but, for every 64 calls,
// what the store notes them in.
func (p *Pictures) Finished(view View, scratch []byte) (Picture, bool) {
	return p.finished.get(view.appendName(scratch[:0]))
}

// Picture returns the picture of a view and how it was come by.
//
// A NotFound fault says that the texture's file is missing from the store.
func (p *Pictures) Picture(ctx context.Context, view View) (Picture, Outcome, error) {
	name := view.appendName(nil)
	if picture, ok := p.finished.get(name); ok {
		return picture, Hit, nil
	}
	// The stages are a part of what the first one who asks waits for.
	ctx, span := tracing.Start(ctx, "picture")
	picture, outcome, err := p.finished.load(ctx, name, func(ctx context.Context) (Picture, error) {
		body, err := p.produce(ctx, view)
		return Picture{ETag: p.ETag(view), Body: body}, err
	})
	span.SetAttributes(attribute.Stringer("outcome", outcome))
	tracing.End(span, &err)
	return picture, outcome, err
}

// produce makes a picture, or fetches a file, in a turn of its own.
func (p *Pictures) produce(ctx context.Context, view View) (body []byte, err error) {
	turn, err := p.slots.enter()
	if err != nil {
		return nil, err
	}
	defer turn.leave()
	if view.File {
		file, err := p.fetch(ctx, turn, view)
		return bytes.Clone(file), err // without the room that reading it took
	}
	sheet, err := p.sheet(ctx, turn, view)
	if err != nil {
		// That is remembered with the sheet. Remembered twice, it would be for longer.
		return nil, passing{err}
	}
	err = turn.use(ctx, func() (err error) {
		var took render.Took
		if body, took, err = p.renderer.Render(sheet, view.View); err == nil {
			view.rendered(ctx, took)
		}
		return err
	})
	if err == nil {
		view.spent(queueing, turn.waited)
	}
	return body, err
}

// sheet returns a view's texture, decoded. It is fetched and decoded in the turn of
// whoever asks first.
func (p *Pictures) sheet(ctx context.Context, turn *turn, view View) (skin.Sheet, error) {
	hash := view.Texture
	if hash == p.nobodyHash {
		return p.nobody, nil
	}
	if sheet, ok := p.decoded.get(hash[:]); ok {
		return sheet, nil
	}
	sheet, _, err := p.decoded.load(ctx, hash[:], func(ctx context.Context) (sheet skin.Sheet, err error) {
		file, err := p.fetch(ctx, turn, view)
		if err != nil {
			return skin.Sheet{}, err
		}
		err = turn.use(ctx, func() (err error) {
			began := time.Now()
			_, span := tracing.Start(ctx, stageNames[decoding])
			defer tracing.End(span, &err)
			if sheet, err = skin.Decode(file); err != nil {
				// Its hash is right, so it was stored like that: that is ours to mend.
				return fmt.Errorf("texture %s: %w", hash, err)
			}
			view.spent(decoding, time.Since(began))
			return nil
		})
		return sheet, err
	})
	return sheet, err
}

// fetch returns the file of a view's texture.
func (p *Pictures) fetch(ctx context.Context, turn *turn, view View) (file []byte, err error) {
	err = turn.fetch(func() (err error) {
		began := time.Now()
		ctx, span := tracing.Start(ctx, stageNames[fetching])
		defer tracing.End(span, &err)
		if file, err = p.files.File(ctx, view.Texture); err == nil {
			view.spent(fetching, time.Since(began))
		}
		return err
	})
	return file, err
}
