package png

import (
	"encoding/binary"
	"math"
	"math/bits"
	"slices"
	"sort"

	"github.com/veneer-skins/veneer/edge/render/internal/prefix"
)

// deflater packs streams in the format of DEFLATE (RFC 1951).
type deflater struct {
	matchFinder
	costs
	counts counts
	codes  codes

	cost   []uint32 // of the cheapest way from the first node to each
	choice []match  // with which it ends
	path   []match  // the way, from its end
	steps  []match  // of all blocks
	blocks []block

	w prefix.Writer
}

// block is a part of a stream with codes of its own: some nodes.
type block struct {
	from, to int
	steps    int // where its steps end
}

// blockNodes bounds the memory that matches take.
const blockNodes = 1 << 17

// parse decides how to pack a stream. It seeks the cheapest way so many times, at
// the prices it has and then at those of the codes that fit the way before. In vast
// streams only the first block has that; others have one pass at the prices before, and
// no search if that has found next to nothing in the first: in noise it takes as long as
// all the rest.
func (p *deflater) parse(s *stream, passes int) {
	p.start(s)
	p.steps, p.blocks = p.steps[:0], p.blocks[:0]
	for from := 0; from < len(s.nodes)-1; {
		size := blockNodes
		if from == 0 && s.vast() {
			size = sampleNodes
		}
		to := min(from+size, len(s.nodes)-1)
		p.find(s, from, to)
		start := len(p.steps)
		for range passes {
			p.steps = p.steps[:start]
			p.shortestPath(s, from, to)
			p.emit(s, s.nodes[from].at())
			p.counts.count(s, s.nodes[from].at(), p.steps[start:])
			p.fit(&p.counts)
		}
		p.blocks = append(p.blocks, block{from: from, to: to, steps: len(p.steps)})
		if s.vast() {
			passes = 1
			if from == 0 && minSearchedShare*p.searchedBytes(p.steps[start:]) < s.nodes[to].at() {
				p.maxChain = 0
			}
		}
		from = to
	}
}

// The first block of a vast stream has so many nodes, and of so many of its bytes one must
// be in a match that was searched for.
const (
	sampleNodes      = 1 << 15
	minSearchedShare = 4
)

// searchedBytes returns how many bytes the matches have that are at other distances than those
// that are always tried.
func (p *deflater) searchedBytes(steps []match) (bytes int) {
	for _, m := range steps {
		if m != literal && !slices.Contains(p.fixedDistances, m.distance()) {
			bytes += m.length()
		}
	}
	return bytes
}

// size returns how many bits it takes to pack a stream as planned.
func (p *deflater) size(s *stream) int {
	size, first := 0, 0
	for _, b := range p.blocks {
		at := s.nodes[b.from].at()
		p.counts.count(s, at, p.steps[first:b.steps])
		size += min(p.codes.make(&p.counts), storedSize(s.nodes[b.to].at()-at))
		first = b.steps
	}
	return size
}

// append appends what was planned to dst.
func (p *deflater) append(dst []byte, s *stream) []byte {
	p.w.Reset(dst)
	first := 0
	for i, b := range p.blocks {
		last := i == len(p.blocks)-1
		at := s.nodes[b.from].at()
		bytes := s.bytes[at:s.nodes[b.to].at()]
		steps := p.steps[first:b.steps]
		p.counts.count(s, at, steps)
		if p.codes.make(&p.counts) > storedSize(len(bytes)) {
			p.store(bytes, last)
		} else {
			p.codes.write(&p.w, last)
			p.codes.writeSteps(&p.w, bytes, steps)
		}
		first = b.steps
	}
	return p.w.Bytes()
}

// longestStored is how many bytes a block can have that keeps them as they are.
const longestStored = 1<<16 - 1

// storedSize returns how many bits it takes, at most, to keep bytes as they are.
func storedSize(bytes int) int {
	blocks := (bytes + longestStored - 1) / longestStored
	return 8 * (bytes + 5*blocks + 1)
}

// store writes bytes as they are.
func (p *deflater) store(bytes []byte, last bool) {
	for len(bytes) > 0 {
		n := min(len(bytes), longestStored)
		final := uint64(0)
		if last && n == len(bytes) {
			final = 1
		}
		p.w.Write(final, 3)
		dst := binary.LittleEndian.AppendUint16(p.w.Bytes(), uint16(n))
		dst = binary.LittleEndian.AppendUint16(dst, ^uint16(n))
		p.w.Reset(append(dst, bytes[:n]...))
		bytes = bytes[n:]
	}
}

// shortestPath finds the cheapest way from node to node.
func (p *deflater) shortestPath(s *stream, from, to int) {
	nodes := s.nodes[from : to+1]
	p.cost, p.choice = grow(p.cost, len(nodes)), grow(p.choice, len(nodes))
	for i := range p.cost {
		p.cost[i] = math.MaxUint32
	}
	p.cost[0] = 0
	for i := range nodes[1:] {
		p.relaxMatches(nodes, i)
		if end := nodes[i+1].at(); end-nodes[i].at() <= nearNodes || p.cost[i+1] == math.MaxUint32 {
			p.relaxLiterals(s.bytes[nodes[i].at():end], i)
		}
	}

	p.path = p.path[:0]
	for i := len(nodes) - 1; i > 0; {
		m := p.choice[i]
		if m == literal {
			i--
			for range nodes[i+1].at() - nodes[i].at() {
				p.path = append(p.path, literal)
			}
			continue
		}
		p.path = append(p.path, m)
		start := nodes[i].at() - m.length()
		for i--; nodes[i].at() > start; i-- {
		}
	}
}

// nearNodes is how far apart nodes are between which literals are worth a try; if
// farther, all is as expected.
const nearNodes = 8

// relaxMatches goes on from a node by its matches, to all nodes that they reach.
func (p *deflater) relaxMatches(nodes []node, i int) {
	base, at, cost, choice := p.cost[i], nodes[i].at(), p.cost, p.choice
	k, cheapest := i+1, uint32(math.MaxUint32)
	for _, m := range p.matches.at(i) {
		distance := p.distance[m.symbol()]
		if distance < cheapest {
			cheapest = distance
			k = i + 1 // else matches before, which were shorter, did that
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
			if c := distance + p.length[to-at]; c < cost[k] {
				cost[k], choice[k] = c, m.cut(to-at)
			}
		}
	}
}

// maxEndNodes is how many nodes a match may end at one after another before only the
// last one counts: noise has that many, and each of them such matches.
const maxEndNodes = 48

// lastOf returns the last node up to a position, or the first.
func lastOf(nodes []node, at int) int {
	return max(sort.Search(min(len(nodes), maxMatch), func(k int) bool { return nodes[k].at() > at })-1, 0)
}

// relaxLiterals goes on from a node to the next by literals.
func (p *deflater) relaxLiterals(bytes []byte, i int) {
	cost := p.cost[i]
	for _, b := range bytes {
		cost += p.literal[b]
	}
	if cost < p.cost[i+1] {
		p.cost[i+1], p.choice[i+1] = cost, literal
	}
}

// emit turns the way around, and lets matches take literals beside them, which
// may be parts of pixels where there are no nodes.
func (p *deflater) emit(s *stream, at int) {
	first := len(p.steps)
	for _, m := range slices.Backward(p.path) {
		last := len(p.steps) - 1
		if s.pixel == 1 {
			p.steps = append(p.steps, m)
			continue
		}
		if m == literal {
			if last >= first && p.steps[last] != literal {
				if before := p.steps[last]; s.bytes[at] == s.bytes[at-before.distance()] && p.shouldExtend(before.length(), s.bytes[at]) {
					p.steps[last] = before.cut(before.length() + 1)
					at++
					continue
				}
			}
			p.steps = append(p.steps, literal)
			at++
			continue
		}
		length, start := m.length(), at
		for last >= first && p.steps[last] == literal && start > m.distance() &&
			s.bytes[start-1] == s.bytes[start-1-m.distance()] && p.shouldExtend(length, s.bytes[start-1]) {
			start--
			length++
			last--
		}
		p.steps = append(p.steps[:last+1], m.cut(length))
		at += m.length()
	}
}

// shouldExtend reports whether a match may take one more byte, rather than a literal.
func (p *costs) shouldExtend(length int, b byte) bool {
	return length < maxMatch && p.length[length+1] <= p.length[length]+p.literal[b]
}

// costs says what everything costs, in parts of a bit.
type costs struct {
	literal  [256]uint32
	length   [maxMatch + 1]uint32
	distance [32]uint32
}

// bit is the price of a bit.
const bit = 32

// What things often cost, in streams of pixels of four bytes and in others.
var (
	defaultCosts     = newCosts(4, 4, 3)
	defaultCostsRGBA = newCosts(3, 5, 6)
)

// newCosts returns prices in which a length takes so many bits besides its extra
// ones, if it is the colour of a pixel, a pixel, or two of them, and if it is
// another; and a distance so many.
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

// estimate sets prices that do for a start on a stream: those of literals from the
// bytes that are not as expected, among which most literals are. What pixels of
// four bytes cost varies so little that the guess does for good.
func (p *costs) estimate(s *stream) {
	*p = *defaultCosts
	if s.pixel == 4 {
		*p = *defaultCostsRGBA
	}
	var counts [256]uint32
	for i, n := range s.nodes[:len(s.nodes)-1] {
		if n.hot() {
			for _, b := range s.bytes[n.at():s.nodes[i+1].at()] {
				counts[b]++
			}
		}
	}
	entropy(p.literal[:], counts[:])
	if s.pixel < 4 {
		return
	}
	for i := range p.literal {
		p.literal[i] += bit // half of what is told is matches
	}
	for _, d := range []int{s.pixel, s.stride - s.pixel, s.stride, s.stride + s.pixel} {
		if d <= maxDistance { // most matches are with neighbours
			near := symbols.distance(d)
			p.distance[near] = (2 + uint32(symbols.distanceExtra[near])) * bit
		}
	}
}

// fit sets the prices of codes that fit the counts.
func (p *costs) fit(c *counts) {
	var table [literals]uint32
	entropy(table[:], c.literals[:])
	copy(p.literal[:], table[:])
	for n := minMatch; n <= maxMatch; n++ {
		s := symbols.length[n]
		p.length[n] = table[firstLength+int(s)] + uint32(symbols.lengthExtra[s])*bit
	}
	entropy(p.distance[:distances], c.distances[:])
	for s := range distances {
		p.distance[s] += uint32(symbols.distanceExtra[s]) * bit
	}
}

// entropy sets the price of each symbol to the bits that its share of the counts
// is worth. One that never occurred is priced as if it had once.
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

// log2 returns the binary logarithm in parts of a bit.
func log2(n uint32) uint32 {
	whole := bits.Len32(n) - 1
	return uint32(whole)*bit + uint32(fractions[n<<(31-whole)>>(31-fractionBits)&(1<<fractionBits-1)])
}

// fractions are the parts of a bit by which the logarithm of a number exceeds that
// of the power of two below, by the bits that follow the number's first.
var fractions = func() (f [1 << fractionBits]uint8) {
	for i := range f {
		f[i] = uint8(bit*math.Log2(1+float64(i)/float64(len(f))) + 0.5)
	}
	return f
}()

const fractionBits = 9

// counts says how often each symbol occurs.
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
