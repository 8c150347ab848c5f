package render

import (
	"math"
	"testing"

	"github.com/veneer-skins/veneer/shared/skin"
)

// planned are keys of plans of every kind: crisp and smooth, classic and HD, more
// texels than pixels.
func planned() []planKey {
	return []planKey{
		{Isometric, skin.Steve, 8, 1},
		{Isometric, skin.Steve, 56, 1},
		{Isometric, skin.Steve, 64, 1},
		{Isometric, skin.Steve, 512, 1},
		{Isometric, skin.Steve, 64, 8},
		{Preview, skin.Steve, 128, 1},
		{Preview, skin.Steve, 144, 1},
		{Preview, skin.Alex, 400, 1},
		{Preview, skin.Alex, 400, 2},
		{Preview, skin.Alex, 64, 4},
	}
}

func TestPlansAreWhole(t *testing.T) {
	t.Parallel()

	for _, key := range planned() {
		t.Run(key.String(), func(t *testing.T) {
			t.Parallel()

			p := key.plan()
			if len(p.rows) != p.height+1 || int(p.rows[p.height]) != len(p.runs) {
				t.Fatalf("%d runs, %d rows in a plan of %d: the last ends at %d", len(p.runs), len(p.rows)-1, p.height, p.rows[p.height])
			}
			for n, s := range p.stacks[1:] {
				if int(s.below) > n {
					t.Fatalf("below the stack %d is %d", n+1, s.below)
				}
				if s.top.isBase() && s.below != 0 {
					t.Fatalf("the stack %d goes on behind the base", n+1)
				}
			}
			parts := 0
			for y := range p.height {
				x := 0
				for i, r := range p.runs[p.rows[y]:p.rows[y+1]] {
					switch {
					case int(r.end) <= x:
						t.Fatalf("row %d: a run from %d ends at %d", y, x, r.end)
					case r.mixed == 0 && int(r.at) >= len(p.stacks):
						t.Fatalf("row %d, column %d: there is no stack %d", y, x, r.at)
					case r.mixed == 0 && i > 0 && p.runs[int(p.rows[y])+i-1] == (run{uint16(x), 0, r.at}):
						t.Errorf("row %d, column %d: two runs of one stack", y, x)
					case r.mixed > 0 && (int(r.end) != x+1 || int(r.at) != parts):
						t.Fatalf("row %d, column %d: a mixed pixel of parts from %d ends at %d", y, x, r.at, r.end)
					case r.mixed > 0:
						parts += int(r.mixed)
						checkMixed(t, p, x, y, p.parts[r.at:parts])
					}
					x = int(r.end)
				}
				if x != p.width {
					t.Fatalf("row %d ends at %d, not %d", y, x, p.width)
				}
			}
			if parts != len(p.parts) {
				t.Errorf("%d parts of %d are in a pixel", parts, len(p.parts))
			}
		})
	}
}

// checkMixed checks that the parts of a pixel are different stacks, together no
// more than the whole; and in a crisp plan, that something may show through.
func checkMixed(t *testing.T, p *plan, x, y int, parts []part) {
	t.Helper()
	weight, backed := uint32(0), uint32(0)
	seen := make(map[uint32]bool)
	for i, m := range parts {
		small := m.weight == 0 && (i > 0 || !p.crisp)
		if small || m.stack == 0 || seen[m.stack] {
			t.Errorf("pixel %d, %d: a weight of %d for stack %d", x, y, m.weight, m.stack)
		}
		seen[m.stack] = true
		weight += m.weight
		if p.isBacked(m.stack) {
			backed += m.weight
		}
	}
	switch {
	case weight > whole:
		t.Errorf("pixel %d, %d: the weights are %d of %d", x, y, weight, whole)
	case weight == whole && len(parts) == 1:
		t.Errorf("pixel %d, %d is mixed of one stack", x, y)
	case p.crisp && backed == whole:
		t.Errorf("pixel %d, %d is mixed, and inside", x, y)
	}
}

// isBacked reports whether a stack ends at the base.
func (p *plan) isBacked(stack uint32) bool {
	for stack != 0 && !p.stacks[stack].top.isBase() {
		stack = p.stacks[stack].below
	}
	return stack != 0
}

// What a smooth plan shows, and how much of that is backed, is as large as the
// hexagons that cubes are: three faces, each shortened by √3.
func TestPlannedAreas(t *testing.T) {
	t.Parallel()

	for _, key := range []planKey{{Isometric, skin.Steve, 56, 1}, {Isometric, skin.Steve, 128, 3}, {Isometric, skin.Steve, 8, 8}} {
		p := key.plan()
		var all, backed float64
		x := 0
		for _, r := range p.runs {
			if int(r.end) <= x {
				x = 0
			}
			count := func(stack uint32, area float64) {
				if stack != 0 {
					all += area
				}
				if p.isBacked(stack) {
					backed += area
				}
			}
			if r.mixed == 0 {
				count(r.at, float64(int(r.end)-x))
			}
			for _, m := range p.parts[r.at:][:r.mixed] {
				count(m.stack, float64(m.weight)/whole)
			}
			x = int(r.end)
		}
		unit := float64(key.size) / (9 * math.Sqrt(8.0/3))
		f := func(what string, got, side float64) {
			t.Helper()
			if want := math.Sqrt(3) * side * side * unit * unit; math.Abs(got-want) > want/1000 {
				t.Errorf("%s: the %s covers %.2f pixels; want %.2f", key, what, got, want)
			}
		}
		f("hat", all, 9)
		f("head", backed, 8)
	}
}

// Equal stacks have one number and others another, however many there are.
func TestStacksAreNumbered(t *testing.T) {
	t.Parallel()

	s := newStacks()
	const many = 100
	numbers := make(map[uint32]stack)
	for range 2 {
		for top := range texel(many) {
			for below := range uint32(many) {
				n := s.number(top, below)
				if known, ok := numbers[n]; ok && known != (stack{top, below}) {
					t.Fatalf("%+v and %+v both have the number %d", known, stack{top, below}, n)
				}
				numbers[n] = stack{top, below}
			}
		}
	}
	if len(numbers) != many*many || len(s.all) != many*many+1 {
		t.Errorf("%d stacks have %d numbers, and %d are kept", many*many, len(numbers), len(s.all)-1)
	}
}
