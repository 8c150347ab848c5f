package webp

import "slices"

// raster is an image to be encoded: width × len(px)/width pixels in rows from the top, each
// with alpha, red, green and blue from its highest byte down.
type raster struct {
	width int
	px    []uint32

	// same says for each row whether it equals the one above.
	same []bool

	// runs holds, in ascending order, where a pixel differs from the previous one; the pixels
	// from there to the next entry are equal. A row that equals the one above counts as one
	// run, whatever its pixels. The first entry is 0.
	runs []int32

	// alike holds for each run the last one before it with the same colour and length and the
	// same colour before it, or -1.
	alike []int32
}

// reset prepares the raster for an image of a size.
func (r *raster) reset(width, height int) {
	r.width = width
	r.px = slices.Grow(r.px[:0], width*height)[:width*height]
	r.same = slices.Grow(r.same[:0], height)[:height]
	r.runs = r.runs[:0]
	r.alike = r.alike[:0]
}

// copyLayout prepares the raster for an image that has equal pixels wherever another raster
// has.
func (r *raster) copyLayout(other *raster) {
	r.width = other.width
	r.px = slices.Grow(r.px[:0], len(other.px))[:len(other.px)]
	r.same = append(r.same[:0], other.same...)
	r.runs = append(r.runs[:0], other.runs...)
	r.alike = append(r.alike[:0], other.alike...)
}

// findRepeats sets same, runs and alike.
func (r *raster) findRepeats() {
	for y := range r.same {
		r.same[y] = y > 0 && slices.Equal(r.px[y*r.width:][:r.width], r.px[(y-1)*r.width:][:r.width])
	}
	r.findRuns()
	r.findAlike()
}

// findRuns sets runs.
func (r *raster) findRuns() {
	r.runs = r.runs[:0]
	last := ^r.px[0]
	for y, same := range r.same {
		from := y * r.width
		row := r.px[from:][:r.width]
		if same {
			r.runs = append(r.runs, int32(from))
		} else {
			for x, v := range row {
				if v != last {
					r.runs = append(r.runs, int32(from+x))
					last = v
				}
			}
		}
		last = row[len(row)-1]
	}
}

// findAlike sets alike from runs.
func (r *raster) findAlike() {
	const bits = 12
	var latest [1 << bits]int32
	for i := range latest {
		latest[i] = -1
	}
	r.alike = slices.Grow(r.alike[:0], len(r.runs))[:len(r.runs)]
	for k, at := range r.runs {
		r.alike[k] = -1
		if k == 0 || k+1 == len(r.runs) || r.same[int(at)/r.width] {
			continue
		}
		key := r.px[at]*0x9e3779b1 ^ r.px[at-1]*0x85ebca77 ^ uint32(r.runs[k+1]-at)*0xc2b2ae3d
		key = key * 0x9e3779b1 >> (32 - bits)
		r.alike[k] = latest[key]
		latest[key] = int32(k)
	}
}

// match returns how many pixels from i on, at most maxCopy, equal those from an earlier one on.
func (r *raster) match(i, earlier int) int {
	limit := min(maxCopy, len(r.px)-i)
	here, there := r.px[i:i+limit], r.px[earlier:]
	there = there[:len(here)]
	for n, v := range here {
		if v != there[n] {
			return n
		}
	}
	return len(here)
}

// matchAbove is match with the pixel above i, which must not be in the first row. It skips rows
// that are known to be equal.
func (r *raster) matchAbove(i int) int {
	limit := min(maxCopy, len(r.px)-i)
	here, there := r.px[i:i+limit], r.px[i-r.width:][:limit]
	y, x := i/r.width, i%r.width
	for n := 0; n < limit; y, x = y+1, 0 {
		if x == 0 && r.same[y] {
			n += r.width
			continue
		}
		for end := min(limit, n+r.width-x); n < end; n++ {
			if here[n] != there[n] {
				return n
			}
		}
	}
	return limit
}
