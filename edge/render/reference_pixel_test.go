package render_test

import "math"

// This file computes the colours that a pixel may have from what the rays of reference_test.go
// hit in it.

// colour is red, green, blue and alpha from 0 to 255, not premultiplied.
type colour [4]uint8

// blend is the colour of a stack: as a picture has it, and before rounding, premultiplied, from
// 0 to 255.
type blend struct {
	colour
	exact [4]float64
}

// blends returns the colour of each stack of a map for a sheet, under the light or without it.
func (m *referenceMap) blends(texels []byte, isLit bool) []blend {
	all := make([]blend, len(m.stacks))
	for i, s := range m.stacks {
		b := &all[i]
		through := 1.0
		for _, h := range s {
			if h == 0 {
				break
			}
			texel, light := texels[4*int(h/128):][:4], int(h%128)
			if !isLit {
				light = 100
			}
			opacity := float64(texel[3]) / 255
			for c := range 3 {
				b.exact[c] += through * opacity * float64((int(texel[c])*light+50)/100)
			}
			through *= 1 - opacity
		}
		b.exact[3] = 255 * (1 - through)
		b.colour = shown(b.exact)
		if through < 1 {
			b.colour[3] = max(1, b.colour[3]) // something is visible
		}
	}
	return all
}

// shown converts a premultiplied colour to that of a picture.
func shown(exact [4]float64) colour {
	alpha := nearest(exact[3])
	if alpha == 0 {
		return colour{}
	}
	c := colour{3: alpha}
	for i := range 3 {
		c[i] = nearest(255 * exact[i] / exact[3])
	}
	return c
}

func nearest(v float64) uint8 { return uint8(math.Round(v)) }

// maxGapShare is the share of a pixel's area that may be empty unnoticed: what the 987 points
// of such a pixel can miss or invent.
const maxGapShare = 0.01

// outcomes appends the colours that a pixel may have, given those of the stacks.
func (m *referenceMap) outcomes(list []colour, at *pixelSamples, blends []blend) []colour {
	if len(at.shares) == 0 {
		for _, n := range at.middle {
			list = append(list, blends[n].colour)
		}
		if len(list) == 0 {
			list = append(list, colour{})
		}
		return list
	}
	if !m.crisp {
		return append(list, average(at.shares, blends))
	}
	gap, whole := int32(0), int32(0)
	for _, s := range at.shares {
		whole += s.weight
		if blends[s.stack].colour[3] == 0 {
			gap += s.weight
		}
	}
	if float64(gap) <= maxGapShare*float64(whole) {
		for _, n := range at.middle {
			list = append(list, blends[n].colour)
		}
	}
	for _, n := range at.rim {
		if blends[n].colour[3] == 0 {
			gap++
		}
	}
	if gap > 0 {
		list = silhouette(list, at.shares, blends)
	}
	return list
}

// average returns the average colour of a pixel.
func average(shares []share, blends []blend) colour {
	var sum [4]float64
	whole := 0.0
	for _, s := range shares {
		weight := float64(s.weight)
		whole += weight
		for c := range 4 {
			sum[c] += weight * blends[s.stack].exact[c]
		}
	}
	for c := range 4 {
		sum[c] /= whole
	}
	return shown(sum)
}

// tieShare is by how much of a pixel's area two colours must differ for one to have the larger
// share for sure: each share may be off by half as much.
const tieShare = 2 * maxGapShare

// silhouette appends the dominant colour of a pixel with the average alpha; if several are
// about equally frequent, all of them.
func silhouette(list []colour, shares []share, blends []blend) []colour {
	var colours [64]colour
	var alphas [64]float64
	n := 0
	whole, alpha := 0.0, 0.0
	for _, s := range shares {
		c, weight := blends[s.stack].colour, float64(s.weight)
		whole += weight
		if c[3] == 0 {
			continue
		}
		opacity := weight * blends[s.stack].exact[3]
		alpha += opacity
		c[3] = 0
		i := 0
		for i < n && colours[i] != c {
			i++
		}
		if i == n {
			colours[n], alphas[n] = c, 0
			n++
		}
		alphas[i] += opacity
	}
	visible := nearest(alpha / whole)
	if visible == 0 {
		return append(list, colour{})
	}
	most := 0.0
	for _, a := range alphas[:n] {
		most = max(most, a)
	}
	for i, c := range colours[:n] {
		if alphas[i] >= most-tieShare*255*whole {
			c[3] = visible
			list = append(list, c)
		}
	}
	return list
}
