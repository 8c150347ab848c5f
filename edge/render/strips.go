package render

import (
	"math"
	"slices"
)

// strip is a part of a column of pixels, over its full height. A line through its
// middle stands for all of it: no border is upright inside of a strip, and a slanted
// one is on average where it is in the middle.
type strip struct{ middle, width float64 }

// How wide a strip may be, in pixels. On average is wrong where a border passes from one
// pixel to the next, ends or turns: by at most 0.5 % of a pixel for a plan, and 5 % for a
// picture that is swept for every sheet. The texels of those are a few pixels wide at
// most, and half as many strips take two thirds of the time.
const (
	widest       = 1.0 / 4
	widestSketch = 1.0 / 2
)

// stripsOf cuts the column of pixels x into strips, at the corners of quads and at the
// upright borders of texels. If the figure does not reach into the column there are
// none. The result is valid until the next call.
func (s *sweep) stripsOf(x int) []strip {
	s.near, s.breaks, s.strips = s.near[:0], s.breaks[:0], s.strips[:0]
	left, right := float64(x), float64(x+1)
	for i := range s.quads {
		if q := &s.quads[i]; q.right > left && q.left < right {
			s.near = append(s.near, i)
			s.breaks = q.appendBreaks(s.breaks, left, right)
		}
	}
	if len(s.near) == 0 {
		return nil
	}
	s.breaks = append(s.breaks, right)
	slices.Sort(s.breaks)
	from := left
	for _, to := range s.breaks {
		if to-from <= slack {
			continue
		}
		n := math.Ceil((to - from) / s.widest)
		width := (to - from) / n
		for i := range int(n) {
			s.strips = append(s.strips, strip{from + (float64(i)+0.5)*width, width})
		}
		from = to
	}
	return s.strips
}

// appendBreaks appends where strips end between two columns.
func (q *quad) appendBreaks(breaks []float64, left, right float64) []float64 {
	for _, x := range q.corners {
		if left < x && x < right {
			breaks = append(breaks, x)
		}
	}
	if r := &q.across; r.isUpright() {
		a, b := r.along(left), r.along(right)
		from, to := max(min(a, b), r.top), min(max(a, b), r.bottom)
		for value := math.Ceil(from); value < to; value++ {
			breaks = append(breaks, (value-r.atZero)/r.perX)
		}
	}
	return breaks
}
