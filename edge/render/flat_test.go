package render_test

import (
	"fmt"
	"testing"

	"github.com/veneer-skins/veneer/edge/render"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/skin/skintest"
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
					if !same(got, want) {
						t.Errorf("%d pixels: the picture differs from the reference", side)
					}
				}
			})
		}
	}
}

// flat draws a flat avatar, simply and slowly.
func flat(sheet skin.Sheet, side int) render.Picture {
	k := sheet.Width / 64
	texel := func(x, y int) []byte { return sheet.Pix[4*(y*sheet.Width+x):][:4] }

	hatless := sheet.Height < sheet.Width
	for y := 0; y < 32*k && hatless; y++ {
		for x := 32 * k; x < 64*k; x++ {
			if texel(x, y)[3] < 128 {
				hatless = false
			}
		}
	}
	// The colour of a texel of the face with the hat over it.
	face := func(u, v, c int) int {
		base, hat := texel(8*k+u, 8*k+v), texel(40*k+u, 8*k+v)
		a := int(hat[3])
		if hatless {
			a = 0
		}
		return (2*(int(hat[c])*a+int(base[c])*(255-a)) + 255) / (2 * 255)
	}

	n := 8 * k
	var colours [64][64][3]int
	for v := range n {
		for u := range n {
			colours[v][u] = [3]int{face(u, v, 0), face(u, v, 1), face(u, v, 2)}
		}
	}
	overlap := func(pixel, texel int) int {
		return max(0, min((pixel+1)*n, (texel+1)*side)-max(pixel*n, texel*side))
	}
	picture := render.Picture{Width: side, Height: side, Pix: make([]byte, 4*side*side)}
	for y := range side {
		for x := range side {
			at := 4 * (y*side + x)
			picture.Pix[at+3] = 255
			var sum [3]int
			for v := y * n / side; v <= min(n-1, (y+1)*n/side); v++ {
				for u := x * n / side; u <= min(n-1, (x+1)*n/side); u++ {
					weight := overlap(x, u) * overlap(y, v)
					for c := range 3 {
						sum[c] += colours[v][u][c] * weight
					}
				}
			}
			for c := range 3 {
				picture.Pix[at+c] = byte((2*sum[c] + n*n) / (2 * n * n))
			}
		}
	}
	return picture
}
