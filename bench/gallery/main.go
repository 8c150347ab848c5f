// Command gallery renders textures painted by this project onto two sheets, and writes them: a PNG with
// several sizes, and a WebP picture of all views. It runs in the root of the repository.
package main

import (
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"os"
	"slices"

	"github.com/veneer-skins/veneer/edge/render"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/skin/artwork"
	"github.com/veneer-skins/veneer/shared/skin/skintest"
)

func main() {
	renderer := render.New(nil)
	for _, layout := range layouts {
		file, err := compose(renderer, layout.rows(), layout.format)
		if err == nil {
			err = os.WriteFile(layout.path, file, 0o644)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "gallery:", err)
			os.Exit(1)
		}
	}
}

// layouts are the two sheets, and the documents that show them. That of all views has many colours, of
// which WebP takes fewer bytes.
var layouts = []struct {
	path, shownBy string
	rows          func() []row
	format        render.Format
}{{"docs/gallery.png", "docs/pictures.md", galleryRows, render.PNG}, {"docs/images/views.webp", "docs/pictures.md", viewRows, render.WebP}}

// Sheets, in pixels. They are as wide as a page shows them without scaling, which would blur sharp
// edges.
const (
	width  = 880
	margin = 28
)

// item is a picture on a sheet.
type item struct {
	sheet, worn skin.Sheet
	view        render.View
}

// picture returns an item without anything else.
func picture(sheet skin.Sheet, kind skin.Type, mode render.Mode, size int) item {
	return item{sheet: sheet, view: render.View{Mode: mode, Type: kind, Size: size}}
}

// row is items on one baseline, spread between a left and a right edge.
type row struct {
	left, right, bottom int
	items               []item
}

// galleryRows are the layout of a sheet of textures in several sizes: a large figure, heads beside it from large to small, figures of all kinds,
// below them a slim one of a legacy sheet, a high-resolution one and one with translucent layers,
// with heads too small to be sharp; capes, and the default skin.
func galleryRows() []row {
	const middle, end, height = 452, width - margin, 1088
	legacy, fine := randomSkin("Old Plain 1"), randomSkin("HD Smooth 1")
	return []row{
		{margin, middle - margin, 428, named(render.Preview, 400, "Explorer")},
		{middle, end, 220, named(render.Isometric, 192, "Robot", "Frog Hoodie")},
		{middle, end, 340, named(render.Isometric, 96, "Diver", "Gardener", "Mage", "Fox")},
		{middle, end, 428, named(render.Flat, 56, "Explorer", "Ranger", "Robot", "Knight", "Penguin", "Astronaut")},
		{margin, end, 660, named(render.Preview, 208, "Ranger", "Knight", "Gardener", "Diver")},
		{margin, end, 908, []item{
			picture(legacy, skin.Slim, render.Preview, 208),
			picture(fine, skin.Classic, render.Preview, 208),
			picture(glazed(), skin.Classic, render.Preview, 208),
			picture(artwork.Robot(), skin.Classic, render.Isometric, 48),
			picture(fine, skin.Classic, render.Isometric, 48),
		}},
		{margin, end, height - margin, append(named(render.Preview, 128, "Sunrise", "Evergreen", "Night Sky"),
			picture(artwork.Default(), skin.Classic, render.Isometric, 128),
			picture(artwork.Default(), skin.Classic, render.Isometric, 64),
			picture(artwork.Default(), skin.Classic, render.Flat, 32),
		)},
	}
}

// named returns textures by their names, without anything else.
func named(mode render.Mode, size int, names ...string) (items []item) {
	all := slices.Concat(artwork.Skins(), artwork.Capes())
	for _, name := range names {
		texture := all[slices.IndexFunc(all, func(n artwork.NamedSheet) bool { return n.Name == name })]
		items = append(items, picture(texture.Sheet, texture.Type, mode, size))
	}
	return items
}

func randomSkin(name string) skin.Sheet {
	skins := skintest.Skins()
	return skins[slices.IndexFunc(skins, func(n artwork.NamedSheet) bool { return n.Name == name })].Sheet
}

// glazed returns the default skin with a translucent jacket, sleeves and trousers.
func glazed() skin.Sheet {
	sheet := artwork.Default()
	for _, part := range []skin.Part{skin.Jacket, skin.RightSleeve, skin.LeftSleeve, skin.RightPants, skin.LeftPants} {
		box := skin.Faces(part, skin.Classic)
		for _, face := range []skin.Rect{box.Top, box.Bottom, box.Right, box.Front, box.Left, box.Back} {
			for y := range face.H {
				for x := range face.W {
					copy(sheet.Pix[sheet.At(face.X+x, face.Y+y):], []byte{70, 150, 210, 110})
				}
			}
		}
	}
	return sheet
}

func heightOf(rows []row) int { return rows[len(rows)-1].bottom + margin }

// compose returns the file of a whole sheet.
func compose(renderer *render.Renderer, rows []row, format render.Format) ([]byte, error) {
	height := heightOf(rows)
	canvas := image.NewNRGBA(image.Rect(0, 0, width, height))
	drawBackground(canvas)
	for _, row := range rows {
		all, err := row.layOut(renderer)
		if err != nil {
			return nil, err
		}
		for _, h := range all {
			draw.Draw(canvas, h.position, h.picture, h.picture.Bounds().Min, draw.Over)
		}
	}
	return renderer.Encode(render.Picture{Width: width, Height: height, Pix: canvas.Pix}, format)
}

// drawBackground fills the canvas with a pale checkerboard, which shows transparency.
func drawBackground(canvas *image.NRGBA) {
	const side = 10
	pale, paler := color.NRGBA{R: 0xdc, G: 0xe1, B: 0xe8, A: 0xff}, color.NRGBA{R: 0xe3, G: 0xe7, B: 0xed, A: 0xff}
	for y := range canvas.Rect.Dy() {
		for x := range canvas.Rect.Dx() {
			check := pale
			if (x/side+y/side)%2 == 0 {
				check = paler
			}
			canvas.SetNRGBA(x, y, check)
		}
	}
}

// placed is a picture and its area on the sheet.
type placed struct {
	picture  image.Image
	position image.Rectangle
}

// layOut renders the items of a row, trimmed so that the visible parts share a baseline.
func (r row) layOut(renderer *render.Renderer) ([]placed, error) {
	var pictures []image.Image
	space := r.right - r.left
	for _, e := range r.items {
		picture, err := renderer.Draw(e.sheet, e.worn, e.view)
		if err != nil {
			return nil, err
		}
		pictures = append(pictures, trim(picture))
		space -= pictures[len(pictures)-1].Bounds().Dx()
	}
	if space < 0 {
		return nil, fmt.Errorf("a row lacks %d pixels for its %d items", -space, len(pictures))
	}
	var all []placed
	left := r.left
	for i, picture := range pictures {
		area := picture.Bounds()
		all = append(all, placed{picture, area.Sub(area.Min).Add(image.Pt(left, r.bottom-area.Dy()))})
		if between := len(pictures) - 1 - i; between > 0 {
			left += area.Dx() + space/between
			space -= space / between
		}
	}
	return all, nil
}

// trim returns the bounding box of the visible part of a picture.
func trim(picture render.Picture) image.Image {
	img := &image.NRGBA{
		Pix: picture.Pix, Stride: 4 * picture.Width, Rect: image.Rect(0, 0, picture.Width, picture.Height),
	}
	var visible image.Rectangle
	for y := range picture.Height {
		for x := range picture.Width {
			if img.NRGBAAt(x, y).A > 0 {
				visible = visible.Union(image.Rect(x, y, x+1, y+1))
			}
		}
	}
	return img.SubImage(visible)
}

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
