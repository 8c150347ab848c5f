package webp

import (
	"math"
	"math/bits"
	"slices"
)

// maxCopy is the longest copy in the format, in pixels.
const maxCopy = 4096

// token is a copy or a single pixel.
type token struct {
	length uint16 // of a copy, in pixels; 0 for a single pixel
	cached bool   // the single pixel's colour is in the cache
	value  uint32 // distance code of a copy, or index in the cache
}

// pixels returns how many pixels the token covers.
func (t token) pixels() int { return max(1, int(t.length)) }

// nearby lists the offsets at which copies are tried everywhere. In a picture of texels the
// pixel above or the one on the left is nearly always equal. At the slanted borders of texels
// the others match, as a border that descends to the left moves two or three columns a row.
var nearby = []offset{{0, 1}, {1, 0}, {-1, 1}, {-2, 1}, {-3, 1}, {2, 1}}

// copyDistance is a distance at which copies are tried.
type copyDistance struct {
	distance int
	code     uint32
	cost     cost
}

// node is a pixel at which a token may begin: the cost of the cheapest known path to it, and
// the last token of that path.
type node struct {
	cost  cost
	token token
}

// parser finds the tokens of images. It is scratch memory.
type parser struct {
	above     copyDistance // one row; 0 in an image of one column
	distances []copyDistance
	tokens    []token
	nodes     []node
	reached   []uint64 // a bit for each node: a path to it is known

	// The cheapest known node beyond the current one.
	aheadCost cost
	aheadAt   int

	run         int // run of the current node
	long, tries int // see effort
}

// findDistances sets the distances for an image.
func (p *parser) findDistances(r *raster) {
	p.above = copyDistance{}
	p.distances = p.distances[:0]
	for _, at := range nearby {
		distance := at.y*r.width + at.x
		cached := slices.ContainsFunc(p.distances, func(s copyDistance) bool { return s.distance == distance })
		if distance <= 0 || cached {
			continue // narrow image
		}
		s := copyDistance{distance: distance, code: uint32(distanceCode(distance, r.width))}
		if distance == r.width && distance > 1 {
			p.above = s
		} else {
			p.distances = append(p.distances, s)
		}
	}
}

// copyFrom returns how many pixels from i on can be copied from that distance.
func (d *copyDistance) copyFrom(r *raster, i int) int {
	if j := i - d.distance; j >= 0 && r.px[j] == r.px[i] {
		return r.match(i, j)
	}
	return 0
}

// copyAbove returns how many pixels from i on can be copied from the row above.
func (p *parser) copyAbove(r *raster, i int) int {
	if j := i - p.above.distance; j >= 0 && j < i && r.px[j] == r.px[i] {
		return r.matchAbove(i)
	}
	return 0
}

// guess returns tokens of an image found without costs: mostly the longest copies. The first
// costs are learnt from them.
func (p *parser) guess(r *raster, k kind) []token {
	const niceLength = 8
	p.findDistances(r)
	distances := p.distances[:min(k.distances, len(p.distances))]
	p.tokens = p.tokens[:0]
	for i := 0; i < len(r.px); {
		best := token{}
		if n := p.copyAbove(r, i); n >= k.minCopy {
			best = token{length: uint16(n), value: p.above.code}
		}
		if best.length <= niceLength {
			for rank := range distances {
				if n := distances[rank].copyFrom(r, i); n > max(int(best.length), k.minCopy-1) {
					best = token{length: uint16(n), value: distances[rank].code}
				}
			}
		}
		p.tokens = append(p.tokens, best)
		i += best.pixels()
	}
	return p.tokens
}

// parse returns the cheapest tokens of an image, or nearly so: a shortest path through the
// pixels, in which every copy has its greatest length.
func (p *parser) parse(r *raster, costs *costs, c *cache) []token {
	n := len(r.px)
	p.nodes = slices.Grow(p.nodes[:0], n+1)[:n+1]
	p.reached = zeroed(p.reached, n/64+1)
	p.findDistances(r)
	p.above.cost = costs.distanceCode(int(p.above.code))
	for k := range p.distances {
		p.distances[k].cost = costs.distanceCode(int(p.distances[k].code))
	}

	p.long, p.tries = effort(r)
	p.nodes[0] = node{}
	p.reached[0] = 1
	p.aheadCost, p.aheadAt, p.run = math.MaxUint32, 0, 0
	for word := range p.reached {
		for left := p.reached[word]; left != 0; {
			bit := bits.TrailingZeros64(left)
			if i := 64*word + bit; i < n {
				p.relax(r, i, costs, c)
			}
			left = p.reached[word] &^ (2<<bit - 1)
		}
	}

	p.tokens = p.tokens[:0]
	for i := n; i > 0; {
		t := p.nodes[i].token
		p.tokens = append(p.tokens, t)
		i -= t.pixels()
	}
	slices.Reverse(p.tokens)
	return p.tokens
}

// effort returns the length from which on a copy from above is good enough to try nothing else,
// and how many earlier similar runs are tried. Large pictures of long runs have few runs, and
// these are worth more.
func effort(r *raster) (long, tries int) {
	const large, perRun = 1 << 15, 8 // pixels
	if len(r.px) >= large && len(r.px) >= perRun*len(r.runs) {
		return 100, 4
	}
	return 32, 2
}

// minTokenCost is less than the cost of any token that is not the only one of its kind. A node
// that is not cheaper than a node further on, even by that much, cannot be on the cheapest
// path.
const minTokenCost = 3 * perBit

// relax tries all tokens that may begin at the pixel i.
func (p *parser) relax(r *raster, i int, costs *costs, c *cache) {
	at := p.nodes[i].cost
	if i >= p.aheadAt {
		p.aheadCost = math.MaxUint32
	} else if at+minTokenCost > p.aheadCost {
		return
	}
	v := r.px[i]
	if j := i - p.above.distance; j >= 0 && j < i && r.px[j] == v && !p.tried(r, i, j) {
		n := r.matchAbove(i)
		p.addCopy(i, at+p.above.cost+costs.length(n), n, p.above.code)
		if n >= p.long {
			return
		}
	}
	p.trySingle(r, i, costs, c)
	distances := p.distances
	for k := range distances {
		s := &distances[k]
		if j := i - s.distance; j >= 0 && r.px[j] == v && !p.tried(r, i, j) {
			n := r.match(i, j)
			p.addCopy(i, at+s.cost+costs.length(n), n, s.code)
		}
	}
	p.tryFarCopies(r, i, at, costs)
}

// afterSingle reports whether the token before the pixel i is a single pixel.
func (p *parser) afterSingle(i int) bool { return i > 0 && p.nodes[i].token.length == 0 }

// tried reports whether a copy of the pixels from i on from those from j on is part of a copy
// that has been tried, with the single pixel before i included: the shorter copy is then
// useless.
func (p *parser) tried(r *raster, i, j int) bool {
	return p.afterSingle(i) && j > 0 && r.px[j-1] == r.px[i-1]
}

// trySingle tries the pixel i as a literal or from the cache.
func (p *parser) trySingle(r *raster, i int, costs *costs, c *cache) {
	v := r.px[i]
	t, cost := token{}, costs.pixel(v)
	if c.holds(i) {
		index := cacheIndex(v, c.bits)
		if cached := costs.green[cacheSymbols+index]; cached < cost {
			t, cost = token{cached: true, value: uint32(index)}, cached
		}
	}
	p.update(i+1, p.nodes[i].cost+cost, t)
}

// tryFarCopies tries copies from far away: from the latest runs similar to the one that begins
// at i, unless they have been tried, and to the next one.
func (p *parser) tryFarCopies(r *raster, i int, at cost, costs *costs) {
	const minLength = 4 // pixels; shorter ones are found nearby, or cost too much
	for p.run+1 < len(r.runs) && int(r.runs[p.run+1]) <= i {
		p.run++
	}
	first := p.run
	if p.afterSingle(i) || int(r.runs[first]) != i {
		first++
	}
	best := minLength
	for k := first; k <= p.run+1 && k < len(r.runs); k++ {
		offset := int(r.runs[k]) - i
		earlier := r.alike[k]
		for range p.tries {
			if earlier < 0 {
				break
			}
			from := int(r.runs[earlier]) - offset
			earlier = r.alike[earlier]
			if from < 0 || i-from > maxDistance || r.px[from] != r.px[i] || i+best < len(r.px) && r.px[from+best] != r.px[i+best] {
				continue
			}
			if n := r.match(i, from); n > best {
				best = n
				code := distanceCode(i-from, r.width)
				p.addCopy(i, at+costs.distanceCode(code)+costs.length(n), n, uint32(code))
			}
		}
	}
}

// addCopy adds a copy of n pixels from the node i on; at is the cost of the path with it.
func (p *parser) addCopy(i int, at cost, n int, code uint32) {
	to := i + n
	p.update(to, at, token{length: uint16(n), value: code})
	if n > 1 && (at+minTokenCost < p.aheadCost || at <= p.aheadCost && to > p.aheadAt) {
		p.aheadCost, p.aheadAt = at, to
	}
}

// update sets the path to a node if it is the cheapest known.
func (p *parser) update(to int, at cost, last token) {
	if word, bit := &p.reached[to/64], uint64(1)<<(to%64); *word&bit == 0 || at < p.nodes[to].cost {
		*word |= bit
		p.nodes[to] = node{at, last}
	}
}
