package render

// columnCoverage adds up which stacks lie in the pixels of one column, and how much of each.
type columnCoverage struct {
	first []int32 // of each pixel: its first share's index, counted from 1; 0 is none
	all   []listCoverage
}

// listCoverage is how much of a pixel shows one stack.
type listCoverage struct {
	area float64 // of 1
	list uint32
	next int32 // of the same pixel, like first
}

// clear empties all pixels.
func (s *columnCoverage) clear() {
	clear(s.first)
	s.all = s.all[:0]
}

// add adds a segment to the pixels that it touches, as wide as a strip.
func (s *columnCoverage) add(g visibleSpan, width float64) {
	y := int(g.from)
	for from := g.from; from < g.to; y++ {
		to := min(g.to, float64(y+1))
		s.addTo(y, uint32(g.content), (to-from)*width)
		from = to
	}
}

// addTo adds to what a pixel has of a stack.
func (s *columnCoverage) addTo(y int, list uint32, area float64) {
	for i := s.first[y]; i > 0; i = s.all[i-1].next {
		if s.all[i-1].list == list {
			s.all[i-1].area += area
			return
		}
	}
	s.all = append(s.all, listCoverage{area, list, s.first[y]})
	s.first[y] = int32(len(s.all))
}
