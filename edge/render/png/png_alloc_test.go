//go:build !race

package png_test

import (
	"testing"

	"github.com/veneer-skins/veneer/edge/render/png"
)

// An encoder reuses its memory.
func TestWarmEncoderAllocatesNothing(t *testing.T) {
	all := pictures()
	for _, name := range []string{"64 colours magnified", "1000 colours projected", "translucent noise", "larger than a block"} {
		var e png.Encoder
		p := all[name]
		file := encode(t, &e, p)
		dst := make([]byte, 0, 2*len(file))
		if n := testing.AllocsPerRun(3, func() {
			if _, err := e.Append(dst, p.pix, p.width, p.height); err != nil {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Errorf("%s: a warm encoder allocates %v times; want 0", name, n)
		}
	}
}
