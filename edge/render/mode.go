package render

import (
	"github.com/veneer-skins/veneer/edge/render/model"
	"github.com/veneer-skins/veneer/edge/render/raster"
	"github.com/veneer-skins/veneer/shared/skin"
)

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

	// Bust is the upper half of the figure in parallel projection, square and by default from 25° above with the
	// front on the viewer's right, as heads are. The head and the body are inside the picture, the arms
	// are cut off with the lower edge. A raised arm is inside too.
	Bust

	// Body is the whole figure in the same projection, half as wide as high. By default it is as large as a figure of
	// a preview. In another pose, or with elytra, it is as large as fits.
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

	// Card is, for a skin, the whole figure from the front on the left and from the back on the right, as in
	// a preview, and with what its player wears. For a cape it is what a preview shows. The picture has one
	// size, 1200 × 630 pixels, and a background: it is shown beside a link.
	Card

	// ModeCount is the number of modes.
	ModeCount = iota
)

// modeRow is what a mode is made of.
type modeRow struct {
	name  string // which metrics use as well
	sizes sizes
	width func(of skin.Type, height int) int // of the picture

	// The geometry: of a mode in space a scene, of any other one the drawing of a square skin.
	scene  func(v View, turn int, tilt Tilt) raster.Scene
	draw   func(sheet, worn skin.Sheet, v View, pixels []byte) raster.Picture
	cape   func(sheet skin.Sheet, height int, pixels []byte) raster.Picture // nil: it shows no capes
	behind func(p raster.Picture, v View)                                   // draws the background; nil: it has none

	// The parameters.
	hasAttitudes bool
	turn         int // of the attitude 0, with its tilt
	tilt         Tilt
	omissible    model.Omissions
	hasPoses     bool
	showsWorn    bool
	exactStep    int  // of the sizes from which exact ones are reduced; 0: it has none
	isSheet      bool // for games
	hasWidth     bool
	coarsened    func(scale int) int // in which scale sheets of figures are drawn; nil: in their own

	// What drawing costs.
	isOneModel bool                                    // both models have one sample map
	share      raster.WorkShare                        // of a preview's work
	most       func(scale int) int                     // size by a skin's scale; nil: all
	flatCost   func(v View, pixels, scale int) float64 // of draw, in milliseconds
}

// sizes are the sizes that are drawn in a mode, in pixels.
type sizes struct{ min, max, step int }

var (
	headSizes   = sizes{8, 512, 8}    // a face is eight texels wide
	figureSizes = sizes{64, 1024, 16} // a cape is sixteen texels high
)

func square(_ skin.Type, height int) int { return height }
func halved(_ skin.Type, height int) int { return (height + 1) / 2 }

// modes are the rows of all modes.
var modes = [ModeCount]modeRow{
	Flat: {
		name: "flat", sizes: headSizes, width: square, exactStep: headSizes.step,
		draw: drawFlat, omissible: model.OmitHat,
	},
	Isometric: {
		name: "isometric", sizes: headSizes, width: square, exactStep: headSizes.step,
		scene: isometric, hasAttitudes: true, turn: 1, tilt: TiltIso, omissible: model.OmitHat | model.OmitLight,
		isOneModel: true, share: raster.WorkShare{Texels: 0.16, Borders: 0.33},
	},
	Preview: {
		name: "preview", sizes: figureSizes, width: previewWidth,
		scene: preview, cape: drawCape,
		share: raster.WorkShare{Texels: 1, Borders: 1}, most: maxPreviewHeight,
	},
	LegacySheet: {
		name: "legacy", sizes: sizes{legacyHeight, legacyHeight, legacyHeight}, width: func(skin.Type, int) int { return legacyWidth },
		draw: drawLegacy, isSheet: true, flatCost: legacyCost,
	},
	Bust: {
		name: "bust", sizes: headSizes, width: square, exactStep: headSizes.step,
		scene: bust, hasAttitudes: true, turn: 1, tilt: Tilt25, omissible: model.OmitHat | model.OmitLayers | model.OmitLight, hasPoses: true, showsWorn: true,
		share: raster.WorkShare{Texels: 0.5, Borders: 0.5},
	},
	Body: {
		name: "body", sizes: figureSizes, width: halved, exactStep: figureSizes.step,
		scene: body, hasAttitudes: true, turn: 1, tilt: Tilt25, omissible: model.OmitHat | model.OmitLayers | model.OmitLight, hasPoses: true, showsWorn: true,
		share: raster.WorkShare{Texels: 0.5, Borders: 0.5}, most: maxBodyHeight, hasWidth: true,
	},
	Front: sideRow("front", model.FrontSide, false),
	Back:  sideRow("back", model.BackSide, true),
	Left:  sideRow("left", model.LeftSide, true),
	Right: sideRow("right", model.RightSide, true),
	Card: {
		name: "card", sizes: sizes{cardHeight, cardHeight, cardHeight}, width: func(skin.Type, int) int { return cardWidth },
		scene: card, cape: drawCardCape, behind: drawBackground, coarsened: maxCardScale,
		omissible: model.OmitHat | model.OmitLayers | model.OmitLight, showsWorn: true,
		share: raster.WorkShare{Texels: 1, Borders: 1},
	},
}

// sideRow returns the row of a flat side of the player. What is worn does not show from the front.
func sideRow(name string, side model.Side, showsWorn bool) modeRow {
	return modeRow{
		name: name, sizes: figureSizes, width: halved, exactStep: model.SideHeight,
		draw: sideOf(side), omissible: model.OmitHat | model.OmitLayers, showsWorn: showsWorn, flatCost: sideCost,
	}
}

// row returns the row of the mode, one without anything if there is no such mode.
func (m Mode) row() *modeRow {
	if m >= ModeCount {
		return &noMode
	}
	return &modes[m]
}

var noMode = modeRow{name: "unknown", sizes: sizes{step: 1}, width: func(skin.Type, int) int { return 0 }}

// String returns a word, which metrics use as well.
func (m Mode) String() string { return m.row().name }

// ShowsCapes reports whether the mode shows capes as well as skins.
func (m Mode) ShowsCapes() bool { return m.row().cape != nil }

// IsSheet reports whether the picture is a sheet for games. Its pixels depend on nothing but the
// texture.
func (m Mode) IsSheet() bool { return m.row().isSheet }

// InSpace reports whether the mode shows skins as the model in space, and not as flat areas of
// the sheet.
func (m Mode) InSpace() bool { return m.row().scene != nil }

// HasAttitudes reports whether the mode has other attitudes than 0.
func (m Mode) HasAttitudes() bool { return m.row().hasAttitudes }

// DefaultAttitude returns the turn and the tilt of the attitude 0.
func (m Mode) DefaultAttitude() (turn int, tilt Tilt) { return m.row().turn, m.row().tilt }

// Omissible returns what pictures in the mode can leave out.
func (m Mode) Omissible() model.Omissions { return m.row().omissible }

// HasPoses reports whether the mode has other poses than Stand.
func (m Mode) HasPoses() bool { return m.row().hasPoses }

// ShowsWorn reports whether the mode shows what a figure wears on its back.
func (m Mode) ShowsWorn() bool { return m.row().showsWorn }

// HasWidth reports whether pictures in the mode have other widths than the usual one.
func (m Mode) HasWidth() bool { return m.row().hasWidth }

// HasBackground reports whether pictures in the mode are opaque, with a background that can be chosen.
func (m Mode) HasBackground() bool { return m.row().behind != nil }

// HasExactSizes reports whether pictures in the mode can have exactly the requested size.
func (m Mode) HasExactSizes() bool { return m.row().exactStep != 0 }

// WidthOf returns the width in pixels of a picture with a height, for a requested width: from a quarter to three quarters
// of the height. It is 0 for the usual width, and in modes without others.
func (m Mode) WidthOf(requested, height int) int {
	width := min(max(requested, (height+3)/4), 3*height/4)
	if !m.HasWidth() || width == m.row().width(skin.Classic, height) {
		return 0
	}
	return width
}

// SizeOf returns the size that is drawn for a requested one, in pixels. For a head or a bust it is
// the side, and the next multiple of 8, from 8 to 512: at these a flat head shows all texels of a
// classic face equally large. For a preview, a body or a side it is the height, and the next multiple
// of 16, from 64 to 1024: at these a classic cape fills the height. A legacy sheet and a card have one size,
// their height.
func (m Mode) SizeOf(requested int) int { return m.row().sizes.round(requested) }

// round clamps a size and rounds it up to a multiple of the step.
func (s sizes) round(requested int) int {
	size := min(max(requested, s.min), s.max)
	return (size + s.step - 1) / s.step * s.step
}
