package render

import (
	"slices"

	"github.com/veneer-skins/veneer/shared/skin"
)

// scene is the content of a picture: figures beside each other, drawn to one scale.
type scene struct {
	width, height int     // of the picture, in pixels
	scale         float64 // pixels to a unit
	figures       []figureInstance
}

// scene returns the figures of a view of a mode in space.
func (v View) scene() scene {
	switch v.Mode {
	case Isometric:
		return isometric(v)
	case Preview:
		return preview(v.Type, v.Size)
	case Bust:
		return bust(v)
	case Body:
		return body(v)
	case Flat, LegacySheet, Front, Back, Left, Right:
	}
	return scene{}
}

// scales are the scales of a skin's sheet and of a worn one, 0 without.
type scales struct{ skin, worn int }

// finest is the greater one.
func (k scales) finest() int { return max(k.skin, k.worn) }

// figureInstance is body parts and what is worn, with the camera and the viewport that show them.
type figureInstance struct {
	camera   camera
	parts    []bodyPart
	model    skin.Type
	worn     []wornBox
	viewport viewport
}

// crisp reports whether the texels of a sheet of scale k are large enough, at four pixels, to
// be drawn with hard edges. Rows and columns of smaller ones would visibly differ in size.
func (s scene) crisp(k int) bool { return s.scale >= float64(4*k) }

// quads returns what can be visible of the figure, sorted for a scan. The group of the body is the
// first, so that limbs are in front of it where they lie in one plane.
func (s figureInstance) quads(k scales) []quad {
	var quads []quad
	group := 0
	add := func(m motion, pieces []piece, k, number int) {
		c, view := s.camera.seenFrom(m), s.viewport.moved(s.camera, m.by)
		for _, p := range pieces {
			q := c.project(p, view, k, number)
			q.group = group
			quads = append(quads, q)
		}
		group++
	}
	var motions []motion
	for i := range s.parts {
		m := s.parts[(torso+i)%len(s.parts)].motion
		if slices.Contains(motions, m) {
			continue
		}
		motions = append(motions, m)
		var alike []bodyPart
		for _, part := range s.parts {
			if part.motion == m {
				alike = append(alike, part)
			}
		}
		add(m, s.camera.seenFrom(m).pieces(alike, s.model), k.skin, 0)
	}
	for _, worn := range s.worn {
		add(worn.motion, s.camera.seenFrom(worn.motion).wornPieces(worn), k.worn, sheetColumns*sheetColumns*k.skin*k.skin)
	}
	return sortByStart(quads)
}
