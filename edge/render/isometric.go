package render

import (
	"math"

	"github.com/veneer-skins/veneer/shared/skin"
)

// isometricPitch is the height above the horizon from which all three axes look
// equally long: 35.264°.
var isometricPitch = math.Atan(1 / math.Sqrt2)

// drawIsometric draws the head of a normalised skin with its hat in true
// isometric projection: the player's face on the viewer's right, their right
// side on the viewer's left. The hat, 9 units wide, is 12.728 × 14.697 units in
// the picture and fills its height.
func drawIsometric(sheet skin.Sheet, side int) Picture {
	camera := look(45, isometricPitch)
	head := head()
	seen := camera.extentOf(head.worn())
	on := centred(seen, float64(side)/seen.height(), 0, side, side)

	picture := newPicture(side, side)
	// The head is the same for both models.
	quads := camera.quads([]limb{head}, skin.Steve, on, sheet.Scale())
	picture.paint(sheet, quads, on.crisp(sheet.Scale()))
	return picture
}
