package render

import (
	"encoding/binary"
	"slices"
	"unsafe"

	"github.com/veneer-skins/veneer/shared/skin"
)

// sketch is a smooth picture but for its sheet, and not worked out: what can be seen
// of each figure, ordered for a sweep, and the texels that lie on it. The picture is
// swept for every sheet.
type sketch struct {
	figures [][]textured
	patches []patch
}

// textured is a quad and the index of its texels among the patches.
type textured struct {
	quad
	patch int
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
		var figure []textured
		for _, q := range f.quads(k) {
			p := patch{first: q.first, columns: q.across.texels, rows: q.down.texels, stride: q.columns}
			i := slices.Index(made.patches, p)
			if i < 0 {
				i = len(made.patches)
				made.patches = append(made.patches, p)
			}
			figure = append(figure, textured{q, i})
		}
		made.figures = append(made.figures, figure)
	}
	return &made
}

// bytes returns how much memory the sketch takes.
func (s *sketch) bytes() int {
	bytes := int(unsafe.Sizeof(patch{})) * cap(s.patches)
	for _, figure := range s.figures {
		bytes += int(unsafe.Sizeof(textured{})) * cap(figure)
	}
	return bytes
}

// mixer paints pictures from sketches. It keeps memory from one to the next.
type mixer struct {
	sweep  sweep
	line   line
	lit    []deep // the colours of the sheet's texels, where they lie on a face
	seen   []coverage
	quads  []quad // of a figure
	column []sum  // what is seen of each pixel of a column
}

// coverage is what of a patch can be seen: the least and the most of the alphas.
type coverage struct{ least, most uint64 }

// paint paints a picture: of all strips of all columns it adds up what is
// seen along their middle.
func (m *mixer) paint(p *plan, pixels []byte, sheet skin.Sheet) {
	clear(pixels)
	m.light(p.sketch.patches, sheet)
	m.column = slices.Grow(m.column[:0], p.height)[:p.height]
	clear(m.column)
	for _, figure := range p.sketch.figures {
		m.dress(figure)
		m.sweep.over(m.quads, m, widestSketch)
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

// light works out what colours texels have, and what of each patch can be seen.
func (m *mixer) light(patches []patch, sheet skin.Sheet) {
	size := sheet.Width * sheet.Height
	m.lit = slices.Grow(m.lit[:0], size)[:size]
	m.seen = m.seen[:0]
	for _, p := range patches {
		seen := coverage{least: deepOpaque}
		for v := range p.rows {
			for t := range texel(p.columns) {
				t = p.first + (texel(v*p.stride)+t)*oneTexel
				colour := t.colour(sheet)
				m.lit[t.number()] = colour
				seen.least, seen.most = min(seen.least, colour.alpha()), max(seen.most, colour.alpha())
			}
		}
		m.seen = append(m.seen, seen)
	}
}

// dress leaves out of a figure what the sheet leaves empty, as most do much of the
// layers. What it paints opaque hides as much as the base.
func (m *mixer) dress(figure []textured) {
	m.quads = m.quads[:0]
	for _, t := range figure {
		if seen := m.seen[t.patch]; seen.most > 0 {
			t.base = t.base || seen.least == deepOpaque
			m.quads = append(m.quads, t.quad)
		}
	}
}

// lay returns a texel's colour over another.
func (m *mixer) lay(top texel, below uint64) uint64 {
	return uint64(m.lit[top.number()].over(deep(below)))
}

// add adds a segment to the pixels that it touches, as wide as a strip.
func (m *mixer) add(g segment, width float64) {
	seen, from, whole := deep(g.seen), g.from, width*whole
	for y := int(from); from < g.to; y++ {
		to := g.to
		if edge := float64(y + 1); edge < to {
			to = edge
		}
		weight := uint64((to-from)*whole + 0.5)
		m.column[y].add(seen, weight)
		from = to
	}
}

// put puts the column into pixels that are a stride apart, and empties it.
func (m *mixer) put(pixels []byte, stride int) {
	for y := range m.column {
		if s := &m.column[y]; *s != (sum{}) {
			binary.LittleEndian.PutUint32(pixels[stride*y:], uint32(s.shown()))
			*s = sum{}
		}
	}
}
