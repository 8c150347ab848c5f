package render

import (
	"cmp"
	"math"
	"slices"
)

// eps is how far apart, in pixels, two places may be that count as one: rounding
// must neither open a gap between faces that share an edge nor leave a splinter.
const eps = 1e-6

// columnScan goes over a figure from top to bottom, in any column, and tells what lies
// there: exactly, from border to border of the texels.
type columnScan struct {
	quads    []quad // as they lie from top to bottom, more or less
	blender  blender
	maxWidth float64   // strip, in pixels
	active   []int     // the quads that the column of pixels meets
	breaks   []float64 // between its strips
	columns  []subColumn
	open     []span       // those that the sweep is in, the nearest first
	cursors  []spanCursor // where it is in each of those that can be seen
	spans    []visibleSpan
}

// blender lay texels over one another. What is seen of nothing is 0.
type blender interface {
	// over returns what is seen of a texel with something below.
	over(top texel, below uint64) uint64
}

// scanline is an upright line through a figure.
type scanline struct {
	x     float64
	spans []span // in the order in which they begin
}

// span is what a line has of a quad.
type span struct {
	from, to float64
	quad     int
}

// visibleSpan is a part of a line along which the same is seen.
type visibleSpan struct {
	from, to float64
	content  uint64
}

// sortByStart orders quads for a sweep.
func sortByStart(quads []quad) []quad {
	start := func(q quad) float64 {
		from, _ := q.meets((q.left + q.right) / 2)
		return from
	}
	slices.SortStableFunc(quads, func(a, b quad) int { return cmp.Compare(start(a), start(b)) })
	return quads
}

// begin starts a sweep over ordered quads, in strips of a width at most.
func (s *columnScan) begin(quads []quad, blender blender, maxWidth float64) {
	s.quads, s.blender, s.maxWidth = quads, blender, maxWidth
	s.cursors = slices.Grow(s.cursors[:0], len(quads))[:len(quads)]
}

// meets returns where a line that meets the quad begins and ends to do so.
func (q *quad) meets(x float64) (from, to float64) {
	v := q.down.atTop(x)
	from, to = (q.down.top-v)*q.down.toY, (q.down.bottom-v)*q.down.toY
	if !q.across.isUpright() {
		u := q.across.atTop(x)
		from, to = max(from, (q.across.top-u)*q.across.toY), min(to, (q.across.bottom-u)*q.across.toY)
	}
	return from, to
}

// intersect puts a line at x, which lies in the column of pixels that was cut into
// strips last.
func (s *columnScan) intersect(l *scanline, x float64) {
	l.x, l.spans = x, l.spans[:0]
	for _, i := range s.active {
		q := &s.quads[i]
		if x <= q.left || x >= q.right {
			continue
		}
		from, to := q.meets(x)
		if to-from <= eps {
			continue
		}
		// The order is nearly right in every column.
		at := len(l.spans)
		l.spans = append(l.spans, span{})
		for ; at > 0 && l.spans[at-1].from > from; at-- {
			l.spans[at] = l.spans[at-1]
		}
		l.spans[at] = span{from, to, i}
	}
}

// extent returns where the line begins and ends to meet anything. They are the same
// if it never does.
func (l *scanline) extent() (from, to float64) {
	if len(l.spans) == 0 {
		return 0, 0
	}
	from, to = l.spans[0].from, l.spans[0].to
	for _, c := range l.spans {
		to = max(to, c.to)
	}
	return from, to
}

// visible returns what is seen along a line between two places, from top to bottom;
// where nothing is, there is no segment. The result is valid until the next call.
func (s *columnScan) visible(l *scanline, top, bottom float64) []visibleSpan {
	s.spans, s.open = s.spans[:0], s.open[:0]
	ahead := l.spans
	for y := top; y < bottom; {
		s.open = slices.DeleteFunc(s.open, func(c span) bool { return c.to <= y+eps })
		for len(ahead) > 0 && ahead[0].from <= y+eps {
			s.enter(ahead[0], y)
			ahead = ahead[1:]
		}
		if len(s.open) == 0 {
			if len(ahead) == 0 {
				break
			}
			y = ahead[0].from
			continue
		}
		front := s.front()
		end := s.endOf(front, ahead, bottom)
		s.appendTexels(front, l.x, y, end)
		y = end
	}
	return s.spans
}

// enter puts a chord among those that the sweep is in, unless it ends at once.
func (s *columnScan) enter(c span, y float64) {
	if c.to <= y+eps {
		return
	}
	at := len(s.open)
	s.open = append(s.open, c)
	for ; at > 0 && s.hides(c, s.open[at-1]); at-- {
		s.open[at] = s.open[at-1]
	}
	s.open[at] = c
}

// hides reports whether the first of two chords is nearer where both are.
func (s *columnScan) hides(c, other span) bool { return s.quads[c.quad].hides(&s.quads[other.quad]) }

// front returns the chords that the sweep is in as far as they can be seen: no
// farther than the base.
func (s *columnScan) front() []span {
	for i, c := range s.open {
		if s.quads[c.quad].base {
			return s.open[:i+1]
		}
	}
	return s.open
}

// endOf returns down to where the seen chords are all that is seen: one of them ends
// there, or one ahead begins that they do not hide.
func (s *columnScan) endOf(front, ahead []span, bottom float64) float64 {
	end := bottom
	for _, c := range front {
		end = min(end, c.to)
	}
	farthest := front[len(front)-1]
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

// appendTexels appends what is seen of chords from y to end.
func (s *columnScan) appendTexels(front []span, x, y, end float64) {
	cursors := s.cursors[:len(front)]
	below := uint64(0)
	for i := len(front) - 1; i >= 0; i-- {
		m := &cursors[i]
		m.seek(&s.quads[front[i].quad], x, y)
		m.content = s.blender.over(m.texel, below)
		below = m.content
	}
	for {
		next := end
		for i := range cursors {
			if cursors[i].next < next {
				next = cursors[i].next
			}
		}
		if next > end-eps {
			s.appendSpan(y, end, cursors[0].content)
			return
		}
		s.appendSpan(y, next, cursors[0].content)
		y = next

		below, changed := uint64(0), false
		for i := len(cursors) - 1; i >= 0; i-- {
			m := &cursors[i]
			if m.next <= y+eps {
				m.advance(y)
				changed = true
			}
			if changed {
				m.content = s.blender.over(m.texel, below)
			}
			below = m.content
		}
	}
}

// appendSpan appends a segment.
func (s *columnScan) appendSpan(from, to float64, front uint64) {
	if n := len(s.spans); n > 0 && s.spans[n-1].content == front && s.spans[n-1].to == from {
		s.spans[n-1].to = to
		return
	}
	s.spans = append(s.spans, visibleSpan{from, to, front})
}

// spanCursor is where a sweep is in a quad.
type spanCursor struct {
	texel        texel
	across, down ddaStepper
	next         float64 // where the next texel begins
	content      uint64  // of the texel and all behind it
}

// seek puts the mark at y on a line at x.
func (m *spanCursor) seek(q *quad, x, y float64) {
	column, row := m.across.seek(&q.across, x, y, 1), m.down.seek(&q.down, x, y, q.columns)
	m.texel = q.first + texel(row*q.columns+column)*oneTexel
	m.advance(y)
}

// advance moves the mark on to y.
func (m *spanCursor) advance(y float64) {
	m.texel += m.across.advance(y) + m.down.advance(y)
	m.next = m.across.next
	if m.down.next < m.next {
		m.next = m.down.next
	}
}

// ddaStepper is what a ruler says at a place of a line.
type ddaStepper struct {
	next    float64 // where the next border between texels is
	spacing float64 // how far they are from each other
	step    texel   // from the texel before one to that behind it
}

// seek puts the reading at y on a line at x and returns its value. A step of the
// ruler is so many texels of the sheet.
func (r *ddaStepper) seek(from *gradient, x, y float64, texels int) int {
	start := from.atTop(x)
	value := min(max(int(start+from.perY*y), 0), from.texels-1)
	switch {
	case from.isUpright():
		r.next = math.Inf(1)
	case from.perY > 0:
		r.next, r.spacing, r.step = (float64(value+1)-start)*from.toY, from.toY, texel(texels)*oneTexel
	default:
		r.next, r.spacing, r.step = (float64(value)-start)*from.toY, -from.toY, -texel(texels)*oneTexel
	}
	return value
}

// advance moves the reading on to y and returns how far that is in texels.
func (r *ddaStepper) advance(y float64) texel {
	moved := texel(0)
	for r.next <= y+eps {
		r.next += r.spacing
		moved += r.step
	}
	return moved
}
