package webp

import (
	"math/rand/v2"
	"testing"

	"github.com/veneer-skins/veneer/shared/testenv"
)

// The cache has what a decoder's has, into which every pixel is put. For rows that equal the
// one above it never claims a hit.
func TestCacheMatchesReader(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 4))
	var r raster
	var c cache
	repeated := 0 // pixels of repeated rows that are not in the decoder's cache
	for range 500 {
		width, height := 1+random.IntN(200), 1+random.IntN(12)
		palette := make([]uint32, 1+random.IntN(40))
		for i := range palette[1:] { // the first is the colour of an empty cache
			palette[i+1] = random.Uint32()
		}
		r.reset(width, height)
		for i := range r.px {
			if r.px[i] = palette[random.IntN(len(palette))]; i > 0 && random.IntN(3) > 0 {
				r.px[i] = r.px[i-1]
			}
		}
		for y := 1; y < height; y++ {
			if random.IntN(2) == 0 {
				copy(r.px[y*width:][:width], r.px[(y-1)*width:])
			}
		}
		r.findRepeats()

		bits := uint(1 + random.IntN(5))
		c.fill(&r, bits)
		reader := make([]uint32, cacheSize(bits))
		for i, v := range r.px {
			entry := &reader[cacheIndex(v, bits)]
			hit := *entry == v
			*entry = v
			same := r.same[i/width]
			if same && !hit {
				repeated++
			}
			if got, want := c.holds(i), hit && !same; got != want {
				t.Fatalf("%d × %d pixels, %d bits: the cache holds the pixel %d: %t; want %t", width, height, bits, i, got, want)
			}
		}
	}
	testenv.Check(t, repeated != 0, "all pixels of repeated rows are in the decoder's cache; want some that are not")
}
