package skin_test

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"

	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/skin/skintest"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// paintRect fills a rectangle in classic units with one colour.
func paintRect(sheet skin.Sheet, area skin.Rect, texel [4]byte) {
	area = area.Scaled(sheet.Scale())
	for y := area.Y; y < area.Y+area.H; y++ {
		for x := area.X; x < area.X+area.W; x++ {
			copy(sheet.Pix[sheet.At(x, y):], texel[:])
		}
	}
}

func same(a, b skin.Sheet) bool {
	return a.Width == b.Width && a.Height == b.Height && bytes.Equal(a.Pix, b.Pix)
}

// The left limbs of a legacy sheet mirror the right ones, at every scale. The table is the
// game's list of copies.
func TestNormalisedLegacyLimbs(t *testing.T) {
	t.Parallel()
	copies := []struct{ fromX, fromY, w, h, toX, toY int }{
		{4, 16, 4, 4, 20, 48},
		{8, 16, 4, 4, 24, 48},
		{0, 20, 4, 12, 24, 52},
		{4, 20, 4, 12, 20, 52},
		{8, 20, 4, 12, 16, 52},
		{12, 20, 4, 12, 28, 52},
		{44, 16, 4, 4, 36, 48},
		{48, 16, 4, 4, 40, 48},
		{40, 20, 4, 12, 40, 52},
		{44, 20, 4, 12, 36, 52},
		{48, 20, 4, 12, 32, 52},
		{52, 20, 4, 12, 44, 52},
	}
	for _, k := range []int{1, 2, 8} {
		legacy := skintest.Marker(64*k, 32*k)
		out := legacy.Normalised(skin.Classic)
		if out.Width != 64*k || out.Height != 64*k {
			t.Fatalf("scale %d: the sheet has %d × %d texels", k, out.Width, out.Height)
		}
		for _, c := range copies {
			for y := range c.h * k {
				for x := range c.w * k {
					from := legacy.At(c.fromX*k+x, c.fromY*k+y)
					to := out.At((c.toX+c.w)*k-1-x, c.toY*k+y)
					if got, want := out.Pix[to:to+4], legacy.Pix[from:from+4]; !bytes.Equal(got, want) {
						t.Fatalf("scale %d, copy %+v, texel %d, %d: %v; want %v", k, c, x, y, got, want)
					}
				}
			}
		}
	}
}

// The alpha rules, compared texel by texel with a simple implementation.
func TestNormalisedAlpha(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		k := rapid.SampledFrom([]int{1, 2}).Draw(t, "scale")
		legacy := rapid.Bool().Draw(t, "legacy")
		height := 64
		if legacy {
			height = 32
		}
		sheet := skintest.Noise(rapid.Uint64().Draw(t, "seed"), 64*k, height*k)
		hatless := legacy && rapid.Bool().Draw(t, "opaque right half")
		if hatless {
			// 128 is the lowest alpha that counts as opaque.
			paintRect(sheet, skin.Rect{X: 32, W: 32, H: 32}, [4]byte{10, 20, 30, 128})
		}
		before := bytes.Clone(sheet.Pix)
		out := sheet.Normalised(rapid.SampledFrom([]skin.Type{skin.Classic, skin.Slim}).Draw(t, "model"))

		if !bytes.Equal(before, sheet.Pix) {
			t.Fatal("the receiver changed")
		}
		for y := range out.Height {
			for x := range out.Width {
				var want [4]byte
				if y < sheet.Height {
					want = [4]byte(sheet.Pix[sheet.At(x, y):])
				}
				got := [4]byte(out.Pix[out.At(x, y):])
				X, Y := x/k, y/k // in classic units
				left := Y >= 48 && X >= 16 && X < 48
				if left && legacy {
					want = got // the limbs have a test of their own
				}
				switch {
				case Y < 16 && X < 32, Y >= 16 && Y < 32, left:
					want[3] = 255
				case hatless && Y < 16:
					want[3] = 0
				}
				if got != want {
					t.Fatalf("texel %d, %d: %v; want %v", x, y, got, want)
				}
			}
		}
	})
}

// One texel below half opacity anywhere in the right half keeps a legacy hat, even on the
// back of the body.
func TestNormalisedKeepsLegacyHat(t *testing.T) {
	t.Parallel()
	for _, spot := range []skin.Rect{{X: 32, Y: 0, W: 1, H: 1}, {X: 63, Y: 31, W: 1, H: 1}, {X: 34, Y: 25, W: 1, H: 1}} {
		sheet := skintest.Marker(64, 32)
		paintRect(sheet, spot, [4]byte{1, 2, 3, 127})
		out := sheet.Normalised(skin.Classic)
		testenv.Equal(t, out.Pix[out.At(44, 12)+3], 255,
			"the alpha of the hat of a sheet with a translucent texel at %d, %d", spot.X, spot.Y)
	}
}

func TestNormalisedCape(t *testing.T) {
	t.Parallel()
	cape := skintest.Noise(3, 64, 32)
	testenv.Check(t, same(cape, cape.Normalised(skin.Cape)), "a cape changes")
}
