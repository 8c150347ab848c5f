package render

import (
	"time"

	"github.com/veneer-skins/veneer/shared/skin"
)

// Tile is the skin of one picture of a sprite.
type Tile struct {
	Sheet skin.Sheet
	Type  skin.Type
}

// RenderSprite draws square pictures of skins in one mode and size beside and below each other, and
// encodes them as one picture: row by row, columns pictures in each, the rest of the last row being
// transparent. The view's Type does not count. It fails as Render does.
func (r *Renderer) RenderSprite(tiles []Tile, view View, columns int) (file []byte, timing Timing, err error) {
	began := time.Now()
	side, rows := view.Size, (len(tiles)+columns-1)/columns
	sprite := newPicture(columns*side, rows*side, nil)
	var tile Picture
	for i, t := range tiles {
		view.Type = t.Type
		if tile, err = r.draw(t.Sheet, skin.Sheet{}, view, tile.Pix); err != nil {
			return nil, timing, err
		}
		for y := range side {
			copy(sprite.row(i%columns*side, i/columns*side+y, side), tile.row(0, y, side))
		}
	}
	drawn := time.Now()
	file, err = r.Encode(sprite, view.Format)
	return file, Timing{Drawing: drawn.Sub(began), Encoding: time.Since(drawn)}, err
}
