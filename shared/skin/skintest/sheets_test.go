package skintest_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"

	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/skin/artwork"
	"github.com/veneer-skins/veneer/shared/skin/skintest"
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
		if !same(texture.Sheet, upload.Sheet) {
			t.Errorf("%s changes when it is uploaded", texture.Name)
		}
		if other, ok := seen[upload.Pixels]; ok {
			t.Errorf("%s and %s are the same picture", texture.Name, other)
		}
		seen[upload.Pixels] = texture.Name
	}
}

func TestSkinsShowTheirModel(t *testing.T) {
	t.Parallel()

	for _, texture := range skintest.Skins() {
		if isNoise(texture) {
			continue // it has no model
		}
		if got := skin.DetectModel(texture.Sheet); got != texture.Type {
			t.Errorf("%s is painted for %s, but detected as %s", texture.Name, texture.Type, got)
		}
	}
}

// Every face of the base layer is opaque, so that no view shows a hole that the game would
// fill with black.
func TestFacesAreOpaque(t *testing.T) {
	t.Parallel()

	for _, texture := range skintest.Skins() {
		if isNoise(texture) {
			continue
		}
		legacy := texture.Sheet.Height < texture.Sheet.Width
		parts := []skin.Part{skin.Head, skin.Body, skin.RightArm, skin.RightLeg}
		if !legacy {
			parts = append(parts, skin.LeftArm, skin.LeftLeg)
		}
		for _, part := range parts {
			box := skin.Faces(part, texture.Type)
			for _, face := range []skin.Rect{box.Top, box.Bottom, box.Right, box.Front, box.Left, box.Back} {
				if !opaque(texture.Sheet, face.Scaled(texture.Sheet.Scale())) {
					t.Errorf("%s: part %d has a hole in the face %+v", texture.Name, part, face)
				}
			}
		}
	}
	for _, cape := range artwork.Capes() {
		box := skin.CapeFaces()
		for _, face := range []skin.Rect{box.Top, box.Bottom, box.Right, box.Front, box.Left, box.Back} {
			if !opaque(cape.Sheet, face) {
				t.Errorf("%s has a hole in the face %+v", cape.Name, face)
			}
		}
	}
}

// The skins cover all that players use, with rare features in small numbers.
func TestSkinsAreVaried(t *testing.T) {
	t.Parallel()

	skins := skintest.Skins()
	if len(skins) != 50 || len(skintest.Capes()) != 8 {
		t.Errorf("%d skins and %d capes; want 50 and 8", len(skins), len(skintest.Capes()))
	}
	count := map[string]int{}
	for _, texture := range skins {
		sheet := texture.Sheet
		colours, holes, translucent := map[[4]byte]bool{}, false, false
		for i := 0; i < len(sheet.Pix); i += 4 {
			texel := [4]byte(sheet.Pix[i:])
			holes = holes || texel[3] == 0
			translucent = translucent || texel[3] > 0 && texel[3] < 255
			if texel[3] > 0 {
				colours[texel] = true
			}
		}
		for kind, is := range map[string]bool{
			"slim":                       texture.Type == skin.Slim,
			"legacy":                     sheet.Height < sheet.Width,
			"of scale 2":                 sheet.Scale() == 2,
			"of scale 4":                 sheet.Scale() == 4,
			"of scale 8":                 sheet.Scale() == 8,
			"see-through":                translucent,
			"with holes":                 holes,
			"of 32 colours at most":      len(colours) <= 32,
			"of more than 256 colours":   len(colours) > 256,
			"of more than 2,000 colours": len(colours) > 2000,
			"noise":                      isNoise(texture),
		} {
			if is {
				count[kind]++
			}
		}
	}
	for kind, least := range map[string]int{
		"slim": 12, "legacy": 4, "of scale 2": 2, "of scale 4": 2, "of scale 8": 2, "see-through": 10, "with holes": 40,
		"of 32 colours at most": 4, "of more than 256 colours": 15, "of more than 2,000 colours": 4,
	} {
		if count[kind] < least {
			t.Errorf("%d skins %s; want %d at least", count[kind], kind, least)
		}
	}
	if count["noise"] > 6 {
		t.Errorf("%d skins are noise; want 6 at most", count["noise"])
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
	if got := fmt.Sprintf("%x", sum.Sum(nil)[:8]); got != want {
		t.Errorf("the digest of the textures is %s; want %s", got, want)
	}
}

func TestNoiseDependsOnItsSeed(t *testing.T) {
	t.Parallel()

	if !same(skintest.Noise(7, 64, 32), skintest.Noise(7, 64, 32)) {
		t.Error("one seed gives two noises")
	}
	if same(skintest.Noise(7, 64, 32), skintest.Noise(8, 64, 32)) {
		t.Error("two seeds give the same noise")
	}
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
	if len(seen) != width*height {
		t.Errorf("%d texels; want %d", len(seen), width*height)
	}
}

func TestNoiseHasEveryKindOfAlpha(t *testing.T) {
	t.Parallel()

	noise := skintest.Noise(1, 64, 64)
	var empty, hidden, solid, between int
	for i := 0; i < len(noise.Pix); i += 4 {
		switch texel := [4]byte(noise.Pix[i:]); texel[3] {
		case 0:
			empty++
			if texel != [4]byte{} {
				hidden++
			}
		case 255:
			solid++
		default:
			between++
		}
	}
	const few = 64 * 64 / 4
	if empty < few || hidden < few || solid < few || between < few {
		t.Errorf("%d transparent texels (%d with a colour), %d opaque and %d between; want %d of each", empty, hidden, solid, between, few)
	}
}

func same(a, b skin.Sheet) bool {
	return a.Width == b.Width && a.Height == b.Height && bytes.Equal(a.Pix, b.Pix)
}

func opaque(sheet skin.Sheet, area skin.Rect) bool {
	for y := area.Y; y < area.Y+area.H; y++ {
		for x := area.X; x < area.X+area.W; x++ {
			if sheet.Pix[sheet.At(x, y)+3] != 255 {
				return false
			}
		}
	}
	return true
}

func isNoise(texture artwork.NamedSheet) bool { return strings.HasSuffix(texture.Name, "Noise") }
