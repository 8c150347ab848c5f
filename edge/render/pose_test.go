package render_test

import (
	"testing"

	"github.com/veneer-skins/veneer/edge/render"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/skin/skintest"
)

// Limbs, capes and wings are where they should be: some pixels of level figures show the texels of these
// parts.
func TestPosesShowPartsInPlace(t *testing.T) {
	t.Parallel()

	sheet, worn := skintest.Marker(64, 64), skintest.Marker(64, 32)
	for i := 2; i < len(worn.Pix); i += 4 {
		worn.Pix[i] ^= 0x55 // other colours than the skin's
	}
	const front, fromTheRight, back, fromTheLeft = 0, 2, 4, 6 // turns
	var (
		rightSleeve, leftSleeve   = area{40, 36, 4, 12}, area{56, 52, 4, 12} // outer sides
		rightTrousers             = area{0, 36, 4, 12}
		leftTrousers              = area{8, 52, 4, 12}
		rightOfJacket             = area{16, 36, 4, 12}
		leftOfJacket              = area{28, 36, 4, 12}
		frontOfRightSleeve        = area{44, 36, 4, 12}
		frontOfLeftSleeve         = area{52, 52, 4, 12}
		outerCape, edgeOfCape     = area{1, 1, 10, 16}, area{11, 1, 1, 16}
		outerWing, innerWing      = area{36, 2, 10, 20}, area{24, 2, 10, 20}
		innerSideOfLeftSleeve     = area{48, 52, 4, 12}
		innerSideOfLeftPants      = area{0, 52, 4, 12}
		bottomOfPants, backOfCoat = area{8, 32, 4, 4}, area{32, 36, 8, 12}
	)
	for _, test := range []struct {
		name   string
		pose   render.Pose
		wear   render.Wear
		turn   int
		x, y   int // pixel of 128 × 256
		area   area
		isWorn bool
	}{
		{"the right arm ahead", render.Walk, 0, fromTheRight, 92, 136, rightSleeve, false},
		{"the left arm behind", render.Walk, 0, fromTheRight, 36, 136, innerSideOfLeftSleeve, false},
		{"the right leg behind", render.Walk, 0, fromTheRight, 36, 200, rightTrousers, false},
		{"the left leg ahead", render.Walk, 0, fromTheRight, 100, 200, innerSideOfLeftPants, false},
		{"the body between the arms", render.Walk, 0, fromTheRight, 52, 136, rightOfJacket, false},
		{"the right hand raised, on the viewer's left", render.Wave, 0, front, 20, 24, frontOfRightSleeve, false},
		{"the right shoulder before the body", render.Wave, 0, front, 60, 88, frontOfRightSleeve, false},
		{"the left arm hanging", render.Wave, 0, front, 108, 152, frontOfLeftSleeve, false},
		{"a thigh ahead", render.Sit, 0, fromTheRight, 84, 184, rightTrousers, false},
		{"the sole of a foot", render.Sit, 0, fromTheRight, 108, 200, bottomOfPants, false},
		{"an arm ahead of the body", render.Sit, 0, fromTheRight, 76, 152, rightSleeve, false},
		{"the body upright", render.Sit, 0, fromTheRight, 28, 152, rightOfJacket, false},
		{"the hips behind the head", render.Sneak, 0, fromTheLeft, 100, 136, leftOfJacket, false},
		{"the arm backwards", render.Sneak, 0, fromTheLeft, 84, 152, leftSleeve, false},
		{"the leg upright", render.Sneak, 0, fromTheLeft, 84, 232, leftTrousers, false},
		{"the first texel of a cape at the left shoulder", render.Stand, render.WearCape, back, 28, 72, area{1, 1, 1, 1}, true},
		{"the last one at the right side of the legs", render.Stand, render.WearCape, back, 100, 184, area{10, 16, 1, 1}, true},
		{"a cape's edge behind", render.Stand, render.WearCape, fromTheRight, 20, 184, edgeOfCape, true},
		{"a cape outside", render.Sneak, render.WearCape, back, 64, 136, outerCape, true},
		{"the upper outer corner of the left wing", render.Stand, render.WearElytra, back, 4, 184, area{36, 21, 1, 1}, true},
		{"that of the right wing", render.Stand, render.WearElytra, back, 124, 184, area{36, 21, 1, 1}, true},
		{"the left wing", render.Stand, render.WearElytra, back, 44, 136, outerWing, true},
		{"the inside of the right wing", render.Stand, render.WearElytra, front, 28, 184, innerWing, true},
		{"the inside of the left wing", render.Stand, render.WearElytra, front, 100, 184, innerWing, true},
		{"no cape", render.Stand, 0, back, 64, 120, backOfCoat, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()

			view := render.View{Mode: render.Body, Type: skin.Classic, Size: 256, Pose: test.pose, Wear: test.wear, Omit: render.OmitLight}
			view.Attitude = render.Body.Attitude(test.turn, render.TiltLevel)
			got := pixel(mustDrawWorn(t, sheet, worn, view), test.x, test.y)
			of := sheet
			if test.isWorn {
				of = worn
			}
			for v := range test.area[3] {
				for u := range test.area[2] {
					if [4]byte(of.Pix[of.At(test.area[0]+u, test.area[1]+v):]) == got {
						return
					}
				}
			}
			t.Errorf("pixel %d, %d is %v, of no texel of %v", test.x, test.y, got, test.area)
		})
	}
}
