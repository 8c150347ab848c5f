package render

import "math"

// sampleMap is all that a picture is but for its sheet: for every pixel it says which
// texels the pixel shows, whatever colours they have. Of some smooth pictures that
// is too much, and there is a sketch instead.
type sampleMap struct {
	width, height int
	crisp         bool
	scanned       *scannedFigures // nil if there are:
	lists         []texelList
	runs          []run
	rows          []uint32 // for each row of pixels, from the top, the index of its first run; and behind the last
	contributions []contribution
}

// run is pixels beside each other that show the same stack, or one pixel that is
// mixed.
type run struct {
	end   uint16 // the column behind the last pixel
	mixed uint16 // of how many parts the pixel is mixed; 0 if it is not
	at    uint32 // the number of the stack, or the index of the first part
}

// contribution is a stack that a mixed pixel shows some of. What the parts of a pixel lack
// of whole, shows nothing. In a crisp plan the stack at the pixel's middle comes
// first, if anything is there, however little the pixel shows of it.
type contribution struct {
	list   uint32
	weight uint32
}

// fullWeight is the weight of a whole pixel.
const fullWeight = 1 << 15

// bytes returns how much memory the plan takes.
func (p *sampleMap) bytes() int {
	bytes := 8*cap(p.lists) + 8*cap(p.runs) + 4*cap(p.rows) + 8*cap(p.contributions)
	if p.scanned != nil {
		bytes += p.scanned.bytes()
	}
	return bytes
}

// maxMappedTexels is how much of a smooth picture is planned at most, in pixels times the
// texels of a unit square: a preview of 400 pixels for sheets of scale 5. Larger plans
// take 10 MB and more, and longer to make than many pictures take without one. So do those
// of sheets beyond maxMappedScale at any size, as they know so many texels: one for a
// preview of 64 pixels of scale 8 takes 140 ms to make, and the picture 10 ms with it and
// 20 ms without.
const (
	maxMappedTexels = 1 << 22
	maxMappedScale  = 5
)

// isCached reports whether the scene has a full plan for sheets of scale k.
func (s scene) isMapped(k int) bool {
	return s.crisp(k) || k <= maxMappedScale && s.width*s.height*k*k <= maxMappedTexels
}

// newSampleMap returns the plan of a scene for sheets of scale k.
func newSampleMap(s scene, k int) *sampleMap {
	if s.isMapped(k) {
		return newFullMap(s, k)
	}
	return &sampleMap{width: s.width, height: s.height, scanned: newScannedFigures(s, k)}
}

// mapBuilder makes a full plan, column by column.
type mapBuilder struct {
	out    *sampleMap
	lists  internTable
	scan   columnScan
	line   scanline
	pixels []run // of the picture, in rows from the top: each a run of its own

	// Of the column in the making, for each of its pixels:
	open     []bool         // whether it may be mixed
	coverage columnCoverage // if so, what of
}

// newFullMap returns a plan without a sketch.
//
// In a crisp plan pixels are mixed only where what lies behind them may show
// through, at the outline; all others show the one texel at their middle.
// Otherwise a pixel is mixed wherever it shows more than one.
func newFullMap(s scene, k int) *sampleMap {
	p := mapBuilder{
		out:      &sampleMap{width: s.width, height: s.height, crisp: s.crisp(k)},
		lists:    newInternTable(),
		pixels:   make([]run, s.width*s.height),
		open:     make([]bool, s.height),
		coverage: columnCoverage{first: make([]int32, s.height)},
	}
	for _, f := range s.figures {
		p.scan.begin(f.quads(k), &p.lists, maxSubColumn)
		for x := range s.width {
			p.column(x)
		}
	}
	p.rows()
	p.out.lists = p.lists.all
	return p.out
}

// column finds what a figure shows in the column x.
func (p *mapBuilder) column(x int) {
	columns := p.scan.subColumns(x)
	if len(columns) == 0 {
		return
	}
	if p.out.crisp {
		p.sampleCentres(x)
	}
	for _, s := range columns {
		p.scan.intersect(&p.line, s.middle)
		if p.out.crisp {
			p.openUncovered()
		} else {
			p.openFrom(p.line.extent())
		}
	}
	for _, s := range columns {
		p.scan.intersect(&p.line, s.middle)
		p.addCoverage(s.width)
	}
	for y, open := range p.open {
		if open {
			p.mix(x, y)
		}
	}
	clear(p.open)
	p.coverage.clear()
}

// sampleCentres finds what the middles of pixels show. The line is a hair beside
// them, as the edges of faces may run through them.
func (p *mapBuilder) sampleCentres(x int) {
	p.scan.intersect(&p.line, float64(x)+0.5+10*eps)
	for _, g := range p.scan.visible(&p.line, 0, float64(p.out.height)) {
		from, to := int(math.Ceil(g.from-0.5)), int(math.Ceil(g.to-0.5))
		for y := from; y < to; y++ {
			p.pixels[y*p.out.width+x].at = uint32(g.content)
		}
	}
}

// openUncovered opens pixels in which the line meets something, but not always the
// base.
func (p *mapBuilder) openUncovered() {
	covered, end := p.line.extent() // backed up to here
	for _, c := range p.line.spans {
		if !p.scan.quads[c.quad].base {
			continue
		}
		if c.from > covered+eps {
			p.openFrom(covered, c.from)
		}
		covered = max(covered, c.to)
	}
	p.openFrom(covered, end)
}

// openFrom opens the pixels between two places.
func (p *mapBuilder) openFrom(from, to float64) {
	first, behind := max(0, int(math.Floor(from+eps))), min(p.out.height, int(math.Ceil(to-eps)))
	for y := first; y < behind; y++ {
		p.open[y] = true
	}
}

// addCoverage finds what the line shows of open pixels.
func (p *mapBuilder) addCoverage(width float64) {
	for y := 0; y < len(p.open); y++ {
		if !p.open[y] {
			continue
		}
		from := y
		for y < len(p.open) && p.open[y] {
			y++
		}
		for _, g := range p.scan.visible(&p.line, float64(from), float64(y)) {
			p.coverage.add(g, width)
		}
	}
}

// mix finds what an open pixel shows.
func (p *mapBuilder) mix(x, y int) {
	pixel := &p.pixels[y*p.out.width+x]
	parts, middle := p.out.contributions, pixel.at
	first := len(parts)
	if middle != 0 {
		parts = append(parts, contribution{list: middle})
	}
	sum, assigned := 0.0, 0
	for i := p.coverage.first[y]; i > 0; i = p.coverage.all[i-1].next {
		// Rounding the sums, and not each weight, makes the weights add up.
		s := &p.coverage.all[i-1]
		sum += s.area
		total := int(math.Round(sum * fullWeight))
		weight := uint32(total - assigned)
		assigned = total
		if s.list == middle {
			parts[first].weight = weight
		} else if weight > 0 {
			parts = append(parts, contribution{s.list, weight})
		}
	}
	switch mixed := parts[first:]; {
	case assigned == 0:
		pixel.at = 0
	case assigned == fullWeight && len(mixed) == 1:
		pixel.at = mixed[0].list
	default:
		p.out.contributions = parts
		pixel.mixed, pixel.at = uint16(len(mixed)), uint32(first)
	}
}

// rows joins pixels that show the same into runs.
func (p *mapBuilder) rows() {
	for y := range p.out.height {
		p.out.rows = append(p.out.rows, uint32(len(p.out.runs)))
		var last run
		for x, pixel := range p.pixels[y*p.out.width:][:p.out.width] {
			if x > 0 && (pixel.mixed > 0 || last.mixed > 0 || pixel.at != last.at) {
				p.out.runs = append(p.out.runs, last)
			}
			pixel.end = uint16(x + 1)
			last = pixel
		}
		p.out.runs = append(p.out.runs, last)
	}
	p.out.rows = append(p.out.rows, uint32(len(p.out.runs)))
}
