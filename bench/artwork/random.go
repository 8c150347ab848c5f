package main

import "github.com/veneer-skins/veneer/shared/skin"

// Colours of random skins.
var (
	skinTones    = []rgba{0xf6d3b3ff, 0xe8b48cff, 0xd09a6eff, 0xa8744dff, 0x7a4e33ff, 0x553526ff, 0x9fc48aff}
	hairColours  = []rgba{0x2a1d16ff, 0x5b3a21ff, 0x8a5a2eff, 0xc99a4bff, 0xe6d3a0ff, 0xa63f25ff, 0xb8b8bcff, 0x5a6fd0ff, 0xe48ab4ff}
	clothColours = []rgba{
		0x24272eff, 0x4b5360ff, 0x9aa3adff, 0xe8e6dfff, 0x7c2630ff, 0xc8443aff, 0xe58a3aff, 0xe9c552ff,
		0x51703dff, 0x2c8a5cff, 0x2f8f9aff, 0x2f5fa8ff, 0x27306bff, 0x6a4494ff, 0xc86fa6ff, 0x7a5534ff,
	}
)

// randomSkin returns a random figure on a sheet of width × height texels. The figure depends
// on the seed, its shading on the shader.
func randomSkin(seed uint64, model skin.Type, width, height int, shade shader) skin.Sheet {
	r := rng(seed)
	c := newCanvas(model, width, height)
	c.shader = shade
	tone, hair := r.pickColour(skinTones), r.pickColour(hairColours)
	shirt, trousers, accent := r.pickColour(clothColours), r.pickColour(clothColours), r.pickColour(clothColours)
	c.paintBase(figureColours{
		skin: tone, hair: hair, shirt: shirt, belt: accent.lighten(-20), sleeve: 3 + r.intN(9), hand: tone,
		trousers: trousers, boot: r.pickColour(clothColours).lighten(-25),
	})
	c.front(skin.Head, palette{'h': hair, 'w': 0xf4f4f4ff, 'e': r.pickColour(clothColours), 'd': tone.lighten(-14), 'm': tone.lighten(-35)},
		r.pickFace()...)
	switch r.intN(4) {
	case 0:
		c.wrap(skin.Body, 3, 5, accent)
		c.wrapPair(arms, 3, 5, accent)
	case 1:
		c.emblem(&r, skin.Rect{X: 21, Y: 22, W: 6, H: 6}, accent)
	}

	c.paintHair(&r, hair.lighten(8))
	switch r.intN(5) {
	case 0: // glasses
		glass := r.pickColour(clothColours)&^0xff | 0x70
		c.front(skin.Hat, palette{'f': 0x30343cff, 'g': glass},
			"        ",
			"        ",
			"        ",
			"ffffffff",
			" fgffgf ",
		)
	case 1: // a veil
		c.wrap(skin.Hat, 3, 8, r.pickColour(clothColours)&^0xff|0x58)
	}
	if r.intN(3) > 0 { // an open jacket
		coat := r.pickColour(clothColours)
		c.wrap(skin.Jacket, 0, 8+r.intN(4), coat)
		c.front(skin.Jacket, nil,
			"  ....  ",
			"  ....  ",
			"   ..   ",
			"   ..   ",
			"   ..   ",
			"   ..   ",
			"   ..   ",
			"   ..   ",
			"  ....  ",
			"  ....  ",
			"  ....  ",
		)
		c.wrapPair(sleeves, 0, 4+r.intN(7), coat)
	}
	if r.intN(2) == 0 { // pads and turn-ups
		c.wrapPair(sleeves, 0, 2, accent)
		c.wrapPair(pants, 7+r.intN(2), 10, trousers.lighten(12))
	}
	return c.Sheet
}

// paintHair paints hair over the head: of uneven length, short in front of the face, and with
// gaps.
func (c canvas) paintHair(r *rng, hair rgba) {
	box := skin.Faces(skin.Hat, c.model)
	c.fill(box.Top, hair)
	long := 2 + r.intN(6)
	for _, side := range []struct {
		face     skin.Rect
		shortest int
	}{{box.Front, 1}, {box.Right, long}, {box.Left, long}, {box.Back, long}} {
		for x := range side.face.W {
			length := min(side.shortest+r.intN(3), side.face.H)
			c.fill(skin.Rect{X: side.face.X + x, Y: side.face.Y, W: 1, H: length}, hair)
			if r.intN(3) == 0 {
				c.fill(skin.Rect{X: side.face.X + x, Y: side.face.Y + r.intN(length), W: 1, H: 1}, 0)
			}
		}
	}
}

// emblem paints a random badge with left-right symmetry.
func (c canvas) emblem(r *rng, area skin.Rect, colour rgba) {
	for y := range area.H {
		for x := range area.W / 2 {
			if r.intN(2) == 0 {
				continue
			}
			for _, x := range []int{x, area.W - 1 - x} {
				c.fill(skin.Rect{X: area.X + x, Y: area.Y + y, W: 1, H: 1}, colour)
			}
		}
	}
}

// rng is a deterministic random number generator.
type rng uint64

// intN returns a number below n.
func (r *rng) intN(n int) int {
	*r = rng(mix64(uint64(*r) + 0x9e3779b97f4a7c15))
	return int(uint64(*r) % uint64(n))
}

// pickColour returns one of the colours, a little lighter or darker.
func (r *rng) pickColour(from []rgba) rgba { return from[r.intN(len(from))].lighten(r.intN(17) - 8) }

// pickFace returns one of several faces.
func (r *rng) pickFace() []string {
	faces := [][]string{
		{
			"hhhhhhhh",
			"hhhhhhhh",
			"h      h",
			"        ",
			" we  ew ",
			"   dd   ",
			"  mmmm  ",
			"        ",
		},
		{
			"hhhhhhhh",
			"hh hh hh",
			"h      h",
			" hh  hh ",
			" ew  we ",
			" ew  we ",
			"d      d",
			"   mm   ",
		},
		{
			"hhhhhhhh",
			"hhhhh hh",
			"hh     h",
			"        ",
			" ee  ee ",
			" ww  ww ",
			"  dmmd  ",
			"   dd   ",
		},
		{
			"hhhhhhhh",
			"h hhhh h",
			"        ",
			"hh    hh",
			"hwe  ewh",
			"h  dd  h",
			"hhmmmmhh",
			" hhhhhh ",
		},
	}
	return faces[r.intN(len(faces))]
}
