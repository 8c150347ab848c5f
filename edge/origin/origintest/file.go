package origintest

import (
	"bytes"
	"image"
	"image/png"
	"testing"

	"github.com/veneer-skins/veneer/shared/skin"
)

// File returns a sheet as the file that core would store.
func File(tb testing.TB, sheet skin.Sheet, kind skin.Type) []byte {
	tb.Helper()
	var file bytes.Buffer
	picture := &image.NRGBA{Pix: sheet.Pix, Stride: 4 * sheet.Width, Rect: image.Rect(0, 0, sheet.Width, sheet.Height)}
	if err := png.Encode(&file, picture); err != nil {
		tb.Fatal(err)
	}
	texture, err := skin.Read(file.Bytes(), kind.String(), skin.DefaultLimits())
	if err != nil {
		tb.Fatal(err)
	}
	return texture.File
}
