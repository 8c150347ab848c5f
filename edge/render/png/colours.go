package png

import (
	"bytes"
	"encoding/binary"
)

// maxPalette is how many colours a palette can have.
const maxPalette = 256

// form is how pixels are represented.
type form uint8

const (
	byPalette form = iota // indices of a palette in order of first appearance
	byColour              // colours
)

// costlyPalette is the number of colours from which on a palette may take more bytes than it
// saves.
const costlyPalette = 65

// colours are the distinct colours of a picture, up to maxPalette: first those that are not
// opaque, because tRNS lists alpha only up to the last of them.
type colours struct {
	list        []uint32 // alpha in the highest byte, red in the lowest
	translucent int      // number of colours that are not opaque
	runs        int      // runs of one colour, in rows that differ from the one above
	opaque      bool     // all pixels are
	overflow    bool     // more than fit in a palette

	buckets [4 * maxPalette]bucket
}

// bucket is a place in a hash table with open addressing. An index of 0 means empty.
type bucket struct {
	colour uint32
	index  uint16 // in the list, plus one
}

// find returns the bucket of a colour, or the empty one for it.
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
				return // nothing else can change
			}
		}
	}
	for i, colour := range c.list {
		c.find(colour).index = uint16(i + 1) // add may have moved them
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

// ascending reports whether most runs bring a new colour. The index is then often the previous
// one plus one, in this row as in the one above, so there are few distinct differences.
func (c *colours) ascending() bool { return 3*len(c.list) > 2*c.runs }

// depth returns the bits per index.
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
