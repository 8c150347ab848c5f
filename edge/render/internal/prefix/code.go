package prefix

import (
	"math/bits"
	"slices"
)

// MaxLength is the longest code word in either format, in bits.
const MaxLength = 15

// Builder builds codes. It is scratch memory: the zero Builder is ready. It is not safe for
// concurrent use.
type Builder struct {
	leaves   []uint64 // count and symbol, the rarest first
	work     []uint64
	packages [][]uint64
}

// Lengths sets lengths to the lengths of an optimal prefix code for the counts in which no word has
// more than limit bits. Symbols that never occur get 0, a single symbol 1. Lengths and counts
// have the same number of elements, at most 65,536; the counts add up to less than 2⁴⁸. The
// limit must leave room for all symbols that occur.
func (b *Builder) Lengths(lengths []uint8, counts []uint32, limit int) {
	clear(lengths)
	b.leaves = b.leaves[:0]
	for symbol, count := range counts {
		if count > 0 {
			b.leaves = append(b.leaves, uint64(count)<<16|uint64(symbol))
		}
	}
	switch len(b.leaves) {
	case 0:
		return
	case 1, 2:
		for _, leaf := range b.leaves {
			lengths[uint16(leaf)] = 1
		}
		return
	}
	slices.Sort(b.leaves)
	if !b.unlimited(lengths, limit) {
		b.limited(lengths, limit)
	}
}

// Shorten does what Lengths does, for the counts of its last call, with another limit, which
// must be less than the longest word of then. The lengths must be as many.
func (b *Builder) Shorten(lengths []uint8, limit int) {
	b.limited(lengths, limit)
}

// unlimited is Huffman's algorithm on sorted leaves, in place, as Moffat and Katajainen
// describe it ("In-Place Calculation of Minimum-Redundancy Codes", 1995). It reports whether
// all words are within the limit; if not, the lengths are invalid.
func (b *Builder) unlimited(lengths []uint8, limit int) bool {
	n := len(b.leaves)
	a := slices.Grow(b.work[:0], n)[:n]
	b.work = a
	for i, leaf := range b.leaves {
		a[i] = leaf >> 16
	}

	// Join the two lightest, each the next leaf or the next node; a joined node holds its
	// parent from then on.
	leaf, root := 0, 0
	lightest := func(next int) uint64 {
		if leaf >= n || root < next && a[root] < a[leaf] {
			weight := a[root]
			a[root] = uint64(next)
			root++
			return weight
		}
		leaf++
		return a[leaf-1]
	}
	for next := range n - 1 {
		first := lightest(next)
		a[next] = first + lightest(next)
	}

	// Parents become depths, from the root down.
	a[n-2] = 0
	for i := n - 3; i >= 0; i-- {
		a[i] = a[a[i]] + 1
	}

	// Depths of nodes become depths of leaves: the places of a level without a node.
	available, depth := 1, uint64(0)
	node, to := n-2, n-1
	for available > 0 {
		nodes := 0
		for node >= 0 && a[node] == depth {
			nodes++
			node--
		}
		if available > nodes && int(depth) > limit {
			return false
		}
		for range available - nodes {
			lengths[uint16(b.leaves[to])] = uint8(depth)
			to--
		}
		available = 2 * nodes
		depth++
	}
	return true
}

// limited is the package-merge algorithm of Larmore and Hirschberg ("A Fast Algorithm for
// Optimal Length-Limited Huffman Codes", 1990): limit times, the leaves are merged with pairs
// of the level below; the length of a word is the number of levels at which its leaf is taken.
func (b *Builder) limited(lengths []uint8, limit int) {
	const isPackage = 1 << 63
	n := len(b.leaves)
	for len(b.packages) < limit {
		b.packages = append(b.packages, nil)
	}
	weights := b.work[:0] // of the level below, to be paired
	for level := range limit {
		merged := b.packages[level][:0]
		next := weights[:0]
		leaf, pair := 0, 0
		for leaf < n || pair < len(weights)/2 {
			if pair < len(weights)/2 && (leaf >= n || weights[2*pair]+weights[2*pair+1] < b.leaves[leaf]>>16) {
				merged = append(merged, weights[2*pair]+weights[2*pair+1]|isPackage)
				pair++
			} else {
				merged = append(merged, b.leaves[leaf]>>16)
				leaf++
			}
		}
		b.packages[level] = merged
		for _, item := range merged {
			next = append(next, item&^isPackage)
		}
		weights = next
	}
	b.work = weights

	for _, leaf := range b.leaves {
		lengths[uint16(leaf)] = 0
	}
	take := 2*n - 2
	for level := limit - 1; level >= 0; level-- {
		leaves := 0
		for _, item := range b.packages[level][:take] {
			if item&isPackage == 0 {
				lengths[uint16(b.leaves[leaves])]++
				leaves++
			}
		}
		take = 2 * (take - leaves)
	}
}

// Codes sets the words of the canonical code with the given lengths, at most MaxLength, in the
// bit order of Writer: first bit lowest.
func Codes(codes []uint16, lengths []uint8) {
	var next [MaxLength + 2]uint16
	for _, length := range lengths {
		next[length+1]++
	}
	next[1] = 0 // symbols without a word
	for length := 2; length < len(next); length++ {
		next[length] = (next[length] + next[length-1]) << 1
	}
	for symbol, length := range lengths {
		if length > 0 {
			codes[symbol] = bits.Reverse16(next[length]) >> (16 - length)
			next[length]++
		}
	}
}

// The symbols in which both formats describe the lengths of a code: 0 to MaxLength are lengths,
// the others are run-lengths.
const (
	Repeat    = 16 // the last length that was not 0, 3 to 6 times: 2 extra bits
	Zeros     = 17 // 3 to 10 zeros: 3 extra bits
	ManyZeros = 18 // 11 to 138 zeros: 7 extra bits

	DescriptionSymbols = 19
)

// Token is a symbol of the description of a code, and the value of its extra bits.
type Token struct{ Symbol, Extra uint8 }

// ExtraBits returns the number of extra bits of a symbol of a description.
func ExtraBits(symbol uint8) uint {
	switch symbol {
	case Repeat:
		return 2
	case Zeros:
		return 3
	case ManyZeros:
		return 7
	default:
		return 0
	}
}

// Describe appends the shortest list of tokens that describes the lengths. Repeat only ever
// follows the length it repeats, because only that means the same in both formats.
func Describe(tokens []Token, lengths []uint8) []Token {
	for i := 0; i < len(lengths); {
		length := lengths[i]
		run := 1
		for i+run < len(lengths) && lengths[i+run] == length {
			run++
		}
		i += run
		if length > 0 {
			tokens = append(tokens, Token{Symbol: length})
			run--
		}
		for run >= 3 {
			switch {
			case length > 0:
				n := min(run, 6)
				tokens = append(tokens, Token{Repeat, uint8(n - 3)})
				run -= n
			case run <= 10:
				tokens = append(tokens, Token{Zeros, uint8(run - 3)})
				run = 0
			default:
				n := min(run, 138)
				tokens = append(tokens, Token{ManyZeros, uint8(n - 11)})
				run -= n
			}
		}
		for range run {
			tokens = append(tokens, Token{Symbol: length})
		}
	}
	return tokens
}
