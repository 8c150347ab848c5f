package raster

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/veneer-skins/veneer/edge/render/model"
	"github.com/veneer-skins/veneer/shared/skin"
)

// RGBA64 is an alpha-premultiplied colour for blending: red, green, blue and alpha in 16 bits
// each, from the lowest to the highest. With sixteen bits the colour of the faintest texel
// stays exact.
type RGBA64 uint64

// An 8-bit value times to16Bit is the same value in 16 bits.
const (
	to16Bit  = 257
	opaque16 = 255 * to16Bit
)

// alpha returns the alpha, from 0 to opaque16.
func (r RGBA64) alpha() uint64 { return uint64(r >> 48) }

// laneMask selects two of the four values of a colour, red and blue, or green and alpha after a
// shift, with room above each for a product.
const laneMask = 0x0000ffff_0000ffff

// over returns the colour blended over another one.
func (r RGBA64) over(below RGBA64) RGBA64 {
	transparency := opaque16 - r.alpha()
	switch transparency {
	case 0:
		return r
	case opaque16:
		return below
	}
	return r + scaleLanes(below&laneMask, transparency) + scaleLanes(below>>16&laneMask, transparency)<<16
}

// scaleLanes multiplies the two values of a laneMask by share/opaque16, rounded.
func scaleLanes(values RGBA64, share uint64) RGBA64 {
	// With t = product + half, (t + t/2¹⁶)/2¹⁶ is the product over 2¹⁶-1, rounded, as
	// long as that is no more than 2¹⁶.
	t := values*RGBA64(share) + (1<<15 | 1<<47)
	return (t + t>>16&laneMask) >> 16 & laneMask
}

// NRGBA is a colour as pictures store it: red, green, blue and alpha, not premultiplied, from
// the lowest byte to the highest.
type NRGBA uint32

// transparent is the colour of transparent pixels: black with alpha 0.
const transparent NRGBA = 0

// newNRGBA returns a colour from values of any range: red, green and blue, multiplied by the
// alpha, and the alpha. 255 times step is opaque.
func newNRGBA(red, green, blue, alpha, step uint64) NRGBA {
	visible := (alpha + step/2) / step
	if visible == 0 {
		return transparent
	}
	half := alpha / 2
	return NRGBA((red*255+half)/alpha | (green*255+half)/alpha<<8 | (blue*255+half)/alpha<<16 | visible<<24)
}

// nrgba returns the colour as pictures store it.
func (r RGBA64) nrgba() NRGBA {
	red, green, blue := uint64(r)&0xffff, uint64(r>>16)&0xffff, uint64(r>>32)&0xffff
	if r.alpha() != opaque16 {
		return newNRGBA(red, green, blue, r.alpha(), to16Bit)
	}
	const half = to16Bit / 2
	return NRGBA((red+half)/to16Bit | (green+half)/to16Bit<<8 | (blue+half)/to16Bit<<16 | 255<<24)
}

// colour returns the colour of a texel of a sheet under the lights.
func (t texel) colour(sheet skin.Sheet, lights *lights) RGBA64 {
	texel := binary.LittleEndian.Uint32(sheet.Pix[4*t.number():])
	alpha := texel >> 24
	if t.isBase() {
		alpha = 255
	}
	light := lights[t.light()]
	multiplied := func(value uint32) RGBA64 {
		return RGBA64(((value*light+50)/100*alpha*to16Bit + 127) / 255)
	}
	return multiplied(texel&0xff) | multiplied(texel>>8&0xff)<<16 | multiplied(texel>>16&0xff)<<32 | RGBA64(alpha*to16Bit)<<48
}

// lights are what each light leaves of a colour, in percent.
type lights [4]uint32

var (
	modelLights = lights{model.LightAbove: 100, model.LightFront: 90, model.LightAside: 70, model.LightBeneath: 60}
	noLights    = lights{model.LightAbove: 100, model.LightFront: 100, model.LightAside: 100, model.LightBeneath: 100}
)

// Painter is the scratch memory of painting.
type Painter struct {
	palette    palette
	compositor compositor
	texels     []byte // of a sheet without what a view leaves out, and of a worn one
}

// Paint paints the picture of a square sheet, and of a worn one, into pixels: 4 bytes for each pixel
// of the map, and all are written. What is left out is of a model.
func (m *SampleMap) Paint(pixels []byte, sheet, worn skin.Sheet, of skin.Type, omit model.Omissions, scratch *Painter) {
	lights := &modelLights
	if omit&model.OmitLight != 0 {
		lights = &noLights
	}
	if omit&(model.OmitHat|model.OmitLayers) != 0 || len(worn.Pix) > 0 {
		sheet = scratch.combined(sheet, worn, of, omit)
	}
	if m.scanned != nil {
		scratch.compositor.paint(m, pixels, sheet, lights)
	} else {
		scratch.palette.paint(m, pixels, sheet, lights)
	}
}

// combined returns a copy of a sheet in which the layers are transparent that are left out, with the
// texels of a worn sheet behind its own. It is valid until the next call.
func (p *Painter) combined(sheet, worn skin.Sheet, of skin.Type, omit model.Omissions) skin.Sheet {
	p.texels = append(append(p.texels[:0], sheet.Pix...), worn.Pix...)
	sheet.Pix = p.texels
	if omit&(model.OmitHat|model.OmitLayers) == 0 {
		return sheet
	}
	for _, part := range model.Figure(of, model.Stand) {
		if !omit.LeavesOut(part) {
			continue
		}
		for _, face := range model.FacesInOrder(part.Layer, of) {
			face = face.Scaled(sheet.Scale())
			for v := range face.H {
				clear(sheet.Pix[sheet.At(face.X, face.Y+v):][:4*face.W])
			}
		}
	}
	return sheet
}

// ColourSum adds up weighted colours, two values in each word: 16-bit values times weights that
// add up to 2¹⁵ for a whole pixel, or a little more by rounding.
type ColourSum struct{ redBlue, greenAlpha uint64 }

// add adds a colour.
func (s *ColourSum) add(d RGBA64, weight uint64) {
	s.redBlue += uint64(d&laneMask) * weight
	s.greenAlpha += uint64(d>>16&laneMask) * weight
}

// nrgba returns the colour of a pixel that shows the sum.
func (s *ColourSum) nrgba() NRGBA {
	red, green, blue, alpha := s.redBlue&math.MaxUint32, s.greenAlpha&math.MaxUint32, s.redBlue>>32, s.greenAlpha>>32
	const step = to16Bit * fullWeight
	if alpha != 255*step {
		return newNRGBA(red, green, blue, alpha, step)
	}
	const half = step / 2
	return NRGBA((red+half)/step | (green+half)/step<<8 | (blue+half)/step<<16 | 255<<24)
}

// palette is the colours of a map's texel lists: for blending, and as pictures store them.
type palette struct {
	rgba64 []RGBA64
	nrgba  []NRGBA
}

// fill sets the colours of all lists.
func (p *palette) fill(m *SampleMap, sheet skin.Sheet, lights *lights) {
	p.rgba64 = slices.Grow(p.rgba64[:0], len(m.lists))[:len(m.lists)]
	p.nrgba = slices.Grow(p.nrgba[:0], len(m.lists))[:len(m.lists)]
	p.rgba64[0], p.nrgba[0] = 0, transparent
	for i, s := range m.lists[1:] {
		d := s.top.colour(sheet, lights).over(p.rgba64[s.below])
		p.rgba64[i+1], p.nrgba[i+1] = d, d.nrgba()
	}
}

// paint paints the picture of a full map.
func (p *palette) paint(m *SampleMap, pixels []byte, sheet skin.Sheet, lights *lights) {
	p.fill(m, sheet, lights)
	for y := range m.Height {
		row := pixels[4*m.Width*y:][:4*m.Width]
		x := 0
		for _, r := range m.runs[m.rows[y]:m.rows[y+1]] {
			end := 4 * int(r.end)
			switch {
			case r.mixed == 0:
				fill(row[x:end], p.nrgba[r.at])
			case m.crisp:
				binary.LittleEndian.PutUint32(row[x:], uint32(p.outline(m.contributions[r.at:][:r.mixed])))
			default:
				binary.LittleEndian.PutUint32(row[x:], uint32(p.average(m.contributions[r.at:][:r.mixed])))
			}
			x = end
		}
	}
}

// fill sets pixels to one colour.
func fill(pixels []byte, colour NRGBA) {
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
func (p *palette) average(contributions []contribution) NRGBA {
	var s ColourSum
	for _, part := range contributions {
		s.add(p.rgba64[part.list], uint64(part.weight))
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
func (p *palette) outline(contributions []contribution) NRGBA {
	var covered uint32
	var alpha uint64
	var maxAlpha NRGBA
	for _, part := range contributions {
		if a := p.rgba64[part.list].alpha(); a > 0 {
			covered += part.weight
			alpha += a * uint64(part.weight)
			maxAlpha = max(maxAlpha, p.nrgba[part.list]>>24)
		}
	}
	if covered > fullWeight-minGap {
		return p.nrgba[contributions[0].list]
	}
	const step = outlineStep * to16Bit * fullWeight
	visible := min(NRGBA((alpha+step/2)/step*outlineStep), maxAlpha)
	if visible == 0 {
		return transparent
	}
	return p.dominant(contributions) | visible<<24
}

// dominant returns the colour, without alpha, with the greatest share by weight and alpha.
func (p *palette) dominant(contributions []contribution) NRGBA {
	var dominant NRGBA
	var most uint64
	for i, part := range contributions {
		colour := p.nrgba[part.list] & 0xffffff
		var amount uint64
		for _, other := range contributions[i:] {
			if p.nrgba[other.list]&0xffffff == colour {
				amount += p.rgba64[other.list].alpha() * uint64(other.weight)
			}
		}
		if amount > most {
			most, dominant = amount, colour
		}
	}
	return dominant
}
