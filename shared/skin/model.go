package skin

import "slices"

// Normalised returns the sheet as the game draws it on a player of the given model. The size
// must be one that Decode accepts. A legacy sheet, half as high as wide, becomes a square
// one. The alpha of some regions is forced as in the game, whatever the file says. A cape is
// returned unchanged. The receiver is never modified.
func (s Sheet) Normalised(model Type) Sheet {
	k := s.Scale()
	if !model.IsSkin() || k == 0 {
		return s
	}
	legacy := s.Height < s.Width
	out := s.padded(s.Width, s.Width)
	if legacy {
		out.mirrorLimb(k, Faces(RightLeg, Classic), Faces(LeftLeg, Classic))
		out.mirrorLimb(k, Faces(RightArm, Classic), Faces(LeftArm, Classic))
	}

	// The order matters: the third rule restores what the hat's rule takes from the body and
	// the arms, which share its half of the sheet.
	out.setAlpha(Rect{X: 0, Y: 0, W: 32, H: 16}.Scaled(k), 255)
	if hats := (Rect{X: 32, Y: 0, W: 32, H: 32}.Scaled(k)); legacy && !out.hasAlphaBelow(hats, 128) {
		// Old paint programs saved no transparency: a hat without any is not a hat.
		out.setAlpha(hats, 0)
	}
	out.setAlpha(Rect{X: 0, Y: 16, W: 64, H: 16}.Scaled(k), 255)
	out.setAlpha(Rect{X: 16, Y: 48, W: 32, H: 16}.Scaled(k), 255)
	return out
}

// WithSlimArms returns a classic square sheet as one for the model Slim: of each face of an arm or a
// sleeve that is four units wide, the third column is left out. The receiver is not modified.
func (s Sheet) WithSlimArms() Sheet {
	const leftOut = 2
	k := s.Scale()
	slim := s.padded(s.Width, s.Height)
	for _, part := range []Part{RightArm, RightSleeve, LeftArm, LeftSleeve} {
		wide, narrow := Faces(part, Classic), Faces(part, Slim)
		for i, to := range narrow.faces() {
			from := wide.faces()[i].Scaled(k)
			to = to.Scaled(k)
			for y := range to.H {
				if from.W == to.W {
					copy(slim.row(to.X, to.Y+y, to.W), s.row(from.X, from.Y+y, from.W))
					continue
				}
				copy(slim.row(to.X, to.Y+y, leftOut*k), s.row(from.X, from.Y+y, leftOut*k))
				copy(slim.row(to.X+leftOut*k, to.Y+y, k), s.row(from.X+(leftOut+1)*k, from.Y+y, k))
			}
		}
	}
	return slim
}

// wideStrips are the texels that only arms of four units use: the far half of each bottom and
// of each back, first of the arms, then of the sleeves. The near half of the same face lies
// to the left of a strip and has the same size.
var wideStrips = [2][4]Rect{
	{{X: 50, Y: 16, W: 2, H: 4}, {X: 54, Y: 20, W: 2, H: 12}, {X: 42, Y: 48, W: 2, H: 4}, {X: 46, Y: 52, W: 2, H: 12}},
	{{X: 50, Y: 32, W: 2, H: 4}, {X: 54, Y: 36, W: 2, H: 12}, {X: 58, Y: 48, W: 2, H: 4}, {X: 62, Y: 52, W: 2, H: 12}},
}

// DetectModel returns the model of a skin, from the four strips that only the arms of Classic
// use. It returns Classic also for a legacy sheet, and if there is no evidence.
//
// The texel (63, 20) belongs to no part of either model, so its value is the sheet's
// background. A strip of background beside a painted near half is unused; a painted strip is
// used; a face of background alone is no evidence. The model is Slim if at least as many
// strips are unused as used. The sleeves count only if the arms give no evidence, as on a
// skin that has its arms in the layer.
//
// Up to a quarter of stray texels is tolerated. Mods store data in the alpha channel of the
// base, and with it in the alpha of the unused strips: there all four have exactly the
// background's colour. Only alpha that varies is data: black arms on transparent black have
// the background's colour, too. Others fill the unused strips with one opaque colour.
func DetectModel(sheet Sheet) Type {
	if sheet.Height < sheet.Width {
		return Classic
	}
	k := sheet.Scale()
	background := [4]byte(sheet.row(63*k, 20*k, 1))
	hasColour := func(texel [4]byte) bool { return [3]byte(texel[:]) == [3]byte(background[:]) }
	isBackground := func(texel [4]byte) bool {
		return texel == background || texel[3] == 0 && background[3] == 0
	}

	if unused, _ := sheet.countStrips(wideStrips[0], hasColour, 4); unused == len(wideStrips[0]) && sheet.alphaVaries(wideStrips[0]) {
		return Slim
	}
	if sheet.haveOneColour(wideStrips[0]) {
		return Slim
	}
	for _, strips := range wideStrips {
		switch unused, used := sheet.countStrips(strips, isBackground, 3); {
		case unused+used == 0:
			continue
		case unused >= used:
			return Slim
		default:
			return Classic
		}
	}
	return Classic
}

// haveOneColour reports whether all texels of the strips have one opaque colour, and at most a quarter of the rest of
// the arms has it, too.
func (s Sheet) haveOneColour(strips [4]Rect) bool {
	k := s.Scale()
	colour := [4]byte(s.row(strips[0].X*k, strips[0].Y*k, 1))
	area, coloured := 0, 0
	add := func(r Rect, sign int) (isFilled bool) {
		count := s.count(r, func(texel [4]byte) bool { return texel == colour })
		area, coloured = area+sign*r.W*r.H*k*k, coloured+sign*count
		return count == r.W*r.H*k*k
	}
	for _, strip := range strips {
		if !add(strip, -1) {
			return false
		}
	}
	for _, arm := range []Part{RightArm, LeftArm} {
		for _, face := range Faces(arm, Classic).faces() {
			add(face, 1)
		}
	}
	return colour[3] == 255 && 4*coloured <= area
}

// countStrips counts the strips of background beside a painted near half, and the painted
// ones. A rectangle is background if that many quarters of it are.
func (s Sheet) countStrips(strips [4]Rect, isBackground func(texel [4]byte) bool, quarters int) (unused, used int) {
	for _, strip := range strips {
		near := strip
		near.X -= near.W
		least := quarters * strip.W * strip.H * s.Scale() * s.Scale()
		switch {
		case 4*s.count(strip, isBackground) < least:
			used++
		case 4*s.count(near, isBackground) < least:
			unused++
		}
	}
	return unused, used
}

// alphaVaries reports whether texels of the strips have different alpha.
func (s Sheet) alphaVaries(strips [4]Rect) bool {
	first := s.row(strips[0].X*s.Scale(), strips[0].Y*s.Scale(), 1)[3]
	return slices.ContainsFunc(strips[:], func(strip Rect) bool {
		return s.count(strip, func(texel [4]byte) bool { return texel[3] != first }) > 0
	})
}

// count returns how many texels of a rectangle in classic units satisfy is.
func (s Sheet) count(r Rect, is func(texel [4]byte) bool) (count int) {
	r = r.Scaled(s.Scale())
	for y := range r.H {
		for row := s.row(r.X, r.Y+y, r.W); len(row) > 0; row = row[4:] {
			if is([4]byte(row)) {
				count++
			}
		}
	}
	return count
}

// padded returns a copy of the sheet in the top left corner of a transparent black sheet of
// the given size.
func (s Sheet) padded(width, height int) Sheet {
	wide := NewSheet(width, height)
	for y := range s.Height {
		copy(wide.row(0, y, s.Width), s.row(0, y, s.Width))
	}
	return wide
}

// mirrorLimb paints a left limb with the mirror image of the right one, on a sheet of scale
// k. The outer side stays the outer side.
func (s Sheet) mirrorLimb(k int, right, left Box) {
	s.mirror(right.Top.Scaled(k), left.Top.Scaled(k))
	s.mirror(right.Bottom.Scaled(k), left.Bottom.Scaled(k))
	s.mirror(right.Right.Scaled(k), left.Left.Scaled(k))
	s.mirror(right.Front.Scaled(k), left.Front.Scaled(k))
	s.mirror(right.Left.Scaled(k), left.Right.Scaled(k))
	s.mirror(right.Back.Scaled(k), left.Back.Scaled(k))
}

// mirror copies a rectangle to another of the same size, mirrored horizontally.
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
