//go:build cgo && !race

package png_test

import (
	"bytes"
	"sync"
	"testing"

	"github.com/davidbyttow/govips/v2/vips"

	"github.com/veneer-skins/veneer/shared/testenv"
)

// checkByLibvips checks that libvips, whose decoder is independent of Go's, decodes the picture from the file.
func checkByLibvips(tb testing.TB, file []byte, p picture) {
	tb.Helper()
	testenv.Do(tb, libvipsStarted())
	img := testenv.Must(vips.NewImageFromBuffer(file))(tb)
	defer img.Close()
	if img.Width() != p.width || img.Height() != p.height {
		tb.Fatalf("%d × %d pixels; want %d × %d", img.Width(), img.Height(), p.width, p.height)
	}
	if img.Bands() == 1 || img.Bands() == 2 {
		testenv.Do(tb, img.ToColorSpace(vips.InterpretationSRGB))
	}
	if img.Bands() == 3 {
		testenv.Do(tb, img.AddAlpha())
	}
	testenv.Check(tb, bytes.Equal(testenv.Must(img.ToBytes())(tb), p.pix), "libvips reads other pixels")
}

// libvipsStarted starts libvips once. Started implicitly it would start in several tests at
// once.
var libvipsStarted = sync.OnceValue(func() error {
	vips.LoggingSettings(nil, vips.LogLevelWarning)
	return vips.Startup(&vips.Config{ConcurrencyLevel: 1})
})
