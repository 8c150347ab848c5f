package model

import "github.com/veneer-skins/veneer/shared/skin"

// BodyPart is a box of the player and the layer over it.
type BodyPart struct {
	Base, Layer skin.Part
	Box         Box     // of a standing player
	Inflation   float64 // how far the layer stands off, on every side
	Clip        Box     // ends where other body parts adjoin
	Motion      Motion  // to where it is in a pose
}

// LayerBox returns the box of the layer.
func (b BodyPart) LayerBox() Box { return b.Box.grown(b.Inflation) }

// Distances of the layers from the base, as in the game.
const (
	hatInflation   = 0.5
	layerInflation = 0.25
)

// isHead reports whether the body part is the head.
func (b BodyPart) isHead() bool { return b.Base == skin.Head }

// LayerBoxes returns the boxes of the layers of body parts.
func LayerBoxes(parts []BodyPart) []PlacedBox {
	boxes := make([]PlacedBox, len(parts))
	for i, part := range parts {
		boxes[i] = PlacedBox{part.LayerBox(), part.Motion}
	}
	return boxes
}

// newBodyPart returns the body part of a standing player in a box. Nothing clips it.
func newBodyPart(base, layer skin.Part, from, to Vec, inflation float64) BodyPart {
	everywhere := Box{Vec{-far, -far, -far}, Vec{far, far, far}}
	return BodyPart{base, layer, Box{from, to}, inflation, everywhere, still}
}

// Head is the head of a standing player, the same for both models.
func Head() BodyPart {
	return newBodyPart(skin.Head, skin.Hat, Vec{-4, 24, -4}, Vec{4, 32, 4}, hatInflation)
}

// The body parts of a figure, by index.
const (
	RightLeg = iota
	LeftLeg
	RightArm
	Torso
	LeftArm
	HeadPart

	bodyParts = iota
)

// joint is a plane in which two body parts of a standing player adjoin, the first on the lower side.
type joint struct {
	lower, upper int
	axis         Axis
	at           float64
}

var joints = []joint{
	{RightArm, Torso, Sideways, -4},
	{Torso, LeftArm, Sideways, 4},
	{RightLeg, LeftLeg, Sideways, 0},
	{RightLeg, Torso, Upright, 12},
	{LeftLeg, Torso, Upright, 12},
}

// Figure returns the body parts of a player in a pose, in the sizes of the game's model: standing, it
// is 32 units high and 16 wide, or 14 with slim arms.
//
// Body parts adjoin in the planes x = -4 and x = 4 (the arms and the body), x = 0 (the legs)
// and y = 12 (the body and the legs). If they are moved alike, as in all joints of a standing player,
// their faces are clipped there: a point of a face of the base counts only if
//
//	x ≤ -4       on the right arm,
//	x ≥ 4        on the left arm,
//	-4 ≤ x ≤ 4   on the body, and y ≥ 12,
//	x ≤ 0        on the right leg, and y ≤ 12,
//	x ≥ 0        on the left leg, and y ≤ 12,
//
// and a side in such a plane or beyond it is left out: of the base it is never visible, of a
// layer it would show through the neighbour's layer. A layer's face ends where the base under
// it ends for the camera (see parallax); one seen from within ends in the planes themselves.
// The texels lie as on the whole face. So every point at a joint is under one layer only, that
// of its own body part: translucent layers have no stripes there, and a jacket without sleeves
// leaves no gap.
//
// Layers overlap only beside the joint of arms and legs, where both are 0.25 wider than the
// base. Of two layers in one plane the later one in the list is in front: sleeves over
// trousers.
//
// Body parts that are moved apart keep all their sides, and go through each other.
func Figure(model skin.Type, pose Pose) []BodyPart {
	shoulder := 8.0
	if model == skin.Slim {
		shoulder = 7
	}
	parts := []BodyPart{
		newBodyPart(skin.RightLeg, skin.RightPants, Vec{-4, 0, -2}, Vec{0, 12, 2}, layerInflation),
		newBodyPart(skin.LeftLeg, skin.LeftPants, Vec{0, 0, -2}, Vec{4, 12, 2}, layerInflation),
		newBodyPart(skin.RightArm, skin.RightSleeve, Vec{-shoulder, 12, -2}, Vec{-4, 24, 2}, layerInflation),
		newBodyPart(skin.Body, skin.Jacket, Vec{-4, 12, -2}, Vec{4, 24, 2}, layerInflation),
		newBodyPart(skin.LeftArm, skin.LeftSleeve, Vec{4, 12, -2}, Vec{shoulder, 24, 2}, layerInflation),
		Head(),
	}
	for i, motion := range pose.motions(model) {
		parts[i].Motion = motion
	}
	for _, j := range joints {
		if lower, upper := &parts[j.lower], &parts[j.upper]; lower.Motion == upper.Motion {
			lower.Clip.To = lower.Clip.To.With(j.axis, j.at)
			upper.Clip.From = upper.Clip.From.With(j.axis, j.at)
		}
	}
	return parts
}

// far is farther from the origin than anything of a figure.
const far = 64
