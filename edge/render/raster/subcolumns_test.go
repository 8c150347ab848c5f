package raster

import (
	"math"
	"testing"

	"github.com/veneer-skins/veneer/shared/testenv"
)

// The sub-columns of a column fill it, and no corner and no vertical border of texels is inside
// of one.
func TestSubColumns(t *testing.T) {
	t.Parallel()
	for _, scene := range scenes() {
		for _, f := range scene.Figures {
			var scan columnScan
			scan.begin(f.quads(Scales{Skin: 2}), nil, maxSubColumn)
			cut := 0
			for x := range scene.Width {
				columns := scan.subColumns(x)
				at := float64(x)
				for _, s := range columns {
					from, to := s.middle-s.width/2, s.middle+s.width/2
					if math.Abs(from-at) > 2*Eps || s.width <= 0 || s.width > maxSubColumn {
						t.Fatalf("column %d: a sub-column from %f to %f; want one from %f", x, from, to, at)
					}
					at = to
					for i := range scan.quads {
						q := &scan.quads[i]
						for _, corner := range q.corners {
							if from+2*Eps < corner && corner < to-2*Eps {
								t.Fatalf("column %d: a corner at %f, inside of a sub-column from %f to %f", x, corner, from, to)
							}
						}
						if !q.across.isUpright() || s.middle < q.left || s.middle > q.right {
							continue
						}
						a, b := q.across.atTop(from+2*Eps), q.across.atTop(to-2*Eps)
						if math.Floor(a) != math.Floor(b) {
							t.Fatalf("column %d: a sub-column from texel %f to %f", x, a, b)
						}
					}
				}
				if len(columns) > 0 && math.Abs(at-float64(x+1)) > 2*Eps {
					t.Fatalf("column %d ends at %f", x, at)
				}
				cut += len(columns)
			}
			testenv.Check(t, cut >= scene.Width, "only %d sub-columns in %d columns", cut, scene.Width)
		}
	}
}
