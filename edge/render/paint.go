package render

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/veneer-skins/veneer/shared/skin"
)

// rgba64 is an alpha-premultiplied colour for blending: red, green, blue and alpha in 16 bits
// each, from the lowest to the highest. With sixteen bits the colour of the faintest texel
// stays exact.
type rgba64 uint64

// An 8-bit value times to16Bit is the same value in 16 bits.
const (
	to16Bit  = 257
	opaque16 = 255 * to16Bit
)

// alpha returns the alpha, from 0 to opaque16.
func (d rgba64) alpha() uint64 { return uint64(d >> 48) }

// laneMask selects two of the four values of a colour, red and blue, or green and alpha after a
// shift, with room above each for a product.
const laneMask = 0x0000ffff_0000ffff

// over returns the colour blended over another one.
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

// scaleLanes multiplies the two values of a laneMask by share/opaque16, rounded.
func scaleLanes(values rgba64, share uint64) rgba64 {
	// With t = product + half, (t + t/2¹⁶)/2¹⁶ is the product over 2¹⁶-1, rounded, as
	// long as that is no more than 2¹⁶.
	t := values*rgba64(share) + (1<<15 | 1<<47)
	return (t + t>>16&laneMask) >> 16 & laneMask
}

// nrgba is a colour as pictures store it: red, green, blue and alpha, not premultiplied, from
// the lowest byte to the highest.
type nrgba uint32

// transparent is the colour of transparent pixels: black with alpha 0.
const transparent nrgba = 0

// newNRGBA returns a colour from values of any range: red, green and blue, multiplied by the
// alpha, and the alpha, of which 255 times step are opaque.
func newNRGBA(red, green, blue, alpha, step uint64) nrgba {
	visible := (alpha + step/2) / step
	if visible == 0 {
		return transparent
	}
	half := alpha / 2
	return nrgba((red*255+half)/alpha | (green*255+half)/alpha<<8 | (blue*255+half)/alpha<<16 | visible<<24)
}

// nrgba returns the colour as pictures store it.
func (d rgba64) nrgba() nrgba {
	red, green, blue := uint64(d)&0xffff, uint64(d>>16)&0xffff, uint64(d>>32)&0xffff
	if d.alpha() != opaque16 {
		return newNRGBA(red, green, blue, d.alpha(), to16Bit)
	}
	const half = to16Bit / 2
	return nrgba((red+half)/to16Bit | (green+half)/to16Bit<<8 | (blue+half)/to16Bit<<16 | 255<<24)
}

// colour returns the colour of a texel of a sheet under the lights.
func (t texel) colour(sheet skin.Sheet, lights *lights) rgba64 {
	texel := binary.LittleEndian.Uint32(sheet.Pix[4*t.number():])
	alpha := texel >> 24
	if t.isBase() {
		alpha = 255
	}
	light := lights[t.light()]
	multiplied := func(value uint32) rgba64 {
		return rgba64(((value*light+50)/100*alpha*to16Bit + 127) / 255)
	}
	return multiplied(texel&0xff) | multiplied(texel>>8&0xff)<<16 | multiplied(texel>>16&0xff)<<32 | rgba64(alpha*to16Bit)<<48
}

// painter is the scratch memory of painting.
type painter struct {
	palette    palette
	compositor compositor
	texels     []byte // of a sheet without what a view leaves out, and of a worn one
}

// paint paints the picture of a square sheet, and of a worn one, into pixels: 4 bytes for each pixel
// of the map, all of which are written. Of the view it needs only what that leaves out.
func (m *sampleMap) paint(pixels []byte, sheet, worn skin.Sheet, view View, scratch *painter) {
	lights := &modelLights
	if view.Omit&OmitLight != 0 {
		lights = &noLights
	}
	if view.Omit&(OmitHat|OmitLayers) != 0 || len(worn.Pix) > 0 {
		sheet = scratch.combined(sheet, worn, view)
	}
	if m.scanned != nil {
		scratch.compositor.paint(m, pixels, sheet, lights)
	} else {
		scratch.palette.paint(m, pixels, sheet, lights)
	}
}

// combined returns a copy of a sheet in which the layers are transparent that the view leaves out, with
// the texels of a worn sheet behind its own. It is valid until the next call.
func (s *painter) combined(sheet, worn skin.Sheet, view View) skin.Sheet {
	s.texels = append(append(s.texels[:0], sheet.Pix...), worn.Pix...)
	sheet.Pix = s.texels
	if view.Omit&(OmitHat|OmitLayers) == 0 {
		return sheet
	}
	for _, part := range figure(view.Type, Stand) {
		if !view.Omit.leavesOut(part) {
			continue
		}
		for _, face := range facesInOrder(part.layer, view.Type) {
			face = face.Scaled(sheet.Scale())
			for v := range face.H {
				clear(sheet.Pix[sheet.At(face.X, face.Y+v):][:4*face.W])
			}
		}
	}
	return sheet
}

// colourSum adds up weighted colours, two values in each word: 16-bit values times weights that
// add up to 2¹⁵ for a whole pixel, or a little more by rounding.
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

// palette is the colours of a map's texel lists: for blending, and as pictures store them.
type palette struct {
	rgba64 []rgba64
	nrgba  []nrgba
}

// fill sets the colours of all lists.
func (c *palette) fill(p *sampleMap, sheet skin.Sheet, lights *lights) {
	c.rgba64 = slices.Grow(c.rgba64[:0], len(p.lists))[:len(p.lists)]
	c.nrgba = slices.Grow(c.nrgba[:0], len(p.lists))[:len(p.lists)]
	c.rgba64[0], c.nrgba[0] = 0, transparent
	for i, s := range p.lists[1:] {
		d := s.top.colour(sheet, lights).over(c.rgba64[s.below])
		c.rgba64[i+1], c.nrgba[i+1] = d, d.nrgba()
	}
}

// paint paints the picture of a full map.
func (c *palette) paint(p *sampleMap, pixels []byte, sheet skin.Sheet, lights *lights) {
	c.fill(p, sheet, lights)
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

// fill sets pixels to one colour.
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

// average returns the colour of a mixed pixel of a smooth picture: the average by weight and
// alpha.
func (c *palette) average(contributions []contribution) nrgba {
	var s colourSum
	for _, p := range contributions {
		s.add(c.rgba64[p.list], uint64(p.weight))
	}
	return s.nrgba()
}

// outlineStep is the step between the alphas of mixed pixels at the outline of a crisp picture:
// 0, 15, … 255. Eighteen steps look like 256 there, and save up to a quarter of the file of a
// picture of few colours.
const outlineStep = 15

// minGap is the weight from which on a gap changes an alpha of eight bits.
const minGap = fullWeight / 512

// outline returns the colour of a mixed pixel of a crisp picture. Without a gap the pixel lies
// inside the outline and shows what is at its centre. Otherwise its alpha is the average, in
// steps and never above the greatest alpha in the pixel, and its colour is the one with the
// greatest share, so that the outline adds no colours to the picture.
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

// dominant returns the colour, without alpha, with the greatest share by weight and alpha.
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
