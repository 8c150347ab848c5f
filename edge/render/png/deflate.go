package png

import (
	"encoding/binary"
	"math"
	"math/bits"
	"slices"
	"sort"

	"github.com/veneer-skins/veneer/edge/render/internal/prefix"
)

// deflater compresses streams with DEFLATE (RFC 1951).
type deflater struct {
	matchFinder
	costs
	counts counts
	codes  codes

	cost   []uint32 // cheapest cost from the first node to each
	choice []match  // last step of the cheapest path
	path   []match  // the cheapest path, in reverse
	steps  []match  // of all blocks
	blocks []block

	w prefix.Writer
}

// block is a range of nodes with codes of its own.
type block struct {
	from, to int
	steps    int // end of its steps
}

// blockNodes bounds the memory for matches.
const blockNodes = 1 << 17

// parse decides how to compress a stream. In each pass it finds the cheapest path, at first
// with the initial costs, then with the costs of the codes fitted to the previous path. In vast
// streams only the first block has more than one pass. Their search for matches stops after the
// first block if it gains next to nothing there: in noise it takes as long as everything else.
func (d *deflater) parse(s *stream, passes int) {
	d.start(s)
	d.steps, d.blocks = d.steps[:0], d.blocks[:0]
	for from := 0; from < len(s.nodes)-1; {
		size := blockNodes
		if from == 0 && s.vast() {
			size = sampleNodes
		}
		to := min(from+size, len(s.nodes)-1)
		d.find(s, from, to)
		start := len(d.steps)
		for range passes {
			d.steps = d.steps[:start]
			d.shortestPath(s, from, to)
			d.emit(s, s.nodes[from].at())
			d.counts.count(s, s.nodes[from].at(), d.steps[start:])
			d.fit(&d.counts)
		}
		d.blocks = append(d.blocks, block{from: from, to: to, steps: len(d.steps)})
		if s.vast() {
			passes = 1
			if from == 0 && minSearchedShare*d.searchedBytes(d.steps[start:]) < s.nodes[to].at() {
				d.maxChain = 0
			}
		}
		from = to
	}
}

// The first block of a vast stream has that many nodes, and the search goes on if one in
// minSearchedShare of its bytes is in a match that was searched for.
const (
	sampleNodes      = 1 << 15
	minSearchedShare = 4
)

// searchedBytes returns how many bytes are in matches at other distances than the fixed ones.
func (d *deflater) searchedBytes(steps []match) (bytes int) {
	for _, m := range steps {
		if m != literal && !slices.Contains(d.fixedDistances, m.distance()) {
			bytes += m.length()
		}
	}
	return bytes
}

// size returns the compressed size of the parsed stream in bits.
func (d *deflater) size(s *stream) int {
	size, first := 0, 0
	for _, b := range d.blocks {
		at := s.nodes[b.from].at()
		d.counts.count(s, at, d.steps[first:b.steps])
		size += min(d.codes.make(&d.counts), storedSize(s.nodes[b.to].at()-at))
		first = b.steps
	}
	return size
}

// append appends the compressed stream to dst.
func (d *deflater) append(dst []byte, s *stream) []byte {
	d.w.Reset(dst)
	first := 0
	for i, b := range d.blocks {
		last := i == len(d.blocks)-1
		at := s.nodes[b.from].at()
		bytes := s.bytes[at:s.nodes[b.to].at()]
		steps := d.steps[first:b.steps]
		d.counts.count(s, at, steps)
		if d.codes.make(&d.counts) > storedSize(len(bytes)) {
			d.store(bytes, last)
		} else {
			d.codes.write(&d.w, last)
			d.codes.writeSteps(&d.w, bytes, steps)
		}
		first = b.steps
	}
	return d.w.Bytes()
}

// longestStored is the greatest size of a stored block in bytes.
const longestStored = 1<<16 - 1

// storedSize returns an upper bound of the size of stored blocks in bits.
func storedSize(bytes int) int {
	blocks := (bytes + longestStored - 1) / longestStored
	return 8 * (bytes + 5*blocks + 1)
}

// store writes stored blocks.
func (d *deflater) store(bytes []byte, last bool) {
	for len(bytes) > 0 {
		n := min(len(bytes), longestStored)
		final := uint64(0)
		if last && n == len(bytes) {
			final = 1
		}
		d.w.Write(final, 3)
		dst := binary.LittleEndian.AppendUint16(d.w.Bytes(), uint16(n))
		dst = binary.LittleEndian.AppendUint16(dst, ^uint16(n))
		d.w.Reset(append(dst, bytes[:n]...))
		bytes = bytes[n:]
	}
}

// shortestPath finds the cheapest path from node to node.
func (d *deflater) shortestPath(s *stream, from, to int) {
	nodes := s.nodes[from : to+1]
	d.cost, d.choice = grow(d.cost, len(nodes)), grow(d.choice, len(nodes))
	for i := range d.cost {
		d.cost[i] = math.MaxUint32
	}
	d.cost[0] = 0
	for i := range nodes[1:] {
		d.relaxMatches(nodes, i)
		if end := nodes[i+1].at(); end-nodes[i].at() <= nearNodes || d.cost[i+1] == math.MaxUint32 {
			d.relaxLiterals(s.bytes[nodes[i].at():end], i)
		}
	}

	d.path = d.path[:0]
	for i := len(nodes) - 1; i > 0; {
		m := d.choice[i]
		if m == literal {
			i--
			for range nodes[i+1].at() - nodes[i].at() {
				d.path = append(d.path, literal)
			}
			continue
		}
		d.path = append(d.path, m)
		start := nodes[i].at() - m.length()
		for i--; nodes[i].at() > start; i-- {
		}
	}
}

// nearNodes is the distance up to which literals between two nodes are tried; nodes farther
// apart have only expected pixels between them.
const nearNodes = 8

// relaxMatches extends the path to a node by its matches, to all nodes that they reach.
func (d *deflater) relaxMatches(nodes []node, i int) {
	base, at, cost, choice := d.cost[i], nodes[i].at(), d.cost, d.choice
	k, cheapest := i+1, uint32(math.MaxUint32)
	for _, m := range d.matches.at(i) {
		distance := d.distance[m.symbol()]
		if distance < cheapest {
			cheapest = distance
			k = i + 1 // otherwise the shorter matches before have covered these nodes
		}
		distance += base
		last := at + m.length()
		for near := k + maxEndNodes; k < len(nodes); k++ {
			if k == near {
				k += lastOf(nodes[k:], last)
			}
			to := nodes[k].at()
			if to > last {
				break
			}
			if c := distance + d.length[to-at]; c < cost[k] {
				cost[k], choice[k] = c, m.cut(to-at)
			}
		}
	}
}

// maxEndNodes is how many consecutive nodes are tried as the end of a match before only the
// last one is. Noise has that many, each with such matches.
const maxEndNodes = 48

// lastOf returns the index of the last node up to a position, or 0.
func lastOf(nodes []node, at int) int {
	return max(sort.Search(min(len(nodes), maxMatch), func(k int) bool { return nodes[k].at() > at })-1, 0)
}

// relaxLiterals extends the path to a node by literals to the next one.
func (d *deflater) relaxLiterals(bytes []byte, i int) {
	cost := d.cost[i]
	for _, b := range bytes {
		cost += d.literal[b]
	}
	if cost < d.cost[i+1] {
		d.cost[i+1], d.choice[i+1] = cost, literal
	}
}

// emit appends the path in order. Matches absorb adjacent literals if that is cheaper: these
// may be parts of pixels, where there are no nodes.
func (d *deflater) emit(s *stream, at int) {
	first := len(d.steps)
	for _, m := range slices.Backward(d.path) {
		last := len(d.steps) - 1
		if s.pixel == 1 {
			d.steps = append(d.steps, m)
			continue
		}
		if m == literal {
			if last >= first && d.steps[last] != literal {
				if before := d.steps[last]; s.bytes[at] == s.bytes[at-before.distance()] && d.shouldExtend(before.length(), s.bytes[at]) {
					d.steps[last] = before.cut(before.length() + 1)
					at++
					continue
				}
			}
			d.steps = append(d.steps, literal)
			at++
			continue
		}
		length, start := m.length(), at
		for last >= first && d.steps[last] == literal && start > m.distance() &&
			s.bytes[start-1] == s.bytes[start-1-m.distance()] && d.shouldExtend(length, s.bytes[start-1]) {
			start--
			length++
			last--
		}
		d.steps = append(d.steps[:last+1], m.cut(length))
		at += m.length()
	}
}

// shouldExtend reports whether one more byte in a match is cheaper than a literal.
func (c *costs) shouldExtend(length int, b byte) bool {
	return length < maxMatch && c.length[length+1] <= c.length[length]+c.literal[b]
}

// costs is the cost of literals, lengths and distances, in units of 1/32 bit.
type costs struct {
	literal  [256]uint32
	length   [maxMatch + 1]uint32
	distance [32]uint32
}

// bit is the cost of a bit.
const bit = 32

// Typical costs, of streams of pixels of four bytes and of others.
var (
	defaultCosts     = newCosts(4, 4, 3)
	defaultCostsRGBA = newCosts(3, 5, 6)
)

// newCosts returns costs in bits besides the extra ones: for lengths of the colour of a pixel,
// a pixel, or two of them; for other lengths; and for distances.
func newCosts(pixels, others, distance uint32) *costs {
	p := new(costs)
	for i := range p.literal {
		p.literal[i] = 7 * bit
	}
	for n := range p.length {
		switch {
		case n < minMatch:
			p.length[n] = math.MaxUint32 / 8 // no match is that short
		case n == 3 || n == 4 || n == 8:
			p.length[n] = pixels * bit // without extra bits
		default:
			p.length[n] = (others + uint32(symbols.lengthExtra[symbols.length[n]])) * bit
		}
	}
	for s := range distances {
		p.distance[s] = (distance + uint32(symbols.distanceExtra[s])) * bit
	}
	return p
}

// estimate sets initial costs for a stream: literals from the bytes that are not as
// expected, which most literals are. For pixels of four bytes the real costs vary so little
// that the estimate is not refined.
func (c *costs) estimate(s *stream) {
	*c = *defaultCosts
	if s.pixel == 4 {
		*c = *defaultCostsRGBA
	}
	var counts [256]uint32
	for i, n := range s.nodes[:len(s.nodes)-1] {
		if n.hot() {
			for _, b := range s.bytes[n.at():s.nodes[i+1].at()] {
				counts[b]++
			}
		}
	}
	entropy(c.literal[:], counts[:])
	if s.pixel < 4 {
		return
	}
	for i := range c.literal {
		c.literal[i] += bit // half of the symbols are matches
	}
	for _, d := range []int{s.pixel, s.stride - s.pixel, s.stride, s.stride + s.pixel} {
		if d <= maxDistance { // most matches are with neighbours
			near := symbols.distance(d)
			c.distance[near] = (2 + uint32(symbols.distanceExtra[near])) * bit
		}
	}
}

// fit sets the costs to the lengths of codes for the counts.
func (c *costs) fit(n *counts) {
	var table [literals]uint32
	entropy(table[:], n.literals[:])
	copy(c.literal[:], table[:])
	for length := minMatch; length <= maxMatch; length++ {
		s := symbols.length[length]
		c.length[length] = table[firstLength+int(s)] + uint32(symbols.lengthExtra[s])*bit
	}
	entropy(c.distance[:distances], n.distances[:])
	for s := range distances {
		c.distance[s] += uint32(symbols.distanceExtra[s]) * bit
	}
}

// entropy sets the cost of each symbol to its information content by its share of the counts.
// One that never occurred counts as if it had once.
func entropy(costs, counts []uint32) {
	sum := uint32(0)
	for _, c := range counts {
		sum += c
	}
	whole := log2(max(sum, 1))
	for i, c := range counts {
		costs[i] = max(whole-log2(max(c, 1)), bit/8)
	}
}

// log2 returns the binary logarithm as a cost.
func log2(n uint32) uint32 {
	whole := bits.Len32(n) - 1
	return uint32(whole)*bit + uint32(fractions[n<<(31-whole)>>(31-fractionBits)&(1<<fractionBits-1)])
}

// fractions is the table of log2(1+x) as a cost, indexed by the leading bits of x.
var fractions = func() (f [1 << fractionBits]uint8) {
	for i := range f {
		f[i] = uint8(bit*math.Log2(1+float64(i)/float64(len(f))) + 0.5)
	}
	return f
}()

const fractionBits = 9

// counts are the frequencies of symbols.
type counts struct {
	literals  [literals]uint32
	distances [distances]uint32
}

// count counts the symbols of steps that start at a position.
func (c *counts) count(s *stream, at int, steps []match) {
	*c = counts{}
	for _, m := range steps {
		if m == literal {
			c.literals[s.bytes[at]]++
			at++
			continue
		}
		c.literals[firstLength+int(symbols.length[m.length()])]++
		c.distances[m.symbol()]++
		at += m.length()
	}
	c.literals[endOfBlock]++
}
