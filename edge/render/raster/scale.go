package raster

import (
	"encoding/binary"
	"math"

	"github.com/veneer-skins/veneer/edge/render/model"
	"github.com/veneer-skins/veneer/shared/skin"
)

// DrawFace copies the texels of a face of the base to a place on other texels, with the texels of its
// layer blended over them if it is layered. They are opaque, as the base is.
func DrawFace(to skin.Sheet, x, y int, sheet skin.Sheet, base, layer skin.Rect, isLayered bool) {
	for v := range base.H {
		texels := to.Pix[to.At(x, y+v):][:4*base.W]
		copy(texels, sheet.Pix[sheet.At(base.X, base.Y+v):])
		over := sheet.Pix[sheet.At(layer.X, layer.Y+v):][:4*base.W]
		for i := 0; i < len(texels); i += 4 {
			if isLayered {
				blended := BlendOver([4]byte(texels[i:]), over[i:])
				copy(texels[i:], blended[:])
			}
			texels[i+3] = 255
		}
	}
}

// BlendOver returns a texel of the base, which is opaque, with a texel of a layer over it.
func BlendOver(base [4]byte, layer []byte) [4]byte {
	alpha := int(layer[3])
	for c := range 3 {
		base[c] = byte((int(layer[c])*alpha + int(base[c])*(255-alpha) + 127) / 255)
	}
	base[3] = 255
	return base
}

// DrawScaled scales a part of a sheet, of at most the scale skin.MaxScale, into a rectangle of
// the picture. Every pixel is the average of the area it covers (a box filter), weighted by
// alpha: transparent texels have no colour. Where texels are a whole number of pixels wide and
// high, they become squares of one colour.
func (p Picture) DrawScaled(sheet skin.Sheet, part skin.Rect, left, top, width, height int) {
	columns := make([]ColourSum, model.SideWidth*skin.MaxScale)[:part.W] // nothing is wider than a side
	down := resampler{length: height}
	for y := top; y < top+height; y++ {
		row := p.Row(left, y, width)
		if down.sameTexel(part.H) {
			down.advance(part.H)
			copy(row, p.Row(left, y-1, width))
			continue
		}
		clear(columns)
		for rest := part.H; rest > 0; {
			v, weight := down.advance(rest)
			rest -= weight
			texels := sheet.Pix[sheet.At(part.X, part.Y+v):][:4*part.W]
			for u := range columns {
				columns[u].AddTexel(texels[4*u:], uint64(weight))
			}
		}
		scaleRow(row, columns, uint64(part.W*part.H))
	}
}

// scaleRow scales columns to a row of pixels. In each pixel the colour sums have the given
// weight.
func scaleRow(row []byte, columns []ColourSum, weight uint64) {
	if weight > math.MaxUint32/(255*255) {
		scaleLargeRow(row, columns, weight)
		return
	}
	across := resampler{length: len(row) / 4}
	var colour NRGBA
	for i := 0; i < len(row); i += 4 {
		if across.sameTexel(len(columns)) {
			across.advance(len(columns))
		} else {
			var s ColourSum
			for rest := len(columns); rest > 0; {
				u, part := across.advance(rest)
				rest -= part
				s.redBlue += columns[u].redBlue * uint64(part)
				s.greenAlpha += columns[u].greenAlpha * uint64(part)
			}
			colour = s.Average(weight)
		}
		binary.LittleEndian.PutUint32(row[i:], uint32(colour))
	}
}

// scaleLargeRow is scaleRow for weights with which the values of a ColourSum would overflow: sides of sheets
// from scale 12 on.
func scaleLargeRow(row []byte, columns []ColourSum, weight uint64) {
	across := resampler{length: len(row) / 4}
	for i := 0; i < len(row); i += 4 {
		var red, green, blue, alpha uint64
		for rest := len(columns); rest > 0; {
			u, part := across.advance(rest)
			rest -= part
			share := uint64(part)
			red += columns[u].redBlue & math.MaxUint32 * share
			blue += columns[u].redBlue >> 32 * share
			green += columns[u].greenAlpha & math.MaxUint32 * share
			alpha += columns[u].greenAlpha >> 32 * share
		}
		binary.LittleEndian.PutUint32(row[i:], uint32(newNRGBA(red, green, blue, alpha, 255*weight)))
	}
}

// AddTexel adds the colour of a texel, multiplied by its alpha, and 255 times the alpha.
func (s *ColourSum) AddTexel(texel []byte, weight uint64) {
	alpha := uint64(texel[3]) * weight
	s.redBlue += alpha * (uint64(texel[0]) | uint64(texel[2])<<32)
	s.greenAlpha += alpha * (uint64(texel[1]) | 255<<32)
}

// Average returns the average of texels that were added with weights of that sum.
func (s *ColourSum) Average(weight uint64) NRGBA {
	return newNRGBA(s.redBlue&math.MaxUint32, s.greenAlpha&math.MaxUint32, s.redBlue>>32, s.greenAlpha>>32, 255*weight)
}

// resampler steps through texels that are scaled to pixels, along one axis. Lengths are
// integers in a unit in which a texel is as long as there are pixels, and a pixel as long as
// there are texels.
type resampler struct {
	length int // of a texel
	texel  int // current
	used   int // how much of the current texel is behind
}

// sameTexel reports whether the next pixel lies in the same texel as all of the one before it.
func (r *resampler) sameTexel(pixel int) bool { return r.used >= pixel && r.used+pixel <= r.length }

// advance moves on by at most a length, not beyond the texel, and returns that texel and the
// length moved.
func (r *resampler) advance(most int) (texel, taken int) {
	texel, taken = r.texel, min(most, r.length-r.used)
	r.used += taken
	if r.used == r.length {
		r.texel++
		r.used = 0
	}
	return texel, taken
}
