package png

import (
	"encoding/binary"
	"math/bits"
)

// stream is the input of DEFLATE: filtered rows, each after its filter byte. Most of it is as
// expected: each pixel is like the one above, or zero after filters. Matches may start and end
// only at nodes, which are dense where pixels are not as expected and sparse elsewhere. That
// makes the search fast and loses little.
type stream struct {
	bytes  []byte
	nodes  []node
	pixel  int // bytes of a pixel
	stride int // bytes of a row with its filter

	// Where all is as expected, matches have the greatest length, one after another from the
	// last change. So the latest places where matches may have started each get a series of
	// nodes at that distance, across rows and changes.
	series    []int // next node of each, sorted from the index next on
	startedAt []int // position where each started
	next      int
	unchanged bool // the last row equals the one above
}

// manySeriesBytes is the size from which on there are eight series instead of three. Heads of
// 512 pixels become 2.5 % smaller by that, pictures half as large hardly at all, and all take a
// fifth longer.
const manySeriesBytes = 1 << 18

// node is a position, doubled, plus one if it is hot: a place from which matches are searched.
type node uint32

func (n node) at() int   { return int(n >> 1) }
func (n node) hot() bool { return n&1 != 0 }

// reset empties the stream.
func (s *stream) reset(pixel, stride, rows int) {
	s.bytes = grow(s.bytes, stride*rows)[:0]
	s.nodes = s.nodes[:0]
	s.pixel, s.stride, s.unchanged = pixel, stride, false
	series := 3
	if stride*rows >= manySeriesBytes {
		series = 8
	}
	s.series, s.startedAt, s.next = grow(s.series, series), grow(s.startedAt, series), 0
	clear(s.startedAt)
	for i := range s.series {
		s.series[i] = i * maxMatch / series
	}
}

// markRow sets the nodes of a row that has its filter byte at start.
func (s *stream) markRow(start int, row, expected []byte, filterChanged, filtered bool) {
	if !filterChanged && start >= s.stride && same(s.bytes, s.bytes, start, start-s.stride, start+s.stride) == s.stride {
		// The row equals the one above, so evenly spaced nodes suffice.
		if !s.unchanged {
			s.unchanged = true
			s.fill(start)
			s.node(start, false)
			s.start(start)
		}
		return
	}
	s.unchanged = false
	s.fill(start)
	s.node(start, filterChanged)
	first := start + 1
	s.node(first, filterChanged)
	if filtered || filterChanged {
		s.node(first+1, false)
		s.start(first + 1)
	}
	for x := 0; ; {
		x += same(row, expected, x, x, len(row))
		if x == len(row) {
			return
		}
		x = s.markChanges(first, x-x%s.pixel, row, expected)
		last := first + x
		s.node(last, x < len(row))
		if s.pixel < 4 && filtered && x < len(row) {
			last++ // a run of zeros starts with one
			s.node(last, false)
		}
		s.start(last)
		if x == len(row) {
			return
		}
		if x+s.pixel < len(row) {
			s.node(first+x+s.pixel, false)
		}
	}
}

// markChanges sets the nodes of consecutive pixels that are not as expected, and returns where
// they end. Those that equal the pixel on their left need no search.
func (s *stream) markChanges(first, x int, row, expected []byte) int {
	run := false
	for ; x < len(row) && !s.equalPixels(row, x, expected, x); x += s.pixel {
		if x > 0 && s.equalPixels(row, x, row, x-s.pixel) {
			if !run {
				run = true
				s.fill(first + x)
				s.node(first+x, false)
				s.start(first + x)
			}
			continue
		}
		run = false
		s.fill(first + x)
		s.node(first+x, true)
		if s.pixel == 4 {
			s.node(first+x+3, false) // alpha often matches together with the next pixel
		}
	}
	s.fill(first + x)
	return x
}

// equalPixels reports whether the pixel at i in a equals the one at j in b.
func (s *stream) equalPixels(a []byte, i int, b []byte, j int) bool {
	switch s.pixel {
	case 1:
		return a[i] == b[j]
	case 4:
		return binary.LittleEndian.Uint32(a[i:]) == binary.LittleEndian.Uint32(b[j:])
	default:
		return string(a[i:i+s.pixel]) == string(b[j:j+s.pixel])
	}
}

// fill sets the nodes of all series up to a position.
func (s *stream) fill(to int) {
	for {
		at := s.series[s.next]
		if at >= to {
			return
		}
		s.node(at, false)
		s.series[s.next] = at + maxMatch
		s.next = (s.next + 1) % len(s.series)
	}
}

// start starts a series at a position, up to which fill has been called, in place of the
// oldest.
func (s *stream) start(at int) {
	// The new one is the next; those between it and the oldest move on by one.
	oldest := 0
	for i, started := range s.startedAt {
		if started < s.startedAt[oldest] {
			oldest = i
		}
	}
	for i := oldest; i != s.next; {
		before := (i + len(s.series) - 1) % len(s.series)
		s.series[i], s.startedAt[i] = s.series[before], s.startedAt[before]
		i = before
	}
	s.series[s.next], s.startedAt[s.next] = at, at
}

// node adds a node, unless there is one at or after the position.
func (s *stream) node(at int, hot bool) {
	n := node(at << 1)
	if hot {
		n |= 1
	}
	if k := len(s.nodes) - 1; k >= 0 && s.nodes[k].at() >= at {
		if s.nodes[k].at() == at {
			s.nodes[k] |= n & 1
		}
		return
	}
	s.nodes = append(s.nodes, n)
}

// end adds the last node, where the bytes end.
func (s *stream) end() {
	s.fill(len(s.bytes))
	for s.nodes[len(s.nodes)-1].at() >= len(s.bytes) {
		s.nodes = s.nodes[:len(s.nodes)-1]
	}
	s.node(len(s.bytes), false)
}

// vast reports whether the stream is so large that less effort is spent on it.
func (s *stream) vast() bool { return len(s.nodes) > vastNodes }

// same returns how many bytes of a from i on equal the bytes of b from j on, with i up to end.
func same(a, b []byte, i, j, end int) int {
	n := 0
	for i+n+8 <= end {
		if x := binary.LittleEndian.Uint64(a[i+n:]) ^ binary.LittleEndian.Uint64(b[j+n:]); x != 0 {
			return n + bits.TrailingZeros64(x)/8
		}
		n += 8
	}
	for i+n < end && a[i+n] == b[j+n] {
		n++
	}
	return n
}

// grow returns a slice of n arbitrary values, in the memory of s if that is large enough.
func grow[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n, n+n/4)
	}
	return s[:n]
}
