package raster

// columnCoverage adds up which texel lists the pixels of one column show, and how much of each.
type columnCoverage struct {
	first []int32 // of each pixel: 1 + the index of its first entry; 0 is none
	all   []listCoverage
}

// listCoverage is how much of a pixel shows one texel list.
type listCoverage struct {
	area float64 // from 0 to 1
	list uint32
	next int32 // entry of the same pixel, counted like first
}

// clear removes all entries.
func (c *columnCoverage) clear() {
	clear(c.first)
	c.all = c.all[:0]
}

// add adds a visible span to the pixels that it touches, as wide as a sub-column.
func (c *columnCoverage) add(g visibleSpan, width float64) {
	y := int(g.from)
	for from := g.from; from < g.to; y++ {
		to := min(g.to, float64(y+1))
		c.addTo(y, uint32(g.content), (to-from)*width)
		from = to
	}
}

// addTo adds an area to what a pixel shows of a texel list.
func (c *columnCoverage) addTo(y int, list uint32, area float64) {
	for i := c.first[y]; i > 0; i = c.all[i-1].next {
		if c.all[i-1].list == list {
			c.all[i-1].area += area
			return
		}
	}
	c.all = append(c.all, listCoverage{area, list, c.first[y]})
	c.first[y] = int32(len(c.all))
}
