package raster

import (
	"github.com/veneer-skins/veneer/edge/render/model"
	"github.com/veneer-skins/veneer/shared/skin"
)

// piece is a face, or a part of one. Its texels are laid out as on the whole face.
type piece struct {
	model.Face
	extent    model.Box // flat along the face's axis
	base      bool      // opaque, whatever the sheet says
	drawOrder int       // of two pieces in one plane the greater one is in front
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
				pieces[i], rest = split(pieces[i], by.Axis, by.extent.From.Along(by.Axis))
				pieces = append(pieces, rest)
			}
		}
	}
	return pieces
}

// intersects reports whether two pieces go through each other.
func intersects(p, q *piece) bool {
	for axis := model.Sideways; axis <= model.Lengthwise; axis++ {
		if p.extent.From.Along(axis) > q.extent.To.Along(axis)-geomEps ||
			q.extent.From.Along(axis) > p.extent.To.Along(axis)-geomEps {
			return false
		}
	}
	return true
}

// split splits a piece in two, across an axis.
func split(p piece, axis model.Axis, at float64) (first, second piece) {
	first, second = p, p
	first.extent.To = p.extent.To.With(axis, at)
	second.extent.From = p.extent.From.With(axis, at)
	return first, second
}

// pieces returns the faces of body parts that can be visible, before their motion: of the opaque base
// those that face the camera, of the layers also the others, since their inner sides show through
// holes. The base comes first. No two pieces intersect.
func (c Camera) pieces(parts []model.BodyPart, of skin.Type) []piece {
	var all []piece
	add := func(l model.BodyPart, box model.Box, part skin.Part, base bool) {
		for _, f := range model.FacesOf(box, skin.Faces(part, of)) {
			if !l.Clip.ContainsPlaneOf(f) || c.isEdgeOn(f) || base && !c.facesCamera(f) {
				continue
			}
			clip := l.Clip
			if !base && c.facesCamera(f) {
				clip = clip.Moved(c.parallax(f, l.Inflation))
			}
			all = append(all, piece{Face: f, extent: f.Bounds().Within(clip), base: base, drawOrder: len(all)})
		}
	}
	for _, l := range parts {
		add(l, l.Box, l.Base, true)
	}
	for _, l := range parts {
		add(l, l.LayerBox(), l.Layer, false)
	}
	return cut(all)
}

// wornPieces returns the faces of a worn box that can be visible, before its motion.
func (c Camera) wornPieces(w model.WornBox) []piece {
	var all []piece
	for _, f := range model.FacesOf(w.Box, w.Faces) {
		if !c.isEdgeOn(f) {
			all = append(all, piece{Face: f, extent: f.Bounds(), drawOrder: len(all)})
		}
	}
	return all
}

// parallax returns by how much, along each axis, a face that stands off by an inflation appears
// shifted against the base behind it: the way along the line of sight from one to the other,
// along each axis at most the inflation.
func (c Camera) parallax(f model.Face, inflation float64) model.Vec {
	offset := c.towards.Times(inflation * f.Outwards / c.towards.Along(f.Axis))
	bound := func(length float64) float64 { return min(max(length, -inflation), inflation) }
	return model.Vec{X: bound(offset.X), Y: bound(offset.Y), Z: bound(offset.Z)}
}
