package render_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/veneer-skins/veneer/edge/render"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/skin/skintest"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// side draws a side of a normalised skin, simply and slowly.
func side(sheet skin.Sheet, view render.View) render.Picture {
	k, arms := sheet.Scale(), classicArms
	if view.Type == skin.Slim {
		arms = slimArms
	}
	w, h := 16*k, 32*k
	canvas := make([][4]int, w*h)
	for pair := range slices.Chunk(slices.Concat(trunk, arms, legs), 2) { // a box and its layer
		b := pair[0]
		of := map[render.Mode]struct {
			side int
			left float64 // where it is
		}{
			render.Front: {frontSide, 8 + b.from[0]},
			render.Back:  {backSide, 8 - b.to[0]},
			render.Left:  {leftSide, 8 - b.to[2]},
			render.Right: {rightSide, 8 + b.from[2]},
		}[view.Mode]
		if view.Mode == render.Left && b.to[0] <= 0 || view.Mode == render.Right && b.from[0] >= 0 {
			continue // a limb on the other side
		}
		omit, top := render.OmitLayers, 32-int(b.to[1])
		if top == 0 {
			omit = render.OmitHat
		}
		base, layer := b.sheet[of.side], pair[1].sheet[of.side]
		for v := range base[3] * k {
			for u := range base[2] * k {
				over := sheet.Pix[sheet.At(layer[0]*k+u, layer[1]*k+v):][:4]
				if view.Omit&omit != 0 {
					over = make([]byte, 4)
				}
				canvas[(top*k+v)*w+int(of.left)*k+u] = blended(over, sheet.Pix[sheet.At(base[0]*k+u, base[1]*k+v):])
			}
		}
	}
	return averaged(canvas, w, h, view.Size/2, view.Size)
}

// Sides are exactly those of a straightforward reference implementation.
func TestSides(t *testing.T) {
	t.Parallel()
	for mode := render.Front; mode <= render.Right; mode++ {
		for _, model := range []skin.Type{skin.Classic, skin.Slim} {
			for _, k := range []int{1, 2, 3, 8} {
				t.Run(fmt.Sprintf("%s/%s/scale=%d", mode, model, k), func(t *testing.T) {
					t.Parallel()
					for _, height := range []int{64 * k, 32 * k} {
						sheet := skintest.Noise(uint64(k), 64*k, height)
						normalised := sheet.Normalised(skin.Classic)
						for _, size := range []int{64, 80, 128, 176, 512} {
							for omit := range render.Omissions(4) {
								view := render.View{Mode: mode, Type: model, Size: size, Omit: omit}
								if got := mustDraw(t, sheet, view); !same(got, side(normalised, view)) {
									t.Errorf("%+v of %d × %d texels differs from the reference", view, sheet.Width, sheet.Height)
								}
							}
						}
					}
				})
			}
		}
	}
}

// A picture that leaves a layer out is that of a sheet without it.
func TestOmissionsClearTexels(t *testing.T) {
	t.Parallel()
	whole := skintest.Noise(1, 64, 64)
	for mode := range render.Mode(render.ModeCount) {
		for omit := range mode.Omissible() + 1 {
			if omit&^mode.Omissible() != 0 {
				continue
			}
			view := render.View{Mode: mode, Type: skin.Slim, Size: mode.SizeOf(128), Omit: omit}
			sheet := skin.Sheet{Width: 64, Height: 64, Pix: append([]byte(nil), whole.Pix...)}
			for i, a := range layerAreas {
				if i == 0 && omit&render.OmitHat != 0 || i > 0 && omit&render.OmitLayers != 0 {
					fill(sheet, a[0], a[1], a[2], a[3], [4]byte{})
				}
			}
			got := mustDraw(t, whole, view)
			view.Omit &= render.OmitLight
			testenv.Check(t, same(got, mustDraw(t, sheet, view)),
				"%s without %d is not that of a sheet without it", mode, omit)
		}
	}
}

// What is worn lies over the back and beside it, each texel of the finer sheet as a square, and blends
// with what is behind it.
func TestSidesShowWhatIsWorn(t *testing.T) {
	t.Parallel()
	type wornFace struct {
		texels   area
		x, y     int // of the top left corner, in units
		mirrored bool
	}
	cape, elytra := render.WearCape, render.WearElytra
	for _, test := range []struct {
		mode  render.Mode
		wear  render.Wear
		faces []wornFace
	}{
		{render.Back, cape, []wornFace{{area{1, 1, 10, 16}, 3, 8, false}}},
		{render.Left, cape, []wornFace{{area{0, 1, 1, 16}, 10, 8, false}}},
		{render.Right, cape, []wornFace{{area{11, 1, 1, 16}, 5, 8, false}}},
		{render.Back, elytra, []wornFace{{area{36, 2, 10, 20}, -2, 8, false}, {area{36, 2, 10, 20}, 8, 8, true}}},
		{render.Left, elytra, []wornFace{{area{34, 2, 2, 20}, 10, 8, false}}},
		{render.Right, elytra, []wornFace{{area{34, 2, 2, 20}, 4, 8, true}}},
	} {
		for _, j := range []int{1, 4} {
			t.Run(fmt.Sprintf("%s/wear=%d/scale=%d", test.mode, test.wear, j), func(t *testing.T) {
				t.Parallel()
				const unit = 4 // pixels
				sheet, worn := skintest.Noise(1, 128, 128), skintest.Noise(2, 64*j, 32*j)
				view := render.View{Mode: test.mode, Type: skin.Classic, Size: 32 * unit}
				want := mustDraw(t, sheet, view)
				for _, f := range test.faces {
					for y := range f.texels[3] * unit {
						for x := range f.texels[2] * unit {
							u, v := x*j/unit, y*j/unit
							if f.mirrored {
								u = f.texels[2]*j - 1 - u
							}
							left := f.x*unit + x
							if left < 0 || left >= want.Width {
								continue
							}
							over := worn.Pix[worn.At(f.texels[0]*j+u, f.texels[1]*j+v):][:4]
							at := want.Pix[4*((f.y*unit+y)*want.Width+left):][:4]
							switch {
							case at[3] == 0 && over[3] > 0:
								copy(at, over)
							case at[3] > 0:
								mixed := blended(over, at)
								for c := range 3 {
									at[c] = byte(mixed[c])
								}
							}
						}
					}
				}
				view.Wear = test.wear
				testenv.Check(t, same(mustDrawWorn(t, sheet, worn, view), want),
					"the picture differs from the reference")
			})
		}
	}
}

// Sides of sheets of one colour have that colour, at every scale and height.
func TestSidesKeepAColour(t *testing.T) {
	t.Parallel()
	for scale := 1; scale <= skin.MaxScale; scale++ {
		sheet := skin.NewSheet(64*scale, 64*scale)
		fill(sheet, 0, 0, sheet.Width, sheet.Height, [4]byte{200, 100, 50, 255})
		for _, mode := range []render.Mode{render.Flat, render.Front, render.Left} {
			for _, size := range []int{64, 200, 400, 1024} {
				picture := mustDraw(t, sheet, render.View{Mode: mode, Type: skin.Classic, Size: mode.SizeOf(size)})
				for i := 0; i < len(picture.Pix); i += 4 {
					if pixel := [4]byte(picture.Pix[i:]); pixel[3] == 255 && pixel != [4]byte{200, 100, 50, 255} || mode == render.Flat && pixel[3] != 255 {
						t.Fatalf("%s of scale %d at %d: pixel %d is %v", mode, scale, size, i/4, pixel)
					}
				}
				testenv.Equal(t, pixel(picture, picture.Width/2, picture.Height/2), [4]byte{200, 100, 50, 255},
					"%s of scale %d at %d: the middle", mode, scale, size)
			}
		}
	}
}
