package render

import "github.com/veneer-skins/veneer/shared/skin"

// bodyPart is a box of the player and the layer over it.
type bodyPart struct {
	base, layer skin.Part
	box         cuboid
	inflation   float64 // how far the layer stands off, on every side
	clip        cuboid  // ends where other body parts adjoin
}

// layerBox returns the box of the layer.
func (b bodyPart) layerBox() cuboid { return b.box.grown(b.inflation) }

// Distances of the layers from the base, as in the game.
const (
	hatInflation   = 0.5
	layerInflation = 0.25
)

// isHead reports whether the body part is the head.
func (b bodyPart) isHead() bool { return b.base == skin.Head }

// layerBoxes returns the boxes of the layers of body parts.
func layerBoxes(parts []bodyPart) []cuboid {
	boxes := make([]cuboid, len(parts))
	for i, part := range parts {
		boxes[i] = part.layerBox()
	}
	return boxes
}

// head is the head of a standing player, the same for both models. Nothing clips it.
func head() bodyPart {
	return bodyPart{skin.Head, skin.Hat, cuboid{vec{-4, 24, -4}, vec{4, 32, 4}}, hatInflation, clipBetween(-far, far, -far, far)}
}

// figure returns the body parts of a standing player, in the sizes and places of the game's
// model: 32 units high and 16 wide, or 14 with slim arms.
//
// Body parts adjoin in the planes x = -4 and x = 4 (the arms and the body), x = 0 (the legs)
// and y = 12 (the body and the legs). Their faces are clipped there: a point of a face of the
// base counts only if
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
func figure(model skin.Type) []bodyPart {
	shoulder := 8.0
	if model == skin.Slim {
		shoulder = 7
	}
	return []bodyPart{
		{skin.RightLeg, skin.RightPants, cuboid{vec{-4, 0, -2}, vec{0, 12, 2}}, layerInflation, clipBetween(-far, 0, -far, 12)},
		{skin.LeftLeg, skin.LeftPants, cuboid{vec{0, 0, -2}, vec{4, 12, 2}}, layerInflation, clipBetween(0, far, -far, 12)},
		{skin.RightArm, skin.RightSleeve, cuboid{vec{-shoulder, 12, -2}, vec{-4, 24, 2}}, layerInflation, clipBetween(-far, -4, -far, far)},
		{skin.Body, skin.Jacket, cuboid{vec{-4, 12, -2}, vec{4, 24, 2}}, layerInflation, clipBetween(-4, 4, 12, far)},
		{skin.LeftArm, skin.LeftSleeve, cuboid{vec{4, 12, -2}, vec{shoulder, 24, 2}}, layerInflation, clipBetween(4, far, -far, far)},
		head(),
	}
}

// rightArm is the index of the right arm in a figure. Only the legs are before it.
const rightArm = 2

// far is farther from the origin than anything of a figure.
const far = 64

// clipBetween returns the space between two planes across the x axis and two across the y axis.
func clipBetween(fromX, toX, fromY, toY float64) cuboid {
	return cuboid{vec{fromX, fromY, -far}, vec{toX, toY, far}}
}

// pieces returns the faces of body parts that can be visible: of the opaque base those that
// face the camera, of the layers also the others, since their inner sides show through holes.
// The base comes first. No two pieces intersect.
func (c camera) pieces(parts []bodyPart, model skin.Type) []piece {
	var all []piece
	add := func(l bodyPart, box cuboid, part skin.Part, base bool) {
		for _, f := range facesOf(box, skin.Faces(part, model)) {
			if !l.clip.containsPlaneOf(f) || c.isEdgeOn(f) || base && !c.facesCamera(f) {
				continue
			}
			clip := l.clip
			if !base && c.facesCamera(f) {
				clip = clip.moved(c.parallax(f, l.inflation))
			}
			all = append(all, piece{face: f, extent: f.cuboid().within(clip), base: base, drawOrder: len(all)})
		}
	}
	for _, l := range parts {
		add(l, l.box, l.base, true)
	}
	for _, l := range parts {
		add(l, l.layerBox(), l.layer, false)
	}
	return cut(all)
}

// parallax returns by how much, along each axis, a face that stands off by an inflation appears
// shifted against the base behind it: the way along the line of sight from one to the other,
// along each axis at most the inflation.
func (c camera) parallax(f face, inflation float64) vec {
	offset := c.towards.times(inflation * f.outwards / c.towards.along(f.axis))
	bound := func(length float64) float64 { return min(max(length, -inflation), inflation) }
	return vec{bound(offset.x), bound(offset.y), bound(offset.z)}
}

// centred returns the viewport in which an extent, drawn to a scale, lies in the middle of
// width × height pixels, left pixels from the picture's edge.
func centred(e extent, scale float64, left, width, height int) viewport {
	return viewport{
		left:  float64(left) + float64(width)/2 - scale*(e.left+e.right)/2,
		top:   float64(height)/2 - scale*(e.top+e.bottom)/2,
		scale: scale,
	}
}
