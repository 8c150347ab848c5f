package origintest

import (
	"testing"

	"github.com/veneer-skins/veneer/shared/skin"
)

// File returns the file that core would store for a sheet.
func File(tb testing.TB, sheet skin.Sheet, kind skin.Type) []byte {
	tb.Helper()
	file, err := sheet.PNG()
	if err != nil {
		tb.Fatal(err)
	}
	texture, err := skin.ParseUpload(file, kind.String(), skin.DefaultLimits())
	if err != nil {
		tb.Fatal(err)
	}
	return texture.File
}
