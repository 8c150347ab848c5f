package render

import "math"

// plan says for every pixel of a picture which texels it shows, whatever colours
// they have: all that a picture is but for its sheet.
type plan struct {
	width, height int
	crisp         bool
	stacks        []stack
	runs          []run
	rows          []uint32 // for each row of pixels, from the top, the index of its first run; and behind the last
	parts         []part
}

// run is pixels beside each other that show the same stack, or one pixel that is
// mixed.
type run struct {
	end   uint16 // the column behind the last pixel
	mixed uint16 // of how many parts the pixel is mixed; 0 if it is not
	at    uint32 // the number of the stack, or the index of the first part
}

// part is a stack that a mixed pixel shows some of. What the parts of a pixel lack
// of whole, shows nothing. In a crisp plan the stack at the pixel's middle comes
// first, if anything is there, however little the pixel shows of it.
type part struct {
	stack  uint32
	weight uint32
}

// whole is the weight of a whole pixel.
const whole = 1 << 16

// bytes returns how much memory the plan takes.
func (p *plan) bytes() int {
	return 8*cap(p.stacks) + 8*cap(p.runs) + 4*cap(p.rows) + 8*cap(p.parts)
}

// levels is how many level lines through each pixel measure what it shows. Along
// them all is exact; between them, borders are taken for straight, which is wrong
// only where one ends or turns: by at most 0.3 % of the pixel.
const levels = 16

// planner makes a plan, row by row.
type planner struct {
	plan   *plan
	stacks stacks
	sweeps []*sweep
	levels [levels]level
	centre level

	// Of the row in the making, for each of its pixels:
	open   []bool   // whether it may be mixed
	middle []uint32 // if not, the stack at its middle
	shares shares   // else what it is mixed of
}

// newPlan returns the plan of a scene for sheets of scale k.
//
// In a crisp plan pixels are mixed only where what lies behind them may show
// through, at the outline; all others show the one texel at their middle.
// Otherwise a pixel is mixed wherever it shows more than one.
func newPlan(s scene, k int) *plan {
	p := planner{
		plan:   &plan{width: s.width, height: s.height, crisp: s.crisp(k)},
		stacks: newStacks(),
		open:   make([]bool, s.width),
		middle: make([]uint32, s.width),
		shares: shares{first: make([]int32, s.width)},
	}
	for _, f := range s.figures {
		p.sweeps = append(p.sweeps, newSweep(f.quads(k), &p.stacks))
	}
	for y := range s.height {
		p.plan.rows = append(p.plan.rows, uint32(len(p.plan.runs)))
		p.row(y)
	}
	p.plan.rows = append(p.plan.rows, uint32(len(p.plan.runs)))
	p.plan.stacks = p.stacks.all
	return p.plan
}

// row appends the row y.
func (p *planner) row(y int) {
	clear(p.open)
	clear(p.middle)
	p.shares.clear()
	for _, s := range p.sweeps {
		p.figure(s, y)
	}
	for x := range p.open {
		if p.open[x] {
			p.mix(x)
		} else {
			p.show(x, p.middle[x])
		}
	}
}

// figure finds what a figure shows in the row y.
func (p *planner) figure(s *sweep, y int) {
	left, right := p.measure(s, y)
	if left >= right {
		return
	}
	if p.plan.crisp {
		p.readMiddles(s, y, left, right)
		for i := range p.levels {
			p.openUnbacked(s, &p.levels[i], left, right)
		}
	} else {
		p.openAll(left, right)
	}
	for x := left; x < right; x++ {
		if p.open[x] {
			from := x
			for x < right && p.open[x] {
				x++
			}
			p.readShares(s, from, x)
		}
	}
}

// measure puts the level lines into the row y and returns between which columns
// they meet the figure.
func (p *planner) measure(s *sweep, y int) (left, right int) {
	left, right = p.plan.width, 0
	for i := range p.levels {
		l := &p.levels[i]
		s.measure(l, float64(y)+(float64(i)+0.5)/levels)
		if len(l.chords) > 0 {
			from, to := l.extent()
			left, right = min(left, p.column(from)), max(right, p.columnBehind(to))
		}
	}
	return left, right
}

// column returns the column of a place, and columnBehind the one behind it, or
// the place itself if it is an edge between columns.
func (p *planner) column(x float64) int       { return max(0, int(math.Floor(x+slack))) }
func (p *planner) columnBehind(x float64) int { return min(p.plan.width, int(math.Ceil(x-slack))) }

// readMiddles finds what the middles of pixels show.
func (p *planner) readMiddles(s *sweep, y, left, right int) {
	s.measure(&p.centre, float64(y)+0.5)
	for _, g := range s.cross(&p.centre, float64(left), float64(right)) {
		from, to := int(math.Ceil(g.from-0.5)), int(math.Ceil(g.to-0.5))
		for x := from; x < to; x++ {
			p.middle[x] = g.stack
		}
	}
}

// readShares finds what pixels are mixed of.
func (p *planner) readShares(s *sweep, left, right int) {
	for i := range p.levels {
		for _, g := range s.cross(&p.levels[i], float64(left), float64(right)) {
			p.shares.add(g)
		}
	}
}

// openAll opens pixels.
func (p *planner) openAll(left, right int) {
	for x := left; x < right; x++ {
		p.open[x] = true
	}
}

// openUnbacked opens pixels in which a line does not always meet the base.
func (p *planner) openUnbacked(s *sweep, l *level, left, right int) {
	backed := float64(left) // up to here
	for _, c := range l.chords {
		if !s.quads[c.quad].base {
			continue
		}
		if c.from > backed+slack {
			p.openAll(p.column(backed), p.columnBehind(c.from))
		}
		backed = max(backed, c.to)
	}
	p.openAll(p.column(backed), right)
}

// mix appends a pixel that may be mixed.
func (p *planner) mix(x int) {
	parts, middle := p.plan.parts, p.middle[x]
	first := len(parts)
	if middle != 0 {
		parts = append(parts, part{stack: middle})
	}
	sum, weighed := 0.0, 0
	for i := p.shares.first[x]; i > 0; i = p.shares.all[i-1].next {
		// Rounding the sums, and not each weight, makes the weights add up.
		s := &p.shares.all[i-1]
		sum += s.amount
		until := int(math.Round(sum * whole / levels))
		weight := uint32(until - weighed)
		weighed = until
		if s.stack == middle {
			parts[first].weight = weight
		} else if weight > 0 {
			parts = append(parts, part{s.stack, weight})
		}
	}
	switch mixed := parts[first:]; {
	case weighed == 0:
		p.show(x, 0)
	case weighed == whole && len(mixed) == 1:
		p.show(x, mixed[0].stack)
	default:
		p.plan.parts = parts
		p.plan.runs = append(p.plan.runs, run{end: uint16(x + 1), mixed: uint16(len(mixed)), at: uint32(first)})
	}
}

// show appends a pixel that shows one stack.
func (p *planner) show(x int, stack uint32) {
	if x > 0 {
		last := &p.plan.runs[len(p.plan.runs)-1]
		if last.mixed == 0 && last.at == stack {
			last.end++
			return
		}
	}
	p.plan.runs = append(p.plan.runs, run{end: uint16(x + 1), at: stack})
}
