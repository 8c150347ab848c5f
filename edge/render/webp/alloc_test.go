//go:build !race

package webp_test

import (
	"testing"

	"github.com/veneer-skins/veneer/edge/render/webp"
	"github.com/veneer-skins/veneer/shared/skin/skintest"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// An Encoder that has encoded a picture encodes it again without allocating.
func TestAppendAllocatesNothing(t *testing.T) {
	var e webp.Encoder
	var dst []byte
	for _, view := range views {
		for i, of := range skintest.Skins() {
			if i%7 > 0 {
				continue
			}
			p := draw(t, of, view.view)
			got := testing.AllocsPerRun(2, func() {
				var err error
				if dst, err = e.Append(dst[:0], p.pix, p.width, p.height); err != nil {
					t.Fatal(err)
				}
			})
			testenv.Check(t, got == 0, "%s of %s: %.0f allocations; want none", view.name, p.name, got)
		}
	}
}
