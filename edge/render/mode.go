package render

import "github.com/veneer-skins/veneer/shared/skin"

// Mode is the part of a texture that a picture shows, and from where.
type Mode uint8

// The modes.
const (
	// Flat is the front of the head with the hat blended over it: square, opaque and without
	// light. Where the side is a multiple of the face's texels they are squares of one colour;
	// elsewhere every pixel is the average of the area it covers.
	Flat Mode = iota

	// Isometric is the head with its hat, square, by default in true isometric projection, from
	// above and with the face on the viewer's right. The hat's box fills the height there.
	Isometric

	// Preview is, for a skin, the whole figure in parallel projection from 25° above: from the
	// front on the left and from the back on the right, both turned by 45° so that the player's
	// left side shows in front. Both models are drawn to one scale. For a cape it is the outer
	// face on the left and the inner one on the right, each flat, without light, in the middle
	// of a half that is 11/16 as wide as high. The faces are 10/16 as wide as high and fill the
	// height, or at least 90 % of it if whole pixels per texel do. A cape with two transparent
	// faces shows its elytra: both wings, from behind on the left and from the front on the
	// right.
	Preview

	// LegacySheet is the skin as the sheet of 64 × 32 texels that games before 1.8 know, which
	// ignore all else. Layers are blended over the body, the arms and the legs. The arms and legs
	// are the right ones. Slim arms are widened, and larger sheets reduced.
	LegacySheet

	// Bust is the upper half of the figure in parallel projection, square and by default in the
	// attitude of the front in a preview. The head and the body are inside the picture, the arms
	// are cut off with the lower edge. A raised arm is inside too.
	Bust

	// Body is the whole figure in the same projection, half as wide as high. By default it is the
	// front of a preview. In another pose, or with elytra, it is as large as fits.
	Body

	// Front, Back, Left and Right are sides of the standing player, each the player's own: flat and
	// without light, 16 × 32 texels, with the layers blended over the base and as large as it.
	// Where the height is a multiple of the texels they are squares of one colour; elsewhere every
	// pixel is the average of the area it covers. A cape hangs straight down over the back. Elytra
	// are spread behind it, each wing 8 of its 10 units wide.
	Front
	Back
	Left
	Right

	// ModeCount is the number of modes.
	ModeCount = iota
)

// String returns a word, which metrics use as well.
func (p Mode) String() string {
	switch p {
	case Flat:
		return "flat"
	case Isometric:
		return "isometric"
	case Preview:
		return "preview"
	case LegacySheet:
		return "legacy"
	case Bust:
		return "bust"
	case Body:
		return "body"
	case Front:
		return "front"
	case Back:
		return "back"
	case Left:
		return "left"
	case Right:
		return "right"
	}
	return "unknown"
}

// ShowsCapes reports whether the mode shows capes as well as skins.
func (p Mode) ShowsCapes() bool {
	switch p {
	case Preview:
		return true
	case Flat, Isometric, LegacySheet, Bust, Body, Front, Back, Left, Right:
	}
	return false
}

// IsSheet reports whether the picture is a sheet for games. Its pixels depend on nothing but the
// texture.
func (p Mode) IsSheet() bool {
	switch p {
	case LegacySheet:
		return true
	case Flat, Isometric, Preview, Bust, Body, Front, Back, Left, Right:
	}
	return false
}

// InSpace reports whether the mode shows skins as the model in space, and not as flat areas of
// the sheet.
func (p Mode) InSpace() bool {
	switch p {
	case Isometric, Preview, Bust, Body:
		return true
	case Flat, LegacySheet, Front, Back, Left, Right:
	}
	return false
}

// isSide reports whether the mode is a flat side of the player.
func (p Mode) isSide() bool {
	switch p {
	case Front, Back, Left, Right:
		return true
	case Flat, Isometric, Preview, LegacySheet, Bust, Body:
	}
	return false
}

// SizeOf returns the size that is drawn for a requested one, in pixels. For a head or a bust it is
// the side, and the next multiple of 8, from 8 to 512: at these a flat head shows all texels of a
// classic face equally large. For a preview, a body or a side it is the height, and the next multiple
// of 16, from 64 to 1024: at these a classic cape fills the height. A legacy sheet has one size, its
// height.
func (p Mode) SizeOf(requested int) int { return p.sizes().round(requested) }

// sizes are the sizes that are drawn in a mode, in pixels.
type sizes struct{ min, max, step int }

func (p Mode) sizes() sizes {
	switch p {
	case Flat, Isometric, Bust:
		return sizes{8, 512, 8} // a face is eight texels wide
	case Preview, Body, Front, Back, Left, Right:
		return sizes{64, 1024, 16} // a cape is sixteen texels high
	case LegacySheet:
		return sizes{legacyHeight, legacyHeight, legacyHeight}
	}
	return sizes{}
}

// round clamps a size and rounds it up to a multiple of the step.
func (s sizes) round(requested int) int {
	size := min(max(requested, s.min), s.max)
	return (size + s.step - 1) / s.step * s.step
}

// extent returns the width and height in pixels of the picture of a skin or cape.
func (p Mode) extent(of skin.Type, size int) (width, height int) {
	switch p {
	case Flat, Isometric, Bust:
		return size, size
	case Preview:
		if of == skin.Cape {
			return capeWidth(size), size
		}
		s := preview(of, size)
		return s.width, s.height
	case Body, Front, Back, Left, Right:
		return size / 2, size
	case LegacySheet:
		return legacyWidth, legacyHeight
	}
	return 0, 0
}
