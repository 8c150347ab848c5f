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
func drawSide(sheet skin.Sheet, view View, pixels []byte) Picture {
	picture := newPicture(view.Size*sideWidth/sideHeight, view.Size, pixels)
	clear(picture.Pix)
	texels := sideTexels(sheet, view)
	picture.drawScaled(texels, skin.Rect{W: texels.Width, H: texels.Height}, 0, 0, picture.Width, picture.Height)
	return picture
}

// sideTexels returns the texels of a side, transparent where there is no body part. From the left
// and the right, nearer body parts are as large as those behind them.
func sideTexels(sheet skin.Sheet, view View) skin.Sheet {
	k := sheet.Scale()
	texels := skin.NewSheet(sideWidth*k, sideHeight*k)
	parts := figure(view.Type) // from the right to the left
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
