package render

import (
	"math"
	"slices"

	"github.com/veneer-skins/veneer/shared/skin"
)

// grid is how many samples a pixel has in each direction.
const grid = 4

// sample is a colour in the making: red, green, blue and alpha in 16 bits each,
// from the lowest to the highest, the colours multiplied by the alpha. Sixteen
// bits keep the faintest texel's colour exact.
type sample uint64

// opaque is the alpha of an opaque sample, and full what the samples of a pixel
// add up to when all are.
const (
	opaque = 0xffff
	full   = grid * grid * opaque
)

// sampleOf returns the sample of a texel under a light in hundredths.
func sampleOf(texel []byte, light int) sample {
	alpha := uint64(texel[3])
	lit := func(c byte) uint64 {
		return ((uint64(c)*uint64(light)+50)/100*alpha*257 + 127) / 255
	}
	return sample(lit(texel[0]) | lit(texel[1])<<16 | lit(texel[2])<<32 | alpha*257<<48)
}

// alpha returns how opaque the sample is, from 0 to opaque.
func (s sample) alpha() uint64 { return uint64(s >> 48) }

// over returns the sample laid over another one.
func (s sample) over(below sample) sample {
	through := opaque - s.alpha()
	for shift := 0; shift < 64; shift += 16 {
		lane := uint64(below>>shift) & opaque
		s += sample((lane*through+opaque/2)/opaque) << shift
	}
	return s
}

// strip is where one row of pixels takes shape: grid rows of samples, one after
// the other, and how near each sample is.
type strip struct {
	width    int // of a row, in samples
	crisp    bool
	samples  []sample
	nearness []float32
}

// paint draws quads into the picture, in their order; of opaque texels the
// nearest shows, and others are laid over what was drawn before and is farther.
// Samples take the nearest texel, and a pixel is the average of its samples; in
// a crisp picture only where it is not opaque, that is at the outline, while
// inside it shows the one texel at its middle.
func (p Picture) paint(sheet skin.Sheet, quads []quad, crisp bool) {
	s := strip{width: grid * p.Width, crisp: crisp}
	s.samples = make([]sample, grid*s.width)
	s.nearness = make([]float32, grid*s.width)

	// Most layers have faces with nothing on them.
	quads = slices.DeleteFunc(quads, func(q quad) bool { return blank(sheet, q.texels) })
	for y := range p.Height {
		left, right := p.Width, 0 // the columns that quads touch
		for i := range quads {
			if q := &quads[i]; q.meets(y) {
				left, right = min(left, int(q.left)), max(right, int(q.right)+1)
			}
		}
		left, right = max(left, 0), min(right, p.Width)
		if left >= right {
			continue
		}
		s.clear(left, right)
		for i := range quads {
			if q := &quads[i]; q.meets(y) {
				for row := range grid {
					s.draw(sheet, q, y, row)
				}
			}
		}
		for x := left; x < right; x++ {
			s.resolve(x, p.Pix[4*(y*p.Width+x):][:4])
		}
	}
}

// blank reports whether nothing of a rectangle of texels is visible.
func blank(sheet skin.Sheet, r skin.Rect) bool {
	for y := range r.H {
		row := sheet.Pix[sheet.At(r.X, r.Y+y):][:4*r.W]
		for i := 3; i < len(row); i += 4 {
			if row[i] != 0 {
				return false
			}
		}
	}
	return true
}

// meets reports whether the quad touches a row of pixels.
func (q *quad) meets(y int) bool { return q.top < float64(y+1) && q.bottom > float64(y) }

// clear empties the pixels from left to right.
func (s *strip) clear(left, right int) {
	for row := range grid {
		from, to := row*s.width+grid*left, row*s.width+grid*right
		clear(s.samples[from:to])
		for i := from; i < to; i++ {
			s.nearness[i] = -math.MaxFloat32
		}
	}
}

// centre returns where in the picture, in pixels, the middle of a sample lies.
func centre(index int) float64 { return (float64(index) + 0.5) / grid }

// along returns the value over a row of samples: at sample i it is the first
// result plus i times the second.
func (l linear) along(y float64) (start, step float64) {
	return l.at(centre(0), y), l.perX / grid
}

// draw draws a quad into one row of samples of the row y of pixels.
func (s *strip) draw(sheet skin.Sheet, q *quad, y, row int) {
	height := centre(grid*y + row)
	u0, du := q.u.along(height)
	v0, dv := q.v.along(height)
	z0, dz := q.nearness.along(height)
	samples, nearness := s.samples[row*s.width:][:s.width], s.nearness[row*s.width:][:s.width]

	from, to := within(0, s.width, u0, du, q.texels.W)
	from, to = within(from, to, v0, dv, q.texels.H)
	perU, perV := 1/du, 1/dv // samples to a texel
	for i := from; i < to; {
		// All samples up to end show the same texel.
		u := texelAt(u0+du*float64(i), q.texels.W)
		v := texelAt(v0+dv*float64(i), q.texels.H)
		end := min(to, max(i+1, min(leaves(u, u0, du, perU), leaves(v, v0, dv, perV))))

		texel := sheet.Pix[sheet.At(q.texels.X+u, q.texels.Y+v):][:4]
		if texel[3] == 0 {
			i = end
			continue
		}
		colour := sampleOf(texel, q.light)
		near, nearer := float32(z0+dz*float64(i)), float32(dz)
		run, known := samples[i:end], nearness[i:end]
		for j := range run {
			if near >= known[j] {
				known[j] = near
				if colour.alpha() == opaque {
					run[j] = colour
				} else {
					run[j] = colour.over(run[j])
				}
			}
			near += nearer
		}
		i = end
	}
}

// slack widens quads, in samples, so that rounding leaves no sample between two
// that share an edge.
const slack = 1e-6

// within narrows a range of samples to those at which a value that starts at
// start and grows by step lies between 0 and limit.
func within(from, to int, start, step float64, limit int) (narrowedFrom, narrowedTo int) {
	first, last := -start/step, (float64(limit)-start)/step
	if step < 0 {
		first, last = last, first
	}
	return max(from, int(math.Ceil(first-slack))), min(to, int(math.Floor(last+slack))+1)
}

// texelAt returns the texel that holds a value; the slack may put it just
// outside of the first or last one.
func texelAt(value float64, limit int) int { return min(max(int(value), 0), limit-1) }

// leaves returns the first sample at which a value that starts at start and
// grows by step is in another texel than the given one.
func leaves(texel int, start, step, perTexel float64) int {
	edge := float64(texel)
	if step > 0 {
		edge++
	}
	return int(math.Ceil((edge - start) * perTexel))
}

// resolve averages the samples of the pixel x.
func (s *strip) resolve(x int, pixel []byte) {
	// Two sums of two colours each, in the halves of a word: 16 samples of 16
	// bits fit with room to spare.
	const halves = 0x0000ffff_0000ffff
	var redBlue, greenAlpha uint64
	for row := range grid {
		for _, c := range s.samples[row*s.width+grid*x:][:grid] {
			redBlue += uint64(c) & halves
			greenAlpha += uint64(c>>16) & halves
		}
	}
	red, blue := redBlue&math.MaxUint32, redBlue>>32
	green, alpha := greenAlpha&math.MaxUint32, greenAlpha>>32

	if s.crisp && alpha == full {
		c := s.samples[grid/2*s.width+grid*x+grid/2]
		pixel[0], pixel[1], pixel[2], pixel[3] = byte(c>>8), byte(c>>24), byte(c>>40), 255
		return
	}

	const step = full / 255 // what one of 255 shades adds up to
	visible := (alpha + step/2) / step
	if visible == 0 {
		return
	}
	pixel[0] = byte((red*255 + alpha/2) / alpha)
	pixel[1] = byte((green*255 + alpha/2) / alpha)
	pixel[2] = byte((blue*255 + alpha/2) / alpha)
	pixel[3] = byte(visible)
}
