package edge

import (
	"testing"

	"github.com/veneer-skins/veneer/edge/render"
	"github.com/veneer-skins/veneer/shared/skin"
)

func TestViewKinds(t *testing.T) {
	t.Parallel()
	view := func(pose render.Pose, kind skin.Type) View { return View{View: render.View{Pose: pose, Type: kind}} }
	for want, v := range map[string]View{
		"flat": view(render.Flat, skin.Slim), "isometric": view(render.Isometric, skin.Classic),
		"preview-skin": view(render.Preview, skin.Classic), "preview-cape": view(render.Preview, skin.Cape), "file": {File: true},
	} {
		if got := viewKindNames[viewKindOf(v)]; got != want {
			t.Errorf("what is shown is counted as %s; want %s", got, want)
		}
	}
}
