package model

import "github.com/veneer-skins/veneer/shared/skin"

// FacesInOrder returns the faces of a part of the model, in any order that is the same for all.
func FacesInOrder(part skin.Part, model skin.Type) [6]skin.Rect {
	b := skin.Faces(part, model)
	return [...]skin.Rect{b.Top, b.Bottom, b.Right, b.Front, b.Left, b.Back}
}

// IsBlank reports whether all texels of a part of a sheet are transparent.
func IsBlank(sheet skin.Sheet, part skin.Rect) bool {
	for y := part.Y; y < part.Y+part.H; y++ {
		texels := sheet.Pix[sheet.At(part.X, y):][:4*part.W]
		for i := 3; i < len(texels); i += 4 {
			if texels[i] > 0 {
				return false
			}
		}
	}
	return true
}
