package render_test

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/veneer-skins/veneer/edge/render"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/testenv"
)

var update = flag.Bool("update", false, "accept the pictures as drawn now")

// golden is a picture in testdata and the sheet that it shows.
type golden struct {
	name  string
	sheet string
	view  render.View
}

var goldens = []golden{
	{"classic-flat", "classic", render.View{Mode: render.Flat, Type: skin.Classic, Size: 64}},
	{"classic-isometric", "classic", render.View{Mode: render.Isometric, Type: skin.Classic, Size: 96}},
	{"classic-isometric-tiny", "classic", render.View{Mode: render.Isometric, Type: skin.Classic, Size: 24}},
	{"classic-preview", "classic", render.View{Mode: render.Preview, Type: skin.Classic, Size: 256}},
	{"classic-preview-small", "classic", render.View{Mode: render.Preview, Type: skin.Classic, Size: 96}},
	{"slim-flat", "slim", render.View{Mode: render.Flat, Type: skin.Slim, Size: 64}},
	{"slim-isometric", "slim", render.View{Mode: render.Isometric, Type: skin.Slim, Size: 96}},
	{"slim-preview", "slim", render.View{Mode: render.Preview, Type: skin.Slim, Size: 256}},
	{"legacy-flat", "legacy", render.View{Mode: render.Flat, Type: skin.Classic, Size: 64}},
	{"legacy-isometric", "legacy", render.View{Mode: render.Isometric, Type: skin.Classic, Size: 96}},
	{"legacy-preview", "legacy", render.View{Mode: render.Preview, Type: skin.Classic, Size: 256}},
	{"legacy-slim-preview", "legacy", render.View{Mode: render.Preview, Type: skin.Slim, Size: 96}},
	{"hd-flat-uneven", "hd", render.View{Mode: render.Flat, Type: skin.Classic, Size: 72}},
	{"hd-isometric", "hd", render.View{Mode: render.Isometric, Type: skin.Classic, Size: 128}},
	{"hd-preview", "hd", render.View{Mode: render.Preview, Type: skin.Classic, Size: 320}},
	{"fine-preview", "fine", render.View{Mode: render.Preview, Type: skin.Classic, Size: 112}},
	{"hatless-isometric", "hatless", render.View{Mode: render.Isometric, Type: skin.Classic, Size: 96}},
	{"hatless-preview", "hatless", render.View{Mode: render.Preview, Type: skin.Classic, Size: 160}},
	{"glass-preview", "glass", render.View{Mode: render.Preview, Type: skin.Slim, Size: 256}},
	{"classic-legacy", "classic", render.View{Mode: render.LegacySheet, Type: skin.Classic, Size: 32}},
	{"slim-legacy", "slim", render.View{Mode: render.LegacySheet, Type: skin.Slim, Size: 32}},
	{"hd-legacy", "hd", render.View{Mode: render.LegacySheet, Type: skin.Classic, Size: 32}},
	{"legacy-legacy", "legacy", render.View{Mode: render.LegacySheet, Type: skin.Slim, Size: 32}},
	{"hatless-legacy", "hatless", render.View{Mode: render.LegacySheet, Type: skin.Classic, Size: 32}},
	{"glass-legacy", "glass", render.View{Mode: render.LegacySheet, Type: skin.Slim, Size: 32}},
	{"cape-preview", "cape", render.View{Mode: render.Preview, Type: skin.Cape, Size: 64}},
	{"elytra-preview", "elytra", render.View{Mode: render.Preview, Type: skin.Cape, Size: 64}},
	{"classic-bust", "classic", render.View{Mode: render.Bust, Type: skin.Classic, Size: 128}},
	{"slim-bust-from-behind", "slim", render.View{Mode: render.Bust, Type: skin.Slim, Size: 64, Attitude: render.Bust.Attitude(4, render.TiltIso)}},
	{"classic-body", "classic", render.View{Mode: render.Body, Type: skin.Classic, Size: 256}},
	{"legacy-slim-body", "legacy", render.View{Mode: render.Body, Type: skin.Slim, Size: 96}},
	{"glass-body-from-the-left", "glass", render.View{Mode: render.Body, Type: skin.Slim, Size: 192, Attitude: render.Body.Attitude(6, render.Tilt25)}},
	{"hd-body-level", "hd", render.View{Mode: render.Body, Type: skin.Classic, Size: 240, Attitude: render.Body.Attitude(1, render.TiltLevel)}},
	{"classic-body-bare", "classic", render.View{Mode: render.Body, Type: skin.Classic, Size: 256, Omit: render.OmitHat | render.OmitLayers | render.OmitLight}},
	{"classic-head-from-above", "classic", render.View{Mode: render.Isometric, Type: skin.Classic, Size: 96, Attitude: render.Isometric.Attitude(0, render.TiltIso)}},
	{"classic-walking", "classic", render.View{Mode: render.Body, Type: skin.Classic, Size: 256, Pose: render.Walk}},
	{"slim-waving", "slim", render.View{Mode: render.Body, Type: skin.Slim, Size: 256, Pose: render.Wave}},
	{"legacy-sitting", "legacy", render.View{Mode: render.Body, Type: skin.Classic, Size: 256, Pose: render.Sit}},
	{"hd-sneaking-from-the-right", "hd", render.View{Mode: render.Body, Type: skin.Classic, Size: 240, Pose: render.Sneak, Attitude: render.Body.Attitude(2, render.TiltLevel)}},
	{"classic-sneaking-with-cape", "classic", render.View{Mode: render.Body, Type: skin.Classic, Size: 192, Pose: render.Sneak, Wear: render.WearCape, Attitude: render.Body.Attitude(3, render.Tilt25)}},
	{"classic-body-with-cape-from-behind", "classic", render.View{Mode: render.Body, Type: skin.Classic, Size: 256, Wear: render.WearCape, Attitude: render.Body.Attitude(3, render.Tilt25)}},
	{"slim-body-with-elytra", "slim", render.View{Mode: render.Body, Type: skin.Slim, Size: 256, Wear: render.WearElytra}},
	{"classic-walking-with-elytra-from-behind", "classic", render.View{Mode: render.Body, Type: skin.Classic, Size: 256, Pose: render.Walk, Wear: render.WearElytra, Attitude: render.Body.Attitude(4, render.TiltIso)}},
	{"glass-bust-waving", "glass", render.View{Mode: render.Bust, Type: skin.Slim, Size: 128, Pose: render.Wave}},
	{"slim-bust-with-cape", "slim", render.View{Mode: render.Bust, Type: skin.Slim, Size: 96, Wear: render.WearCape}},
	{"classic-back-with-cape", "classic", render.View{Mode: render.Back, Type: skin.Classic, Size: 128, Wear: render.WearCape}},
	{"slim-back-with-elytra", "slim", render.View{Mode: render.Back, Type: skin.Slim, Size: 128, Wear: render.WearElytra}},
	{"hd-left-with-cape", "hd", render.View{Mode: render.Left, Type: skin.Classic, Size: 128, Wear: render.WearCape}},
	{"classic-front", "classic", render.View{Mode: render.Front, Type: skin.Classic, Size: 128}},
	{"slim-front-without-hat", "slim", render.View{Mode: render.Front, Type: skin.Slim, Size: 128, Omit: render.OmitHat}},
	{"slim-back", "slim", render.View{Mode: render.Back, Type: skin.Slim, Size: 128}},
	{"legacy-left", "legacy", render.View{Mode: render.Left, Type: skin.Classic, Size: 128}},
	{"classic-card", "classic", render.View{Mode: render.Card, Type: skin.Classic, Size: 630}},
	{"slim-card-with-cape", "slim", render.View{Mode: render.Card, Type: skin.Slim, Size: 630, Background: render.HasBackground | 0x1f6b3a, Wear: render.WearCape}},
	{"hd-card-with-elytra", "hd", render.View{Mode: render.Card, Type: skin.Classic, Size: 630, Background: render.HasBackground, Wear: render.WearElytra}},
	{"cape-card", "cape", render.View{Mode: render.Card, Type: skin.Cape, Size: 630}},
	{"elytra-card", "elytra", render.View{Mode: render.Card, Type: skin.Cape, Size: 630, Background: render.HasBackground | 0xf0f0f0}},
	{"hd-right-uneven", "hd", render.View{Mode: render.Right, Type: skin.Classic, Size: 80}},
}

// Every mode has a golden picture of a skin, and of a cape if it shows capes.
func TestEveryModeHasGolden(t *testing.T) {
	t.Parallel()
	for mode := range render.Mode(render.ModeCount) {
		has := func(isCape bool) bool {
			return slices.ContainsFunc(goldens, func(g golden) bool { return g.view.Mode == mode && (g.view.Type == skin.Cape) == isCape })
		}
		if !has(false) || mode.ShowsCapes() && !has(true) {
			t.Errorf("%s has no golden picture", mode)
		}
	}
}

// Every pose has a golden picture, and every mode that shows what is worn, of which the right side
// mirrors the left one.
func TestEveryPoseHasGolden(t *testing.T) {
	t.Parallel()
	for pose := range render.Pose(render.PoseCount) {
		testenv.Check(t, slices.ContainsFunc(goldens, func(g golden) bool { return g.view.Pose == pose }),
			"pose %d has no golden picture", pose)
	}
	for _, mode := range []render.Mode{render.Bust, render.Body, render.Back, render.Left} {
		if !slices.ContainsFunc(goldens, func(g golden) bool { return g.view.Mode == mode && g.view.Wear != render.WearNothing }) {
			t.Errorf("%s has no golden picture with a cape or elytra", mode)
		}
	}
}

// The pictures drawn from testdata/sheets equal those in testdata, to the bit.
func TestGolden(t *testing.T) {
	t.Parallel()
	for _, test := range goldens {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			rendered := mustRenderWorn(t, readSheet(t, test.sheet), wornSheet(t, test.view), test.view)
			path := filepath.Join("testdata", test.name+".png")
			if *update {
				testenv.Do(t, os.WriteFile(path, rendered, 0o644))
			}

			file := testenv.Must(os.ReadFile(path))(t)
			if !same(decodePNG(t, rendered), decodePNG(t, file)) {
				artifact := filepath.Join(t.ArtifactDir(), test.name+".png")
				testenv.Do(t, os.WriteFile(artifact, rendered, 0o644))
				t.Errorf("the picture differs from %s; with -artifacts it is saved as %s", path, artifact)
			}
		})
	}
}

// wornSheet reads the sheet in testdata of what is worn in a view.
func wornSheet(tb testing.TB, view render.View) skin.Sheet {
	tb.Helper()
	switch view.Wear {
	case render.WearCape:
		return readSheet(tb, "cape")
	case render.WearElytra:
		return readSheet(tb, "elytra")
	case render.WearNothing:
	}
	return skin.Sheet{}
}

// readSheet reads one of the sheets in testdata.
func readSheet(tb testing.TB, name string) skin.Sheet {
	tb.Helper()
	file := testenv.Must(os.ReadFile(filepath.Join("testdata", "sheets", name+".png")))(tb)
	p := decodePNG(tb, file)
	return skin.Sheet{Width: p.Width, Height: p.Height, Pix: p.Pix}
}
