package paint

import "github.com/veneer-skins/veneer/shared/skin"

// Marker returns an opaque sheet with a unique colour in every texel, so that each pixel of a
// picture can be traced to its texel. It supports up to 2²⁴ texels.
func Marker(width, height int) skin.Sheet {
	sheet := skin.NewSheet(width, height)
	for i := range width * height {
		// An odd factor permutes the numbers of 24 bits, and this one puts neighbours far
		// apart.
		colour := uint32(i) * 0x9e3779
		copy(sheet.Pix[4*i:], []byte{byte(colour >> 16), byte(colour >> 8), byte(colour), 255})
	}
	return sheet
}

// Noise returns a sheet of random texels: a third of them transparent, with a colour under
// alpha 0, a third opaque and a third in between. The same seed always gives the same sheet.
func Noise(seed uint64, width, height int) skin.Sheet {
	sheet := skin.NewSheet(width, height)
	for i := range width * height {
		bits := mix64(seed + uint64(i)*0x9e3779b97f4a7c15)
		alpha := byte(bits >> 24)
		switch bits >> 32 % 3 {
		case 0:
			alpha = 0
		case 1:
			alpha = 255
		}
		copy(sheet.Pix[4*i:], []byte{byte(bits), byte(bits >> 8), byte(bits >> 16), alpha})
	}
	return sheet
}

// mix64 hashes a number (the finalizer of SplitMix64).
func mix64(bits uint64) uint64 {
	bits = (bits ^ bits>>30) * 0xbf58476d1ce4e5b9
	bits = (bits ^ bits>>27) * 0x94d049bb133111eb
	return bits ^ bits>>31
}
