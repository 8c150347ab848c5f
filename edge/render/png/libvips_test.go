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
	img, err := vips.NewImageFromBuffer(file)
	if err != nil {
		tb.Fatalf("load: %v", err)
	}
	defer img.Close()
	if img.Width() != p.width || img.Height() != p.height {
		tb.Fatalf("%d × %d pixels; want %d × %d", img.Width(), img.Height(), p.width, p.height)
	}
	if img.Bands() == 1 || img.Bands() == 2 {
		if err := img.ToColorSpace(vips.InterpretationSRGB); err != nil {
			tb.Fatalf("to sRGB: %v", err)
		}
	}
	if img.Bands() == 3 {
		if err := img.AddAlpha(); err != nil {
			tb.Fatalf("add alpha: %v", err)
		}
	}
	pix, err := img.ToBytes()
	if err != nil {
		tb.Fatalf("read: %v", err)
	}
	if !bytes.Equal(pix, p.pix) {
		tb.Error("libvips reads other pixels")
	}
}

// libvipsStarted starts libvips once. Started implicitly it would start in several tests at
// once.
var libvipsStarted = sync.OnceValue(func() error {
	vips.LoggingSettings(nil, vips.LogLevelWarning)
	return vips.Startup(&vips.Config{ConcurrencyLevel: 1})
})
