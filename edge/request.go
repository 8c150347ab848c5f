package edge

import (
	"strings"

	"github.com/veneer-skins/veneer/edge/cache"
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

// Kind is what a request is for.
type Kind uint8

// The kinds of requests.
const (
	KindPicture Kind = iota // a picture of a texture
	KindFile                // the texture's file as it is stored
	KindProfile             // a player and its textures
)

// Request is a picture, a file or a profile, as a client names it. It is comparable.
type Request struct {
	// Key maps to a texture. The empty key means the default avatar.
	Key  edgeproto.Key
	Kind Kind
	Slot TextureSlot // of a player's texture

	// View is that of a picture, without the type, which the texture has. Other kinds have none.
	render.View
}

// IsForGames reports whether games and mods request the response, and not pages: a file, a
// profile, or a sheet that is drawn for them.
func (r *Request) IsForGames() bool { return r.Kind != KindPicture || r.Mode.IsSheet() }

// Response is the response to a request.
type Response struct {
	Mapping edgeproto.Mapping // of the key; its contents must not be changed
	Lookup  LookupResult      // where the mapping came from
	// MayBeStale says that the mapping may have changed, so that caches must not store the
	// response for more than a second.
	MayBeStale bool
	// Err says that there is no such picture, as far as the mapping tells: a NotFound fault, or
	// an Invalid one for the avatar of a cape. All fields below are zero then.
	Err error

	// Of a picture or a file. A profile consists of the mapping's player.
	Variant Variant
	ETag    ETag
	Outcome cache.Outcome // where the body came from
	Body    []byte        // must not be changed
}

// variant returns the variant that a request means, given the mapping of its key. The format is
// PNG if the renderer cannot write WebP. The errors are those of Response.Err.
func (p *Pictures) variant(req Request, mapping edgeproto.Mapping) (Variant, error) {
	texture := mapping.Texture
	switch {
	case req.Kind == KindProfile:
		if mapping.Player == nil {
			return Variant{}, fault.New(fault.NotFound, "There is no such player.")
		}
		return Variant{}, nil
	case mapping.Player != nil:
		texture = req.Slot.Of(mapping.Player)
	case mapping.User != nil && mapping.User.Avatar != 0:
		texture = mapping.User.Texture
	case req.Key == "" || strings.HasPrefix(string(req.Key), edgeproto.UIDPrefix):
		// A page with the avatars of many users need not know which of them are deleted or
		// have none.
		return p.pictureVariant(p.defaultSkinHash, skin.Classic, req), nil
	}
	switch {
	case texture == nil:
		return Variant{}, fault.New(fault.NotFound, "There is no such picture.")
	case req.Kind == KindFile:
		return Variant{Texture: texture.Hash, File: true}, nil
	case texture.Type == skin.Cape && !req.Mode.ShowsCapes():
		return Variant{}, capeFault(req.Mode)
	}
	return p.pictureVariant(texture.Hash, texture.Type, req), nil
}

// capeFault returns the fault of a request for a cape in a mode that shows none.
func capeFault(mode render.Mode) error {
	switch mode {
	case render.Flat, render.Isometric:
		return fault.New(fault.Invalid, "A cape has no face, so there is no avatar of it.")
	case render.Preview, render.LegacySheet, render.Bust, render.Body, render.Front, render.Back, render.Left, render.Right:
	}
	return fault.New(fault.Invalid, "This texture is a cape, which has no figure.")
}

func (p *Pictures) pictureVariant(texture skin.Hash, model skin.Type, req Request) Variant {
	view := req.View
	view.Type = model
	if view.Format == render.WebP && !p.canWebP {
		view.Format = render.PNG
	}
	return Variant{Texture: texture, View: view}
}
