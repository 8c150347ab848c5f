//go:build !race

package render_test

import (
	"testing"

	"github.com/veneer-skins/veneer/edge/render"
	"github.com/veneer-skins/veneer/edge/render/internal/costtest"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/skin/skintest"
	"github.com/veneer-skins/veneer/shared/testenv"
)

func BenchmarkCost(b *testing.B) { costtest.Accuracy(b, nil) }

func TestCostLimit(t *testing.T) {
	t.Parallel()
	costtest.Limit(t, nil)
}

// Previews and bodies of large sheets are capped in height.
func TestLargeSheetsHaveSmallerPictures(t *testing.T) {
	t.Parallel()
	f := func(mode render.Mode, kind skin.Type, scale, requested, want int) {
		t.Helper()
		height := 64 * scale
		if kind == skin.Cape {
			height = 32 * scale
		}
		picture, err := renderer.Draw(skintest.Noise(1, 64*scale, height), skin.Sheet{}, render.View{Mode: mode, Type: kind, Size: requested})
		if err != nil || picture.Height != want {
			t.Errorf("a %v of %v of scale %d at %d is %d pixels high, %v; want %d", mode, kind, scale, requested, picture.Height, err, want)
		}
	}
	f(render.Preview, skin.Classic, 8, 1024, 1024)
	f(render.Preview, skin.Classic, 9, 1024, 720)
	f(render.Preview, skin.Slim, 12, 1024, 720)
	f(render.Preview, skin.Classic, 12, 704, 704)
	f(render.Preview, skin.Classic, 13, 1024, 384)
	f(render.Preview, skin.Slim, 16, 400, 240)
	f(render.Preview, skin.Cape, 16, 1024, 1024)
	f(render.Body, skin.Classic, 14, 1024, 1024)
	f(render.Body, skin.Slim, 15, 1024, 960)
	f(render.Body, skin.Classic, 16, 944, 944)

	// Of figures in a pose or with a cape, the finer sheet counts.
	crossing := func(view render.View, scale, wornScale, want int) {
		t.Helper()
		view.Type = skin.Classic
		picture := mustDrawWorn(t, skintest.Noise(1, 64*scale, 64*scale), skintest.Noise(1, 64*wornScale, 32*wornScale), view)
		testenv.Equal(t, picture.Height, want, "the height of %+v of scales %d and %d", view, scale, wornScale)
	}
	crossing(render.View{Mode: render.Body, Size: 1024, Pose: render.Walk, Wear: render.WearCape}, 1, 8, 1024)
	crossing(render.View{Mode: render.Body, Size: 1024, Pose: render.Sit}, 9, 1, 480)
	crossing(render.View{Mode: render.Body, Size: 1024, Exact: 1023, Wear: render.WearCape}, 1, 8, 816)
	crossing(render.View{Mode: render.Body, Size: 1024, Wear: render.WearElytra}, 1, 13, 288)
	crossing(render.View{Mode: render.Bust, Size: 512, Pose: render.Wave}, 16, 1, 208)
	crossing(render.View{Mode: render.Bust, Size: 200, Wear: render.WearCape}, 1, 16, 200)
	crossing(render.View{Mode: render.Back, Size: 1024, Wear: render.WearCape}, 1, 16, 1024)
}
