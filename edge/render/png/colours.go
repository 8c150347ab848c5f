package png

import (
	"bytes"
	"encoding/binary"
	"slices"
)

// maxPalette is how many colours a palette can have.
const maxPalette = 256

// form is how pixels are told.
type form uint8

const (
	byAppearance form = iota // by a palette in the order in which colours appear
	byLook                   // by a palette in the order of how colours look
	directly                 // by what they are
)

// dearPalette is how many colours a palette has that may take more room than it
// saves, or gain by another order.
const dearPalette = 65

// Which forms may turn out best for few colours, more, and too many.
var (
	formsOfFew  = []form{byAppearance}
	formsOfMore = []form{byAppearance, byLook, directly}
	formsOfMany = []form{directly}
)

// forms returns the forms that may turn out best.
func (c *colours) forms() []form {
	switch {
	case c.many:
		return formsOfMany
	case len(c.appearance) >= dearPalette:
		return formsOfMore
	default:
		return formsOfFew
	}
}

// colours are the colours of a picture, as long as they fit in a palette: those
// that are not opaque first, as only they have alpha told.
type colours struct {
	appearance  []uint32 // alpha the highest byte, red the lowest
	list        []uint32 // the same, as arranged
	translucent int      // so many of them are not opaque
	opaque      bool     // the whole picture is
	many        bool     // more than fit in a palette

	slots [4 * maxPalette]slot
}

// slot is a place in a table with open addresses. index is 0 where it is empty.
type slot struct {
	colour uint32
	index  uint16 // in the list, plus one
}

// find returns the slot of a colour: the one it is in, or the empty one where it
// belongs.
func (c *colours) find(colour uint32) *slot {
	for at := colour * 0x9e3779b1 >> 22; ; at++ {
		if s := &c.slots[at%uint32(len(c.slots))]; s.colour == colour || s.index == 0 {
			return s
		}
	}
}

// count finds the colours of a picture.
func (c *colours) count(pix []byte, stride int) {
	c.appearance, c.translucent, c.opaque, c.many = c.appearance[:0], 0, true, false
	clear(c.slots[:])
	var before []byte
	last := ^binary.LittleEndian.Uint32(pix)
	for at := 0; at < len(pix); at += stride {
		row := pix[at : at+stride]
		if bytes.Equal(row, before) {
			continue
		}
		before = row
		for x := 0; x < stride; x += 4 {
			colour := binary.LittleEndian.Uint32(row[x:])
			if colour == last {
				continue
			}
			last = colour
			c.opaque = c.opaque && isOpaque(colour)
			if c.many = c.many || !c.add(colour); c.many && !c.opaque {
				return // there is nothing left to find out
			}
		}
	}
}

// add adds a colour, and reports whether there is room for it.
func (c *colours) add(colour uint32) bool {
	s := c.find(colour)
	if s.index > 0 {
		return true
	}
	if len(c.appearance) == maxPalette {
		return false
	}
	at := len(c.appearance)
	s.colour, s.index = colour, uint16(at+1)
	c.appearance = append(c.appearance, colour)
	if !isOpaque(colour) {
		copy(c.appearance[c.translucent+1:], c.appearance[c.translucent:at])
		c.appearance[c.translucent] = colour
		c.translucent++
	}
	return true
}

func isOpaque(colour uint32) bool { return colour>>24 == 0xff }

// arrange lists the colours as a form has them.
func (c *colours) arrange(f form) {
	c.list = append(c.list[:0], c.appearance...)
	if f == byLook {
		slices.Sort(c.list[:c.translucent])
		slices.Sort(c.list[c.translucent:])
	}
	for i, colour := range c.list {
		c.find(colour).index = uint16(i + 1)
	}
}

// depth returns how many bits tell one of the colours from the others.
func (c *colours) depth() uint8 {
	switch n := len(c.appearance); {
	case n <= 2:
		return 1
	case n <= 4:
		return 2
	case n <= 16:
		return 4
	default:
		return 8
	}
}

// appendRGB appends the list without alpha.
func (c *colours) appendRGB(dst []byte) []byte {
	for _, colour := range c.list {
		dst = append(dst, byte(colour), byte(colour>>8), byte(colour>>16))
	}
	return dst
}

// appendAlpha appends the alpha of the colours that are not opaque.
func (c *colours) appendAlpha(dst []byte) []byte {
	for _, colour := range c.list[:c.translucent] {
		dst = append(dst, byte(colour>>24))
	}
	return dst
}
