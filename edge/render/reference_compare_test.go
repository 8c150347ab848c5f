//go:build !race

package render_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/veneer-skins/veneer/edge/render"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// Views of many random skins agree with the reference implementation. Flat pictures are left to
// TestFlat, which is exact.
func TestDrawAgreesWithReference(t *testing.T) {
	t.Parallel()
	testenv.SkipShort(t)

	isometric := func(size, k, step int) *referenceMap {
		view := render.View{Mode: render.Isometric, Type: skin.Classic, Size: size}
		return turnedReference(view, 1, isoPitch, turnedShape{size, k, 0, step}) // the default turn
	}
	classic := func(height, k, step int) *referenceMap { return previewReference(classicArms, height, k, step) }
	slim := func(height, k, step int) *referenceMap { return previewReference(slimArms, height, k, step) }
	for _, test := range []struct {
		name      string
		view      render.View
		reference func(size, k, step int) *referenceMap
		shapes    []shape
	}{
		{"isometric", render.View{Mode: render.Isometric, Type: skin.Classic}, isometric, []shape{
			{8, 1, 1}, {24, 1, 1}, {56, 1, 1}, {64, 1, 1}, {96, 1, 2}, {128, 1, 3}, {512, 1, 24}, {16, 2, 1}, {72, 2, 2}, {120, 2, 2}, {128, 3, 4}, {96, 4, 2}, {240, 4, 8}, {48, 8, 1}, {472, 8, 32}, {512, 8, 32},
		}},
		{"preview", render.View{Mode: render.Preview, Type: skin.Classic}, classic, []shape{
			{64, 1, 1}, {128, 1, 3}, {144, 1, 2}, {400, 1, 8}, {1024, 1, 32}, {80, 2, 3}, {288, 2, 8}, {96, 4, 4}, {560, 4, 20}, {1024, 7, 64}, {96, 8, 8}, {400, 8, 64},
		}},
		{"slim preview", render.View{Mode: render.Preview, Type: skin.Slim}, slim, []shape{
			{64, 1, 1}, {96, 1, 3}, {144, 1, 2}, {400, 1, 8}, {80, 2, 3}, {288, 2, 8}, {80, 4, 4}, {560, 4, 20}, {64, 8, 4}, {400, 8, 64},
		}},
		{"cape", render.View{Mode: render.Preview, Type: skin.Cape}, capeReference, []shape{
			{64, 1, 1}, {80, 1, 1}, {400, 1, 8}, {64, 2, 1}, {144, 2, 2}, {64, 4, 1}, {208, 4, 4}, {64, 8, 1}, {112, 8, 2}, {128, 8, 2}, {240, 8, 4}, {272, 8, 4},
		}},
	} {
		for i, s := range test.shapes {
			t.Run(fmt.Sprintf("%s/size=%d,scale=%d", test.name, s.size, s.k), func(t *testing.T) {
				t.Parallel()
				view := test.view
				view.Size = s.size
				reference := test.reference(s.size, s.k, s.step)
				var all comparison
				for seed := i * skinsPerView / len(test.shapes); seed < (i+1)*skinsPerView/len(test.shapes); seed++ {
					all.compare(t, reference, view, uint64(seed), s.k, 0)
				}
				all.check(t, rightShare, maxAlphaError)
			})
		}
	}
}

// skinsPerView is how many skins each view is drawn of. Each shape gets a range of them that
// has all kinds of randomSheet.
const skinsPerView = 200

// shape is the size of a picture and the scale of its sheet. One in step rows is compared.
type shape struct{ size, k, step int }

// comparison counts how pixels compare.
type comparison struct {
	pixels, visible, wrong int
	alpha                  int // greatest error of any pixel
	errors                 [4]int
}

// compare counts the pixels of a view of a random skin of scale k with a random cape of scale j, 0
// for none.
func (c *comparison) compare(t *testing.T, reference *referenceMap, view render.View, seed uint64, k, j int) {
	t.Helper()
	sheet, worn := randomSheet(seed, view.Type, k), skin.Sheet{}
	if j > 0 {
		worn = randomSheet(seed, skin.Cape, j)
		fill(worn, j, j, 1, 1, [4]byte{1, 2, 3, 255})      // the cape is not blank
		fill(worn, 24*j, 2*j, 1, 1, [4]byte{1, 2, 3, 255}) // nor are the elytra
	}
	picture := mustDrawWorn(t, sheet, worn, view)
	if picture.Width != reference.width || picture.Height != reference.height {
		t.Fatalf("%d × %d pixels; want %d × %d", picture.Width, picture.Height, reference.width, reference.height)
	}
	texels := sheet.Pix
	if view.Type != skin.Cape {
		texels = sheet.Normalised(skin.Classic).Pix
	}
	for i, c := range layerAreas {
		if i == 0 && view.Omit&render.OmitHat != 0 || i > 0 && view.Omit&render.OmitLayers != 0 {
			fill(skin.Sheet{Width: 64 * k, Height: 64 * k, Pix: texels}, c[0]*k, c[1]*k, c[2]*k, c[3]*k, [4]byte{})
		}
	}
	texels = append(texels, worn.Pix...)
	blends := reference.blends(texels, view.Omit&render.OmitLight == 0)
	var list []colour
	for _, y := range reference.rows {
		for x := range reference.width {
			at := y*reference.width + x
			list = reference.outcomes(list[:0], &reference.pixels[at], blends)
			got, most := colour(picture.Pix[4*at:]), tolerance
			if len(reference.pixels[at].shares) == 0 {
				most = 1 // the pixel shows one texel, or nothing, and only blending with layers is rounded
			}
			if !c.count(got, list, most) && c.wrong <= 5 {
				t.Logf("skin %d: pixel %d, %d is %v; want %v", seed, x, y, got, list)
			}
		}
	}
}

// count adds a pixel, and reports whether its values are off by at most so much from one of the colours it may have.
func (c *comparison) count(got colour, list []colour, most int) bool {
	c.pixels++
	if got[3] > 0 || list[0][3] > 0 {
		c.visible++
	}
	var nearest [4]int
	nearestDistance := 256
	for _, want := range list {
		var off [4]int
		for i := range 4 {
			if i == 3 || got[3] > 0 && want[3] > 0 {
				off[i] = max(int(got[i])-int(want[i]), int(want[i])-int(got[i]))
			}
		}
		if worst := max(off[0], off[1], off[2], off[3]); worst < nearestDistance {
			nearestDistance, nearest = worst, off
		}
	}
	c.alpha = max(c.alpha, nearest[3])
	for i := range 4 {
		c.errors[i] += nearest[i]
	}
	if nearestDistance > most {
		c.wrong++
		return false
	}
	return true
}

// tolerance is how far a value may be off. Alphas at an outline come in steps of 15, so that
// rounding alone moves them by 7.5; maxAlphaError adds the 2.7 % of 255 by which the points of
// a pixel may be wrong.
const tolerance, maxAlphaError = 8, 16

// rightShare is the least share of pixels that must be within the tolerance.
const rightShare = 0.999

// check logs the counts, and fails the test if less than a share is right, an alpha is off by more than
// allowed, or the mean error is above 1.
func (c *comparison) check(t *testing.T, share float64, alphaError int) {
	t.Helper()
	right := 1 - float64(c.wrong)/float64(c.visible)
	var mean [4]float64
	for i := range 4 {
		mean[i] = float64(c.errors[i]) / float64(c.visible)
	}
	t.Logf("%d pixels, %d of them not empty: %.4f %% right; mean error %.3f; alpha off by at most %d", c.pixels, c.visible, 100*right, mean, c.alpha)
	testenv.Check(t, right >= share, "fewer than %.1f %% of the pixels are right", 100*share)
	testenv.Check(t, max(mean[0], mean[1], mean[2], mean[3]) <= 1, "the mean error is above 1")
	testenv.Check(t, c.alpha <= alphaError, "an alpha is off by more than %d", alphaError)
}

// randomSheet paints a texture: noise, or patches of few colours, with more or less
// transparency. Every third skin is a legacy one.
func randomSheet(seed uint64, as skin.Type, k int) skin.Sheet {
	r := rand.New(rand.NewPCG(seed, 0))
	sheet := skin.NewSheet(64*k, 64*k)
	if as == skin.Cape || seed%3 == 2 {
		sheet = skin.NewSheet(64*k, 32*k)
	}
	transparentShare, translucentShare := []float64{0.3, 0, 0, 0.9}[seed/3%4], []float64{0.3, 0, 0.5, 0.05}[seed/3%4]
	texel := func() (c [4]byte) {
		c = [4]byte{byte(r.IntN(256)), byte(r.IntN(256)), byte(r.IntN(256)), 255}
		switch x := r.Float64(); {
		case x < transparentShare:
			c[3] = 0
		case x < transparentShare+translucentShare:
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
