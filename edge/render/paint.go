package render

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/veneer-skins/veneer/shared/skin"
)

// deep is a colour as it is mixed: red, green, blue and alpha in 16 bits each, from
// the lowest to the highest, the colours multiplied by the alpha. Sixteen bits keep
// the faintest texel's colour exact.
type deep uint64

// A deep value is deepStep times one of eight bits.
const (
	deepStep   = 257
	deepOpaque = 255 * deepStep
)

// alpha returns how opaque the colour is, from 0 to deepOpaque.
func (d deep) alpha() uint64 { return uint64(d >> 48) }

// pair is two of the four values of a colour, so far apart that each can be
// multiplied: red and blue, or green and alpha.
const pair = 0x0000ffff_0000ffff

// over returns the colour laid over another one.
func (d deep) over(below deep) deep {
	through := deepOpaque - d.alpha()
	switch through {
	case 0:
		return d
	case deepOpaque:
		return below
	}
	return d + faded(below&pair, through) + faded(below>>16&pair, through)<<16
}

// faded multiplies a pair of values by a share of deepOpaque, and rounds.
func faded(values deep, share uint64) deep {
	// With t = product + half, (t + t/2¹⁶)/2¹⁶ is the product over 2¹⁶-1, rounded, as
	// long as that is no more than 2¹⁶.
	t := values*deep(share) + (1<<15 | 1<<47)
	return (t + t>>16&pair) >> 16 & pair
}

// shown is a colour as it stands in a picture: red, green, blue and alpha, not
// multiplied, from the lowest byte to the highest.
type shown uint32

// nothing is the colour of transparent pixels.
const nothing shown = 0

// newShown returns the colour of which these are a multiple: red, green and blue,
// multiplied by the alpha, and the alpha, of which 255 steps are opaque.
func newShown(red, green, blue, alpha, step uint64) shown {
	visible := (alpha + step/2) / step
	if visible == 0 {
		return nothing
	}
	half := alpha / 2
	return shown((red*255+half)/alpha | (green*255+half)/alpha<<8 | (blue*255+half)/alpha<<16 | visible<<24)
}

// shown returns the colour as it stands in a picture.
func (d deep) shown() shown {
	red, green, blue := uint64(d)&0xffff, uint64(d>>16)&0xffff, uint64(d>>32)&0xffff
	if d.alpha() != deepOpaque {
		return newShown(red, green, blue, d.alpha(), deepStep)
	}
	const half = deepStep / 2
	return shown((red+half)/deepStep | (green+half)/deepStep<<8 | (blue+half)/deepStep<<16 | 255<<24)
}

// colour returns the colour of a texel of a sheet under its light.
func (t texel) colour(sheet skin.Sheet) deep {
	texel := binary.LittleEndian.Uint32(sheet.Pix[4*t.number():])
	alpha := texel >> 24
	if t.isBase() {
		alpha = 255
	}
	light := brightness[t.light()]
	multiplied := func(value uint32) deep {
		return deep(((value*light+50)/100*alpha*deepStep + 127) / 255)
	}
	return multiplied(texel&0xff) | multiplied(texel>>8&0xff)<<16 | multiplied(texel>>16&0xff)<<32 | deep(alpha*deepStep)<<48
}

// brush is the memory that painting uses for a while.
type brush struct {
	palette palette
	mixer   mixer
}

// paint paints the picture of a sheet, which is as high as wide, into pixels: 4
// bytes for each of the plan, all of which are written.
func (p *plan) paint(pixels []byte, sheet skin.Sheet, with *brush) {
	if p.sketch != nil {
		with.mixer.paint(p, pixels, sheet)
	} else {
		with.palette.paint(p, pixels, sheet)
	}
}

// sum is colours times weights, in the halves of words: values of 16 bits times
// weights of which a whole pixel has 2¹⁵, and rounding a little more.
type sum struct{ redBlue, greenAlpha uint64 }

// add adds a colour.
func (s *sum) add(d deep, weight uint64) {
	s.redBlue += uint64(d&pair) * weight
	s.greenAlpha += uint64(d>>16&pair) * weight
}

// shown returns the colour of a pixel that shows the sum.
func (s *sum) shown() shown {
	red, green, blue, alpha := s.redBlue&math.MaxUint32, s.greenAlpha&math.MaxUint32, s.redBlue>>32, s.greenAlpha>>32
	const step = deepStep * whole
	if alpha != 255*step {
		return newShown(red, green, blue, alpha, step)
	}
	const half = step / 2
	return shown((red+half)/step | (green+half)/step<<8 | (blue+half)/step<<16 | 255<<24)
}

// palette is the colours of a plan's stacks: as they are mixed, and as they are
// shown.
type palette struct {
	deep  []deep
	shown []shown
}

// fill works out the colours.
func (c *palette) fill(p *plan, sheet skin.Sheet) {
	c.deep = slices.Grow(c.deep[:0], len(p.stacks))[:len(p.stacks)]
	c.shown = slices.Grow(c.shown[:0], len(p.stacks))[:len(p.stacks)]
	c.deep[0], c.shown[0] = 0, nothing
	for i, s := range p.stacks[1:] {
		d := s.top.colour(sheet).over(c.deep[s.below])
		c.deep[i+1], c.shown[i+1] = d, d.shown()
	}
}

// paint paints a picture of a full plan.
func (c *palette) paint(p *plan, pixels []byte, sheet skin.Sheet) {
	c.fill(p, sheet)
	for y := range p.height {
		row := pixels[4*p.width*y:][:4*p.width]
		x := 0
		for _, r := range p.runs[p.rows[y]:p.rows[y+1]] {
			end := 4 * int(r.end)
			switch {
			case r.mixed == 0:
				fill(row[x:end], c.shown[r.at])
			case p.crisp:
				binary.LittleEndian.PutUint32(row[x:], uint32(c.outline(p.parts[r.at:][:r.mixed])))
			default:
				binary.LittleEndian.PutUint32(row[x:], uint32(c.average(p.parts[r.at:][:r.mixed])))
			}
			x = end
		}
	}
}

// fill gives pixels one colour.
func fill(pixels []byte, colour shown) {
	if colour == nothing {
		clear(pixels)
		return
	}
	twice := uint64(colour)<<32 | uint64(colour)
	for len(pixels) >= 8 {
		binary.LittleEndian.PutUint64(pixels, twice)
		pixels = pixels[8:]
	}
	if len(pixels) > 0 {
		binary.LittleEndian.PutUint32(pixels, uint32(colour))
	}
}

// average returns the colour of a smooth pixel: each stack counts by its share and
// its alpha.
func (c *palette) average(parts []part) shown {
	var s sum
	for _, p := range parts {
		s.add(c.deep[p.stack], uint64(p.weight))
	}
	return s.shown()
}

// outlineStep is the step between the alphas of mixed pixels at the outline of a
// crisp picture: 0, 15, … 255. No eye tells eighteen from 256 there, and they save up
// to a quarter of the file of a picture of few colours.
const outlineStep = 15

// noGap is the weight of a gap that would not change an alpha of eight bits.
const noGap = whole / 512

// outline returns the colour of a pixel of a crisp picture that may lie at the
// outline. If something is seen everywhere it is inside, and shows what is at its
// middle; else it is about as opaque as all that is seen on average, never more than
// all of it is, and its colour is the one of which most is seen, so that the outline
// brings no colours that the inside has not.
func (c *palette) outline(parts []part) shown {
	var seen uint32
	var alpha uint64
	var densest shown
	for _, p := range parts {
		if a := c.deep[p.stack].alpha(); a > 0 {
			seen += p.weight
			alpha += a * uint64(p.weight)
			densest = max(densest, c.shown[p.stack]>>24)
		}
	}
	if seen > whole-noGap {
		return c.shown[parts[0].stack]
	}
	const step = outlineStep * deepStep * whole
	visible := min(shown((alpha+step/2)/step*outlineStep), densest)
	if visible == 0 {
		return nothing
	}
	return c.dominant(parts) | visible<<24
}

// dominant returns the colour, whatever its alpha, of which the parts show most by
// weight and alpha.
func (c *palette) dominant(parts []part) shown {
	var dominant shown
	var most uint64
	for i, p := range parts {
		colour := c.shown[p.stack] & 0xffffff
		var amount uint64
		for _, q := range parts[i:] {
			if c.shown[q.stack]&0xffffff == colour {
				amount += c.deep[q.stack].alpha() * uint64(q.weight)
			}
		}
		if amount > most {
			most, dominant = amount, colour
		}
	}
	return dominant
}
