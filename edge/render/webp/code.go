package webp

import (
	"math"
	"math/bits"
	"slices"

	"github.com/veneer-skins/veneer/edge/render/internal/prefix"
)

// code is a prefix code and its description.
type code struct {
	lengths []uint8
	words   []uint16

	used        int // number of symbols that occur
	first, last int // the first and the last of them

	// The description of the lengths, unless the code is simple: the first listed of the
	// tokens, in a code with these lengths.
	tokens             []prefix.Token
	listed             int
	descriptionLengths [prefix.DescriptionSymbols]uint8
}

// simple reports whether the code is written in the short form: one or two symbols below 256.
func (c *code) simple() bool { return c.used <= 2 && c.last < channelSymbols }

// write writes a symbol. A code of one symbol takes no bits.
func (c *code) write(w *prefix.Writer, symbol int) {
	w.Write(uint64(c.words[symbol]), uint(c.lengths[symbol]))
}

// coder builds codes. It is scratch memory.
type coder struct {
	builder            prefix.Builder
	descriptionBuilder prefix.Builder // of the code of descriptions
	lengths            []uint8
	tokens             []prefix.Token
}

// fit sets a code to one for counts. The optimal code may have a long description, and pictures
// are small, so of several codes it takes the one with the lowest total size.
func (c *coder) fit(to *code, counts []uint32) {
	to.used, to.first, to.last = 0, 0, 0
	longest := 0
	for symbol, count := range counts {
		if count > 0 {
			if to.used == 0 {
				to.first = symbol
			}
			to.last = symbol
			to.used++
		}
	}
	n := len(counts)
	to.lengths, to.words = slices.Grow(to.lengths[:0], n)[:n], slices.Grow(to.words[:0], n)[:n]
	clear(to.lengths)
	clear(to.words)
	if to.simple() {
		if to.used == 2 {
			to.lengths[to.first], to.lengths[to.last] = 1, 1
			prefix.Codes(to.words, to.lengths)
		}
		return
	}

	best := uint(math.MaxUint)
	c.lengths = slices.Grow(c.lengths[:0], n)[:n]
	c.builder.Lengths(c.lengths, counts, prefix.MaxLength)
	best = c.keepBetter(to, counts, best)
	for _, length := range c.lengths {
		longest = max(longest, int(length))
	}
	if to.used == 1 {
		clear(to.lengths) // described with one bit, but written with none
		return
	}

	// A lower limit makes more words equally long.
	shortest := bits.Len(uint(to.used - 1))
	if longest > shortest {
		c.builder.Shorten(c.lengths, longest-1)
		best = c.keepBetter(to, counts, best)
	}
	// Equal lengths for the whole span have the shortest description.
	if size := bits.Len(uint(to.last - to.first)); 1<<size <= n {
		clear(c.lengths)
		from := min(to.first, n-1<<size)
		for symbol := from; symbol < from+1<<size; symbol++ {
			c.lengths[symbol] = uint8(size)
		}
		c.keepBetter(to, counts, best)
	}
	prefix.Codes(to.words, to.lengths)
}

// keepBetter copies the lengths to the code if they cost less than best, in bits, and returns
// the lower cost.
func (c *coder) keepBetter(to *code, counts []uint32, best uint) uint {
	c.tokens = prefix.Describe(c.tokens[:0], c.lengths)
	listed, outer, cost := c.describe(c.tokens)
	if to.used > 1 {
		for symbol, count := range counts[to.first : to.last+1] {
			cost += uint(count) * uint(c.lengths[to.first+symbol])
		}
	}
	if cost >= best {
		return best
	}
	copy(to.lengths, c.lengths)
	to.tokens = append(to.tokens[:0], c.tokens...)
	to.listed, to.descriptionLengths = listed, outer
	return cost
}

// describe finds the cheapest description of tokens: how many of them are listed, as zeros at
// the end may be omitted, the lengths of their code, and the cost in bits.
func (c *coder) describe(tokens []prefix.Token) (listed int, outer [prefix.DescriptionSymbols]uint8, cost uint) {
	end := len(tokens)
	for end > 2 && isZeros(tokens[end-1].Symbol) {
		end--
	}
	cost = math.MaxUint
	for count := len(tokens); ; count = end {
		var counts [prefix.DescriptionSymbols]uint32
		for _, t := range tokens[:count] {
			counts[t.Symbol]++
		}
		var lengths [prefix.DescriptionSymbols]uint8
		c.descriptionBuilder.Lengths(lengths[:], counts[:], maxDescriptionWord)
		last, used := descriptionSpan(&lengths)
		bits := 1 + 4 + 3*uint(last+1) + 1
		if count < len(tokens) {
			bits += 3 + listedBits(count)
		}
		for symbol, n := range counts {
			bits += uint(n) * prefix.ExtraBits(uint8(symbol))
			if used > 1 {
				bits += uint(n) * uint(lengths[symbol])
			}
		}
		if bits < cost {
			listed, outer, cost = count, lengths, bits
		}
		if count == end {
			return listed, outer, cost
		}
	}
}

func isZeros(symbol uint8) bool {
	return symbol == 0 || symbol == prefix.Zeros || symbol == prefix.ManyZeros
}

// The code of descriptions: the longest word, and the order of the lengths (RFC 9649, section
// 3.7.2.1.2).
const maxDescriptionWord = 7

var descriptionOrder = [prefix.DescriptionSymbols]uint8{17, 18, 0, 1, 2, 3, 4, 5, 16, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}

// descriptionSpan returns the last index in descriptionOrder that has to be written, at least
// the fourth, and how many symbols have words.
func descriptionSpan(lengths *[prefix.DescriptionSymbols]uint8) (last, used int) {
	last = 3
	for i, symbol := range descriptionOrder {
		if lengths[symbol] > 0 {
			last = max(last, i)
			used++
		}
	}
	return last, used
}

// listedBits returns the number of bits, an even one, in which the count of tokens is written.
func listedBits(count int) uint { return max(2, uint(bits.Len(uint(count-2))+1)&^1) }

// writeDescription writes the description of the code.
func (c *code) writeDescription(w *prefix.Writer) {
	if c.simple() {
		w.Write(1, 1)
		w.Write(uint64(max(c.used, 1)-1), 1)
		if c.first < 2 {
			w.Write(uint64(c.first)<<1, 2)
		} else {
			w.Write(uint64(c.first)<<1|1, 9)
		}
		if c.used == 2 {
			w.Write(uint64(c.last), 8)
		}
		return
	}

	last, used := descriptionSpan(&c.descriptionLengths)
	w.Write(0, 1)
	w.Write(uint64(last+1-4), 4)
	for _, symbol := range descriptionOrder[:last+1] {
		w.Write(uint64(c.descriptionLengths[symbol]), 3)
	}
	if c.listed == len(c.tokens) {
		w.Write(0, 1)
	} else {
		bits := listedBits(c.listed)
		w.Write(uint64(bits-2)/2<<1|1, 4)
		w.Write(uint64(c.listed-2), bits)
	}
	var words [prefix.DescriptionSymbols]uint16
	if used > 1 {
		prefix.Codes(words[:], c.descriptionLengths[:])
	}
	for _, t := range c.tokens[:c.listed] {
		if used > 1 {
			w.Write(uint64(words[t.Symbol]), uint(c.descriptionLengths[t.Symbol]))
		}
		w.Write(uint64(t.Extra), prefix.ExtraBits(t.Symbol))
	}
}
