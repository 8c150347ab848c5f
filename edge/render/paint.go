package render

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/veneer-skins/veneer/shared/skin"
)

// rgba64 is a colour as it is mixed: red, green, blue and alpha in 16 bits each, from
// the lowest to the highest, the colours multiplied by the alpha. Sixteen bits keep
// the faintest texel's colour exact.
type rgba64 uint64

// A deep value is to16Bit times one of eight bits.
const (
	to16Bit  = 257
	opaque16 = 255 * to16Bit
)

// alpha returns how opaque the colour is, from 0 to opaque16.
func (d rgba64) alpha() uint64 { return uint64(d >> 48) }

// laneMask is two of the four values of a colour, so far apart that each can be
// multiplied: red and blue, or green and alpha.
const laneMask = 0x0000ffff_0000ffff

// over returns the colour laid over another one.
func (d rgba64) over(below rgba64) rgba64 {
	transparency := opaque16 - d.alpha()
	switch transparency {
	case 0:
		return d
	case opaque16:
		return below
	}
	return d + scaleLanes(below&laneMask, transparency) + scaleLanes(below>>16&laneMask, transparency)<<16
}

// scaleLanes multiplies a pair of values by a share of opaque16, and rounds.
func scaleLanes(values rgba64, share uint64) rgba64 {
	// With t = product + half, (t + t/2¹⁶)/2¹⁶ is the product over 2¹⁶-1, rounded, as
	// long as that is no more than 2¹⁶.
	t := values*rgba64(share) + (1<<15 | 1<<47)
	return (t + t>>16&laneMask) >> 16 & laneMask
}

// nrgba is a colour as it stands in a picture: red, green, blue and alpha, not
// multiplied, from the lowest byte to the highest.
type nrgba uint32

// transparent is the colour of transparent pixels.
const transparent nrgba = 0

// newNRGBA returns the colour of which these are a multiple: red, green and blue,
// multiplied by the alpha, and the alpha, of which 255 steps are opaque.
func newNRGBA(red, green, blue, alpha, step uint64) nrgba {
	visible := (alpha + step/2) / step
	if visible == 0 {
		return transparent
	}
	half := alpha / 2
	return nrgba((red*255+half)/alpha | (green*255+half)/alpha<<8 | (blue*255+half)/alpha<<16 | visible<<24)
}

// nrgba returns the colour as it stands in a picture.
func (d rgba64) nrgba() nrgba {
	red, green, blue := uint64(d)&0xffff, uint64(d>>16)&0xffff, uint64(d>>32)&0xffff
	if d.alpha() != opaque16 {
		return newNRGBA(red, green, blue, d.alpha(), to16Bit)
	}
	const half = to16Bit / 2
	return nrgba((red+half)/to16Bit | (green+half)/to16Bit<<8 | (blue+half)/to16Bit<<16 | 255<<24)
}

// colour returns the colour of a texel of a sheet under its light.
func (t texel) colour(sheet skin.Sheet) rgba64 {
	texel := binary.LittleEndian.Uint32(sheet.Pix[4*t.number():])
	alpha := texel >> 24
	if t.isBase() {
		alpha = 255
	}
	light := brightness[t.light()]
	multiplied := func(value uint32) rgba64 {
		return rgba64(((value*light+50)/100*alpha*to16Bit + 127) / 255)
	}
	return multiplied(texel&0xff) | multiplied(texel>>8&0xff)<<16 | multiplied(texel>>16&0xff)<<32 | rgba64(alpha*to16Bit)<<48
}

// painter is the memory that painting uses for a while.
type painter struct {
	palette    palette
	compositor compositor
}

// paint paints the picture of a sheet, which is as high as wide, into pixels: 4
// bytes for each of the plan, all of which are written.
func (p *sampleMap) paint(pixels []byte, sheet skin.Sheet, scratch *painter) {
	if p.scanned != nil {
		scratch.compositor.paint(p, pixels, sheet)
	} else {
		scratch.palette.paint(p, pixels, sheet)
	}
}

// colourSum is colours times weights, in the halves of words: values of 16 bits times
// weights of which a whole pixel has 2¹⁵, and rounding a little more.
type colourSum struct{ redBlue, greenAlpha uint64 }

// add adds a colour.
func (s *colourSum) add(d rgba64, weight uint64) {
	s.redBlue += uint64(d&laneMask) * weight
	s.greenAlpha += uint64(d>>16&laneMask) * weight
}

// nrgba returns the colour of a pixel that shows the sum.
func (s *colourSum) nrgba() nrgba {
	red, green, blue, alpha := s.redBlue&math.MaxUint32, s.greenAlpha&math.MaxUint32, s.redBlue>>32, s.greenAlpha>>32
	const step = to16Bit * fullWeight
	if alpha != 255*step {
		return newNRGBA(red, green, blue, alpha, step)
	}
	const half = step / 2
	return nrgba((red+half)/step | (green+half)/step<<8 | (blue+half)/step<<16 | 255<<24)
}

// palette is the colours of a plan's stacks: as they are mixed, and as they are
// shown.
type palette struct {
	rgba64 []rgba64
	nrgba  []nrgba
}

// fill works out the colours.
func (c *palette) fill(p *sampleMap, sheet skin.Sheet) {
	c.rgba64 = slices.Grow(c.rgba64[:0], len(p.lists))[:len(p.lists)]
	c.nrgba = slices.Grow(c.nrgba[:0], len(p.lists))[:len(p.lists)]
	c.rgba64[0], c.nrgba[0] = 0, transparent
	for i, s := range p.lists[1:] {
		d := s.top.colour(sheet).over(c.rgba64[s.below])
		c.rgba64[i+1], c.nrgba[i+1] = d, d.nrgba()
	}
}

// paint paints a picture of a full plan.
func (c *palette) paint(p *sampleMap, pixels []byte, sheet skin.Sheet) {
	c.fill(p, sheet)
	for y := range p.height {
		row := pixels[4*p.width*y:][:4*p.width]
		x := 0
		for _, r := range p.runs[p.rows[y]:p.rows[y+1]] {
			end := 4 * int(r.end)
			switch {
			case r.mixed == 0:
				fill(row[x:end], c.nrgba[r.at])
			case p.crisp:
				binary.LittleEndian.PutUint32(row[x:], uint32(c.outline(p.contributions[r.at:][:r.mixed])))
			default:
				binary.LittleEndian.PutUint32(row[x:], uint32(c.average(p.contributions[r.at:][:r.mixed])))
			}
			x = end
		}
	}
}

// fill gives pixels one colour.
func fill(pixels []byte, colour nrgba) {
	if colour == transparent {
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
func (c *palette) average(contributions []contribution) nrgba {
	var s colourSum
	for _, p := range contributions {
		s.add(c.rgba64[p.list], uint64(p.weight))
	}
	return s.nrgba()
}

// outlineStep is the step between the alphas of mixed pixels at the outline of a
// crisp picture: 0, 15, … 255. No eye tells eighteen from 256 there, and they save up
// to a quarter of the file of a picture of few colours.
const outlineStep = 15

// minGap is the weight of a gap that would not change an alpha of eight bits.
const minGap = fullWeight / 512

// outline returns the colour of a pixel of a crisp picture that may lie at the
// outline. If something is seen everywhere it is inside, and shows what is at its
// middle; else it is about as opaque as all that is seen on average, never more than
// all of it is, and its colour is the one of which most is seen, so that the outline
// brings no colours that the inside has not.
func (c *palette) outline(contributions []contribution) nrgba {
	var covered uint32
	var alpha uint64
	var maxAlpha nrgba
	for _, p := range contributions {
		if a := c.rgba64[p.list].alpha(); a > 0 {
			covered += p.weight
			alpha += a * uint64(p.weight)
			maxAlpha = max(maxAlpha, c.nrgba[p.list]>>24)
		}
	}
	if covered > fullWeight-minGap {
		return c.nrgba[contributions[0].list]
	}
	const step = outlineStep * to16Bit * fullWeight
	visible := min(nrgba((alpha+step/2)/step*outlineStep), maxAlpha)
	if visible == 0 {
		return transparent
	}
	return c.dominant(contributions) | visible<<24
}

// dominant returns the colour, whatever its alpha, of which the parts show most by
// weight and alpha.
func (c *palette) dominant(contributions []contribution) nrgba {
	var dominant nrgba
	var most uint64
	for i, p := range contributions {
		colour := c.nrgba[p.list] & 0xffffff
		var amount uint64
		for _, q := range contributions[i:] {
			if c.nrgba[q.list]&0xffffff == colour {
				amount += c.rgba64[q.list].alpha() * uint64(q.weight)
			}
		}
		if amount > most {
			most, dominant = amount, colour
		}
	}
	return dominant
}
