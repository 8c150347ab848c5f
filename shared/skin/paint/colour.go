package paint

// rgba is a colour: red, green, blue and alpha, the highest byte first.
type rgba uint32

// lighten returns the ink made lighter, or darker, by so many percent.
func (c rgba) lighten(percent int) rgba {
	lit := c & 0xff
	for shift := 8; shift < 32; shift += 8 {
		value := int(c>>shift&0xff) * (100 + percent) / 100
		lit |= rgba(min(value, 255)) << shift
	}
	return lit
}

// shift returns the ink with so much more red, green and blue, or less. Nothing
// moves in a transparent ink.
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
