package render_test

import (
	"testing"

	"github.com/veneer-skins/veneer/edge/render"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/skin/skintest"
	"github.com/veneer-skins/veneer/shared/testenv/cmptest"
)

// A cape with nothing but elytra shows both wings, the right one the mirror image of the left:
// from behind on the left, from the front on the right.
func TestPreviewOfElytra(t *testing.T) {
	t.Parallel()
	f := func(k, height, texel, left, top int) {
		t.Helper()
		sheet := skintest.Marker(64*k, 32*k)
		fill(sheet, k, k, 21*k, 16*k, [4]byte{9, 9, 9, 0}) // the cape, without a texel of its edge at 11, 1
		picture := mustDraw(t, sheet, render.View{Mode: render.Preview, Type: skin.Cape, Size: height})
		half := picture.Width / 2
		for y := range height {
			for x := range picture.Width {
				across, v := x%half-left, (y-top)/texel
				var want [4]byte
				if across >= 0 && across < 20*k*texel && y >= top && v < 20*k {
					u, isRight := across/texel, across >= 10*k*texel
					first, isMirrored := 36*k, isRight // the outer face
					if x >= half {
						first, isMirrored = 24*k, !isRight // the inner one
					}
					if u %= 10 * k; isMirrored {
						u = 10*k - 1 - u
					}
					want = [4]byte(sheet.Pix[sheet.At(first+u, 2*k+v):])
				}
				if got := pixel(picture, x, y); got != want {
					t.Errorf("elytra of scale %d, %d pixels high: pixel %d, %d is %v; want %v", k, height, x, y, got, want)
					return
				}
			}
		}
	}

	f(1, 64, 2, 2, 12)
	f(1, 400, 12, 17, 80)
	f(2, 400, 6, 17, 80)
	f(2, 64, 1, 2, 12)
	f(1, 1024, 32, 32, 192)

	// With a single texel of the cape, no elytra is drawn.
	sheet := skin.NewSheet(64, 32)
	fill(sheet, 22, 0, 24, 22, [4]byte{250, 100, 30, 255})
	fill(sheet, 21, 16, 1, 1, [4]byte{1, 2, 3, 4})
	picture := mustDraw(t, sheet, render.View{Mode: render.Preview, Type: skin.Cape, Size: 64})
	shown := map[[4]byte]int{}
	for y := range picture.Height {
		for x := range picture.Width {
			shown[pixel(picture, x, y)]++
		}
	}
	cmptest.Same(t, shown, map[[4]byte]int{{}: 88*64 - 16, {1, 2, 3, 4}: 16}, "a cape of one texel beside an elytra")
}
