package webp

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/veneer-skins/veneer/edge/render/internal/prefix"
	"github.com/veneer-skins/veneer/shared/testenv"
	"github.com/veneer-skins/veneer/shared/testenv/cmptest"
)

// A described code reads what was written with it, whatever symbols occur; a single symbol
// takes no bits.
func TestCodesAreDescribed(t *testing.T) {
	t.Parallel()
	var m coder
	var c code
	f := func(n int, occurring ...int) {
		t.Helper()
		counts := make([]uint32, n)
		for i, symbol := range occurring {
			counts[symbol] = uint32(1 + 3*i*i)
		}
		m.fit(&c, counts)
		var w prefix.Writer
		c.writeDescription(&w)
		for _, symbol := range occurring {
			c.write(&w, symbol)
		}
		const after = 0xa5
		w.Write(after, 8)

		r := bitReader{bytes: w.Bytes()}
		described := r.code(n)
		for _, symbol := range occurring {
			testenv.Equal(t, r.symbol(described), symbol, "of %d symbols, %v occurring: one is read as", n, occurring)
		}
		testenv.Equal(t, r.read(8), after, "of %d symbols, %v occurring: after them is read", n, occurring)
	}

	const large = cacheSymbols + 1<<maxCacheBits
	f(large)
	for _, n := range []int{distanceSymbols, channelSymbols, cacheSymbols, large} {
		for symbol := range n {
			f(n, symbol)
		}
		for _, other := range []int{1, n / 2, n - 1} {
			f(n, 0, other)
		}
		random := rand.New(rand.NewPCG(uint64(n), 5))
		for used := 2; used <= n; used += 1 + used/3 {
			f(n, random.Perm(n)[:used]...)
		}
	}

	m.fit(&c, slices.Concat(make([]uint32, channelSymbols), []uint32{7}))
	cmptest.Same(t, c.lengths, make([]uint8, channelSymbols+1), "a single symbol has a word")
}

// bitReader reads codes by RFC 9649, section 3.7.2.1.
type bitReader struct {
	bytes []byte
	at    int // in bits
}

func (r *bitReader) read(bits int) (value int) {
	for i := range bits {
		value |= int(r.bytes[r.at/8]>>(r.at%8)&1) << i
		r.at++
	}
	return value
}

// symbol reads a symbol of the canonical code with words of the given lengths.
func (r *bitReader) symbol(lengths []uint8) int {
	used, last := 0, 0
	for symbol, length := range lengths {
		if length > 0 {
			used++
			last = symbol
		}
	}
	if used < 2 {
		return last
	}
	word, next := 0, 0 // the first word of a length
	for length := uint8(1); length <= prefix.MaxLength; length++ {
		word, next = word<<1|r.read(1), next<<1
		for symbol, l := range lengths {
			if l != length {
				continue
			}
			if next == word {
				return symbol
			}
			next++
		}
	}
	return -1
}

// code reads the lengths of the words of n symbols.
func (r *bitReader) code(n int) []uint8 {
	lengths := make([]uint8, n)
	if r.read(1) == 1 {
		two := r.read(1)
		first := r.read(1 + 7*r.read(1))
		lengths[first] = 1
		if two == 1 {
			lengths[r.read(8)] = 1
		}
		return lengths
	}
	outer := make([]uint8, prefix.DescriptionSymbols)
	for _, symbol := range descriptionOrder[:4+r.read(4)] {
		outer[symbol] = uint8(r.read(3))
	}
	listed := n
	if r.read(1) == 1 {
		bits := 2 + 2*r.read(3)
		listed = 2 + r.read(bits)
	}
	last := uint8(8)
	for i := 0; i < n && listed > 0; listed-- {
		switch symbol := r.symbol(outer); symbol {
		case 16:
			for range 3 + r.read(2) {
				lengths[i] = last
				i++
			}
		case 17:
			i += 3 + r.read(3)
		case 18:
			i += 11 + r.read(7)
		default:
			if lengths[i] = uint8(symbol); symbol > 0 {
				last = uint8(symbol)
			}
			i++
		}
	}
	return lengths
}
