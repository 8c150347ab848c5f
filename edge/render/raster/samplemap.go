package raster

import "math"

// SampleMap is everything about a picture that does not depend on the colours of the sheet: for
// every pixel it says which texels the pixel shows. For some smooth pictures that would take
// too much memory; they have scannedFigures instead.
type SampleMap struct {
	Width, Height int
	crisp         bool
	scanned       *scannedFigures // nil if the fields below are set
	lists         []texelList
	runs          []run
	rows          []uint32 // index of the first run of each row, from the top; then len(runs)
	contributions []contribution
}

// run is a row's adjacent pixels that show the same texel list, or one mixed pixel.
type run struct {
	end   uint16 // column after the last pixel
	mixed uint16 // number of contributions of a mixed pixel; 0 for all others
	at    uint32 // number of the texel list, or index of the first contribution
}

// contribution is a texel list and how much of a mixed pixel shows it. What the weights of a
// pixel lack of fullWeight is transparent. In a crisp map the list at the pixel's centre comes
// first, if there is any, even with a weight of 0.
type contribution struct {
	list   uint32
	weight uint32
}

// fullWeight is the weight of a whole pixel.
const fullWeight = 1 << 15

// Bytes returns how much memory the map takes.
func (m *SampleMap) Bytes() int {
	bytes := 8*cap(m.lists) + 8*cap(m.runs) + 4*cap(m.rows) + 8*cap(m.contributions)
	if m.scanned != nil {
		bytes += m.scanned.bytes()
	}
	return bytes
}

// maxMappedTexels bounds the sample maps of smooth pictures, in pixels times texels of a unit
// square: a preview of 400 pixels for sheets of scale 5. Larger maps take 10 MB and more, and
// longer to build than many pictures take without one. So do maps for sheets beyond
// maxMappedScale at any size, because of their number of texels: for a preview of 64 pixels of
// scale 8 a map takes 140 ms to build, and the picture 10 ms with it and 20 ms without.
const (
	maxMappedTexels = 1 << 22
	maxMappedScale  = 5
)

// isMapped reports whether the scene gets a full map for sheets of scale k.
func (s Scene) isMapped(k int) bool {
	return s.Crisp(k) || k <= maxMappedScale && s.Width*s.Height*k*k <= maxMappedTexels
}

// NewSampleMap returns the sample map of a scene for sheets of scales.
func NewSampleMap(s Scene, k Scales) *SampleMap {
	if s.isMapped(k.Finest()) {
		return newFullMap(s, k)
	}
	return newScannedMap(s, k, maxSubColumnScanned)
}

// NewUncachedMap returns the sample map of a scene for a single picture. A smooth one is scanned, as
// finely as for a full map, which would take longer.
func NewUncachedMap(s Scene, k Scales) *SampleMap {
	switch {
	case s.Crisp(k.Finest()):
		return newFullMap(s, k)
	case s.isMapped(k.Finest()):
		return newScannedMap(s, k, maxSubColumn)
	default:
		return newScannedMap(s, k, maxSubColumnScanned)
	}
}

// newScannedMap returns a map that is scanned for every picture, in sub-columns of at most a width.
func newScannedMap(s Scene, k Scales, maxWidth float64) *SampleMap {
	return &SampleMap{Width: s.Width, Height: s.Height, scanned: newScannedFigures(s, k, maxWidth)}
}

// mapBuilder builds a full map, column by column.
type mapBuilder struct {
	out    *SampleMap
	lists  internTable
	scan   columnScan
	line   scanline
	pixels []run // one run per pixel, in rows from the top

	// For each pixel of the current column:
	open     []bool         // it may be mixed
	coverage columnCoverage // what open pixels show
}

// newFullMap returns a map that says for every pixel what it shows.
//
// In a crisp map only the pixels at the outline are mixed, where something behind the figure
// may show through; all others show the texel at their centre. In a smooth map every pixel is
// mixed that shows more than one texel.
func newFullMap(s Scene, k Scales) *SampleMap {
	b := mapBuilder{
		out:      &SampleMap{Width: s.Width, Height: s.Height, crisp: s.Crisp(k.Finest())},
		lists:    newInternTable(),
		pixels:   make([]run, s.Width*s.Height),
		open:     make([]bool, s.Height),
		coverage: columnCoverage{first: make([]int32, s.Height)},
	}
	for _, f := range s.Figures {
		b.scan.begin(f.quads(k), &b.lists, maxSubColumn)
		for x := range s.Width {
			b.column(x)
		}
	}
	b.rows()
	b.out.lists = b.lists.all
	return b.out
}

// column works out what a figure shows in the column x.
func (b *mapBuilder) column(x int) {
	columns := b.scan.subColumns(x)
	if len(columns) == 0 {
		return
	}
	if b.out.crisp {
		b.sampleCentres(x)
	}
	for _, s := range columns {
		b.scan.intersect(&b.line, s.middle)
		if b.out.crisp {
			b.openUncovered()
		} else {
			b.openFrom(b.line.extent())
		}
	}
	for _, s := range columns {
		b.scan.intersect(&b.line, s.middle)
		b.addCoverage(s.width)
	}
	for y, open := range b.open {
		if open {
			b.mix(x, y)
		}
	}
	clear(b.open)
	b.coverage.clear()
}

// sampleCentres sets what the centres of pixels show. The line is a hair to the right of them,
// because edges of faces may run exactly through centres.
func (b *mapBuilder) sampleCentres(x int) {
	b.scan.intersect(&b.line, float64(x)+0.5+10*Eps)
	for _, g := range b.scan.visible(&b.line, 0, float64(b.out.Height)) {
		from, to := int(math.Ceil(g.from-0.5)), int(math.Ceil(g.to-0.5))
		for y := from; y < to; y++ {
			b.pixels[y*b.out.Width+x].at = uint32(g.content)
		}
	}
}

// openUncovered opens the pixels in which the line meets something, but not the opaque base
// throughout.
func (b *mapBuilder) openUncovered() {
	covered, end := b.line.extent() // everything above is the base
	for _, c := range b.line.spans {
		if !b.scan.quads[c.quad].base {
			continue
		}
		if c.from > covered+Eps {
			b.openFrom(covered, c.from)
		}
		covered = max(covered, c.to)
	}
	b.openFrom(covered, end)
}

// openFrom opens the pixels between two places of the column.
func (b *mapBuilder) openFrom(from, to float64) {
	first, behind := max(0, int(math.Floor(from+Eps))), min(b.out.Height, int(math.Ceil(to-Eps)))
	for y := first; y < behind; y++ {
		b.open[y] = true
	}
}

// addCoverage adds what the line shows of open pixels.
func (b *mapBuilder) addCoverage(width float64) {
	for y := 0; y < len(b.open); y++ {
		if !b.open[y] {
			continue
		}
		from := y
		for y < len(b.open) && b.open[y] {
			y++
		}
		for _, g := range b.scan.visible(&b.line, float64(from), float64(y)) {
			b.coverage.add(g, width)
		}
	}
}

// mix sets what an open pixel shows.
func (b *mapBuilder) mix(x, y int) {
	pixel := &b.pixels[y*b.out.Width+x]
	contributions, middle := b.out.contributions, pixel.at
	first := len(contributions)
	if middle != 0 {
		contributions = append(contributions, contribution{list: middle})
	}
	sum, assigned := 0.0, 0
	for i := b.coverage.first[y]; i > 0; i = b.coverage.all[i-1].next {
		// Rounding the running sum instead of each weight makes the weights add up.
		s := &b.coverage.all[i-1]
		sum += s.area
		total := int(math.Round(sum * fullWeight))
		weight := uint32(total - assigned)
		assigned = total
		if s.list == middle {
			contributions[first].weight = weight
		} else if weight > 0 {
			contributions = append(contributions, contribution{s.list, weight})
		}
	}
	switch mixed := contributions[first:]; {
	case assigned == 0:
		pixel.at = 0
	case assigned == fullWeight && len(mixed) == 1:
		pixel.at = mixed[0].list
	default:
		b.out.contributions = contributions
		pixel.mixed, pixel.at = uint16(len(mixed)), uint32(first)
	}
}

// rows joins adjacent pixels that show the same into runs.
func (b *mapBuilder) rows() {
	for y := range b.out.Height {
		b.out.rows = append(b.out.rows, uint32(len(b.out.runs)))
		var last run
		for x, pixel := range b.pixels[y*b.out.Width:][:b.out.Width] {
			if x > 0 && (pixel.mixed > 0 || last.mixed > 0 || pixel.at != last.at) {
				b.out.runs = append(b.out.runs, last)
			}
			pixel.end = uint16(x + 1)
			last = pixel
		}
		b.out.runs = append(b.out.runs, last)
	}
	b.out.rows = append(b.out.rows, uint32(len(b.out.runs)))
}
