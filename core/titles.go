package core

import (
	"bytes"
	"slices"
)

// titles are the names of a row of textures, as keys, with an index that says in
// which of them three bytes stand next to each other. Three bytes share a slot with
// others, so that a name which the index gives must still be looked at.
type titles struct {
	keys []byte   // one after another
	ends []uint32 // of the keys

	slots  [slots + 1]uint32 // where in places those of a slot begin; at the last one none do
	places []uint16          // names, by slot
	within []uint8           // where in its name the three bytes stand that a place is of, if not far behind
}

// far is where three bytes are said to stand that do so there or further behind.
const far = 255

// slots is the number of slots. There are about ten names in one that do not belong
// there, which takes no time; and where it begins takes 8 bytes a texture.
const slots = 2048

// slot returns the slot of the first three bytes.
func slot(text []byte) int {
	three := uint32(text[0]) | uint32(text[1])<<8 | uint32(text[2])<<16
	return int(three * 2654435769 >> 21) // by the golden ratio; 11 bits are left
}

// newTitles returns the titles of volumes: the former ones, if they are the same.
func newTitles(volumes []volume, former *titles) *titles {
	length := 0
	for _, v := range volumes {
		length += len(v.key)
	}
	t := &titles{keys: make([]byte, 0, length), ends: make([]uint32, len(volumes))}
	for i, v := range volumes {
		t.keys = append(t.keys, v.key...)
		t.ends[i] = uint32(len(t.keys))
	}
	if former != nil && bytes.Equal(former.keys, t.keys) && slices.Equal(former.ends, t.ends) {
		return former
	}
	for i := range t.ends {
		for key := t.key(i); len(key) >= 3; key = key[1:] {
			t.slots[slot(key)+1]++
		}
	}
	for i := range slots {
		t.slots[i+1] += t.slots[i]
	}
	t.places, t.within = make([]uint16, t.slots[slots]), make([]uint8, t.slots[slots])
	next := t.slots
	for i := range t.ends {
		key := t.key(i)
		for at := range max(0, len(key)-2) {
			s := slot(key[at:])
			t.places[next[s]], t.within[next[s]] = uint16(i), uint8(min(at, far))
			next[s]++
		}
	}
	return t
}

// key returns the key of a name.
func (t *titles) key(i int) []byte {
	begin := uint32(0)
	if i > 0 {
		begin = t.ends[i-1]
	}
	return t.keys[begin:t.ends[i]:t.ends[i]]
}

// candidates are names that may contain a text.
type candidates struct {
	places []uint16 // some several times
	within []uint8  // where the text's three bytes stand in each
	before int      // where they stand in the text
}

// candidates returns the names that may contain a text of at least three bytes: all of
// its threes stand in a name that does, and these have the one that fewest have.
func (t *titles) candidates(text []byte) (fewest candidates) {
	for i := range len(text) - 2 {
		s := slot(text[i:])
		begin, end := t.slots[s], t.slots[s+1]
		if i == 0 || int(end-begin) < len(fewest.places) {
			fewest = candidates{t.places[begin:end], t.within[begin:end], i}
		}
	}
	return fewest
}

// stands reports whether a text stands in a name, in which bytes of the text stand
// within, and in the text behind others.
func (t *titles) stands(text []byte, name int, within uint8, before int) bool {
	key, at := t.key(name), int(within)-before
	if within == far {
		return bytes.Contains(key, text)
	}
	return at >= 0 && at+len(text) <= len(key) && string(key[at:at+len(text)]) == string(text)
}
