package model

import "github.com/veneer-skins/veneer/shared/skin"

// Wear is what a figure wears on its back.
type Wear uint8

// What can be worn. Of both, what is behind holes and translucent texels shows through, as with layers.
const (
	WearNothing Wear = iota
	WearCape         // the elytra instead, if both faces of the cape are transparent
	WearElytra       // the cape instead, if both faces of the wings are transparent

	WearCount = iota
)

// Of returns what is drawn of a sheet: the cape or the elytra that has a visible face, w if both have.
func (w Wear) Of(sheet skin.Sheet) Wear {
	isVisible := func(faces skin.Box) bool {
		faces = faces.Scaled(sheet.Scale())
		return !IsBlank(sheet, faces.Front) || !IsBlank(sheet, faces.Back)
	}
	hasCape, hasElytra := isVisible(skin.CapeFaces()), isVisible(skin.ElytraFaces())
	switch {
	case !hasCape && !hasElytra:
		return WearNothing
	case !hasCape:
		return WearElytra
	case !hasElytra:
		return WearCape
	default:
		return w
	}
}

// WornBox is a box that is worn, with its texels.
type WornBox struct {
	PlacedBox
	Faces skin.Box
}

// Boxes returns the boxes of what is worn on a body that is moved. A cape hangs from the top of the
// back, 10.8° away from it, its front outside. A wing is 1 unit larger on every side than its texels
// say, and hangs from its shoulder across the back, 15° away from it and 15° outwards.
func (w Wear) Boxes(body Motion) []WornBox {
	hung := func(size, hinge, angles Vec) PlacedBox {
		m := rotation(angles)
		m.By = hinge
		return PlacedBox{Box{From: Vec{-size.X, -size.Y, -size.Z}}, body.after(m)}
	}
	switch w {
	case WearCape:
		cape := hung(Vec{10, 16, 1}, Vec{0, 24, -2}, Vec{X: 10.8, Y: 180})
		cape.Box = cape.Box.Moved(Vec{5, 0, 1})
		return []WornBox{{cape, skin.CapeFaces()}}
	case WearElytra:
		left := hung(Vec{10, 20, 2}, Vec{5, 24, -2}, Vec{X: -15, Z: 15})
		left.Box = left.Box.grown(1)
		right := left
		right.Motion = left.Motion.mirrored()
		return []WornBox{{left, skin.ElytraFaces()}, {right, skin.ElytraFaces()}}
	case WearNothing:
	}
	return nil
}
