package render

// texelList is the pile of texels that a ray meets: the nearest, and the number of the
// stack of all behind it, which is lower than its own. A stack ends at the first
// texel of the base. The stack 0 is nothing at all.
type texelList struct {
	top   texel
	below uint32
}

// internTable numbers stacks, equal ones alike.
type internTable struct {
	all     []texelList
	buckets []uint32 // of a hash table with open addressing; 0 is a free one
	shift   int      // what of a hash is no index in slots
}

func newInternTable() internTable {
	const bits = 12
	return internTable{all: make([]texelList, 1, 1<<(bits-1)), buckets: make([]uint32, 1<<bits), shift: 64 - bits}
}

// intern returns the number of a stack.
func (s *internTable) intern(top texel, below uint32) uint32 {
	list := texelList{top, below}
	bucket := s.bucketOf(list)
	if n := s.buckets[bucket]; n != 0 {
		return n
	}
	n := uint32(len(s.all))
	s.all = append(s.all, list)
	s.buckets[bucket] = n
	if 2*len(s.all) > len(s.buckets) {
		s.grow()
	}
	return n
}

// over numbers the stack of a texel and one below it: stacks are layers for a sweep.
func (s *internTable) over(top texel, below uint64) uint64 {
	return uint64(s.intern(top, uint32(below)))
}

// bucketOf returns the slot that has the stack, or the one for it.
func (s *internTable) bucketOf(list texelList) int {
	const golden = 0x9e3779b97f4a7c15 // 2⁶⁴ over the golden ratio spreads neighbours far apart
	key := uint64(list.top)<<32 | uint64(list.below)
	bucket := int(key * golden >> s.shift)
	for s.buckets[bucket] != 0 && s.all[s.buckets[bucket]] != list {
		bucket = (bucket + 1) & (len(s.buckets) - 1)
	}
	return bucket
}

func (s *internTable) grow() {
	s.buckets = make([]uint32, 2*len(s.buckets))
	s.shift--
	for n := 1; n < len(s.all); n++ {
		s.buckets[s.bucketOf(s.all[n])] = uint32(n)
	}
}
