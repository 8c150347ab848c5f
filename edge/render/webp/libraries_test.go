//go:build cgo && !race

package webp_test

import (
	"sync"
	"testing"

	"github.com/davidbyttow/govips/v2/vips"

	"github.com/veneer-skins/veneer/edge/render/vips/libwebp"
	"github.com/veneer-skins/veneer/edge/render/webp"
	"github.com/veneer-skins/veneer/shared/skin/skintest"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// checkByLibraries checks that libwebp and libvips read the picture.
func checkByLibraries(tb testing.TB, p picture, file []byte) {
	tb.Helper()
	checkDecodes(tb, p, file, "libwebp", libwebp.Decode)
	if max(p.width, p.height) < 1<<14 { // a pixel less than the format allows
		checkDecodes(tb, p, file, "libvips", decodeWithVIPS)
	}
}

func decodeWithVIPS(file []byte) (pix []byte, width, height int, err error) {
	if err := libvipsStarted(); err != nil {
		return nil, 0, 0, err
	}
	ref, err := vips.NewImageFromBuffer(file)
	if err != nil {
		return nil, 0, 0, err
	}
	defer ref.Close()
	if pix, err = ref.ToBytes(); err != nil {
		return nil, 0, 0, err
	}
	if ref.Bands() == 3 { // opaque
		var all []byte
		for i := 0; i < len(pix); i += 3 {
			all = append(all, pix[i], pix[i+1], pix[i+2], 255)
		}
		pix = all
	}
	return pix, ref.Width(), ref.Height(), nil
}

// The files of all skins are no larger than libwebp's at settings that take far longer.
func TestFilesAreSmall(t *testing.T) {
	t.Parallel()
	testenv.SkipShort(t)

	for _, test := range []struct {
		view            int
		method, quality int
		percent         int
	}{
		{0, 6, 100, 102},
		{1, 4, 75, 100},
		{2, 4, 75, 100},
	} {
		own, libwebpSize := 0, 0
		var e webp.Encoder
		for i, of := range skintest.Skins() {
			if i%5 > 0 {
				continue
			}
			p := draw(t, of, views[test.view].view)
			file := testenv.Must(e.Append(nil, p.pix, p.width, p.height))(t)
			reference := testenv.Must(libwebp.Encode(p.pix, p.width, p.height, test.method, test.quality))(t)
			own += len(file)
			libwebpSize += len(reference)
		}
		testenv.Check(t, 100*own <= test.percent*libwebpSize,
			"%s: %d bytes; libwebp takes %d", views[test.view].name, own, libwebpSize)
	}
}

// BenchmarkEncode compares the encoder with the fastest setting of libwebp that makes files
// nearly as small.
func BenchmarkEncode(b *testing.B) {
	var e webp.Encoder
	var dst []byte
	for _, view := range views {
		for _, of := range skintest.Skins() {
			switch of.Name {
			case "Explorer", "Plain 1", "Noise", "HD Detail 1":
			default:
				continue
			}
			p := draw(b, of, view.view)
			b.Run("view="+view.name+"/skin="+of.Name+"/writer=webp", func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					dst, _ = e.Append(dst[:0], p.pix, p.width, p.height)
				}
				b.ReportMetric(float64(len(dst)), "file-bytes")
			})
			b.Run("view="+view.name+"/skin="+of.Name+"/writer=libwebp", func(b *testing.B) {
				var file []byte
				for b.Loop() {
					file, _ = libwebp.Encode(p.pix, p.width, p.height, 1, 20)
				}
				b.ReportMetric(float64(len(file)), "file-bytes")
			})
		}
	}
}

// libvipsStarted starts libvips once. Started implicitly it would start in several tests at
// once.
var libvipsStarted = sync.OnceValue(func() error {
	vips.LoggingSettings(nil, vips.LogLevelWarning)
	return vips.Startup(&vips.Config{ConcurrencyLevel: 1})
})
