//go:build !race

package render_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/veneer-skins/veneer/edge/render"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// turnedReference returns the map of one figure that is turned by eighths, from a pitch in radians.
// It is as large as it can be with all of shown in the picture in each of the eight turns.
func turnedReference(boxes, shown []modelBox, turn int, pitch float64, width, height, k, step int) *referenceMap {
	left, top, right, bottom := math.Inf(1), math.Inf(1), math.Inf(-1), math.Inf(-1)
	for i := range 8 {
		c := look(float64(i)*math.Pi/4, pitch)
		x0, y0, x1, y1 := c.extent(shown)
		left, top, right, bottom = min(left, x0), min(top, y0), max(right, x1), max(bottom, y1)
	}
	c := look(float64(turn)*math.Pi/4, pitch)
	c.scale = min(float64(width)/(right-left), float64(height)/(bottom-top))
	c.x, c.y = (float64(width)-c.scale*(left+right))/2, (float64(height)-c.scale*(top+bottom))/2

	m := newReferenceMap(width, height, step)
	m.crisp = c.scale >= 4*float64(k)
	m.draw(c, boxes, 0, width, k)
	return m
}

// bustBoxes are the boxes that a bust shows wholly: head, hat, body, jacket, and two thirds of the
// arms and sleeves. The body ends in its open plane.
func bustBoxes() []modelBox {
	boxes := slices.Concat(trunk, classicArms)
	for i := range boxes {
		b := &boxes[i]
		switch low, high := b.grown(); {
		case i < 2:
		case i < len(trunk):
			b.from, b.to, b.grow = vec{low[0], 12, low[2]}, high, 0
		default:
			b.from, b.to, b.grow = vec{low[0], 16, low[2]}, high, 0
		}
	}
	return boxes
}

// Figures in every attitude agree with the reference implementation, also without what can be left
// out. Some of the skins are legacy ones.
func TestTurnedFiguresAgreeWithReference(t *testing.T) {
	t.Parallel()
	testenv.SkipShort(t)

	const skins = 6 // in each attitude
	pitches := map[render.Tilt]float64{render.TiltIso: math.Atan(1 / math.Sqrt2), render.Tilt25: 25 * math.Pi / 180, render.TiltLevel: 0}
	models := map[skin.Type][]modelBox{skin.Classic: classicArms, skin.Slim: slimArms}
	classic := slices.Concat(trunk, classicArms, legs)
	for _, test := range []struct {
		mode   render.Mode
		shown  []modelBox
		shapes []shape
	}{
		{render.Isometric, []modelBox{headBox, hatBox}, []shape{{32, 1, 2}, {64, 1, 3}, {48, 4, 4}}},
		{render.Bust, bustBoxes(), []shape{{48, 1, 3}, {104, 1, 6}, {64, 8, 10}}},
		{render.Body, classic, []shape{{64, 1, 4}, {144, 1, 9}, {80, 4, 10}}},
	} {
		for model, arms := range models {
			boxes := slices.Concat(trunk, arms, legs)
			if test.mode == render.Isometric {
				if model == skin.Slim {
					continue // the head is the same
				}
				boxes = test.shown
			}
			for _, s := range test.shapes {
				t.Run(fmt.Sprintf("%s/%s/size=%d,scale=%d", test.mode, model, s.size, s.k), func(t *testing.T) {
					t.Parallel()

					var all comparison
					for tilt, pitch := range pitches {
						for turn := range render.TurnCount {
							attitude := test.mode.Attitude(turn, tilt)
							view := render.View{Mode: test.mode, Type: model, Size: s.size, Attitude: attitude}
							width, height := view.Extent()
							reference := turnedReference(boxes, test.shown, turn, pitch, width, height, s.k, s.step)
							before := all.wrong
							for seed := int(attitude); seed < int(attitude)+skins; seed++ {
								view.Omit = render.Omissions(seed/2) % 8 & test.mode.Omissible()
								all.compare(t, reference, view, uint64(seed), s.k, 0)
							}
							t.Logf("turn %d, tilt %d: %d wrong", turn, tilt, all.wrong-before)
						}
					}
					all.check(t, rightShare, maxAlphaError)
				})
			}
		}
	}
}

// One figure is the front half of a preview, wherever the halves of both fall on pixels alike.
func TestBodyIsTheFrontOfThePreview(t *testing.T) {
	t.Parallel()

	sheet := readSheet(t, "classic")
	compared := 0
	for size := 64; size <= 1024; size += 16 {
		preview := mustDraw(t, sheet, render.View{Mode: render.Preview, Type: skin.Classic, Size: size})
		body := mustDraw(t, sheet, render.View{Mode: render.Body, Type: skin.Classic, Size: size})
		half := preview.Width / 2
		if half%2 != body.Width%2 {
			continue
		}
		compared++
		apart := 0
		for y := range size {
			for x := range half {
				at := x + (body.Width-half)/2
				var want [4]byte
				if 0 <= at && at < body.Width {
					want = pixel(body, at, y)
				}
				if pixel(preview, x, y) != want {
					apart++
				}
			}
		}
		if apart > half*size/10_000 {
			t.Errorf("%d pixels: %d of the front of the preview are others", size, apart)
		}
	}
	if compared < 20 {
		t.Errorf("only %d sizes were compared", compared)
	}
}
