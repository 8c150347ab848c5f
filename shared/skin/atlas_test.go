package skin_test

import (
	"testing"

	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/testenv/cmptest"
)

// box returns a Box from a row of a table: four numbers each for top, bottom, right, front,
// left and back.
func box(n ...int) skin.Box {
	rect := func(i int) skin.Rect { return skin.Rect{X: n[i], Y: n[i+1], W: n[i+2], H: n[i+3]} }
	return skin.Box{Top: rect(0), Bottom: rect(4), Right: rect(8), Front: rect(12), Left: rect(16), Back: rect(20)}
}

func TestFaces(t *testing.T) {
	t.Parallel()
	f := func(part skin.Part, model skin.Type, want skin.Box) {
		t.Helper()
		cmptest.Same(t, skin.Faces(part, model), want, "faces of part %d of %s", part, model)
	}

	for _, model := range []skin.Type{skin.Classic, skin.Slim} {
		f(skin.Head, model, box(8, 0, 8, 8, 16, 0, 8, 8, 0, 8, 8, 8, 8, 8, 8, 8, 16, 8, 8, 8, 24, 8, 8, 8))
		f(skin.Hat, model, box(40, 0, 8, 8, 48, 0, 8, 8, 32, 8, 8, 8, 40, 8, 8, 8, 48, 8, 8, 8, 56, 8, 8, 8))
		f(skin.Body, model, box(20, 16, 8, 4, 28, 16, 8, 4, 16, 20, 4, 12, 20, 20, 8, 12, 28, 20, 4, 12, 32, 20, 8, 12))
		f(skin.Jacket, model, box(20, 32, 8, 4, 28, 32, 8, 4, 16, 36, 4, 12, 20, 36, 8, 12, 28, 36, 4, 12, 32, 36, 8, 12))
		f(skin.RightLeg, model, box(4, 16, 4, 4, 8, 16, 4, 4, 0, 20, 4, 12, 4, 20, 4, 12, 8, 20, 4, 12, 12, 20, 4, 12))
		f(skin.RightPants, model, box(4, 32, 4, 4, 8, 32, 4, 4, 0, 36, 4, 12, 4, 36, 4, 12, 8, 36, 4, 12, 12, 36, 4, 12))
		f(skin.LeftLeg, model, box(20, 48, 4, 4, 24, 48, 4, 4, 16, 52, 4, 12, 20, 52, 4, 12, 24, 52, 4, 12, 28, 52, 4, 12))
		f(skin.LeftPants, model, box(4, 48, 4, 4, 8, 48, 4, 4, 0, 52, 4, 12, 4, 52, 4, 12, 8, 52, 4, 12, 12, 52, 4, 12))
	}
	f(skin.RightArm, skin.Classic, box(44, 16, 4, 4, 48, 16, 4, 4, 40, 20, 4, 12, 44, 20, 4, 12, 48, 20, 4, 12, 52, 20, 4, 12))
	f(skin.RightSleeve, skin.Classic, box(44, 32, 4, 4, 48, 32, 4, 4, 40, 36, 4, 12, 44, 36, 4, 12, 48, 36, 4, 12, 52, 36, 4, 12))
	f(skin.LeftArm, skin.Classic, box(36, 48, 4, 4, 40, 48, 4, 4, 32, 52, 4, 12, 36, 52, 4, 12, 40, 52, 4, 12, 44, 52, 4, 12))
	f(skin.LeftSleeve, skin.Classic, box(52, 48, 4, 4, 56, 48, 4, 4, 48, 52, 4, 12, 52, 52, 4, 12, 56, 52, 4, 12, 60, 52, 4, 12))
	f(skin.RightArm, skin.Slim, box(44, 16, 3, 4, 47, 16, 3, 4, 40, 20, 4, 12, 44, 20, 3, 12, 47, 20, 4, 12, 51, 20, 3, 12))
	f(skin.RightSleeve, skin.Slim, box(44, 32, 3, 4, 47, 32, 3, 4, 40, 36, 4, 12, 44, 36, 3, 12, 47, 36, 4, 12, 51, 36, 3, 12))
	f(skin.LeftArm, skin.Slim, box(36, 48, 3, 4, 39, 48, 3, 4, 32, 52, 4, 12, 36, 52, 3, 12, 39, 52, 4, 12, 43, 52, 3, 12))
	f(skin.LeftSleeve, skin.Slim, box(52, 48, 3, 4, 55, 48, 3, 4, 48, 52, 4, 12, 52, 52, 3, 12, 55, 52, 4, 12, 59, 52, 3, 12))
}

func TestCapeAndElytraFaces(t *testing.T) {
	t.Parallel()
	cape := box(1, 0, 10, 1, 11, 0, 10, 1, 0, 1, 1, 16, 1, 1, 10, 16, 11, 1, 1, 16, 12, 1, 10, 16)
	cmptest.Same(t, skin.CapeFaces(), cape, "faces of the cape")
	elytra := box(24, 0, 10, 2, 34, 0, 10, 2, 22, 2, 2, 20, 24, 2, 10, 20, 34, 2, 2, 20, 36, 2, 10, 20)
	cmptest.Same(t, skin.ElytraFaces(), elytra, "faces of the elytra")
	double := box(2, 0, 20, 2, 22, 0, 20, 2, 0, 2, 2, 32, 2, 2, 20, 32, 22, 2, 2, 32, 24, 2, 20, 32)
	cmptest.Same(t, skin.CapeFaces().Scaled(2), double, "faces of the cape at scale 2")
}
