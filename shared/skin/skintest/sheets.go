package skintest

import (
	"embed"

	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/skin/artwork"
)

//go:embed sheets/*.png
var sheets embed.FS

// Skins returns fifty skins, always the same: the skins of artwork, and random ones shaded in all
// the ways in which players shade theirs: with narrow or wide grain, dithered by hand, smooth,
// in few colours, detailed on HD sheets. Three are pure noise, the worst case of an upload.
func Skins() []artwork.NamedSheet {
	skins := artwork.Skins()
	for _, random := range []struct {
		name  string
		model skin.Type
	}{
		{"Fine Grain 1", skin.Classic},
		{"Fine Grain 2", skin.Slim},
		{"Fine Grain 3", skin.Classic},
		{"Fine Grain 4", skin.Slim},
		{"Fine Grain 5", skin.Classic},
		{"Fine Grain 6", skin.Slim},
		{"Grain 1", skin.Classic},
		{"Grain 2", skin.Slim},
		{"Grain 3", skin.Classic},
		{"Grain 4", skin.Slim},
		{"Coarse Grain 1", skin.Classic},
		{"Coarse Grain 2", skin.Slim},
		{"Coarse Grain 3", skin.Classic},
		{"Speckle 1", skin.Slim},
		{"Speckle 2", skin.Classic},
		{"Dither 1", skin.Slim},
		{"Dither 2", skin.Classic},
		{"Dither 3", skin.Slim},
		{"Dither 4", skin.Classic},
		{"Smooth 1", skin.Slim},
		{"Smooth 2", skin.Classic},
		{"Plain 1", skin.Slim},
		{"Plain 2", skin.Classic},
		{"Plain 3", skin.Slim},
		{"Old Grain 1", skin.Classic},
		{"Old Grain 2", skin.Classic},
		{"Old Dither 1", skin.Classic},
		{"Old Plain 1", skin.Classic},
		{"HD Dither 1", skin.Classic},
		{"HD Grain 1", skin.Slim},
		{"HD Smooth 1", skin.Classic},
		{"HD Detail 1", skin.Slim},
		{"HD Detail 2", skin.Classic},
		{"HD Fine 1", skin.Slim},
		{"HD Enlarged 1", skin.Classic},
	} {
		skins = append(skins, artwork.NamedSheet{Name: random.name, Type: random.model, Sheet: artwork.Decode(sheets, "sheets/"+random.name)})
	}
	return append(skins,
		artwork.NamedSheet{Name: "Noise", Type: skin.Slim, Sheet: Noise(101, 64, 64)},
		artwork.NamedSheet{Name: "Old Noise", Type: skin.Classic, Sheet: Noise(102, 64, 32)},
		artwork.NamedSheet{Name: "HD Noise", Type: skin.Slim, Sheet: Noise(103, 128, 128)},
	)
}

// Capes returns eight capes, always the same: the capes of artwork, and others shaded in the ways of
// Skins.
func Capes() []artwork.NamedSheet {
	capes := artwork.Capes()
	for _, name := range []string{"Plain Cape", "Grain Cape", "HD Smooth Cape", "HD Grain Cape"} {
		capes = append(capes, artwork.NamedSheet{Name: name, Type: skin.Cape, Sheet: artwork.Decode(sheets, "sheets/"+name)})
	}
	return append(capes, artwork.NamedSheet{Name: "Noise Cape", Type: skin.Cape, Sheet: Noise(104, 64, 32)})
}

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
