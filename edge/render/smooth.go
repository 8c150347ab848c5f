package render

import (
	"encoding/binary"
	"math"
	"slices"
	"unsafe"

	"github.com/veneer-skins/veneer/shared/skin"
)

// sketch is a smooth picture but for its sheet: what can be seen of each figure,
// ordered for a sweep, and the texels that lie on it.
type sketch struct {
	figures [][]quad
	patches []patch
}

// patch is the texels of a face.
type patch struct {
	first         texel
	columns, rows int
	stride        int // texels of the sheet from one row to the next
}

// newSketch returns the sketch of a scene for sheets of scale k.
func newSketch(s scene, k int) *sketch {
	var made sketch
	for _, f := range s.figures {
		quads := f.quads(k)
		made.figures = append(made.figures, quads)
		for i := range quads {
			if p := quads[i].patch(); !slices.Contains(made.patches, p) {
				made.patches = append(made.patches, p)
			}
		}
	}
	return &made
}

// patch returns the texels of the face.
func (q *quad) patch() patch {
	return patch{first: q.first, columns: q.across.texels, rows: q.down.texels, stride: q.columns}
}

// mixer paints smooth pictures. It keeps memory from one to the next.
type mixer struct {
	sweep  sweep
	line   line
	lit    []deep // the colours of the sheet's texels, where they lie on a face
	column []sum  // what is seen of each pixel of a column
}

// sum is premultiplied colours times weights, in the halves of words: values of 16
// bits times weights of which a whole pixel has 2¹⁵, and rounding a little more.
type sum struct{ redBlue, greenAlpha uint64 }

// paint paints a smooth picture: of all strips of all columns it adds up what is
// seen along their middle.
func (m *mixer) paint(p *plan, pixels []byte, sheet skin.Sheet) {
	clear(pixels)
	m.light(p.smooth.patches, sheet)
	m.column = slices.Grow(m.column[:0], p.height)[:p.height]
	clear(m.column)
	for _, quads := range p.smooth.figures {
		m.sweep.over(quads, m)
		for x := range p.width {
			strips := m.sweep.stripsOf(x)
			for _, s := range strips {
				m.sweep.measure(&m.line, s.middle)
				for _, g := range m.sweep.cross(&m.line, 0, float64(p.height)) {
					m.add(g, s.width)
				}
			}
			if len(strips) > 0 {
				m.put(pixels[4*x:], 4*p.width)
			}
		}
	}
}

// light works out what colours texels have.
func (m *mixer) light(patches []patch, sheet skin.Sheet) {
	size := sheet.Width * sheet.Height
	m.lit = slices.Grow(m.lit[:0], size)[:size]
	for _, p := range patches {
		for v := range p.rows {
			for t := range texel(p.columns) {
				t = p.first + (texel(v*p.stride)+t)*oneTexel
				m.lit[t.number()] = t.colour(sheet)
			}
		}
	}
}

// lay returns a texel's colour over another.
func (m *mixer) lay(top texel, below uint64) uint64 {
	return uint64(m.lit[top.number()].over(deep(below)))
}

// add adds a segment to the pixels that it touches, as wide as a strip.
func (m *mixer) add(g segment, width float64) {
	redBlue, greenAlpha := g.seen&pair, g.seen>>16&pair
	from, whole := g.from, width*whole
	for y := int(from); from < g.to; y++ {
		to := min(g.to, float64(y+1))
		weight := uint64((to-from)*whole + 0.5)
		m.column[y].redBlue += redBlue * weight
		m.column[y].greenAlpha += greenAlpha * weight
		from = to
	}
}

// put puts the column into pixels that are a stride apart, and empties it.
func (m *mixer) put(pixels []byte, stride int) {
	for y := range m.column {
		if s := &m.column[y]; *s != (sum{}) {
			colour := newShown(s.redBlue&math.MaxUint32, s.greenAlpha&math.MaxUint32, s.redBlue>>32, s.greenAlpha>>32, deepStep*whole)
			binary.LittleEndian.PutUint32(pixels[stride*y:], uint32(colour))
			*s = sum{}
		}
	}
}

// bytes returns how much memory the sketch takes.
func (s *sketch) bytes() int {
	bytes := int(unsafe.Sizeof(patch{})) * cap(s.patches)
	for _, quads := range s.figures {
		bytes += int(unsafe.Sizeof(quad{})) * cap(quads)
	}
	return bytes
}
