package render

// piece is a face, or a part of one. Its texels are laid out as on the whole face.
type piece struct {
	face
	extent    cuboid // flat along the face's axis
	base      bool   // opaque, whatever the sheet says
	drawOrder int    // of two pieces in one plane the greater one is in front
}

// cuboid returns the extent of the face.
func (f face) cuboid() cuboid {
	a, b := f.origin, f.origin.plus(f.across).plus(f.down)
	return cuboid{
		from: vec{min(a.x, b.x), min(a.y, b.y), min(a.z, b.z)},
		to:   vec{max(a.x, b.x), max(a.y, b.y), max(a.z, b.z)},
	}
}

// geomEps is by how much, in units, rounding may let pieces overlap that only touch.
const geomEps = 1e-9

// cut splits pieces until no two intersect, as a hat's sides and the shoulders do: then one of
// two is nearer wherever they overlap. Of two that intersect, the first stays whole.
func cut(pieces []piece) []piece {
	for i := 0; i < len(pieces); i++ {
		for j := range i {
			if by := &pieces[j]; intersects(&pieces[i], by) {
				var rest piece
				pieces[i], rest = split(pieces[i], by.axis, by.extent.from.along(by.axis))
				pieces = append(pieces, rest)
			}
		}
	}
	return pieces
}

// intersects reports whether two pieces go through each other.
func intersects(p, q *piece) bool {
	for axis := sideways; axis <= lengthwise; axis++ {
		if p.extent.from.along(axis) > q.extent.to.along(axis)-geomEps ||
			q.extent.from.along(axis) > p.extent.to.along(axis)-geomEps {
			return false
		}
	}
	return true
}

// split splits a piece in two, across an axis.
func split(p piece, axis axis, at float64) (first, second piece) {
	first, second = p, p
	first.extent.to = p.extent.to.with(axis, at)
	second.extent.from = p.extent.from.with(axis, at)
	return first, second
}
