package model

import "github.com/veneer-skins/veneer/shared/skin"

// A side of a standing player is 16 × 32 units, the width of classic arms and the height of the
// figure.
const (
	SideWidth  = 16
	SideHeight = 32
)

// Side is a side of the standing player, the player's own.
type Side uint8

// The sides.
const (
	FrontSide Side = iota
	BackSide
	LeftSide
	RightSide
)

// FaceOf returns the face of a box that is on the side, and how far from the left edge it is.
func (s Side) FaceOf(box Box, faces skin.Box) (face skin.Rect, left int) {
	const middle = SideWidth / 2
	switch s {
	case FrontSide:
		return faces.Front, middle + int(box.From.X)
	case BackSide:
		return faces.Back, middle - int(box.To.X)
	case LeftSide:
		return faces.Left, middle - int(box.To.Z)
	case RightSide:
		return faces.Right, middle + int(box.From.Z)
	}
	return skin.Rect{}, 0
}

// WornArea is a face of what is worn on a side: its texels, where its top left corner is, in units, and
// whether it is mirrored.
type WornArea struct {
	skin.Rect
	Left, Top  int
	IsMirrored bool
}

// Worn returns what is worn on a side. A cape hangs straight down over the back, and is as thick as
// its edge at the sides. The wings of elytra are spread behind the back and adjoin in its middle, so
// that their outer edges are cut off.
func (s Side) Worn(w Wear) []WornArea {
	const middle, shoulders, back = SideWidth / 2, SideHeight - 24, 2
	cape, wing := skin.CapeFaces(), skin.ElytraFaces()
	switch {
	case w == WearCape && s == BackSide:
		return []WornArea{{cape.Front, middle - cape.Front.W/2, shoulders, false}}
	case w == WearCape && s == LeftSide: // the right of the cape, which is turned round
		return []WornArea{{cape.Right, middle + back, shoulders, false}}
	case w == WearCape && s == RightSide:
		return []WornArea{{cape.Left, middle - back - cape.Left.W, shoulders, false}}
	case w == WearElytra && s == BackSide:
		return []WornArea{{wing.Back, middle - wing.Back.W, shoulders, false}, {wing.Back, middle, shoulders, true}}
	case w == WearElytra && s == LeftSide:
		return []WornArea{{wing.Left, middle + back, shoulders, false}}
	case w == WearElytra && s == RightSide:
		return []WornArea{{wing.Left, middle - back - wing.Left.W, shoulders, true}}
	}
	return nil
}
