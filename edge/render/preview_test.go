package render_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/veneer-skins/veneer/edge/render"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/skin/skintest"
)

// previewHeight is the height of previews in the tests, large enough that no texel that is
// checked is at an edge.
const previewHeight = 1024

// front and back map a point to a preview: both figures seen from 25° above, 34.314 units in
// the height, each in the middle of its half.
func front(p point) (x, y float64) { return preview(p, 1) }
func back(p point) (x, y float64)  { return preview(point{-p.x, p.y, -p.z}, 3) }

func preview(p point, quarters float64) (x, y float64) {
	sin, cos := math.Sincos(25 * math.Pi / 180)
	image := func(p point) (x, y float64) {
		return (p.x - p.z) / math.Sqrt2, (p.x+p.z)/math.Sqrt2*sin - p.y*cos
	}
	_, top := image(point{-4.5, 32.5, -4.5})
	_, bottom := image(point{4.25, -0.25, 2.25})
	scale := previewHeight / (bottom - top)
	half := math.Ceil(scale * (21/math.Sqrt2 + 1))
	x, y = image(p)
	return quarters*half/2 + scale*x, scale * (y - top)
}

// modelLimb is a box of the model: its texels are unfolded from u, v; from is a corner of the
// base.
type modelLimb struct {
	name    string
	u, v    int
	from    point
	w, h, d int
}

// limbs lists base and layers, right limbs first.
func limbs(arm int) (base, layers []modelLimb) {
	a := float64(arm)
	base = []modelLimb{
		{"head", 0, 0, point{-4, 24, -4}, 8, 8, 8},
		{"body", 16, 16, point{-4, 12, -2}, 8, 12, 4},
		{"right arm", 40, 16, point{-4 - a, 12, -2}, arm, 12, 4},
		{"left arm", 32, 48, point{4, 12, -2}, arm, 12, 4},
		{"right leg", 0, 16, point{-4, 0, -2}, 4, 12, 4},
		{"left leg", 16, 48, point{0, 0, -2}, 4, 12, 4},
	}
	layers = []modelLimb{
		{"hat", 32, 0, base[0].from, 8, 8, 8},
		{"jacket", 16, 32, base[1].from, 8, 12, 4},
		{"right sleeve", 40, 32, base[2].from, arm, 12, 4},
		{"left sleeve", 48, 48, base[3].from, arm, 12, 4},
		{"right pants", 0, 32, base[4].from, 4, 12, 4},
		{"left pants", 0, 48, base[5].from, 4, 12, 4},
	}
	return base, layers
}

// patches returns the upright faces of a limb that is larger than its texels by grow on every
// side: those visible from the front, and those visible from the back.
func (l modelLimb) patches(grow float64) (fromFront, fromBack []facePatch) {
	w, h, d := float64(l.w), float64(l.h), float64(l.d)
	x0, y1, z0 := l.from.x-grow, l.from.y+h+grow, l.from.z-grow
	x1, z1 := l.from.x+w+grow, l.from.z+d+grow
	ew, eh, ed := (w+2*grow)/w, (h+2*grow)/h, (d+2*grow)/d
	down := point{y: -eh}

	skip := 3 // rows that the head, or an arm, may hide
	if l.h == 8 {
		skip = 0
	}
	fromFront = []facePatch{{l.name + " front", l.u + l.d, l.v + l.d, l.w, l.h, point{x0, y1, z1}, point{x: ew}, down, 90, skip}}
	fromBack = []facePatch{{l.name + " back", l.u + 2*l.d + l.w, l.v + l.d, l.w, l.h, point{x1, y1, z0}, point{x: -ew}, down, 90, skip}}
	rows := l.h
	if l.name == "hat" {
		rows-- // the last is behind a sleeve
	}
	if l.from.x+w > 4 || l.name == "left leg" || l.name == "left pants" || l.h == 8 {
		fromFront = append(fromFront, facePatch{l.name + " left", l.u + l.d + l.w, l.v + l.d, l.d, rows, point{x1, y1, z1}, point{z: -ed}, down, 70, skip})
	}
	if l.from.x < -4 || l.name == "right leg" || l.name == "right pants" || l.h == 8 {
		fromBack = append(fromBack, facePatch{l.name + " right", l.u, l.v + l.d, l.d, rows, point{x0, y1, z0}, point{z: ed}, down, 70, skip})
	}
	return fromFront, fromBack
}

func TestPreviewShowsTheRightTexels(t *testing.T) {
	t.Parallel()

	for _, test := range []struct {
		name string
		as   skin.Type
		arm  int
	}{
		{"classic", skin.Classic, 4},
		{"slim", skin.Slim, 3},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()

			base, layers := limbs(test.arm)
			view := render.View{Mode: render.Preview, Type: test.as, Size: previewHeight}

			covered := skintest.Marker(64, 64)
			picture := mustDraw(t, covered, view)
			for _, l := range layers {
				grow := 0.25
				if l.name == "hat" {
					grow = 0.5
				}
				fromFront, fromBack := l.patches(grow)
				expectTexels(t, picture, covered, front, fromFront)
				expectTexels(t, picture, covered, back, fromBack)
			}

			bare := skintest.Marker(64, 64)
			fill(bare, 32, 0, 32, 16, [4]byte{})
			fill(bare, 0, 32, 64, 16, [4]byte{})
			fill(bare, 0, 48, 16, 16, [4]byte{})
			fill(bare, 48, 48, 16, 16, [4]byte{})
			picture = mustDraw(t, bare, view)
			for _, l := range base {
				fromFront, fromBack := l.patches(0)
				expectTexels(t, picture, bare, front, fromFront)
				expectTexels(t, picture, bare, back, fromBack)
			}
			expectTexels(t, picture, bare, front, []facePatch{
				{"head top", 8, 0, 8, 8, point{-4, 32, -4}, point{x: 1}, point{z: 1}, 100, 0},
				{"left arm top", 32 + 4, 48, test.arm, 4, point{4, 24, -2}, point{x: 1}, point{z: 1}, 100, 0},
			})
			expectTexels(t, picture, bare, back, []facePatch{
				{"head top", 8, 0, 8, 8, point{-4, 32, -4}, point{x: 1}, point{z: 1}, 100, 0},
				{"right arm top", 44, 16, test.arm, 4, point{float64(-4 - test.arm), 24, -2}, point{x: 1}, point{z: 1}, 100, 0},
			})

			// There is no gap from hand to hand, and nothing beyond.
			for x := -4 - float64(test.arm) + 0.05; x < 4+float64(test.arm); x += 0.01 {
				px, py := front(point{x, 18.3, 2})
				if pixel(picture, int(px), int(py))[3] != 255 {
					t.Fatalf("a gap at x = %.2f", x)
				}
			}
			px, py := front(point{-4.1 - float64(test.arm), 18.3, 2})
			if pixel(picture, int(px), int(py))[3] != 0 {
				t.Errorf("the right arm is too wide")
			}
		})
	}
}

// Where the left sleeve and the left trouser leg lie in one plane, the sleeve is in front, as
// the game draws it last. From the front none of it is visible there.
func TestSleeveShowsBeforeTrousers(t *testing.T) {
	t.Parallel()

	sheet := skintest.Marker(64, 64)
	fill(sheet, 16, 32, 24, 16, [4]byte{}) // the jacket
	picture := mustDraw(t, sheet, render.View{Mode: render.Preview, Type: skin.Classic, Size: previewHeight})
	f := func(name string, where func(point) (x, y float64), at point, u, v int) {
		t.Helper()
		x, y := where(at)
		if got, want := pixel(picture, int(x), int(y)), lit(sheet.Pix[sheet.At(u, v):], 90); got != want {
			t.Errorf("%s: %v; want %v", name, got, want)
		}
	}

	f("from the back", back, point{4.1, 12, -2.25}, 63, 63)
}

// Translucent layers of one colour have no seam where body parts adjoin: away from outlines the
// front of body, arms and legs is one colour, and so is the back.
func TestGlassHasNoSeams(t *testing.T) {
	t.Parallel()

	for _, as := range []skin.Type{skin.Classic, skin.Slim} {
		for _, k := range []int{1, 8} { // crisp and smooth
			t.Run(fmt.Sprintf("%s, scale %d", as, k), func(t *testing.T) {
				t.Parallel()

				sheet := skin.NewSheet(64*k, 64*k)
				fill(sheet, 0, 0, 64*k, 64*k, [4]byte{200, 160, 120, 255})
				for _, a := range layerAreas {
					fill(sheet, a[0]*k, a[1]*k, a[2]*k, a[3]*k, [4]byte{30, 90, 180, 110})
				}
				fill(sheet, 32*k, 0, 32*k, 16*k, [4]byte{}) // the hat
				picture := mustDraw(t, sheet, render.View{Mode: render.Preview, Type: as, Size: previewHeight})

				hands := 8.0
				if as == skin.Slim {
					hands = 7
				}
				seen := func(where func(point) (x, y float64), p point) [4]byte {
					x, y := where(p)
					return pixel(picture, int(x), int(y))
				}
				one := seen(front, point{0, 18, 2.25})
				// Behind the rim of the layers there is nothing, and above row 21 the head.
				const rim, step = 0.4, 1.0 / 32
				for y := rim; y < 21; y += step {
					reach := 4 - rim
					if y > 12+rim {
						reach = hands - rim
					}
					for x := -reach; x < reach; x += step {
						if got := seen(front, point{x, y, 2.25}); got != one {
							t.Fatalf("the front is %v at %.2f, %.2f; want %v", got, x, y, one)
						}
						if got := seen(back, point{x, y, -2.25}); got != one {
							t.Fatalf("the back is %v at %.2f, %.2f; want %v", got, x, y, one)
						}
					}
				}
			})
		}
	}
}

// The left limbs of a legacy skin mirror the right ones, and its only layer is the hat.
func TestPreviewOfLegacySkin(t *testing.T) {
	t.Parallel()

	legacy := skintest.Marker(64, 32)
	fill(legacy, 32, 0, 32, 16, [4]byte{})
	picture := mustDraw(t, legacy, render.View{Mode: render.Preview, Type: skin.Classic, Size: previewHeight})

	base, _ := limbs(4)
	for _, l := range base[:3] {
		fromFront, fromBack := l.patches(0)
		expectTexels(t, picture, legacy, front, fromFront)
		expectTexels(t, picture, legacy, back, fromBack)
	}
	mirrored := point{x: -1}
	down := point{y: -1}
	expectTexels(t, picture, legacy, front, []facePatch{
		{"left arm front", 44, 20, 4, 12, point{8, 24, 2}, mirrored, down, 90, 3},
		{"left arm outside", 40, 20, 4, 12, point{8, 24, -2}, point{z: 1}, down, 70, 3},
		{"left leg front", 4, 20, 4, 12, point{4, 12, 2}, mirrored, down, 90, 3},
		{"left leg outside", 0, 20, 4, 12, point{4, 12, -2}, point{z: 1}, down, 70, 3},
	})
	expectTexels(t, picture, legacy, back, []facePatch{
		{"left arm back", 52, 20, 4, 12, point{4, 24, -2}, point{x: 1}, down, 90, 3},
	})
}

// HD sheets are drawn at their own scale, in every mode. They have other sub-columns, which may
// change a few pixels of the outline.
func TestHDSheetsLookLikeClassicOnes(t *testing.T) {
	t.Parallel()

	classic := skintest.Noise(3, 64, 64)
	for _, k := range []int{2, 3} {
		hd := skin.NewSheet(64*k, 64*k)
		for y := range hd.Height {
			for x := range hd.Width {
				copy(hd.Pix[hd.At(x, y):][:4], classic.Pix[classic.At(x/k, y/k):])
			}
		}
		for _, view := range []render.View{
			{Mode: render.Flat, Type: skin.Classic, Size: 48},
			{Mode: render.Isometric, Type: skin.Slim, Size: 512},
			{Mode: render.Preview, Type: skin.Slim, Size: previewHeight},
		} {
			got, want := mustDraw(t, hd, view), mustDraw(t, classic, view)
			pixels, apart := len(want.Pix)/4, 0
			for i := range pixels {
				if [4]byte(got.Pix[4*i:]) != [4]byte(want.Pix[4*i:]) {
					apart++
				}
			}
			if apart > pixels/10_000 {
				t.Errorf("%+v: scale %d looks different in %d pixels of %d", view, k, apart, pixels)
			}
		}
	}
}

func TestPreviewMeasures(t *testing.T) {
	t.Parallel()

	f := func(as skin.Type, height, width int) {
		t.Helper()
		picture := mustDraw(t, skin.NewSheet(64, 32), render.View{Mode: render.Preview, Type: as, Size: height})
		got := []int{picture.Width, picture.Height, len(picture.Pix)}
		if diff := cmp.Diff([]int{width, height, 4 * width * height}, got); diff != "" {
			t.Errorf("preview of %s (-want +got):\n%s", as, diff)
		}
	}

	f(skin.Classic, 64, 60)
	f(skin.Classic, 400, 370)
	f(skin.Slim, 400, 370)
	f(skin.Classic, 1024, 946)
	f(skin.Cape, 64, 88)
	f(skin.Cape, 400, 550)
}
