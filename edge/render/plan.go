package render

import "math"

// plan is all that a picture is but for its sheet: for every pixel it says which
// texels the pixel shows, whatever colours they have. Of some smooth pictures that
// is too much, and there is a sketch instead.
type plan struct {
	width, height int
	crisp         bool
	sketch        *sketch // nil if there are:
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
const whole = 1 << 15

// bytes returns how much memory the plan takes.
func (p *plan) bytes() int {
	bytes := 8*cap(p.stacks) + 8*cap(p.runs) + 4*cap(p.rows) + 8*cap(p.parts)
	if p.sketch != nil {
		bytes += p.sketch.bytes()
	}
	return bytes
}

// mostPlanned is how much of a smooth picture is planned at most, in pixels times the
// texels of a unit square: a preview of 400 pixels for sheets of scale 5. Larger plans
// take 10 MB and more, and longer to make than many pictures take without one. So do those
// of sheets beyond plannedScale at any size, as they know so many texels: one for a
// preview of 64 pixels of scale 8 takes 140 ms to make, and the picture 10 ms with it and
// 20 ms without.
const (
	mostPlanned  = 1 << 22
	plannedScale = 5
)

// isPlanned reports whether the scene has a full plan for sheets of scale k.
func (s scene) isPlanned(k int) bool {
	return s.crisp(k) || k <= plannedScale && s.width*s.height*k*k <= mostPlanned
}

// newPlan returns the plan of a scene for sheets of scale k.
func newPlan(s scene, k int) *plan {
	if s.isPlanned(k) {
		return fullPlan(s, k)
	}
	return &plan{width: s.width, height: s.height, sketch: newSketch(s, k)}
}

// planner makes a full plan, column by column.
type planner struct {
	plan   *plan
	stacks stacks
	sweep  sweep
	line   line
	pixels []run // of the picture, in rows from the top: each a run of its own

	// Of the column in the making, for each of its pixels:
	open   []bool // whether it may be mixed
	shares shares // if so, what of
}

// fullPlan returns a plan without a sketch.
//
// In a crisp plan pixels are mixed only where what lies behind them may show
// through, at the outline; all others show the one texel at their middle.
// Otherwise a pixel is mixed wherever it shows more than one.
func fullPlan(s scene, k int) *plan {
	p := planner{
		plan:   &plan{width: s.width, height: s.height, crisp: s.crisp(k)},
		stacks: newStacks(),
		pixels: make([]run, s.width*s.height),
		open:   make([]bool, s.height),
		shares: shares{first: make([]int32, s.height)},
	}
	for _, f := range s.figures {
		p.sweep.over(f.quads(k), &p.stacks, widest)
		for x := range s.width {
			p.column(x)
		}
	}
	p.rows()
	p.plan.stacks = p.stacks.all
	return p.plan
}

// column finds what a figure shows in the column x.
func (p *planner) column(x int) {
	strips := p.sweep.stripsOf(x)
	if len(strips) == 0 {
		return
	}
	if p.plan.crisp {
		p.readMiddles(x)
	}
	for _, s := range strips {
		p.sweep.measure(&p.line, s.middle)
		if p.plan.crisp {
			p.openUnbacked()
		} else {
			p.openFrom(p.line.extent())
		}
	}
	for _, s := range strips {
		p.sweep.measure(&p.line, s.middle)
		p.readShares(s.width)
	}
	for y, open := range p.open {
		if open {
			p.mix(x, y)
		}
	}
	clear(p.open)
	p.shares.clear()
}

// readMiddles finds what the middles of pixels show. The line is a hair beside
// them, as the edges of faces may run through them.
func (p *planner) readMiddles(x int) {
	p.sweep.measure(&p.line, float64(x)+0.5+10*slack)
	for _, g := range p.sweep.cross(&p.line, 0, float64(p.plan.height)) {
		from, to := int(math.Ceil(g.from-0.5)), int(math.Ceil(g.to-0.5))
		for y := from; y < to; y++ {
			p.pixels[y*p.plan.width+x].at = uint32(g.seen)
		}
	}
}

// openUnbacked opens pixels in which the line meets something, but not always the
// base.
func (p *planner) openUnbacked() {
	backed, end := p.line.extent() // backed up to here
	for _, c := range p.line.chords {
		if !p.sweep.quads[c.quad].base {
			continue
		}
		if c.from > backed+slack {
			p.openFrom(backed, c.from)
		}
		backed = max(backed, c.to)
	}
	p.openFrom(backed, end)
}

// openFrom opens the pixels between two places.
func (p *planner) openFrom(from, to float64) {
	first, behind := max(0, int(math.Floor(from+slack))), min(p.plan.height, int(math.Ceil(to-slack)))
	for y := first; y < behind; y++ {
		p.open[y] = true
	}
}

// readShares finds what the line shows of open pixels.
func (p *planner) readShares(width float64) {
	for y := 0; y < len(p.open); y++ {
		if !p.open[y] {
			continue
		}
		from := y
		for y < len(p.open) && p.open[y] {
			y++
		}
		for _, g := range p.sweep.cross(&p.line, float64(from), float64(y)) {
			p.shares.add(g, width)
		}
	}
}

// mix finds what an open pixel shows.
func (p *planner) mix(x, y int) {
	shown := &p.pixels[y*p.plan.width+x]
	parts, middle := p.plan.parts, shown.at
	first := len(parts)
	if middle != 0 {
		parts = append(parts, part{stack: middle})
	}
	sum, weighed := 0.0, 0
	for i := p.shares.first[y]; i > 0; i = p.shares.all[i-1].next {
		// Rounding the sums, and not each weight, makes the weights add up.
		s := &p.shares.all[i-1]
		sum += s.amount
		until := int(math.Round(sum * whole))
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
		shown.at = 0
	case weighed == whole && len(mixed) == 1:
		shown.at = mixed[0].stack
	default:
		p.plan.parts = parts
		shown.mixed, shown.at = uint16(len(mixed)), uint32(first)
	}
}

// rows joins pixels that show the same into runs.
func (p *planner) rows() {
	for y := range p.plan.height {
		p.plan.rows = append(p.plan.rows, uint32(len(p.plan.runs)))
		var last run
		for x, pixel := range p.pixels[y*p.plan.width:][:p.plan.width] {
			if x > 0 && (pixel.mixed > 0 || last.mixed > 0 || pixel.at != last.at) {
				p.plan.runs = append(p.plan.runs, last)
			}
			pixel.end = uint16(x + 1)
			last = pixel
		}
		p.plan.runs = append(p.plan.runs, last)
	}
	p.plan.rows = append(p.plan.rows, uint32(len(p.plan.runs)))
}
