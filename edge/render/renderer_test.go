package render

import (
	"testing"

	"github.com/veneer-skins/veneer/edge/render/model"
	"github.com/veneer-skins/veneer/edge/render/raster"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/skin/skintest"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// Heads have one map for both models, previews have two.
func TestMapKeyOf(t *testing.T) {
	t.Parallel()
	f := func(mode Mode, same bool) {
		t.Helper()
		steve, alex := mapKeyOf(View{Mode: mode, Type: skin.Classic, Size: 64}, raster.Scales{Skin: 1}), mapKeyOf(View{Mode: mode, Type: skin.Slim, Size: 64, Format: WebP}, raster.Scales{Skin: 1})
		testenv.Check(t, (steve == alex) == same, "%s: %+v and %+v", mode, steve, alex)
	}

	f(Isometric, true)
	f(Preview, false)
	f(Bust, false)
	f(Body, false)
}

// Only the default attitude and pose have cached maps, and pictures without layers or light share them.
func TestOtherAttitudesAreNotMapped(t *testing.T) {
	t.Parallel()
	r := New(nil)
	sheet := skintest.Noise(1, 64, 64)
	drawWorn := func(worn skin.Sheet, view View) {
		t.Helper()
		view.Mode, view.Type, view.Size = Body, skin.Classic, 64
		testenv.Must(r.Draw(sheet, worn, view))(t)
	}
	draw := func(attitude Attitude, omit model.Omissions) {
		t.Helper()
		drawWorn(skin.Sheet{}, View{Attitude: attitude, Omit: omit})
	}
	for attitude := Attitude(1); attitude < attitudeCount; attitude++ {
		draw(attitude, 0)
	}
	for pose := model.Walk; pose < model.PoseCount; pose++ {
		drawWorn(skintest.Noise(2, 64, 32), View{Pose: pose, Wear: model.WearCape})
	}
	testenv.Equal(t, r.sampleMaps.Len(), 0, "cached maps of other attitudes and poses")
	for omit := range Body.Omissible() + 1 {
		draw(0, omit)
	}
	testenv.Equal(t, r.sampleMaps.Len(), 1, "maps are cached for all that is left out")
	for k := 1; k <= 2; k++ {
		for wear := model.WearCape; wear <= model.WearElytra; wear++ {
			drawWorn(skintest.Noise(2, 64*k, 32*k), View{Wear: wear})
		}
	}
	testenv.Equal(t, r.sampleMaps.Len(), 5, "maps are cached with four more for capes and elytra of two scales")
}

// Every turn and tilt of a mode has an attitude of its own, and the default one is 0.
func TestAttitudes(t *testing.T) {
	t.Parallel()
	for mode := range Mode(ModeCount) {
		seen := map[Attitude]bool{}
		for turn := range TurnCount {
			for tilt := range Tilt(tiltCount) {
				attitude := mode.Attitude(turn, tilt)
				seen[attitude] = true
				if gotTurn, gotTilt := attitude.turnAndTilt(mode); gotTurn != turn || gotTilt != tilt || attitude >= attitudeCount {
					t.Errorf("%s: turn %d and tilt %d are %d, which is turn %d and tilt %d", mode, turn, tilt, attitude, gotTurn, gotTilt)
				}
			}
		}
		if turn, tilt := mode.DefaultAttitude(); len(seen) != attitudeCount || mode.Attitude(turn, tilt) != 0 {
			t.Errorf("%s: %d attitudes, and the default one is %d; want %d and 0", mode, len(seen), mode.Attitude(turn, tilt), attitudeCount)
		}
	}
}
