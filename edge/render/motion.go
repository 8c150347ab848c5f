package render

import "math"

// motion is a rotation, perhaps with a reflection, and then a shift.
type motion struct {
	x, y, z vec // what the unit vectors become
	by      vec // the shift
}

// still moves nothing.
var still = motion{x: vec{x: 1}, y: vec{y: 1}, z: vec{z: 1}}

// rotation returns the rotation by angles in degrees, about the x axis, then y, then z, as the game
// turns limbs. Positive ones swing a hanging limb forward, turn one that points forward to the
// player's left, and swing a hanging one to the left.
func rotation(angles vec) motion {
	sinX, cosX := sincos(angles.x * math.Pi / 180)
	sinY, cosY := sincos(angles.y * math.Pi / 180)
	sinZ, cosZ := sincos(angles.z * math.Pi / 180)
	about := func(x, y, z vec) motion { return motion{x: x, y: y, z: z} }
	return about(vec{cosZ, sinZ, 0}, vec{-sinZ, cosZ, 0}, vec{0, 0, 1}).
		after(about(vec{cosY, 0, -sinY}, vec{0, 1, 0}, vec{sinY, 0, cosY})).
		after(about(vec{1, 0, 0}, vec{0, cosX, -sinX}, vec{0, sinX, cosX}))
}

// turned returns what a direction becomes.
func (m motion) turned(v vec) vec {
	return m.x.times(v.x).plus(m.y.times(v.y)).plus(m.z.times(v.z))
}

// moved returns what a point becomes.
func (m motion) moved(p vec) vec { return m.turned(p).plus(m.by) }

// after returns the motion that does another one first.
func (m motion) after(first motion) motion {
	return motion{m.turned(first.x), m.turned(first.y), m.turned(first.z), m.moved(first.by)}
}

// about returns a rotation, shifted so that a point stays where it is.
func (m motion) about(p vec) motion {
	m.by = p.plus(m.turned(p).times(-1))
	return m
}

// mirrored returns the motion of the mirror image of what is moved: left and right are exchanged.
func (m motion) mirrored() motion {
	return motion{m.x.mirrored(), m.y.mirrored(), m.z.mirrored(), m.by.mirrored()}
}

// placedBox is a box and where it is moved to.
type placedBox struct {
	box    cuboid
	motion motion
}

// seenFrom returns how the camera sees what is moved, in the coordinates before the motion.
func (c camera) seenFrom(m motion) camera {
	before := func(v vec) vec { return vec{v.dot(m.x), v.dot(m.y), v.dot(m.z)} }
	return camera{right: before(c.right), down: before(c.down), towards: before(c.towards)}
}

// moved returns the viewport for what the camera sees moved by a vector.
func (v viewport) moved(c camera, by vec) viewport {
	v.left, v.top = v.toPixel(c, by)
	v.nearness += by.dot(c.towards)
	return v
}
