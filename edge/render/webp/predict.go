package webp

import (
	"math"
	"slices"
)

// The predictors that are tried, by their numbers in the format (RFC 9649, section 3.5.1). In
// pictures of texels the others are seldom better, and the more are in use, the more distinct
// residuals there are.
const (
	fromLeft     = 1
	fromTop      = 2
	fromNearer   = 11 // left or top
	fromGradient = 12 // left + top - topLeft
)

var predictors = [...]uint32{fromLeft, fromTop, fromNearer, fromGradient}

// predicted returns the prediction for a pixel from the ones on its left, above it, and
// diagonally above it on the left.
func predicted(predictor, left, top, topLeft uint32) uint32 {
	switch predictor {
	case fromLeft:
		return left
	case fromTop:
		return top
	}
	// If two neighbours are equal, both remaining predictors return the third.
	switch {
	case top == topLeft:
		return left
	case left == topLeft:
		return top
	case predictor == fromNearer:
		if distance(top, topLeft) < distance(left, topLeft) {
			return left
		}
		return top
	default:
		return gradient(left, top, topLeft)
	}
}

// alike reports whether a pixel equals all of its neighbours.
func alike(v, left, top, topLeft uint32) bool { return (v^left)|(v^top)|(v^topLeft) == 0 }

// gradient returns left + top - topLeft, each channel clamped.
func gradient(left, top, topLeft uint32) (v uint32) {
	for shift := 0; shift < 32; shift += 8 {
		sum := int32(left>>shift&255) + int32(top>>shift&255) - int32(topLeft>>shift&255)
		v |= uint32(min(max(sum, 0), 255)) << shift
	}
	return v
}

// distance returns the sum of the absolute differences of the channels.
func distance(a, b uint32) (sum int32) {
	for shift := 0; shift < 32; shift += 8 {
		d := int32(a>>shift&255) - int32(b>>shift&255)
		sum += max(d, -d)
	}
	return sum
}

// minus subtracts each channel of b from the same channel of a.
func minus(a, b uint32) uint32 {
	alphaGreen := (a | 0x00ff00ff) - b&0xff00ff00
	redBlue := (a | 0xff00ff00) - b&0x00ff00ff
	return alphaGreen&0xff00ff00 | redBlue&0x00ff00ff
}

// differences is the estimated cost of the residual of a channel.
var differences = func() (all [256]cost) {
	for d := range all {
		size := float64(min(d, 256-d))
		all[d] = cost(float64(perBit) * (0.5 + 1.6*math.Log2(1+size)))
	}
	all[0] = perBit / 4
	return all
}()

// differenceCost returns the estimated cost of the residual of a pixel.
func differenceCost(d uint32) cost {
	return differences[d&255] + differences[d>>8&255] + differences[d>>16&255] + differences[d>>24]
}

// The sizes of tiles with one predictor each: sides of 1 << bits pixels.
const (
	minTileBits = 2
	maxTileBits = 5
)

// modeChangeCost is the estimated cost of a predictor that differs from the one of a
// neighbouring tile.
const modeChangeCost = 3 * perBit

// prediction is an image as residuals of predictors.
type prediction struct {
	tileBits uint
	cost     uint64 // of the residuals, estimated
	modes    raster // the predictor of each tile, in green
	residual raster // the residual of each pixel

	tileCosts [maxTileBits + 1][]tileCosts
	best      [maxTileBits + 1][]uint32
}

// tileCosts is the cost of the residuals of a tile by predictor.
type tileCosts [len(predictors)]cost

// choose chooses the predictors.
func (p *prediction) choose(r *raster) {
	width, height := r.width, len(r.same)
	p.evaluate(r)
	lowest := uint64(math.MaxUint64)
	for bits := uint(minTileBits); bits <= maxTileBits; bits++ {
		across := tilesOf(width, bits)
		if bits > minTileBits {
			p.merge(bits, across, tilesOf(height, bits), tilesOf(width, bits-1))
		}
		if total := p.chooseTiles(bits, across); total < lowest {
			lowest, p.tileBits = total, bits
		}
	}
	p.cost = lowest
}

// predict sets the images of modes and residuals.
func (p *prediction) predict(r *raster) {
	width, height := r.width, len(r.same)
	p.modes.reset(tilesOf(width, p.tileBits), tilesOf(height, p.tileBits))
	for tile, predictor := range p.best[p.tileBits] {
		p.modes.px[tile] = 0xff000000 | predictor<<8
	}
	p.modes.findRepeats()
	p.subtract(r)
}

// evaluate computes the costs of the smallest tiles.
func (p *prediction) evaluate(r *raster) {
	width, height := r.width, len(r.same)
	across := tilesOf(width, minTileBits)
	costs := zeroed(p.tileCosts[minTileBits], across*tilesOf(height, minTileBits))
	p.tileCosts[minTileBits] = costs
	for y := 1; y < height; y++ {
		row := costs[y>>minTileBits*across:][:across]
		for x := 1; x < width; x++ {
			i := y*width + x
			v, left, top, topLeft := r.px[i], r.px[i-1], r.px[i-width], r.px[i-width-1]
			if alike(v, left, top, topLeft) {
				continue // all predictors are right
			}
			sums := &row[x>>minTileBits] // in the order of predictors
			byLeft, byTop := differenceCost(minus(v, left)), differenceCost(minus(v, top))
			sums[0] += byLeft
			sums[1] += byTop
			switch {
			case top == topLeft: // both others predict the left one
				sums[2] += byLeft
				sums[3] += byLeft
			case left == topLeft:
				sums[2] += byTop
				sums[3] += byTop
			default:
				sums[2] += differenceCost(minus(v, predicted(fromNearer, left, top, topLeft)))
				sums[3] += differenceCost(minus(v, gradient(left, top, topLeft)))
			}
		}
	}
}

// merge adds up the costs of up to four tiles for each tile of twice their side.
func (p *prediction) merge(bits uint, across, down, acrossBefore int) {
	p.tileCosts[bits] = zeroed(p.tileCosts[bits], across*down)
	for tile, sums := range p.tileCosts[bits-1] {
		y, x := tile/acrossBefore, tile%acrossBefore
		for k, sum := range sums {
			p.tileCosts[bits][y/2*across+x/2][k] += sum
		}
	}
}

// chooseTiles chooses the predictors of tiles of a size and returns their estimated total cost.
func (p *prediction) chooseTiles(bits uint, across int) (total uint64) {
	best := slices.Grow(p.best[bits][:0], len(p.tileCosts[bits]))[:len(p.tileCosts[bits])]
	p.best[bits] = best
	for tile, sums := range p.tileCosts[bits] {
		lowest := cost(math.MaxUint32)
		for k, predictor := range predictors {
			cost := sums[k]
			if tile%across > 0 && best[tile-1] != predictor {
				cost += modeChangeCost
			}
			if tile >= across && best[tile-across] != predictor {
				cost += modeChangeCost
			}
			if cost < lowest {
				lowest, best[tile] = cost, predictor
			}
		}
		total += uint64(lowest)
	}
	return total
}

// subtract sets residual. The prediction for the first pixel is opaque black, for the others of
// the first row the one on their left, for the first column the one above.
func (p *prediction) subtract(r *raster) {
	width := r.width
	p.residual.reset(width, len(r.same))
	residual := p.residual.px
	residual[0] = minus(r.px[0], 0xff000000)
	for x := 1; x < width; x++ {
		residual[x] = minus(r.px[x], r.px[x-1])
	}
	across := tilesOf(width, p.tileBits)
	for y := 1; y < len(r.same); y++ {
		from := y * width
		modes := p.best[p.tileBits][y>>p.tileBits*across:][:across]
		residual[from] = minus(r.px[from], r.px[from-width])
		for x := 1; x < width; x++ {
			i := from + x
			v, left, top, topLeft := r.px[i], r.px[i-1], r.px[i-width], r.px[i-width-1]
			if alike(v, left, top, topLeft) {
				residual[i] = 0
			} else {
				residual[i] = minus(v, predicted(modes[x>>p.tileBits], left, top, topLeft))
			}
		}
	}
	p.residual.findRepeats()
}

// zeroed returns n zero values, in the memory of s if they fit.
func zeroed[T any](s []T, n int) []T {
	s = slices.Grow(s[:0], n)[:n]
	clear(s)
	return s
}
