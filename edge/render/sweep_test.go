package render

import (
	"math"
	"testing"

	"github.com/veneer-skins/veneer/shared/skin"
)

// After cutting no face goes through another.
func TestCut(t *testing.T) {
	t.Parallel()

	for _, s := range scenes() {
		for _, f := range s.figures {
			pieces := f.camera.pieces(f.limbs, f.model)
			for i := range pieces {
				for j := range i {
					if crossing(&pieces[i], &pieces[j]) {
						t.Errorf("%+v goes through %+v", pieces[i], pieces[j])
					}
				}
			}
		}
	}
}

// Of two quads that lie over one another, the one that hides the other is the
// nearer of their planes.
func TestNearerHides(t *testing.T) {
	t.Parallel()

	for _, s := range scenes() {
		for _, f := range s.figures {
			var sweep sweep
			sweep.over(f.quads(1), nil, widest)
			// How far towards the viewer the plane of a quad is from a plane through
			// the origin.
			nearness := func(q *quad, x, y float64) float64 {
				at := q.depth[q.axis].from
				towards := f.camera.towards.along(q.axis)
				if towards < 0 {
					at = -at
				}
				x, y = (x-f.on.left)/f.on.scale, (y-f.on.top)/f.on.scale
				return (at - x*f.camera.right.along(q.axis) - y*f.camera.down.along(q.axis)) / towards
			}
			compared := 0
			var l line
			for column := range s.width {
				sweep.stripsOf(column)
				x := float64(column) + 0.125
				sweep.measure(&l, x)
				for i, c := range l.chords {
					for _, d := range l.chords[:i] {
						from, to := max(c.from, d.from), min(c.to, d.to)
						if from > to-1e-3 {
							continue
						}
						p, q := &sweep.quads[c.quad], &sweep.quads[d.quad]
						if sweep.hides(c, d) == sweep.hides(d, c) {
							t.Fatalf("%+v and %+v hide each other, or none the other", p, q)
						}
						between := nearness(p, x, (from+to)/2) - nearness(q, x, (from+to)/2)
						if math.Abs(between) > touching && between > 0 != sweep.hides(c, d) {
							t.Fatalf("at %.2f, %.2f %+v is nearer by %f than %+v, but drawn otherwise", x, (from+to)/2, p, between, q)
						}
						compared++
					}
				}
			}
			if compared < 500 {
				t.Errorf("only %d pairs were compared", compared)
			}
		}
	}
}

func scenes() []scene {
	return []scene{isometric(96), preview(skin.Steve, 400), preview(skin.Alex, 1024)}
}
