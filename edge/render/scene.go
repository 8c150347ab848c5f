package render

import "github.com/veneer-skins/veneer/shared/skin"

// scene is what a picture shows: figures beside each other, drawn to one scale.
type scene struct {
	width, height int     // of the picture, in pixels
	scale         float64 // pixels to a unit
	figures       []shot
}

// shot is limbs as a camera sees them, each figure on its own part of the picture.
type shot struct {
	camera camera
	limbs  []limb
	model  skin.Type
	on     screen
}

// crisp reports whether the texels of a sheet of scale k are large enough, at four
// pixels, to be drawn with hard edges. The rows and columns of smaller ones would
// visibly differ in size, so they are smoothed.
func (s scene) crisp(k int) bool { return s.scale >= float64(4*k) }

// quads returns what can be seen of the limbs, ordered for a sweep.
func (s shot) quads(k int) []quad {
	var quads []quad
	for _, p := range s.camera.pieces(s.limbs, s.model) {
		quads = append(quads, s.camera.project(p, s.on, k))
	}
	return ordered(quads)
}
