package render

// shares adds up which stacks lie in the pixels of one column, and how much of each.
type shares struct {
	first []int32 // of each pixel: its first share's index, counted from 1; 0 is none
	all   []share
}

// share is how much of a pixel shows one stack.
type share struct {
	amount float64 // of 1
	stack  uint32
	next   int32 // of the same pixel, like first
}

// clear empties all pixels.
func (s *shares) clear() {
	clear(s.first)
	s.all = s.all[:0]
}

// add adds a segment to the pixels that it touches, as wide as a strip.
func (s *shares) add(g segment, width float64) {
	y := int(g.from)
	for from := g.from; from < g.to; y++ {
		to := min(g.to, float64(y+1))
		s.give(y, uint32(g.seen), (to-from)*width)
		from = to
	}
}

// give adds to what a pixel has of a stack.
func (s *shares) give(y int, stack uint32, amount float64) {
	for i := s.first[y]; i > 0; i = s.all[i-1].next {
		if s.all[i-1].stack == stack {
			s.all[i-1].amount += amount
			return
		}
	}
	s.all = append(s.all, share{amount, stack, s.first[y]})
	s.first[y] = int32(len(s.all))
}
