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

// The slots. A player's key means the skin, unless a request has another slot.
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

// Request is a picture, or a file, as a client names it.
type Request struct {
	// Key is an edgeproto.Key. The empty key means the default avatar. It is not kept, so
	// its bytes may be reused.
	Key  []byte
	Slot TextureSlot
	// File requests the texture's file as it is stored, and not a picture.
	File   bool
	Pose   render.Pose
	Size   int // as in render.View
	Format render.Format
}

// TryLookup returns the mapping of a key if it is cached and valid at a time, which is now
// or just was. It does not allocate.
func (p *Pictures) TryLookup(key []byte, at time.Time) (edgeproto.Mapping, bool) {
	if len(key) == 0 {
		return edgeproto.Mapping{}, true
	}
	return p.resolver.TryLookup(key, at)
}

// Lookup returns the mapping of a key, as Resolver does.
func (p *Pictures) Lookup(ctx context.Context, key []byte) (edgeproto.Mapping, LookupResult, error) {
	if len(key) == 0 {
		return edgeproto.Mapping{}, LookupHit, nil
	}
	return p.resolver.Lookup(ctx, edgeproto.Key(key))
}

// WouldReject returns the fault with which Lookup would reject a key that is not cached, as
// Resolver does.
func (p *Pictures) WouldReject(key []byte, network netip.Prefix) error {
	if len(key) == 0 {
		return nil
	}
	return p.resolver.WouldReject(key, network)
}

// StillCurrent reports whether a mapping that was just looked up is still the key's.
func (p *Pictures) StillCurrent(key []byte, mapping edgeproto.Mapping) bool {
	if len(key) == 0 {
		return mapping == (edgeproto.Mapping{})
	}
	cached, age, ok := p.resolver.getCached(edgeproto.Key(key))
	return ok && age < trustWindow && cached.mapping == mapping
}

// View returns the view that a request means, given the mapping of its key. The format is
// PNG if the renderer cannot write WebP. A NotFound fault says that there is no such
// picture.
func (p *Pictures) View(req Request, mapping edgeproto.Mapping) (View, error) {
	texture := mapping.Texture
	switch {
	case mapping.Player != nil:
		texture = req.Slot.Of(mapping.Player)
	case mapping.User != nil && mapping.User.Avatar != 0:
		texture = mapping.User.Texture
	case len(req.Key) == 0 || bytes.HasPrefix(req.Key, []byte(edgeproto.UIDPrefix)):
		// A page with the avatars of many users need not know which of them are deleted or
		// have none.
		return p.view(p.defaultSkinHash, skin.Classic, req), nil
	}
	switch {
	case texture == nil:
		return View{}, fault.New(fault.NotFound, "There is no such picture.")
	case req.File:
		return View{Texture: texture.Hash, File: true}, nil
	case texture.Type == skin.Cape && req.Pose != render.Preview:
		return View{}, fault.New(fault.Invalid, "A cape has no face, so there is no avatar of it.")
	}
	return p.view(texture.Hash, texture.Type, req), nil
}

func (p *Pictures) view(texture skin.Hash, model skin.Type, req Request) View {
	if req.Format == render.WebP && !p.canWebP {
		req.Format = render.PNG
	}
	return View{
		Texture: texture,
		View:    render.View{Pose: req.Pose, Type: model, Size: req.Size, Format: req.Format},
	}
}
