package render

import (
	"slices"

	"github.com/veneer-skins/veneer/edge/render/model"
	"github.com/veneer-skins/veneer/edge/render/raster"
	"github.com/veneer-skins/veneer/shared/skin"
)

// sideOf returns the drawing of a side of a standing player.
func sideOf(side model.Side) func(sheet, worn skin.Sheet, v View, pixels []byte) raster.Picture {
	return func(sheet, worn skin.Sheet, v View, pixels []byte) raster.Picture {
		picture := raster.NewPicture(v.Size*model.SideWidth/model.SideHeight, v.Size, pixels)
		clear(picture.Pix)
		texels := sideTexels(side, sheet, v)
		if v.Wear != model.WearNothing {
			texels = withWorn(texels, worn, side.Worn(v.Wear))
		}
		picture.DrawScaled(texels, skin.Rect{W: texels.Width, H: texels.Height}, 0, 0, picture.Width, picture.Height)
		return picture
	}
}

// sideTexels returns the texels of a side, transparent where there is no body part. From the left
// and the right, nearer body parts are as large as those behind them.
func sideTexels(side model.Side, sheet skin.Sheet, view View) skin.Sheet {
	k := sheet.Scale()
	texels := skin.NewSheet(model.SideWidth*k, model.SideHeight*k)
	parts := model.Figure(view.Type, model.Stand) // from the right to the left
	if side == model.RightSide {
		slices.Reverse(parts)
	}
	for _, part := range parts {
		base, left := side.FaceOf(part.Box, skin.Faces(part.Base, view.Type))
		layer, _ := side.FaceOf(part.Box, skin.Faces(part.Layer, view.Type))
		top := model.SideHeight - int(part.Box.To.Y)
		raster.DrawFace(texels, left*k, top*k, sheet, base.Scaled(k), layer.Scaled(k), !view.Omit.LeavesOut(part))
	}
	return texels
}

// withWorn returns the texels of a side with what is worn over them, as finely as the finer of both
// sheets has them: each shows the one at its centre.
func withWorn(side, worn skin.Sheet, areas []model.WornArea) skin.Sheet {
	k := max(side.Width/model.SideWidth, worn.Scale())
	texels := skin.NewSheet(model.SideWidth*k, model.SideHeight*k)
	for y := range texels.Height {
		for x := range texels.Width {
			from := side.At(nearest(x, side.Width, texels.Width), nearest(y, side.Height, texels.Height))
			copy(texels.Pix[texels.At(x, y):][:4], side.Pix[from:])
		}
	}
	for _, area := range areas {
		drawWorn(texels, k, worn, area)
	}
	return texels
}

// drawWorn draws a face of what is worn over a side with k texels to a unit.
func drawWorn(texels skin.Sheet, k int, worn skin.Sheet, a model.WornArea) {
	width, j := a.W*k, worn.Scale()
	for v := range a.H * k {
		for u := range width {
			x := a.Left*k + u
			if x < 0 || x >= texels.Width {
				continue
			}
			if a.IsMirrored {
				u = width - 1 - u
			}
			over := [4]byte(worn.Pix[worn.At(a.X*j+nearest(u, j, k), a.Y*j+nearest(v, j, k)):])
			texel := texels.Pix[texels.At(x, a.Top*k+v):][:4]
			if texel[3] > 0 {
				over = raster.BlendOver([4]byte(texel), over[:])
			}
			copy(texel, over[:])
		}
	}
}

// nearest returns which of some texels is at the centre of one of others on the same length.
func nearest(at, texels, others int) int { return (2*at + 1) * texels / (2 * others) }

// sideCost returns about how many milliseconds it takes to draw a side.
func sideCost(v View, pixels, scale int) (ms float64) {
	if v.Size%(model.SideHeight*scale) != 0 {
		const averaging = 25e-6 // of a pixel
		ms += averaging * float64(pixels)
	}
	if v.Wear != model.WearNothing {
		const blending = 20e-6 // of a texel
		ms += blending * float64(model.SideWidth*model.SideHeight*scale*scale)
	}
	return ms
}
