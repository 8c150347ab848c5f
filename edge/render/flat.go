package render

import (
	"encoding/binary"
	"math"

	"github.com/veneer-skins/veneer/shared/skin"
)

// drawFlat draws the face of a skin with its hat.
func drawFlat(sheet skin.Sheet, view View, pixels []byte) Picture {
	picture := newPicture(view.Size, view.Size, pixels)
	front, hat := skin.Faces(skin.Head, view.Type).Front, skin.Faces(skin.Hat, view.Type).Front
	k := sheet.Scale()
	face := skin.NewSheet(front.W*k, front.H*k)
	drawFace(face, 0, 0, sheet, front.Scaled(k), hat.Scaled(k), view.Omit&OmitHat == 0)
	picture.drawScaled(face, skin.Rect{W: face.Width, H: face.Height}, 0, 0, picture.Width, picture.Height)
	return picture
}

// drawFace copies the texels of a face of the base to a place on other texels, with those of its
// layer blended over them if it is layered. They are opaque, as the base is.
func drawFace(to skin.Sheet, x, y int, sheet skin.Sheet, base, layer skin.Rect, isLayered bool) {
	for v := range base.H {
		texels := to.Pix[to.At(x, y+v):][:4*base.W]
		copy(texels, sheet.Pix[sheet.At(base.X, base.Y+v):])
		over := sheet.Pix[sheet.At(layer.X, layer.Y+v):][:4*base.W]
		for i := 0; i < len(texels); i += 4 {
			if isLayered {
				blended := blendOver([4]byte(texels[i:]), over[i:])
				copy(texels[i:], blended[:])
			}
			texels[i+3] = 255
		}
	}
}

// blendOver returns a texel of the base, which is opaque, with a texel of a layer over it.
func blendOver(base [4]byte, layer []byte) [4]byte {
	alpha := int(layer[3])
	for c := range 3 {
		base[c] = byte((int(layer[c])*alpha + int(base[c])*(255-alpha) + 127) / 255)
	}
	base[3] = 255
	return base
}

// drawScaled scales a part of a sheet, of at most the scale skin.MaxScale, into a rectangle of
// the picture. Every pixel is the average of the area it covers (a box filter), weighted by
// alpha: transparent texels have no colour. Where texels are a whole number of pixels wide and
// high, they become squares of one colour.
func (p Picture) drawScaled(sheet skin.Sheet, part skin.Rect, left, top, width, height int) {
	columns := make([]colourSum, sideWidth*skin.MaxScale)[:part.W] // nothing is wider than a side
	down := resampler{length: height}
	for y := top; y < top+height; y++ {
		row := p.row(left, y, width)
		if down.sameTexel(part.H) {
			down.advance(part.H)
			copy(row, p.row(left, y-1, width))
			continue
		}
		clear(columns)
		for rest := part.H; rest > 0; {
			v, weight := down.advance(rest)
			rest -= weight
			texels := sheet.Pix[sheet.At(part.X, part.Y+v):][:4*part.W]
			for u := range columns {
				columns[u].addTexel(texels[4*u:], uint64(weight))
			}
		}
		scaleRow(row, columns, uint64(part.W*part.H))
	}
}

// row returns the bytes of width pixels.
func (p Picture) row(left, y, width int) []byte {
	return p.Pix[4*(y*p.Width+left):][:4*width]
}

// scaleRow scales columns to a row of pixels, in each of which the colour sums have the given
// weight.
func scaleRow(row []byte, columns []colourSum, weight uint64) {
	if weight > math.MaxUint32/(255*255) {
		scaleLargeRow(row, columns, weight)
		return
	}
	across := resampler{length: len(row) / 4}
	var colour nrgba
	for i := 0; i < len(row); i += 4 {
		if across.sameTexel(len(columns)) {
			across.advance(len(columns))
		} else {
			var s colourSum
			for rest := len(columns); rest > 0; {
				u, part := across.advance(rest)
				rest -= part
				s.redBlue += columns[u].redBlue * uint64(part)
				s.greenAlpha += columns[u].greenAlpha * uint64(part)
			}
			colour = s.average(weight)
		}
		binary.LittleEndian.PutUint32(row[i:], uint32(colour))
	}
}

// scaleLargeRow is scaleRow for weights with which the values of a colourSum would overflow: those of sides
// of sheets from scale 12 on.
func scaleLargeRow(row []byte, columns []colourSum, weight uint64) {
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

// addTexel adds the colour of a texel, multiplied by its alpha, and 255 times the alpha.
func (s *colourSum) addTexel(texel []byte, weight uint64) {
	alpha := uint64(texel[3]) * weight
	s.redBlue += alpha * (uint64(texel[0]) | uint64(texel[2])<<32)
	s.greenAlpha += alpha * (uint64(texel[1]) | 255<<32)
}

// average returns the average of texels that were added with weights of that sum.
func (s *colourSum) average(weight uint64) nrgba {
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
func (c *resampler) sameTexel(pixel int) bool { return c.used >= pixel && c.used+pixel <= c.length }

// advance moves on by at most a length, not beyond the texel, and returns that texel and the
// length moved.
func (c *resampler) advance(most int) (texel, taken int) {
	texel, taken = c.texel, min(most, c.length-c.used)
	c.used += taken
	if c.used == c.length {
		c.texel++
		c.used = 0
	}
	return texel, taken
}
