package render

import (
	"math"

	"github.com/veneer-skins/veneer/edge/render/model"
	"github.com/veneer-skins/veneer/edge/render/raster"
	"github.com/veneer-skins/veneer/shared/skin"
)

// The camera of previews: 25° above the horizon, the front turned to the viewer's left and the
// back turned the same way.
const (
	previewPitch = 25 * math.Pi / 180
	frontYaw     = -45
	backYaw      = frontYaw + 180
)

// figureGap is the space between two figures, in units. Half of it also lies at the outer
// edges.
const figureGap = 1

// preview is the whole figure twice, the front on the left and the back on the
// right, height pixels high. A standing figure with all its layers is W = 14.849
// units wide and H = 34.314 high in this view (classic arms, which also set the
// frame of slim ones, so that both models are drawn to one scale). The figure fills
// the height; each half is ⌈height/H · (W + gap)⌉ pixels wide, and the picture
// twice that.
func preview(v View, _ int, _ Tilt) raster.Scene {
	of, height := v.Type, v.Size
	parts := model.Figure(of, model.Stand)
	front, back := raster.NewCamera(frontYaw, previewPitch), raster.NewCamera(backYaw, previewPitch)

	// From behind a figure is as large, and stands on the same ground.
	bounds := front.ExtentOf(model.LayerBoxes(model.Figure(skin.Classic, model.Stand))...)
	scale := float64(height) / bounds.Height()
	half := int(math.Ceil(scale * (bounds.Width() + figureGap)))
	return raster.Scene{
		Width: 2 * half, Height: height, Scale: scale,
		Figures: []raster.Figure{
			{Camera: front, Parts: parts, Model: of, Viewport: raster.Centred(bounds, scale, 0, half, height)},
			{Camera: back, Parts: parts, Model: of, Viewport: raster.Centred(bounds, scale, half, half, height)},
		},
	}
}

// drawCape draws the outer face of a cape on the left and the inner one on the right, flat, as
// they lie on the sheet, and without light. A face is 10 × 16 units; each half of the picture
// is 11 units wide and 16 high. A face lies in the middle of its half.
// If whole pixels per texel fill at least 90 % of the height, the face is drawn at the largest
// such size; else it fills the height, and every pixel is the average of the area it covers.
//
// If both faces are transparent the elytra is drawn instead.
func drawCape(sheet skin.Sheet, height int, pixels []byte) raster.Picture {
	picture := raster.NewPicture(capeWidth(height), height, pixels)
	clear(picture.Pix)
	drawCapeIn(picture, sheet, skin.Rect{W: picture.Width, H: height})
	return picture
}

// drawCapeIn draws a cape into a rectangle of a picture that is capeWidth of its height wide.
func drawCapeIn(picture raster.Picture, sheet skin.Sheet, in skin.Rect) {
	faces := skin.CapeFaces().Scaled(sheet.Scale())
	if model.IsBlank(sheet, faces.Front) && model.IsBlank(sheet, faces.Back) {
		drawElytra(picture, sheet, in)
		return
	}
	high := in.H
	if isCapeCrisp(in.H, sheet.Scale()) {
		high = in.H / faces.Front.H * faces.Front.H
	}
	wide := high / 16 * 10
	half := in.W / 2
	for i, face := range []skin.Rect{faces.Front, faces.Back} {
		picture.DrawScaled(sheet, face, in.X+i*half+(half-wide)/2, in.Y+(in.H-high)/2, wide, high)
	}
}

// drawElytra draws both wings side by side, from behind on the left and from the front on the
// right. A wing is 10 × 20 units, so that two of them are as wide as a cape's face. The size of
// a texel follows the same rule, by the width.
func drawElytra(p raster.Picture, sheet skin.Sheet, in skin.Rect) {
	wing := skin.ElytraFaces().Scaled(sheet.Scale())
	half := in.W / 2
	whole := in.H / 16 * 5 // of one wing
	wide := whole / wing.Back.W * wing.Back.W
	if 10*wide < 9*whole {
		wide = whole
	}
	top := in.Y + (in.H-2*wide)/2
	// The left wing is on the viewer's left from behind, and on the right from the front.
	left := in.X + (half-2*wide)/2
	p.DrawScaled(sheet, wing.Back, left, top, wide, 2*wide)
	mirror(p, left, left+wide, top, wide, 2*wide)
	left += half
	p.DrawScaled(sheet, wing.Front, left+wide, top, wide, 2*wide)
	mirror(p, left+wide, left, top, wide, 2*wide)
}

// mirror copies a rectangle to another one beside it, left and right exchanged.
func mirror(p raster.Picture, from, to, top, width, height int) {
	for y := top; y < top+height; y++ {
		for x := range width {
			copy(p.Row(to+width-1-x, y, 1), p.Row(from+x, y, 1))
		}
	}
}

// isCapeCrisp reports whether a cape is drawn with whole pixels per texel.
func isCapeCrisp(height, scale int) bool {
	face := skin.CapeFaces().Scaled(scale).Front.H
	return 10*(height/face*face) >= 9*height
}

// capeWidth returns the width of the picture of a cape: whole pixels for both halves, as
// heights are multiples of 16.
func capeWidth(height int) int { return height / 16 * 2 * 11 }

// previewWidth returns the width of a preview.
func previewWidth(of skin.Type, height int) int {
	if of == skin.Cape {
		return capeWidth(height)
	}
	return preview(View{Type: of, Size: height}, 0, 0).Width
}
