package png

// The alphabets of DEFLATE (RFC 1951, section 3.2.5).
const (
	endOfBlock    = 256
	firstLength   = 257
	lengthSymbols = 29
	literals      = firstLength + lengthSymbols
	distances     = 30

	minMatch, maxMatch = 3, 258
	maxDistance        = 1 << 15
)

// symbols says how lengths and distances are coded.
var symbols = newSymbolTables()

// symbolTables has the symbols of lengths and of distances, and of each symbol the first value
// and the number of extra bits.
type symbolTables struct {
	length        [maxMatch + 1]uint8 // less firstLength
	lengthBase    [lengthSymbols]uint16
	lengthExtra   [lengthSymbols]uint8
	near, far     [256]uint8 // of a distance less one: up to 255; in units of 128
	distanceBase  [distances]uint16
	distanceExtra [distances]uint8
}

func newSymbolTables() *symbolTables {
	t := new(symbolTables)
	length := minMatch
	for s := range lengthSymbols - 1 {
		t.lengthBase[s] = uint16(length)
		t.lengthExtra[s] = uint8(max(s/4-1, 0))
		for range 1 << t.lengthExtra[s] {
			t.length[length] = uint8(s)
			length++
		}
	}
	// The longest has a symbol of its own, although the previous one could express it.
	t.length[maxMatch] = lengthSymbols - 1
	t.lengthBase[lengthSymbols-1] = maxMatch

	distance := 0
	for s := range distances {
		t.distanceBase[s] = uint16(distance + 1)
		t.distanceExtra[s] = uint8(max(s/2-1, 0))
		for range 1 << t.distanceExtra[s] {
			if distance < len(t.near) {
				t.near[distance] = uint8(s)
			}
			t.far[distance>>7] = uint8(s)
			distance++
		}
	}
	return t
}

// distance returns the symbol of a distance.
func (t *symbolTables) distance(distance int) uint8 {
	if distance <= len(t.near) {
		return t.near[distance-1]
	}
	return t.far[(distance-1)>>7]
}

// fixedLiteral returns the bits of a literal or length in a block of fixed codes. A distance
// takes fixedDistance.
func fixedLiteral(symbol int) uint8 {
	switch {
	case symbol < 144:
		return 8
	case symbol < endOfBlock:
		return 9
	case symbol < 280:
		return 7
	default:
		return 8
	}
}

const fixedDistance = 5
