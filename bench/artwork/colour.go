package main

// rgba is a colour: red, green, blue and alpha, in big-endian order.
type rgba uint32

// lighten returns the colour lightened, or darkened, by a percentage.
func (c rgba) lighten(percent int) rgba {
	lit := c & 0xff
	for shift := 8; shift < 32; shift += 8 {
		value := int(c>>shift&0xff) * (100 + percent) / 100
		lit |= rgba(min(value, 255)) << shift
	}
	return lit
}

// shift adds to red, green and blue, and clamps them. A transparent colour is returned
// unchanged.
func (c rgba) shift(red, green, blue int) rgba {
	alpha := c & 0xff
	if alpha == 0 {
		return c
	}
	moved := alpha
	for at, by := range []int{blue, green, red} {
		shift := 8 * (at + 1)
		value := int(c>>shift&0xff) + by
		moved |= rgba(min(max(value, 0), 255)) << shift
	}
	return moved
}
