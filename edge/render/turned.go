package render

import (
	"slices"

	"github.com/veneer-skins/veneer/shared/skin"
)

// isometric is the head of a skin with its hat, of a size. By default it is in true isometric
// projection: the player's face on the viewer's right, their right side on the viewer's left. The hat,
// 9 units wide, is 12.728 × 14.697 units in that picture and fills its height.
func isometric(v View) scene {
	all := []bodyPart{head()}
	// The head is the same for both models.
	return turned(v, figureInstance{parts: all, model: skin.Classic}, layerBoxes(all), v.Size, v.Size)
}

// body is the whole figure, half as wide as high. By default it is as large as a figure of the preview.
func body(v View) scene {
	return turned(v, v.figure(), layerBoxes(figure(skin.Classic, v.Pose)), v.Size/2, v.Size)
}

// bust is the figure down to the waist, square: the head, the body, two thirds of the arms and of what is
// worn are in the picture, and all of a raised arm. What reaches beyond its lower edge is cut off there.
func bust(v View) scene {
	const waist, elbow = 12, 16
	shown := layerBoxes(figure(skin.Classic, v.Pose))[rightArm:]
	for i, bottom := range []float64{elbow, waist, elbow, 0} { // the arms with the body between them, and the head
		if i > 0 || v.Pose != Wave {
			shown[i].box.from.y = max(shown[i].box.from.y, bottom)
		}
	}
	return turned(v, v.figure(), shown, v.Size, v.Size)
}

// figure returns the figure of a view, without its camera and viewport.
func (v View) figure() figureInstance {
	parts := figure(v.Type, v.Pose)
	return figureInstance{parts: parts, model: v.Type, worn: v.Wear.boxes(parts[torso].motion)}
}

// turned is one figure in the attitude of a view, in width × height pixels. It is as large as it can be
// with the shown boxes and what is worn inside, however it is turned: so it is as large, and stands as
// high, in all turns of a tilt. The shown boxes are in the middle, with wings but without a cape: as
// there is room for one beside a standing figure, that is as large, and where it is, with a cape and
// without.
func turned(v View, figure figureInstance, shown []placedBox, width, height int) scene {
	inside := slices.Clone(shown)
	for _, worn := range figure.worn {
		if v.Mode == Bust {
			worn.box.from.y *= 2.0 / 3
		}
		inside = append(inside, worn.placedBox)
	}
	if v.Wear == WearElytra {
		shown = inside
	}

	turn, tilt := v.Attitude.turnAndTilt(v.Mode)
	middle, frame := 0.0, extent{}
	for t := range TurnCount {
		c := newTurnedCamera(t, tilt)
		e, all := c.extentOf(shown...), c.extentOf(inside...)
		centre := (e.left + e.right) / 2
		half := max(centre-all.left, all.right-centre)
		all.left, all.right = -half, half
		if t == 0 {
			frame = all
		}
		frame = frame.union(all)
		if t == turn {
			middle = centre
		}
	}
	if v.Mode == Bust {
		frame.top = min(frame.top, frame.bottom-frame.width()) // nothing below the waist
	}
	scale := min(float64(width)/frame.width(), float64(height)/frame.height())
	figure.camera = newTurnedCamera(turn, tilt)
	figure.viewport = centred(frame, scale, 0, width, height)
	figure.viewport.left -= scale * middle
	return scene{width: width, height: height, scale: scale, figures: []figureInstance{figure}}
}
