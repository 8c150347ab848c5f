package png

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/bits"
)

// raster is a picture in the form that PNG stores, before filters.
type raster struct {
	colourType uint8
	depth      uint8 // bits of a sample
	pixel      int   // bytes of a pixel, at least 1
	stride     int   // bytes of a row
	rows       []byte
	repeated   []bool // whether a row equals the one above
	repeats    int    // number of these rows
	zeros      []byte // a row of zeros
	trial      []byte // scratch row of bestFilter

	pixels, differences distinctCounter
}

// fill sets the raster to a picture, after its colours have been counted, in a form.
func (r *raster) fill(c *colours, pix []byte, width, height int, f form) {
	switch {
	case f != byColour:
		r.colourType, r.depth, r.pixel = typePalette, c.depth(), 1
	case c.opaque:
		r.colourType, r.depth, r.pixel = typeRGB, 8, 3
	default:
		r.colourType, r.depth, r.pixel = typeRGBA, 8, 4
	}
	r.stride = width * r.pixel
	if r.colourType == typePalette {
		r.stride = (width*int(r.depth) + 7) / 8
	}
	r.zeros = grow(r.zeros, r.stride)
	clear(r.zeros)
	r.trial = grow(r.trial, r.stride)
	r.repeated = grow(r.repeated, height)
	r.repeats = 0
	r.rows = grow(r.rows, r.stride*height)
	for y := range height {
		from := pix[4*width*y:][:4*width]
		to := r.row(y)
		r.repeated[y] = y > 0 && bytes.Equal(from, pix[4*width*(y-1):][:4*width])
		switch {
		case r.repeated[y]:
			copy(to, r.row(y-1))
			r.repeats++
		case r.colourType == typeRGBA:
			copy(to, from)
		case r.colourType == typeRGB:
			for x := range width {
				copy(to[3*x:3*x+3], from[4*x:4*x+3])
			}
		default:
			c.index(to, from, r.depth)
		}
	}
}

// row returns a row, or zeros above the first.
func (r *raster) row(y int) []byte {
	if y < 0 {
		return r.zeros
	}
	return r.rows[y*r.stride:][:r.stride]
}

// index packs the indices of a row of pixels, the first into the highest bits.
func (c *colours) index(to, from []byte, depth uint8) {
	last, index := c.list[0], byte(0) // the first of the list
	packed, count, at := byte(0), uint8(0), 0
	for x := 0; x < len(from); x += 4 {
		if colour := binary.LittleEndian.Uint32(from[x:]); colour != last {
			last, index = colour, byte(c.find(colour).index-1)
		}
		packed = packed<<(depth&7) | index
		if count += depth; count == 8 {
			to[at] = packed
			at++
			packed, count = 0, 0
		}
	}
	if count > 0 {
		to[at] = packed << (8 - count)
	}
}

// The filters of PNG; adaptive chooses one for each row.
const (
	none uint8 = iota
	sub
	up
	average
	paeth
	adaptive
)

// filters says how rows are filtered: new rows, and those that equal the one above.
type filters struct{ fresh, repeated uint8 }

// forCrisp returns the filters for a picture that is magnified or opaque, those that make most
// such pictures small. Repeated rows compress best with filter up, except short ones of
// palettes: one match copies more than a row of these.
func (r *raster) forCrisp(c *colours) filters {
	switch {
	case r.colourType != typePalette:
		return filters{adaptive, up}
	case r.depth == 8 && c.ascending():
		return filters{up, up}
	case r.stride >= maxMatch:
		return filters{none, up}
	case r.depth == 8 && r.repeats < len(r.repeated)*3/4:
		return filters{paeth, paeth} // texels are so small that copies are short
	default:
		return filters{none, none}
	}
}

// changes returns how many pixels differ from the one above, and counts their distinct values
// and differences.
func (r *raster) changes() int {
	r.pixels.reset()
	r.differences.reset()
	changes := 0
	for y := range r.repeated {
		row, above := r.row(y), r.row(y-1)
		for x := 0; ; x += r.pixel {
			x += same(row, above, x, x, len(row))
			if x == len(row) {
				break
			}
			x -= x % r.pixel
			changes++
			pixel, before := r.value(row, x), r.value(above, x)
			r.pixels.add(pixel)
			r.differences.add(difference(pixel, before))
		}
	}
	return changes
}

// forProjected returns the filters for a projected picture with that many changes. The more
// changes, the better are differences from the row above (filter up) compared with pixels,
// which match far away only; but differences are worse if many more of them are distinct. The
// coefficients are fitted to pictures of fifty skins.
func (r *raster) forProjected(changes int) filters {
	logChanges := math.Log2(float64(changes + 1))
	ascends := 0.0777*logChanges-0.0169*math.Log2(float64(len(r.rows))) > 0.608
	if r.pixel > 1 {
		pixels, differences := math.Log2(r.pixels.size()), math.Log2(r.differences.size())
		ascends = 0.0479*logChanges-0.228*(differences-pixels)-0.0199*pixels > 0.3687
	}
	if ascends {
		return filters{up, up}
	}
	return filters{none, none}
}

// value returns a pixel of a projected picture as a number: an index, or a colour with alpha,
// as such pictures are not opaque.
func (r *raster) value(row []byte, x int) uint32 {
	if r.pixel == 1 {
		return uint32(row[x])
	}
	return binary.LittleEndian.Uint32(row[x:])
}

// difference subtracts the bytes of b from the bytes of a.
func difference(a, b uint32) uint32 {
	const even, odd = 0x00ff00ff, 0xff00ff00
	return ((a|odd)-b&even)&even | ((a|even)-b&odd)&odd
}

// distinctCounter estimates the number of distinct values by linear counting: each value sets
// one bit of a bitmap by its hash, and the share of zero bits gives the estimate.
type distinctCounter struct {
	bitmap [1 << (distinctBits - 6)]uint64
}

const distinctBits = 16

func (c *distinctCounter) reset() { clear(c.bitmap[:]) }

func (c *distinctCounter) add(value uint32) {
	at := value * 0x9e3779b1 >> (32 - distinctBits)
	c.bitmap[at/64] |= 1 << (at % 64)
}

// size returns the number of distinct values added, within a few percent.
func (c *distinctCounter) size() float64 {
	free := 1 // so that it is never 0
	for _, m := range c.bitmap {
		free += bits.OnesCount64(^m)
	}
	const size = 1 << distinctBits
	return size*math.Log(size/float64(free)) + 1
}

// The rows of a layout.
const (
	all = iota
	sample
)

// sampled reports whether a row is part of the sample: in magnified pictures all rows except
// repetitions of a repetition.
func (r *raster) sampled(y int) bool {
	return !r.magnified() || y < 2 || !r.repeated[y] || !r.repeated[y-1]
}

// magnified reports whether at least half of the rows repeat, as in magnified textures.
func (r *raster) magnified() bool { return 2*r.repeats >= len(r.repeated) }

// layout filters rows into a stream, and returns how many bytes a sample leaves out.
func (r *raster) layout(s *stream, f filters, rows int) int {
	omitted := 0
	s.reset(r.pixel, 1+r.stride, len(r.repeated))
	last := none
	for y, repeated := range r.repeated {
		if rows == sample && !r.sampled(y) {
			omitted += 1 + r.stride
			continue
		}
		filter := f.fresh
		if repeated {
			filter = f.repeated
		} else if filter == adaptive {
			filter = r.bestFilter(y)
		}
		start := len(s.bytes)
		s.bytes = append(s.bytes, filter)
		s.bytes = append(s.bytes, r.row(y)...)
		row := s.bytes[start+1:]
		expected := r.zeros
		if filter == none {
			if last == none {
				expected = r.row(y - 1)
			}
		} else {
			r.filter(row, y, filter)
		}
		s.markRow(start, row, expected, filter != last, filter != none)
		last = filter
	}
	s.end()
	return omitted
}

// bestFilter returns the filter of a row that leaves the fewest changes from pixel to pixel,
// and the smallest values at these.
func (r *raster) bestFilter(y int) uint8 {
	const change = 4 // weight of a change, in the unit of values
	best, least := none, math.MaxInt
	for filter := none; filter <= paeth; filter++ {
		copy(r.trial, r.row(y))
		r.filter(r.trial, y, filter)
		sum := 0
		for x, b := range r.trial {
			if x >= r.pixel && b == r.trial[x-r.pixel] {
				continue
			}
			sum += change + max(int(int8(b)), -int(int8(b)))
		}
		if sum < least {
			best, least = filter, sum
		}
	}
	return best
}

// filter filters row y into to, which is a copy of it.
func (r *raster) filter(to []byte, y int, filter uint8) {
	row, above, n := r.row(y), r.row(y-1), r.pixel
	switch filter {
	case sub:
		for x := n; x < len(row); x++ {
			to[x] = row[x] - row[x-n]
		}
	case up:
		for x := range to {
			to[x] = row[x] - above[x]
		}
	case average:
		for x := range min(n, len(to)) {
			to[x] = row[x] - above[x]/2
		}
		for x := n; x < len(to); x++ {
			to[x] = row[x] - byte((int(row[x-n])+int(above[x]))/2)
		}
	case paeth:
		for x := range min(n, len(to)) {
			to[x] = row[x] - above[x]
		}
		for x := n; x < len(to); x++ {
			to[x] = row[x] - paethPredictor(int(row[x-n]), int(above[x]), int(above[x-n]))
		}
	}
}

// paethPredictor returns the Paeth predictor of PNG: which of the neighbours on the left, above
// and diagonally above is nearest to left + above - corner.
func paethPredictor(left, above, corner int) byte {
	distLeft, distAbove := above-corner, left-corner
	distCorner := distLeft + distAbove
	distLeft, distAbove, distCorner = max(distLeft, -distLeft), max(distAbove, -distAbove), max(distCorner, -distCorner)
	switch {
	case distLeft <= distAbove && distLeft <= distCorner:
		return byte(left)
	case distAbove <= distCorner:
		return byte(above)
	default:
		return byte(corner)
	}
}
