// Package model describes what is drawn: the player of the game, standing or in another Pose.
//
// A player is six body parts, each a box (the base) and a slightly larger one over it (the layer), which
// stands off 0.5 units around the head and 0.25 elsewhere and is clipped where body parts adjoin. Body
// parts that a pose moves apart go through each other instead, and so does what a player wears: a cape is
// one box, and elytra are two, the right one the mirror image of the left. A unit is a texel of a classic
// sheet. Boxes are unfolded on the sheet as skin.Faces, skin.CapeFaces and skin.ElytraFaces say. What lies
// behind holes and translucent texels shows through, including the inner sides of layers.
//
// The light is fixed to each box, however it is turned: it leaves 100 % of a colour on top, 90 % in front
// and behind, 70 % at the sides and 60 % beneath, on inner sides too, so that a texel has the same colour
// in every pose.
package model

import "github.com/veneer-skins/veneer/shared/skin"

// Vec is a point or a direction in the model's space, in units. A unit is the side of a classic
// texel; x grows to the player's left, y upwards, z to the player's front. The origin lies on
// the ground, between the feet.
type Vec struct{ X, Y, Z float64 }

// Plus returns the sum of two vectors.
func (v Vec) Plus(w Vec) Vec { return Vec{v.X + w.X, v.Y + w.Y, v.Z + w.Z} }

// Times returns the vector, scaled.
func (v Vec) Times(f float64) Vec { return Vec{v.X * f, v.Y * f, v.Z * f} }

// Dot returns the scalar product of two vectors.
func (v Vec) Dot(w Vec) float64 { return v.X*w.X + v.Y*w.Y + v.Z*w.Z }

// Along returns the coordinate along an axis.
func (v Vec) Along(axis Axis) float64 { return [3]float64{v.X, v.Y, v.Z}[axis] }

func (v Vec) mirrored() Vec { return Vec{-v.X, v.Y, v.Z} }

// With returns the point with another coordinate along an axis.
func (v Vec) With(axis Axis, at float64) Vec {
	*[]*float64{&v.X, &v.Y, &v.Z}[axis] = at
	return v
}

// Axis is one of the three axes of the model's space.
type Axis uint8

// The axes.
const (
	Sideways Axis = iota
	Upright
	Lengthwise
)

// Box is a box of the model, its edges along the axes.
type Box struct{ From, To Vec }

// grown returns the box with every side moved outwards.
func (b Box) grown(by float64) Box {
	d := Vec{by, by, by}
	return Box{From: b.From.Plus(d.Times(-1)), To: b.To.Plus(d)}
}

// Moved returns the box shifted by a vector.
func (b Box) Moved(by Vec) Box { return Box{From: b.From.Plus(by), To: b.To.Plus(by)} }

// Within returns the intersection with another box.
func (b Box) Within(other Box) Box {
	return Box{
		From: Vec{max(b.From.X, other.From.X), max(b.From.Y, other.From.Y), max(b.From.Z, other.From.Z)},
		To:   Vec{min(b.To.X, other.To.X), min(b.To.Y, other.To.Y), min(b.To.Z, other.To.Z)},
	}
}

// ContainsPlaneOf reports whether the plane of a face goes through the inside of the box.
func (b Box) ContainsPlaneOf(f Face) bool {
	at := f.Origin.Along(f.Axis)
	return b.From.Along(f.Axis) < at && at < b.To.Along(f.Axis)
}

// Corners returns the eight corners of the box.
func (b Box) Corners() []Vec {
	all := make([]Vec, 0, 8)
	for _, x := range []float64{b.From.X, b.To.X} {
		for _, y := range []float64{b.From.Y, b.To.Y} {
			for _, z := range []float64{b.From.Z, b.To.Z} {
				all = append(all, Vec{x, y, z})
			}
		}
	}
	return all
}

// Face is one side of a box: a rectangle in space and the texels on it.
type Face struct {
	Origin       Vec // of the top left corner of the texels
	Across, Down Vec // along their first row, along their first column
	Axis         Axis
	Outwards     float64 // 1 if the outer normal points along the axis, -1 if against it
	Light        Light
	Texels       skin.Rect
}

// Light is how bright a face is. It is fixed to the model: it comes from above and from before
// and behind the player, so that a skin's front is as bright in every mode.
type Light uint8

// The lights.
const (
	LightAbove Light = iota
	LightFront
	LightAside
	LightBeneath
)

// FacesOf returns the six sides of a box with their texels: as the game unfolds boxes, which
// skin.Box describes.
func FacesOf(c Box, texels skin.Box) [6]Face {
	w, h, d := c.To.X-c.From.X, c.To.Y-c.From.Y, c.To.Z-c.From.Z
	left, right := Vec{w, 0, 0}, Vec{-w, 0, 0} // the player's
	down := Vec{0, -h, 0}
	ahead, astern := Vec{0, 0, d}, Vec{0, 0, -d}
	return [6]Face{
		{Vec{c.From.X, c.To.Y, c.From.Z}, left, ahead, Upright, 1, LightAbove, texels.Top},
		{c.From, left, ahead, Upright, -1, LightBeneath, texels.Bottom},
		{Vec{c.From.X, c.To.Y, c.From.Z}, ahead, down, Sideways, -1, LightAside, texels.Right},
		{Vec{c.From.X, c.To.Y, c.To.Z}, left, down, Lengthwise, 1, LightFront, texels.Front},
		{c.To, astern, down, Sideways, 1, LightAside, texels.Left},
		{Vec{c.To.X, c.To.Y, c.From.Z}, right, down, Lengthwise, -1, LightFront, texels.Back},
	}
}

// Bounds returns the extent of the face.
func (f Face) Bounds() Box {
	a, b := f.Origin, f.Origin.Plus(f.Across).Plus(f.Down)
	return Box{
		From: Vec{min(a.X, b.X), min(a.Y, b.Y), min(a.Z, b.Z)},
		To:   Vec{max(a.X, b.X), max(a.Y, b.Y), max(a.Z, b.Z)},
	}
}
