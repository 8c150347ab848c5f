package render

import (
	"github.com/veneer-skins/veneer/edge/render/model"
	"github.com/veneer-skins/veneer/edge/render/raster"
	"github.com/veneer-skins/veneer/shared/skin"
)

// drawFlat draws the face of a skin with its hat.
func drawFlat(sheet, _ skin.Sheet, view View, pixels []byte) raster.Picture {
	picture := raster.NewPicture(view.Size, view.Size, pixels)
	front, hat := skin.Faces(skin.Head, view.Type).Front, skin.Faces(skin.Hat, view.Type).Front
	k := sheet.Scale()
	face := skin.NewSheet(front.W*k, front.H*k)
	raster.DrawFace(face, 0, 0, sheet, front.Scaled(k), hat.Scaled(k), view.Omit&model.OmitHat == 0)
	picture.DrawScaled(face, skin.Rect{W: face.Width, H: face.Height}, 0, 0, picture.Width, picture.Height)
	return picture
}
