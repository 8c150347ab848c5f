//go:build !race

package png_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"image"
	"image/color"
	stdpng "image/png"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/veneer-skins/veneer/edge/render"
	"github.com/veneer-skins/veneer/edge/render/png"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/skin/artwork"
	"github.com/veneer-skins/veneer/shared/testenv"
	"github.com/veneer-skins/veneer/shared/testenv/cmptest"
)

// renderer draws the pictures that the package is made for.
var renderer = render.New(nil)

// picture is the input of png.Encoder.Append.
type picture struct {
	width, height int
	pix           []byte
}

func newPicture(width, height int, at func(x, y int) uint32) picture {
	p := picture{width: width, height: height}
	for i := range width * height {
		p.pix = binary.BigEndian.AppendUint32(p.pix, at(i%width, i/width))
	}
	return p
}

// pictures returns pictures of all the kinds that are drawn, and adverse ones.
func pictures() map[string]picture {
	random := rand.New(rand.NewPCG(1, 2))
	colours := make([]uint32, 4096)
	for i := range colours {
		colours[i] = random.Uint32() | 0xff
	}
	all := map[string]picture{
		"one pixel":         newPicture(1, 1, func(int, int) uint32 { return 0x12345678 }),
		"one colour":        newPicture(64, 64, func(int, int) uint32 { return 0x336699ff }),
		"nothing":           newPicture(300, 200, func(int, int) uint32 { return 0 }),
		"opaque noise":      newPicture(61, 47, func(int, int) uint32 { return random.Uint32() | 0xff }),
		"translucent noise": newPicture(47, 61, func(int, int) uint32 { return random.Uint32() }),
		"two-tone noise":    newPicture(130, 120, func(int, int) uint32 { return colours[random.IntN(2)] }),
		"256-colour noise":  newPicture(140, 120, func(int, int) uint32 { return colours[random.IntN(256)] }),
		"gradient": newPicture(160, 100, func(x, y int) uint32 {
			return uint32(x)<<24 | uint32(y)<<16 | uint32(x+y)<<7&0xff00 | 0xff
		}),
		"glass": newPicture(90, 90, func(x, y int) uint32 { return 0x80c0ff00 | uint32(x*y)&0xff }),
		"colours under alpha 0": newPicture(50, 40, func(x, y int) uint32 {
			return uint32(x/5)<<24 | uint32(y/8)<<16 | uint32(x%2*255)
		}),
		"wide":                newPicture(8192, 2, func(x, y int) uint32 { return colours[x/100+y] }),
		"tall":                newPicture(1, 8192, func(_, y int) uint32 { return colours[y/100] }),
		"larger than a block": newPicture(280, 250, func(int, int) uint32 { return random.Uint32() }),
	}

	// Rows of the longest side are a byte farther apart than the greatest distance, and those a
	// pixel shorter are not. With so many differences they are left unfiltered.
	row := make([]uint32, 8192)
	for i := range row {
		row[i] = random.Uint32()
	}
	varied := func(x, y int) uint32 {
		if (x+7*y)%20 == 0 {
			return row[(x*31+y*997)%len(row)]
		}
		return row[x]
	}
	all["rows out of reach"] = newPicture(8192, 4, varied)
	all["rows within reach"] = newPicture(8191, 4, varied)

	glass := make([]uint32, 300)
	for i := range glass {
		glass[i] = random.Uint32()
	}
	all["packed blocks"] = newPicture(1200, 400, func(x, _ int) uint32 {
		if x >= 600 {
			return glass[x/30]
		}
		return glass[random.IntN(len(glass))]
	})
	all["stored and packed blocks"] = newPicture(512, 600, func(_, y int) uint32 {
		if y/200 == 1 {
			return glass[random.IntN(len(glass))]
		}
		return random.Uint32()
	})
	for _, n := range []int{2, 3, 4, 5, 15, 16, 17, 64, 65, 255, 256, 257, 1000} {
		all[fmt.Sprintf("%d colours magnified", n)] = newPicture(128, 128, func(x, y int) uint32 {
			return colours[(x/4+y/4*32)%n]
		})
		all[fmt.Sprintf("%d colours projected", n)] = newPicture(160, 96, func(x, y int) uint32 {
			u, v := x/7, (12*y+5*x)/100
			switch {
			case x < 20 || x > 140 || v < 2 || v > 14:
				return 0
			case x == 20 || x == 140:
				return colours[(u*31+v*17)%n]&^0xff | uint32(y*20)&0xff
			}
			return colours[(u*31+v*17)%n]
		})
	}
	return all
}

// encode encodes a picture after a prefix.
func encode(tb testing.TB, e *png.Encoder, p picture) []byte {
	tb.Helper()
	file := testenv.Must(e.Append([]byte("before"), p.pix, p.width, p.height))(tb)
	rest, ok := bytes.CutPrefix(file, []byte("before"))
	if !ok {
		tb.Fatal("the prefix is gone")
	}
	return rest
}

// checkPixels checks that the standard library decodes the picture from the file.
func checkPixels(tb testing.TB, file []byte, p picture) {
	tb.Helper()
	img := testenv.Must(stdpng.Decode(bytes.NewReader(file)))(tb)
	if got, want := img.Bounds(), image.Rect(0, 0, p.width, p.height); got != want {
		tb.Fatalf("bounds %v; want %v", got, want)
	}
	for i := range p.width * p.height {
		x, y := i%p.width, i/p.width
		want := color.NRGBA{p.pix[4*i], p.pix[4*i+1], p.pix[4*i+2], p.pix[4*i+3]}
		if got := pixel(tb, img, x, y); got != want {
			tb.Fatalf("pixel %d, %d is %v; want %v", x, y, got, want)
		}
	}
}

// pixel returns a pixel as it is in the file: the conversions of image/color lose the colour of
// transparent ones.
func pixel(tb testing.TB, img image.Image, x, y int) color.NRGBA {
	tb.Helper()
	switch c := img.At(x, y).(type) {
	case color.NRGBA:
		return c
	case color.RGBA: // opaque
		return color.NRGBA(c)
	default:
		tb.Fatalf("a pixel is a %T", c)
		return color.NRGBA{}
	}
}

func TestAppendKeepsPixels(t *testing.T) {
	t.Parallel()
	for name, p := range pictures() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := encode(t, new(png.Encoder), p)
			checkPixels(t, file, p)
			checkByLibvips(t, file, p)
		})
	}
}

// drawn returns views of skins.
func drawn(tb testing.TB) map[string]picture {
	tb.Helper()
	all := make(map[string]picture)
	for _, texture := range append(artwork.Skins(), artwork.Capes()...) {
		for _, view := range []render.View{
			{Mode: render.Flat, Size: 48},
			{Mode: render.Flat, Size: 128},
			{Mode: render.Isometric, Size: 40},
			{Mode: render.Isometric, Size: 128},
			{Mode: render.Preview, Size: 96},
			{Mode: render.Preview, Size: 192},
		} {
			view.Type = texture.Type
			if view.Check() != nil {
				continue // a cape has no face
			}
			p := testenv.Must(renderer.Draw(texture.Sheet, skin.Sheet{}, view))(tb)
			all[fmt.Sprintf("%s %s %d", texture.Name, view.Mode, view.Size)] = picture{p.Width, p.Height, p.Pix}
		}
	}
	return all
}

func TestAppendKeepsPixelsOfSkins(t *testing.T) {
	t.Parallel()
	for name, p := range drawn(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checkPixels(t, encode(t, new(png.Encoder), p), p)
		})
	}
}

func TestAppendKeepsPixelsOfAllSizes(t *testing.T) {
	t.Parallel()
	var e png.Encoder
	random := rand.New(rand.NewPCG(3, 4))
	for width := 1; width <= 40; width++ {
		for height := 1; height <= 40; height++ {
			colours := 1 << random.IntN(10)
			alpha := uint32(255 * random.IntN(2))
			cell := 1 + random.IntN(8)
			seed := random.Uint32()
			p := newPicture(width, height, func(x, y int) uint32 {
				colour := (seed + uint32(x/cell*7+y/cell*11)%uint32(colours)) * 0x9e3779b1
				return colour | alpha
			})
			checkPixels(t, encode(t, &e, p), p)
		}
	}
}

// Every level of alpha is kept, with few colours and with many.
func TestAppendKeepsAlpha(t *testing.T) {
	t.Parallel()
	var e png.Encoder
	for _, colours := range []int{1, 2, 256} {
		p := newPicture(256, 8, func(x, y int) uint32 { return uint32((x+y)%colours)<<20 | uint32(x) })
		checkPixels(t, encode(t, &e, p), p)
	}
}

// A file has the required chunks only, in order and with correct checksums.
func TestFileStructure(t *testing.T) {
	t.Parallel()
	translucent := func(n int) func(x, y int) uint32 {
		return func(x, y int) uint32 { return uint32((x+99*y)%n)<<10 | 0x7f }
	}
	opaque := func(n int) func(x, y int) uint32 {
		return func(x, y int) uint32 { return uint32((x+99*y)%n)<<10 | 0xff }
	}
	for _, test := range []struct {
		name              string
		at                func(x, y int) uint32
		depth, colourType byte
		chunks            []string
	}{
		{"one colour", opaque(1), 1, 3, []string{"IHDR", "PLTE", "IDAT", "IEND"}},
		{"2 colours", opaque(2), 1, 3, []string{"IHDR", "PLTE", "IDAT", "IEND"}},
		{"4 colours", opaque(4), 2, 3, []string{"IHDR", "PLTE", "IDAT", "IEND"}},
		{"16 colours", opaque(16), 4, 3, []string{"IHDR", "PLTE", "IDAT", "IEND"}},
		{"17 colours", opaque(17), 8, 3, []string{"IHDR", "PLTE", "IDAT", "IEND"}},
		{"translucent", translucent(17), 8, 3, []string{"IHDR", "PLTE", "tRNS", "IDAT", "IEND"}},
		{"many colours", opaque(1000), 8, 2, []string{"IHDR", "IDAT", "IEND"}},
		{"many translucent colours", translucent(1000), 8, 6, []string{"IHDR", "IDAT", "IEND"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			file := encode(t, new(png.Encoder), newPicture(99, 70, test.at))
			rest, ok := bytes.CutPrefix(file, []byte("\x89PNG\r\n\x1a\n"))
			if !ok {
				t.Fatal("no signature")
			}
			var chunks []string
			for len(rest) > 0 {
				length := int(binary.BigEndian.Uint32(rest))
				name, data := string(rest[4:8]), rest[8:8+length]
				testenv.Equal(t, binary.BigEndian.Uint32(rest[8+length:]), crc32.ChecksumIEEE(rest[4:8+length]),
					"the checksum of %s", name)
				if name == "IHDR" {
					want := []byte{0, 0, 0, 99, 0, 0, 0, 70, test.depth, test.colourType, 0, 0, 0}
					cmptest.Same(t, data, want, "IHDR")
				}
				chunks = append(chunks, name)
				rest = rest[12+length:]
			}
			cmptest.Same(t, chunks, test.chunks, "chunks")
		})
	}
}

// Colours that are not opaque come first in a palette, so that tRNS is as short as possible.
func TestPaletteAlphaIsShort(t *testing.T) {
	t.Parallel()
	p := newPicture(60, 60, func(x, y int) uint32 {
		if x == 59 && y == 59 {
			return 0
		}
		return uint32(x/2)<<16 | 0xff
	})
	file := encode(t, new(png.Encoder), p)
	before, _, ok := bytes.Cut(file, []byte("tRNS"))
	if !ok {
		t.Fatal("no tRNS")
	}
	testenv.Equal(t, binary.BigEndian.Uint32(before[len(before)-4:]), 1, "bytes of tRNS")
}

// An encoder's previous pictures do not affect a file.
func TestSamePictureSameFile(t *testing.T) {
	t.Parallel()
	var used png.Encoder
	all := pictures()
	for _, name := range []string{"257 colours projected", "16 colours magnified", "256 colours projected", "translucent noise", "65 colours magnified", "one pixel"} {
		if p := all[name]; !bytes.Equal(encode(t, &used, p), encode(t, new(png.Encoder), p)) {
			t.Errorf("%s: a used encoder writes another file", name)
		}
	}
}

func TestAppendRejects(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name                 string
		bytes, width, height int
	}{
		{"no columns", 0, 0, 4},
		{"no rows", 0, 4, 0},
		{"sides below zero", 16, -2, -2},
		{"too few pixels", 4*16 - 1, 4, 4},
		{"too many pixels", 4*16 + 4, 4, 4},
		{"a side that is too long", 4 * 8193, 8193, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			dst, err := new(png.Encoder).Append([]byte("before"), make([]byte, test.bytes), test.width, test.height)
			testenv.Check(t, err != nil, "no error")
			testenv.Equal(t, string(dst), "before", "dst after an error")
		})
	}
}

// Files of repetitive pictures are about as small as those of optimising tools; the bounds are
// those sizes with a margin.
func TestFilesAreSmall(t *testing.T) {
	t.Parallel()
	all := pictures()
	for name, most := range map[string]int{
		"one colour":               90,
		"nothing":                  120,
		"16 colours magnified":     330,
		"64 colours magnified":     520,
		"64 colours projected":     2300,
		"1000 colours projected":   2600,
		"rows within reach":        50000,
		"packed blocks":            420000,
		"stored and packed blocks": 1230000,
		"opaque noise":             61*47*3 + 47 + 80,
		"larger than a block":      280*250*4 + 250 + 110,
	} {
		got := len(encode(t, new(png.Encoder), all[name]))
		testenv.Check(t, got <= most, "%s: %d bytes; want at most %d", name, got, most)
	}
}

func FuzzAppend(f *testing.F) {
	f.Add(uint16(8), uint16(8), uint8(1), uint8(3), []byte("\x00\x01\x02\x03"))
	f.Add(uint16(63), uint16(63), uint8(7), uint8(2), bytes.Repeat([]byte{1, 2, 3, 4, 5, 6, 7, 8}, 8))
	f.Add(uint16(33), uint16(90), uint8(0), uint8(0), slices.Repeat([]byte{0, 255, 3}, 40))
	f.Add(uint16(40), uint16(20), uint8(3), uint8(1), slices.Repeat([]byte{7, 8, 9, 255, 0, 0, 0, 0}, 40))
	f.Fuzz(func(t *testing.T, width, height uint16, cell, kind uint8, data []byte) {
		const most = 1 << 13 // pixels: larger pictures take seconds with the fuzzer's instrumentation
		checkCells(t, width, height, cell, kind, data, most)
	})
}

func TestAppendCells(t *testing.T) {
	t.Parallel()
	const most = 1 << 18 // pixels: several blocks, if they are all different
	checkCells(t, 400, 200, 3, 1, slices.Repeat([]byte{7, 8, 9, 255, 0, 0, 0, 0}, 40), most)
	checkCells(t, 499, 499, 1, 0, []byte("deep rows of few colours, by a palette"), most)
	checkCells(t, 511, 511, 0, 4, []byte{1, 3}, most) // stored blocks of a vast stream
	checkCells(t, 511, 399, 7, 4, []byte("noise and calm take turns in blocks"), most)
}

// checkCells checks pictures of at most so many pixels, in which each cell is of a kind.
func checkCells(t *testing.T, width, height uint16, cell, kind uint8, data []byte, most int) {
	t.Helper()
	if len(data) == 0 || len(data) > 1<<12 {
		return
	}
	w, k := 1+int(width)%1000, 1+int(cell)%16
	h := min(1+int(height)%1000, most/w)
	kinds := func(kind uint8) func(x, y int) uint32 {
		return func(x, y int) uint32 {
			at := (x/k + y/k*(w/k+1)) % len(data)
			b, next := uint32(data[at]), uint32(data[(at+1)%len(data)])
			switch kind % 5 {
			case 0: // few colours
				return b<<24 | b<<12 | 0xff
			case 1: // of any alpha
				return b * 0x01000193
			case 2: // many
				return (b<<16 | next) * 0x9e3779b1
			case 3: // many opaque ones
				return (b<<16|next)*0x9e3779b1 | 0xff
			default: // noise in some cells
				noise := uint32(y*w+x) * 0x9e3779b1
				noise = (noise ^ noise>>15) * 0x85ebca6b
				return b<<8 ^ (noise^noise>>13)*(b&1)
			}
		}
	}
	var e png.Encoder
	p, q := newPicture(w, h, kinds(kind)), newPicture(h, (w+1)/2, kinds(kind/5))
	file := encode(t, &e, p)
	checkPixels(t, file, p)
	checkPixels(t, encode(t, &e, q), q)
	testenv.Check(t, bytes.Equal(encode(t, &e, p), file), "the file differs after another picture")
	if width%4 == 3 {
		checkByLibvips(t, file, p)
	}
}
