package render_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/veneer-skins/veneer/edge/render"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/skin/skintest"
	"github.com/veneer-skins/veneer/shared/testenv"
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

// Where the left sleeve and the left trouser leg lie in one plane, the sleeve is in front, as
// the game draws it last. From the front none of it is visible there.
func TestSleeveShowsBeforeTrousers(t *testing.T) {
	t.Parallel()
	sheet := skintest.Marker(64, 64)
	fill(sheet, 16, 32, 24, 16, [4]byte{}) // the jacket
	picture := mustDraw(t, sheet, render.View{Mode: render.Preview, Type: skin.Classic, Size: previewHeight})
	x, y := back(point{4.1, 12, -2.25})
	testenv.Equal(t, pixel(picture, int(x), int(y)), lit(sheet.Pix[sheet.At(63, 63):], 90), "from the back")
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
