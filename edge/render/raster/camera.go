package raster

import (
	"math"

	"github.com/veneer-skins/veneer/edge/render/model"
)

// Camera is an orthographic camera: parallels stay parallel. Its directions are orthonormal.
type Camera struct{ right, down, towards model.Vec }

// NewCamera returns a camera. The yaw, in degrees, turns the player to the viewer's right: 0
// shows the player from the front, 45 the face on the viewer's right, 180 the back. The pitch,
// in radians, is the elevation of the camera above the horizon.
func NewCamera(yaw, pitch float64) Camera {
	sinYaw, cosYaw := model.Sincos(yaw * math.Pi / 180)
	sinPitch, cosPitch := model.Sincos(pitch)
	return Camera{
		right:   model.Vec{X: cosYaw, Y: 0, Z: sinYaw},
		down:    model.Vec{X: -sinYaw * sinPitch, Y: -cosPitch, Z: cosYaw * sinPitch},
		towards: model.Vec{X: -sinYaw * cosPitch, Y: sinPitch, Z: cosYaw * cosPitch},
	}
}

// isEdgeOn reports whether a face is a line for the camera.
func (c Camera) isEdgeOn(f model.Face) bool { return c.towards.Along(f.Axis) == 0 }

// facesCamera reports whether the camera sees a face from outside its box.
func (c Camera) facesCamera(f model.Face) bool { return c.towards.Along(f.Axis)*f.Outwards > 0 }

// Extent is a rectangle of the camera's image, in units; y grows downwards.
type Extent struct{ Left, Top, Right, Bottom float64 }

// ExtentOf returns the bounding rectangle of boxes.
func (c Camera) ExtentOf(boxes ...model.PlacedBox) Extent {
	e := Extent{Left: math.Inf(1), Top: math.Inf(1), Right: math.Inf(-1), Bottom: math.Inf(-1)}
	for _, b := range boxes {
		for _, corner := range b.Box.Corners() {
			corner = b.Motion.Moved(corner)
			x, y := corner.Dot(c.right), corner.Dot(c.down)
			e.Left, e.Right = min(e.Left, x), max(e.Right, x)
			e.Top, e.Bottom = min(e.Top, y), max(e.Bottom, y)
		}
	}
	return e
}

// Union returns the bounding rectangle of both.
func (e Extent) Union(other Extent) Extent {
	return Extent{min(e.Left, other.Left), min(e.Top, other.Top), max(e.Right, other.Right), max(e.Bottom, other.Bottom)}
}

// Width returns the width of the rectangle.
func (e Extent) Width() float64 { return e.Right - e.Left }

// Height returns the height of the rectangle.
func (e Extent) Height() float64 { return e.Bottom - e.Top }

// Viewport maps the camera's image to the picture: the point x, y of the image, in units, is
// the pixel left + scale·x, top + scale·y. Nearness is how near to the viewer the model's origin is, in
// units.
type Viewport struct{ Left, Top, Scale, nearness float64 }

// ToPixel returns where in the picture a point of the model is.
func (v Viewport) ToPixel(c Camera, p model.Vec) (x, y float64) {
	return v.Left + v.Scale*p.Dot(c.right), v.Top + v.Scale*p.Dot(c.down)
}

// seenFrom returns how the camera sees what is moved, in the coordinates before the motion.
func (c Camera) seenFrom(m model.Motion) Camera {
	before := func(v model.Vec) model.Vec { return model.Vec{X: v.Dot(m.X), Y: v.Dot(m.Y), Z: v.Dot(m.Z)} }
	return Camera{right: before(c.right), down: before(c.down), towards: before(c.towards)}
}

// moved returns the viewport for what the camera sees moved by a vector.
func (v Viewport) moved(c Camera, by model.Vec) Viewport {
	v.Left, v.Top = v.ToPixel(c, by)
	v.nearness += by.Dot(c.towards)
	return v
}

// Centred returns the viewport in which an extent, drawn to a scale, lies in the middle of
// width × height pixels, left pixels from the picture's edge.
func Centred(e Extent, scale float64, left, width, height int) Viewport {
	return Viewport{
		Left:  float64(left) + float64(width)/2 - scale*(e.Left+e.Right)/2,
		Top:   float64(height)/2 - scale*(e.Top+e.Bottom)/2,
		Scale: scale,
	}
}
