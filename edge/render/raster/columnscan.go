package raster

import (
	"cmp"
	"math"
	"slices"
)

// Eps is how far apart, in pixels, two places may be that count as one: rounding must neither
// open a gap between faces that share an edge nor leave a splinter.
const Eps = 1e-6

// columnScan scans a figure along vertical lines and finds what each shows: exactly, from
// border to border of the texels.
type columnScan struct {
	quads    []quad // sorted by sortByStart
	crosses  bool   // they are of several groups
	blender  blender
	maxWidth float64   // of a sub-column, in pixels
	x        float64   // of the line
	active   []int     // indices of the quads in the current column
	breaks   []float64 // right edges of its sub-columns
	columns  []subColumn
	open     []span       // spans at the current place, the nearest first
	cursors  []spanCursor // positions in the visible ones of open
	spans    []visibleSpan
}

// blender combines texels that lie over one another. Its values are opaque to the scan, and 0
// is nothing.
type blender interface {
	// over returns a texel over what is below it.
	over(top texel, below uint64) uint64
}

// scanline is a vertical line through a figure.
type scanline struct {
	x     float64
	spans []span // sorted by from
}

// span is the part of a line within a quad.
type span struct {
	from, to float64
	quad     int
}

// visibleSpan is a part of a line that shows the same throughout.
type visibleSpan struct {
	from, to float64
	content  uint64
}

// sortByStart sorts quads by where their middle columns begin, from the top.
func sortByStart(quads []quad) []quad {
	start := func(q quad) float64 {
		from, _ := q.meets((q.left + q.right) / 2)
		return from
	}
	slices.SortStableFunc(quads, func(a, b quad) int { return cmp.Compare(start(a), start(b)) })
	return quads
}

// begin starts a scan of sorted quads, in sub-columns of at most a width, or maxSubColumnCrossing where
// groups cross.
func (s *columnScan) begin(quads []quad, blender blender, maxWidth float64) {
	s.quads, s.blender, s.maxWidth = quads, blender, maxWidth
	s.crosses = slices.ContainsFunc(quads, func(q quad) bool { return q.group != quads[0].group })
	if s.crosses {
		s.maxWidth = maxSubColumnCrossing
	}
	s.cursors = slices.Grow(s.cursors[:0], len(quads))[:len(quads)]
}

// meets returns where a line at x, between the quad's left and right, enters and leaves the
// quad.
func (q *quad) meets(x float64) (from, to float64) {
	switch {
	case q.across.isUpright():
		return q.down.meets(x)
	case q.down.isUpright():
		return q.across.meets(x)
	}
	from, to = q.down.meets(x)
	fromAcross, toAcross := q.across.meets(x)
	return max(from, fromAcross), min(to, toAcross)
}

// meets returns where a line at x enters and leaves the values of a piece.
func (g *gradient) meets(x float64) (from, to float64) {
	v := g.atTop(x)
	return (g.top - v) * g.toY, (g.bottom - v) * g.toY
}

// intersect sets the line to x, which lies in the column of the last call of subColumns, and
// finds its spans.
func (s *columnScan) intersect(l *scanline, x float64) {
	s.x, l.x, l.spans = x, x, l.spans[:0]
	for _, i := range s.active {
		q := &s.quads[i]
		if x <= q.left || x >= q.right {
			continue
		}
		from, to := q.meets(x)
		if to-from <= Eps {
			continue
		}
		// Insertion sort: the quads are nearly sorted in every column.
		at := len(l.spans)
		l.spans = append(l.spans, span{})
		for ; at > 0 && l.spans[at-1].from > from; at-- {
			l.spans[at] = l.spans[at-1]
		}
		l.spans[at] = span{from, to, i}
	}
	if s.crosses {
		s.split(l)
	}
}

// split cuts spans where quads of different groups go through each other: then one of two is nearer
// wherever they overlap.
func (s *columnScan) split(l *scanline) {
	for i := 1; i < len(l.spans); i++ {
		for _, other := range l.spans[:i] {
			c := &l.spans[i]
			at := s.crossing(*c, other)
			if !(at > c.from+Eps && at < min(c.to, other.to)-Eps) { // or no number
				continue
			}
			rest := span{at, c.to, c.quad}
			c.to = at
			behind := i + 1
			for behind < len(l.spans) && l.spans[behind].from < at {
				behind++
			}
			l.spans = slices.Insert(l.spans, behind, rest)
		}
	}
}

// crossing returns where on the line two quads are equally near; of one group they never are, and the
// result is no number.
func (s *columnScan) crossing(c, other span) float64 {
	p, q := &s.quads[c.quad], &s.quads[other.quad]
	if p.group == q.group {
		return math.NaN()
	}
	return (q.nearness.at(s.x, 0) - p.nearness.at(s.x, 0)) / (p.nearness.perY - q.nearness.perY)
}

// extent returns where the first span begins and the last one ends; both are 0 without spans.
func (s *scanline) extent() (from, to float64) {
	if len(s.spans) == 0 {
		return 0, 0
	}
	from, to = s.spans[0].from, s.spans[0].to
	for _, c := range s.spans {
		to = max(to, c.to)
	}
	return from, to
}

// visible returns what a line shows between two places, from top to bottom. There are no spans
// where it shows nothing. The result is valid until the next call.
func (s *columnScan) visible(l *scanline, top, bottom float64) []visibleSpan {
	s.spans, s.open = s.spans[:0], s.open[:0]
	ahead := l.spans
	for y := top; y < bottom; {
		s.open = slices.DeleteFunc(s.open, func(c span) bool { return c.to <= y+Eps })
		for len(ahead) > 0 && ahead[0].from <= y+Eps {
			s.openSpan(ahead[0], y)
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

// openSpan adds a span to the open ones, unless it ends at once.
func (s *columnScan) openSpan(c span, y float64) {
	if c.to <= y+Eps {
		return
	}
	at := len(s.open)
	s.open = append(s.open, c)
	for ; at > 0 && s.hides(c, s.open[at-1]); at-- {
		s.open[at] = s.open[at-1]
	}
	s.open[at] = c
}

// hides reports whether the first of two spans is nearer where both are. Of two groups in one plane the
// later one is in front.
func (s *columnScan) hides(c, other span) bool {
	p, q := &s.quads[c.quad], &s.quads[other.quad]
	if p.group == q.group {
		return p.hides(q)
	}
	middle := (max(c.from, other.from) + min(c.to, other.to)) / 2
	between := p.nearness.at(s.x, middle) - q.nearness.at(s.x, middle)
	if math.Abs(between) < geomEps {
		return p.group > q.group
	}
	return between > 0
}

// front returns the open spans that may be visible: those down to the first of the opaque base.
func (s *columnScan) front() []span {
	for i, c := range s.open {
		if s.quads[c.quad].base {
			return s.open[:i+1]
		}
	}
	return s.open
}

// endOf returns the place down to which the spans in front stay the same: the end of one of
// them, or the start of a later span that they do not hide.
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

// appendTexels appends what the spans in front show from y to end.
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
		if next > end-Eps {
			s.appendSpan(y, end, cursors[0].content)
			return
		}
		s.appendSpan(y, next, cursors[0].content)
		y = next

		below, changed := uint64(0), false
		for i := len(cursors) - 1; i >= 0; i-- {
			m := &cursors[i]
			if m.next <= y+Eps {
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

// appendSpan appends a visible span, or extends the last one.
func (s *columnScan) appendSpan(from, to float64, front uint64) {
	if n := len(s.spans); n > 0 && s.spans[n-1].content == front && s.spans[n-1].to == from {
		s.spans[n-1].to = to
		return
	}
	s.spans = append(s.spans, visibleSpan{from, to, front})
}

// spanCursor is the position of a scan within a quad.
type spanCursor struct {
	texel        texel
	across, down ddaStepper
	next         float64 // where the next texel begins
	content      uint64  // the texel over all behind it
}

// seek moves the cursor to y on a line at x.
func (c *spanCursor) seek(q *quad, x, y float64) {
	column, row := c.across.seek(&q.across, x, y, 1), c.down.seek(&q.down, x, y, q.columns)
	c.texel = q.first + texel(row*q.columns+column)*oneTexel
	c.advance(y)
}

// advance moves the cursor down to y.
func (c *spanCursor) advance(y float64) {
	c.texel += c.across.advance(y) + c.down.advance(y)
	c.next = c.across.next
	if c.down.next < c.next {
		c.next = c.down.next
	}
}

// ddaStepper steps through the texels along one side of a face (a digital differential
// analyser).
type ddaStepper struct {
	next    float64 // where the next border between texels is, in pixels
	spacing float64 // from border to border, in pixels
	step    texel   // what to add to the texel at a border
}

// seek moves the stepper to y on a line at x and returns the index of the column or row there.
// Texels is how far neighbours are apart on the sheet.
func (d *ddaStepper) seek(from *gradient, x, y float64, texels int) int {
	start := from.atTop(x)
	value := min(max(int(start+from.perY*y), 0), from.texels-1)
	switch {
	case from.isUpright():
		d.next = math.Inf(1)
	case from.perY > 0:
		d.next, d.spacing, d.step = (float64(value+1)-start)*from.toY, from.toY, texel(texels)*oneTexel
	default:
		d.next, d.spacing, d.step = (float64(value)-start)*from.toY, -from.toY, -texel(texels)*oneTexel
	}
	return value
}

// advance moves the stepper down to y and returns what that adds to the texel.
func (d *ddaStepper) advance(y float64) texel {
	moved := texel(0)
	for d.next <= y+Eps {
		d.next += d.spacing
		moved += d.step
	}
	return moved
}
