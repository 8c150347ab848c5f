package render_test

import (
	"fmt"
	"testing"

	"github.com/veneer-skins/veneer/edge/render"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/skin/skintest"
)

// sideFace is a face of a side: its texels, those of its layer, and where its top left corner is, in
// units.
type sideFace struct {
	base, layer area
	x, y        int
}

// sides are the faces of each side, for arms of a width.
func sides(arm int) map[render.Mode][]sideFace {
	return map[render.Mode][]sideFace{
		render.Front: {
			{area{8, 8, 8, 8}, area{40, 8, 8, 8}, 4, 0},
			{area{20, 20, 8, 12}, area{20, 36, 8, 12}, 4, 8},
			{area{44, 20, arm, 12}, area{44, 36, arm, 12}, 4 - arm, 8},
			{area{36, 52, arm, 12}, area{52, 52, arm, 12}, 12, 8},
			{area{4, 20, 4, 12}, area{4, 36, 4, 12}, 4, 20},
			{area{20, 52, 4, 12}, area{4, 52, 4, 12}, 8, 20},
		},
		render.Back: {
			{area{24, 8, 8, 8}, area{56, 8, 8, 8}, 4, 0},
			{area{32, 20, 8, 12}, area{32, 36, 8, 12}, 4, 8},
			{area{40 + arm + 4 + 4, 20, arm, 12}, area{40 + arm + 4 + 4, 36, arm, 12}, 12, 8},
			{area{32 + arm + 4 + 4, 52, arm, 12}, area{48 + arm + 4 + 4, 52, arm, 12}, 4 - arm, 8},
			{area{12, 20, 4, 12}, area{12, 36, 4, 12}, 8, 20},
			{area{28, 52, 4, 12}, area{12, 52, 4, 12}, 4, 20},
		},
		render.Left: {
			{area{16, 8, 8, 8}, area{48, 8, 8, 8}, 4, 0},
			{area{32 + 4 + arm, 52, 4, 12}, area{48 + 4 + arm, 52, 4, 12}, 6, 8},
			{area{24, 52, 4, 12}, area{8, 52, 4, 12}, 6, 20},
		},
		render.Right: {
			{area{0, 8, 8, 8}, area{32, 8, 8, 8}, 4, 0},
			{area{40, 20, 4, 12}, area{40, 36, 4, 12}, 6, 8},
			{area{0, 20, 4, 12}, area{0, 36, 4, 12}, 6, 20},
		},
	}
}

// side draws a side of the texels of withOpaqueBase, simply and slowly.
func side(texels []byte, view render.View, k int) render.Picture {
	w, h := 16*k, 32*k
	canvas := make([][4]int, w*h)
	arm := 4
	if view.Type == skin.Slim {
		arm = 3
	}
	for i, face := range sides(arm)[view.Mode] {
		omit := render.OmitLayers
		if i == 0 {
			omit = render.OmitHat
		}
		for v := range face.base[3] * k {
			for u := range face.base[2] * k {
				base, layer := texels[4*((face.base[1]*k+v)*64*k+face.base[0]*k+u):], texels[4*((face.layer[1]*k+v)*64*k+face.layer[0]*k+u):]
				alpha := int(layer[3])
				if view.Omit&omit != 0 {
					alpha = 0
				}
				at := &canvas[(face.y*k+v)*w+face.x*k+u]
				for c := range 3 {
					at[c] = (2*(int(layer[c])*alpha+int(base[c])*(255-alpha)) + 255) / (2 * 255)
				}
				at[3] = 1
			}
		}
	}

	overlap := func(pixel, texel, pixels, texels int) int {
		return max(0, min((pixel+1)*texels, (texel+1)*pixels)-max(pixel*texels, texel*pixels))
	}
	picture := render.Picture{Width: view.Size / 2, Height: view.Size, Pix: make([]byte, 4*view.Size/2*view.Size)}
	for y := range picture.Height {
		for x := range picture.Width {
			var sum [4]int
			for v := y * h / picture.Height; v <= min(h-1, (y+1)*h/picture.Height); v++ {
				for u := x * w / picture.Width; u <= min(w-1, (x+1)*w/picture.Width); u++ {
					weight := overlap(x, u, picture.Width, w) * overlap(y, v, picture.Height, h)
					for c := range 3 {
						sum[c] += canvas[v*w+u][c] * canvas[v*w+u][3] * weight
					}
					sum[3] += canvas[v*w+u][3] * weight
				}
			}
			at := picture.Pix[4*(y*picture.Width+x):]
			if at[3] = byte((2*255*sum[3] + w*h) / (2 * w * h)); at[3] > 0 {
				for c := range 3 {
					at[c] = byte((2*sum[c] + sum[3]) / (2 * sum[3]))
				}
			}
		}
	}
	return picture
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
						texels := withOpaqueBase(sheet)
						for _, size := range []int{64, 80, 128, 176, 512} {
							for omit := range render.Omissions(4) {
								view := render.View{Mode: mode, Type: model, Size: size, Omit: omit}
								if got := mustDraw(t, sheet, view); !same(got, side(texels, view, k)) {
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
			if !same(got, mustDraw(t, sheet, view)) {
				t.Errorf("%s without %d is not that of a sheet without it", mode, omit)
			}
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
							alpha := int(over[3])
							switch {
							case at[3] == 0 && alpha > 0:
								copy(at, over)
							case at[3] > 0:
								for c := range 3 {
									at[c] = byte((2*(int(over[c])*alpha+int(at[c])*(255-alpha)) + 255) / (2 * 255))
								}
							}
						}
					}
				}
				view.Wear = test.wear
				if !same(mustDrawWorn(t, sheet, worn, view), want) {
					t.Error("the picture differs from the reference")
				}
			})
		}
	}
}

// A cape with two transparent faces shows its elytra.
func TestBlankCapeShowsElytra(t *testing.T) {
	t.Parallel()

	sheet, worn := readSheet(t, "classic"), skintest.Marker(64, 32)
	fill(worn, 1, 1, 10, 16, [4]byte{})
	fill(worn, 12, 1, 10, 16, [4]byte{})
	for _, mode := range []render.Mode{render.Bust, render.Body, render.Back, render.Left, render.Right} {
		view := render.View{Mode: mode, Type: skin.Classic, Size: 128, Wear: render.WearCape}
		asCape := mustDrawWorn(t, sheet, worn, view)
		view.Wear = render.WearElytra
		if !same(asCape, mustDrawWorn(t, sheet, worn, view)) {
			t.Errorf("%s: a blank cape is not the elytra", mode)
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
				if middle := [4]byte(picture.Pix[4*(picture.Height/2*picture.Width+picture.Width/2):]); middle != [4]byte{200, 100, 50, 255} {
					t.Errorf("%s of scale %d at %d: the middle is %v", mode, scale, size, middle)
				}
			}
		}
	}
}
