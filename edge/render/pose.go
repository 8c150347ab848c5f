package render

import "github.com/veneer-skins/veneer/shared/skin"

// Pose is how the arms and legs of a figure are.
type Pose uint8

// The poses.
const (
	Stand Pose = iota
	Walk       // the right arm and the left leg ahead
	Wave       // the right hand above the head
	Sit        // both legs ahead
	Sneak      // leaning forward

	PoseCount = iota
)

// HasPoses reports whether the mode has other poses than Stand.
func (p Mode) HasPoses() bool {
	switch p {
	case Bust, Body:
		return true
	case Flat, Isometric, Preview, LegacySheet, Front, Back, Left, Right:
	}
	return false
}

// motions returns where a pose moves the body parts of a figure to, in its order. A swung limb turns
// about its joint. A sneaking player leans forward about the hips, which takes the arms and the level
// head along with the top of the body; as in the game, the feet are 4 units behind the head.
func (p Pose) motions(model skin.Type) [bodyParts]motion {
	shoulder, hip := vec{5, 22, 0}, vec{1.9, 12, 0} // the left ones
	if model == skin.Slim {
		shoulder.y = 21.5
	}
	var all [bodyParts]motion
	for i := range all {
		all[i] = still
	}
	swing := func(part int, joint, angles vec) { all[part] = rotation(angles).about(joint) }
	switch p {
	case Walk:
		const angle = 30
		swing(rightArm, shoulder.mirrored(), vec{x: angle})
		swing(leftArm, shoulder, vec{x: -angle})
		swing(rightLeg, hip.mirrored(), vec{x: -angle})
		swing(leftLeg, hip, vec{x: angle})
	case Wave:
		swing(rightArm, shoulder.mirrored(), vec{z: -150})
	case Sit:
		const arms, legs, spread = 36, 81, 18
		swing(rightArm, shoulder.mirrored(), vec{x: arms})
		swing(leftArm, shoulder, vec{x: arms})
		swing(rightLeg, hip.mirrored(), vec{x: legs, y: -spread})
		swing(leftLeg, hip, vec{x: legs, y: spread})
	case Sneak:
		const arms, lean, back = -22.9, -28.6, 4
		swing(torso, vec{y: hip.y}, vec{x: lean})
		neck := vec{y: 24}
		lift := all[torso].moved(neck).plus(neck.times(-1))
		swing(rightArm, shoulder.mirrored(), vec{x: arms})
		swing(leftArm, shoulder, vec{x: arms})
		for _, part := range []int{rightArm, leftArm, headPart} {
			all[part].by = all[part].by.plus(lift)
		}
		all[rightLeg].by.z, all[leftLeg].by.z = lift.z-back, lift.z-back
	case Stand:
	}
	return all
}
