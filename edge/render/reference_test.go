package render_test

import (
	"math"
	"math/rand/v2"
	"slices"
)

// This file is a reference implementation that draws figures and capes simply and slowly: one
// ray for each of many points of a pixel, against every box. It shares nothing with the
// renderer but skin.Sheet.Normalised, which has such a test of its own, and above all no number,
// so that no mistake is made twice.

// vec is a point or a direction: x to the player's left, y upwards, z to the player's front, in
// units from between the feet.
type vec [3]float64

func dot(a, b vec) float64 { return a[0]*b[0] + a[1]*b[1] + a[2]*b[2] }

// The sides of a box, two per axis: side/2 is the axis, side%2 is 1 at its upper end.
const (
	rightSide = iota
	leftSide
	underside
	topSide
	backSide
	frontSide
)

// lights is how bright each side is, in percent.
var lights = [6]int{rightSide: 70, leftSide: 70, underside: 60, topSide: 100, backSide: 90, frontSide: 90}

// area is a rectangle of texels of a classic sheet: x, y, width, height.
type area [4]int

// modelBox is a box of the model. A layer is larger than its base by grow on every side, and
// its inner sides are visible too. Where limbs adjoin, a side is open: it is not visible, and a
// layer ends in the plane in which the limbs touch, however far its box goes beyond. For a
// layer's side that faces the camera that plane is shifted, so that it appears where that of
// the base is, but along each axis by at most grow.
type modelBox struct {
	from, to vec
	grow     float64
	layer    bool
	open     []int
	sheet    [6]area

	placed   *placement // nil if the box stays where it is
	worn     int        // scale of the worn sheet, behind the texels of the skin, that sheet lies on; 0 for the skin's
	mirrored bool       // every side shows the mirror image of its texels
	reversed bool       // its top and its underside are turned by 180°
}

// unfold returns the areas of the sides of a box of a width, height and depth that is unfolded from a place on.
func unfold(x, y, w, h, d int) [6]area {
	return [6]area{
		topSide: {x + d, y, w, d}, underside: {x + d + w, y, w, d},
		rightSide: {x, y + d, d, h}, frontSide: {x + d, y + d, w, h}, leftSide: {x + d + w, y + d, d, h}, backSide: {x + 2*d + w, y + d, w, h},
	}
}

// limb returns a box of the body that is unfolded from a place on, and its layer, from another place on.
func limb(from, to vec, open []int, x, y, layerX, layerY int) []modelBox {
	w, h, d := int(to[0]-from[0]), int(to[1]-from[1]), int(to[2]-from[2])
	return []modelBox{
		{from: from, to: to, open: open, sheet: unfold(x, y, w, h, d)},
		{from: from, to: to, open: open, sheet: unfold(layerX, layerY, w, h, d), grow: 0.25, layer: true},
	}
}

var (
	headBox = modelBox{from: vec{-4, 24, -4}, to: vec{4, 32, 4}, sheet: unfold(0, 0, 8, 8, 8)}
	hatBox  = modelBox{from: vec{-4, 24, -4}, to: vec{4, 32, 4}, sheet: unfold(32, 0, 8, 8, 8), grow: 0.5, layer: true}
)

// The boxes of the figure. Of two layers in one plane, the first in trunk, arms, legs is in front.
var (
	trunk = append([]modelBox{headBox, hatBox}, limb(vec{-4, 12, -2}, vec{4, 24, 2}, []int{rightSide, leftSide, underside}, 16, 16, 16, 32)...)
	legs  = append(
		limb(vec{-4, 0, -2}, vec{0, 12, 2}, []int{leftSide, topSide}, 0, 16, 0, 32),
		limb(vec{0, 0, -2}, vec{4, 12, 2}, []int{rightSide, topSide}, 16, 48, 0, 48)...,
	)
	classicArms, slimArms = armsOf(8), armsOf(7)
)

// armsOf returns both arms, the outer sides of which are so far from the middle.
func armsOf(shoulder float64) []modelBox {
	return append(
		limb(vec{-shoulder, 12, -2}, vec{-4, 24, 2}, []int{leftSide}, 40, 16, 40, 32),
		limb(vec{4, 12, -2}, vec{shoulder, 24, 2}, []int{rightSide}, 32, 48, 48, 48)...,
	)
}

// grown returns two corners of the box with its growth.
func (b *modelBox) grown() (low, high vec) {
	for i := range 3 {
		low[i], high[i] = b.from[i]-b.grow, b.to[i]+b.grow
	}
	return low, high
}

// texel returns the texel of a sheet of scale k at a point of a side.
func (b *seenBox) texel(side int, p vec, k int) int32 {
	for axis := range 3 {
		p[axis] = (p[axis] - b.low[axis]) / (b.high[axis] - b.low[axis])
	}
	var s, t float64 // rightwards and downwards on the sheet, from 0 to 1
	switch side {
	case rightSide:
		s, t = p[2], 1-p[1]
	case frontSide:
		s, t = p[0], 1-p[1]
	case leftSide:
		s, t = 1-p[2], 1-p[1]
	case backSide:
		s, t = 1-p[0], 1-p[1]
	case topSide, underside:
		s, t = p[0], p[2]
	}
	if b.mirrored {
		s = 1 - s
	}
	if b.reversed && (side == topSide || side == underside) {
		s, t = 1-s, 1-t
	}
	first := 0
	if b.worn > 0 {
		first, k = 64*k*64*k, b.worn
	}
	at := b.sheet[side]
	w, h := at[2]*k, at[3]*k
	u := min(max(int(s*float64(w)), 0), w-1)
	v := min(max(int(t*float64(h)), 0), h-1)
	return int32(first + (at[1]*k+v)*64*k + at[0]*k + u)
}

// hit is a texel that a ray hits, and its light: texel·128 + light.
type hit int32

// stack is what a ray hits, nearest first, up to the opaque base; 0 ends it.
type stack [20]hit

// camera looks at boxes along parallel rays.
type camera struct {
	right, down, toward vec
	scale               float64 // pixels per unit
	x, y                float64 // pixel of the origin
}

// look returns a camera with a yaw and a pitch, in radians.
func look(yaw, pitch float64) camera {
	sinY, cosY := math.Sincos(yaw)
	sinP, cosP := math.Sincos(pitch)
	for _, v := range []*float64{&sinY, &cosY} {
		*v = math.Round(*v*1e12) / 1e12 // along an axis exactly
	}
	return camera{
		right:  vec{cosY, 0, sinY},
		down:   vec{-sinY * sinP, -cosP, cosY * sinP},
		toward: vec{-sinY * cosP, sinP, cosY * cosP},
		scale:  1,
	}
}

// extent returns the bounding rectangle of boxes in the picture.
func (c *camera) extent(boxes []modelBox) (x0, y0, x1, y1 float64) {
	x0, y0, x1, y1 = math.Inf(1), math.Inf(1), math.Inf(-1), math.Inf(-1)
	for i := range boxes {
		low, high := boxes[i].grown()
		for corner := range 8 {
			p := low
			for axis := range 3 {
				if corner>>axis&1 == 1 {
					p[axis] = high[axis]
				}
			}
			p = boxes[i].placed.of(p)
			x, y := c.x+c.scale*dot(c.right, p), c.y+c.scale*dot(c.down, p)
			x0, y0, x1, y1 = min(x0, x), min(y0, y), max(x1, x), max(y1, y)
		}
	}
	return x0, y0, x1, y1
}

// centre moves the camera so that the middle of the boxes' extent is at a pixel.
func (c *camera) centre(boxes []modelBox, x, y float64) {
	x0, y0, x1, y1 := c.extent(boxes)
	c.x += x - (x0+x1)/2
	c.y += y - (y0+y1)/2
}

// seenBox is a box with what a camera's rays through it have in common, in the box's own coordinates.
type seenBox struct {
	*modelBox
	low, high          vec
	origin, perX, perY vec    // a ray starts at origin + x·perX + y·perY
	toward, inverse    vec    // its direction, and 1 over each coordinate
	shifts             [6]vec // by how much a layer's side that faces the camera is shifted from the base
}

// see returns the box as the camera sees it.
func (c *camera) see(b *modelBox) *seenBox {
	s := &seenBox{modelBox: b}
	s.low, s.high = b.grown()
	start := func(x, y float64) (start vec) {
		for axis := range 3 {
			start[axis] = c.right[axis]*(x-c.x)/c.scale + c.down[axis]*(y-c.y)/c.scale
		}
		start, s.toward = b.placed.before(start, c.toward)
		return start
	}
	s.origin, s.perX, s.perY = start(0, 0), start(1, 0), start(0, 1)
	for axis := range 3 {
		s.perX[axis] -= s.origin[axis]
		s.perY[axis] -= s.origin[axis]
		s.inverse[axis] = 1 / s.toward[axis]
	}
	for side := range s.shifts {
		across := s.toward[side/2]
		if side%2 == 0 {
			across = -across
		}
		if b.layer && across > 0 {
			for axis := range 3 {
				s.shifts[side][axis] = min(max(b.grow*s.toward[axis]/across, -b.grow), b.grow)
			}
		}
	}
	return s
}

// start returns where the ray through a point of the picture starts.
func (b *seenBox) start(x, y float64) (start vec) {
	for axis := range 3 {
		start[axis] = b.origin[axis] + x*b.perX[axis] + y*b.perY[axis]
	}
	return start
}

// at returns the point of a ray at a depth.
func (b *seenBox) at(start vec, depth float64) vec {
	for axis := range 3 {
		start[axis] -= depth * b.toward[axis]
	}
	return start
}

// isVisible reports whether a side is visible at a point of it.
func (b *seenBox) isVisible(side int, p vec) bool {
	for _, open := range b.open {
		axis, upper := open/2, open%2 == 1
		at := p[axis] - b.shifts[side][axis]
		if side == open || upper && at > b.to[axis] || !upper && at < b.from[axis] {
			return false
		}
	}
	return true
}

// ray returns what a ray through a point of the picture hits, and which side of which base box
// it ends at, or -1.
func (c *camera) ray(boxes []*seenBox, x, y float64, k int) (met stack, base int) {
	// crossing is where the ray passes through a side.
	type crossing struct {
		depth     float64
		box, side int
	}
	var list [len(met) + 1]crossing
	n := 0
boxes:
	for i, b := range boxes {
		// The ray is inside the box where it is between both planes of each axis.
		start := b.start(x, y)
		enter, leave := math.Inf(-1), math.Inf(1)
		var in, out int
		for axis := range 3 {
			near, far := (start[axis]-b.high[axis])*b.inverse[axis], (start[axis]-b.low[axis])*b.inverse[axis]
			nearSide, farSide := 2*axis+1, 2*axis
			if near > far {
				near, far, nearSide, farSide = far, near, farSide, nearSide
			}
			if near > enter {
				enter, in = near, nearSide
			}
			if far < leave {
				leave, out = far, farSide
			}
			if enter >= leave {
				continue boxes
			}
		}
		if b.isVisible(in, b.at(start, enter)) {
			list[n] = crossing{enter, i, in}
			n++
		}
		if b.layer && b.isVisible(out, b.at(start, leave)) {
			list[n] = crossing{leave, i, out}
			n++
		}
	}

	// Nearest first, by a stable insertion sort of short lists.
	const same = 1e-9
	for i := range n {
		for j := i; j > 0 && list[j].depth < list[j-1].depth-same; j-- {
			list[j], list[j-1] = list[j-1], list[j]
		}
	}
	for i, at := range list[:n] {
		b := boxes[at.box]
		met[i] = hit(b.texel(at.side, b.at(b.start(x, y), at.depth), k)*128) + hit(lights[at.side])
		if !b.layer {
			return met, 6*at.box + at.side
		}
	}
	return met, -1
}

// share is how much of a pixel shows a stack.
type share struct{ stack, weight int32 }

// pixelSamples is what a pixel shows, whatever the skin: at its centre, with what may be there
// if a border of texels runs through it; on its rim; and in its area. A pixel without shares
// shows the same everywhere: something opaque, or nothing.
type pixelSamples struct {
	middle, rim []int32
	shares      []share
}

// referenceMap is the picture of all skins of one shape. Crisp pictures show what is at the
// centre of a pixel, smooth ones the average.
type referenceMap struct {
	width, height int
	crisp         bool
	rows          []int // those that are computed, from the top
	stacks        []stack
	pixels        []pixelSamples
	numbers       map[stack]int32
	last          stack // that was interned, and its number
	lastNumber    int32
}

// newReferenceMap returns a map in which one row in step is computed, chosen at random, so that
// no periodic error is always missed.
func newReferenceMap(width, height, step int) *referenceMap {
	p := &referenceMap{width: width, height: height, pixels: make([]pixelSamples, width*height), numbers: map[stack]int32{}}
	chance := rand.New(rand.NewPCG(uint64(width), uint64(height)))
	for y := 0; y < height; y += step {
		p.rows = append(p.rows, y+chance.IntN(min(step, height-y)))
	}
	return p
}

// intern returns the number of a stack.
func (m *referenceMap) intern(s stack) int32 {
	if s == m.last && len(m.stacks) > 0 {
		return m.lastNumber
	}
	n, ok := m.numbers[s]
	if !ok {
		n = int32(len(m.stacks))
		m.numbers[s] = n
		m.stacks = append(m.stacks, s)
	}
	m.last, m.lastNumber = s, n
	return n
}

// lattices are the points at which a pixel is sampled: the point i of a Fibonacci lattice lies
// at i/points across and i·turn/points down, modulo 1. A regular grid of as many points would
// err most for borders along rows or columns, which the edges of a head are.
//
// For a straight border in any direction, 377 points give the area on either side to 0.2 % of
// the pixel on average and 2.7 % at worst; 6765 points to 0.02 % and 0.5 %. The fainter a
// pixel, the more that matters to its colour, so finer lattices are used until enough points
// hit something, and enough the base, before which a layer may be transparent.
var lattices = []struct{ points, turn int }{{377, 233}, {987, 610}, {2584, 1597}, {6765, 4181}}

const minHits = 377

// texelTolerance is how far a border of texels may be off, in pixels.
const texelTolerance = 1e-3

// edgePoints is at how many points of each edge a pixel is sampled, for gaps that reach into it
// between the points of the lattice.
const edgePoints = 24

// draw computes the columns from x0 to x1 of what a camera sees of boxes.
func (m *referenceMap) draw(c camera, boxes []modelBox, x0, x1, k int) {
	frames, seen := make([][4]float64, len(boxes)), make([]*seenBox, len(boxes))
	for i := range boxes {
		seen[i] = c.see(&boxes[i])
		frames[i][0], frames[i][1], frames[i][2], frames[i][3] = c.extent(boxes[i : i+1])
	}
	var near []*seenBox
	for _, y := range m.rows {
		for x := x0; x < x1; x++ {
			left, top := float64(x), float64(y)
			near = near[:0]
			for i, f := range frames {
				if f[0] < left+1+texelTolerance && f[2] > left-texelTolerance && f[1] < top+1+texelTolerance && f[3] > top-texelTolerance {
					near = append(near, seen[i])
				}
			}
			if len(near) > 0 {
				m.pixels[y*m.width+x] = m.sample(&c, near, left, top, k)
			}
		}
	}
}

// sample samples the pixel with the top left corner x, y.
func (m *referenceMap) sample(c *camera, boxes []*seenBox, x, y float64, k int) pixelSamples {
	var at pixelSamples
	if m.crisp {
		for _, dx := range []float64{0, -texelTolerance, texelTolerance} {
			for _, dy := range []float64{0, -texelTolerance, texelTolerance} {
				s, _ := c.ray(boxes, x+0.5+dx, y+0.5+dy, k)
				at.middle = m.add(at.middle, s)
			}
		}
		// The picture of a side is convex: if the corners of the pixel lie in it, all of the
		// pixel does, and the base is opaque.
		sides := map[int]bool{}
		for _, dx := range []float64{-texelTolerance, 1 + texelTolerance} {
			for _, dy := range []float64{-texelTolerance, 1 + texelTolerance} {
				_, base := c.ray(boxes, x+dx, y+dy, k)
				sides[base] = true
			}
		}
		if len(sides) == 1 && !sides[-1] {
			return pixelSamples{middle: at.middle}
		}
		for i := range edgePoints {
			along := float64(i) / edgePoints
			for _, across := range []float64{-texelTolerance, 1 + texelTolerance} {
				s, _ := c.ray(boxes, x+along, y+across, k)
				at.rim = m.add(at.rim, s)
				s, _ = c.ray(boxes, x+across, y+1-along, k)
				at.rim = m.add(at.rim, s)
			}
		}
	}
	fewest, of := minHits, minHits // hits, and points, of the last lattice
	for i, l := range lattices {
		if i+1 < len(lattices) && fewest*l.points < minHits*of {
			continue // it would have too few hits
		}
		at.shares = at.shares[:0]
		something, opaque := 0, 0
		for i := range l.points {
			dx, dy := (float64(i)+0.5)/float64(l.points), (float64(i*l.turn%l.points)+0.5)/float64(l.points)
			s, base := c.ray(boxes, x+dx, y+dy, k)
			at.share(m.intern(s), 1)
			if s[0] != 0 {
				something++
			}
			if base >= 0 {
				opaque++
			}
		}
		if (something == 0 || something >= minHits) && (opaque == 0 || opaque >= minHits) {
			break
		}
		if fewest, of = something, l.points; opaque > 0 {
			fewest = min(something, opaque)
		}
	}
	return at
}

// add adds a stack to a set.
func (m *referenceMap) add(set []int32, s stack) []int32 {
	n := m.intern(s)
	if slices.Contains(set, n) {
		return set
	}
	return append(set, n)
}

// share adds a weight to the share of a stack.
func (p *pixelSamples) share(n, weight int32) {
	for i := range p.shares {
		if p.shares[i].stack == n {
			p.shares[i].weight += weight
			return
		}
	}
	p.shares = append(p.shares, share{n, weight})
}

// previewReference returns the map of a figure from the front and from the back.
func previewReference(arms []modelBox, height, k, step int) *referenceMap {
	const degree = math.Pi / 180
	classic := slices.Concat(trunk, classicArms, legs)
	figure := slices.Concat(trunk, arms, legs)

	front, back := look(-45*degree, 25*degree), look(135*degree, 25*degree)
	x0, y0, x1, y1 := front.extent(classic)
	scale := float64(height) / (y1 - y0)
	half := int(math.Ceil(scale * (x1 - x0 + 1)))

	p := newReferenceMap(2*half, height, step)
	p.crisp = scale >= 4*float64(k)
	front.scale, back.scale = scale, scale
	front.centre(classic, float64(half)/2, float64(height)/2)
	back.centre(classic, 3*float64(half)/2, 0)
	back.y = front.y // both stand on the same ground
	p.draw(front, figure, 0, half, k)
	p.draw(back, figure, half, 2*half, k)
	return p
}

// capeReference returns the map of a cape's two faces, each in the middle of its half. Texels
// are a whole number of pixels wide where the faces then fill at least nine tenths of the
// height; elsewhere the faces fill all of it.
func capeReference(height, k, step int) *referenceMap {
	half := height * 11 / 16
	p := newReferenceMap(2*half, height, step)
	w, h := height*10/16, height
	if texel := height / (16 * k); 10*16*k*texel >= 9*height {
		w, h = 10*k*texel, 16*k*texel
	}
	for i, column := range []int{1, 12} {
		p.spread(i*half+(half-w)/2, (height-h)/2, w, h, 10*k, 16*k, func(u, v int) stack {
			return stack{hit(((k+v)*64*k+column*k+u)*128 + 100)}
		})
	}
	return p
}

// spread maps a grid of columns × rows texels to a rectangle of the picture.
func (m *referenceMap) spread(x0, y0, w, h, columns, rows int, texel func(u, v int) stack) {
	for _, row := range m.rows {
		y := row - y0
		if y < 0 || y >= h {
			continue
		}
		for x := range w {
			at := &m.pixels[row*m.width+x0+x]
			for v := y * rows / h; v*h < (y+1)*rows; v++ {
				for u := x * columns / w; u*w < (x+1)*columns; u++ {
					wide := min((x+1)*columns, (u+1)*w) - max(x*columns, u*w)
					high := min((y+1)*rows, (v+1)*h) - max(y*rows, v*h)
					at.share(m.intern(texel(u, v)), int32(wide*high))
				}
			}
		}
	}
}
