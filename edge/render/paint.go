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

// over returns the colour laid over another one.
func (d deep) over(below deep) deep {
	through := deepOpaque - d.alpha()
	for shift := 0; shift < 64; shift += 16 {
		value := uint64(below>>shift) & 0xffff
		d += deep((value*through+deepOpaque/2)/deepOpaque) << shift
	}
	return d
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

// palette is the colours of a plan's stacks: as they are mixed, and in a crisp
// plan, where most are not, also as they are shown.
type palette struct {
	deep  []deep
	shown []shown
}

// fill works out the colours, the texels being those of a sheet that is as high as
// wide.
func (c *palette) fill(p *plan, sheet skin.Sheet) {
	c.deep = slices.Grow(c.deep[:0], len(p.stacks))[:len(p.stacks)]
	c.deep[0] = 0
	for i, s := range p.stacks[1:] {
		c.deep[i+1] = s.colour(sheet.Pix, c.deep)
	}
	if p.crisp {
		c.shown = slices.Grow(c.shown[:0], len(p.stacks))[:len(p.stacks)]
		for i, d := range c.deep {
			c.shown[i] = d.shown()
		}
	}
}

// colour returns the colour of the stack, those of lower number being known.
func (s stack) colour(texels []byte, known []deep) deep {
	texel := binary.LittleEndian.Uint32(texels[4*s.top.number():])
	alpha := texel >> 24
	if s.top.isBase() {
		alpha = 255
	}
	if alpha == 0 {
		return known[s.below]
	}

	light := brightness[s.top.light()]
	red := (texel&0xff*light + 50) / 100
	green := (texel>>8&0xff*light + 50) / 100
	blue := (texel>>16&0xff*light + 50) / 100
	if alpha == 255 {
		return deep(red)*deepStep | deep(green)*deepStep<<16 | deep(blue)*deepStep<<32 | deepOpaque<<48
	}
	multiplied := func(value uint32) deep { return deep((value*alpha*deepStep + 127) / 255) }
	over := multiplied(red) | multiplied(green)<<16 | multiplied(blue)<<32 | deep(alpha*deepStep)<<48
	return over.over(known[s.below])
}

// paint paints the picture of a sheet, which is as high as wide, into pixels: 4
// bytes for each of the plan, all of which are written. The palette is scratch.
func (p *plan) paint(pixels []byte, sheet skin.Sheet, colours *palette) {
	colours.fill(p, sheet)
	for y := range p.height {
		row := pixels[4*p.width*y:][:4*p.width]
		x := 0
		for _, r := range p.runs[p.rows[y]:p.rows[y+1]] {
			end := 4 * int(r.end)
			switch {
			case r.mixed == 0 && p.crisp:
				fill(row[x:end], colours.shown[r.at])
			case r.mixed == 0:
				fill(row[x:end], colours.deep[r.at].shown())
			case p.crisp:
				binary.LittleEndian.PutUint32(row[x:], uint32(colours.outline(p.parts[r.at:][:r.mixed])))
			default:
				binary.LittleEndian.PutUint32(row[x:], uint32(colours.average(p.parts[r.at:][:r.mixed])))
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
	// Sums of two values each, in the halves of a word: weights of 16 bits times
	// values of 16 bits fit.
	const halves = 0x0000ffff_0000ffff
	var redBlue, greenAlpha uint64
	for _, p := range parts {
		d := uint64(c.deep[p.stack])
		redBlue += d & halves * uint64(p.weight)
		greenAlpha += d >> 16 & halves * uint64(p.weight)
	}
	red, green, blue, alpha := redBlue&math.MaxUint32, greenAlpha&math.MaxUint32, redBlue>>32, greenAlpha>>32
	const step = deepStep * whole
	if alpha != 255*step {
		return newShown(red, green, blue, alpha, step)
	}
	const half = step / 2
	return shown((red+half)/step | (green+half)/step<<8 | (blue+half)/step<<16 | 255<<24)
}

// outlineStep is the step between the alphas of mixed pixels at the outline of a
// crisp picture: 0, 17, … 255. No eye tells sixteen from 256 there, and they save up
// to a quarter of the file of a picture of few colours.
const outlineStep = 17

// outline returns the colour of a pixel of a crisp picture that may lie at the
// outline. If something is seen everywhere it is inside, and shows what is at its
// middle; else it is about as opaque as all that is seen on average, and its colour
// is the one of which most is seen, so that the outline brings no colours that the
// inside has not.
func (c *palette) outline(parts []part) shown {
	var seen uint32
	var alpha uint64
	for _, p := range parts {
		if a := c.deep[p.stack].alpha(); a > 0 {
			seen += p.weight
			alpha += a * uint64(p.weight)
		}
	}
	if seen == whole {
		return c.shown[parts[0].stack]
	}
	const step = outlineStep * deepStep * whole
	visible := (alpha + step/2) / step * outlineStep
	if visible == 0 {
		return nothing
	}
	return c.dominant(parts)&0xffffff | shown(visible<<24)
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
