package edge

import (
	"bytes"
	"context"
	"net/netip"
	"time"

	"github.com/veneer-skins/veneer/edge/render"
	"github.com/veneer-skins/veneer/shared/edgeproto"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/skin"
)

// TextureSlot is where a player wears a texture.
type TextureSlot uint8

// The slots. What is asked for by way of a player is the skin, unless it says
// otherwise.
const (
	SkinSlot TextureSlot = iota
	CapeSlot
)

// Of returns what a player wears in the slot, nil for nothing.
func (s TextureSlot) Of(player *edgeproto.Player) *edgeproto.Texture {
	if s == CapeSlot {
		return player.Cape
	}
	return player.Skin
}

// Request is a picture, or a file, as a visitor names it.
type Request struct {
	// Key leads to the texture, as a mapping.Key does. The empty key leads to
	// nobody, whose picture is the default avatar. It is read, and never kept.
	Key  []byte
	Slot TextureSlot
	// File asks for the texture's file as it is stored, and not for a picture.
	File   bool
	Pose   render.Pose
	Size   int // as in render.View
	Format render.Format
}

// TryLookup returns what a key leads to, if that is remembered and believed to be
// right at a moment, which is now or just was. It allocates nothing.
func (p *Pictures) TryLookup(key []byte, at time.Time) (edgeproto.Mapping, bool) {
	if len(key) == 0 {
		return edgeproto.Mapping{}, true
	}
	return p.resolver.TryLookup(key, at)
}

// Lookup returns what a key leads to, as Mappings does.
func (p *Pictures) Lookup(ctx context.Context, key []byte) (edgeproto.Mapping, LookupResult, error) {
	if len(key) == 0 {
		return edgeproto.Mapping{}, LookupHit, nil
	}
	return p.resolver.Lookup(ctx, edgeproto.Key(key))
}

// WouldReject returns the fault that Lookup would return at once for a key of which nothing
// is remembered, as Mappings does.
func (p *Pictures) WouldReject(key []byte, network netip.Prefix) error {
	if len(key) == 0 {
		return nil
	}
	return p.resolver.WouldReject(key, network)
}

// StillCurrent reports whether a key leads where a look-up just said.
func (p *Pictures) StillCurrent(key []byte, led edgeproto.Mapping) bool {
	if len(key) == 0 {
		return led == (edgeproto.Mapping{})
	}
	known, age, ok := p.resolver.getCached(edgeproto.Key(key))
	return ok && age < trustWindow && known.mapping == led
}

// View returns the view that a Want leads to by what its key leads to. The format
// is another one than was wanted when the renderer cannot write that. A NotFound
// fault says that there is nothing to be seen.
func (p *Pictures) View(want Request, led edgeproto.Mapping) (View, error) {
	texture := led.Texture
	switch {
	case led.Player != nil:
		texture = want.Slot.Of(led.Player)
	case led.User != nil && led.User.Avatar != 0:
		texture = led.User.Texture
	case len(want.Key) == 0 || bytes.HasPrefix(want.Key, []byte(edgeproto.UIDPrefix)):
		// Whoever shows the avatars of a list of users should not have to know
		// which of them are gone, or have none.
		return p.view(p.defaultSkinHash, skin.Classic, want), nil
	}
	switch {
	case texture == nil:
		return View{}, fault.New(fault.NotFound, "There is no such picture.")
	case want.File:
		return View{Texture: texture.Hash, File: true}, nil
	case texture.Type == skin.Cape && want.Pose != render.Preview:
		return View{}, fault.New(fault.Invalid, "A cape has no face, so there is no avatar of it.")
	}
	return p.view(texture.Hash, texture.Type, want), nil
}

func (p *Pictures) view(texture skin.Hash, model skin.Type, want Request) View {
	if want.Format == render.WebP && !p.canWebP {
		want.Format = render.PNG
	}
	return View{
		Texture: texture,
		View:    render.View{Pose: want.Pose, Type: model, Size: want.Size, Format: want.Format},
	}
}
