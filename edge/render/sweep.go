package render

import (
	"cmp"
	"math"
	"slices"
)

// slack is how far apart, in pixels, two places may be that count as one: rounding
// must neither open a gap between faces that share an edge nor leave a splinter.
const slack = 1e-6

// sweep goes over a figure from left to right, at any height, and tells which
// stacks lie there: exactly, from border to border of the texels.
type sweep struct {
	quads    []quad // as they lie from left to right, more or less
	stacks   *stacks
	inside   []chord // those that the sweep is in, the nearest first
	marks    []mark  // where it is in each of those that can be seen
	segments []segment
}

// level is a level line through a figure.
type level struct {
	y      float64
	chords []chord // in the order in which they begin
}

// chord is what a level line has of a quad.
type chord struct {
	from, to float64
	quad     int
}

// segment is a part of a level line that shows one stack.
type segment struct {
	from, to float64
	stack    uint32
}

func newSweep(quads []quad, stacks *stacks) *sweep {
	begin := func(q quad) float64 {
		from, _ := q.meets((q.top + q.bottom) / 2)
		return from
	}
	slices.SortStableFunc(quads, func(a, b quad) int { return cmp.Compare(begin(a), begin(b)) })
	return &sweep{quads: quads, stacks: stacks, marks: make([]mark, len(quads))}
}

// meets returns where a level line that meets the quad begins and ends to do so.
func (q *quad) meets(y float64) (from, to float64) {
	u, v := q.across.along(y), q.down.along(y)
	from = max((q.across.left-u)*q.across.toX, (q.down.left-v)*q.down.toX)
	to = min((q.across.right-u)*q.across.toX, (q.down.right-v)*q.down.toX)
	return from, to
}

// measure puts a line at a height.
func (s *sweep) measure(l *level, y float64) {
	l.y, l.chords = y, l.chords[:0]
	for i := range s.quads {
		q := &s.quads[i]
		if y <= q.top || y >= q.bottom {
			continue
		}
		from, to := q.meets(y)
		if to-from <= slack {
			continue
		}
		// The order is nearly right at every height.
		at := len(l.chords)
		l.chords = append(l.chords, chord{})
		for ; at > 0 && l.chords[at-1].from > from; at-- {
			l.chords[at] = l.chords[at-1]
		}
		l.chords[at] = chord{from, to, i}
	}
}

// extent returns where the line begins and ends to meet anything. If it never does
// it begins behind its end.
func (l *level) extent() (from, to float64) {
	from, to = math.Inf(1), math.Inf(-1)
	for _, c := range l.chords {
		from, to = min(from, c.from), max(to, c.to)
	}
	return from, to
}

// cross returns what a line shows between two places, from left to right; where
// nothing is, there is no segment. The result is valid until the next call.
func (s *sweep) cross(l *level, left, right float64) []segment {
	s.segments, s.inside = s.segments[:0], s.inside[:0]
	ahead := l.chords
	for x := left; x < right; {
		s.inside = slices.DeleteFunc(s.inside, func(c chord) bool { return c.to <= x+slack })
		for len(ahead) > 0 && ahead[0].from <= x+slack {
			s.enter(ahead[0], x)
			ahead = ahead[1:]
		}
		if len(s.inside) == 0 {
			if len(ahead) == 0 {
				break
			}
			x = ahead[0].from
			continue
		}
		seen := s.seen()
		end := s.ends(seen, ahead, right)
		s.read(seen, l.y, x, end)
		x = end
	}
	return s.segments
}

// enter puts a chord among those that the sweep is in, unless it ends at once.
func (s *sweep) enter(c chord, x float64) {
	if c.to <= x+slack {
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

// ends returns up to where the seen chords are all that is seen: one of them ends
// there, or one ahead begins that they do not hide.
func (s *sweep) ends(seen, ahead []chord, right float64) float64 {
	end := right
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

// read appends what the seen chords show from x to end.
func (s *sweep) read(seen []chord, y, x, end float64) {
	marks := s.marks[:len(seen)]
	below := uint32(0)
	for i := len(seen) - 1; i >= 0; i-- {
		marks[i].begin(&s.quads[seen[i].quad], y, x)
		marks[i].stack = s.stacks.number(marks[i].texel(), below)
		below = marks[i].stack
	}
	for {
		next := end
		for i := range marks {
			next = min(next, marks[i].across.next, marks[i].down.next)
		}
		if next > end-slack {
			s.show(x, end, marks[0].stack)
			return
		}
		s.show(x, next, marks[0].stack)
		x = next

		below, changed := uint32(0), false
		for i := len(marks) - 1; i >= 0; i-- {
			if marks[i].move(x) {
				changed = true
			}
			if changed {
				marks[i].stack = s.stacks.number(marks[i].texel(), below)
			}
			below = marks[i].stack
		}
	}
}

// show appends a segment.
func (s *sweep) show(from, to float64, stack uint32) {
	if n := len(s.segments); n > 0 && s.segments[n-1].stack == stack && s.segments[n-1].to == from {
		s.segments[n-1].to = to
		return
	}
	s.segments = append(s.segments, segment{from, to, stack})
}

// mark is where a sweep is in a quad.
type mark struct {
	first        texel
	columns      int
	across, down reading
	stack        uint32 // of the quad's texel and all behind it
}

// begin puts the mark at x on a line at the height y.
func (m *mark) begin(q *quad, y, x float64) {
	m.first, m.columns = q.first, q.columns
	m.across.begin(&q.across, y, x)
	m.down.begin(&q.down, y, x)
}

// move moves the mark on to x and reports whether it is in another texel then.
func (m *mark) move(x float64) bool {
	across := m.across.move(x)
	return m.down.move(x) || across
}

// texel returns the texel at the mark.
func (m *mark) texel() texel {
	return m.first + texel(m.down.texel*m.columns+m.across.texel)*oneTexel
}

// reading is what a ruler says at a place of a line.
type reading struct {
	start float64 // the value where the picture begins
	toX   float64
	texel int
	ahead float64 // the value where the texel ends for who comes from the left
	step  int     // to the texel behind it: 1 or -1
	next  float64 // where that one begins
}

func (r *reading) begin(from *ruler, y, x float64) {
	r.start, r.toX = from.along(y), from.toX
	r.texel = min(max(int(r.start+from.perX*x), 0), from.texels-1)
	r.ahead, r.step = float64(r.texel), -1
	if from.perX > 0 {
		r.ahead, r.step = r.ahead+1, 1
	}
	r.next = (r.ahead - r.start) * r.toX
	r.move(x)
}

// move moves the reading on to x and reports whether that is in another texel.
func (r *reading) move(x float64) bool {
	moved := false
	for r.next <= x+slack {
		r.texel += r.step
		r.ahead += float64(r.step)
		r.next = (r.ahead - r.start) * r.toX
		moved = true
	}
	return moved
}
