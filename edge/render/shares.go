package render

// shares adds up which stacks lie in the pixels of one row, and how much of each.
type shares struct {
	first []int32 // of each pixel: its first share's index, counted from 1; 0 is none
	all   []share
}

// share is how much of a pixel shows one stack. A whole pixel is as much as there
// are level lines through it.
type share struct {
	amount float64
	stack  uint32
	next   int32 // of the same pixel, like first
}

// clear empties all pixels.
func (s *shares) clear() {
	clear(s.first)
	s.all = s.all[:0]
}

// add adds a segment to the pixels that it touches.
func (s *shares) add(g segment) {
	x := int(g.from)
	for from := g.from; from < g.to; x++ {
		to := min(g.to, float64(x+1))
		s.give(x, g.stack, to-from)
		from = to
	}
}

// give adds to what a pixel has of a stack.
func (s *shares) give(x int, stack uint32, amount float64) {
	for i := s.first[x]; i > 0; i = s.all[i-1].next {
		if s.all[i-1].stack == stack {
			s.all[i-1].amount += amount
			return
		}
	}
	s.all = append(s.all, share{amount, stack, s.first[x]})
	s.first[x] = int32(len(s.all))
}
