package render

import (
	"math"

	"github.com/veneer-skins/veneer/edge/render/model"
	"github.com/veneer-skins/veneer/edge/render/raster"
	"github.com/veneer-skins/veneer/shared/skin"
)

// A card is as large as sites and messengers show the picture of a link.
const (
	cardWidth  = 1200
	cardHeight = 630
)

// Places on a card, in pixels.
const (
	cardFigure  = 552 // height of a standing figure
	cardMiddle  = 170 // from the middle of the card to the middle of a figure
	cardWings   = 260 // the same with elytra
	cardReach   = 250 // of a figure with elytra, to each side
	cardRise    = 12  // of the middle of a figure, as a shadow reaches below it
	cardCape    = 528 // height of a cape's faces, 33 pixels to a unit
	shadowReach = 8.5 // of the shadow under a figure, in units
)

// Background is the colour behind the figures of a card: red, green and blue, and HasBackground. 0 is
// the usual one.
type Background uint32

// HasBackground is set in every Background but 0.
const HasBackground Background = 1 << 24

// The usual background goes from one colour at the top to another one at the bottom.
var usualTop, usualBottom = [3]int{0xa9, 0xc4, 0xb1}, [3]int{0x6d, 0x92, 0x7a}

// card is the whole figure twice, as in a preview. Figures must not overlap. They are as large with a cape and
// without; with elytra they are further apart, and smaller.
func card(v View, _ int, _ Tilt) raster.Scene {
	figure := v.figure()
	usual := model.LayerBoxes(model.Figure(skin.Classic, model.Stand))
	shown, middle := usual, cardMiddle
	if v.Wear == model.WearElytra {
		middle = cardWings
		for _, worn := range figure.Worn {
			shown = append(shown, worn.PlacedBox)
		}
	}
	front, back := figure, figure
	front.Camera, back.Camera = raster.NewCamera(frontYaw, previewPitch), raster.NewCamera(backYaw, previewPitch)
	frame := front.Camera.ExtentOf(shown...).Union(back.Camera.ExtentOf(shown...))
	scale := min(cardFigure/front.Camera.ExtentOf(usual...).Height(), 2*cardReach/frame.Width(), cardFigure/frame.Height())
	front.Viewport = raster.Centred(frame, scale, -middle, cardWidth, cardHeight-2*cardRise)
	back.Viewport = raster.Centred(frame, scale, middle, cardWidth, cardHeight-2*cardRise)
	return raster.Scene{Width: cardWidth, Height: cardHeight, Scale: scale, Figures: []raster.Figure{front, back}}
}

// drawCardCape draws both faces of a cape, or its elytra, as in a preview.
func drawCardCape(sheet skin.Sheet, _ int, pixels []byte) raster.Picture {
	picture := raster.NewPicture(cardWidth, cardHeight, pixels)
	clear(picture.Pix)
	width := capeWidth(cardCape)
	drawCapeIn(picture, sheet, skin.Rect{X: (cardWidth - width) / 2, Y: (cardHeight - cardCape) / 2, W: width, H: cardCape})
	return picture
}

// drawBackground draws what is behind the figures or faces of a card: a colour, and the shadow under each figure.
func drawBackground(p raster.Picture, v View) {
	var shadows []shadow
	if v.Type.IsSkin() {
		down, _ := model.Sincos(previewPitch)
		for _, figure := range card(v, 0, 0).Figures {
			x, y := figure.Viewport.ToPixel(figure.Camera, model.Vec{})
			across := shadowReach * figure.Viewport.Scale
			shadows = append(shadows, shadow{x: x, y: y, across: across, down: across * down})
		}
	}
	for y := range p.Height {
		row, colour := p.Row(0, y, p.Width), v.Background.at(y)
		for x := range p.Width {
			pixel := row[4*x:][:4]
			if pixel[3] == 255 {
				continue
			}
			behind := colour
			for _, s := range shadows {
				behind = s.over(behind, x, y)
			}
			blended := raster.BlendOver(behind, pixel)
			copy(pixel, blended[:])
		}
	}
}

// at returns the colour of a row of the background.
func (b Background) at(y int) [4]byte {
	if b != 0 {
		return [4]byte{byte(b >> 16), byte(b >> 8), byte(b), 255}
	}
	colour := [4]byte{3: 255}
	for i := range 3 {
		colour[i] = byte((usualTop[i]*(cardHeight-1-y) + usualBottom[i]*y + cardHeight/2) / (cardHeight - 1))
	}
	return colour
}

// shadow is an ellipse on a card, in pixels.
type shadow struct{ x, y, across, down float64 }

// over returns the colour of a pixel with the shadow over it, in as many steps as there are samples.
func (s shadow) over(behind [4]byte, x, y int) [4]byte {
	const samples, darkness = 4, 20 // in each direction; in percent
	if math.Abs(float64(y)+0.5-s.y) > s.down+1 || math.Abs(float64(x)+0.5-s.x) > s.across+1 {
		return behind
	}
	covered := 0
	for i := range samples * samples {
		u := (float64(x) + (float64(i%samples)+0.5)/samples - s.x) / s.across
		v := (float64(y) + (float64(i/samples)+0.5)/samples - s.y) / s.down
		if u*u+v*v < 1 {
			covered++
		}
	}
	const whole = 100 * samples * samples
	for i := range 3 {
		behind[i] = byte((int(behind[i])*(whole-darkness*covered) + whole/2) / whole)
	}
	return behind
}

// maxCardScale returns the scale in which cards show sheets of a scale: at 4 a texel is four pixels wide, and as maxPreviewHeight
// no picture takes longer than 150 ms.
func maxCardScale(scale int) int {
	switch {
	case scale <= 8:
		return min(scale, 4)
	case scale <= 12:
		return 3
	default:
		return 2
	}
}

// coarser returns a sheet in a scale, which is not above its own. A texel has the average colour of the finer ones that
// it covers.
func coarser(sheet skin.Sheet, scale int) skin.Sheet {
	k := sheet.Scale()
	if k == scale {
		return sheet
	}
	height := sheet.Height * scale / k
	picture := raster.NewPicture(raster.SheetColumns*scale, height, nil)
	for x := 0; x < raster.SheetColumns; x += model.SideWidth { // the most that DrawScaled scales at once
		picture.DrawScaled(sheet, skin.Rect{X: x * k, W: model.SideWidth * k, H: sheet.Height}, x*scale, 0, model.SideWidth*scale, height)
	}
	return skin.Sheet{Width: picture.Width, Height: picture.Height, Pix: picture.Pix}
}
