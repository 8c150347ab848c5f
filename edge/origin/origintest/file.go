package origintest

import (
	"testing"

	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// File returns the file that core would store for a sheet.
func File(tb testing.TB, sheet skin.Sheet, kind skin.Type) []byte {
	tb.Helper()
	file := testenv.Must(sheet.PNG())(tb)
	texture := testenv.Must(skin.ParseUpload(file, kind.String(), skin.DefaultLimits()))(tb)
	return texture.File
}
