package artwork_test

import (
	"image"
	"testing"

	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/skin/artwork"
	"github.com/veneer-skins/veneer/shared/testenv"
	"github.com/veneer-skins/veneer/shared/testenv/cmptest"
)

// The skins cover both models, every size of sheet, and translucent texels.
func TestSkinsAreVaried(t *testing.T) {
	t.Parallel()
	skins := artwork.Skins()
	if len(skins) < 10 || len(artwork.Capes()) < 3 {
		t.Errorf("%d skins and %d capes; want 10 and 3 at least", len(skins), len(artwork.Capes()))
	}
	forms := map[skin.Type]map[image.Point]bool{skin.Classic: {}, skin.Slim: {}}
	translucent := false
	for _, texture := range skins {
		forms[texture.Type][image.Pt(texture.Sheet.Width, texture.Sheet.Height)] = true
		for i := 3; i < len(texture.Sheet.Pix); i += 4 {
			alpha := texture.Sheet.Pix[i]
			translucent = translucent || alpha > 0 && alpha < 255
		}
	}
	want := map[skin.Type]map[image.Point]bool{
		skin.Classic: {image.Pt(64, 64): true, image.Pt(64, 32): true, image.Pt(128, 128): true},
		skin.Slim:    {image.Pt(64, 64): true},
	}
	cmptest.Same(t, forms, want, "forms of sheet by type")
	testenv.Check(t, translucent, "no skin has a translucent texel")
}

// A caller may change a sheet.
func TestSheetsAreIndependent(t *testing.T) {
	t.Parallel()
	before := artwork.Default().Digest()
	clear(artwork.Default().Pix)
	testenv.Check(t, artwork.Default().Digest() == before,
		"the default skin changed with a sheet that was returned before")
}
