package edge

import (
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
	AnySlot // of requests by tid or hash, which may be for a texture of any type
)

// fits reports whether a texture of a type can be in the slot.
func (s TextureSlot) fits(texture skin.Type) bool {
	switch s {
	case SkinSlot:
		return texture.IsSkin()
	case CapeSlot:
		return texture == skin.Cape
	case AnySlot:
	}
	return true
}

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
	// DefaultSkin is what a picture shows if there is no texture.
	DefaultSkin DefaultSkin
	// Model is the model that a skin is drawn as, 0 for its own.
	Model skin.Type

	// View is set for KindPicture. Its Type is filled in from the texture, and Wear is kept only if the player has a
	// cape.
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
	// IsDefault says that the picture shows the default avatar, or that the file is the default skin.
	IsDefault bool

	// Of a picture or a file. A profile consists of the mapping's player.
	Variant  Variant
	Revision string // of the renderer, empty for a file
	ETag     ETag
	Outcome  cache.Outcome // where the body came from
	Body     []byte        // must not be changed
	found    *foundMapping // of TryGet, as entry; nil without a key
	entry    *cache.Entry[picture]
}

// setVariant sets the variant that a request means, given the mapping of its key, or the error
// that there is none.
func (p *Pictures) setVariant(req *Request, res *Response) {
	texture := res.Mapping.Texture
	switch {
	case req.Kind == KindProfile:
		if res.Mapping.Player == nil {
			res.Err = fault.New(fault.NotFound, "There is no such player.")
		}
		return
	case res.Mapping.Player != nil:
		texture = req.Slot.Of(res.Mapping.Player)
	case res.Mapping.User != nil:
		texture = res.Mapping.User.Texture
	}
	switch {
	case req.Kind == KindFile && texture != nil && !texture.Private && req.Slot.fits(texture.Type):
		res.Variant = Variant{Texture: texture.Hash, File: true}
	case req.Kind == KindFile && req.Slot == SkinSlot && req.DefaultSkin != DefaultForUsers && req.hasDefault(res.Mapping):
		res.IsDefault = true
		res.Variant = Variant{Texture: p.defaultSheets[req.defaultModel(res.Mapping)].hash, File: true}
	case req.Kind == KindFile:
		res.Err = fault.New(fault.NotFound, "There is no such texture.")
	case req.Mode == render.Card && texture != nil && texture.Private:
		res.Err = fault.New(fault.NotFound, "There is no such texture.")
	case texture != nil && (texture.Type != skin.Cape || req.Mode.ShowsCapes()):
		p.setPicture(req, res, texture.Hash, texture.Type)
	case req.hasDefault(res.Mapping):
		model := req.defaultModel(res.Mapping)
		res.IsDefault = true
		p.setPicture(req, res, p.defaultSheets[model].hash, model)
	case texture != nil:
		res.Err = capeFault(req.Mode)
	default:
		res.Err = fault.New(fault.NotFound, "There is no such picture.")
	}
}

// capeFault returns the fault of a request for a cape in a mode that shows none.
func capeFault(mode render.Mode) error {
	switch mode {
	case render.Flat, render.Isometric:
		return fault.New(fault.Invalid, "A cape has no face, so there is no avatar of it.")
	case render.Preview, render.LegacySheet, render.Bust, render.Body, render.Front, render.Back, render.Left, render.Right, render.Card:
	}
	return fault.New(fault.Invalid, "This texture is a cape, which has no figure.")
}

// setPicture sets the variant and the revision of a picture of a texture. The figure wears what its player has on the
// back.
func (p *Pictures) setPicture(req *Request, res *Response, texture skin.Hash, of skin.Type) {
	v := &res.Variant
	*v = Variant{Texture: texture, View: req.View}
	v.Type = of
	if req.Model != 0 && of.IsSkin() {
		v.Type = req.Model
	}
	switch player := res.Mapping.Player; {
	case v.Wear == render.WearNothing:
	case player == nil || player.Cape == nil:
		v.Wear = render.WearNothing
	default:
		v.Worn = player.Cape.Hash
	}
	res.Revision = p.revisionOf(v.View)
}
