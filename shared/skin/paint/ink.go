package paint

// ink is a colour: red, green, blue and alpha, the highest byte first.
type ink uint32

// lit returns the ink made lighter, or darker, by so many percent.
func (i ink) lit(percent int) ink {
	lit := i & 0xff
	for shift := 8; shift < 32; shift += 8 {
		value := int(i>>shift&0xff) * (100 + percent) / 100
		lit |= ink(min(value, 255)) << shift
	}
	return lit
}

// moved returns the ink with so much more red, green and blue, or less. Nothing
// moves in a transparent ink.
func (i ink) moved(red, green, blue int) ink {
	alpha := i & 0xff
	if alpha == 0 {
		return i
	}
	moved := alpha
	for at, by := range []int{blue, green, red} {
		shift := 8 * (at + 1)
		value := int(i>>shift&0xff) + by
		moved |= ink(min(max(value, 0), 255)) << shift
	}
	return moved
}
