package render_test

import (
	"testing"

	"github.com/veneer-skins/veneer/edge/render"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/skin/skintest"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// A card is opaque, and its border is the background: what is worn is inside.
func TestCardBackground(t *testing.T) {
	t.Parallel()
	for _, view := range []render.View{
		{Mode: render.Card, Type: skin.Slim},
		{Mode: render.Card, Type: skin.Classic, Wear: render.WearCape},
		{Mode: render.Card, Type: skin.Classic, Wear: render.WearElytra},
		{Mode: render.Card, Type: skin.Cape},
	} {
		view.Size, view.Background = 630, render.HasBackground|0x1f6b3a
		sheet := skintest.Noise(1, 64, 64)
		if view.Type == skin.Cape {
			sheet = skintest.Noise(1, 64, 32)
		}
		card := mustDrawWorn(t, sheet, wornSheet(t, view), view)
		behind, figures := [4]byte{0x1f, 0x6b, 0x3a, 255}, 0
		for y := range card.Height {
			for x := range card.Width {
				colour := pixel(card, x, y)
				if isBorder := min(x, y, card.Width-1-x, card.Height-1-y) < 20; colour[3] != 255 || isBorder && colour != behind {
					t.Fatalf("%+v: the pixel %d, %d is %v", view, x, y, colour)
				}
				if colour != behind {
					figures++
				}
			}
		}
		testenv.Check(t, figures > card.Width*card.Height/5, "%+v: %d pixels show the texture", view, figures)
	}
}

// A card shows fine sheets as sheets of scale 4.
func TestCardOfFineSheets(t *testing.T) {
	t.Parallel()
	finer := func(sheet skin.Sheet) skin.Sheet {
		all := skin.NewSheet(2*sheet.Width, 2*sheet.Height)
		for y := range all.Height {
			for x := range all.Width {
				copy(all.Pix[all.At(x, y):], sheet.Pix[sheet.At(x/2, y/2):][:4])
			}
		}
		return all
	}
	figure, worn := skintest.Noise(1, 256, 256), skintest.Noise(2, 256, 128)
	for i := 3; i < len(figure.Pix); i += 4 { // drawing ignores the transparency of the base, averaging does not
		figure.Pix[i] = 255
	}
	view := render.View{Mode: render.Card, Type: skin.Classic, Size: 630, Wear: render.WearCape}
	testenv.Check(t, same(mustDrawWorn(t, finer(figure), finer(worn), view), mustDrawWorn(t, figure, worn, view)), "a sheet of scale 8 is not shown as one of scale 4")
}
