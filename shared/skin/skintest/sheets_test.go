package skintest_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"testing"

	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/skin/skintest"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// Every texture is a valid upload, and no two are the same.
func TestSheetsAreTextures(t *testing.T) {
	t.Parallel()
	seen := map[[32]byte]string{}
	for _, texture := range append(skintest.Skins(), skintest.Capes()...) {
		upload, err := skin.ParseUpload(skintest.FromSheet(texture.Sheet).File(), texture.Type.String(), skin.DefaultLimits())
		if err != nil {
			t.Errorf("%s: %v", texture.Name, err)
			continue
		}
		testenv.Check(t, same(texture.Sheet, upload.Sheet), "%s changes when it is uploaded", texture.Name)
		other, ok := seen[upload.Pixels]
		testenv.Check(t, !ok, "%s and %s are the same picture", texture.Name, other)
		seen[upload.Pixels] = texture.Name
	}
}

// Measurements are comparable only while the textures do not change.
func TestSheetsAreStable(t *testing.T) {
	t.Parallel()
	sum := sha256.New()
	for _, texture := range append(skintest.Skins(), skintest.Capes()...) {
		fmt.Fprintf(sum, "%s %s %d %d\n%s", texture.Name, texture.Type, texture.Sheet.Width, texture.Sheet.Height, texture.Sheet.Pix)
	}
	const want = "f7d7023f855168c2"
	testenv.Equal(t, fmt.Sprintf("%x", sum.Sum(nil)[:8]), want, "the digest of the textures")
}

func TestMarkerColoursAreUnique(t *testing.T) {
	t.Parallel()
	const width, height = 512, 512
	marker := skintest.Marker(width, height)
	seen := make(map[[4]byte]bool, width*height)
	for i := 0; i < len(marker.Pix); i += 4 {
		texel := [4]byte(marker.Pix[i:])
		if seen[texel] || texel[3] != 255 {
			t.Fatalf("texel %d is %v; want an opaque colour of its own", i/4, texel)
		}
		seen[texel] = true
	}
	testenv.Equal(t, len(seen), width*height, "texels")
}

func same(a, b skin.Sheet) bool {
	return a.Width == b.Width && a.Height == b.Height && bytes.Equal(a.Pix, b.Pix)
}
