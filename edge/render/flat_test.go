package render_test

import (
	"fmt"
	"testing"

	"github.com/veneer-skins/veneer/edge/render"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/skin/skintest"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// Flat pictures are exactly those of a straightforward reference implementation.
func TestFlat(t *testing.T) {
	t.Parallel()
	for _, k := range []int{1, 2, 3, 4, 8} {
		for _, shape := range []string{"square", "legacy", "legacy without transparency"} {
			t.Run(fmt.Sprintf("%s sheet of scale %d", shape, k), func(t *testing.T) {
				t.Parallel()
				sheet := skintest.Noise(uint64(k), 64*k, 64*k)
				if shape != "square" {
					sheet = skintest.Noise(uint64(k), 64*k, 32*k)
				}
				if shape == "legacy without transparency" {
					for i := 3; i < len(sheet.Pix); i += 4 {
						sheet.Pix[i] |= 128
					}
				}
				for _, side := range []int{8, 16, 24, 40, 64, 96, 104, 128, 256, 504, 512} {
					got := mustDraw(t, sheet, render.View{Mode: render.Flat, Type: skin.Classic, Size: side})
					want := flat(sheet, side)
					testenv.Check(t, same(got, want), "%d pixels: the picture differs from the reference", side)
				}
			})
		}
	}
}

// flat draws a flat avatar, simply and slowly.
func flat(sheet skin.Sheet, side int) render.Picture {
	sheet = sheet.Normalised(skin.Classic)
	k, n := sheet.Scale(), 8*sheet.Scale()
	face := make([][4]int, n*n)
	for v := range n {
		for u := range n {
			face[v*n+u] = blended(sheet.Pix[sheet.At(40*k+u, 8*k+v):], sheet.Pix[sheet.At(8*k+u, 8*k+v):])
		}
	}
	return averaged(face, n, n, side, side)
}

// blended returns the colour of a texel over an opaque one, and 1.
func blended(over, base []byte) (texel [4]int) {
	alpha := int(over[3])
	for c := range 3 {
		texel[c] = (2*(int(over[c])*alpha+int(base[c])*(255-alpha)) + 255) / (2 * 255)
	}
	texel[3] = 1
	return texel
}

// averaged returns a picture of w × h texels, which are opaque or 0, each pixel of which is the average of
// the area that it covers.
func averaged(texels [][4]int, w, h, width, height int) render.Picture {
	overlap := func(pixel, texel, pixels, texels int) int {
		return max(0, min((pixel+1)*texels, (texel+1)*pixels)-max(pixel*texels, texel*pixels))
	}
	picture := render.Picture{Width: width, Height: height, Pix: make([]byte, 4*width*height)}
	for y := range height {
		for x := range width {
			var sum [4]int
			for v := y * h / height; v <= min(h-1, (y+1)*h/height); v++ {
				for u := x * w / width; u <= min(w-1, (x+1)*w/width); u++ {
					weight := overlap(x, u, width, w) * overlap(y, v, height, h)
					for c := range 3 {
						sum[c] += texels[v*w+u][c] * texels[v*w+u][3] * weight
					}
					sum[3] += texels[v*w+u][3] * weight
				}
			}
			at := picture.Pix[4*(y*width+x):]
			if at[3] = byte((2*255*sum[3] + w*h) / (2 * w * h)); at[3] > 0 {
				for c := range 3 {
					at[c] = byte((2*sum[c] + sum[3]) / (2 * sum[3]))
				}
			}
		}
	}
	return picture
}
