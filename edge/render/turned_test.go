package render

import (
	"testing"

	"github.com/veneer-skins/veneer/shared/skin"
)

// In every pose and attitude all of a body, and of what it wears, is in the picture. A cape moves no
// standing figure and does not make it smaller; wings do both.
func TestFramesHoldFigures(t *testing.T) {
	t.Parallel()

	for attitude := range Attitude(attitudeCount) {
		for pose := range Pose(PoseCount) {
			for wear := range Wear(wearCount) {
				for _, model := range []skin.Type{skin.Classic, skin.Slim} {
					view := View{Mode: Body, Type: model, Size: 128, Attitude: attitude, Pose: pose, Wear: wear}
					s := view.scene()
					f := s.figures[0]
					boxes := layerBoxes(f.parts)
					for _, worn := range f.worn {
						boxes = append(boxes, worn.placedBox)
					}
					for _, b := range boxes {
						for _, corner := range b.box.corners() {
							x, y := f.viewport.toPixel(f.camera, b.motion.moved(corner))
							if x < -eps || x > float64(s.width)+eps || y < -eps || y > float64(s.height)+eps {
								t.Fatalf("%+v: a corner is at %.2f, %.2f", view, x, y)
							}
						}
					}

					bare := view
					bare.Wear = WearNothing
					without := bare.scene()
					if same := without.scale == s.scale && without.figures[0].viewport == f.viewport; pose == Stand && same != (wear != WearElytra) {
						t.Errorf("%+v: as large and in the same place as without: %t", view, same)
					}
				}
			}
		}
	}
}
