package model

import "math"

// Motion is a rotation, perhaps with a reflection, and then a shift.
type Motion struct {
	X, Y, Z Vec // what the unit vectors become
	By      Vec // the shift
}

// still moves nothing.
var still = Motion{X: Vec{X: 1}, Y: Vec{Y: 1}, Z: Vec{Z: 1}}

// rotation returns the rotation by angles in degrees, about the x axis, then y, then z, as the game
// turns limbs. Positive ones swing a hanging limb forward, turn one that points forward to the
// player's left, and swing a hanging one to the left.
func rotation(angles Vec) Motion {
	sinX, cosX := Sincos(angles.X * math.Pi / 180)
	sinY, cosY := Sincos(angles.Y * math.Pi / 180)
	sinZ, cosZ := Sincos(angles.Z * math.Pi / 180)
	about := func(x, y, z Vec) Motion { return Motion{X: x, Y: y, Z: z} }
	return about(Vec{cosZ, sinZ, 0}, Vec{-sinZ, cosZ, 0}, Vec{0, 0, 1}).
		after(about(Vec{cosY, 0, -sinY}, Vec{0, 1, 0}, Vec{sinY, 0, cosY})).
		after(about(Vec{1, 0, 0}, Vec{0, cosX, -sinX}, Vec{0, sinX, cosX}))
}

// turned returns what a direction becomes.
func (m Motion) turned(v Vec) Vec {
	return m.X.Times(v.X).Plus(m.Y.Times(v.Y)).Plus(m.Z.Times(v.Z))
}

// Moved returns what a point becomes.
func (m Motion) Moved(p Vec) Vec { return m.turned(p).Plus(m.By) }

// after returns the motion that does another one first.
func (m Motion) after(first Motion) Motion {
	return Motion{m.turned(first.X), m.turned(first.Y), m.turned(first.Z), m.Moved(first.By)}
}

// about returns a rotation, shifted so that a point stays where it is.
func (m Motion) about(p Vec) Motion {
	m.By = p.Plus(m.turned(p).Times(-1))
	return m
}

// mirrored returns the motion of the mirror image of what is moved: left and right are exchanged.
func (m Motion) mirrored() Motion {
	return Motion{m.X.mirrored(), m.Y.mirrored(), m.Z.mirrored(), m.By.mirrored()}
}

// PlacedBox is a box and where it is moved to.
type PlacedBox struct {
	Box    Box
	Motion Motion
}

// Sincos is math.Sincos, but exactly 0 at all multiples of a right angle: a camera along an axis sees
// the faces along it edge-on.
func Sincos(angle float64) (sin, cos float64) {
	const rounding = 1e-15
	exact := func(v float64) float64 {
		if math.Abs(v) < rounding {
			return 0
		}
		return v
	}
	sin, cos = math.Sincos(angle)
	return exact(sin), exact(cos)
}
