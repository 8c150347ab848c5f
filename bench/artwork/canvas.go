package main

import (
	"slices"

	"github.com/veneer-skins/veneer/shared/skin"
)

// palette maps the letters of a drawing to colours.
type palette map[byte]rgba

// canvas is a sheet that is being painted. Texels beyond the height of a legacy sheet are
// ignored.
type canvas struct {
	skin.Sheet
	model  skin.Type
	shader shader
}

// newCanvas returns the canvas of a sheet of width × height texels that shades as fabric.
func newCanvas(model skin.Type, width, height int) canvas {
	return canvas{Sheet: skin.NewSheet(width, height), model: model, shader: fabric}
}

// wrap paints a band around a part, of the rows from to before to of its sides. The first row
// includes the top, the last the bottom.
func (c canvas) wrap(part skin.Part, from, to int, colour rgba) {
	box := skin.Faces(part, c.model)
	for _, side := range []skin.Rect{box.Right, box.Front, box.Left, box.Back} {
		c.fill(skin.Rect{X: side.X, Y: side.Y + from, W: side.W, H: to - from}, colour)
	}
	if from == 0 {
		c.fill(box.Top, colour.lighten(4))
	}
	if to == box.Front.H {
		c.fill(box.Bottom, colour.lighten(-18))
	}
}

// fill paints a rectangle in one colour with the canvas's shader.
func (c canvas) fill(area skin.Rect, colour rgba) {
	area = area.Scaled(c.Scale())
	for y := range area.H {
		for x := range area.W {
			c.setTexel(area.X+x, area.Y+y, c.shader(colour, area, x, y))
		}
	}
}

// draw paints a drawing on a face: one string a row, one letter a texel. A space keeps the
// texel, and a dot makes it transparent. A drawing spans the width of the face, so that it
// may be finer on an HD sheet, but not necessarily its height.
func (c canvas) draw(face skin.Rect, colours palette, drawing ...string) {
	face = face.Scaled(c.Scale())
	size := face.W / len(drawing[0])
	for y := range size * len(drawing) {
		for x := range face.W {
			if letter := drawing[y/size][x/size]; letter != ' ' {
				c.setTexel(face.X+x, face.Y+y, colours[letter])
			}
		}
	}
}

// front draws on the front of a part.
func (c canvas) front(part skin.Part, colours palette, drawing ...string) {
	c.draw(skin.Faces(part, c.model).Front, colours, drawing...)
}

// back draws on the back of a part.
func (c canvas) back(part skin.Part, colours palette, drawing ...string) {
	c.draw(skin.Faces(part, c.model).Back, colours, drawing...)
}

// sides draws on the right of a part and the mirror image on its left, so that the last
// letter of a row is next to the front.
func (c canvas) sides(part skin.Part, colours palette, drawing ...string) {
	box := skin.Faces(part, c.model)
	c.draw(box.Right, colours, drawing...)
	c.draw(box.Left, colours, mirrored(drawing)...)
}

// mirrored returns a drawing mirrored horizontally.
func mirrored(drawing []string) []string {
	rows := make([]string, len(drawing))
	for i, row := range drawing {
		letters := []byte(row)
		slices.Reverse(letters)
		rows[i] = string(letters)
	}
	return rows
}

// setTexel sets the colour of a texel.
func (c canvas) setTexel(x, y int, colour rgba) {
	if y < c.Height {
		copy(c.Pix[c.At(x, y):], []byte{byte(colour >> 24), byte(colour >> 16), byte(colour >> 8), byte(colour)})
	}
}
