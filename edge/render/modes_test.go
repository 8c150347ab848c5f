package render_test

import (
	"math"
	"testing"

	"github.com/veneer-skins/veneer/edge/render"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/skin/skintest"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// layerAreas are the texels of the layers.
var layerAreas = []area{{32, 0, 32, 16}, {0, 32, 64, 16}, {0, 48, 16, 16}, {48, 48, 16, 16}}

// point is a point of the model: x to the player's left, y upwards, z to the player's front, in
// units from between the feet.
type point struct{ x, y, z float64 }

func pixel(p render.Picture, x, y int) [4]byte { return [4]byte(p.Pix[4*(y*p.Width+x):]) }

// lit returns a texel under a light.
func lit(texel []byte, light int) [4]byte {
	var c [4]byte
	for i := range 3 {
		c[i] = byte(math.Round(float64(texel[i]) * float64(light) / 100))
	}
	c[3] = texel[3]
	return c
}

// fill sets a rectangle of texels to a colour.
func fill(sheet skin.Sheet, x, y, w, h int, colour [4]byte) {
	for v := range h {
		for u := range w {
			copy(sheet.Pix[sheet.At(x+u, y+v):], colour[:])
		}
	}
}

// The head is symmetric and fills the height.
func TestIsometricOutline(t *testing.T) {
	t.Parallel()
	for _, side := range []int{8, 64, 96, 200, 512} {
		picture := mustDraw(t, skintest.Marker(64, 64), render.View{Mode: render.Isometric, Type: skin.Classic, Size: side})
		alpha := func(x, y int) byte { return pixel(picture, x, y)[3] }
		scale := float64(side) / (9 * math.Sqrt(8.0/3))
		left := (float64(side) - scale*9*math.Sqrt2) / 2 // x of the hat's left edge
		covered := 0.0
		for y := range side {
			for x := range side {
				if alpha(x, y) != alpha(side-1-x, y) {
					t.Fatalf("%d pixels: row %d is not symmetric", side, y)
				}
				if alpha(x, y) != 0 && (float64(x)+1 < left || float64(x) > float64(side)-left) {
					t.Fatalf("%d pixels: something at %d, %d beside the hat", side, x, y)
				}
				covered += float64(alpha(x, y)) / 255
			}
		}
		// Three faces of a cube of nine units, each shortened by √3.
		if want := math.Sqrt(3) * 81 * scale * scale; math.Abs(covered-want) > 0.5+want/100 {
			t.Errorf("%d pixels: %.1f of them covered; want %.1f", side, covered, want)
		}
		testenv.Check(t, alpha(side/2, 1+side/100) != 0 && alpha(side/2, side-2-side/100) != 0,
			"%d pixels: the head does not fill the height", side)
	}
}

// What is not on a cape's sheet is not worn: the other one of cape and elytra is, or nothing.
func TestBlankPartsAreNotWorn(t *testing.T) {
	t.Parallel()
	figure := skintest.Noise(1, 64, 64)
	cape, elytra, both := skin.NewSheet(64, 32), skin.NewSheet(64, 32), skin.NewSheet(64, 32)
	for _, part := range []struct {
		faces  skin.Box
		sheets []skin.Sheet
	}{{skin.CapeFaces(), []skin.Sheet{cape, both}}, {skin.ElytraFaces(), []skin.Sheet{elytra, both}}} {
		for _, sheet := range part.sheets {
			for _, face := range []skin.Rect{part.faces.Front, part.faces.Back} {
				fill(sheet, face.X, face.Y, face.W, face.H, [4]byte{200, 30, 40, 255})
			}
		}
	}
	for _, edge := range []int{0, 11} { // alone they are no cape
		fill(elytra, edge, 1, 1, 16, [4]byte{200, 30, 40, 255})
	}
	for _, mode := range []render.Mode{render.Bust, render.Body, render.Back, render.Left, render.Right} {
		view := render.View{Mode: mode, Type: skin.Classic, Size: mode.SizeOf(128)}
		drawn := func(worn skin.Sheet, wear render.Wear) string {
			view := view
			view.Wear = wear
			return string(mustDrawWorn(t, figure, worn, view).Pix)
		}
		bare := string(mustDraw(t, figure, view).Pix)
		if drawn(elytra, render.WearCape) != drawn(elytra, render.WearElytra) || drawn(cape, render.WearElytra) != drawn(cape, render.WearCape) {
			t.Errorf("%s: what is not on the sheet is worn", mode)
		}
		if drawn(skin.NewSheet(64, 32), render.WearCape) != bare || drawn(skin.NewSheet(64, 32), render.WearElytra) != bare {
			t.Errorf("%s: a blank sheet is not nothing", mode)
		}
		if mode != render.Left && mode != render.Right && (drawn(both, render.WearCape) == drawn(both, render.WearElytra) || drawn(both, render.WearCape) == bare) {
			t.Errorf("%s: cape, elytra and nothing are not three pictures", mode)
		}
	}
}
