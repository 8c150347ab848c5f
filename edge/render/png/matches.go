package png

import (
	"encoding/binary"
	"math"
	"slices"
)

// A match copies bytes from a distance before: the length in bits 20 and up, the symbol of the
// distance in bits 15 to 19, the distance less one below.
type match uint32

// literal is a single byte, represented as a match of length one.
const literal match = 1 << 20

func newMatch(length, distance int) match {
	return match(uint32(length)<<20 | uint32(symbols.distance(distance))<<15 | uint32(distance-1))
}

func (m match) length() int          { return int(m >> 20) }
func (m match) symbol() int          { return int(m >> 15 & 31) }
func (m match) distance() int        { return int(m&(1<<15-1)) + 1 }
func (m match) cut(length int) match { return m&(1<<20-1) | match(length<<20) }

// Limits of the search for matches, tuned on pictures of skins.
const (
	hashBits       = 13
	neighbourRange = 3 // pixels to either side of the one above that are compared at changes

	// From this many bytes on, hash chains are followed twice as far, because matches have to
	// be longer to pay for their long distances.
	deepSearchBytes = 1 << 17

	// From this many nodes on, less is searched: no picture of up to 400 × 400 pixels has them,
	// and the time would not be worth the bytes.
	vastNodes = 3 << 17

	// Bound of the positions compared in a stream: pictures of up to 400 × 400 pixels need
	// fewer. Textures can be made to need many times as many.
	maxCompared = 1 << 21
)

// matchFinder finds the matches that start at nodes.
type matchFinder struct {
	maxChain         int // positions compared on one chain
	budget           int // positions left to compare on all chains
	short, long      hashChains
	fixedDistances   []int      // distances that are tried at every node
	fixedIfUnchanged int        // this many of them, from the first, are tried at nodes that are not hot, too
	ends             []int      // end of the current match at each of them
	searchResults    matchLists // of hot nodes
	matches          matchLists // of all nodes, ascending by length
}

// hashChains link each hot node to the previous one with the same hash. Nodes are numbered on
// from numbers of earlier streams, so that stale links need not be cleared.
type hashChains struct {
	first int32 // the number of the stream's first node
	next  int32
	head  [1 << hashBits]int32
	prev  []int32 // the previous node, or negative
}

// reset makes room for the nodes of a stream.
func (c *hashChains) reset(nodes int) {
	if c.first = c.next; c.first == 0 || c.first > math.MaxInt32/2 {
		clear(c.head[:])
		c.first = 1
	}
	c.next = c.first + int32(nodes)
	c.prev = grow(c.prev, nodes)
}

// add adds a node.
func (c *hashChains) add(hash uint32, node int) {
	c.prev[node] = c.head[hash] - c.first
	c.head[hash] = int32(node) + c.first
}

// matchLists holds the matches of consecutive nodes.
type matchLists struct {
	all   []match
	first []uint32 // of each node
}

// reset makes room for the matches of nodes.
func (l *matchLists) reset(nodes int) {
	l.all = l.all[:0]
	l.first = grow(l.first, nodes+1)
}

// at returns the matches of a node.
func (l *matchLists) at(node int) []match { return l.all[l.first[node]:l.first[node+1]] }

// start prepares the finder for a stream.
func (f *matchFinder) start(s *stream) {
	switch {
	case s.vast():
		f.maxChain = 3
	case len(s.bytes) > deepSearchBytes:
		f.maxChain = 16
	default:
		f.maxChain = 8
	}
	f.budget = maxCompared
	f.fixedDistances = f.fixedDistances[:0]
	f.addFixedDistance(s, 1)
	f.addFixedDistance(s, s.pixel)
	f.addFixedDistance(s, s.stride)
	f.fixedIfUnchanged = len(f.fixedDistances)
	for k := 1; k <= neighbourRange; k++ {
		f.addFixedDistance(s, s.stride-k*s.pixel)
		f.addFixedDistance(s, s.stride+k*s.pixel)
	}
	f.ends = grow(f.ends, len(f.fixedDistances))
	clear(f.ends)
	f.short.reset(len(s.nodes))
	f.long.reset(len(s.nodes))
}

// addFixedDistance adds a distance to those that are tried at every node.
func (f *matchFinder) addFixedDistance(s *stream, distance int) {
	if distance >= 1 && distance < min(maxDistance+1, len(s.bytes)) && !slices.Contains(f.fixedDistances, distance) {
		f.fixedDistances = append(f.fixedDistances, distance)
	}
}

// find finds matches for the nodes from, …, to-1; none goes beyond node to.
func (f *matchFinder) find(s *stream, from, to int) {
	if f.maxChain > 0 {
		f.search(s, from, to)
	}
	f.matches.reset(to - from)
	end := s.nodes[to].at()
	hot := from // the next hot node
	for n := from; n < to; n++ {
		f.matches.first[n-from] = uint32(len(f.matches.all))
		longest := f.compare(s, n, end)
		if f.maxChain == 0 {
			continue
		}
		for hot = max(hot, n); hot < to && !s.nodes[hot].hot(); hot++ {
		}
		switch hot {
		case to:
		case n:
			for _, m := range f.searchResults.at(n - from) {
				if m.length() > longest {
					longest = m.length()
					f.matches.all = append(f.matches.all, m)
				}
			}
		default:
			// What matches at a change may also match right before it.
			i := s.nodes[n].at()
			if before := s.nodes[hot].at() - i; before < maxMatch {
				limit := min(end-i, maxMatch)
				f.follow(&f.matches, &f.long, f.maxChain, s, hot, before, limit, longest)
			}
		}
	}
	f.matches.first[to-from] = uint32(len(f.matches.all))
}

// compare appends the matches of a node at the fixed distances, and returns the greatest
// length.
func (f *matchFinder) compare(s *stream, n, end int) int {
	i := s.nodes[n].at()
	distances := f.fixedDistances
	if !s.nodes[n].hot() {
		distances = distances[:f.fixedIfUnchanged]
	}
	longest := minMatch - 1
	for k, distance := range distances {
		length := f.ends[k] - i
		if length <= 0 {
			if distance > i || s.bytes[i] != s.bytes[i-distance] {
				continue
			}
			length = same(s.bytes, s.bytes, i, i-distance, end)
			f.ends[k] = i + length
		}
		if length = min(length, end-i, maxMatch); length > longest {
			longest = length
			f.matches.all = append(f.matches.all, newMatch(length, distance))
		}
	}
	return longest
}

// follow follows the hash chain of a node for a place some bytes before the node. It appends
// the matches that are longer than longest to a list, and returns the greatest length.
func (f *matchFinder) follow(l *matchLists, c *hashChains, steps int, s *stream, node, before, limit, longest int) int {
	steps = min(steps, f.budget)
	f.budget -= steps
	i := s.nodes[node].at() - before
	b := s.bytes
	for at := c.prev[node]; at >= 0 && longest < limit && steps > 0; at = c.prev[at] {
		steps--
		j := s.nodes[at].at() - before
		if i-j > maxDistance || j < 0 {
			break
		}
		if b[j+longest] == b[i+longest] {
			if length := same(b, b, i, j, i+limit); length > longest {
				longest = length
				l.all = append(l.all, newMatch(length, i-j))
			}
		}
	}
	f.budget += steps
	return longest
}

// search finds matches for hot nodes among the hot nodes before.
func (f *matchFinder) search(s *stream, from, to int) {
	f.searchResults.reset(to - from)
	end := s.nodes[to].at()
	event := from // start of the next change
	for n := from; n < to; n++ {
		f.searchResults.first[n-from] = uint32(len(f.searchResults.all))
		i := s.nodes[n].at()
		limit := min(end-i, maxMatch)
		if !s.nodes[n].hot() || limit < 8 {
			f.short.prev[n], f.long.prev[n] = -1, -1
			continue
		}
		for event <= n || event < to && (!s.nodes[event].hot() || s.nodes[event-1].hot()) {
			event++
		}
		gap := uint64(s.nodes[event].at() - i)
		x := binary.LittleEndian.Uint64(s.bytes[i:])
		f.short.add(hash(x<<40), n)
		f.long.add(hash(x+gap<<7), n)
		longest := f.follow(&f.searchResults, &f.long, f.maxChain, s, n, 0, limit, minMatch-1)
		f.follow(&f.searchResults, &f.short, f.maxChain, s, n, 0, limit, longest)
	}
	f.searchResults.first[to-from] = uint32(len(f.searchResults.all))
}

// hash maps a number to a bucket of the chains.
func hash(x uint64) uint32 { return uint32(x * 0x9e3779b185ebca87 >> (64 - hashBits)) }
