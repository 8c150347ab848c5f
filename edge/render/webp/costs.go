package webp

import (
	"math"
	"math/bits"
	"slices"
)

// The sizes of the alphabets of the five codes: green, lengths and the colour cache share one;
// red, blue, alpha and distances have one each.
const (
	channelSymbols  = 256
	lengthSymbols   = 24
	cacheSymbols    = channelSymbols + lengthSymbols // first symbol of the cache
	distanceSymbols = 40
)

// histogram is the frequencies of symbols.
type histogram struct {
	green            []uint32 // with lengths and cache
	red, blue, alpha [channelSymbols]uint32
	distance         [distanceSymbols]uint32
	extra            uint64 // extra bits after symbols
}

// reset clears all counts and makes room for a cache of 1 << cacheBits colours.
func (h *histogram) reset(cacheBits uint) {
	n := cacheSymbols + cacheSize(cacheBits)
	h.green = slices.Grow(h.green[:0], n)[:n]
	clear(h.green)
	clear(h.red[:])
	clear(h.blue[:])
	clear(h.alpha[:])
	clear(h.distance[:])
	h.extra = 0
}

// each calls f with the counts of each code, in the order of the codes in the file.
func (h *histogram) each(f func(i int, counts []uint32)) {
	for i, counts := range [...][]uint32{h.green, h.red[:], h.blue[:], h.alpha[:], h.distance[:]} {
		f(i, counts)
	}
}

// count counts the symbols of the tokens of an image.
func (h *histogram) count(r *raster, tokens []token, cacheBits uint) {
	h.reset(cacheBits)
	i := 0
	for _, t := range tokens {
		h.add(r, i, t)
		i += t.pixels()
	}
}

// add counts the symbols of a token that begins at the pixel i.
func (h *histogram) add(r *raster, i int, t token) {
	switch {
	case t.length > 0:
		symbol, extra := symbolOf(int(t.length))
		h.green[channelSymbols+symbol]++
		h.extra += uint64(extra)
		symbol, extra = symbolOf(int(t.value))
		h.distance[symbol]++
		h.extra += uint64(extra)
	case t.cached:
		h.green[cacheSymbols+int(t.value)]++
	default:
		v := r.px[i]
		h.green[v>>8&255]++
		h.red[v>>16&255]++
		h.blue[v&255]++
		h.alpha[v>>24]++
	}
}

// cost returns about what the symbols and the descriptions of their codes cost. It cannot
// overflow, because whole ways of encoding are compared by it.
func (h *histogram) cost() uint64 {
	// Measured on pictures of skins.
	const (
		perCode   = 40 * perBit
		perSymbol = 2*perBit + perBit/5
		perGap    = 6 * perBit // run of unused symbols
	)
	sum := h.extra * perBit
	h.each(func(_ int, counts []uint32) {
		total, used, gaps, saved, last := uint32(0), uint64(0), uint64(0), uint64(0), uint32(0)
		for _, n := range counts {
			if n > 0 {
				total += n
				used++
				saved += uint64(n) * uint64(log2(n))
			} else if last > 0 {
				gaps++
			}
			last = n
		}
		if used > 1 {
			all := uint64(total)
			sum += max(all*uint64(log2(total))-saved, all*perBit) // no word is shorter than a bit
		}
		if used > 2 {
			sum += perCode + used*perSymbol + gaps*perGap
		}
	})
	return sum
}

// cost is a size in sixteenths of a bit. On a path through noise of more than about eight
// million pixels it overflows: the file is then correct, but larger than necessary.
type cost = uint32

const perBit = 16

// costs is the cost of each symbol.
type costs struct {
	green            []cost
	red, blue, alpha [channelSymbols]cost
	distance         [distanceSymbols]cost
}

// learn sets the costs to the information content of the symbols counted.
func (c *costs) learn(h *histogram) {
	c.green = slices.Grow(c.green[:0], len(h.green))[:len(h.green)]
	h.each(func(i int, counts []uint32) {
		costs := [...][]cost{c.green, c.red[:], c.blue[:], c.alpha[:], c.distance[:]}[i]
		total := uint32(0)
		for _, n := range counts {
			total += n
		}
		whole := log2(total)
		for symbol, n := range counts {
			switch n {
			case total:
				costs[symbol] = 0
			case 0:
				costs[symbol] = whole + 2*perBit // a further symbol would lengthen the others' words
			default:
				costs[symbol] = max(whole-log2(n), perBit) // no word is shorter than a bit
			}
		}
	})
}

// pixel returns the cost of a literal pixel.
func (c *costs) pixel(v uint32) cost {
	return c.green[v>>8&255] + c.red[v>>16&255] + c.blue[v&255] + c.alpha[v>>24]
}

// token returns the cost of a token that begins at the pixel i.
func (c *costs) token(r *raster, i int, t token) cost {
	switch {
	case t.length > 0:
		return c.length(int(t.length)) + c.distanceCode(int(t.value))
	case t.cached:
		return c.green[cacheSymbols+int(t.value)]
	default:
		return c.pixel(r.px[i])
	}
}

// length returns the cost of the length of a copy.
func (c *costs) length(n int) cost {
	symbol, extra := symbolOf(n)
	return c.green[channelSymbols+symbol] + cost(extra)*perBit
}

// distanceCode returns the cost of a distance code.
func (c *costs) distanceCode(code int) cost {
	symbol, extra := symbolOf(code)
	return c.distance[symbol] + cost(extra)*perBit
}

// log2 returns the binary logarithm as a cost, and 0 for 0.
func log2(n uint32) cost {
	if n < uint32(len(logs)) {
		return cost(logs[n])
	}
	shift := bits.Len32(n) - bits.Len(uint(len(logs)-1))
	return cost(logs[n>>shift]) + cost(shift)*perBit
}

var logs = func() (all [1024]uint16) {
	for n := 1; n < len(all); n++ {
		all[n] = uint16(math.Round(float64(perBit) * math.Log2(float64(n))))
	}
	return all
}()
