package skin

import "bytes"

// Normalised returns the sheet, of a size that Decode accepts, as the game draws
// it on a player of the given model: a legacy sheet (half as high as wide) grown
// to a square one, and those texels made opaque or transparent that the game makes
// so, whatever the file says. A cape comes back as it is. The sheet itself never
// changes.
func (s Sheet) Normalised(model Type) Sheet {
	k := s.Scale()
	if !model.IsSkin() || k == 0 {
		return s
	}
	legacy := s.Height < s.Width
	worn := s.padded(s.Width, s.Width)
	if legacy {
		worn.mirrorLimb(k, Faces(RightLeg, Steve), Faces(LeftLeg, Steve))
		worn.mirrorLimb(k, Faces(RightArm, Steve), Faces(LeftArm, Steve))
	}

	// The order matters: the third rule restores what the hat's rule takes from
	// the body and the arms, which share its half of the sheet.
	worn.setAlpha(Rect{X: 0, Y: 0, W: 32, H: 16}.Scaled(k), 255)
	if hats := (Rect{X: 32, Y: 0, W: 32, H: 32}.Scaled(k)); legacy && !worn.hasAlphaBelow(hats, 128) {
		// Old painting programs saved no transparency: a hat without any is no hat.
		worn.setAlpha(hats, 0)
	}
	worn.setAlpha(Rect{X: 0, Y: 16, W: 64, H: 16}.Scaled(k), 255)
	worn.setAlpha(Rect{X: 16, Y: 48, W: 32, H: 16}.Scaled(k), 255)
	return worn
}

// DetectModel tells from its pixels for which model a skin was painted: Alex's
// arms leave four strips of the sheet unused, which painters leave transparent,
// black or white. A legacy sheet is always Steve's.
func DetectModel(sheet Sheet) Type {
	if sheet.Height < sheet.Width {
		return Steve
	}
	k := sheet.Scale()
	black, white := true, true
	for _, strip := range []Rect{
		{X: 50, Y: 16, W: 2, H: 4},
		{X: 54, Y: 20, W: 2, H: 12},
		{X: 42, Y: 48, W: 2, H: 4},
		{X: 46, Y: 52, W: 2, H: 12},
	} {
		strip = strip.Scaled(k)
		if sheet.hasAlphaBelow(strip, 255) {
			return Alex
		}
		black = black && sheet.isFilled(strip, 0)
		white = white && sheet.isFilled(strip, 255)
	}
	if black || white {
		return Alex
	}
	return Steve
}

// padded returns a copy of the sheet in the top left corner of a sheet of the
// given size, the rest of which is transparent black.
func (s Sheet) padded(width, height int) Sheet {
	wide := NewSheet(width, height)
	for y := range s.Height {
		copy(wide.row(0, y, s.Width), s.row(0, y, s.Width))
	}
	return wide
}

// mirrorLimb paints a left limb with the mirror image of the right one, on a
// sheet of scale k. What was the right limb's outer side is the left one's too.
func (s Sheet) mirrorLimb(k int, right, left Box) {
	s.mirror(right.Top.Scaled(k), left.Top.Scaled(k))
	s.mirror(right.Bottom.Scaled(k), left.Bottom.Scaled(k))
	s.mirror(right.Right.Scaled(k), left.Left.Scaled(k))
	s.mirror(right.Front.Scaled(k), left.Front.Scaled(k))
	s.mirror(right.Left.Scaled(k), left.Right.Scaled(k))
	s.mirror(right.Back.Scaled(k), left.Back.Scaled(k))
}

// mirror copies a rectangle to another of the same extent, left and right
// exchanged.
func (s Sheet) mirror(from, to Rect) {
	for y := range from.H {
		for x := range from.W {
			copy(s.row(to.X+to.W-1-x, to.Y+y, 1), s.row(from.X+x, from.Y+y, 1))
		}
	}
}

// row returns the bytes of n texels from x, y on.
func (s Sheet) row(x, y, n int) []byte { return s.Pix[s.At(x, y):][:4*n] }

func (s Sheet) setAlpha(r Rect, alpha byte) {
	for y := range r.H {
		row := s.row(r.X, r.Y+y, r.W)
		for i := 3; i < len(row); i += 4 {
			row[i] = alpha
		}
	}
}

func (s Sheet) hasAlphaBelow(r Rect, alpha byte) bool {
	for y := range r.H {
		row := s.row(r.X, r.Y+y, r.W)
		for i := 3; i < len(row); i += 4 {
			if row[i] < alpha {
				return true
			}
		}
	}
	return false
}

// isFilled reports whether every texel of the rectangle is the opaque grey of
// the given value.
func (s Sheet) isFilled(r Rect, value byte) bool {
	grey := bytes.Repeat([]byte{value, value, value, 255}, r.W)
	for y := range r.H {
		if !bytes.Equal(s.row(r.X, r.Y+y, r.W), grey) {
			return false
		}
	}
	return true
}
