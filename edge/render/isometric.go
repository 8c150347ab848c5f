package render

import (
	"math"

	"github.com/veneer-skins/veneer/shared/skin"
)

// isometricPitch is the elevation at which all three axes are equally foreshortened: 35.264°.
var isometricPitch = math.Atan(1 / math.Sqrt2)

// isometric is the head of a skin with its hat in true isometric projection: the
// player's face on the viewer's right, their right side on the viewer's left. The
// hat, 9 units wide, is 12.728 × 14.697 units in the picture and fills its height.
func isometric(side int) scene {
	camera := newCamera(45, isometricPitch)
	bounds := camera.extentOf(head().layerBox())
	scale := float64(side) / bounds.height()
	return scene{
		width: side, height: side, scale: scale,
		figures: []figureInstance{{
			camera:   camera,
			parts:    []bodyPart{head()},
			model:    skin.Classic, // the head is the same for both
			viewport: centred(bounds, scale, 0, side, side),
		}},
	}
}
