package raster

import (
	"math"
	"testing"

	"github.com/veneer-skins/veneer/shared/testenv"
)

// After cut no two pieces intersect.
func TestPiecesDoNotCross(t *testing.T) {
	t.Parallel()
	for _, s := range scenes() {
		for _, f := range s.Figures {
			pieces := f.Camera.pieces(f.Parts, f.Model)
			for i := range pieces {
				for j := range i {
					if intersects(&pieces[i], &pieces[j]) {
						t.Errorf("%+v intersects %+v", pieces[i], pieces[j])
					}
				}
			}
		}
	}
}

// Of two overlapping quads the nearer one hides the other.
func TestNearerHides(t *testing.T) {
	t.Parallel()
	for _, s := range scenes() {
		for _, f := range s.Figures {
			var scan columnScan
			scan.begin(f.quads(Scales{Skin: 1}), nil, maxSubColumn)
			// The distance of a quad's plane towards the viewer, from a plane through the
			// origin.
			nearness := func(q *quad, x, y float64) float64 {
				at := q.depth[q.axis].from
				towards := f.Camera.towards.Along(q.axis)
				if towards < 0 {
					at = -at
				}
				x, y = (x-f.Viewport.Left)/f.Viewport.Scale, (y-f.Viewport.Top)/f.Viewport.Scale
				return (at - x*f.Camera.right.Along(q.axis) - y*f.Camera.down.Along(q.axis)) / towards
			}
			compared := 0
			var l scanline
			for column := range s.Width {
				scan.subColumns(column)
				x := float64(column) + 0.125
				scan.intersect(&l, x)
				for i, c := range l.spans {
					for _, d := range l.spans[:i] {
						from, to := max(c.from, d.from), min(c.to, d.to)
						if from > to-1e-3 {
							continue
						}
						p, q := &scan.quads[c.quad], &scan.quads[d.quad]
						if scan.hides(c, d) == scan.hides(d, c) {
							t.Fatalf("%+v and %+v: both hide each other, or neither does", p, q)
						}
						between := nearness(p, x, (from+to)/2) - nearness(q, x, (from+to)/2)
						if math.Abs(between) > geomEps && between > 0 != scan.hides(c, d) {
							t.Fatalf("at %.2f, %.2f %+v is nearer by %f than %+v, but not drawn in front", x, (from+to)/2, p, between, q)
						}
						compared++
					}
				}
			}
			testenv.Check(t, compared >= 500, "only %d pairs were compared", compared)
		}
	}
}
