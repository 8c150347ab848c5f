package raster

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
func (t *internTable) intern(top texel, below uint32) uint32 {
	list := texelList{top, below}
	bucket := t.bucketOf(list)
	if n := t.buckets[bucket]; n != 0 {
		return n
	}
	n := uint32(len(t.all))
	t.all = append(t.all, list)
	t.buckets[bucket] = n
	if 2*len(t.all) > len(t.buckets) {
		t.grow()
	}
	return n
}

// over returns the number of the list of a texel over the list below. An internTable is the
// blender of scans that build sample maps.
func (t *internTable) over(top texel, below uint64) uint64 {
	return uint64(t.intern(top, uint32(below)))
}

// bucketOf returns the bucket that holds the list, or the free one for it.
func (t *internTable) bucketOf(list texelList) int {
	const golden = 0x9e3779b97f4a7c15 // 2⁶⁴ over the golden ratio spreads neighbours far apart
	key := uint64(list.top)<<32 | uint64(list.below)
	bucket := int(key * golden >> t.shift)
	for t.buckets[bucket] != 0 && t.all[t.buckets[bucket]] != list {
		bucket = (bucket + 1) & (len(t.buckets) - 1)
	}
	return bucket
}

func (t *internTable) grow() {
	t.buckets = make([]uint32, 2*len(t.buckets))
	t.shift--
	for n := 1; n < len(t.all); n++ {
		t.buckets[t.bucketOf(t.all[n])] = uint32(n)
	}
}
