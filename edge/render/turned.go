package render

import (
	"cmp"
	"slices"

	"github.com/veneer-skins/veneer/edge/render/model"
	"github.com/veneer-skins/veneer/edge/render/raster"
	"github.com/veneer-skins/veneer/shared/skin"
)

// isometric is the head of a skin with its hat, of a size. By default it is in true isometric
// projection: the player's face on the viewer's right, their right side on the viewer's left. The hat,
// 9 units wide, is 12.728 × 14.697 units in that picture and fills its height.
func isometric(v View, turn int, tilt Tilt) raster.Scene {
	all := []model.BodyPart{model.Head()}
	// The head is the same for both models.
	return turned(v, turn, tilt, raster.Figure{Parts: all, Model: skin.Classic}, model.LayerBoxes(all), v.Size, v.Size)
}

// body is the whole figure. By default it is half as wide as high, and as large as a figure of the preview.
func body(v View, turn int, tilt Tilt) raster.Scene {
	return turned(v, turn, tilt, v.figure(), model.LayerBoxes(model.Figure(skin.Classic, v.Pose)), cmp.Or(v.scaledWidth(v.Size), v.Size/2), v.Size)
}

// bust is the figure down to the waist, square: the head, the body, two thirds of the arms and of what is
// worn are in the picture, and all of a raised arm. What reaches beyond its lower edge is cut off there.
func bust(v View, turn int, tilt Tilt) raster.Scene {
	const waist, elbow = 12, 16
	shown := model.LayerBoxes(model.Figure(skin.Classic, v.Pose))[model.RightArm:]
	for i, bottom := range []float64{elbow, waist, elbow, 0} { // the arms with the body between them, and the head
		if i > 0 || v.Pose != model.Wave {
			shown[i].Box.From.Y = max(shown[i].Box.From.Y, bottom)
		}
	}
	return turned(v, turn, tilt, v.figure(), shown, v.Size, v.Size)
}

// figure returns the figure of a view, without its camera and viewport.
func (v View) figure() raster.Figure {
	parts := model.Figure(v.Type, v.Pose)
	return raster.Figure{Parts: parts, Model: v.Type, Worn: v.Wear.Boxes(parts[model.Torso].Motion)}
}

// turned is one figure in the attitude of a view, in width × height pixels. It is as large as it can be
// with the shown boxes and what is worn inside, however it is turned: so it is as large, and stands as
// high, in all turns of a tilt. The shown boxes are in the middle, with wings but without a cape: as
// there is room for one beside a standing figure, that is as large, and where it is, with a cape and
// without.
func turned(v View, turn int, tilt Tilt, figure raster.Figure, shown []model.PlacedBox, width, height int) raster.Scene {
	inside := slices.Clone(shown)
	for _, worn := range figure.Worn {
		if v.Mode == Bust {
			worn.Box.From.Y *= 2.0 / 3
		}
		inside = append(inside, worn.PlacedBox)
	}
	if v.Wear == model.WearElytra {
		shown = inside
	}

	middle, frame := 0.0, raster.Extent{}
	for t := range TurnCount {
		c := newTurnedCamera(t, tilt)
		e, all := c.ExtentOf(shown...), c.ExtentOf(inside...)
		centre := (e.Left + e.Right) / 2
		half := max(centre-all.Left, all.Right-centre)
		all.Left, all.Right = -half, half
		if t == 0 {
			frame = all
		}
		frame = frame.Union(all)
		if t == turn {
			middle = centre
		}
	}
	if v.Mode == Bust {
		frame.Top = min(frame.Top, frame.Bottom-frame.Width()) // nothing below the waist
	}
	scale := min(float64(width)/frame.Width(), float64(height)/frame.Height())
	figure.Camera = newTurnedCamera(turn, tilt)
	figure.Viewport = raster.Centred(frame, scale, 0, width, height)
	figure.Viewport.Left -= scale * middle
	return raster.Scene{Width: width, Height: height, Scale: scale, Figures: []raster.Figure{figure}}
}
