package render

import "github.com/veneer-skins/veneer/shared/skin"

// scene is the content of a picture: figures beside each other, drawn to one scale.
type scene struct {
	width, height int     // of the picture, in pixels
	scale         float64 // pixels to a unit
	figures       []figureInstance
}

// scene returns the figures of a view of a mode in space.
func (v View) scene() scene { return v.Mode.scene(v.Attitude, v.Type, v.Size) }

// figureInstance is body parts with the camera and the viewport that show them.
type figureInstance struct {
	camera   camera
	parts    []bodyPart
	model    skin.Type
	viewport viewport
}

// crisp reports whether the texels of a sheet of scale k are large enough, at four pixels, to
// be drawn with hard edges. Rows and columns of smaller ones would visibly differ in size.
func (s scene) crisp(k int) bool { return s.scale >= float64(4*k) }

// quads returns what can be visible of the body parts, sorted for a scan.
func (s figureInstance) quads(k int) []quad {
	var quads []quad
	for _, p := range s.camera.pieces(s.parts, s.model) {
		quads = append(quads, s.camera.project(p, s.viewport, k))
	}
	return sortByStart(quads)
}
