package webp

import "slices"

// A picture is divided into square tiles, and each tile is coded with one of two groups of
// prefix codes (RFC 9649, section 3.7.2.2): most of a figure has one alpha, which then costs
// nothing, while its outline has many.
const (
	maxGroups      = 2
	groupBits      = 3       // a tile has sides of 1 << groupBits pixels
	minGroupPixels = 1 << 16 // smaller pictures are not worth the time
)

// entropyGroups says which codes are used where.
type entropyGroups struct {
	count     int
	width     int // of the picture, in pixels
	across    int // of the picture, in tiles
	of        []uint8
	tileCosts [][maxGroups]cost
	tiles     raster
}

// at returns the group of the pixel i.
func (g *entropyGroups) at(i int) int {
	if g.count == 1 {
		return 0
	}
	return int(g.of[g.tile(i)])
}

// tile returns the tile of the pixel i.
func (g *entropyGroups) tile(i int) int {
	y, x := uint(i)/uint(g.width), uint(i)%uint(g.width)
	return int(y>>groupBits*uint(g.across) + x>>groupBits)
}

// image returns the entropy image, which has the group of every tile (RFC 9649, section
// 3.7.2.2).
func (g *entropyGroups) image() *raster {
	g.tiles.reset(g.across, len(g.of)/g.across)
	for i, k := range g.of {
		g.tiles.px[i] = 0xff000000 | uint32(k)<<8
	}
	g.tiles.findRepeats()
	return &g.tiles
}

// split assigns the tiles to groups and counts the symbols of each, unless a single group is
// cheaper.
func (s *stream) split(r *raster, tokens []token, cacheBits uint) {
	g := &s.groups
	whole := s.group[0].counts.cost()
	g.width, g.across = r.width, tilesOf(r.width, groupBits)
	g.of = slices.Grow(g.of[:0], g.across*tilesOf(len(r.same), groupBits))[:g.across*tilesOf(len(r.same), groupBits)]

	// At first, tiles with only the most frequent alpha are one group.
	commonest := uint32(0)
	for alpha, n := range s.group[0].counts.alpha {
		if n > s.group[0].counts.alpha[commonest] {
			commonest = uint32(alpha)
		}
	}
	clear(g.of)
	g.count = maxGroups
	i := 0
	for _, t := range tokens {
		if t.length == 0 && !t.cached && r.px[i]>>24 != commonest {
			g.of[g.tile(i)] = 1
		}
		i += t.pixels()
	}
	s.countGroups(r, tokens, cacheBits)
	s.regroup(r, tokens)
	s.countGroups(r, tokens, cacheBits)

	changes := uint64(0)
	for k := 1; k < len(g.of); k++ {
		if g.of[k] != g.of[k-1] {
			changes++
		}
	}
	const describeCost, changeCost = 60 * perBit, 4 * perBit // estimates
	split := describeCost + changes*changeCost
	for k := range maxGroups {
		split += s.group[k].counts.cost()
	}
	// A decoder takes the number of groups from the highest one that occurs.
	if split >= whole || !slices.Contains(g.of, 1) {
		g.count = 1
		s.group[0].counts.count(r, tokens, cacheBits)
	}
}

// countGroups counts the symbols of each group.
func (s *stream) countGroups(r *raster, tokens []token, cacheBits uint) {
	for k := range maxGroups {
		s.group[k].counts.reset(cacheBits)
	}
	i := 0
	for _, t := range tokens {
		s.group[s.groups.at(i)].counts.add(r, i, t)
		i += t.pixels()
	}
}

// regroup moves every tile to the group in which it is cheaper. Tiles in which no token begins
// get the group of the previous tile.
func (s *stream) regroup(r *raster, tokens []token) {
	g := &s.groups
	for k := range maxGroups {
		s.group[k].costs.learn(&s.group[k].counts)
	}
	g.tileCosts = slices.Grow(g.tileCosts[:0], len(g.of))[:len(g.of)]
	clear(g.tileCosts)
	i := 0
	for _, t := range tokens {
		sum := &g.tileCosts[g.tile(i)]
		for k := range sum {
			sum[k] += s.group[k].costs.token(r, i, t)
		}
		i += t.pixels()
	}
	last := uint8(0)
	for tile, sum := range g.tileCosts {
		switch {
		case sum[0] < sum[1]:
			last = 0
		case sum[1] < sum[0]:
			last = 1
		}
		g.of[tile] = last
	}
}

// tilesOf returns the number of tiles of 1 << bits pixels along a side.
func tilesOf(side int, bits uint) int { return (side + 1<<bits - 1) >> bits }
