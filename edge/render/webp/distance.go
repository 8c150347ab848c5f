package webp

import (
	"math/bits"
	"slices"
)

// maxDistance is the greatest distance of a copy, in pixels: the last distance symbol allows no
// more.
const maxDistance = 1<<20 - 120

// offset is a neighbour of a pixel: columns to the left of it and rows above it.
type offset struct{ x, y int }

// neighbours lists the offsets that have a distance code of their own, in the order of the
// codes 1 to 120: from the nearest to the farthest (RFC 9649, section 3.6.2.2). Any other
// distance d has the code 120 + d.
var neighbours = func() (all []offset) {
	for y := range 8 {
		for x := -7; x <= 8; x++ {
			if y > 0 || x > 0 {
				all = append(all, offset{x, y})
			}
		}
	}
	slices.SortFunc(all, func(a, b offset) int {
		if farther := a.x*a.x + a.y*a.y - b.x*b.x - b.y*b.y; farther != 0 {
			return farther
		}
		if a.y != b.y {
			return b.y - a.y
		}
		return b.x - a.x
	})
	return all
}()

// codeOf holds the distance code of the neighbour at x, y in [y][x+7].
var codeOf = func() (codes [8][16]uint8) {
	for i, at := range neighbours {
		codes[at.y][at.x+7] = uint8(i + 1)
	}
	return codes
}()

// distanceCode returns the code of a distance, in pixels, in an image of a width.
func distanceCode(distance, width int) int {
	y, x := distance/width, distance%width
	switch {
	case y < 8 && x <= 8 && distance > 0:
		return int(codeOf[y][x+7])
	case y < 7 && x >= width-7:
		return int(codeOf[y+1][x-width+7])
	default:
		return len(neighbours) + distance
	}
}

// prefixOf splits a length or a distance code, which start at 1, into its symbol and extra bits
// (RFC 9649, section 3.6.2.2).
func prefixOf(value int) (symbol int, extra uint, rest uint64) {
	symbol, extra = symbolOf(value)
	return symbol, extra, uint64(value-1) & (1<<extra - 1)
}

// symbolOf returns the symbol of a length or a distance code, and the number of extra bits.
func symbolOf(value int) (symbol int, extra uint) {
	if value < len(symbols) {
		s := symbols[value]
		return int(s.symbol), uint(s.extra)
	}
	return findSymbol(value)
}

// findSymbol is symbolOf without its table.
func findSymbol(value int) (symbol int, extra uint) {
	v := uint(value - 1)
	if v < 2 {
		return int(v), 0
	}
	top := bits.Len(v) - 1
	extra = uint(top - 1)
	return 2*top + int(v>>extra&1), extra
}

// symbols holds what findSymbol returns for small values.
var symbols = func() (all [512]struct{ symbol, extra uint8 }) {
	for value := 1; value < len(all); value++ {
		symbol, extra := findSymbol(value)
		all[value].symbol, all[value].extra = uint8(symbol), uint8(extra)
	}
	return all
}()
