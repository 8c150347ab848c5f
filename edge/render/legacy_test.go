package render_test

import (
	"bytes"
	"fmt"
	"math"
	"testing"

	"github.com/veneer-skins/veneer/edge/render"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/skin/skintest"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// legacyFaces are the faces of a legacy sheet: where each lies there, its origin on a classic
// and on a slim sheet, and how far below it the layer over it lies.
var legacyFaces = []struct {
	name          string
	x, y, w, h    int
	slimX, slimW  int
	layerX, layer int // offset of the layer; none if both are 0
}{
	{"head, first row", 8, 0, 16, 8, 8, 16, 0, 0},
	{"head, second row", 0, 8, 32, 8, 0, 32, 0, 0},
	{"body, first row", 20, 16, 16, 4, 20, 16, 0, 16},
	{"body, second row", 16, 20, 24, 12, 16, 24, 0, 16},
	{"leg, first row", 4, 16, 8, 4, 4, 8, 0, 16},
	{"leg, second row", 0, 20, 16, 12, 0, 16, 0, 16},
	{"top of the arm", 44, 16, 4, 4, 44, 3, 0, 16},
	{"bottom of the arm", 48, 16, 4, 4, 47, 3, 0, 16},
	{"right side of the arm", 40, 20, 4, 12, 40, 4, 0, 16},
	{"front of the arm", 44, 20, 4, 12, 44, 3, 0, 16},
	{"left side of the arm", 48, 20, 4, 12, 47, 4, 0, 16},
	{"back of the arm", 52, 20, 4, 12, 51, 3, 0, 16},
}

// legacyHat are the faces of the hat, which stays a layer.
var legacyHat = []struct{ x, y, w, h int }{{40, 0, 16, 8}, {32, 8, 32, 8}}

// A legacy sheet is that of a straightforward reference implementation, for both models and all
// scales, and everything beside the faces is transparent.
func TestLegacySheet(t *testing.T) {
	t.Parallel()
	for _, model := range []skin.Type{skin.Classic, skin.Slim} {
		for _, k := range []int{1, 2, 3, 8, 16} {
			t.Run(fmt.Sprintf("%s of scale %d", model, k), func(t *testing.T) {
				t.Parallel()
				sheet := skintest.Noise(uint64(k), 64*k, 64*k)
				want := render.Picture{Width: 64, Height: 32, Pix: make([]byte, 4*64*32)}
				for _, f := range legacyFaces {
					fromX, fromW := f.x, f.w
					if model == skin.Slim {
						fromX, fromW = f.slimX, f.slimW
					}
					for v := range f.h {
						for u := range f.w {
							column := u
							if fromW == 3 {
								column = [...]int{0, 1, 1, 2}[u]
							}
							copy(want.Pix[4*((f.y+v)*64+f.x+u):], flattened(sheet, k, fromX+column, f.y+v, f.layer))
						}
					}
				}
				for _, f := range legacyHat {
					for v := range f.h {
						for u := range f.w {
							copy(want.Pix[4*((f.y+v)*64+f.x+u):], reduced(sheet, k, f.x+u, f.y+v))
						}
					}
				}
				got := mustDraw(t, sheet, render.View{Mode: render.LegacySheet, Type: model, Size: 32})
				if got.Width != 64 || got.Height != 32 {
					t.Fatalf("%d × %d pixels; want 64 × 32", got.Width, got.Height)
				}
				for i := 0; i < len(want.Pix); i += 4 {
					if !bytes.Equal(got.Pix[i:i+4], want.Pix[i:i+4]) {
						t.Fatalf("pixel %d, %d is %v; want %v", i/4%64, i/4/64, got.Pix[i:i+4], want.Pix[i:i+4])
					}
				}
			})
		}
	}
}

// flattened returns the average of a texel of the base, which is opaque, with the layer that lies
// some texels below it on the sheet, 0 for none.
func flattened(sheet skin.Sheet, k, x, y, layer int) []byte {
	var sums [3]int
	for dy := range k {
		for dx := range k {
			base := sheet.Pix[sheet.At(x*k+dx, y*k+dy):]
			over := []byte{0, 0, 0, 0}
			if layer > 0 {
				over = sheet.Pix[sheet.At(x*k+dx, (y+layer)*k+dy):]
			}
			for c := range sums {
				sums[c] += int(math.Round((float64(over[c])*float64(over[3]) + float64(base[c])*(255-float64(over[3]))) / 255))
			}
		}
	}
	mean := func(sum int) byte { return byte(math.Round(float64(sum) / float64(k*k))) }
	return []byte{mean(sums[0]), mean(sums[1]), mean(sums[2]), 255}
}

// reduced returns the average of a texel of the hat, weighted by alpha.
func reduced(sheet skin.Sheet, k, x, y int) []byte {
	var sums [3]float64
	alphas := 0.0
	for dy := range k {
		for dx := range k {
			texel := sheet.Pix[sheet.At(x*k+dx, y*k+dy):]
			for c := range sums {
				sums[c] += float64(texel[c]) * float64(texel[3])
			}
			alphas += float64(texel[3])
		}
	}
	alpha := byte(math.Round(alphas / float64(k*k)))
	if alpha == 0 {
		return []byte{0, 0, 0, 0}
	}
	return []byte{byte(math.Round(sums[0] / alphas)), byte(math.Round(sums[1] / alphas)), byte(math.Round(sums[2] / alphas)), alpha}
}

// A game before 1.8 shows the same of a legacy sheet as of the one that is drawn for it, whatever
// model it is stored as. Games remove the hat of a sheet that has no transparent texel in that
// half, so the drawn one always has one, unless it has no hat.
func TestLegacySheetOfLegacySheet(t *testing.T) {
	t.Parallel()
	f := func(name string, sheet skin.Sheet, hasHat bool) {
		t.Helper()
		want := sheet.Normalised(skin.Classic)
		for _, model := range []skin.Type{skin.Classic, skin.Slim} {
			drawn := mustDraw(t, sheet, render.View{Mode: render.LegacySheet, Type: model, Size: 32})
			got := skin.Sheet{Width: drawn.Width, Height: drawn.Height, Pix: drawn.Pix}.Normalised(skin.Classic)
			for part := skin.Head; part <= skin.LeftPants; part++ {
				b := skin.Faces(part, skin.Classic)
				for _, face := range []skin.Rect{b.Top, b.Bottom, b.Right, b.Front, b.Left, b.Back} {
					for y := face.Y; y < face.Y+face.H; y++ {
						for x := face.X; x < face.X+face.W; x++ {
							g, w := [4]byte(got.Pix[got.At(x, y):]), [4]byte(want.Pix[want.At(x, y):])
							if g != w && (g[3] > 0 || w[3] > 0) {
								t.Fatalf("%s as %s: texel %d, %d is shown as %v; want %v", name, model, x, y, g, w)
							}
						}
					}
				}
			}
			if front := drawn.Pix[4*(10*64+44)+3]; (front > 0) != hasHat {
				t.Errorf("%s as %s: the hat has alpha %d; is there one: %t", name, model, front, hasHat)
			}
		}
	}
	f("noise", skintest.Noise(1, 64, 32), skintest.Noise(1, 64, 32).Pix[4*(10*64+44)+3] > 0)
	f("the legacy skin", readSheet(t, "legacy"), true)
	f("an opaque one", readSheet(t, "hatless"), false)
	full := skintest.Marker(64, 64)
	fill(full, 32, 0, 32, 16, [4]byte{9, 8, 7, 255})
	drawn := mustDraw(t, full, render.View{Mode: render.LegacySheet, Type: skin.Classic, Size: 32})
	shown := skin.Sheet{Width: 64, Height: 32, Pix: drawn.Pix}.Normalised(skin.Classic)
	testenv.Equal(t, [4]byte(shown.Pix[shown.At(44, 10):]), [4]byte{9, 8, 7, 255},
		"the opaque hat of a square sheet is shown as")
}
