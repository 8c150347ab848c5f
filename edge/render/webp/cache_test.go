package webp

import (
	"math/rand/v2"
	"testing"
)

// What is said to be in the cache is what a reader has there, which puts every
// pixel into it. Of a row that equals the one above nothing is said.
func TestCacheMatchesReader(t *testing.T) {
	t.Parallel()

	random := rand.New(rand.NewPCG(3, 4))
	var r raster
	var c cache
	repeated := 0 // pixels of repeated rows that a reader does not hold
	for range 500 {
		width, height := 1+random.IntN(200), 1+random.IntN(12)
		palette := make([]uint32, 1+random.IntN(40))
		for i := range palette[1:] { // the first is what an empty cache holds
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
	if repeated == 0 {
		t.Error("readers hold all pixels of repeated rows; want some that they do not")
	}
}
