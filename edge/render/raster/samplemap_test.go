package raster

import (
	"math"
	"testing"

	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/skin/skintest"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// maps are keys of full maps of every kind: smooth and crisp, of classic and of HD sheets.
var maps = []testMap{
	{true, skin.Classic, 8, 1},
	{true, skin.Classic, 56, 1},
	{true, skin.Classic, 64, 2},
	{true, skin.Classic, 64, 1},
	{true, skin.Classic, 512, 1},
	{true, skin.Classic, 248, 4},
	{false, skin.Classic, 128, 1},
	{false, skin.Classic, 144, 1},
	{false, skin.Slim, 400, 1},
	{false, skin.Slim, 400, 2},
}

func TestSampleMapsAreComplete(t *testing.T) {
	t.Parallel()
	for _, key := range maps {
		t.Run(key.String(), func(t *testing.T) {
			t.Parallel()
			p := key.Build()
			if len(p.rows) != p.Height+1 || int(p.rows[p.Height]) != len(p.runs) {
				t.Fatalf("%d runs, %d rows in a map of %d rows: the last ends at %d", len(p.runs), len(p.rows)-1, p.Height, p.rows[p.Height])
			}
			for n, s := range p.lists[1:] {
				if int(s.below) > n {
					t.Fatalf("list %d continues with list %d", n+1, s.below)
				}
				if s.top.isBase() && s.below != 0 {
					t.Fatalf("list %d continues behind the base", n+1)
				}
			}
			parts := 0
			for y := range p.Height {
				x := 0
				for i, r := range p.runs[p.rows[y]:p.rows[y+1]] {
					switch {
					case int(r.end) <= x:
						t.Fatalf("row %d: a run from %d ends at %d", y, x, r.end)
					case r.mixed == 0 && int(r.at) >= len(p.lists):
						t.Fatalf("row %d, column %d: there is no list %d", y, x, r.at)
					case r.mixed == 0 && i > 0 && p.runs[int(p.rows[y])+i-1] == (run{uint16(x), 0, r.at}):
						t.Errorf("row %d, column %d: two runs of one list", y, x)
					case r.mixed > 0 && int(r.end) != x+1:
						t.Fatalf("row %d, column %d: a mixed pixel ends at %d", y, x, r.end)
					case r.mixed > 0:
						parts += int(r.mixed)
						checkMixed(t, p, x, y, p.contributions[r.at:][:r.mixed])
					}
					x = int(r.end)
				}
				if x != p.Width {
					t.Fatalf("row %d ends at %d, not %d", y, x, p.Width)
				}
			}
			testenv.Equal(t, parts, len(p.contributions), "parts that are in a pixel")
		})
	}
}

// checkMixed checks that the contributions of a pixel are different lists that add up to at
// most fullWeight, and in a crisp map that something may show through.
func checkMixed(t *testing.T, p *SampleMap, x, y int, parts []contribution) {
	t.Helper()
	weight, covered := uint32(0), uint32(0)
	seen := make(map[uint32]bool)
	for i, m := range parts {
		small := m.weight == 0 && (i > 0 || !p.crisp)
		if small || m.list == 0 || seen[m.list] {
			t.Errorf("pixel %d, %d: a weight of %d for list %d", x, y, m.weight, m.list)
		}
		seen[m.list] = true
		weight += m.weight
		if p.isCovered(m.list) {
			covered += m.weight
		}
	}
	switch {
	case weight > fullWeight:
		t.Errorf("pixel %d, %d: the weights are %d of %d", x, y, weight, fullWeight)
	case weight == fullWeight && len(parts) == 1:
		t.Errorf("pixel %d, %d is mixed of one list", x, y)
	case p.crisp && covered == fullWeight:
		t.Errorf("pixel %d, %d is mixed, but inside the outline", x, y)
	}
}

// isCovered reports whether a list ends at the base.
func (m *SampleMap) isCovered(stack uint32) bool {
	for stack != 0 && !m.lists[stack].top.isBase() {
		stack = m.lists[stack].below
	}
	return stack != 0
}

// A smooth picture covers the area of a cube's hexagon: three faces, each shortened by √3.
func TestSmoothAreas(t *testing.T) {
	t.Parallel()
	f := func(size, scale int, hat bool, side float64) {
		t.Helper()
		sheet := skin.NewSheet(64*scale, 64*scale)
		if hat {
			for i := range sheet.Pix {
				sheet.Pix[i] = 255
			}
		}
		p := testMap{true, skin.Classic, size, scale}.Build()
		if p.crisp {
			t.Fatalf("the picture of %d pixels is crisp", size)
		}
		pixels := make([]byte, 4*p.Width*p.Height)
		p.Paint(pixels, sheet, skin.Sheet{}, skin.Classic, 0, new(Painter))
		covered := 0.0
		for i := 3; i < len(pixels); i += 4 {
			covered += float64(pixels[i]) / 255
		}
		unit := float64(size) / (9 * math.Sqrt(8.0/3))
		if want := math.Sqrt(3) * side * side * unit * unit; math.Abs(covered-want) > want/1000 {
			t.Errorf("size %d, scale %d: %.3f pixels are covered; want %.3f", size, scale, covered, want)
		}
	}

	for _, shape := range []struct{ size, scale int }{{56, 1}, {128, 3}, {16, 8}} {
		f(shape.size, shape.scale, true, 9)
		f(shape.size, shape.scale, false, 8)
	}
}

// A full map of a smooth picture paints what scannedFigures do, but for the 5 % of a pixel by
// which their wider sub-columns may be wrong.
func TestMapsAndScansAgree(t *testing.T) {
	t.Parallel()
	f := func(s Scene, k int) {
		t.Helper()
		sheet := skintest.Noise(1, 64*k, 64*k).Normalised(skin.Classic)
		paint := func(p *SampleMap) []byte {
			pixels := make([]byte, 4*p.Width*p.Height)
			p.Paint(pixels, sheet, skin.Sheet{}, skin.Classic, 0, new(Painter))
			return pixels
		}
		mapped := paint(newFullMap(s, Scales{Skin: k}))
		scanned := paint(newScannedMap(s, Scales{Skin: k}, maxSubColumnScanned))
		for i := 3; i < len(mapped); i += 4 {
			for c := i - 3; c <= i; c++ {
				// The fainter a pixel, the less its colour matters.
				apart, weight := int(mapped[c])-int(scanned[c]), 255
				if c < i {
					weight = int(min(mapped[i], scanned[i]))
				}
				if weight*max(apart, -apart) > 12*255 {
					t.Fatalf("scale %d: value %d is %d and %d", k, c, mapped[c], scanned[c])
				}
			}
		}
	}

	f(headScene(32), 1)
	f(headScene(96), 3)
	f(previewScene(skin.Classic, 128), 1)
	f(previewScene(skin.Slim, 112), 4)
	f(headScene(128), skin.MaxScale)
}

// Equal lists have one number, different ones different numbers, in a table that has grown.
func TestTexelListsAreInterned(t *testing.T) {
	t.Parallel()
	s := newInternTable()
	const many = 100
	numbers := make(map[uint32]texelList)
	for range 2 {
		for top := range texel(many) {
			for below := range uint32(many) {
				n := s.intern(top, below)
				if previous, ok := numbers[n]; ok && previous != (texelList{top, below}) {
					t.Fatalf("%+v and %+v both have the number %d", previous, texelList{top, below}, n)
				}
				numbers[n] = texelList{top, below}
			}
		}
	}
	testenv.Check(t, len(numbers) == many*many && len(s.all) == many*many+1,
		"%d lists have %d numbers and %d entries", many*many, len(numbers), len(s.all)-1)
}

// At the outline alpha comes in steps, and is never above that of the visible texels.
func TestOutline(t *testing.T) {
	t.Parallel()
	f := func(alpha, weight, want uint32) {
		t.Helper()
		d := RGBA64(alpha*to16Bit)<<48 | RGBA64(alpha*to16Bit) // red
		c := palette{rgba64: []RGBA64{0, d}, nrgba: []NRGBA{transparent, d.nrgba()}}
		got := c.outline([]contribution{{list: 1, weight: weight}})
		if got>>24 != NRGBA(want) || want > 0 && got&0xffffff != 255 {
			t.Errorf("%d/%d of alpha %d: %08x; want red of alpha %d", weight, fullWeight, alpha, uint32(got), want)
		}
	}

	f(255, fullWeight, 255)
	f(255, fullWeight/2, 135)
	f(255, fullWeight/4, 60)
	f(255, fullWeight/64, 0)
	f(110, fullWeight, 110) // inside
	f(110, fullWeight/2, 60)
	f(110, fullWeight*15/16, 105)
	f(10, fullWeight*15/16, 10)
	f(3, fullWeight*15/16, 0)
}
