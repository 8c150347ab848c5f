package render

import (
	"encoding/binary"

	"github.com/veneer-skins/veneer/shared/skin"
)

// drawFlat draws the face of a skin with its hat, side pixels wide and high.
func drawFlat(sheet skin.Sheet, side int, pixels []byte) Picture {
	picture := newPicture(side, side, pixels)
	picture.place(wornFace(sheet), 0, 0, side, side)
	return picture
}

// wornFace returns the texels of the face with the hat laid over them. The base is
// opaque, hence so is the result.
func wornFace(sheet skin.Sheet) skin.Sheet {
	k := sheet.Scale()
	face := crop(sheet, skin.Faces(skin.Head, skin.Steve).Front.Scaled(k))
	hat := skin.Faces(skin.Hat, skin.Steve).Front.Scaled(k)
	for v := range face.Height {
		texels := face.Pix[face.At(0, v):][:4*face.Width]
		over := sheet.Pix[sheet.At(hat.X, hat.Y+v):][:4*face.Width]
		for i := 0; i < len(texels); i += 4 {
			alpha := int(over[i+3])
			for c := i; c < i+3; c++ {
				texels[c] = byte((int(over[c])*alpha + int(texels[c])*(255-alpha) + 127) / 255)
			}
			texels[i+3] = 255
		}
	}
	return face
}

// crop copies a part of a sheet.
func crop(sheet skin.Sheet, part skin.Rect) skin.Sheet {
	cut := skin.NewSheet(part.W, part.H)
	for y := range part.H {
		from := sheet.At(part.X, part.Y+y)
		copy(cut.Pix[cut.At(0, y):], sheet.Pix[from:from+4*part.W])
	}
	return cut
}

// place scales texels into a rectangle of the picture. Texels stay squares of
// equal size where whole pixels allow it; elsewhere every pixel is the average
// of what it covers.
func (p Picture) place(texels skin.Sheet, left, top, width, height int) {
	if width%texels.Width == 0 && height%texels.Height == 0 {
		p.magnify(texels, left, top, width/texels.Width, height/texels.Height)
	} else {
		p.average(texels, left, top, width, height)
	}
}

// magnify draws every texel as a rectangle of across × down pixels.
func (p Picture) magnify(texels skin.Sheet, left, top, across, down int) {
	for v := range texels.Height {
		row := p.Pix[4*((top+v*down)*p.Width+left):][:4*across*texels.Width]
		to := 0
		for u := range texels.Width {
			from := texels.At(u, v)
			colour := nothing
			if texels.Pix[from+3] != 0 {
				colour = shown(binary.LittleEndian.Uint32(texels.Pix[from:]))
			}
			fill(row[to:to+4*across], colour)
			to += 4 * across
		}
		for y := 1; y < down; y++ {
			copy(p.Pix[4*((top+v*down+y)*p.Width+left):], row)
		}
	}
}

// average draws texels into width × height pixels of any size. A pixel takes
// each texel by the area it covers of it, and each colour by its alpha as well:
// transparent texels have no colour to give.
func (p Picture) average(texels skin.Sheet, left, top, width, height int) {
	columns, rows := overlaps(texels.Width, width), overlaps(texels.Height, height)
	area := uint64(texels.Width * texels.Height) // of a pixel, as the sum of its weights
	for y, down := range rows {
		for x, across := range columns {
			sum := weigh(texels, across, down)
			if alpha := (sum[3] + area/2) / area; alpha > 0 {
				pixel := p.Pix[4*((top+y)*p.Width+left+x):][:4]
				for c := range 3 {
					pixel[c] = byte((sum[c] + sum[3]/2) / sum[3])
				}
				pixel[3] = byte(alpha)
			}
		}
	}
}

// weigh adds up the texels under a pixel: the colours by area and alpha, the
// alpha by area.
func weigh(texels skin.Sheet, across, down []overlap) (sum [4]uint64) {
	for _, v := range down {
		for _, u := range across {
			texel := texels.Pix[texels.At(u.texel, v.texel):][:4]
			alpha := u.weight * v.weight * uint64(texel[3])
			for c := range 3 {
				sum[c] += alpha * uint64(texel[c])
			}
			sum[3] += alpha
		}
	}
	return sum
}

// overlap is how much of a texel lies under a pixel, along one axis.
type overlap struct {
	texel  int
	weight uint64
}

// overlaps returns what every pixel covers when texels are scaled to pixels
// along one axis. It measures in a unit of which a texel is pixels long and a
// pixel is texels long, so that all is whole.
func overlaps(texels, pixels int) [][]overlap {
	all := make([][]overlap, pixels)
	for i := range all {
		from, to := i*texels, (i+1)*texels
		for at := from; at < to; {
			texel := at / pixels
			end := min(to, (texel+1)*pixels)
			all[i] = append(all[i], overlap{texel: texel, weight: uint64(end - at)})
			at = end
		}
	}
	return all
}
