package main

import "github.com/veneer-skins/veneer/shared/skin"

// shader returns the colour of the texel x, y in a rectangle that is filled with one colour.
// A transparent colour stays transparent.
type shader func(colour rgba, face skin.Rect, x, y int) rgba

// fabric has a grain, and is darker at its sides and its hem.
func fabric(colour rgba, face skin.Rect, x, y int) rgba {
	light := int(mix64(uint64(face.Y+y)<<32|uint64(face.X+x))%7) - 3
	if x == 0 || x == face.W-1 {
		light -= 5
	}
	if y > 0 && y == face.H-1 {
		light -= 6
	}
	return colour.lighten(light)
}

// solid does not shade.
func solid(colour rgba, _ skin.Rect, _, _ int) rgba { return colour }

// smooth is a gradient from light to dark, downwards and towards the sides.
func smooth(colour rgba, face skin.Rect, x, y int) rgba {
	aside := 2*x - (face.W - 1)
	light := 20 - 40*y/face.H - 24*aside*aside/(face.W*face.W)
	return colour.shift(light, light, light)
}

// grain makes every texel lighter or darker at random, by at most reach of 255.
func grain(seed uint64, reach int) shader {
	return func(colour rgba, face skin.Rect, x, y int) rgba {
		light := hashN(seed, face.X+x, face.Y+y, 2*reach+1) - reach
		return colour.shift(light, light, light)
	}
}

// speckle is grain with independent red, green and blue.
func speckle(seed uint64, reach int) shader {
	return func(colour rgba, face skin.Rect, x, y int) rgba {
		by := func(channel uint64) int { return hashN(seed+channel, face.X+x, face.Y+y, 2*reach+1) - reach }
		return colour.shift(by(0), by(1), by(2))
	}
}

// dither is a gradient of a few shades, step of 255 apart, which are mixed where they meet.
func dither(seed uint64, shades, step int) shader {
	return func(colour rgba, face skin.Rect, x, y int) rgba {
		quarters := 4*(shades-1)*y/face.H + hashN(seed, face.X+x, face.Y+y, 4)
		light := (shades/2 - quarters/4) * step
		return colour.shift(light, light, light)
	}
}

// enlarged is a shader of classic texels under a finer one, on a sheet of scale k.
func enlarged(k int, coarse, fine shader) shader {
	return func(colour rgba, face skin.Rect, x, y int) rgba {
		classic := skin.Rect{X: face.X / k, Y: face.Y / k, W: face.W / k, H: face.H / k}
		return fine(coarse(colour, classic, x/k, y/k), face, x, y)
	}
}

// hashN returns a number below n, always the same for the same arguments.
func hashN(seed uint64, x, y, n int) int {
	return int(mix64(mix64(seed)^uint64(y)<<32^uint64(x)) % uint64(n))
}

// mix64 hashes a number (the finalizer of SplitMix64).
func mix64(bits uint64) uint64 {
	bits = (bits ^ bits>>30) * 0xbf58476d1ce4e5b9
	bits = (bits ^ bits>>27) * 0x94d049bb133111eb
	return bits ^ bits>>31
}
