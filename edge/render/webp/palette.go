package webp

import (
	"cmp"
	"math/bits"
	"slices"
)

// maxPalette is how many colours a palette can have.
const maxPalette = 256

// colours is the distinct colours of a picture, up to maxPalette.
type colours struct {
	list     []uint32
	index    [4 * maxPalette]uint16 // hash table: index in list plus 1, or 0
	overflow bool
}

func (c *colours) reset() {
	if len(c.list) > 0 {
		clear(c.index[:])
	}
	c.list, c.overflow = c.list[:0], false
}

// fitPalette reports whether all colours fit in a palette.
func (c *colours) fitPalette() bool { return !c.overflow }

// bucket returns the bucket of a colour in index, or the empty one for it.
func (c *colours) bucket(colour uint32) *uint16 {
	for at := colour * 0x9e3779b1 >> 22; ; at = (at + 1) % uint32(len(c.index)) {
		if n := &c.index[at]; *n == 0 || c.list[*n-1] == colour {
			return n
		}
	}
}

func (c *colours) add(colour uint32) {
	if c.overflow {
		return
	}
	if n := c.bucket(colour); *n == 0 {
		if c.overflow = len(c.list) == maxPalette; !c.overflow {
			c.list = append(c.list, colour)
			*n = uint16(len(c.list))
		}
	}
}

// sorted sorts and returns the colours so that neighbours are similar: by red, green and blue,
// with the shades of an outline, which differ in alpha, side by side.
func (c *colours) sorted() []uint32 {
	slices.SortFunc(c.list, func(a, b uint32) int {
		return cmp.Compare(bits.RotateLeft32(a, 8), bits.RotateLeft32(b, 8))
	})
	clear(c.index[:])
	for i, colour := range c.list {
		*c.bucket(colour) = uint16(i + 1)
	}
	return c.list
}

// buildPalette sets palette to the image of a palette: one row, each colour less the previous
// one (RFC 9649, section 3.5.4).
func (e *Encoder) buildPalette(palette []uint32) {
	e.palette.reset(len(palette), 1)
	last := uint32(0)
	for i, colour := range palette {
		e.palette.px[i] = minus(colour, last)
		last = colour
	}
	e.palette.findRepeats()
}

// indexPixels sets indexed to the picture as indices of a palette, in the green of its pixels.
// Of up to sixteen colours, two, four or eight indices share a pixel (RFC 9649, section 3.5.4).
func (e *Encoder) indexPixels(palette []uint32) {
	shift := uint(0)
	switch {
	case len(palette) <= 2:
		shift = 3
	case len(palette) <= 4:
		shift = 2
	case len(palette) <= 16:
		shift = 1
	}
	from, to := &e.picture, &e.indexed
	width, height := from.width, len(from.same)
	if shift == 0 {
		to.copyLayout(from)
	} else {
		to.reset((width+1<<shift-1)>>shift, height)
		copy(to.same, from.same)
	}
	mask, step := 1<<shift-1, 8>>shift
	for y := range height {
		row := to.px[y*to.width:][:to.width]
		if from.same[y] {
			copy(row, to.px[(y-1)*to.width:])
			continue
		}
		for x := range row {
			row[x] = 0xff000000
		}
		last, index := ^from.px[y*width], uint32(0)
		for x, v := range from.px[y*width:][:width] {
			if v != last {
				index = uint32(*e.colours.bucket(v) - 1)
				last = v
			}
			row[x>>shift] |= index << (8 + x&mask*step)
		}
	}
	if shift > 0 {
		to.findRuns()
		to.findAlike()
	}
}
