package main

import (
	"github.com/veneer-skins/veneer/edge/render"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/skin/artwork"
)

// viewRows are the layout of the sheet of all views: heads, busts and bodies in all turns and tilts,
// bodies in all poses from the front and from behind, with nothing, a cape and elytra, and the flat sides.
func viewRows() (rows []row) {
	bottom := margin / 2
	add := func(height int, items ...item) {
		bottom += height + margin/2
		rows = append(rows, row{margin, width - margin, bottom, items})
	}
	for _, turned := range []struct {
		item
		height int
	}{
		{item{sheet: artwork.Explorer(), view: render.View{Mode: render.Isometric, Type: skin.Classic, Size: 48}}, 48},
		{item{sheet: artwork.Ranger(), view: render.View{Mode: render.Bust, Type: skin.Slim, Size: 56}}, 56},
		{item{sheet: artwork.Fox(), view: render.View{Mode: render.Body, Type: skin.Classic, Size: 80}}, 80},
	} {
		for tilt := render.TiltIso; tilt <= render.TiltLevel; tilt++ {
			var items []item
			for turn := range render.TurnCount {
				of := turned.item
				of.view.Attitude = of.view.Mode.Attitude(turn, tilt)
				items = append(items, of)
			}
			add(turned.height, items...)
		}
	}
	const front, behind = 7, 3
	for _, turn := range []int{front, behind} {
		for _, wear := range []render.Wear{render.WearNothing, render.WearCape, render.WearElytra} {
			var items []item
			for pose := range render.Pose(render.PoseCount) {
				items = append(items, item{artwork.Mage(), winged(), render.View{
					Mode: render.Body, Type: skin.Classic, Size: 112, Pose: pose, Wear: wear, Attitude: render.Body.Attitude(turn, render.Tilt25),
				}})
			}
			add(112, items...)
		}
	}
	sides := []item{
		{sheet: artwork.Knight(), view: render.View{Mode: render.Flat, Type: skin.Classic, Size: 64}},
		{sheet: artwork.Knight(), view: render.View{Mode: render.Flat, Type: skin.Classic, Size: 64, Omit: render.OmitHat}},
		{sheet: artwork.Knight(), view: render.View{Mode: render.Front, Type: skin.Classic, Size: 128}},
	}
	for _, mode := range []render.Mode{render.Back, render.Left, render.Right} {
		for _, wear := range []render.Wear{render.WearNothing, render.WearCape, render.WearElytra} {
			view := render.View{Mode: mode, Type: skin.Classic, Size: 128, Wear: wear}
			if mode == render.Right && wear != render.WearNothing {
				continue // the mirror image of the left side
			}
			sides = append(sides, item{artwork.Knight(), winged(), view})
		}
	}
	add(128, sides...)
	return rows
}

// winged returns the Sunrise cape with elytra of the same colours.
func winged() skin.Sheet {
	sheet := artwork.Sunrise()
	cape, wing := skin.CapeFaces().Front, skin.ElytraFaces()
	for _, face := range []skin.Rect{wing.Top, wing.Bottom, wing.Right, wing.Front, wing.Left, wing.Back} {
		for y := range face.H {
			for x := range face.W {
				texel := sheet.At(cape.X+x*cape.W/face.W, cape.Y+y*cape.H/face.H)
				copy(sheet.Pix[sheet.At(face.X+x, face.Y+y):], sheet.Pix[texel:][:4])
			}
		}
	}
	return sheet
}
