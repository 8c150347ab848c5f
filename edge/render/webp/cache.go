package webp

import "slices"

// maxCacheBits bounds the colour cache. The format allows 11, but few colours are in use at a
// time, and each lengthens the description of the code.
const maxCacheBits = 10

func cacheSize(cacheBits uint) int {
	if cacheBits == 0 {
		return 0
	}
	return 1 << cacheBits
}

// cacheIndex returns the index of a colour in the cache (RFC 9649, section 3.6.2.3).
func cacheIndex(colour uint32, cacheBits uint) int {
	return int(colour * 0x1e35a7bd >> (32 - cacheBits))
}

// cache is the colour cache of a decoder at each pixel.
type cache struct {
	bits    uint
	colours []uint32
	hits    []uint64 // a bit for each pixel: the cache has its colour
}

// fill finds out which pixels of an image are in a cache of a size.
func (c *cache) fill(r *raster, cacheBits uint) {
	if c.bits = cacheBits; cacheBits == 0 {
		return
	}
	c.clear(cacheBits)
	words := len(r.px)/64 + 1
	c.hits = slices.Grow(c.hits[:0], words)[:words]
	for i := range c.hits {
		c.hits[i] = ^uint64(0) // within runs
	}
	for _, at := range r.runs {
		if r.same[int(at)/r.width] {
			c.setMisses(int(at), r.width)
		} else if v := r.px[at]; !c.put(v) {
			c.hits[at/64] &^= 1 << (at % 64)
		}
	}
}

// put puts a colour into the cache and reports whether it was there.
func (c *cache) put(colour uint32) (hit bool) {
	entry := &c.colours[cacheIndex(colour, c.bits)]
	hit = *entry == colour
	*entry = colour
	return hit
}

// setMisses marks n pixels as not in the cache.
func (c *cache) setMisses(from, n int) {
	for i := from; i < from+n; {
		if i%64 == 0 && i+64 <= from+n {
			c.hits[i/64] = 0
			i += 64
		} else {
			c.hits[i/64] &^= 1 << (i % 64)
			i++
		}
	}
}

// clear resets the cache to its state before the first pixel: transparent black in every entry
// (RFC 9649, section 3.6.2.3).
func (c *cache) clear(cacheBits uint) {
	c.bits = cacheBits
	n := cacheSize(cacheBits)
	c.colours = slices.Grow(c.colours[:0], n)[:n]
	clear(c.colours)
}

// holds reports whether the cache has the colour of the pixel i.
func (c *cache) holds(i int) bool { return c.bits > 0 && c.hits[i/64]>>(i%64)&1 == 1 }
