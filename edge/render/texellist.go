package render

// texelList is the texels along a ray, as a linked list: the nearest texel, and the number of
// the list of all behind it, which is lower than the list's own. A list ends at the first texel
// of the opaque base. Number 0 is the empty list.
type texelList struct {
	top   texel
	below uint32
}

// internTable numbers texel lists: equal lists get the same number.
type internTable struct {
	all     []texelList
	buckets []uint32 // of a hash table with open addressing; 0 is free
	shift   int      // bits of a hash beside the index in buckets
}

func newInternTable() internTable {
	const bits = 12
	return internTable{all: make([]texelList, 1, 1<<(bits-1)), buckets: make([]uint32, 1<<bits), shift: 64 - bits}
}

// intern returns the number of a list.
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

// over returns the number of the list of a texel over the list below. An internTable is the
// blender of scans that build sample maps.
func (s *internTable) over(top texel, below uint64) uint64 {
	return uint64(s.intern(top, uint32(below)))
}

// bucketOf returns the bucket that holds the list, or the free one for it.
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
