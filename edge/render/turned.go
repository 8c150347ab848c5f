package render

import "github.com/veneer-skins/veneer/shared/skin"

// isometric is the head of a skin with its hat, side pixels wide and high. By default it is in true
// isometric projection: the player's face on the viewer's right, their right side on the viewer's
// left. The hat, 9 units wide, is 12.728 × 14.697 units in that picture and fills its height.
func isometric(a Attitude, side int) scene {
	all := []bodyPart{head()}
	return turned(Isometric, a, figureInstance{parts: all, model: skin.Classic}, layerBoxes(all), side, side) // the head is the same for both models
}

// body is the whole figure, height pixels high and half as wide. By default it is as large as a
// figure of the preview.
func body(a Attitude, model skin.Type, height int) scene {
	return turned(Body, a, figureInstance{parts: figure(model), model: model}, layerBoxes(figure(skin.Classic)), height/2, height)
}

// bust is the figure down to the waist, side pixels wide and high: the head, the body, and two
// thirds of the arms are in the picture. What reaches beyond its lower edge is cut off there.
func bust(a Attitude, model skin.Type, side int) scene {
	const waist, elbow = 12, 16
	shown := layerBoxes(figure(skin.Classic))[rightArm:]
	for i, bottom := range []float64{elbow, waist, elbow, 0} { // the arms with the body between them, and the head
		shown[i].from.y = max(shown[i].from.y, bottom)
	}
	return turned(Bust, a, figureInstance{parts: figure(model), model: model}, shown, side, side)
}

// turned is one figure in an attitude, in width × height pixels. It is as large as it can be with
// the shown boxes inside, however it is turned: so it is as large, and stands as high, in all turns
// of a tilt.
func turned(p Mode, a Attitude, figure figureInstance, shown []cuboid, width, height int) scene {
	_, tilt := a.turnAndTilt(p)
	bounds := newTurnedCamera(0, tilt).extentOf(shown...)
	for turn := 1; turn < TurnCount; turn++ {
		bounds = bounds.union(newTurnedCamera(turn, tilt).extentOf(shown...))
	}
	scale := min(float64(width)/bounds.width(), float64(height)/bounds.height())
	figure.camera = p.camera(a)
	figure.viewport = centred(bounds, scale, 0, width, height)
	return scene{width: width, height: height, scale: scale, figures: []figureInstance{figure}}
}
