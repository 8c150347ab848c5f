package png

import (
	"bytes"
	"encoding/binary"
)

// maxPalette is how many colours a palette can have.
const maxPalette = 256

// form is how pixels are told.
type form uint8

const (
	byPalette form = iota // by a palette in the order in which colours appear
	byColour              // by what they are
)

// costlyPalette is how many colours a palette has that may take more room than it
// saves.
const costlyPalette = 65

// colours are the colours of a picture, as long as they fit in a palette: those
// that are not opaque first, as only they have alpha told.
type colours struct {
	list        []uint32 // alpha the highest byte, red the lowest
	translucent int      // so many of them are not opaque
	runs        int      // of one colour, in rows that are not like the one above
	opaque      bool     // the whole picture is
	overflow    bool     // more than fit in a palette

	buckets [4 * maxPalette]bucket
}

// bucket is a place in a table with open addresses. index is 0 where it is empty.
type bucket struct {
	colour uint32
	index  uint16 // in the list, plus one
}

// find returns the slot of a colour: the one it is in, or the empty one where it
// belongs.
func (c *colours) find(colour uint32) *bucket {
	for at := colour * 0x9e3779b1 >> 22; ; at++ {
		if s := &c.buckets[at%uint32(len(c.buckets))]; s.colour == colour || s.index == 0 {
			return s
		}
	}
}

// count finds the colours of a picture.
func (c *colours) count(pix []byte, stride int) {
	c.list, c.translucent, c.runs, c.opaque, c.overflow = c.list[:0], 0, 0, true, false
	clear(c.buckets[:])
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
			c.runs++
			c.opaque = c.opaque && isOpaque(colour)
			if c.overflow = c.overflow || !c.add(colour); c.overflow && !c.opaque {
				return // there is nothing left to find out
			}
		}
	}
	for i, colour := range c.list {
		c.find(colour).index = uint16(i + 1) // those before it may have come later
	}
}

// add adds a colour, and reports whether there is room for it.
func (c *colours) add(colour uint32) bool {
	s := c.find(colour)
	if s.index > 0 {
		return true
	}
	if len(c.list) == maxPalette {
		return false
	}
	at := len(c.list)
	s.colour, s.index = colour, uint16(at+1)
	c.list = append(c.list, colour)
	if !isOpaque(colour) {
		copy(c.list[c.translucent+1:], c.list[c.translucent:at])
		c.list[c.translucent] = colour
		c.translucent++
	}
	return true
}

func isOpaque(colour uint32) bool { return colour>>24 == 0xff }

// ascending reports whether most runs bring a new colour. The index is then often the
// last one plus one, in this row as in the one above, and differences are few.
func (c *colours) ascending() bool { return 3*len(c.list) > 2*c.runs }

// depth returns how many bits tell one of the colours from the others.
func (c *colours) depth() uint8 {
	switch n := len(c.list); {
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
