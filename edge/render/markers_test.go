package render_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/veneer-skins/veneer/edge/render"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/skin/skintest"
)

// visibleArea is a rectangle of texels that is visible under a light, in percent. Its first
// hidden rows may be hidden by something in front.
type visibleArea struct {
	area
	light, hidden int
}

// layerAreas are the texels of the layers.
var layerAreas = []area{{32, 0, 32, 16}, {0, 32, 64, 16}, {0, 48, 16, 16}, {48, 48, 16, 16}}

// slimAreas returns the visible areas of a slim skin for those of a classic one. An arm's top
// and front are narrower by a column; its left side is one further to the left on the sheet,
// and so is its back, which is narrower too.
func slimAreas(classic []visibleArea) []visibleArea {
	all := slices.Clone(classic)
	for i := range all {
		s := &all[i]
		for _, arm := range [][2]int{{40, 16}, {40, 32}, {32, 48}, {48, 48}} {
			x, y := s.area[0]-arm[0], s.area[1]-arm[1]
			switch {
			case y == 0 && x == 4, y == 4 && x == 4: // top, front
				s.area[2]--
			case y == 4 && x == 8: // left
				s.area[0]--
			case y == 4 && x == 12: // back
				s.area[0]--
				s.area[2]--
			}
		}
	}
	return all
}

// Every picture shows all visible texels, no other ones, and no colour that is not a texel's.
func TestPicturesShowTheseTexelsOnly(t *testing.T) {
	t.Parallel()

	const whole = 12 // number of hidden rows for which any or none of the texels may be visible
	flat := render.View{Mode: render.Flat, Type: skin.Classic, Size: 64}
	isometric := render.View{Mode: render.Isometric, Type: skin.Classic, Size: 512}
	classic := render.View{Mode: render.Preview, Type: skin.Classic, Size: previewHeight}
	slim := render.View{Mode: render.Preview, Type: skin.Slim, Size: previewHeight}
	cape := render.View{Mode: render.Preview, Type: skin.Cape, Size: 512}
	body := func(as skin.Type, turn int, tilt render.Tilt) render.View {
		return render.View{Mode: render.Body, Type: as, Size: previewHeight, Attitude: render.Body.Attitude(turn, tilt)}
	}
	bare25 := body(skin.Classic, 7, render.Tilt25)
	bare25.Omit = render.OmitHat | render.OmitLayers
	flatFront := render.View{Mode: render.Front, Type: skin.Classic, Size: 512}

	// The visible areas of a classic skin in the left and the right half of a preview.
	layered := []visibleArea{
		{area{40, 0, 8, 8}, 100, 0},
		{area{40, 8, 8, 8}, 90, 0},
		{area{48, 8, 8, 7}, 70, 0},
		{area{48, 15, 8, 1}, 70, whole}, // behind the sleeve
		{area{20, 36, 8, 12}, 90, 3},
		{area{44, 36, 4, 12}, 90, 3},
		{area{44, 32, 4, 4}, 100, whole},
		{area{52, 52, 4, 12}, 90, 1},
		{area{56, 52, 4, 12}, 70, 0},
		{area{52, 48, 4, 4}, 100, whole},
		{area{4, 36, 4, 12}, 90, 3},
		{area{4, 52, 4, 12}, 90, 3},
		{area{8, 52, 4, 12}, 70, 3},
	}
	layeredBack := []visibleArea{
		{area{40, 0, 8, 8}, 100, 0},
		{area{56, 8, 8, 8}, 90, 0},
		{area{32, 8, 8, 7}, 70, 0},
		{area{32, 15, 8, 1}, 70, whole},
		{area{32, 36, 8, 12}, 90, 3},
		{area{60, 52, 4, 12}, 90, 3},
		{area{52, 48, 4, 4}, 100, whole},
		{area{52, 36, 4, 12}, 90, 1},
		{area{40, 36, 4, 12}, 70, 0},
		{area{44, 32, 4, 4}, 100, whole},
		{area{12, 52, 4, 12}, 90, 3},
		{area{12, 36, 4, 12}, 90, 3},
		{area{0, 36, 4, 12}, 70, 3},
	}
	bare := []visibleArea{
		{area{8, 0, 8, 8}, 100, 0},
		{area{8, 8, 8, 8}, 90, 0},
		{area{16, 8, 8, 8}, 70, 0},
		{area{20, 20, 8, 12}, 90, 3},
		{area{44, 20, 4, 12}, 90, 3},
		{area{44, 16, 4, 4}, 100, whole},
		{area{36, 52, 4, 12}, 90, 0},
		{area{40, 52, 4, 12}, 70, 0},
		{area{36, 48, 4, 4}, 100, 0},
		{area{4, 20, 4, 12}, 90, 3},
		{area{20, 52, 4, 12}, 90, 3},
		{area{24, 52, 4, 12}, 70, 3},
	}
	bareBack := []visibleArea{
		{area{8, 0, 8, 8}, 100, 0},
		{area{24, 8, 8, 8}, 90, 0},
		{area{0, 8, 8, 8}, 70, 0},
		{area{32, 20, 8, 12}, 90, 3},
		{area{44, 52, 4, 12}, 90, 3},
		{area{36, 48, 4, 4}, 100, whole},
		{area{52, 20, 4, 12}, 90, 0},
		{area{40, 20, 4, 12}, 70, 0},
		{area{44, 16, 4, 4}, 100, 0},
		{area{28, 52, 4, 12}, 90, 3},
		{area{12, 20, 4, 12}, 90, 3},
		{area{0, 20, 4, 12}, 70, 3},
	}

	for _, test := range []struct {
		name    string
		view    render.View
		legacy  bool
		without []area // transparent areas of the sheet
		left    []visibleArea
		right   []visibleArea // right half of a preview
	}{
		{"flat with hat", flat, false, nil, []visibleArea{{area{40, 8, 8, 8}, 100, 0}}, nil},
		{"flat without hat", flat, false, layerAreas, []visibleArea{{area{8, 8, 8, 8}, 100, 0}}, nil},
		{"flat of a legacy skin", flat, true, nil, []visibleArea{{area{8, 8, 8, 8}, 100, 0}}, nil},
		{"flat of a legacy skin with a hat", flat, true, []area{{32, 0, 8, 8}}, []visibleArea{{area{40, 8, 8, 8}, 100, 0}}, nil},

		{"isometric with hat", isometric, false, nil, []visibleArea{
			{area{40, 0, 8, 8}, 100, 0}, {area{32, 8, 8, 8}, 70, 0}, {area{40, 8, 8, 8}, 90, 0},
		}, nil},
		{"isometric without hat", isometric, false, layerAreas, []visibleArea{
			{area{8, 0, 8, 8}, 100, 0}, {area{0, 8, 8, 8}, 70, 0}, {area{8, 8, 8, 8}, 90, 0},
		}, nil},
		{"isometric into the hat", isometric, false, []area{{40, 0, 8, 8}, {32, 8, 16, 8}}, []visibleArea{
			{area{8, 0, 8, 8}, 100, 0},
			{area{0, 8, 8, 8}, 70, 0},
			{area{8, 8, 8, 8}, 90, 0},
			{area{56, 8, 8, 1}, 90, 0},
			{area{56, 9, 1, 7}, 90, whole}, // beside the head
			{area{63, 9, 1, 7}, 90, whole},
			{area{48, 8, 8, 1}, 70, 0},
			{area{48, 9, 1, 7}, 70, whole},
			{area{55, 9, 1, 7}, 70, whole},
			{area{48, 7, 8, 1}, 60, 0}, // the bottom's front row
			{area{48, 0, 1, 7}, 60, 0}, // and its column on the player's right
		}, nil},
		{"isometric of a legacy skin", isometric, true, nil, []visibleArea{
			{area{8, 0, 8, 8}, 100, 0}, {area{0, 8, 8, 8}, 70, 0}, {area{8, 8, 8, 8}, 90, 0},
		}, nil},

		{"classic preview with layers", classic, false, nil, layered, layeredBack},
		{"classic preview without layers", classic, false, layerAreas, bare, bareBack},
		{"slim preview with layers", slim, false, nil, slimAreas(layered), slimAreas(layeredBack)},
		{"slim preview without layers", slim, false, layerAreas, slimAreas(bare), slimAreas(bareBack)},
		// The left body parts mirror the right ones.
		{"preview of a legacy skin", classic, true, nil, []visibleArea{
			{area{8, 0, 8, 8}, 100, 0},
			{area{8, 8, 8, 8}, 90, 0},
			{area{16, 8, 8, 8}, 70, 0},
			{area{20, 20, 8, 12}, 90, 3},
			{area{44, 20, 4, 12}, 90, 0},
			{area{40, 20, 4, 12}, 70, 0},
			{area{44, 16, 4, 4}, 100, 0},
			{area{4, 20, 4, 12}, 90, 3},
			{area{0, 20, 4, 12}, 70, 3},
		}, []visibleArea{
			{area{8, 0, 8, 8}, 100, 0},
			{area{24, 8, 8, 8}, 90, 0},
			{area{0, 8, 8, 8}, 70, 0},
			{area{32, 20, 8, 12}, 90, 3},
			{area{52, 20, 4, 12}, 90, 0},
			{area{40, 20, 4, 12}, 70, 0},
			{area{44, 16, 4, 4}, 100, 0},
			{area{12, 20, 4, 12}, 90, 3},
			{area{0, 20, 4, 12}, 70, 3},
		}},

		{"body", body(skin.Classic, 7, render.Tilt25), false, nil, layered, nil},
		{"body without layers", body(skin.Classic, 7, render.Tilt25), false, layerAreas, bare, nil},
		{"body with the layers left out", bare25, false, nil, bare, nil},
		{"slim body", body(skin.Slim, 7, render.Tilt25), false, nil, slimAreas(layered), nil},
		{"body from behind", body(skin.Classic, 3, render.Tilt25), false, nil, layeredBack, nil},
		{"slim body from behind without layers", body(skin.Slim, 3, render.Tilt25), false, layerAreas, slimAreas(bareBack), nil},
		{"level body from the front", body(skin.Classic, 0, render.TiltLevel), false, layerAreas, []visibleArea{
			{area{8, 8, 8, 8}, 90, 0},
			{area{20, 20, 8, 12}, 90, 0},
			{area{44, 20, 4, 12}, 90, 0},
			{area{36, 52, 4, 12}, 90, 0},
			{area{4, 20, 4, 12}, 90, 0},
			{area{20, 52, 4, 12}, 90, 0},
		}, nil},
		{"level body from the back", body(skin.Classic, 4, render.TiltLevel), false, layerAreas, []visibleArea{
			{area{24, 8, 8, 8}, 90, 0},
			{area{32, 20, 8, 12}, 90, 0},
			{area{52, 20, 4, 12}, 90, 0},
			{area{44, 52, 4, 12}, 90, 0},
			{area{12, 20, 4, 12}, 90, 0},
			{area{28, 52, 4, 12}, 90, 0},
		}, nil},
		{"level body from the right", body(skin.Slim, 2, render.TiltLevel), false, layerAreas, []visibleArea{
			{area{0, 8, 8, 8}, 70, 0}, {area{40, 20, 4, 12}, 70, 0}, {area{0, 20, 4, 12}, 70, 0},
		}, nil},
		{"level body from the left", body(skin.Slim, 6, render.TiltLevel), false, layerAreas, []visibleArea{
			{area{16, 8, 8, 8}, 70, 0}, {area{39, 52, 4, 12}, 70, 0}, {area{24, 52, 4, 12}, 70, 0},
		}, nil},
		{"body from above the left", body(skin.Classic, 6, render.Tilt25), false, layerAreas, []visibleArea{
			{area{8, 0, 8, 8}, 100, 0},
			{area{16, 8, 8, 8}, 70, 0},
			{area{36, 48, 4, 4}, 100, whole},
			{area{40, 52, 4, 12}, 70, 3},
			{area{24, 52, 4, 12}, 70, 3},
		}, nil},
		{"level bust from the front", render.View{Mode: render.Bust, Type: skin.Classic, Size: 512, Attitude: render.Bust.Attitude(0, render.TiltLevel)}, false, layerAreas, []visibleArea{
			{area{8, 8, 8, 8}, 90, 0},
			{area{20, 20, 8, 12}, 90, 0},
			{area{44, 20, 4, 12}, 90, 0},
			{area{36, 52, 4, 12}, 90, 0},
		}, nil},
		{"head from the back", render.View{Mode: render.Isometric, Type: skin.Classic, Size: 512, Attitude: render.Isometric.Attitude(4, render.Tilt25)}, false, nil, []visibleArea{
			{area{40, 0, 8, 8}, 100, 0}, {area{56, 8, 8, 8}, 90, 0},
		}, nil},
		{"flat front", flatFront, false, nil, []visibleArea{
			{area{40, 8, 8, 8}, 100, 0},
			{area{20, 36, 8, 12}, 100, 0},
			{area{44, 36, 4, 12}, 100, 0},
			{area{52, 52, 4, 12}, 100, 0},
			{area{4, 36, 4, 12}, 100, 0},
			{area{4, 52, 4, 12}, 100, 0},
		}, nil},
		{"flat front without layers", flatFront, false, layerAreas, []visibleArea{
			{area{8, 8, 8, 8}, 100, 0},
			{area{20, 20, 8, 12}, 100, 0},
			{area{44, 20, 4, 12}, 100, 0},
			{area{36, 52, 4, 12}, 100, 0},
			{area{4, 20, 4, 12}, 100, 0},
			{area{20, 52, 4, 12}, 100, 0},
		}, nil},
		{"flat left side of a slim skin", render.View{Mode: render.Left, Type: skin.Slim, Size: 512}, false, layerAreas, []visibleArea{
			{area{16, 8, 8, 8}, 100, 0}, {area{39, 52, 4, 12}, 100, 0}, {area{24, 52, 4, 12}, 100, 0},
		}, nil},
		{"flat back of a legacy skin", render.View{Mode: render.Back, Type: skin.Classic, Size: 512}, true, nil, []visibleArea{
			{area{24, 8, 8, 8}, 100, 0}, {area{32, 20, 8, 12}, 100, 0}, {area{52, 20, 4, 12}, 100, 0}, {area{12, 20, 4, 12}, 100, 0},
		}, nil},

		{"cape", cape, true, nil, []visibleArea{{area{1, 1, 10, 16}, 100, 0}}, []visibleArea{{area{12, 1, 10, 16}, 100, 0}}},
	} {
		for _, k := range []int{1, 2} {
			t.Run(fmt.Sprintf("%s, scale %d", test.name, k), func(t *testing.T) {
				t.Parallel()

				height := 64 * k
				if test.legacy {
					height = 32 * k
				}
				sheet := skintest.Marker(64*k, height)
				for _, a := range test.without {
					fill(sheet, a[0]*k, a[1]*k, a[2]*k, a[3]*k, [4]byte{})
				}
				picture := mustDraw(t, sheet, test.view)
				middle := picture.Width
				if test.right != nil {
					middle /= 2
					showsOnly(t, picture, middle, picture.Width, sheet, test.right)
				}
				showsOnly(t, picture, 0, middle, sheet, test.left)
			})
		}
	}
}

// showsOnly checks that the columns from x0 to x1 show all texels of the areas and nothing
// else.
func showsOnly(t *testing.T, picture render.Picture, x0, x1 int, sheet skin.Sheet, areas []visibleArea) {
	t.Helper()
	shown := map[[3]byte]bool{}
	where := map[[3]byte][2]int{}
	for y := range picture.Height {
		for x := x0; x < x1; x++ {
			if c := pixel(picture, x, y); c[3] > 0 {
				shown[[3]byte(c[:3])] = true
				where[[3]byte(c[:3])] = [2]int{x, y}
			}
		}
	}

	k := sheet.Scale()
	expected := map[[3]byte]bool{}
	for _, s := range areas {
		missing := 0
		for v := range s.area[3] * k {
			for u := range s.area[2] * k {
				c := lit(sheet.Pix[sheet.At(s.area[0]*k+u, s.area[1]*k+v):], s.light)
				expected[[3]byte(c[:3])] = true
				if v >= s.hidden*k && !shown[[3]byte(c[:3])] {
					missing++
				}
			}
		}
		if missing > 0 {
			t.Errorf("columns from %d on: %d texels of %v are missing", x0, missing, s.area)
		}
	}
	unexpected := 0
	for c := range shown {
		if !expected[c] {
			if unexpected == 0 {
				t.Errorf("pixel %v: %v should not be visible here", where[c], c)
			}
			unexpected++
		}
	}
	if unexpected > 1 {
		t.Errorf("columns from %d on: %d colours that should not be visible", x0, unexpected)
	}
}
