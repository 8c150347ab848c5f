//go:build !race

package webp_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"image"
	"math/rand/v2"
	"testing"

	reader "golang.org/x/image/webp"

	"github.com/veneer-skins/veneer/edge/render"
	"github.com/veneer-skins/veneer/edge/render/webp"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/skin/artwork"
	"github.com/veneer-skins/veneer/shared/skin/skintest"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// renderer draws the pictures that are encoded.
var renderer = render.New(nil)

// picture is the input of webp.Encoder.Append.
type picture struct {
	name          string
	pix           []byte
	width, height int
}

// blank returns a picture to be painted.
func blank(name string, width, height int) picture {
	return picture{name, make([]byte, 4*width*height), width, height}
}

// paint sets every pixel to the colour that f returns, red in its highest byte.
func (p picture) paint(f func(x, y int) uint32) picture {
	for i := range p.width * p.height {
		binary.BigEndian.PutUint32(p.pix[4*i:], f(i%p.width, i/p.width))
	}
	return p
}

// views are the views of skins that are measured.
var views = []struct {
	name string
	view render.View
}{
	{"flat", render.View{Mode: render.Flat, Size: 128}},
	{"head", render.View{Mode: render.Isometric, Size: 128}},
	{"preview", render.View{Mode: render.Preview, Size: render.DefaultHeight}},
}

func draw(tb testing.TB, of artwork.NamedSheet, view render.View) picture {
	tb.Helper()
	view.Type = of.Type
	p := testenv.Must(renderer.Draw(of.Sheet, skin.Sheet{}, view))(tb)
	return picture{of.Name, p.Pix, p.Width, p.Height}
}

// checkEncoding checks that the file of a picture is well-formed and that three decoders read
// every pixel, the colours of transparent ones included.
func checkEncoding(tb testing.TB, e *webp.Encoder, p picture) {
	tb.Helper()
	file := testenv.Must(e.Append(nil, p.pix, p.width, p.height))(tb)
	checkStructure(tb, p, file)
	checkDecodes(tb, p, file, "golang.org/x/image", decodeInGo)
	checkByLibraries(tb, p, file)
}

// checkDecodes checks that a decoder reads the picture.
func checkDecodes(tb testing.TB, p picture, file []byte, name string, decode func([]byte) ([]byte, int, int, error)) {
	tb.Helper()
	pix, width, height, err := decode(file)
	if err != nil || width != p.width || height != p.height {
		tb.Fatalf("%s, %d × %d: %s reads %d × %d pixels, %v", p.name, p.width, p.height, name, width, height, err)
	}
	if !bytes.Equal(pix, p.pix) {
		tb.Fatalf("%s, %d × %d: %s reads other pixels", p.name, p.width, p.height, name)
	}
}

// checkStructure checks that a file is a RIFF header and one VP8L chunk, padded to an even
// length, with the right size and alpha flag.
func checkStructure(tb testing.TB, p picture, file []byte) {
	tb.Helper()
	if len(file) < 25 || string(file[:4]) != "RIFF" || string(file[8:16]) != "WEBPVP8L" || file[20] != 0x2f {
		tb.Fatalf("%s: the file begins with %q", p.name, file[:min(25, len(file))])
	}
	length := int(binary.LittleEndian.Uint32(file[16:]))
	if whole := int(binary.LittleEndian.Uint32(file[4:])); whole+8 != len(file) || 20+length+length%2 != len(file) {
		tb.Fatalf("%s: a file of %d bytes says %d, with a chunk of %d", p.name, len(file), whole, length)
	}
	if length%2 == 1 && file[len(file)-1] != 0 {
		tb.Fatalf("%s: the padding is not 0", p.name)
	}
	opaque := true
	for i := 3; i < len(p.pix); i += 4 {
		opaque = opaque && p.pix[i] == 255
	}
	header := binary.LittleEndian.Uint32(file[21:])
	if got, want := header>>28&1 == 0, opaque; got != want {
		tb.Fatalf("%s: the opaque flag is %t; want %t", p.name, got, want)
	}
}

func decodeInGo(file []byte) (pix []byte, width, height int, err error) {
	img, err := reader.Decode(bytes.NewReader(file))
	if err != nil {
		return nil, 0, 0, err
	}
	nrgba, ok := img.(*image.NRGBA)
	if !ok {
		return nil, 0, 0, fmt.Errorf("an image of type %T", img)
	}
	return nrgba.Pix, nrgba.Rect.Dx(), nrgba.Rect.Dy(), nil
}

func TestPicturesOfSkins(t *testing.T) {
	t.Parallel()
	skins := skintest.Skins()
	for _, view := range []render.View{
		{Mode: render.Flat, Size: 8},
		{Mode: render.Flat, Size: 64},
		{Mode: render.Flat, Size: 128},
		{Mode: render.Isometric, Size: 64},
		{Mode: render.Isometric, Size: 128},
		{Mode: render.Preview, Size: 64},
		{Mode: render.Preview, Size: 128},
	} {
		t.Run(fmt.Sprintf("%s %d", view.Mode, view.Size), func(t *testing.T) {
			t.Parallel()
			var e webp.Encoder
			for _, of := range skins {
				checkEncoding(t, &e, draw(t, of, view))
			}
		})
	}
	t.Run("large", func(t *testing.T) {
		t.Parallel()
		var e webp.Encoder
		for i, of := range skins {
			if i%4 == 0 {
				checkEncoding(t, &e, draw(t, of, render.View{Mode: render.Isometric, Size: 512}))
				checkEncoding(t, &e, draw(t, of, render.View{Mode: render.Preview, Size: render.DefaultHeight}))
			}
		}
		for _, of := range skintest.Capes() {
			checkEncoding(t, &e, draw(t, of, render.View{Mode: render.Preview, Size: render.DefaultHeight}))
		}
	})
}

// Every width and height up to 40, with few colours and with many, with large
// texels and small ones.
func TestAllSmallSizes(t *testing.T) {
	t.Parallel()
	const most = 40
	for width := 1; width <= most; width++ {
		t.Run(fmt.Sprint(width), func(t *testing.T) {
			t.Parallel()
			var e webp.Encoder
			random := rand.New(rand.NewPCG(uint64(width), 1))
			for height := 1; height <= most; height++ {
				palette := make([]uint32, 1<<random.IntN(10))
				for i := range palette {
					palette[i] = random.Uint32()
				}
				texel := 1 + random.IntN(6)
				texels := make([]uint32, (most/texel+1)*(most/texel+1))
				for i := range texels {
					texels[i] = palette[random.IntN(len(palette))]
				}
				checkEncoding(t, &e, blank("texels", width, height).paint(func(x, y int) uint32 {
					return texels[y/texel*(most/texel+1)+x/texel]
				}))
			}
		})
	}
}

func TestExtremes(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	pictures := []picture{
		blank("nothing", 1, 1),
		blank("white", 1, 1).paint(func(int, int) uint32 { return 0xffffffff }),
		blank("one row", 1<<14, 1).paint(func(x, _ int) uint32 { return uint32(x/3) * 0x9e3779b1 }),
		blank("one column", 1, 1<<14).paint(func(_, y int) uint32 { return uint32(y%7) * 0x9e3779b1 }),
		blank("one colour in one row", 1<<14, 1).paint(func(int, int) uint32 { return 0x336699ff }),
		blank("one colour in one column", 1, 1<<14).paint(func(int, int) uint32 { return 0x336699ff }),
		blank("one colour everywhere", 1000, 1000).paint(func(int, int) uint32 { return 0x00ff0080 }),
		blank("colours of transparent pixels", 60, 60).paint(func(x, y int) uint32 { return uint32(x/2)<<24 | uint32(y/3)<<12&0xffff00 }),
		blank("all alphas of one colour", 16, 16).paint(func(x, y int) uint32 { return 0xc0804000 | uint32(16*y+x) }),
		blank("a gradient", 256, 200).paint(func(x, y int) uint32 { return uint32(x)<<24 | uint32(y)<<16 | uint32(x+y)<<8&0xff00 | 255 }),
		blank("a steep gradient", 99, 200).paint(func(x, y int) uint32 { return uint32(37*x+y)<<24 | uint32(91*y)<<16&0xff0000 | uint32(x*y)&0xffff }),
		blank("noise", 300, 300).paint(func(int, int) uint32 { return random.Uint32() }),
		blank("opaque noise", 100, 100).paint(func(int, int) uint32 { return random.Uint32() | 255 }),
		blank("noise in one channel", 100, 100).paint(func(int, int) uint32 { return random.Uint32()&0xff0000 | 255 }),
		blank("long copies from above", 5000, 4).paint(func(x, y int) uint32 { return uint32(x*x)*0x9e3779b1 | uint32(y/4) }),
		blank("long copies from afar", 100, 150).paint(func(x, y int) uint32 { return uint32(100*(y%50)+x) * 0x9e3779b1 }),
		blank("copies from too far away", 1500, 1500).paint(func(x, y int) uint32 {
			if y%1400 > 0 {
				return 0x336699ff
			}
			return uint32(x/5) * 0x9e3779b1
		}),
		blank("shifted rows", 200, 100).paint(func(x, y int) uint32 { return uint32((x+2*y)/9) * 0x9e3779b1 }),
		blank("rows shifted the other way", 200, 100).paint(func(x, y int) uint32 { return uint32((x+400-3*y)/9) * 0x9e3779b1 }),
		blank("an outline on one colour", 300, 300).paint(func(x, y int) uint32 {
			return 0x40404000 | uint32(min(max((x-150)*(x-150)+(y-150)*(y-150)-5000, 0)/4, 255))
		}),
	}
	for _, colours := range []int{2, 3, 4, 5, 8, 16, 17, 32, 255, 256, 257, 600} {
		for _, width := range []int{1, 7, 33, 64} {
			pictures = append(pictures,
				blank(fmt.Sprint(colours, " colours, mixed"), width, 1+2*colours/width).paint(func(int, int) uint32 {
					return uint32(random.IntN(colours)) * 0x9e3779b1
				}),
				blank(fmt.Sprint(colours, " colours, in order"), width, 1+8*colours/width).paint(func(x, y int) uint32 {
					return uint32((y*width+x)/8) * 0x9e3779b1
				}))
		}
	}
	var e webp.Encoder
	for _, p := range pictures {
		checkEncoding(t, &e, p)
	}
}

// A file does not depend on the Encoder's previous pictures or on the content of dst.
func TestAppend(t *testing.T) {
	t.Parallel()
	var used webp.Encoder
	for _, view := range views {
		for _, of := range artwork.Skins() {
			p := draw(t, of, view.view)
			want := testenv.Must(new(webp.Encoder).Append(nil, p.pix, p.width, p.height))(t)
			got, err := used.Append([]byte("before"), p.pix, p.width, p.height)
			testenv.Check(t, err == nil && string(got[:6]) == "before" && bytes.Equal(got[6:], want),
				"%s of %s: a used Encoder appends another file, or %v", view.name, p.name, err)
		}
	}
}

func TestAppendRejects(t *testing.T) {
	t.Parallel()
	f := func(length, width, height int) {
		t.Helper()
		dst := []byte("before")
		got, err := new(webp.Encoder).Append(dst, make([]byte, length), width, height)
		testenv.Check(t, err != nil && string(got) == "before",
			"Append(%d bytes, %d, %d) = %q, %v; want an error and nothing appended", length, width, height, got, err)
	}

	f(0, 0, 0)
	f(0, 0, 5)
	f(0, 5, 0)
	f(4, -1, -1)
	f(15, 2, 2)
	f(17, 2, 2)
	f(16, 2, 3)
	f(4*(1<<14+1), 1<<14+1, 1)
	f(4*(1<<14+1), 1, 1<<14+1)
	f(0, 1<<62, 4)
}

// checkSquares checks a picture with pixels drawn as squares of a size, and then, with the same
// Encoder, as single ones.
func checkSquares(t *testing.T, width, scale uint8, pixels []byte, most int) {
	t.Helper()
	columns := max(int(width), 1)
	var e webp.Encoder
	for _, k := range []int{max(int(scale), 1), 1} {
		rows := min(len(pixels)/4, most/k/k) / columns
		if rows == 0 || rows*k > 1<<14 {
			continue
		}
		checkEncoding(t, &e, blank("squares", columns*k, rows*k).paint(func(x, y int) uint32 {
			return binary.BigEndian.Uint32(pixels[4*(y/k*columns+x/k):])
		}))
	}
}

func TestAppendSquares(t *testing.T) {
	t.Parallel()
	sheet := artwork.Explorer()
	checkSquares(t, 64, 1, sheet.Pix, 1<<18)
	checkSquares(t, 64, 6, sheet.Pix, 1<<18) // large enough for two groups of codes
	checkSquares(t, 1, 200, []byte("abcdefghabcdefgh"), 1<<18)
}

// FuzzAppend encodes small pictures: each is decoded three times, and one of 2^18 pixels takes
// seconds with the fuzzer's instrumentation, for each attempt to minimise it too.
func FuzzAppend(f *testing.F) {
	sheet := artwork.Explorer()
	f.Add(uint8(64), uint8(1), sheet.Pix[:64*4*16])
	f.Add(uint8(8), uint8(8), sheet.Pix[:256])
	f.Add(uint8(5), uint8(3), bytes.Repeat([]byte{0, 1, 2, 255}, 33))
	f.Add(uint8(1), uint8(20), []byte("abcdefghabcdefgh"))
	f.Fuzz(func(t *testing.T, width, scale uint8, pixels []byte) { checkSquares(t, width, scale, pixels, 1<<12) })
}
