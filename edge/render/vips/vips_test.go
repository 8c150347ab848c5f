package vips_test

import (
	"bytes"
	"fmt"
	"image"
	"image/png"
	"log/slog"
	"os"
	"regexp"
	"strings"
	"testing"

	govips "github.com/davidbyttow/govips/v2/vips"
	"golang.org/x/image/webp"

	"github.com/veneer-skins/veneer/edge/render"
	"github.com/veneer-skins/veneer/edge/render/vips"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/skin/artwork"
	"github.com/veneer-skins/veneer/shared/skin/skintest"
)

// One Encoder for all tests, because libvips starts only once in a process.
var encoder *vips.Encoder

// vipsLog is the log of libvips.
var vipsLog bytes.Buffer

func TestMain(m *testing.M) { os.Exit(run(m)) }

// run runs the tests. It fails the package if they leak memory or files of libvips or make it log.
func run(m *testing.M) int {
	var err error
	if encoder, err = vips.Start(slog.New(slog.NewTextHandler(&vipsLog, nil))); err != nil {
		fmt.Fprintln(os.Stderr, "start libvips:", err)
		return 1
	}
	defer encoder.Close()
	code := m.Run()

	var leaked govips.MemoryStats
	govips.ReadVipsMemStats(&leaked)
	leaked.MemHigh = 0
	if leaked != (govips.MemoryStats{}) {
		fmt.Fprintf(os.Stderr, "libvips still holds %+v\n", leaked)
		code = 1
	}
	if vipsLog.Len() > 0 {
		fmt.Fprintf(os.Stderr, "libvips logged:\n%s", vipsLog.String())
		code = 1
	}
	return code
}

// Decoded files of both formats have the pixels that were drawn, and no metadata.
func TestFormatsKeepEveryPixel(t *testing.T) {
	t.Parallel()

	if !encoder.Supports(render.WebP) {
		t.Fatal("this libvips cannot write WebP")
	}
	renderer := render.New(encoder, nil)
	sheet := skintest.Noise(1, 64, 32)
	for _, view := range []render.View{
		{Mode: render.Flat, Type: skin.Classic, Size: 96},
		{Mode: render.Isometric, Type: skin.Classic, Size: 96},
		{Mode: render.Preview, Type: skin.Slim, Size: 128},
		{Mode: render.Preview, Type: skin.Classic, Size: 1024}, // above all bounds of the settings
		{Mode: render.Preview, Type: skin.Cape, Size: 128},
	} {
		picture, err := renderer.Draw(sheet, skin.Sheet{}, view)
		if err != nil {
			t.Fatal(err)
		}
		for _, view.Format = range []render.Format{render.PNG, render.WebP} {
			file, _, err := renderer.Render(sheet, skin.Sheet{}, view)
			if err != nil {
				t.Fatal(err)
			}
			if bytes.Contains(file, []byte("EXIF")) || bytes.Contains(file, []byte("eXIf")) {
				t.Errorf("%+v: the file contains metadata", view)
			}
			if !bytes.Equal(decode(t, file, view.Format), picture.Pix) {
				t.Errorf("%+v: the file shows another picture", view)
			}
		}
	}
}

// decode returns the pixels of a file, with black for transparent ones.
func decode(t *testing.T, file []byte, format render.Format) []byte {
	t.Helper()
	read := png.Decode
	if format == render.WebP {
		read = webp.Decode
	}
	img, err := read(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	exact, ok := img.(*image.NRGBA)
	if !ok {
		exact = image.NewNRGBA(img.Bounds())
		for y := range exact.Rect.Dy() {
			for x := range exact.Rect.Dx() {
				exact.Set(x, y, img.At(x, y))
			}
		}
	}
	for i := 0; i < len(exact.Pix); i += 4 {
		if pixel := exact.Pix[i : i+4]; pixel[3] == 0 {
			clear(pixel) // libvips may choose its colour
		}
	}
	return exact.Pix
}

func TestEncodeRejects(t *testing.T) {
	t.Parallel()

	nothing := render.Picture{}
	pixel := render.Picture{Width: 1, Height: 1, Pix: make([]byte, 4)}
	wide := render.Picture{Width: 1<<14 + 1, Height: 1, Pix: make([]byte, 4<<14+4)}
	for _, rejected := range []struct {
		picture render.Picture
		format  render.Format
	}{{nothing, render.PNG}, {nothing, render.WebP}, {pixel, render.WebP + 1}, {wide, render.WebP}} {
		_, err := encoder.Encode(rejected.picture, rejected.format)
		// Govips adds a stack trace to what libvips says.
		if err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%d × %d pixels as %s: %v; want an error of one line", rejected.picture.Width, rejected.picture.Height, rejected.format, err)
		}
	}
	if encoder.Supports(render.WebP + 1) {
		t.Error("libvips supports an unknown format")
	}
}

// Encoders of one libvips have one revision, which is not the native encoder's.
func TestRevision(t *testing.T) {
	t.Parallel()

	other, err := vips.Start(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if got := encoder.Revision(); !regexp.MustCompile(`^[0-9a-f]{12}$`).MatchString(got) || got != other.Revision() {
		t.Errorf("Revision: %q and %q; want the same 12 digits", got, other.Revision())
	}
	if render.New(encoder, nil).Revision() == render.New(new(render.NativeEncoder), nil).Revision() {
		t.Error("the files of libvips and of the native encoders have one revision")
	}
}

// BenchmarkEncode measures each mode at its default size.
func BenchmarkEncode(b *testing.B) {
	renderer := render.New(encoder, nil)
	for _, view := range []render.View{
		{Mode: render.Flat, Type: skin.Classic, Size: render.DefaultSize},
		{Mode: render.Isometric, Type: skin.Classic, Size: render.DefaultSize},
		{Mode: render.Preview, Type: skin.Classic, Size: render.DefaultHeight},
	} {
		picture, err := renderer.Draw(artwork.Explorer(), skin.Sheet{}, view)
		if err != nil {
			b.Fatal(err)
		}
		for _, format := range []render.Format{render.PNG, render.WebP} {
			b.Run("mode="+view.Mode.String()+"/format="+format.String(), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					file, err := encoder.Encode(picture, format)
					if err != nil {
						b.Fatal(err)
					}
					b.ReportMetric(float64(len(file)), "file-bytes")
				}
			})
		}
	}
}
