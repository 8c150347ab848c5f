package render

import "github.com/veneer-skins/veneer/shared/skin"

// NewSprite returns the transparent picture of a sprite: square pictures of a size beside and below each
// other, columns in each row.
func NewSprite(count, columns, size int) Picture {
	return newPicture(columns*size, (count+columns-1)/columns*size, nil)
}

// DrawTile draws a view of a skin, which is square, as the picture with a number of a sprite. Pictures are
// numbered row by row. It fails as Draw does.
func (r *Renderer) DrawTile(sprite Picture, number int, sheet skin.Sheet, view View) error {
	tile, err := r.Draw(sheet, skin.Sheet{}, view)
	if err != nil {
		return err
	}
	side := view.Size
	columns := sprite.Width / side
	for y := range side {
		copy(sprite.row(number%columns*side, number/columns*side+y, side), tile.row(0, y, side))
	}
	return nil
}
