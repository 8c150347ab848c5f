package png

import "github.com/veneer-skins/veneer/edge/render/internal/prefix"

// The longest code words.
const (
	longestWord            = 15
	longestDescriptionWord = 7
)

// fixedLiterals is the number of symbols of the fixed literal code; the last two are unused.
const fixedLiterals = literals + 2

// codes are the prefix codes of a block.
type codes struct {
	builder prefix.Builder
	fixed   bool // the fixed codes, which need no description

	literals, distances int // number of symbols in the description
	literalLengths      [fixedLiterals]uint8
	literalWords        [fixedLiterals]uint16
	distanceLengths     [distances]uint8
	distanceWords       [distances]uint16

	described    int // number of code lengths of the description's own code
	lengths      [literals + distances]uint8
	tokens       []prefix.Token
	tokenLengths [prefix.DescriptionSymbols]uint8
	tokenWords   [prefix.DescriptionSymbols]uint16
}

// descriptionOrder is the order of the lengths of the description's own code.
var descriptionOrder = [prefix.DescriptionSymbols]uint8{16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15}

// make builds the codes for counts, and returns the size of the block in bits.
func (c *codes) make(counts *counts) int {
	c.builder.Lengths(c.literalLengths[:literals], counts.literals[:], longestWord)
	c.builder.Lengths(c.distanceLengths[:], counts.distances[:], longestWord)
	c.literals, c.distances = literals, distances
	for c.literals > firstLength && c.literalLengths[c.literals-1] == 0 {
		c.literals--
	}
	for c.distances > 1 && c.distanceLengths[c.distances-1] == 0 {
		c.distances--
	}
	size := 3 + c.describe()
	fixed := 3
	extra := 0
	for s, n := range counts.literals {
		if s >= firstLength {
			extra += int(n) * int(symbols.lengthExtra[s-firstLength])
		}
		size += int(n) * int(c.literalLengths[s])
		fixed += int(n) * int(fixedLiteral(s))
	}
	for s, n := range counts.distances {
		extra += int(n) * int(symbols.distanceExtra[s])
		size += int(n) * int(c.distanceLengths[s])
		fixed += int(n) * fixedDistance
	}
	c.fixed = fixed <= size
	return min(size, fixed) + extra
}

// describe builds the description of the codes, and returns its size in bits.
func (c *codes) describe() int {
	n := copy(c.lengths[:], c.literalLengths[:c.literals])
	n += copy(c.lengths[n:], c.distanceLengths[:c.distances])
	c.tokens = prefix.Describe(c.tokens[:0], c.lengths[:n])
	var counts [prefix.DescriptionSymbols]uint32
	size := 14
	for _, t := range c.tokens {
		counts[t.Symbol]++
		size += int(prefix.ExtraBits(t.Symbol))
	}
	c.builder.Lengths(c.tokenLengths[:], counts[:], longestDescriptionWord)
	for s, n := range counts {
		size += int(n) * int(c.tokenLengths[s])
	}
	c.described = len(descriptionOrder)
	for c.described > 4 && c.tokenLengths[descriptionOrder[c.described-1]] == 0 {
		c.described--
	}
	return size + 3*c.described
}

// write writes the header of a block.
func (c *codes) write(w *prefix.Writer, last bool) {
	final := uint64(0)
	if last {
		final = 1
	}
	if c.fixed {
		w.Write(final|1<<1, 3)
		for s := range c.literalLengths {
			c.literalLengths[s] = fixedLiteral(s)
		}
		for s := range c.distanceLengths {
			c.distanceLengths[s] = fixedDistance
		}
		prefix.Codes(c.literalWords[:], c.literalLengths[:])
		prefix.Codes(c.distanceWords[:], c.distanceLengths[:])
		return
	}
	w.Write(final|2<<1, 3)
	w.Write(uint64(c.literals-firstLength)|uint64(c.distances-1)<<5|uint64(c.described-4)<<10, 14)
	for _, s := range descriptionOrder[:c.described] {
		w.Write(uint64(c.tokenLengths[s]), 3)
	}
	prefix.Codes(c.tokenWords[:], c.tokenLengths[:])
	for _, t := range c.tokens {
		w.Write(uint64(c.tokenWords[t.Symbol]), uint(c.tokenLengths[t.Symbol]))
		w.Write(uint64(t.Extra), prefix.ExtraBits(t.Symbol))
	}
	prefix.Codes(c.literalWords[:literals], c.literalLengths[:literals])
	prefix.Codes(c.distanceWords[:], c.distanceLengths[:])
}

// writeSteps writes the literals and matches of a block that cover bytes, and ends the block.
func (c *codes) writeSteps(w *prefix.Writer, bytes []byte, steps []match) {
	at := 0
	for _, m := range steps {
		if m == literal {
			b := bytes[at]
			w.Write(uint64(c.literalWords[b]), uint(c.literalLengths[b]))
			at++
			continue
		}
		l, d := symbols.length[m.length()], m.symbol()
		value := uint64(c.literalWords[firstLength+int(l)])
		n := uint(c.literalLengths[firstLength+int(l)])
		value |= uint64(m.length()-int(symbols.lengthBase[l])) << n
		n += uint(symbols.lengthExtra[l])
		value |= uint64(c.distanceWords[d]) << n
		n += uint(c.distanceLengths[d])
		value |= uint64(m.distance()-int(symbols.distanceBase[d])) << n
		n += uint(symbols.distanceExtra[d])
		w.Write(value, n)
		at += m.length()
	}
	w.Write(uint64(c.literalWords[endOfBlock]), uint(c.literalLengths[endOfBlock]))
}
