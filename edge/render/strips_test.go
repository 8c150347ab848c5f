package render

import (
	"math"
	"testing"
)

// The strips of a column fill it, and no corner and no upright border of texels is
// inside of one.
func TestStrips(t *testing.T) {
	t.Parallel()

	for _, scene := range scenes() {
		for _, f := range scene.figures {
			var sweep sweep
			sweep.over(f.quads(2), nil, widest)
			cut := 0
			for x := range scene.width {
				strips := sweep.stripsOf(x)
				at := float64(x)
				for _, s := range strips {
					from, to := s.middle-s.width/2, s.middle+s.width/2
					if math.Abs(from-at) > 2*slack || s.width <= 0 || s.width > widest {
						t.Fatalf("column %d: a strip from %f to %f; want one from %f", x, from, to, at)
					}
					at = to
					for i := range sweep.quads {
						q := &sweep.quads[i]
						for _, corner := range q.corners {
							if from+2*slack < corner && corner < to-2*slack {
								t.Fatalf("column %d: a corner at %f, inside of a strip from %f to %f", x, corner, from, to)
							}
						}
						if !q.across.isUpright() || s.middle < q.left || s.middle > q.right {
							continue
						}
						a, b := q.across.along(from+2*slack), q.across.along(to-2*slack)
						if math.Floor(a) != math.Floor(b) {
							t.Fatalf("column %d: a strip from texel %f to %f", x, a, b)
						}
					}
				}
				if len(strips) > 0 && math.Abs(at-float64(x+1)) > 2*slack {
					t.Fatalf("column %d ends at %f", x, at)
				}
				cut += len(strips)
			}
			if cut < scene.width {
				t.Errorf("only %d strips in %d columns", cut, scene.width)
			}
		}
	}
}
