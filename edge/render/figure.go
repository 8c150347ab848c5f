package render

import "github.com/veneer-skins/veneer/shared/skin"

// limb is a box of the player and the layer worn over it.
type limb struct {
	base, layer skin.Part
	box         cuboid
	inflation   float64 // by how much the layer is larger, on every side
	joined      joints
}

// joints says on which of its sides, the player's own, another limb adjoins.
type joints uint8

const (
	joinedRight joints = 1 << iota
	joinedLeft
)

// hides reports whether a side of the limb lies against another limb. Such sides
// are left out: the base's cannot be seen, and of the layer's, which lie inside
// of the neighbour, no more than splinters at the edges.
func (l limb) hides(f face) bool {
	side := joinedLeft
	if f.outwards < 0 {
		side = joinedRight
	}
	return f.axis == sideways && l.joined&side != 0
}

// worn returns the box of the layer.
func (l limb) worn() cuboid { return l.box.grown(l.inflation) }

// How far the layers stand off, as in the game. Where layers lie in one plane,
// the game shows the one that it draws last: a jacket over sleeves and trousers,
// the right trouser leg over the left. Here those are a hair larger.
const (
	hatInflation    = 0.5
	layerInflation  = 0.25
	pantsInflation  = layerInflation + 0.002 // the right leg's
	jacketInflation = layerInflation + 0.004
)

// head is the head of a standing player, as large for both models.
func head() limb {
	return limb{skin.Head, skin.Hat, cuboid{vec{-4, 24, -4}, vec{4, 32, 4}}, hatInflation, 0}
}

// figure returns the limbs of a standing player, in the sizes and places of the
// game's model: 32 units high and 16 wide, or 14 with Alex's slimmer arms. Of two
// layers in one plane the later one shows: the left sleeve before the trousers.
func figure(model skin.Type) []limb {
	shoulder := 8.0
	if model == skin.Alex {
		shoulder = 7
	}
	return []limb{
		{skin.RightLeg, skin.RightPants, cuboid{vec{-4, 0, -2}, vec{0, 12, 2}}, pantsInflation, joinedLeft},
		{skin.LeftLeg, skin.LeftPants, cuboid{vec{0, 0, -2}, vec{4, 12, 2}}, layerInflation, joinedRight},
		{skin.RightArm, skin.RightSleeve, cuboid{vec{-shoulder, 12, -2}, vec{-4, 24, 2}}, layerInflation, joinedLeft},
		{skin.Body, skin.Jacket, cuboid{vec{-4, 12, -2}, vec{4, 24, 2}}, jacketInflation, joinedRight | joinedLeft},
		{skin.LeftArm, skin.LeftSleeve, cuboid{vec{4, 12, -2}, vec{shoulder, 24, 2}}, layerInflation, joinedRight},
		head(),
	}
}

// pieces returns the faces of the limbs that can be seen: of the opaque base only
// those that look at the camera, of the layers also the others, from within,
// through holes. The base comes first. None goes through another.
func (c camera) pieces(limbs []limb, model skin.Type) []piece {
	var all []piece
	add := func(l limb, box cuboid, part skin.Part, base bool) {
		for _, f := range facesOf(box, skin.Faces(part, model)) {
			if !l.hides(f) && (c.sees(f) || !base) {
				all = append(all, piece{face: f, extent: f.cuboid(), base: base, listed: len(all)})
			}
		}
	}
	for _, l := range limbs {
		add(l, l.box, l.base, true)
	}
	for _, l := range limbs {
		add(l, l.worn(), l.layer, false)
	}
	return cut(all)
}

// centred returns the screen on which an extent, drawn to a scale, lies in the
// middle of width × height pixels, left pixels from the picture's edge.
func centred(e extent, scale float64, left, width, height int) screen {
	return screen{
		left:  float64(left) + float64(width)/2 - scale*(e.left+e.right)/2,
		top:   float64(height)/2 - scale*(e.top+e.bottom)/2,
		scale: scale,
	}
}
