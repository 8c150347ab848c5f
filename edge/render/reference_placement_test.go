package render_test

import "math"

// placement is where a box is moved to: what the unit vectors and the origin become.
type placement struct {
	axes   [3]vec
	origin vec
}

// of returns where a point of the box is.
func (p *placement) of(at vec) vec {
	if p == nil {
		return at
	}
	to := p.origin
	for axis := range 3 {
		for i := range 3 {
			to[i] += at[axis] * p.axes[axis][i]
		}
	}
	return to
}

// before returns a point and a direction as the box has them, before it is moved.
func (p *placement) before(at, direction vec) (point, along vec) {
	if p == nil {
		return at, direction
	}
	for i := range 3 {
		at[i] -= p.origin[i]
	}
	for axis := range 3 {
		point[axis], along[axis] = dot(p.axes[axis], at), dot(p.axes[axis], direction)
		if math.Abs(along[axis]) < 1e-12 {
			along[axis] = 0 // along a side exactly
		}
	}
	return point, along
}
