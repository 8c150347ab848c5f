package edge

import (
	"context"
	"strings"

	"github.com/veneer-skins/veneer/edge/render"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/mapping"
	"github.com/veneer-skins/veneer/shared/skin"
)

// Want is a picture as a visitor names it.
type Want struct {
	// Key leads to the texture. The empty key leads to nobody, whose picture is
	// the default avatar.
	Key    mapping.Key
	Pose   render.Pose
	Size   int // as in render.View
	Format render.Format
}

// Found is what a Want turned out to be.
type Found struct {
	View View
	// Mapping is what the key leads to.
	Mapping mapping.Mapping
	// Source says how that was learned.
	Source Source
}

// Find returns the view that a Want leads to. The format is another one than was
// wanted when the renderer cannot write that.
//
// A NotFound fault says that there is nothing to be seen, and then Mapping and
// Source still tell how far the key led.
func (p *Pictures) Find(ctx context.Context, want Want) (Found, error) {
	if want.Format == render.WebP && !p.renderer.CanWebP() {
		want.Format = render.PNG
	}
	if want.Key == "" {
		return Found{View: p.defaultAvatar(want)}, nil
	}
	led, source, err := p.mappings.Lookup(ctx, want.Key)
	if err != nil {
		return Found{Source: source}, err
	}
	found := Found{Mapping: led, Source: source}

	texture := led.Texture
	switch {
	case led.Player != nil:
		texture = led.Player.Skin
	case led.User != nil:
		if led.User.Avatar == 0 {
			found.View = p.defaultAvatar(want)
			return found, nil
		}
		texture = led.User.Texture
	case strings.HasPrefix(string(want.Key), mapping.UIDPrefix):
		// Whoever shows the avatars of a list of users should not have to know
		// which of them are gone.
		found.View = p.defaultAvatar(want)
		return found, nil
	}
	if texture == nil {
		return found, fault.New(fault.NotFound, "There is no such picture.")
	}
	if texture.Type == skin.Cape && want.Pose != render.Preview {
		return found, fault.New(fault.Invalid, "A cape has no face, so there is no avatar of it.")
	}
	found.View = view(texture.Hash, texture.Type, want)
	return found, nil
}

func (p *Pictures) defaultAvatar(want Want) View { return view(p.nobodyHash, skin.Steve, want) }

func view(texture skin.Hash, model skin.Type, want Want) View {
	return View{
		Texture: texture,
		View:    render.View{Pose: want.Pose, Type: model, Size: want.Size, Format: want.Format},
	}
}
