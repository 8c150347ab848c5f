package render

// stack is the pile of texels that a ray meets: the nearest, and the number of the
// stack of all behind it, which is lower than its own. A stack ends at the first
// texel of the base. The stack 0 is nothing at all.
type stack struct {
	top   texel
	below uint32
}

// stacks numbers stacks, equal ones alike.
type stacks struct {
	all   []stack
	slots []uint32 // of a hash table with open addressing; 0 is a free one
	shift int      // what of a hash is no index in slots
}

func newStacks() stacks {
	const bits = 12
	return stacks{all: make([]stack, 1, 1<<(bits-1)), slots: make([]uint32, 1<<bits), shift: 64 - bits}
}

// number returns the number of a stack.
func (s *stacks) number(top texel, below uint32) uint32 {
	want := stack{top, below}
	slot := s.slotOf(want)
	if n := s.slots[slot]; n != 0 {
		return n
	}
	n := uint32(len(s.all))
	s.all = append(s.all, want)
	s.slots[slot] = n
	if 2*len(s.all) > len(s.slots) {
		s.grow()
	}
	return n
}

// lay numbers the stack of a texel and one below it: stacks are layers for a sweep.
func (s *stacks) lay(top texel, below uint64) uint64 {
	return uint64(s.number(top, uint32(below)))
}

// slotOf returns the slot that has the stack, or the one for it.
func (s *stacks) slotOf(want stack) int {
	const golden = 0x9e3779b97f4a7c15 // 2⁶⁴ over the golden ratio spreads neighbours far apart
	key := uint64(want.top)<<32 | uint64(want.below)
	slot := int(key * golden >> s.shift)
	for s.slots[slot] != 0 && s.all[s.slots[slot]] != want {
		slot = (slot + 1) & (len(s.slots) - 1)
	}
	return slot
}

func (s *stacks) grow() {
	s.slots = make([]uint32, 2*len(s.slots))
	s.shift--
	for n := 1; n < len(s.all); n++ {
		s.slots[s.slotOf(s.all[n])] = uint32(n)
	}
}
