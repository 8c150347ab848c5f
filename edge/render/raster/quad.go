package raster

import (
	"math"
	"slices"

	"github.com/veneer-skins/veneer/edge/render/model"
)

// quad is a piece of a face in the picture: for each point of the picture it tells which texel
// lies there.
type quad struct {
	across, down gradient   // across the face's columns, across its rows
	corners      [4]float64 // x of the four corners
	left, right  float64    // the least and the greatest of them
	first        texel      // of the face
	columns      int        // of the sheet
	base         bool
	group        int        // boxes that are moved alike; pieces of one do not intersect
	axis         model.Axis // normal to the face
	depth        [3]depth   // along each axis of the group, growing towards the viewer
	drawOrder    int        // of two of a group in one plane the greater one is in front
	nearness     nearness
}

// depth is the range that a piece covers along an axis. It grows towards the viewer.
type depth struct{ from, to float64 }

// nearness is how near to the viewer the plane of a piece is, in units, as an affine function of the
// picture.
type nearness struct{ perX, perY, atZero float64 }

// at returns the value at a point of the picture.
func (n *nearness) at(x, y float64) float64 { return n.perX*x + n.perY*y + n.atZero }

// hides reports whether the quad is nearer than another one of its group where they overlap. Pieces that do
// not intersect are separated by a plane across one of the axes. The quad hides the other one
// if it lies on the viewer's side of that plane. Pieces on both sides of a plane that the camera
// looks along do not overlap.
func (q *quad) hides(other *quad) bool {
	if q.axis == other.axis && math.Abs(q.depth[q.axis].from-other.depth[q.axis].from) < geomEps {
		return q.drawOrder > other.drawOrder
	}
	for axis := range q.depth {
		if q.depth[axis].from > other.depth[axis].to-geomEps {
			return true
		}
	}
	return false
}

// gradient is the coordinate along one side of a face, in texels, as an affine function of the
// picture: perX·x + perY·y + atZero. Its lines of equal value are slanted, level or vertical.
type gradient struct {
	perX, perY, atZero float64
	toY                float64 // 1/perY, not of vertical ones
	top, bottom        float64 // values at the upper and the lower end of the piece
	texels             int     // of the whole face
}

// newGradient returns the gradient with these coefficients, for a piece between two of its
// values.
func newGradient(perX, perY, atZero, from, to float64, texels int) gradient {
	r := gradient{perX: perX, perY: perY, atZero: atZero, toY: 1 / perY, top: from, bottom: to, texels: texels}
	if perY < 0 {
		r.top, r.bottom = to, from
	}
	return r
}

// atTop returns the value at the upper edge of the picture, at x.
func (g *gradient) atTop(x float64) float64 { return g.perX*x + g.atZero }

// isUpright reports whether the lines of equal value are vertical.
func (g *gradient) isUpright() bool { return g.perY == 0 }

// project returns the quad of a piece in a viewport, for sheets of scale k, whose texels are
// numbered from a number on.
func (c Camera) project(p piece, view Viewport, k, number int) quad {
	// The corner and the two edges of the whole face in the picture.
	x0, y0 := view.ToPixel(c, p.Origin)
	ax, ay := view.Scale*p.Across.Dot(c.right), view.Scale*p.Across.Dot(c.down)
	dx, dy := view.Scale*p.Down.Dot(c.right), view.Scale*p.Down.Dot(c.down)

	// A point of the picture is corner + s·across + t·down. Solved for s and t, in texels.
	texels := p.Texels.Scaled(k)
	area := ax*dy - ay*dx
	w, h := float64(texels.W)/area, float64(texels.H)/area
	fromU, toU := interval(p.extent, p.Origin, p.Across)
	fromV, toV := interval(p.extent, p.Origin, p.Down)
	q := quad{
		across:    newGradient(dy*w, -dx*w, (y0*dx-x0*dy)*w, fromU*float64(texels.W), toU*float64(texels.W), texels.W),
		down:      newGradient(-ay*h, ax*h, (x0*ay-y0*ax)*h, fromV*float64(texels.H), toV*float64(texels.H), texels.H),
		columns:   SheetColumns * k,
		first:     newTexel(number+texels.Y*SheetColumns*k+texels.X, p.Light, p.base),
		base:      p.base,
		axis:      p.Axis,
		drawOrder: p.drawOrder,
		nearness:  c.nearness(p.Face, view),
	}
	q.corners = [4]float64{x0 + fromU*ax + fromV*dx, x0 + fromU*ax + toV*dx, x0 + toU*ax + fromV*dx, x0 + toU*ax + toV*dx}
	q.left, q.right = slices.Min(q.corners[:]), slices.Max(q.corners[:])
	for axis := model.Sideways; axis <= model.Lengthwise; axis++ {
		from, to := p.extent.From.Along(axis), p.extent.To.Along(axis)
		switch towards := c.towards.Along(axis); {
		case towards < 0:
			from, to = -to, -from
		case towards == 0:
			from, to = math.Inf(-1), math.Inf(1) // neither hides the other
		}
		q.depth[axis] = depth{from, to}
	}
	return q
}

// nearness returns how near to the viewer the plane of a face is.
func (c Camera) nearness(f model.Face, view Viewport) nearness {
	towards := c.towards.Along(f.Axis)
	n := nearness{
		perX: -c.right.Along(f.Axis) / (view.Scale * towards),
		perY: -c.down.Along(f.Axis) / (view.Scale * towards),
	}
	n.atZero = view.nearness + f.Origin.Along(f.Axis)/towards - n.at(view.Left, view.Top)
	return n
}

// SheetColumns is how many columns a classic sheet has.
const SheetColumns = 64

// interval returns the range that an extent covers along one side of a face, which begins at
// the origin: 0 is one end of the side and 1 the other.
func interval(e model.Box, origin, side model.Vec) (from, to float64) {
	length := side.Dot(side)
	a, b := e.From.Plus(origin.Times(-1)).Dot(side)/length, e.To.Plus(origin.Times(-1)).Dot(side)/length
	return min(a, b), max(a, b)
}

// texel is a texel of a sheet under a light: 8 times its number on the sheet, counted in rows
// from the top, with a worn sheet after a skin's, plus 4 if it belongs to the base, which is opaque
// whatever the sheet says, plus the light.
type texel uint32

const (
	ofBase   texel = 4
	oneTexel texel = 8 // from one texel to the next in its row
)

func newTexel(number int, under model.Light, base bool) texel {
	t := texel(number)*oneTexel + texel(under)
	if base {
		t += ofBase
	}
	return t
}

func (t texel) number() int        { return int(t / oneTexel) }
func (t texel) isBase() bool       { return t&ofBase != 0 }
func (t texel) light() model.Light { return model.Light(t % ofBase) }
