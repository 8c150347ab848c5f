package render

import (
	"slices"

	"github.com/veneer-skins/veneer/shared/skin"
)

// A side of a standing player is 16 × 32 units, the width of classic arms and the height of the
// figure.
const (
	sideWidth  = 16
	sideHeight = 32
)

// drawSide draws a side of a standing player.
func drawSide(sheet, worn skin.Sheet, view View, pixels []byte) Picture {
	picture := newPicture(view.Size*sideWidth/sideHeight, view.Size, pixels)
	clear(picture.Pix)
	texels := sideTexels(sheet, view)
	if view.Wear != WearNothing {
		texels = withWorn(texels, worn, view)
	}
	picture.drawScaled(texels, skin.Rect{W: texels.Width, H: texels.Height}, 0, 0, picture.Width, picture.Height)
	return picture
}

// sideTexels returns the texels of a side, transparent where there is no body part. From the left
// and the right, nearer body parts are as large as those behind them.
func sideTexels(sheet skin.Sheet, view View) skin.Sheet {
	k := sheet.Scale()
	texels := skin.NewSheet(sideWidth*k, sideHeight*k)
	parts := figure(view.Type, Stand) // from the right to the left
	if view.Mode == Right {
		slices.Reverse(parts)
	}
	for _, part := range parts {
		base, left := view.Mode.sideOf(part.box, skin.Faces(part.base, view.Type))
		layer, _ := view.Mode.sideOf(part.box, skin.Faces(part.layer, view.Type))
		top := sideHeight - int(part.box.to.y)
		drawFace(texels, left*k, top*k, sheet, base.Scaled(k), layer.Scaled(k), !view.Omit.leavesOut(part))
	}
	return texels
}

// sideOf returns the face of a box that the mode shows, and how far from the left edge it is.
func (p Mode) sideOf(box cuboid, faces skin.Box) (face skin.Rect, left int) {
	const middle = sideWidth / 2
	switch p {
	case Front:
		return faces.Front, middle + int(box.from.x)
	case Back:
		return faces.Back, middle - int(box.to.x)
	case Left:
		return faces.Left, middle - int(box.to.z)
	case Right:
		return faces.Right, middle + int(box.from.z)
	case Flat, Isometric, Preview, LegacySheet, Bust, Body:
	}
	return skin.Rect{}, 0
}

// wornArea is a face of what is worn on a side: its texels, where its top left corner is, in units, and
// whether it is mirrored.
type wornArea struct {
	skin.Rect
	left, top  int
	isMirrored bool
}

// wornOn returns what is worn on a side. A cape hangs straight down over the back, and is as thick as
// its edge at the sides. The wings of elytra are spread behind the back and adjoin in its middle, so
// that their outer edges are cut off.
func (p Mode) wornOn(w Wear) []wornArea {
	const middle, shoulders, back = sideWidth / 2, sideHeight - 24, 2
	cape, wing := skin.CapeFaces(), skin.ElytraFaces()
	switch {
	case w == WearCape && p == Back:
		return []wornArea{{cape.Front, middle - cape.Front.W/2, shoulders, false}}
	case w == WearCape && p == Left: // the right of the cape, which is turned round
		return []wornArea{{cape.Right, middle + back, shoulders, false}}
	case w == WearCape && p == Right:
		return []wornArea{{cape.Left, middle - back - cape.Left.W, shoulders, false}}
	case w == WearElytra && p == Back:
		return []wornArea{{wing.Back, middle - wing.Back.W, shoulders, false}, {wing.Back, middle, shoulders, true}}
	case w == WearElytra && p == Left:
		return []wornArea{{wing.Left, middle + back, shoulders, false}}
	case w == WearElytra && p == Right:
		return []wornArea{{wing.Left, middle - back - wing.Left.W, shoulders, true}}
	}
	return nil
}

// withWorn returns the texels of a side with what is worn over them, as finely as the finer of both
// sheets has them: each shows the one at its centre.
func withWorn(side, worn skin.Sheet, view View) skin.Sheet {
	k := max(side.Width/sideWidth, worn.Scale())
	texels := skin.NewSheet(sideWidth*k, sideHeight*k)
	for y := range texels.Height {
		for x := range texels.Width {
			from := side.At(nearest(x, side.Width, texels.Width), nearest(y, side.Height, texels.Height))
			copy(texels.Pix[texels.At(x, y):][:4], side.Pix[from:])
		}
	}
	for _, area := range view.Mode.wornOn(view.Wear) {
		area.drawOver(texels, k, worn)
	}
	return texels
}

// drawOver draws the face over a side with k texels to a unit.
func (a wornArea) drawOver(texels skin.Sheet, k int, worn skin.Sheet) {
	width, j := a.W*k, worn.Scale()
	for v := range a.H * k {
		for u := range width {
			x := a.left*k + u
			if x < 0 || x >= texels.Width {
				continue
			}
			if a.isMirrored {
				u = width - 1 - u
			}
			over := [4]byte(worn.Pix[worn.At(a.X*j+nearest(u, j, k), a.Y*j+nearest(v, j, k)):])
			texel := texels.Pix[texels.At(x, a.top*k+v):][:4]
			if texel[3] > 0 {
				over = blendOver([4]byte(texel), over[:])
			}
			copy(texel, over[:])
		}
	}
}

// nearest returns which of some texels is at the centre of one of others on the same length.
func nearest(at, texels, others int) int { return (2*at + 1) * texels / (2 * others) }
