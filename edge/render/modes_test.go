package render_test

import (
	"math"
	"testing"

	"github.com/veneer-skins/veneer/edge/render"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/skin/skintest"
)

// point is a point of the model: x to the player's left, y upwards, z to the player's front, in
// units from between the feet.
type point struct{ x, y, z float64 }

// facePatch is a face of the model that should be visible: the texels from x, y on lie on it
// from the point at on, columns apart by across and rows by down.
type facePatch struct {
	name         string
	x, y, w, h   int
	at           point
	across, down point
	light        int // percent
	skip         int // rows from the top that other body parts may hide
}

// expectTexels checks that the middle of every texel of the patches is where it should be.
// Where maps a point of the model to the picture.
func expectTexels(t *testing.T, picture render.Picture, sheet skin.Sheet, where func(point) (x, y float64), patches []facePatch) {
	t.Helper()
	for _, p := range patches {
		for v := p.skip; v < p.h; v++ {
			for u := range p.w {
				s, r := float64(u)+0.5, float64(v)+0.5
				x, y := where(point{
					p.at.x + s*p.across.x + r*p.down.x,
					p.at.y + s*p.across.y + r*p.down.y,
					p.at.z + s*p.across.z + r*p.down.z,
				})
				got := pixel(picture, int(x), int(y))
				want := lit(sheet.Pix[sheet.At(p.x+u, p.y+v):], p.light)
				if got != want {
					t.Errorf("%s, texel %d, %d at pixel %.1f, %.1f: %v; want %v", p.name, u, v, x, y, got, want)
					return
				}
			}
		}
	}
}

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

// isometric maps a point to an isometric picture: 14.697 units in the height, the middle of the
// head in the middle.
func isometric(side int) func(point) (x, y float64) {
	scale := float64(side) / (9 * math.Sqrt(8.0/3))
	return func(p point) (x, y float64) {
		x = (p.x + p.z) / math.Sqrt2
		y = (p.z-p.x)/math.Sqrt(6) - (p.y-28)*math.Sqrt(2.0/3)
		return float64(side)/2 + scale*x, float64(side)/2 + scale*y
	}
}

// headPatches returns the visible faces of a box around the head's middle, size units wide,
// with its texels unfolded from x on.
func headPatches(name string, x int, size float64) []facePatch {
	e, h := size/8, size/2
	return []facePatch{
		{name + " top", x + 8, 0, 8, 8, point{-h, 28 + h, -h}, point{x: e}, point{z: e}, 100, 0},
		{name + " right", x, 8, 8, 8, point{-h, 28 + h, -h}, point{z: e}, point{y: -e}, 70, 0},
		{name + " front", x + 8, 8, 8, 8, point{-h, 28 + h, h}, point{x: e}, point{y: -e}, 90, 0},
	}
}

func TestIsometricShowsTheRightTexels(t *testing.T) {
	t.Parallel()

	for _, side := range []int{96, 512} {
		view := render.View{Mode: render.Isometric, Type: skin.Classic, Size: side}

		covered := skintest.Marker(64, 64)
		expectTexels(t, mustDraw(t, covered, view), covered, isometric(side), headPatches("hat", 32, 9))

		bare := skintest.Marker(64, 64)
		fill(bare, 32, 0, 32, 16, [4]byte{})
		expectTexels(t, mustDraw(t, bare, view), bare, isometric(side), headPatches("head", 0, 8))
	}
}

// Through holes of a hat the inner sides of its far faces are visible, above and beside the
// head.
func TestIsometricShowsTheInsideOfTheHat(t *testing.T) {
	t.Parallel()

	sheet := skintest.Marker(64, 64)
	fill(sheet, 32, 0, 32, 8, [4]byte{}) // top and bottom
	fill(sheet, 32, 8, 16, 8, [4]byte{}) // right and front
	picture := mustDraw(t, sheet, render.View{Mode: render.Isometric, Type: skin.Classic, Size: 512})
	const e = 9.0 / 8
	expectTexels(t, picture, sheet, isometric(512), append(headPatches("head", 0, 8),
		facePatch{"hat back", 56, 8, 8, 1, point{4.5, 32.5, -4.5}, point{x: -e}, point{y: -e}, 90, 0},
		facePatch{"hat left", 48, 8, 8, 1, point{4.5, 32.5, 4.5}, point{z: -e}, point{y: -e}, 70, 0},
	))

	// The bottom lies as on the sheet, seen from above: its first row at the back, its first
	// column on the player's right. Only its rim is visible below the head.
	sheet = skintest.Marker(64, 64)
	fill(sheet, 32, 8, 32, 8, [4]byte{})
	fill(sheet, 40, 0, 8, 8, [4]byte{})
	picture = mustDraw(t, sheet, render.View{Mode: render.Isometric, Type: skin.Classic, Size: 512})
	where := isometric(512)
	for _, rim := range []struct {
		u, v int
		at   point
	}{
		{0, 7, point{-4.4, 23.5, 4.4}},
		{0, 0, point{-4.4, 23.5, -4.2}},
		{7, 7, point{4.2, 23.5, 4.4}},
	} {
		x, y := where(rim.at)
		got, want := pixel(picture, int(x), int(y)), lit(sheet.Pix[sheet.At(48+rim.u, rim.v):], 60)
		if got != want {
			t.Errorf("hat bottom, texel %d, %d: %v; want %v", rim.u, rim.v, got, want)
		}
	}
}

// A translucent texel is blended with what is behind it.
func TestLayersBlend(t *testing.T) {
	t.Parallel()

	sheet := skin.NewSheet(64, 64)
	fill(sheet, 0, 0, 32, 16, [4]byte{200, 100, 0, 255})
	fill(sheet, 32, 0, 32, 16, [4]byte{0, 100, 200, 51})
	picture := mustDraw(t, sheet, render.View{Mode: render.Isometric, Type: skin.Classic, Size: 512})

	f := func(at point, want [4]byte) {
		t.Helper()
		x, y := isometric(512)(at)
		got := pixel(picture, int(x), int(y))
		for c := range 4 {
			if diff := int(got[c]) - int(want[c]); diff < -1 || diff > 1 {
				t.Errorf("%+v: %v; want %v", at, got, want)
				return
			}
		}
	}

	// A fifth of the hat's front over four fifths of the head's.
	f(point{0, 28, 4.5}, [4]byte{144, 90, 36, 255})
	// The hat's front edge over the inside of its bottom, with nothing behind.
	f(point{4.4, 23.6, 4.5}, [4]byte{0, 80, 161, 92})
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
		if alpha(side/2, 1+side/100) == 0 || alpha(side/2, side-2-side/100) == 0 {
			t.Errorf("%d pixels: the head does not fill the height", side)
		}
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
	for _, mode := range []render.Mode{render.Bust, render.Body, render.Back, render.Left} {
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
		if mode != render.Left && (drawn(both, render.WearCape) == drawn(both, render.WearElytra) || drawn(both, render.WearCape) == bare) {
			t.Errorf("%s: cape, elytra and nothing are not three pictures", mode)
		}
	}
}
