package render

import (
	"encoding/binary"

	"github.com/veneer-skins/veneer/shared/skin"
)

// Texels of the sheet that games before 1.8 know.
const (
	legacyWidth  = 64
	legacyHeight = 32
)

// legacyParts are the parts of a legacy sheet, each with the layer that is blended over it: such
// a sheet has no layer but the hat. Its left limbs are the right ones, mirrored by the game.
var legacyParts = [...]struct{ part, layer skin.Part }{
	{skin.Head, skin.Head},
	{skin.Hat, skin.Hat},
	{skin.Body, skin.Jacket},
	{skin.RightArm, skin.RightSleeve},
	{skin.RightLeg, skin.RightPants},
}

// drawLegacy draws the legacy sheet of a square skin. What no face shows is transparent, also
// beside the hat: the game removes a hat if its half of the sheet is opaque.
func drawLegacy(sheet skin.Sheet, model skin.Type, pixels []byte) Picture {
	picture := newPicture(legacyWidth, legacyHeight, pixels)
	clear(picture.Pix)
	for _, p := range legacyParts {
		to, from, over := facesInOrder(p.part, skin.Classic), facesInOrder(p.part, model), facesInOrder(p.layer, model)
		for i := range to {
			picture.drawLegacyFace(to[i], sheet, from[i], over[i], p.part != skin.Hat)
		}
	}
	return picture
}

// facesInOrder returns the faces of a part of the model, in any order that is the same for all.
func facesInOrder(part skin.Part, model skin.Type) [6]skin.Rect {
	b := skin.Faces(part, model)
	return [...]skin.Rect{b.Top, b.Bottom, b.Right, b.Front, b.Left, b.Back}
}

// drawLegacyFace draws a face with its layer over it, the same face for none. A texel shows the
// average of the texels of a larger sheet. Where the face is three texels wide instead of four,
// the middle one is repeated, so that the edges keep their outlines.
func (p Picture) drawLegacyFace(to skin.Rect, sheet skin.Sheet, from, over skin.Rect, opaque bool) {
	k := sheet.Scale()
	weight := uint64(k * k)
	for v := range to.H {
		row := p.row(to.X, to.Y+v, to.W)
		for u := range to.W {
			column := (2*u + 1) * from.W / (2 * to.W)
			var sum colourSum
			for y := v * k; y < (v+1)*k; y++ {
				base := sheet.Pix[sheet.At((from.X+column)*k, from.Y*k+y):][:4*k]
				layer := sheet.Pix[sheet.At((over.X+column)*k, over.Y*k+y):][:4*k]
				for i := 0; i < len(base); i += 4 {
					texel := [4]byte(base[i:])
					if opaque {
						texel[3] = 255
					}
					if from != over {
						texel = blendOver(texel, layer[i:])
					}
					sum.addTexel(texel[:], 1)
				}
			}
			binary.LittleEndian.PutUint32(row[4*u:], uint32(sum.average(weight)))
		}
	}
}
