//go:build !race

package skin_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"runtime/metrics"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/skin/paint"
)

func TestReadAccepts(t *testing.T) {
	t.Parallel()

	type kept struct {
		Type          skin.Type
		Width, Height int
	}
	f := func(as string, width, height int, want kept) {
		t.Helper()
		texture, err := skin.Read(blank(t, width, height), as, skin.DefaultLimits())
		if err != nil {
			t.Errorf("%s of %d × %d: %v", as, width, height, err)
			return
		}
		got := kept{texture.Type, texture.Sheet.Width, texture.Sheet.Height}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s of %d × %d (-want +got):\n%s", as, width, height, diff)
		}
	}

	for _, k := range []int{1, 2, 3, 8} {
		f("steve", 64*k, 64*k, kept{skin.Steve, 64 * k, 64 * k})
		f("steve", 64*k, 32*k, kept{skin.Steve, 64 * k, 32 * k})
		f("alex", 64*k, 64*k, kept{skin.Alex, 64 * k, 64 * k})
		f("skin", 64*k, 64*k, kept{skin.Alex, 64 * k, 64 * k})
		f("skin", 64*k, 32*k, kept{skin.Steve, 64 * k, 32 * k})
		f("cape", 64*k, 32*k, kept{skin.Cape, 64 * k, 32 * k})
		f("cape", 22*k, 17*k, kept{skin.Cape, 64 * k, 32 * k})
		f("cape", 46*k, 22*k, kept{skin.Cape, 64 * k, 32 * k})
	}
}

func TestReadDetectsSlimArms(t *testing.T) {
	t.Parallel()

	for _, painting := range paint.Skins() {
		texture, err := skin.Read(rawOf(painting.Sheet).file(t), "skin", skin.DefaultLimits())
		if err != nil || texture.Type != painting.Type {
			t.Errorf("%s: %s, %v; want %s", painting.Name, texture.Type, err, painting.Type)
		}
	}
}

func TestReadPadsOldCapes(t *testing.T) {
	t.Parallel()

	for _, size := range [][2]int{{22, 17}, {46, 22}, {44, 34}, {92, 44}} {
		cape := paint.Noise(5, size[0], size[1])
		texture, err := skin.Read(rawOf(cape).file(t), "cape", skin.DefaultLimits())
		if err != nil {
			t.Errorf("%v: %v", size, err)
			continue
		}
		for y := range texture.Sheet.Height {
			for x := range texture.Sheet.Width {
				var want [4]byte
				if x < cape.Width && y < cape.Height {
					want = [4]byte(cape.Pix[cape.At(x, y):])
				}
				if got := [4]byte(texture.Sheet.Pix[texture.Sheet.At(x, y):]); got != want {
					t.Fatalf("%v: texel %d, %d is %v; want %v", size, x, y, got, want)
				}
			}
		}
	}
}

func TestReadRefuses(t *testing.T) {
	t.Parallel()

	plain := rawOf(paint.Marker(64, 64))
	sound := plain.file(t)
	sized := func(width, height int) []byte { return blank(t, width, height) }
	with := func(change func(*raw)) []byte {
		r := plain
		change(&r)
		return r.file(t)
	}
	build := func(chunks ...[]byte) []byte {
		return append([]byte(signature), bytes.Join(chunks, nil)...)
	}
	raster := deflate(t, plain.raster())
	idat, iend := chunk("IDAT", raster), chunk("IEND", nil)
	flipped := func(i int) []byte {
		file := bytes.Clone(sound)
		file[i] ^= 1
		return file
	}

	for _, test := range []struct {
		name string
		as   string
		file []byte
		want string // part of the sentence
	}{
		{"an empty file", "steve", nil, "it is empty"},
		{"a JPEG", "steve", []byte("\xff\xd8\xff\xe0\x00\x10JFIF"), "image/jpeg"},
		{"a page", "steve", []byte("<!DOCTYPE html><p>"), "text/html"},
		{"a signature and no more", "steve", []byte(signature), "it is cut off"},
		{"a cut signature", "steve", []byte(signature[:5]), "only PNG is read"},
		{"a cut header", "steve", sound[:20], "it is cut off"},
		{"a cut raster", "steve", sound[:len(sound)/2], `it is cut off in its "IDAT" chunk`},
		{"a missing end", "steve", sound[:len(sound)-12], "a PNG ends with an IEND chunk"},
		{"a cut end", "steve", sound[:len(sound)-1], "a PNG ends with an IEND chunk"},
		{"a wrong checksum of the header", "steve", flipped(8 + 8 + 13), `the checksum of its "IHDR" chunk is wrong`},
		{"a changed bit of the raster", "steve", flipped(200), `the checksum of its "IDAT" chunk is wrong`},
		{"a wrong checksum of a text", "steve", with(func(r *raw) {
			r.before = chunk("tEXt", []byte("Title\x00Hello"))
			r.before[10] ^= 1
		}), `the checksum of its "tEXt" chunk is wrong`},
		{"a chunk longer than the file", "steve", build(plain.header(), []byte("\xff\xff\xff\xffIDAT----")), "it is cut off"},
		{"another chunk before the header", "steve", build(chunk("CgBI", make([]byte, 4)), plain.header(), idat, iend), "not with the header"},
		{"a header of the wrong length", "steve", build(chunk("IHDR", make([]byte, 12)), idat, iend), "not with the header"},
		{"two headers", "steve", build(plain.header(), plain.header(), idat, iend), "out of order"},
		{"no raster", "steve", build(plain.header(), iend), "out of order"},
		{"a raster in two places", "steve", build(plain.header(), chunk("IDAT", raster[:9]), chunk("tEXt", nil), chunk("IDAT", raster[9:]), iend), "interrupted"},
		{"a chunk that decoders must know", "steve", with(func(r *raw) { r.before = chunk("NEWS", nil) }), `knows "NEWS"`},
		{"an animation", "steve", with(func(r *raw) { r.before = chunk("acTL", make([]byte, 8)) }), "animated"},
		{"a raster that is no zlib stream", "steve", build(plain.header(), chunk("IDAT", []byte("not zlib")), iend), "cannot be decoded"},
		{"a raster with a row too few", "steve", build(plain.header(), chunk("IDAT", deflate(t, plain.raster()[257:])), iend), "not enough pixel data"},
		{"a raster with a byte too many", "steve", build(plain.header(), chunk("IDAT", deflate(t, append(plain.raster(), 0))), iend), "too much pixel data"},
		{"a raster with an unknown filter", "steve", build(plain.header(), chunk("IDAT", deflate(t, append([]byte{9}, plain.raster()[1:]...))), iend), "filter"},
		{"16 bits a channel", "steve", with(func(r *raw) { r.depth = 16 }), "16 bits"},
		{"3 bits a channel", "steve", with(func(r *raw) { r.depth = 3 }), "bit depth"},
		{"an unknown colour type", "steve", with(func(r *raw) { r.colour = 5 }), "color type"},
		{"a palette that is missing", "steve", with(func(r *raw) { r.colour = palette }), "cannot be decoded"},
		{"a palette behind the raster", "steve", with(func(r *raw) { r.after = chunk("PLTE", make([]byte, 3)) }), "out of order"},

		{"63 × 64", "steve", sized(63, 64), "it is 63 × 64 pixels; a skin has 64 × 64 or 64 × 32, or a multiple of that up to 8 times"},
		{"32 × 64", "skin", sized(32, 64), "it is 32 × 64"},
		{"96 × 96", "steve", sized(96, 96), "it is 96 × 96"},
		{"22 × 17", "steve", sized(22, 17), "it is 22 × 17"},
		{"scale 9", "steve", sized(576, 576), "it is 576 × 576"},
		{"scale 9", "cape", sized(22*9, 17*9), "it is 198 × 153"},
		{"64 × 32", "alex", sized(64, 32), "it is 64 × 32 pixels; a skin with slim arms has 64 × 64"},
		{"64 × 64", "cape", sized(64, 64), "it is 64 × 64 pixels; a cape has 64 × 32, 22 × 17 or 46 × 22"},
		{"22 × 34", "cape", sized(22, 34), "it is 22 × 34"},
		{"44 × 17", "cape", sized(44, 17), "it is 44 × 17"},
		{"1 × 1", "cape", sized(1, 1), "it is 1 × 1"},
	} {
		t.Run(test.as+" of "+test.name, func(t *testing.T) {
			t.Parallel()

			_, err := skin.Read(test.file, test.as, skin.DefaultLimits())
			refusal := fault.Of(err)
			if refusal.Kind != fault.Invalid || len(refusal.Fields["file"]) != 1 {
				t.Fatalf("%v; want an Invalid fault about the file", err)
			}
			if sentence := refusal.Fields["file"][0]; !strings.Contains(sentence, test.want) || !strings.HasSuffix(sentence, ".") {
				t.Errorf("it says %q; want a sentence with %q", sentence, test.want)
			}
		})
	}
}

func TestReadRefusesTypes(t *testing.T) {
	t.Parallel()

	for _, as := range []string{"", "Steve", "elytra", "skin "} {
		_, err := skin.Read(rawOf(paint.Marker(64, 64)).file(t), as, skin.DefaultLimits())
		if refusal := fault.Of(err); refusal.Kind != fault.Invalid || len(refusal.Fields["type"]) != 1 {
			t.Errorf("type %q: %v; want an Invalid fault about the type", as, err)
		}
	}
}

func TestReadLimits(t *testing.T) {
	t.Parallel()

	classic := rawOf(paint.Marker(64, 64)).file(t)
	f := func(file []byte, limits skin.Limits, want fault.Kind) {
		t.Helper()
		_, err := skin.Read(file, "steve", limits)
		if err == nil && want != fault.Internal || err != nil && fault.KindOf(err) != want {
			t.Errorf("%d bytes under %+v: %v; want kind %d", len(file), limits, err, want)
		}
	}

	const accepted = fault.Internal
	f(classic, skin.Limits{Bytes: len(classic), Scale: 1}, accepted)
	f(classic, skin.Limits{Bytes: len(classic) - 1, Scale: 1}, fault.TooLarge)
	f(make([]byte, 1<<20+1), skin.DefaultLimits(), fault.TooLarge)
	f(make([]byte, 1<<20), skin.DefaultLimits(), fault.Invalid)
	f(classic, skin.Limits{}, accepted)
	double := blank(t, 128, 128)
	f(double, skin.Limits{Scale: 1}, fault.Invalid)
	f(double, skin.Limits{Scale: 2}, accepted)
	f(blank(t, 64*skin.MaxScale, 64*skin.MaxScale), skin.Limits{}, accepted)
	f(blank(t, 64*(skin.MaxScale+1), 64*(skin.MaxScale+1)), skin.Limits{Scale: 99}, fault.Invalid)
}

// Every colour type and depth becomes the RGBA that the standard says, with and
// without transparency, interlaced or not.
func TestReadColourTypes(t *testing.T) {
	t.Parallel()

	colours := paint.Noise(11, 256, 1).Pix // used as a palette of 256
	for _, test := range []struct {
		name          string
		colour, depth byte
		channels      int
		before        []byte
		// want returns the texel of a pixel's samples.
		want func(s []byte) [4]byte
	}{
		{name: "grey 1", colour: grey, depth: 1, want: greyTexel(255)},
		{name: "grey 2", colour: grey, depth: 2, want: greyTexel(85)},
		{name: "grey 4", colour: grey, depth: 4, want: greyTexel(17)},
		{name: "grey 8", colour: grey, depth: 8, want: greyTexel(1)},
		{name: "grey 1 with a key", colour: grey, depth: 1, before: chunk("tRNS", []byte{0, 1}), want: keyed(greyTexel(255), 1)},
		{name: "grey 2 with a key", colour: grey, depth: 2, before: chunk("tRNS", []byte{0, 2}), want: keyed(greyTexel(85), 2)},
		{name: "grey 4 with a key", colour: grey, depth: 4, before: chunk("tRNS", []byte{0, 11}), want: keyed(greyTexel(17), 11)},
		{name: "grey 4 with a key of too many bits", colour: grey, depth: 4, before: chunk("tRNS", []byte{3, 0xfb}), want: keyed(greyTexel(17), 11)},
		{name: "grey 8 with a key", colour: grey, depth: 8, before: chunk("tRNS", []byte{0, 200}), want: keyed(greyTexel(1), 200)},
		{name: "true colour", colour: trueColour, depth: 8, channels: 3, want: func(s []byte) [4]byte { return [4]byte{s[0], s[1], s[2], 255} }},
		{
			name: "true colour with a key", colour: trueColour, depth: 8, channels: 3,
			before: chunk("tRNS", []byte{0, 3, 0, 1, 0, 2}),
			want: func(s []byte) [4]byte {
				if s[0] == 3 && s[1] == 1 && s[2] == 2 {
					return [4]byte{3, 1, 2, 0}
				}
				return [4]byte{s[0], s[1], s[2], 255}
			},
		},
		{name: "grey with alpha", colour: greyAlpha, depth: 8, channels: 2, want: func(s []byte) [4]byte { return [4]byte{s[0], s[0], s[0], s[1]} }},
		{name: "true colour with alpha", colour: trueColourAlpha, depth: 8, channels: 4, want: func(s []byte) [4]byte { return [4]byte(s) }},
		{name: "palette 1", colour: palette, depth: 1, before: paletteChunk(colours, 2), want: paletteTexel(colours, 0)},
		{name: "palette 2", colour: palette, depth: 2, before: paletteChunk(colours, 4), want: paletteTexel(colours, 0)},
		{name: "palette 4", colour: palette, depth: 4, before: paletteChunk(colours, 16), want: paletteTexel(colours, 0)},
		{name: "palette 8", colour: palette, depth: 8, before: paletteChunk(colours, 256), want: paletteTexel(colours, 0)},
		{name: "palette 1 with alpha", colour: palette, depth: 1, before: append(paletteChunk(colours, 2), alphaChunk(1)...), want: paletteTexel(colours, 1)},
		{name: "palette 4 with alpha", colour: palette, depth: 4, before: append(paletteChunk(colours, 16), alphaChunk(9)...), want: paletteTexel(colours, 9)},
		{name: "palette 8 with alpha", colour: palette, depth: 8, before: append(paletteChunk(colours, 256), alphaChunk(256)...), want: paletteTexel(colours, 256)},
	} {
		for _, interlaced := range []bool{false, true} {
			name := test.name
			if interlaced {
				name += ", interlaced"
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()

				samples := func(x, y int) []byte {
					s := paint.Noise(uint64(y)<<16|uint64(x), 1, 1).Pix[:max(test.channels, 1)]
					if test.name == "true colour with a key" { // few colours, so that the key is met
						return []byte{s[0] % 4, s[1] % 4, s[2] % 4}
					}
					for i := range s {
						s[i] &= 1<<test.depth - 1
					}
					return s
				}
				file := raw{
					width: 64, height: 64, depth: test.depth, colour: test.colour,
					interlaced: interlaced, before: test.before, samples: samples,
				}.file(t)
				texture, err := skin.Read(file, "steve", skin.DefaultLimits())
				if err != nil {
					t.Fatal(err)
				}
				seen := map[byte]bool{}
				for y := range 64 {
					for x := range 64 {
						want := test.want(samples(x, y))
						if got := [4]byte(texture.Sheet.Pix[texture.Sheet.At(x, y):]); got != want {
							t.Fatalf("pixel %d, %d is %v; want %v", x, y, got, want)
						}
						seen[want[3]] = true
					}
				}
				if strings.Contains(test.name, "with") && !seen[0] {
					t.Error("the picture has no transparent texel to judge by")
				}
			})
		}
	}
}

func greyTexel(factor byte) func([]byte) [4]byte {
	return func(s []byte) [4]byte { return [4]byte{s[0] * factor, s[0] * factor, s[0] * factor, 255} }
}

// keyed makes the pixels of one value transparent; their colour stays.
func keyed(texel func([]byte) [4]byte, key byte) func([]byte) [4]byte {
	return func(s []byte) [4]byte {
		t := texel(s)
		if s[0] == key {
			t[3] = 0
		}
		return t
	}
}

func paletteChunk(colours []byte, entries int) []byte {
	var data []byte
	for texel := range slices.Chunk(colours[:4*entries], 4) {
		data = append(data, texel[:3]...)
	}
	return chunk("PLTE", data)
}

// alphaOf is the alpha of a palette's entry: transparent, see-through and opaque
// in turn.
func alphaOf(entry byte) byte { return []byte{0, 100, 255}[entry%3] }

func alphaChunk(entries int) []byte {
	var data []byte
	for i := range entries {
		data = append(data, alphaOf(byte(i)))
	}
	return chunk("tRNS", data)
}

// paletteTexel looks up an entry; those past the last alpha are opaque.
func paletteTexel(colours []byte, alphas int) func([]byte) [4]byte {
	return func(s []byte) [4]byte {
		i := 4 * int(s[0])
		t := [4]byte{colours[i], colours[i+1], colours[i+2], 255}
		if int(s[0]) < alphas {
			t[3] = alphaOf(s[0])
		}
		return t
	}
}

// Only pixels come through: whatever else a file holds, it becomes the file that
// the plain one becomes.
func TestReadDropsEverythingElse(t *testing.T) {
	t.Parallel()

	plain := rawOf(paint.Noise(2, 64, 64))
	want, err := skin.Read(plain.file(t), "steve", skin.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	if kinds := chunkKinds(want.File); !slices.Equal(slices.Compact(kinds), []string{"IHDR", "IDAT", "IEND"}) {
		t.Errorf("the stored file has the chunks %v", kinds)
	}

	adorned := plain
	adorned.before = bytes.Join([][]byte{
		chunk("gAMA", []byte{0, 0, 0, 1}),
		chunk("iCCP", append([]byte("icc\x00\x00"), deflate(t, []byte("a profile"))...)),
		chunk("tEXt", []byte("Comment\x00<script>alert(1)</script>")),
		chunk("zTXt", append([]byte("Bomb\x00\x00"), deflate(t, make([]byte, 1<<20))...)),
		chunk("PLTE", []byte{1, 2, 3}), // a mere suggestion beside true colour
	}, nil)
	adorned.after = chunk("tIME", make([]byte, 7))
	for name, file := range map[string][]byte{
		"metadata":          adorned.file(t),
		"a page behind":     append(plain.file(t), "<html><script>alert(1)</script></html>"...),
		"an archive behind": append(plain.file(t), "PK\x03\x04"...),
		"a PNG behind":      append(plain.file(t), plain.file(t)...),
		"interlaced":        func() []byte { r := plain; r.interlaced = true; return r.file(t) }(),
	} {
		got, err := skin.Read(file, "steve", skin.DefaultLimits())
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if !bytes.Equal(got.File, want.File) || got.Hash != want.Hash || got.Pixels != want.Pixels {
			t.Errorf("%s: the stored file differs from the plain one", name)
		}
	}
}

func chunkKinds(file []byte) []string {
	var kinds []string
	for rest := file[len(signature):]; len(rest) >= 12; rest = rest[12+binary.BigEndian.Uint32(rest):] {
		kinds = append(kinds, string(rest[4:8]))
	}
	return kinds
}

// What is kept is what was painted, bit for bit, and reading it again changes
// nothing.
func TestReadKeepsPixels(t *testing.T) {
	t.Parallel()

	rapid.Check(t, func(r *rapid.T) {
		as := rapid.SampledFrom([]string{"steve", "alex", "skin", "cape"}).Draw(r, "type")
		height := 64
		if as == "cape" || as != "alex" && rapid.Bool().Draw(r, "legacy") {
			height = 32
		}
		sheet := paint.Noise(rapid.Uint64().Draw(r, "seed"), 64, height)
		if rapid.Bool().Draw(r, "opaque") {
			for i := 3; i < len(sheet.Pix); i += 4 {
				sheet.Pix[i] = 255
			}
		}

		texture, err := skin.Read(rawOf(sheet).file(t), as, skin.DefaultLimits())
		if err != nil {
			r.Fatal(err)
		}
		if !same(texture.Sheet, sheet) {
			r.Fatal("the sheet changed")
		}
		checkTexture(r, texture)
	})
}

// checkTexture checks what holds of every texture that Read returns.
func checkTexture(t interface {
	Helper()
	Fatalf(format string, args ...any)
}, texture skin.Texture,
) {
	t.Helper()
	if texture.Hash != skin.HashOf(texture.File) || texture.Pixels != texture.Sheet.Digest() {
		t.Fatalf("the digests are not those of the file and the sheet")
	}
	// The header says 8 bits of red, green, blue and alpha, also of an opaque sheet.
	if depth, colour := texture.File[24], texture.File[25]; depth != 8 || colour != 6 {
		t.Fatalf("the stored file has bit depth %d and colour type %d; want 8 and 6", depth, colour)
	}
	if texture.Type.String() == "" || len(texture.Sheet.Pix) != 4*texture.Sheet.Width*texture.Sheet.Height {
		t.Fatalf("a %q of %d × %d texels has %d bytes", texture.Type, texture.Sheet.Width, texture.Sheet.Height, len(texture.Sheet.Pix))
	}
	sheet, err := skin.Decode(texture.File)
	if err != nil || !same(sheet, texture.Sheet) {
		t.Fatalf("the stored file decodes to another sheet, or not at all: %v", err)
	}
	again, err := skin.Read(texture.File, texture.Type.String(), skin.Limits{})
	if err != nil || again.Hash != texture.Hash || again.Pixels != texture.Pixels || again.Type != texture.Type {
		t.Fatalf("the stored file is read as another texture, or not at all: %v", err)
	}
}

func TestDigest(t *testing.T) {
	t.Parallel()

	// Computed with: printf '\0\0\0\2\0\0\0\1\1\2\3\4\5\6\7\10' | sha256sum.
	sheet := skin.Sheet{Width: 2, Height: 1, Pix: []byte{1, 2, 3, 4, 5, 6, 7, 8}}
	if got, want := skin.Hash(sheet.Digest()).String(), "6df082ee9e3a3ee94a5b45e56195b613d35ef923f0eae841590515b750f34dcd"; got != want {
		t.Errorf("digest %s; want %s", got, want)
	}
	turned := skin.Sheet{Width: 1, Height: 2, Pix: sheet.Pix}
	if turned.Digest() == sheet.Digest() {
		t.Error("two shapes of the same bytes have one digest")
	}

	rapid.Check(t, func(t *rapid.T) {
		sheet := paint.Noise(rapid.Uint64().Draw(t, "seed"), 64, 32)
		before := sheet.Digest()
		at := rapid.IntRange(0, len(sheet.Pix)-1).Draw(t, "byte")
		sheet.Pix[at] ^= rapid.ByteRange(1, 255).Draw(t, "change")
		if sheet.Digest() == before {
			t.Fatalf("byte %d does not matter", at)
		}
	})
}

func TestDecode(t *testing.T) {
	t.Parallel()

	for _, size := range [][2]int{{64, 64}, {64, 32}, {128, 128}} {
		sheet := paint.Noise(9, size[0], size[1])
		if got, err := skin.Decode(rawOf(sheet).file(t)); err != nil || !same(got, sheet) {
			t.Errorf("%v: another sheet, or %v", size, err)
		}
	}
	const most = 64 * skin.MaxScale
	if got, err := skin.Decode(blank(t, most, most)); err != nil || !same(got, skin.NewSheet(most, most)) {
		t.Errorf("the largest sheet: another sheet, or %v", err)
	}
	for name, file := range map[string][]byte{
		"nothing":              nil,
		"the size of a corner": blank(t, 22, 17),
		"beyond any scale":     blank(t, most+64, most+64),
		"cut off":              rawOf(paint.Marker(64, 64)).file(t)[:500],
	} {
		_, err := skin.Decode(file)
		if fault.KindOf(err) != fault.Internal || !strings.HasPrefix(errors.Unwrap(fault.Of(err)).Error(), "decode texture: ") {
			t.Errorf("%s: %v; want a plain error", name, err)
		}
	}
}

// Files made to take memory or time are refused before they do. The test counts
// the bytes of the whole program, so no other runs beside it.
func TestBombsTakeNoMemory(t *testing.T) {
	const bound = 64 << 20
	plain := rawOf(paint.Noise(1, 64, 64))
	build := func(header []byte, chunks ...[]byte) []byte {
		return append(append([]byte(signature), header...), bytes.Join(append(chunks, chunk("IEND", nil)), nil)...)
	}
	giant := func(width, height int) []byte {
		return raw{width: width, height: height, depth: 8, colour: trueColourAlpha}.header()
	}
	zeros := deflate(t, make([]byte, bound+1<<20))
	for name, file := range map[string][]byte{
		"giant dimensions":             build(giant(1<<31-1, 1<<31-1), chunk("IDAT", zeros)),
		"dimensions that overflow":     build(giant(1<<32-64, 1<<31+32), chunk("IDAT", zeros)),
		"a large multiple of a sheet":  build(giant(64000, 64000), chunk("IDAT", zeros)),
		"a raster that never ends":     build(plain.header(), chunk("IDAT", zeros)),
		"a text that never ends":       build(plain.header(), chunk("zTXt", append([]byte("t\x00\x00"), zeros...)), chunk("IDAT", deflate(t, plain.raster()))),
		"a raster of empty chunks":     build(plain.header(), bytes.Repeat(chunk("IDAT", nil), 80_000)),
		"a raster of one-byte chunks":  build(plain.header(), bytes.Repeat(chunk("IDAT", []byte{0}), 75_000)),
		"the largest sheet":            build(giant(512, 512), chunk("IDAT", deflate(t, make([]byte, 512*(1+4*512))))),
		"a large raster that is empty": build(giant(512, 512), chunk("IDAT", deflate(t, nil))),
	} {
		before := allocated()
		_, err := skin.Read(file, "steve", skin.DefaultLimits())
		if used := allocated() - before; used > bound {
			t.Errorf("%s: %d bytes were allocated; want %d at most", name, used, bound)
		}
		if kept := strings.HasPrefix(name, "the largest") || strings.HasPrefix(name, "a text"); kept != (err == nil) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// allocated returns how many bytes the program has ever allocated.
func allocated() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

func FuzzRead(f *testing.F) {
	for _, painting := range append(paint.Skins(), paint.Capes()...) {
		f.Add(rawOf(painting.Sheet).file(f), painting.Type.String(), false)
	}
	small := raw{width: 64, height: 32, colour: palette, depth: 1, samples: func(x, y int) []byte { return []byte{byte(x & y & 1)} }}
	small.before = append(paletteChunk([]byte{1, 2, 3, 0, 4, 5, 6, 0}, 2), alphaChunk(2)...)
	f.Add(small.file(f), "skin", true)
	small.interlaced = true
	f.Add(small.file(f), "cape", true)
	small.colour, small.before = grey, chunk("tRNS", []byte{0, 1})
	f.Add(small.file(f), "steve", true)
	f.Add([]byte(signature), "alex", false)

	f.Fuzz(func(t *testing.T, file []byte, as string, mended bool) {
		file = bytes.Clone(file)
		if mended {
			mend(file)
		}
		before := allocated()
		texture, err := skin.Read(file, as, skin.DefaultLimits())
		if used := allocated() - before; used > 64<<20 {
			t.Errorf("%d bytes were allocated", used)
		}
		if err != nil {
			if kind := fault.KindOf(err); kind != fault.Invalid && kind != fault.TooLarge {
				t.Fatalf("kind %d: %v", kind, err)
			}
			return
		}
		checkTexture(t, texture)
	})
}

func BenchmarkRead(b *testing.B) {
	for _, bench := range benchmarks(b) {
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := skin.Read(bench.file, "steve", skin.DefaultLimits()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkDecode(b *testing.B) {
	for _, bench := range benchmarks(b) {
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := skin.Decode(bench.file); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

type benchmark struct {
	name string
	file []byte
}

func benchmarks(b *testing.B) []benchmark {
	b.Helper()
	return []benchmark{
		{"classic", rawOf(paint.Explorer()).file(b)},
		{"hd", rawOf(paint.Robot()).file(b)},
		{"noise512", rawOf(paint.Noise(1, 512, 512)).file(b)},
	}
}
