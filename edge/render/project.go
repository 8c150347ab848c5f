package render

import (
	"math"

	"github.com/veneer-skins/veneer/shared/skin"
)

// vec is a point or a direction in the model's space, in units. A unit is the side of a classic
// texel; x grows to the player's left, y upwards, z to the player's front. The origin lies on
// the ground, between the feet.
type vec struct{ x, y, z float64 }

func (a vec) plus(b vec) vec          { return vec{a.x + b.x, a.y + b.y, a.z + b.z} }
func (a vec) times(f float64) vec     { return vec{a.x * f, a.y * f, a.z * f} }
func (a vec) mirrored() vec           { return vec{-a.x, a.y, a.z} }
func (a vec) dot(b vec) float64       { return a.x*b.x + a.y*b.y + a.z*b.z }
func (a vec) along(axis axis) float64 { return [3]float64{a.x, a.y, a.z}[axis] }

// with returns the point with another coordinate along an axis.
func (a vec) with(axis axis, at float64) vec {
	*[]*float64{&a.x, &a.y, &a.z}[axis] = at
	return a
}

// axis is one of the three axes of the model's space.
type axis uint8

const (
	sideways axis = iota
	upright
	lengthwise
)

// cuboid is a box of the model, its edges along the axes.
type cuboid struct{ from, to vec }

// grown returns the box with every side moved outwards.
func (c cuboid) grown(by float64) cuboid {
	d := vec{by, by, by}
	return cuboid{from: c.from.plus(d.times(-1)), to: c.to.plus(d)}
}

// moved returns the box shifted by a vector.
func (c cuboid) moved(by vec) cuboid { return cuboid{from: c.from.plus(by), to: c.to.plus(by)} }

// within returns the intersection with another box.
func (c cuboid) within(other cuboid) cuboid {
	return cuboid{
		from: vec{max(c.from.x, other.from.x), max(c.from.y, other.from.y), max(c.from.z, other.from.z)},
		to:   vec{min(c.to.x, other.to.x), min(c.to.y, other.to.y), min(c.to.z, other.to.z)},
	}
}

// containsPlaneOf reports whether the plane of a face goes through the inside of the box.
func (c cuboid) containsPlaneOf(f face) bool {
	at := f.origin.along(f.axis)
	return c.from.along(f.axis) < at && at < c.to.along(f.axis)
}

// corners returns the eight corners of the box.
func (c cuboid) corners() []vec {
	all := make([]vec, 0, 8)
	for _, x := range []float64{c.from.x, c.to.x} {
		for _, y := range []float64{c.from.y, c.to.y} {
			for _, z := range []float64{c.from.z, c.to.z} {
				all = append(all, vec{x, y, z})
			}
		}
	}
	return all
}

// face is one side of a box: a rectangle in space and the texels on it.
type face struct {
	origin       vec // of the top left corner of the texels
	across, down vec // along their first row, along their first column
	axis         axis
	outwards     float64 // 1 if the outer normal points along the axis, -1 if against it
	light        light
	texels       skin.Rect
}

// light is how bright a face is. It is fixed to the model: it comes from above and from before
// and behind the player, so that a skin's front is as bright in every mode.
type light uint8

const (
	lightAbove light = iota
	lightFront
	lightAside
	lightBeneath
)

// lights are what each light leaves of a colour, in percent.
type lights [4]uint32

var (
	modelLights = lights{lightAbove: 100, lightFront: 90, lightAside: 70, lightBeneath: 60}
	noLights    = lights{lightAbove: 100, lightFront: 100, lightAside: 100, lightBeneath: 100}
)

// facesOf returns the six sides of a box with their texels: as the game unfolds boxes, which
// skin.Box describes.
func facesOf(c cuboid, texels skin.Box) [6]face {
	w, h, d := c.to.x-c.from.x, c.to.y-c.from.y, c.to.z-c.from.z
	left, right := vec{w, 0, 0}, vec{-w, 0, 0} // the player's
	down := vec{0, -h, 0}
	ahead, astern := vec{0, 0, d}, vec{0, 0, -d}
	return [6]face{
		{vec{c.from.x, c.to.y, c.from.z}, left, ahead, upright, 1, lightAbove, texels.Top},
		{c.from, left, ahead, upright, -1, lightBeneath, texels.Bottom},
		{vec{c.from.x, c.to.y, c.from.z}, ahead, down, sideways, -1, lightAside, texels.Right},
		{vec{c.from.x, c.to.y, c.to.z}, left, down, lengthwise, 1, lightFront, texels.Front},
		{c.to, astern, down, sideways, 1, lightAside, texels.Left},
		{vec{c.to.x, c.to.y, c.from.z}, right, down, lengthwise, -1, lightFront, texels.Back},
	}
}

// camera is an orthographic camera: parallels stay parallel. Its directions are orthonormal.
type camera struct{ right, down, towards vec }

// newCamera returns a camera. The yaw, in degrees, turns the player to the viewer's right: 0
// shows the player from the front, 45 the face on the viewer's right, 180 the back. The pitch,
// in radians, is the elevation of the camera above the horizon.
func newCamera(yaw, pitch float64) camera {
	sinYaw, cosYaw := sincos(yaw * math.Pi / 180)
	sinPitch, cosPitch := sincos(pitch)
	return camera{
		right:   vec{cosYaw, 0, sinYaw},
		down:    vec{-sinYaw * sinPitch, -cosPitch, cosYaw * sinPitch},
		towards: vec{-sinYaw * cosPitch, sinPitch, cosYaw * cosPitch},
	}
}

// sincos is math.Sincos, but exactly 0 at all multiples of a right angle: a camera along an axis sees
// the faces along it edge-on.
func sincos(angle float64) (sin, cos float64) {
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

// isEdgeOn reports whether a face is a line for the camera.
func (c camera) isEdgeOn(f face) bool { return c.towards.along(f.axis) == 0 }

// facesCamera reports whether the camera sees a face from outside its box.
func (c camera) facesCamera(f face) bool { return c.towards.along(f.axis)*f.outwards > 0 }

// extent is a rectangle of the camera's image, in units; y grows downwards.
type extent struct{ left, top, right, bottom float64 }

// extentOf returns the bounding rectangle of boxes.
func (c camera) extentOf(boxes ...placedBox) extent {
	e := extent{left: math.Inf(1), top: math.Inf(1), right: math.Inf(-1), bottom: math.Inf(-1)}
	for _, b := range boxes {
		for _, corner := range b.box.corners() {
			corner = b.motion.moved(corner)
			x, y := corner.dot(c.right), corner.dot(c.down)
			e.left, e.right = min(e.left, x), max(e.right, x)
			e.top, e.bottom = min(e.top, y), max(e.bottom, y)
		}
	}
	return e
}

// union returns the bounding rectangle of both.
func (e extent) union(other extent) extent {
	return extent{min(e.left, other.left), min(e.top, other.top), max(e.right, other.right), max(e.bottom, other.bottom)}
}

func (e extent) width() float64  { return e.right - e.left }
func (e extent) height() float64 { return e.bottom - e.top }

// viewport maps the camera's image to the picture: the point x, y of the image, in units, is
// the pixel left + scale·x, top + scale·y. Nearness is how near to the viewer the model's origin is, in
// units.
type viewport struct{ left, top, scale, nearness float64 }

// toPixel returns where in the picture a point of the model is.
func (v viewport) toPixel(c camera, p vec) (x, y float64) {
	return v.left + v.scale*p.dot(c.right), v.top + v.scale*p.dot(c.down)
}
