package skintest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
)

// format is a pixel format of PNG.
type format struct {
	name          string
	colour, depth byte
	before        []byte // PLTE and tRNS chunks
	// texel returns the colour of a pixel's samples.
	texel func(s []byte) [4]byte
}

// formats are pictures of every colour type and depth of at most 8 bits, with and without
// transparency, interlaced or not.
func formats() []File {
	var files []File
	for _, f := range append(greys(), append(colours(), palettes256()...)...) {
		for _, interlaced := range []bool{false, true} {
			p := PNG{
				Width: 64, Height: 64, Depth: f.depth, Colour: f.colour, Interlaced: interlaced, Before: f.before, Samples: f.samples,
			}
			name := f.name
			if interlaced {
				name += ", interlaced"
			}
			files = append(files, File{Name: name, Type: "steve", Data: p.File(), Sheet: sheetOf(64, 64, func(x, y int) [4]byte {
				return f.texel(f.samples(x, y))
			})})
		}
	}
	// In the smallest picture, some passes of an interlaced raster are narrow.
	cape := Noise(5, 22, 17)
	p := FromSheet(cape)
	p.Interlaced = true
	return append(files, File{Name: "an interlaced cape of the old size", Type: "cape", Data: p.File(), Sheet: sheetOf(64, 32, func(x, y int) [4]byte {
		if x >= 22 || y >= 17 {
			return [4]byte{}
		}
		return [4]byte(cape.Pix[cape.At(x, y):])
	})})
}

// samples returns the samples of a pixel of a small picture. True colours are few, so that
// the transparent one occurs.
func (f format) samples(x, y int) []byte {
	s := bytes.Clone(noise[4*(y*64+x):][:channels[f.colour]])
	for i := range s {
		if f.colour == TrueColour {
			s[i] %= 4
		}
		s[i] &= 1<<f.depth - 1
	}
	return s
}

func greys() []format {
	var all []format
	for _, depth := range []byte{1, 2, 4, 8} {
		most := byte(1<<depth - 1)
		texel := func(s []byte) [4]byte { v := s[0] * (255 / most); return [4]byte{v, v, v, 255} }
		key := most - most/3
		keyed := func(s []byte) [4]byte { // the transparent texel keeps its colour
			t := texel(s)
			if s[0] == key {
				t[3] = 0
			}
			return t
		}
		name := fmt.Sprintf("grey of %d bits", depth)
		all = append(all,
			format{name, Grey, depth, nil, texel},
			format{name + " with a transparent one", Grey, depth, Chunk("tRNS", []byte{0, key}), keyed},
			format{name + " with a transparent one of 16 bits", Grey, depth, Chunk("tRNS", []byte{3, key | ^most}), keyed},
		)
	}
	return append(all, format{"grey with alpha", GreyAlpha, 8, nil, func(s []byte) [4]byte { return [4]byte{s[0], s[0], s[0], s[1]} }})
}

func colours() []format {
	texel := func(s []byte) [4]byte { return [4]byte{s[0], s[1], s[2], 255} }
	keyed := func(s []byte) [4]byte {
		if bytes.Equal(s, []byte{3, 1, 2}) {
			return [4]byte{3, 1, 2, 0}
		}
		return texel(s)
	}
	return []format{
		{"true colour", TrueColour, 8, nil, texel},
		{"true colour with a transparent one", TrueColour, 8, Chunk("tRNS", []byte{0, 3, 0, 1, 0, 2}), keyed},
		{"true colour with a transparent one of 16 bits", TrueColour, 8, Chunk("tRNS", []byte{9, 3, 8, 1, 7, 2}), keyed},
		{"true colour with a palette", TrueColour, 8, paletteOf(256), texel},
		{"true colour with alpha", TrueColourAlpha, 8, nil, func(s []byte) [4]byte { return [4]byte(s) }},
		{"true colour with alpha and a palette", TrueColourAlpha, 8, paletteOf(1), func(s []byte) [4]byte { return [4]byte(s) }},
	}
}

func palettes256() []format {
	var all []format
	for _, depth := range []byte{1, 2, 4, 8} {
		entries := 1 << depth
		name := fmt.Sprintf("a palette of %d", entries)
		all = append(all, format{name, Palette, depth, paletteOf(entries), paletteTexel(entries, 0)})
		for _, alphas := range slices.Compact([]int{1, entries/2 + 1, entries}) {
			all = append(all, format{
				fmt.Sprintf("%s with %d alphas", name, alphas), Palette, depth, slices.Concat(paletteOf(entries), alphasOf(alphas)), paletteTexel(entries, alphas),
			})
		}
	}
	return append(all,
		// Pixels beyond the palette are black, as in most decoders.
		format{"a palette of 3 where 256 are used", Palette, 8, paletteOf(3), paletteTexel(3, 0)},
		format{"a palette of 3, 2 with alpha, where 16 are used", Palette, 4, slices.Concat(paletteOf(3), alphasOf(2)), paletteTexel(3, 2)},
		format{"a palette of 1 where 2 are used", Palette, 1, paletteOf(1), paletteTexel(1, 0)},
		format{"a palette with an empty list of alphas", Palette, 8, slices.Concat(paletteOf(256), alphasOf(0)), paletteTexel(256, 0)},
	)
}

// paletteOf returns a PLTE chunk with that many entries.
func paletteOf(entries int) []byte {
	var data []byte
	for i := range entries {
		data = append(data, noise[4*(i%256):][:3]...)
	}
	return Chunk("PLTE", data)
}

// alphaOf returns the alpha of a palette entry: alternately transparent, translucent and
// opaque.
func alphaOf(entry int) byte { return []byte{0, 100, 255}[entry%3] }

// alphasOf returns a tRNS chunk for the first entries of a palette.
func alphasOf(entries int) []byte {
	var data []byte
	for i := range entries {
		data = append(data, alphaOf(i))
	}
	return Chunk("tRNS", data)
}

// paletteTexel looks up a palette entry: entries without alpha are opaque, indexes beyond the
// palette black.
func paletteTexel(entries, alphas int) func([]byte) [4]byte {
	return func(s []byte) [4]byte {
		i := int(s[0])
		if i >= entries {
			return [4]byte{0, 0, 0, 255}
		}
		t := [4]byte{noise[4*i], noise[4*i+1], noise[4*i+2], 255}
		if i < alphas {
			t[3] = alphaOf(i)
		}
		return t
	}
}

// indexed returns a picture with a palette.
func indexed(depth byte, entries int) PNG {
	f := format{colour: Palette, depth: depth}
	return PNG{Width: 64, Height: 64, Depth: depth, Colour: Palette, Before: paletteOf(entries), Samples: f.samples}
}

// wrongFormats are pictures of 16 bits, and of invalid colour types and depths.
func wrongFormats() []File {
	var files []File
	for _, colour := range []byte{Grey, TrueColour, GreyAlpha, TrueColourAlpha, Palette} {
		for _, interlaced := range []bool{false, true} {
			p := PNG{Width: 64, Height: 64, Depth: 16, Colour: colour, Interlaced: interlaced}
			data := p.with(Chunk("IDAT", Deflate(make([]byte, (1+8*64)*64))))
			files = append(files, rejected(fmt.Sprintf("colour type %d of 16 bits, interlaced %t", colour, interlaced), "16 bits a channel", data))
		}
	}
	for _, wrong := range []struct{ colour, depth byte }{
		{Grey, 0},
		{Grey, 3},
		{Grey, 5},
		{Grey, 32},
		{Grey, 255},
		{TrueColour, 1},
		{TrueColour, 2},
		{TrueColour, 4},
		{TrueColour, 7},
		{Palette, 0},
		{Palette, 3},
		{Palette, 9},
		{GreyAlpha, 1},
		{GreyAlpha, 4},
		{TrueColourAlpha, 2},
		{TrueColourAlpha, 4},
		{TrueColourAlpha, 24},
		{1, 8},
		{5, 8},
		{7, 8},
		{8, 8},
		{255, 8},
	} {
		p := FromSheet(sample())
		p.Colour, p.Depth = wrong.colour, wrong.depth
		data := p.with(Chunk("IDAT", Deflate(FromSheet(sample()).Raster())))
		files = append(files, rejected(fmt.Sprintf("colour type %d of %d bits", wrong.colour, wrong.depth), fmt.Sprintf("colour type %d with %d bits", wrong.colour, wrong.depth), data))
	}
	return files
}

// texels returns a file that is stored as the colours of its samples.
func texels(name string, p PNG, texel func(s []byte) [4]byte) File {
	sheet := sheetOf(p.Width, p.Height, func(x, y int) [4]byte { return texel(p.Samples(x, y)) })
	return File{Name: name, Type: "steve", Data: p.File(), Sheet: sheet}
}

// palettes are invalid palettes.
func palettes() []File {
	with := func(before, after []byte) []byte {
		p := indexed(8, 256)
		p.Before, p.After = before, after
		return p.File()
	}
	grey := PNG{Width: 64, Height: 64, Depth: 8, Colour: Grey, Before: paletteOf(2), Samples: func(x, y int) []byte { return []byte{byte(x ^ y)} }}
	alpha := grey
	alpha.Colour, alpha.Samples = GreyAlpha, func(x, y int) []byte { return []byte{byte(x), byte(y)} }
	colour := FromSheet(sample())
	colour.After = paletteOf(2)
	return []File{
		rejected("no palette", "no palette", with(nil, nil)),
		rejected("an empty palette", "its palette has 0 bytes", with(Chunk("PLTE", nil), nil)),
		rejected("a palette of 4 bytes", "its palette has 4 bytes", with(Chunk("PLTE", make([]byte, 4)), nil)),
		rejected("a palette of 257 colours", "its palette has 771 bytes", with(paletteOf(257), nil)),
		rejected("a palette of 300,000 colours", "its palette has 900000 bytes", with(paletteOf(300_000), nil)),
		rejected("two palettes", "it has two palettes", with(slices.Concat(paletteOf(256), paletteOf(256)), nil)),
		rejected("a palette behind the raster", "no palette", with(nil, paletteOf(256))),
		texels("a palette of more colours than 2 bits can tell apart", indexed(2, 5), paletteTexel(4, 0)),
		accepted("a palette behind the raster of true colours", colour.File(), ""),
		texels("a palette of grey", grey, func(s []byte) [4]byte { return [4]byte{s[0], s[0], s[0], 255} }),
		texels("a palette of grey with alpha", alpha, func(s []byte) [4]byte { return [4]byte{s[0], s[0], s[0], s[1]} }),
	}
}

// transparencies are tRNS chunks that are invalid, and passed over.
func transparencies() []File {
	var files []File
	opaque := map[byte]func(s []byte) [4]byte{
		Grey:       func(s []byte) [4]byte { return [4]byte{s[0], s[0], s[0], 255} },
		TrueColour: func(s []byte) [4]byte { return [4]byte{s[0], s[1], s[2], 255} },
	}
	for _, wrong := range []struct {
		colour byte
		length int
	}{{Grey, 0}, {Grey, 1}, {Grey, 3}, {Grey, 6}, {TrueColour, 0}, {TrueColour, 2}, {TrueColour, 5}, {TrueColour, 7}, {TrueColour, 1000}} {
		p := PNG{Width: 64, Height: 64, Depth: 8, Colour: wrong.colour, Before: Chunk("tRNS", make([]byte, wrong.length))}
		p.Samples = format{colour: wrong.colour, depth: 8}.samples
		files = append(files, texels(fmt.Sprintf("transparency of %d bytes of colour type %d", wrong.length, wrong.colour), p, opaque[wrong.colour]))
	}
	with := func(p PNG, before, after []byte) PNG {
		p.Before, p.After = before, after
		return p
	}
	grey := PNG{Width: 64, Height: 64, Depth: 8, Colour: Grey, Samples: format{colour: Grey, depth: 8}.samples}
	greyAlpha := PNG{Width: 64, Height: 64, Depth: 8, Colour: GreyAlpha, Samples: format{colour: GreyAlpha, depth: 8}.samples}
	key := Chunk("tRNS", []byte{0, 9})
	keyed := func(s []byte) [4]byte {
		t := opaque[Grey](s)
		if s[0] == 9 {
			t[3] = 0
		}
		return t
	}
	return append(files,
		texels("more alphas than colours", with(indexed(8, 0), slices.Concat(paletteOf(3), alphasOf(4)), nil), paletteTexel(3, 0)),
		texels("256 alphas of two colours", with(indexed(1, 0), slices.Concat(paletteOf(2), alphasOf(256)), nil), paletteTexel(2, 0)),
		texels("257 alphas", with(indexed(8, 0), slices.Concat(paletteOf(256), alphasOf(257)), nil), paletteTexel(256, 0)),
		texels("alphas before their palette", with(indexed(8, 0), slices.Concat(alphasOf(3), paletteOf(256)), nil), paletteTexel(256, 0)),
		rejected("alphas without a palette", "no palette", with(indexed(8, 0), alphasOf(3), nil).File()),
		texels("alphas twice", with(indexed(8, 0), slices.Concat(paletteOf(256), alphasOf(3), alphasOf(5)), nil), paletteTexel(256, 3)),
		texels("alphas behind the raster", with(indexed(8, 0), paletteOf(256), alphasOf(3)), paletteTexel(256, 0)),
		texels("a transparent grey twice", with(grey, slices.Concat(key, Chunk("tRNS", []byte{0, 8})), nil), keyed),
		texels("a transparent grey behind the raster", with(grey, nil, key), opaque[Grey]),
		accepted("a transparent colour beside alpha", with(FromSheet(sample()), Chunk("tRNS", make([]byte, 6)), nil).File(), ""),
		texels("a transparent grey beside alpha", with(greyAlpha, key, nil), func(s []byte) [4]byte { return [4]byte{s[0], s[0], s[0], s[1]} }),
	)
}

// dimensions are headers with sizes that no texture has, and a small raster.
func dimensions() []File {
	var files []File
	for _, size := range [][2]uint32{
		{1<<31 - 1, 1<<31 - 1},
		{1<<31 - 1, 64},
		{64, 1<<31 - 1},
		{1 << 31, 1 << 31},
		{1<<32 - 1, 1<<32 - 1},
		{1<<32 - 64, 1<<32 - 64},
		{1 << 16, 1 << 16},
		{64 << 20, 64 << 20},
		{576, 576},
		{1088, 1088},
		{64, 64 << 10},
		{0, 0},
		{0, 64},
		{64, 0},
		{1, 1},
		{1, 64},
		{64, 1},
		{63, 63},
		{64, 63},
		{65, 65},
		{32, 64},
		{96, 96},
	} {
		p := FromSheet(sample())
		header := p.Header()
		binary.BigEndian.PutUint32(header[8:], size[0])
		binary.BigEndian.PutUint32(header[12:], size[1])
		data := Join(header, Chunk("IDAT", Deflate(p.Raster())), Chunk("IEND", nil))
		FixChecksums(data)
		files = append(files, rejected(fmt.Sprintf("%d × %d pixels", size[0], size[1]), fmt.Sprintf("it is %d × %d pixels; a skin has", size[0], size[1]), data))
	}
	// The size is valid, but differs from the raster.
	small, large, half := FromSheet(sample()), FromSheet(Noise(1, 64, 32)), sample()
	small.Height, large.Height, half.Height = 32, 64, 32
	half.Pix = half.Pix[:4*64*32]
	return append(files,
		File{Name: "a raster of twice the rows", Type: "steve", Data: small.with(Chunk("IDAT", Deflate(FromSheet(sample()).Raster()))), Sheet: half},
		rejected("a raster of half the rows", "cut off after 8224 of", large.with(Chunk("IDAT", Deflate(FromSheet(Noise(1, 64, 32)).Raster())))),
	)
}
