package paint_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"image"
	"image/png"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/skin/paint"
)

// Every painting is a valid upload, and no two are the same.
func TestPaintingsAreTextures(t *testing.T) {
	t.Parallel()

	seen := map[[32]byte]string{}
	for _, painting := range append(paint.Corpus(), paint.CorpusCapes()...) {
		texture, err := skin.ParseUpload(encode(t, painting.Sheet), painting.Type.String(), skin.DefaultLimits())
		if err != nil {
			t.Errorf("%s: %v", painting.Name, err)
			continue
		}
		if !same(painting.Sheet, texture.Sheet) {
			t.Errorf("%s changes when it is uploaded", painting.Name)
		}
		if other, ok := seen[texture.Pixels]; ok {
			t.Errorf("%s and %s are the same picture", painting.Name, other)
		}
		seen[texture.Pixels] = painting.Name
	}
}

func TestSkinsShowTheirModel(t *testing.T) {
	t.Parallel()

	for _, painting := range paint.Corpus() {
		if isNoise(painting) {
			continue // it has no model
		}
		if got := skin.DetectModel(painting.Sheet); got != painting.Type {
			t.Errorf("%s is painted for %s, but detected as %s", painting.Name, painting.Type, got)
		}
	}
}

// The skins cover both models, every size of sheet, and translucent texels.
func TestSkinsAreVaried(t *testing.T) {
	t.Parallel()

	skins := paint.Skins()
	if len(skins) < 10 || len(paint.Capes()) < 3 {
		t.Errorf("%d skins and %d capes; want 10 and 3 at least", len(skins), len(paint.Capes()))
	}
	forms := map[skin.Type]map[image.Point]bool{skin.Classic: {}, skin.Slim: {}}
	translucent := false
	for _, painting := range skins {
		forms[painting.Type][image.Pt(painting.Sheet.Width, painting.Sheet.Height)] = true
		for i := 3; i < len(painting.Sheet.Pix); i += 4 {
			alpha := painting.Sheet.Pix[i]
			translucent = translucent || alpha > 0 && alpha < 255
		}
	}
	want := map[skin.Type]map[image.Point]bool{
		skin.Classic: {image.Pt(64, 64): true, image.Pt(64, 32): true, image.Pt(128, 128): true},
		skin.Slim:    {image.Pt(64, 64): true},
	}
	if diff := cmp.Diff(want, forms); diff != "" {
		t.Errorf("forms of sheet by type (-want +got):\n%s", diff)
	}
	if !translucent {
		t.Error("no skin has a translucent texel")
	}
}

// Every face of the base layer is opaque, so that no view shows a hole that the game would
// fill with black.
func TestFacesAreOpaque(t *testing.T) {
	t.Parallel()

	for _, painting := range paint.Corpus() {
		if isNoise(painting) {
			continue
		}
		legacy := painting.Sheet.Height < painting.Sheet.Width
		parts := []skin.Part{skin.Head, skin.Body, skin.RightArm, skin.RightLeg}
		if !legacy {
			parts = append(parts, skin.LeftArm, skin.LeftLeg)
		}
		for _, part := range parts {
			box := skin.Faces(part, painting.Type)
			for _, face := range []skin.Rect{box.Top, box.Bottom, box.Right, box.Front, box.Left, box.Back} {
				if !opaque(painting.Sheet, face.Scaled(painting.Sheet.Scale())) {
					t.Errorf("%s: part %d has a hole in the face %+v", painting.Name, part, face)
				}
			}
		}
	}
	for _, cape := range paint.Capes() {
		box := skin.CapeFaces()
		for _, face := range []skin.Rect{box.Top, box.Bottom, box.Right, box.Front, box.Left, box.Back} {
			if !opaque(cape.Sheet, face) {
				t.Errorf("%s has a hole in the face %+v", cape.Name, face)
			}
		}
	}
}

// The corpus covers all that players use, with rare features in small numbers.
func TestCorpusIsVaried(t *testing.T) {
	t.Parallel()

	corpus := paint.Corpus()
	if len(corpus) != 50 || len(paint.CorpusCapes()) != 8 {
		t.Errorf("%d skins and %d capes; want 50 and 8", len(corpus), len(paint.CorpusCapes()))
	}
	count := map[string]int{}
	for _, painting := range corpus {
		sheet := painting.Sheet
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
			"slim":                       painting.Type == skin.Slim,
			"legacy":                     sheet.Height < sheet.Width,
			"of scale 2":                 sheet.Scale() == 2,
			"of scale 4":                 sheet.Scale() == 4,
			"of scale 8":                 sheet.Scale() == 8,
			"see-through":                translucent,
			"with holes":                 holes,
			"of 32 colours at most":      len(colours) <= 32,
			"of more than 256 colours":   len(colours) > 256,
			"of more than 2,000 colours": len(colours) > 2000,
			"noise":                      isNoise(painting),
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

// Measurements with the corpus are comparable only while it does not change.
func TestCorpusIsStable(t *testing.T) {
	t.Parallel()

	sum := sha256.New()
	for _, painting := range append(paint.Corpus(), paint.CorpusCapes()...) {
		fmt.Fprintf(sum, "%s %s %d %d\n%s", painting.Name, painting.Type, painting.Sheet.Width, painting.Sheet.Height, painting.Sheet.Pix)
	}
	const want = "f7d7023f855168c2"
	if got := fmt.Sprintf("%x", sum.Sum(nil)[:8]); got != want {
		t.Errorf("the digest of the corpus is %s; want %s", got, want)
	}
}

func TestPaintingsAreStable(t *testing.T) {
	t.Parallel()

	again := append(paint.Skins(), paint.Capes()...)
	for i, painting := range append(paint.Skins(), paint.Capes()...) {
		if !same(painting.Sheet, again[i].Sheet) {
			t.Errorf("%s looks different the second time", painting.Name)
		}
	}
	if !same(paint.Noise(7, 64, 32), paint.Noise(7, 64, 32)) {
		t.Error("one seed gives two noises")
	}
	if same(paint.Noise(7, 64, 32), paint.Noise(8, 64, 32)) {
		t.Error("two seeds give the same noise")
	}
}

func TestMarkerColoursAreUnique(t *testing.T) {
	t.Parallel()

	const width, height = 512, 512
	marker := paint.Marker(width, height)
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

	noise := paint.Noise(1, 64, 64)
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

func encode(t *testing.T, sheet skin.Sheet) []byte {
	t.Helper()
	var file bytes.Buffer
	picture := &image.NRGBA{Pix: sheet.Pix, Stride: 4 * sheet.Width, Rect: image.Rect(0, 0, sheet.Width, sheet.Height)}
	if err := png.Encode(&file, picture); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
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

func isNoise(painting paint.NamedSheet) bool { return strings.HasSuffix(painting.Name, "Noise") }
