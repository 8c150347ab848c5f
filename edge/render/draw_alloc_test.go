//go:build !race

package render_test

import (
	"testing"

	"github.com/veneer-skins/veneer/edge/render"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/skin/skintest"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// Drawing allocates the picture, for a flat one the face too, and for a legacy sheet a square
// one.
func TestDrawAllocates(t *testing.T) {
	f := func(sheet string, view render.View, want float64) {
		t.Helper()
		texels := skintest.Noise(1, 512, 512)
		switch {
		case sheet != "noise":
			texels = readSheet(t, sheet)
		case view.Type == skin.Cape:
			texels = skintest.Noise(1, 512, 256)
		}
		worn := wornSheet(t, view)
		got := testing.AllocsPerRun(100, func() { mustDrawWorn(t, texels, worn, view) })
		testenv.Check(t, got <= want, "%s of %s: %.0f allocations; want at most %.0f", view.Mode, sheet, got, want)
	}

	f("classic", render.View{Mode: render.Flat, Type: skin.Classic, Size: 128}, 2)
	f("hd", render.View{Mode: render.Flat, Type: skin.Classic, Size: 128}, 2)
	f("legacy", render.View{Mode: render.Flat, Type: skin.Classic, Size: 128}, 3)
	f("classic", render.View{Mode: render.Isometric, Type: skin.Classic, Size: 128}, 1)
	f("hd", render.View{Mode: render.Isometric, Type: skin.Classic, Size: 32}, 1)
	f("slim", render.View{Mode: render.Preview, Type: skin.Slim, Size: 400}, 1)
	f("legacy", render.View{Mode: render.Preview, Type: skin.Classic, Size: 400}, 2)
	f("slim", render.View{Mode: render.LegacySheet, Type: skin.Slim, Size: 32}, 1)
	f("cape", render.View{Mode: render.Preview, Type: skin.Cape, Size: 400}, 1)
	f("elytra", render.View{Mode: render.Preview, Type: skin.Cape, Size: 400}, 1)
	f("slim", render.View{Mode: render.Bust, Type: skin.Slim, Size: 128}, 1)
	f("classic", render.View{Mode: render.Body, Type: skin.Classic, Size: 400}, 1)
	f("classic", render.View{Mode: render.Body, Type: skin.Classic, Size: 400, Wear: render.WearCape}, 1)
	f("slim", render.View{Mode: render.Bust, Type: skin.Slim, Size: 128, Wear: render.WearElytra}, 1)
	f("slim", render.View{Mode: render.Back, Type: skin.Slim, Size: 128}, 3)
	f("slim", render.View{Mode: render.Back, Type: skin.Slim, Size: 128, Wear: render.WearCape}, 5)
	f("noise", render.View{Mode: render.Flat, Type: skin.Classic, Size: 72}, 2)
	f("noise", render.View{Mode: render.Isometric, Type: skin.Classic, Size: 128}, 1)
	f("noise", render.View{Mode: render.Preview, Type: skin.Cape, Size: 112}, 1)
}

// Rendering allocates the file, and what drawing allocates besides the picture.
func TestRenderAllocates(t *testing.T) {
	f := func(sheet string, view render.View, want float64) {
		t.Helper()
		texels := readSheet(t, sheet)
		for _, format := range []render.Format{render.PNG, render.WebP} {
			view.Format = format
			got := testing.AllocsPerRun(100, func() { mustRender(t, texels, view) })
			testenv.Check(t, got <= want,
				"%s of %s as %s: %.0f allocations; want at most %.0f", view.Mode, sheet, format, got, want)
		}
	}

	f("classic", render.View{Mode: render.Flat, Type: skin.Classic, Size: 128}, 2)
	f("legacy", render.View{Mode: render.Flat, Type: skin.Classic, Size: 128}, 3)
	f("classic", render.View{Mode: render.Isometric, Type: skin.Classic, Size: 128}, 1)
	f("hd", render.View{Mode: render.Isometric, Type: skin.Classic, Size: 32}, 1)
	f("slim", render.View{Mode: render.Preview, Type: skin.Slim, Size: 400}, 1)
	f("legacy", render.View{Mode: render.Preview, Type: skin.Classic, Size: 400}, 2)
	f("cape", render.View{Mode: render.Preview, Type: skin.Cape, Size: 400}, 3)
}
