package render_test

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/veneer-skins/veneer/shared/skin"
)

// This file is a reference implementation that draws figures and capes simply and slowly: one
// ray for each of many points of a pixel, against every box. It shares nothing with the
// renderer, above all no number, so that no mistake is made twice.

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

var (
	headBox = modelBox{from: vec{-4, 24, -4}, to: vec{4, 32, 4}, sheet: [6]area{
		topSide: {8, 0, 8, 8}, underside: {16, 0, 8, 8}, rightSide: {0, 8, 8, 8}, frontSide: {8, 8, 8, 8}, leftSide: {16, 8, 8, 8}, backSide: {24, 8, 8, 8},
	}}
	hatBox = modelBox{from: vec{-4, 24, -4}, to: vec{4, 32, 4}, grow: 0.5, layer: true, sheet: [6]area{
		topSide: {40, 0, 8, 8}, underside: {48, 0, 8, 8}, rightSide: {32, 8, 8, 8}, frontSide: {40, 8, 8, 8}, leftSide: {48, 8, 8, 8}, backSide: {56, 8, 8, 8},
	}}
)

// The boxes of the figure besides head and hat. Of two layers in one plane, the first in trunk,
// arms, legs is in front.
var trunk = []modelBox{
	headBox,
	hatBox,
	{from: vec{-4, 12, -2}, to: vec{4, 24, 2}, open: []int{rightSide, leftSide, underside}, sheet: [6]area{ // body
		topSide: {20, 16, 8, 4}, underside: {28, 16, 8, 4}, rightSide: {16, 20, 4, 12}, frontSide: {20, 20, 8, 12}, leftSide: {28, 20, 4, 12}, backSide: {32, 20, 8, 12},
	}},
	{from: vec{-4, 12, -2}, to: vec{4, 24, 2}, grow: 0.25, layer: true, open: []int{rightSide, leftSide, underside}, sheet: [6]area{ // jacket
		topSide: {20, 32, 8, 4}, underside: {28, 32, 8, 4}, rightSide: {16, 36, 4, 12}, frontSide: {20, 36, 8, 12}, leftSide: {28, 36, 4, 12}, backSide: {32, 36, 8, 12},
	}},
}

var legs = []modelBox{
	{from: vec{-4, 0, -2}, to: vec{0, 12, 2}, open: []int{leftSide, topSide}, sheet: [6]area{ // right leg
		topSide: {4, 16, 4, 4}, underside: {8, 16, 4, 4}, rightSide: {0, 20, 4, 12}, frontSide: {4, 20, 4, 12}, leftSide: {8, 20, 4, 12}, backSide: {12, 20, 4, 12},
	}},
	{from: vec{-4, 0, -2}, to: vec{0, 12, 2}, grow: 0.25, layer: true, open: []int{leftSide, topSide}, sheet: [6]area{ // right pants
		topSide: {4, 32, 4, 4}, underside: {8, 32, 4, 4}, rightSide: {0, 36, 4, 12}, frontSide: {4, 36, 4, 12}, leftSide: {8, 36, 4, 12}, backSide: {12, 36, 4, 12},
	}},
	{from: vec{0, 0, -2}, to: vec{4, 12, 2}, open: []int{rightSide, topSide}, sheet: [6]area{ // left leg
		topSide: {20, 48, 4, 4}, underside: {24, 48, 4, 4}, rightSide: {16, 52, 4, 12}, frontSide: {20, 52, 4, 12}, leftSide: {24, 52, 4, 12}, backSide: {28, 52, 4, 12},
	}},
	{from: vec{0, 0, -2}, to: vec{4, 12, 2}, grow: 0.25, layer: true, open: []int{rightSide, topSide}, sheet: [6]area{ // left pants
		topSide: {4, 48, 4, 4}, underside: {8, 48, 4, 4}, rightSide: {0, 52, 4, 12}, frontSide: {4, 52, 4, 12}, leftSide: {8, 52, 4, 12}, backSide: {12, 52, 4, 12},
	}},
}

var classicArms = []modelBox{
	{from: vec{-8, 12, -2}, to: vec{-4, 24, 2}, open: []int{leftSide}, sheet: [6]area{ // right arm
		topSide: {44, 16, 4, 4}, underside: {48, 16, 4, 4}, rightSide: {40, 20, 4, 12}, frontSide: {44, 20, 4, 12}, leftSide: {48, 20, 4, 12}, backSide: {52, 20, 4, 12},
	}},
	{from: vec{-8, 12, -2}, to: vec{-4, 24, 2}, grow: 0.25, layer: true, open: []int{leftSide}, sheet: [6]area{ // right sleeve
		topSide: {44, 32, 4, 4}, underside: {48, 32, 4, 4}, rightSide: {40, 36, 4, 12}, frontSide: {44, 36, 4, 12}, leftSide: {48, 36, 4, 12}, backSide: {52, 36, 4, 12},
	}},
	{from: vec{4, 12, -2}, to: vec{8, 24, 2}, open: []int{rightSide}, sheet: [6]area{ // left arm
		topSide: {36, 48, 4, 4}, underside: {40, 48, 4, 4}, rightSide: {32, 52, 4, 12}, frontSide: {36, 52, 4, 12}, leftSide: {40, 52, 4, 12}, backSide: {44, 52, 4, 12},
	}},
	{from: vec{4, 12, -2}, to: vec{8, 24, 2}, grow: 0.25, layer: true, open: []int{rightSide}, sheet: [6]area{ // left sleeve
		topSide: {52, 48, 4, 4}, underside: {56, 48, 4, 4}, rightSide: {48, 52, 4, 12}, frontSide: {52, 52, 4, 12}, leftSide: {56, 52, 4, 12}, backSide: {60, 52, 4, 12},
	}},
}

var slimArms = []modelBox{
	{from: vec{-7, 12, -2}, to: vec{-4, 24, 2}, open: []int{leftSide}, sheet: [6]area{ // right arm
		topSide: {44, 16, 3, 4}, underside: {47, 16, 3, 4}, rightSide: {40, 20, 4, 12}, frontSide: {44, 20, 3, 12}, leftSide: {47, 20, 4, 12}, backSide: {51, 20, 3, 12},
	}},
	{from: vec{-7, 12, -2}, to: vec{-4, 24, 2}, grow: 0.25, layer: true, open: []int{leftSide}, sheet: [6]area{ // right sleeve
		topSide: {44, 32, 3, 4}, underside: {47, 32, 3, 4}, rightSide: {40, 36, 4, 12}, frontSide: {44, 36, 3, 12}, leftSide: {47, 36, 4, 12}, backSide: {51, 36, 3, 12},
	}},
	{from: vec{4, 12, -2}, to: vec{7, 24, 2}, open: []int{rightSide}, sheet: [6]area{ // left arm
		topSide: {36, 48, 3, 4}, underside: {39, 48, 3, 4}, rightSide: {32, 52, 4, 12}, frontSide: {36, 52, 3, 12}, leftSide: {39, 52, 4, 12}, backSide: {43, 52, 3, 12},
	}},
	{from: vec{4, 12, -2}, to: vec{7, 24, 2}, grow: 0.25, layer: true, open: []int{rightSide}, sheet: [6]area{ // left sleeve
		topSide: {52, 48, 3, 4}, underside: {55, 48, 3, 4}, rightSide: {48, 52, 4, 12}, frontSide: {52, 52, 3, 12}, leftSide: {55, 52, 4, 12}, backSide: {59, 52, 3, 12},
	}},
}

// grown returns two corners of the box with its growth.
func (b *modelBox) grown() (low, high vec) {
	for i := range 3 {
		low[i], high[i] = b.from[i]-b.grow, b.to[i]+b.grow
	}
	return low, high
}

// isVisible reports whether a side is visible at a point of it, from a camera in a direction.
func (b *modelBox) isVisible(side int, p, toward vec) bool {
	across := toward[side/2]
	if side%2 == 0 {
		across = -across
	}
	if b.layer && across > 0 {
		// Shift the point towards the base.
		for axis := range 3 {
			p[axis] -= min(max(b.grow*toward[axis]/across, -b.grow), b.grow)
		}
	}
	for _, open := range b.open {
		axis, upper := open/2, open%2 == 1
		if side == open || upper && p[axis] > b.to[axis] || !upper && p[axis] < b.from[axis] {
			return false
		}
	}
	return true
}

// texel returns the texel of a sheet of scale k at a point of a side.
func (b *modelBox) texel(side int, p vec, k int) int32 {
	low, high := b.grown()
	for axis := range 3 {
		p[axis] = (p[axis] - low[axis]) / (high[axis] - low[axis])
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

// ray returns what a ray through a point of the picture hits, and which side of which base box
// it ends at, or -1.
func (c *camera) ray(boxes []*modelBox, x, y float64, k int) (met stack, base int) {
	var start vec
	for axis := range 3 {
		start[axis] = c.right[axis]*(x-c.x)/c.scale + c.down[axis]*(y-c.y)/c.scale
	}

	// crossing is where the ray passes through a side.
	type crossing struct {
		depth     float64
		at        vec
		box, side int
	}
	var list [len(met) + 1]crossing
	n := 0
	cross := func(box, side int, depth float64, start, toward vec) {
		at := start
		for axis := range 3 {
			at[axis] -= depth * toward[axis]
		}
		if boxes[box].isVisible(side, at, toward) {
			list[n] = crossing{depth, at, box, side}
			n++
		}
	}
	for i, b := range boxes {
		// The ray is inside the box where it is between both planes of each axis.
		low, high := b.grown()
		start, toward := b.placed.before(start, c.toward)
		enter, leave := math.Inf(-1), math.Inf(1)
		var in, out int
		for axis := range 3 {
			near, far := (start[axis]-high[axis])/toward[axis], (start[axis]-low[axis])/toward[axis]
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
		}
		if enter >= leave {
			continue
		}
		cross(i, in, enter, start, toward)
		if b.layer {
			cross(i, out, leave, start, toward)
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
		met[i] = hit(b.texel(at.side, at.at, k)*128) + hit(lights[at.side])
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
	n, ok := m.numbers[s]
	if !ok {
		n = int32(len(m.stacks))
		m.numbers[s] = n
		m.stacks = append(m.stacks, s)
	}
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
	frames := make([][4]float64, len(boxes))
	for i := range boxes {
		frames[i][0], frames[i][1], frames[i][2], frames[i][3] = c.extent(boxes[i : i+1])
	}
	for _, y := range m.rows {
		for x := x0; x < x1; x++ {
			left, top := float64(x), float64(y)
			var near []*modelBox
			for i, f := range frames {
				if f[0] < left+1+texelTolerance && f[2] > left-texelTolerance && f[1] < top+1+texelTolerance && f[3] > top-texelTolerance {
					near = append(near, &boxes[i])
				}
			}
			if len(near) > 0 {
				m.pixels[y*m.width+x] = m.sample(&c, near, left, top, k)
			}
		}
	}
}

// sample samples the pixel with the top left corner x, y.
func (m *referenceMap) sample(c *camera, boxes []*modelBox, x, y float64, k int) pixelSamples {
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
	for _, l := range lattices {
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
func (at *pixelSamples) share(n, weight int32) {
	for i := range at.shares {
		if at.shares[i].stack == n {
			at.shares[i].weight += weight
			return
		}
	}
	at.shares = append(at.shares, share{n, weight})
}

// isometricReference returns the map of an isometric head.
func isometricReference(side, k, step int) *referenceMap {
	boxes := []modelBox{headBox, hatBox}
	c := look(math.Pi/4, math.Atan(1/math.Sqrt2))
	_, y0, _, y1 := c.extent(boxes)
	c.scale = float64(side) / (y1 - y0)
	c.centre(boxes, float64(side)/2, float64(side)/2)

	p := newReferenceMap(side, side, step)
	p.crisp = c.scale >= 4*float64(k)
	p.draw(c, boxes, 0, side, k)
	return p
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

// withOpaqueBase returns the texels of a skin as the game shows them: 64k × 64k, the base
// opaque.
func withOpaqueBase(sheet skin.Sheet) []byte {
	k := sheet.Width / 64
	all := make([]byte, 4*64*k*64*k)
	copy(all, sheet.Pix)
	texel := func(x, y int) []byte { return all[4*(y*64*k+x):][:4] }
	alphas := func(x, y, w, h int, set func(alpha *byte)) {
		for v := y * k; v < (y+h)*k; v++ {
			for u := x * k; u < (x+w)*k; u++ {
				set(&texel(u, v)[3])
			}
		}
	}
	opaque := func(alpha *byte) { *alpha = 255 }

	legacy := sheet.Height < sheet.Width
	if legacy {
		for _, m := range []struct{ x, y, w, h, toX, toY int }{
			{4, 16, 4, 4, 20, 48},
			{8, 16, 4, 4, 24, 48},
			{0, 20, 4, 12, 24, 52},
			{4, 20, 4, 12, 20, 52},
			{8, 20, 4, 12, 16, 52},
			{12, 20, 4, 12, 28, 52},
			{44, 16, 4, 4, 36, 48},
			{48, 16, 4, 4, 40, 48},
			{40, 20, 4, 12, 40, 52},
			{44, 20, 4, 12, 36, 52},
			{48, 20, 4, 12, 32, 52},
			{52, 20, 4, 12, 44, 52},
		} {
			for v := range m.h * k {
				for u := range m.w * k {
					copy(texel((m.toX+m.w)*k-1-u, m.toY*k+v), texel(m.x*k+u, m.y*k+v))
				}
			}
		}
	}
	alphas(0, 0, 32, 16, opaque)
	if legacy {
		seeThrough := false
		alphas(32, 0, 32, 32, func(alpha *byte) { seeThrough = seeThrough || *alpha < 128 })
		if !seeThrough {
			alphas(32, 0, 32, 32, func(alpha *byte) { *alpha = 0 })
		}
	}
	alphas(0, 16, 64, 16, opaque)
	alphas(16, 48, 32, 16, opaque)
	return all
}
