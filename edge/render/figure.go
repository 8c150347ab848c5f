package render

import "github.com/veneer-skins/veneer/shared/skin"

// bodyPart is a box of the player and the layer over it.
type bodyPart struct {
	base, layer skin.Part
	box         cuboid  // of a standing player
	inflation   float64 // how far the layer stands off, on every side
	clip        cuboid  // ends where other body parts adjoin
	motion      motion  // to where it is in a pose
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
func layerBoxes(parts []bodyPart) []placedBox {
	boxes := make([]placedBox, len(parts))
	for i, part := range parts {
		boxes[i] = placedBox{part.layerBox(), part.motion}
	}
	return boxes
}

// newBodyPart returns the body part of a standing player in a box. Nothing clips it.
func newBodyPart(base, layer skin.Part, from, to vec, inflation float64) bodyPart {
	everywhere := cuboid{vec{-far, -far, -far}, vec{far, far, far}}
	return bodyPart{base, layer, cuboid{from, to}, inflation, everywhere, still}
}

// head is the head of a standing player, the same for both models.
func head() bodyPart {
	return newBodyPart(skin.Head, skin.Hat, vec{-4, 24, -4}, vec{4, 32, 4}, hatInflation)
}

// The body parts of a figure, by index.
const (
	rightLeg = iota
	leftLeg
	rightArm
	torso
	leftArm
	headPart

	bodyParts = iota
)

// joint is a plane in which two body parts of a standing player adjoin, the first on the lower side.
type joint struct {
	lower, upper int
	axis         axis
	at           float64
}

var joints = []joint{
	{rightArm, torso, sideways, -4},
	{torso, leftArm, sideways, 4},
	{rightLeg, leftLeg, sideways, 0},
	{rightLeg, torso, upright, 12},
	{leftLeg, torso, upright, 12},
}

// figure returns the body parts of a player in a pose, in the sizes of the game's model: standing, it
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
func figure(model skin.Type, pose Pose) []bodyPart {
	shoulder := 8.0
	if model == skin.Slim {
		shoulder = 7
	}
	parts := []bodyPart{
		newBodyPart(skin.RightLeg, skin.RightPants, vec{-4, 0, -2}, vec{0, 12, 2}, layerInflation),
		newBodyPart(skin.LeftLeg, skin.LeftPants, vec{0, 0, -2}, vec{4, 12, 2}, layerInflation),
		newBodyPart(skin.RightArm, skin.RightSleeve, vec{-shoulder, 12, -2}, vec{-4, 24, 2}, layerInflation),
		newBodyPart(skin.Body, skin.Jacket, vec{-4, 12, -2}, vec{4, 24, 2}, layerInflation),
		newBodyPart(skin.LeftArm, skin.LeftSleeve, vec{4, 12, -2}, vec{shoulder, 24, 2}, layerInflation),
		head(),
	}
	for i, motion := range pose.motions(model) {
		parts[i].motion = motion
	}
	for _, j := range joints {
		if lower, upper := &parts[j.lower], &parts[j.upper]; lower.motion == upper.motion {
			lower.clip.to = lower.clip.to.with(j.axis, j.at)
			upper.clip.from = upper.clip.from.with(j.axis, j.at)
		}
	}
	return parts
}

// far is farther from the origin than anything of a figure.
const far = 64

// pieces returns the faces of body parts that can be visible, before their motion: of the opaque base
// those that face the camera, of the layers also the others, since their inner sides show through
// holes. The base comes first. No two pieces intersect.
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

// wornPieces returns the faces of a worn box that can be visible, before its motion.
func (c camera) wornPieces(w wornBox) []piece {
	var all []piece
	for _, f := range facesOf(w.box, w.faces) {
		if !c.isEdgeOn(f) {
			all = append(all, piece{face: f, extent: f.cuboid(), drawOrder: len(all)})
		}
	}
	return all
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
