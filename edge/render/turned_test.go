package render

import (
	"testing"

	"github.com/veneer-skins/veneer/edge/render/model"
	"github.com/veneer-skins/veneer/edge/render/raster"
	"github.com/veneer-skins/veneer/shared/skin"
)

// In every pose and attitude all of a body, and of what it wears, is in the picture. A cape moves no
// standing figure and does not make it smaller, at the usual width; wings do both.
func TestFramesHoldFigures(t *testing.T) {
	t.Parallel()
	for attitude := range Attitude(attitudeCount) {
		for pose := range model.Pose(model.PoseCount) {
			for wear := range model.Wear(model.WearCount) {
				for width, of := range map[int]skin.Type{0: skin.Classic, 40: skin.Classic, 90: skin.Slim} {
					view := View{Mode: Body, Type: of, Size: 128, Width: width, Attitude: attitude, Pose: pose, Wear: wear}
					s := view.scene()
					f := s.Figures[0]
					boxes := model.LayerBoxes(f.Parts)
					for _, worn := range f.Worn {
						boxes = append(boxes, worn.PlacedBox)
					}
					for _, b := range boxes {
						for _, corner := range b.Box.Corners() {
							x, y := f.Viewport.ToPixel(f.Camera, b.Motion.Moved(corner))
							if x < -raster.Eps || x > float64(s.Width)+raster.Eps || y < -raster.Eps || y > float64(s.Height)+raster.Eps {
								t.Fatalf("%+v: a corner is at %.2f, %.2f", view, x, y)
							}
						}
					}

					bare := view
					bare.Wear = model.WearNothing
					without := bare.scene()
					if same := without.Scale == s.Scale && without.Figures[0].Viewport == f.Viewport; pose == model.Stand && width == 0 && same != (wear != model.WearElytra) {
						t.Errorf("%+v: as large and in the same place as without: %t", view, same)
					}
				}
			}
		}
	}
}
