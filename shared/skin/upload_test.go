//go:build !race

package skin_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/skin/artwork"
	"github.com/veneer-skins/veneer/shared/skin/skintest"
	"github.com/veneer-skins/veneer/shared/testenv"
	"github.com/veneer-skins/veneer/shared/testenv/cmptest"
)

func TestParseUploadSizes(t *testing.T) {
	t.Parallel()
	type stored struct {
		Type          skin.Type
		Width, Height int
	}
	f := func(as string, width, height int, want stored) {
		t.Helper()
		texture, err := skin.ParseUpload(skintest.Blank(width, height), as, skin.DefaultLimits())
		if err != nil {
			t.Errorf("%s of %d × %d: %v", as, width, height, err)
			return
		}
		got := stored{texture.Type, texture.Sheet.Width, texture.Sheet.Height}
		cmptest.Same(t, got, want, "%s of %d × %d", as, width, height)
	}

	for _, k := range []int{1, 2, 3, 8} {
		f("steve", 64*k, 64*k, stored{skin.Classic, 64 * k, 64 * k})
		f("steve", 64*k, 32*k, stored{skin.Classic, 64 * k, 32 * k})
		f("alex", 64*k, 64*k, stored{skin.Slim, 64 * k, 64 * k})
		f("skin", 64*k, 64*k, stored{skin.Classic, 64 * k, 64 * k})
		f("skin", 64*k, 32*k, stored{skin.Classic, 64 * k, 32 * k})
		f("cape", 64*k, 32*k, stored{skin.Cape, 64 * k, 32 * k})
		f("cape", 22*k, 17*k, stored{skin.Cape, 64 * k, 32 * k})
		f("cape", 46*k, 22*k, stored{skin.Cape, 64 * k, 32 * k})
	}
}

func TestParseUploadDetectsSlimArms(t *testing.T) {
	t.Parallel()
	for _, painting := range artwork.Skins() {
		texture, err := skin.ParseUpload(skintest.FromSheet(painting.Sheet).File(), "skin", skin.DefaultLimits())
		testenv.Check(t, err == nil && texture.Type == painting.Type,
			"%s: %s, %v; want %s", painting.Name, texture.Type, err, painting.Type)
	}
}

func TestParseUploadPadsOldCapes(t *testing.T) {
	t.Parallel()
	for _, size := range [][2]int{{22, 17}, {46, 22}, {44, 34}, {92, 44}} {
		cape := skintest.Noise(5, size[0], size[1])
		texture, err := skin.ParseUpload(skintest.FromSheet(cape).File(), "cape", skin.DefaultLimits())
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

func TestParseUploadWrongSizes(t *testing.T) {
	t.Parallel()
	f := func(as string, width, height int, want string) {
		t.Helper()
		_, err := skin.ParseUpload(skintest.Blank(width, height), as, skin.DefaultLimits())
		checkRefusal(t, as, err, fmt.Sprintf("it is %d × %d pixels; %s", width, height, want))
	}

	f("steve", 63, 64, "a skin has 64 × 64 or 64 × 32, or a multiple of that up to 8 times.")
	f("skin", 32, 64, "a skin has 64 × 64 or 64 × 32")
	f("steve", 96, 96, "a skin has")
	f("steve", 22, 17, "a skin has")
	f("steve", 576, 576, "a skin has")
	f("cape", 22*9, 17*9, "a cape has")
	f("alex", 64, 32, "a skin with slim arms has 64 × 64")
	f("cape", 64, 64, "a cape has 64 × 32, 22 × 17 or 46 × 22")
	f("cape", 22, 34, "a cape has")
	f("cape", 44, 17, "a cape has")
	f("cape", 1, 1, "a cape has")
}

// checkRefusal checks that an upload is rejected with one sentence about its file that
// contains want.
func checkRefusal(t *testing.T, name string, err error, want string) {
	t.Helper()
	refusal := fault.Of(err)
	if refusal.Kind != fault.Invalid || len(refusal.Fields["file"]) != 1 {
		t.Errorf("%s: %v; want an Invalid fault about the file", name, err)
		return
	}
	if sentence := refusal.Fields["file"][0]; !strings.Contains(sentence, want) || !strings.HasSuffix(sentence, ".") {
		t.Errorf("%s: the message is %q; want a sentence with %q", name, sentence, want)
	}
}

func TestParseUploadWrongTypes(t *testing.T) {
	t.Parallel()
	for _, as := range []string{"", "Steve", "elytra", "skin "} {
		_, err := skin.ParseUpload(skintest.FromSheet(skintest.Marker(64, 64)).File(), as, skin.DefaultLimits())
		if refusal := fault.Of(err); refusal.Kind != fault.Invalid || len(refusal.Fields["type"]) != 1 {
			t.Errorf("type %q: %v; want an Invalid fault about the type", as, err)
		}
	}
}

func TestParseUploadLimits(t *testing.T) {
	t.Parallel()
	classic := skintest.FromSheet(skintest.Marker(64, 64)).File()
	f := func(file []byte, limits skin.Limits, want fault.Kind) {
		t.Helper()
		_, err := skin.ParseUpload(file, "steve", limits)
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
	double := skintest.Blank(128, 128)
	f(double, skin.Limits{Scale: 1}, fault.Invalid)
	f(double, skin.Limits{Scale: 2}, accepted)
	f(skintest.Blank(64*skin.MaxScale, 64*skin.MaxScale), skin.Limits{}, accepted)
	f(skintest.Blank(64*(skin.MaxScale+1), 64*(skin.MaxScale+1)), skin.Limits{Scale: 99}, fault.Invalid)
}

// The stored pixels are the uploaded ones, bit for bit, and parsing them again changes
// nothing.
func TestParseUploadKeepsPixels(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		as := rapid.SampledFrom([]string{"steve", "alex", "skin", "cape"}).Draw(r, "type")
		height := 64
		if as == "cape" || as != "alex" && rapid.Bool().Draw(r, "legacy") {
			height = 32
		}
		sheet := skintest.Noise(rapid.Uint64().Draw(r, "seed"), 64, height)
		if rapid.Bool().Draw(r, "opaque") {
			for i := 3; i < len(sheet.Pix); i += 4 {
				sheet.Pix[i] = 255
			}
		}

		texture, err := skin.ParseUpload(skintest.FromSheet(sheet).File(), as, skin.DefaultLimits())
		if err != nil {
			r.Fatal(err)
		}
		if !same(texture.Sheet, sheet) {
			r.Fatal("the sheet changed")
		}
		checkTexture(r, texture)
	})
}

// checkTexture checks the invariants of a texture that ParseUpload returns.
func checkTexture(t interface {
	Helper()
	Fatalf(format string, args ...any)
}, texture skin.Texture,
) {
	t.Helper()
	if texture.Hash != skin.HashOf(texture.File) || texture.Pixels != texture.Sheet.Digest() {
		t.Fatalf("the digests are not those of the file and the sheet")
	}
	if stored, err := skintest.Read(texture.File); err != nil || !same(stored, texture.Sheet) {
		t.Fatalf("the stored file has another sheet, or other data: %v", err)
	}
	if texture.Type.String() == "" || len(texture.Sheet.Pix) != 4*texture.Sheet.Width*texture.Sheet.Height {
		t.Fatalf("a %q of %d × %d texels has %d bytes", texture.Type, texture.Sheet.Width, texture.Sheet.Height, len(texture.Sheet.Pix))
	}
	sheet, err := skin.Decode(texture.File)
	if err != nil || !same(sheet, texture.Sheet) {
		t.Fatalf("the stored file decodes to another sheet, or not at all: %v", err)
	}
	again, err := skin.ParseUpload(texture.File, texture.Type.String(), skin.Limits{})
	if err != nil || again.Hash != texture.Hash || again.Pixels != texture.Pixels || again.Type != texture.Type {
		t.Fatalf("the stored file is read as another texture, or not at all: %v", err)
	}
}

func TestDigest(t *testing.T) {
	t.Parallel()
	// Computed with: printf '\0\0\0\2\0\0\0\1\1\2\3\4\5\6\7\10' | sha256sum.
	sheet := skin.Sheet{Width: 2, Height: 1, Pix: []byte{1, 2, 3, 4, 5, 6, 7, 8}}
	const want = "6df082ee9e3a3ee94a5b45e56195b613d35ef923f0eae841590515b750f34dcd"
	testenv.Equal(t, skin.Hash(sheet.Digest()).String(), want, "the digest")
	turned := skin.Sheet{Width: 1, Height: 2, Pix: sheet.Pix}
	testenv.Check(t, turned.Digest() != sheet.Digest(), "sheets of different shapes have the same digest")

	rapid.Check(t, func(t *rapid.T) {
		sheet := skintest.Noise(rapid.Uint64().Draw(t, "seed"), 64, 32)
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
		sheet := skintest.Noise(9, size[0], size[1])
		got, err := skin.Decode(skintest.FromSheet(sheet).File())
		testenv.Check(t, err == nil && same(got, sheet), "%v: another sheet, or %v", size, err)
		if w, h, err := skin.SizeOf(skintest.FromSheet(sheet).File()); w != size[0] || h != size[1] || err != nil {
			t.Errorf("SizeOf() of %v = %d, %d, %v", size, w, h, err)
		}
	}
	const most = 64 * skin.MaxScale
	got, err := skin.Decode(skintest.Blank(most, most))
	testenv.Check(t, err == nil && same(got, skin.NewSheet(most, most)), "the largest sheet: another sheet, or %v", err)
	for name, file := range map[string][]byte{
		"nothing":              nil,
		"the size of a corner": skintest.Blank(22, 17),
		"beyond any scale":     skintest.Blank(most+64, most+64),
		"cut off":              skintest.FromSheet(skintest.Marker(64, 64)).File()[:500],
	} {
		_, err := skin.Decode(file)
		if fault.KindOf(err) != fault.Internal || !strings.HasPrefix(errors.Unwrap(fault.Of(err)).Error(), "decode texture: ") {
			t.Errorf("%s: %v; want a plain error", name, err)
		}
		if _, _, err := skin.SizeOf(file); (err == nil) != (name == "cut off") { // only decoding detects it
			t.Errorf("SizeOf() of %s: %v", name, err)
		}
	}
}

func BenchmarkParseUpload(b *testing.B) {
	for _, bench := range benchmarks() {
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				testenv.Must(skin.ParseUpload(bench.file, "steve", skin.DefaultLimits()))(b)
			}
		})
	}
}

func BenchmarkDecode(b *testing.B) {
	for _, bench := range benchmarks() {
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				testenv.Must(skin.Decode(bench.file))(b)
			}
		})
	}
}

type benchmark struct {
	name string
	file []byte
}

func benchmarks() []benchmark {
	return []benchmark{
		{"classic", skintest.FromSheet(artwork.Explorer()).File()},
		{"hd", skintest.FromSheet(artwork.Robot()).File()},
		{"noise512", skintest.FromSheet(skintest.Noise(1, 512, 512)).File()},
	}
}
