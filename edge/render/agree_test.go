package render_test

import (
	"math/rand/v2"
	"testing"

	"github.com/veneer-skins/veneer/edge/render"
	"github.com/veneer-skins/veneer/shared/skin"
)

// Each view of many random skins looks as the slow and plain way to draw it says.
func TestDrawAgreesWithReference(t *testing.T) {
	t.Parallel()

	classic := func(height, k, step int) *plan { return previewPlan(classicArms, height, k, step) }
	slim := func(height, k, step int) *plan { return previewPlan(slimArms, height, k, step) }
	for _, test := range []struct {
		name   string
		view   render.View
		plan   func(size, k, step int) *plan
		shapes []shape
	}{
		{"flat", render.View{Pose: render.Flat, Type: skin.Steve}, flatPlan, []shape{
			{8, 1, 1}, {24, 1, 1}, {64, 1, 1}, {256, 1, 1}, {8, 2, 1}, {40, 2, 1}, {96, 2, 1}, {24, 4, 1}, {96, 4, 1}, {104, 4, 1}, {16, 8, 1}, {88, 8, 1}, {128, 8, 1},
		}},
		{"isometric", render.View{Pose: render.Isometric, Type: skin.Steve}, isometricPlan, []shape{
			{8, 1, 1}, {24, 1, 1}, {56, 1, 1}, {64, 1, 1}, {96, 1, 1}, {512, 1, 16}, {16, 2, 1}, {72, 2, 2}, {120, 2, 2}, {96, 4, 2}, {240, 4, 8}, {48, 8, 1}, {472, 8, 32},
		}},
		{"preview", render.View{Pose: render.Preview, Type: skin.Steve}, classic, []shape{
			{64, 1, 1}, {128, 1, 2}, {144, 1, 2}, {400, 1, 8}, {1024, 1, 32}, {80, 2, 2}, {288, 2, 8}, {96, 4, 3}, {560, 4, 20}, {96, 8, 3},
		}},
		{"slim preview", render.View{Pose: render.Preview, Type: skin.Alex}, slim, []shape{
			{64, 1, 1}, {96, 1, 2}, {144, 1, 2}, {400, 1, 8}, {80, 2, 2}, {288, 2, 8}, {80, 4, 3}, {560, 4, 20}, {64, 8, 3},
		}},
		{"cape", render.View{Pose: render.Preview, Type: skin.Cape}, capePlan, []shape{
			{64, 1, 1}, {80, 1, 1}, {400, 1, 1}, {64, 2, 1}, {144, 2, 1}, {64, 4, 1}, {208, 4, 1}, {64, 8, 1}, {112, 8, 1}, {128, 8, 1}, {272, 8, 1},
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()

			const skins = 200
			var all tally
			var list []colour
			for i, s := range test.shapes {
				view := test.view
				view.Size = s.size
				plan := test.plan(s.size, s.k, s.step)
				for seed := i; seed < skins; seed += len(test.shapes) {
					sheet := randomSheet(uint64(seed), view.Type, s.k)
					texels := sheet.Pix
					if view.Type != skin.Cape {
						texels = worn(sheet)
					}
					colours := plan.colours(texels)
					picture := mustDraw(t, sheet, view)
					if picture.Width != plan.width || picture.Height != plan.height {
						t.Fatalf("%d × %d pixels; want %d × %d", picture.Width, picture.Height, plan.width, plan.height)
					}
					for j := range plan.places {
						if y := j / plan.width; y%plan.step != plan.step/2 {
							continue
						}
						list = plan.outcomes(list[:0], &plan.places[j], colours)
						got := colour(picture.Pix[4*j:])
						if !all.count(got, list) && all.wrong <= 20 {
							t.Logf("skin %d of scale %d, size %d: pixel %d, %d is %v; want %v", seed, s.k, s.size, j%plan.width, j/plan.width, got, list)
						}
					}
				}
			}
			all.judge(t)
		})
	}
}

// shape is the size of a picture, the scale of the sheet it shows, and the step
// from one row that is compared to the next.
type shape struct{ size, k, step int }

// tally counts how pixels compare.
type tally struct {
	pixels, shown, wrong int
	alpha                int // the furthest that any pixel's is off
	errors               [4]int
}

// count adds a pixel, and reports whether it is near one of the colours it may
// have.
func (a *tally) count(got colour, list []colour) bool {
	a.pixels++
	if got[3] > 0 || list[0][3] > 0 {
		a.shown++
	}
	var nearest [4]int
	far := 256
	for _, want := range list {
		var off [4]int
		for c := range 4 {
			if c == 3 || got[3] > 0 && want[3] > 0 {
				off[c] = max(int(got[c])-int(want[c]), int(want[c])-int(got[c]))
			}
		}
		if worst := max(off[0], off[1], off[2], off[3]); worst < far {
			far, nearest = worst, off
		}
	}
	a.alpha = max(a.alpha, nearest[3])
	for c := range 4 {
		a.errors[c] += nearest[c]
	}
	if far > 8 {
		a.wrong++
		return false
	}
	return true
}

// judge says what was counted, and fails if it is not good enough.
func (a *tally) judge(t *testing.T) {
	t.Helper()
	right := 1 - float64(a.wrong)/float64(a.shown)
	var mean [4]float64
	for c := range 4 {
		mean[c] = float64(a.errors[c]) / float64(a.shown)
	}
	t.Logf("%d pixels, %d of them not empty: %.4f %% right; mean error %.3f; alpha off by at most %d", a.pixels, a.shown, 100*right, mean, a.alpha)
	if right < 0.999 {
		t.Error("fewer than 99.9 % of the pixels are right")
	}
	if max(mean[0], mean[1], mean[2], mean[3]) > 1 {
		t.Error("the mean error is above 1")
	}
	if a.alpha > 16 {
		t.Error("an alpha is off by more than 16")
	}
}

// randomSheet paints a texture: noise, or patches of few colours, with more or
// less of it transparent. Every third skin is a legacy one.
func randomSheet(seed uint64, as skin.Type, k int) skin.Sheet {
	r := rand.New(rand.NewPCG(seed, 0))
	sheet := skin.NewSheet(64*k, 64*k)
	if as == skin.Cape || seed%3 == 2 {
		sheet = skin.NewSheet(64*k, 32*k)
	}
	holes, panes := []float64{0.3, 0, 0, 0.9}[seed/3%4], []float64{0.3, 0, 0.5, 0.05}[seed/3%4]
	texel := func() (c [4]byte) {
		c = [4]byte{byte(r.IntN(256)), byte(r.IntN(256)), byte(r.IntN(256)), 255}
		switch x := r.Float64(); {
		case x < holes:
			c[3] = 0
		case x < holes+panes:
			c[3] = byte(1 + r.IntN(254))
		}
		return c
	}
	if seed/12%2 == 0 {
		for i := 0; i < len(sheet.Pix); i += 4 {
			c := texel()
			copy(sheet.Pix[i:], c[:])
		}
		return sheet
	}
	var few [5][4]byte
	for i := range few {
		few[i] = texel()
	}
	for y := 0; y < sheet.Height; y += 2 {
		for x := 0; x < sheet.Width; {
			w := min(1+r.IntN(4*k), sheet.Width-x)
			fill(sheet, x, y, w, 2, few[r.IntN(len(few))])
			x += w
		}
	}
	return sheet
}
