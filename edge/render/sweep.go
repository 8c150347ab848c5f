package render

import (
	"cmp"
	"math"
	"slices"
)

// slack is how far apart, in pixels, two places may be that count as one: rounding
// must neither open a gap between faces that share an edge nor leave a splinter.
const slack = 1e-6

// sweep goes over a figure from top to bottom, in any column, and tells what lies
// there: exactly, from border to border of the texels.
type sweep struct {
	quads    []quad // as they lie from top to bottom, more or less
	layers   layers
	widest   float64   // strip, in pixels
	near     []int     // the quads that the column of pixels meets
	breaks   []float64 // between its strips
	strips   []strip
	inside   []chord // those that the sweep is in, the nearest first
	marks    []mark  // where it is in each of those that can be seen
	segments []segment
}

// layers lay texels over one another. What is seen of nothing is 0.
type layers interface {
	// lay returns what is seen of a texel with something below.
	lay(top texel, below uint64) uint64
}

// line is an upright line through a figure.
type line struct {
	x      float64
	chords []chord // in the order in which they begin
}

// chord is what a line has of a quad.
type chord struct {
	from, to float64
	quad     int
}

// segment is a part of a line along which the same is seen.
type segment struct {
	from, to float64
	seen     uint64
}

// ordered orders quads for a sweep.
func ordered(quads []quad) []quad {
	begin := func(q quad) float64 {
		from, _ := q.meets((q.left + q.right) / 2)
		return from
	}
	slices.SortStableFunc(quads, func(a, b quad) int { return cmp.Compare(begin(a), begin(b)) })
	return quads
}

// over starts a sweep over ordered quads, in strips of a width at most.
func (s *sweep) over(quads []quad, layers layers, widest float64) {
	s.quads, s.layers, s.widest = quads, layers, widest
	s.marks = slices.Grow(s.marks[:0], len(quads))[:len(quads)]
}

// meets returns where a line that meets the quad begins and ends to do so.
func (q *quad) meets(x float64) (from, to float64) {
	v := q.down.along(x)
	from, to = (q.down.top-v)*q.down.toY, (q.down.bottom-v)*q.down.toY
	if !q.across.isUpright() {
		u := q.across.along(x)
		from, to = max(from, (q.across.top-u)*q.across.toY), min(to, (q.across.bottom-u)*q.across.toY)
	}
	return from, to
}

// measure puts a line at x, which lies in the column of pixels that was cut into
// strips last.
func (s *sweep) measure(l *line, x float64) {
	l.x, l.chords = x, l.chords[:0]
	for _, i := range s.near {
		q := &s.quads[i]
		if x <= q.left || x >= q.right {
			continue
		}
		from, to := q.meets(x)
		if to-from <= slack {
			continue
		}
		// The order is nearly right in every column.
		at := len(l.chords)
		l.chords = append(l.chords, chord{})
		for ; at > 0 && l.chords[at-1].from > from; at-- {
			l.chords[at] = l.chords[at-1]
		}
		l.chords[at] = chord{from, to, i}
	}
}

// extent returns where the line begins and ends to meet anything. They are the same
// if it never does.
func (l *line) extent() (from, to float64) {
	if len(l.chords) == 0 {
		return 0, 0
	}
	from, to = l.chords[0].from, l.chords[0].to
	for _, c := range l.chords {
		to = max(to, c.to)
	}
	return from, to
}

// cross returns what is seen along a line between two places, from top to bottom;
// where nothing is, there is no segment. The result is valid until the next call.
func (s *sweep) cross(l *line, top, bottom float64) []segment {
	s.segments, s.inside = s.segments[:0], s.inside[:0]
	ahead := l.chords
	for y := top; y < bottom; {
		s.inside = slices.DeleteFunc(s.inside, func(c chord) bool { return c.to <= y+slack })
		for len(ahead) > 0 && ahead[0].from <= y+slack {
			s.enter(ahead[0], y)
			ahead = ahead[1:]
		}
		if len(s.inside) == 0 {
			if len(ahead) == 0 {
				break
			}
			y = ahead[0].from
			continue
		}
		seen := s.seen()
		end := s.ends(seen, ahead, bottom)
		s.read(seen, l.x, y, end)
		y = end
	}
	return s.segments
}

// enter puts a chord among those that the sweep is in, unless it ends at once.
func (s *sweep) enter(c chord, y float64) {
	if c.to <= y+slack {
		return
	}
	at := len(s.inside)
	s.inside = append(s.inside, c)
	for ; at > 0 && s.hides(c, s.inside[at-1]); at-- {
		s.inside[at] = s.inside[at-1]
	}
	s.inside[at] = c
}

// hides reports whether the first of two chords is nearer where both are.
func (s *sweep) hides(c, other chord) bool { return s.quads[c.quad].hides(&s.quads[other.quad]) }

// seen returns the chords that the sweep is in as far as they can be seen: no
// farther than the base.
func (s *sweep) seen() []chord {
	for i, c := range s.inside {
		if s.quads[c.quad].base {
			return s.inside[:i+1]
		}
	}
	return s.inside
}

// ends returns down to where the seen chords are all that is seen: one of them ends
// there, or one ahead begins that they do not hide.
func (s *sweep) ends(seen, ahead []chord, bottom float64) float64 {
	end := bottom
	for _, c := range seen {
		end = min(end, c.to)
	}
	farthest := seen[len(seen)-1]
	for i := range ahead {
		if ahead[i].from >= end {
			break
		}
		if !s.quads[farthest.quad].base || s.hides(ahead[i], farthest) {
			return ahead[i].from
		}
	}
	return end
}

// read appends what is seen of chords from y to end.
func (s *sweep) read(seen []chord, x, y, end float64) {
	marks := s.marks[:len(seen)]
	below := uint64(0)
	for i := len(seen) - 1; i >= 0; i-- {
		m := &marks[i]
		m.begin(&s.quads[seen[i].quad], x, y)
		m.seen = s.layers.lay(m.texel, below)
		below = m.seen
	}
	for {
		next := end
		for i := range marks {
			if marks[i].next < next {
				next = marks[i].next
			}
		}
		if next > end-slack {
			s.show(y, end, marks[0].seen)
			return
		}
		s.show(y, next, marks[0].seen)
		y = next

		below, changed := uint64(0), false
		for i := len(marks) - 1; i >= 0; i-- {
			m := &marks[i]
			if m.next <= y+slack {
				m.move(y)
				changed = true
			}
			if changed {
				m.seen = s.layers.lay(m.texel, below)
			}
			below = m.seen
		}
	}
}

// show appends a segment.
func (s *sweep) show(from, to float64, seen uint64) {
	if n := len(s.segments); n > 0 && s.segments[n-1].seen == seen && s.segments[n-1].to == from {
		s.segments[n-1].to = to
		return
	}
	s.segments = append(s.segments, segment{from, to, seen})
}

// mark is where a sweep is in a quad.
type mark struct {
	texel        texel
	across, down reading
	next         float64 // where the next texel begins
	seen         uint64  // of the texel and all behind it
}

// begin puts the mark at y on a line at x.
func (m *mark) begin(q *quad, x, y float64) {
	column, row := m.across.begin(&q.across, x, y, 1), m.down.begin(&q.down, x, y, q.columns)
	m.texel = q.first + texel(row*q.columns+column)*oneTexel
	m.move(y)
}

// move moves the mark on to y.
func (m *mark) move(y float64) {
	m.texel += m.across.move(y) + m.down.move(y)
	m.next = m.across.next
	if m.down.next < m.next {
		m.next = m.down.next
	}
}

// reading is what a ruler says at a place of a line.
type reading struct {
	next  float64 // where the next border between texels is
	every float64 // how far they are from each other
	step  texel   // from the texel before one to that behind it
}

// begin puts the reading at y on a line at x and returns its value. A step of the
// ruler is so many texels of the sheet.
func (r *reading) begin(from *ruler, x, y float64, texels int) int {
	start := from.along(x)
	value := min(max(int(start+from.perY*y), 0), from.texels-1)
	switch {
	case from.isUpright():
		r.next = math.Inf(1)
	case from.perY > 0:
		r.next, r.every, r.step = (float64(value+1)-start)*from.toY, from.toY, texel(texels)*oneTexel
	default:
		r.next, r.every, r.step = (float64(value)-start)*from.toY, -from.toY, -texel(texels)*oneTexel
	}
	return value
}

// move moves the reading on to y and returns how far that is in texels.
func (r *reading) move(y float64) texel {
	moved := texel(0)
	for r.next <= y+slack {
		r.next += r.every
		moved += r.step
	}
	return moved
}
