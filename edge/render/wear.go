package render

import "github.com/veneer-skins/veneer/shared/skin"

// Wear is what a figure wears on its back.
type Wear uint8

// What can be worn. Of both, what is behind holes and translucent texels shows through, as with layers.
const (
	WearNothing Wear = iota
	WearCape         // the elytra instead, if both faces of the cape are transparent
	WearElytra       // the cape instead, if both faces of the wings are transparent

	wearCount = iota
)

// ShowsWorn reports whether the mode shows what a figure wears on its back.
func (p Mode) ShowsWorn() bool {
	switch p {
	case Bust, Body, Back, Left, Right:
		return true
	case Flat, Isometric, Preview, LegacySheet, Front:
	}
	return false
}

// of returns what is drawn of a sheet: not the one of cape and elytra of which both faces are transparent.
func (w Wear) of(sheet skin.Sheet) Wear {
	isVisible := func(faces skin.Box) bool {
		faces = faces.Scaled(sheet.Scale())
		return !isBlank(sheet, faces.Front) || !isBlank(sheet, faces.Back)
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

// wornBox is a box that is worn, with its texels.
type wornBox struct {
	placedBox
	faces skin.Box
}

// boxes returns the boxes of what is worn on a body that is moved. A cape hangs from the top of the
// back, 10.8° away from it, its front outside. A wing is 1 unit larger on every side than its texels
// say, and hangs from its shoulder across the back, 15° away from it and 15° outwards.
func (w Wear) boxes(body motion) []wornBox {
	hung := func(size, hinge, angles vec) placedBox {
		m := rotation(angles)
		m.by = hinge
		return placedBox{cuboid{from: vec{-size.x, -size.y, -size.z}}, body.after(m)}
	}
	switch w {
	case WearCape:
		cape := hung(vec{10, 16, 1}, vec{0, 24, -2}, vec{x: 10.8, y: 180})
		cape.box = cape.box.moved(vec{5, 0, 1})
		return []wornBox{{cape, skin.CapeFaces()}}
	case WearElytra:
		left := hung(vec{10, 20, 2}, vec{5, 24, -2}, vec{x: -15, z: 15})
		left.box = left.box.grown(1)
		right := left
		right.motion = left.motion.mirrored()
		return []wornBox{{left, skin.ElytraFaces()}, {right, skin.ElytraFaces()}}
	case WearNothing:
	}
	return nil
}
