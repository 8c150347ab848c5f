package model

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

// motions returns where a pose moves the body parts of a figure to, in its order. A swung limb turns
// about its joint. A sneaking player leans forward about the hips, which takes the arms and the level
// head along with the top of the body; as in the game, the feet are 4 units behind the head.
func (p Pose) motions(model skin.Type) [bodyParts]Motion {
	shoulder, hip := Vec{5, 22, 0}, Vec{1.9, 12, 0} // the left ones
	if model == skin.Slim {
		shoulder.Y = 21.5
	}
	var all [bodyParts]Motion
	for i := range all {
		all[i] = still
	}
	swing := func(part int, joint, angles Vec) { all[part] = rotation(angles).about(joint) }
	switch p {
	case Walk:
		const angle = 30
		swing(RightArm, shoulder.mirrored(), Vec{X: angle})
		swing(LeftArm, shoulder, Vec{X: -angle})
		swing(RightLeg, hip.mirrored(), Vec{X: -angle})
		swing(LeftLeg, hip, Vec{X: angle})
	case Wave:
		swing(RightArm, shoulder.mirrored(), Vec{Z: -150})
	case Sit:
		const arms, legs, spread = 36, 81, 18
		swing(RightArm, shoulder.mirrored(), Vec{X: arms})
		swing(LeftArm, shoulder, Vec{X: arms})
		swing(RightLeg, hip.mirrored(), Vec{X: legs, Y: -spread})
		swing(LeftLeg, hip, Vec{X: legs, Y: spread})
	case Sneak:
		const arms, lean, back = -22.9, -28.6, 4
		swing(Torso, Vec{Y: hip.Y}, Vec{X: lean})
		neck := Vec{Y: 24}
		lift := all[Torso].Moved(neck).Plus(neck.Times(-1))
		swing(RightArm, shoulder.mirrored(), Vec{X: arms})
		swing(LeftArm, shoulder, Vec{X: arms})
		for _, part := range []int{RightArm, LeftArm, HeadPart} {
			all[part].By = all[part].By.Plus(lift)
		}
		all[RightLeg].By.Z, all[LeftLeg].By.Z = lift.Z-back, lift.Z-back
	case Stand:
	}
	return all
}
