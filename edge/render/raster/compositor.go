package raster

import (
	"encoding/binary"
	"slices"
	"unsafe"

	"github.com/veneer-skins/veneer/shared/skin"
)

// scannedFigures are the figures of a smooth picture without a full sample map: their visible
// quads, sorted for a scan, and the texels on them. The compositor scans them again for every
// sheet.
type scannedFigures struct {
	figures  [][]texturedQuad
	texels   []texelRect
	maxWidth float64 // of a sub-column, in pixels
}

// texturedQuad is a quad and the index of its texels.
type texturedQuad struct {
	quad
	texels int
}

// texelRect is the rectangle of a sheet that lies on a face.
type texelRect struct {
	first         texel
	columns, rows int
	stride        int // texels from one row of the sheet to the next
}

// newScannedFigures returns the figures of a scene for sheets of scales, to be scanned in
// sub-columns of at most a width.
func newScannedFigures(s Scene, k Scales, maxWidth float64) *scannedFigures {
	scanned := scannedFigures{maxWidth: maxWidth}
	for _, f := range s.Figures {
		var figure []texturedQuad
		for _, q := range f.quads(k) {
			p := texelRect{first: q.first, columns: q.across.texels, rows: q.down.texels, stride: q.columns}
			i := slices.Index(scanned.texels, p)
			if i < 0 {
				i = len(scanned.texels)
				scanned.texels = append(scanned.texels, p)
			}
			figure = append(figure, texturedQuad{q, i})
		}
		scanned.figures = append(scanned.figures, figure)
	}
	return &scanned
}

// bytes returns how much memory the figures take.
func (s *scannedFigures) bytes() int {
	bytes := int(unsafe.Sizeof(texelRect{})) * cap(s.texels)
	for _, figure := range s.figures {
		bytes += int(unsafe.Sizeof(texturedQuad{})) * cap(figure)
	}
	return bytes
}

// compositor paints scanned figures. Its memory is reused from picture to picture.
type compositor struct {
	scan    columnScan
	line    scanline
	colours []RGBA64 // of the sheet's texels, where they lie on a face
	alphas  []alphaRange
	quads   []quad      // of the current figure
	column  []ColourSum // what each pixel of the current column shows
}

// alphaRange is the lowest and the highest alpha of some texels.
type alphaRange struct{ min, max uint64 }

// paint paints a picture: for every pixel it adds up what the centre lines of all sub-columns
// show.
func (c *compositor) paint(p *SampleMap, pixels []byte, sheet skin.Sheet, lights *lights) {
	clear(pixels)
	c.shade(p.scanned.texels, sheet, lights)
	c.column = slices.Grow(c.column[:0], p.Height)[:p.Height]
	clear(c.column)
	for _, figure := range p.scanned.figures {
		c.selectQuads(figure)
		c.scan.begin(c.quads, c, p.scanned.maxWidth)
		for x := range p.Width {
			columns := c.scan.subColumns(x)
			for _, s := range columns {
				c.scan.intersect(&c.line, s.middle)
				for _, g := range c.scan.visible(&c.line, 0, float64(p.Height)) {
					c.add(g, s.width)
				}
			}
			if len(columns) > 0 {
				c.writeColumn(pixels[4*x:], 4*p.Width)
			}
		}
	}
}

// shade sets the colours of texels under the lights, and the alphas of each rectangle.
func (c *compositor) shade(rects []texelRect, sheet skin.Sheet, lights *lights) {
	size := len(sheet.Pix) / 4
	c.colours = slices.Grow(c.colours[:0], size)[:size]
	c.alphas = c.alphas[:0]
	for _, p := range rects {
		alphas := alphaRange{min: opaque16}
		for v := range p.rows {
			for t := range texel(p.columns) {
				t = p.first + (texel(v*p.stride)+t)*oneTexel
				colour := t.colour(sheet, lights)
				c.colours[t.number()] = colour
				alphas.min, alphas.max = min(alphas.min, colour.alpha()), max(alphas.max, colour.alpha())
			}
		}
		c.alphas = append(c.alphas, alphas)
	}
}

// selectQuads leaves out quads with transparent texels only, as most of the layers are. Quads
// with opaque texels only hide what is behind them, as the base does.
func (c *compositor) selectQuads(figure []texturedQuad) {
	c.quads = c.quads[:0]
	for _, t := range figure {
		if alphas := c.alphas[t.texels]; alphas.max > 0 {
			t.base = t.base || alphas.min == opaque16
			c.quads = append(c.quads, t.quad)
		}
	}
}

// over returns a texel's colour over another one.
func (c *compositor) over(top texel, below uint64) uint64 {
	return uint64(c.colours[top.number()].over(RGBA64(below)))
}

// add adds a visible span to the pixels that it touches, as wide as a sub-column.
func (c *compositor) add(g visibleSpan, width float64) {
	alphas, from, perPixel := RGBA64(g.content), g.from, width*fullWeight
	for y := int(from); from < g.to; y++ {
		to := g.to
		if edge := float64(y + 1); edge < to {
			to = edge
		}
		weight := uint64((to-from)*perPixel + 0.5)
		c.column[y].add(alphas, weight)
		from = to
	}
}

// writeColumn writes the column to pixels that are a stride apart, and clears it.
func (c *compositor) writeColumn(pixels []byte, stride int) {
	for y := range c.column {
		if s := &c.column[y]; *s != (ColourSum{}) {
			binary.LittleEndian.PutUint32(pixels[stride*y:], uint32(s.nrgba()))
			*s = ColourSum{}
		}
	}
}
