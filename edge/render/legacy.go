package render

import (
	"encoding/binary"

	"github.com/veneer-skins/veneer/edge/render/model"
	"github.com/veneer-skins/veneer/edge/render/raster"
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
func drawLegacy(sheet, _ skin.Sheet, view View, pixels []byte) raster.Picture {
	of := view.Type
	picture := raster.NewPicture(legacyWidth, legacyHeight, pixels)
	clear(picture.Pix)
	for _, p := range legacyParts {
		to, from, over := model.FacesInOrder(p.part, skin.Classic), model.FacesInOrder(p.part, of), model.FacesInOrder(p.layer, of)
		for i := range to {
			drawLegacyFace(picture, to[i], sheet, from[i], over[i], p.part != skin.Hat)
		}
	}
	return picture
}

// drawLegacyFace draws a face with its layer over it, the same face for none. A texel shows the
// average of the texels of a larger sheet. Where the face is three texels wide instead of four,
// the middle one is repeated, so that the edges keep their outlines.
func drawLegacyFace(p raster.Picture, to skin.Rect, sheet skin.Sheet, from, over skin.Rect, opaque bool) {
	k := sheet.Scale()
	weight := uint64(k * k)
	for v := range to.H {
		row := p.Row(to.X, to.Y+v, to.W)
		for u := range to.W {
			column := (2*u + 1) * from.W / (2 * to.W)
			var sum raster.ColourSum
			for y := v * k; y < (v+1)*k; y++ {
				base := sheet.Pix[sheet.At((from.X+column)*k, from.Y*k+y):][:4*k]
				layer := sheet.Pix[sheet.At((over.X+column)*k, over.Y*k+y):][:4*k]
				for i := 0; i < len(base); i += 4 {
					texel := [4]byte(base[i:])
					if opaque {
						texel[3] = 255
					}
					if from != over {
						texel = raster.BlendOver(texel, layer[i:])
					}
					sum.AddTexel(texel[:], 1)
				}
			}
			binary.LittleEndian.PutUint32(row[4*u:], uint32(sum.Average(weight)))
		}
	}
}

// legacyCost returns about how many milliseconds it takes to draw a legacy sheet.
func legacyCost(_ View, pixels, scale int) float64 {
	const blending = 11e-6 // of a texel
	return blending * float64(pixels*scale*scale)
}
