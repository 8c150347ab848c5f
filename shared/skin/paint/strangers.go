package paint

import "github.com/veneer-skins/veneer/shared/skin"

// What strangers are made of.
var (
	tones  = []ink{0xf6d3b3ff, 0xe8b48cff, 0xd09a6eff, 0xa8744dff, 0x7a4e33ff, 0x553526ff, 0x9fc48aff}
	hairs  = []ink{0x2a1d16ff, 0x5b3a21ff, 0x8a5a2eff, 0xc99a4bff, 0xe6d3a0ff, 0xa63f25ff, 0xb8b8bcff, 0x5a6fd0ff, 0xe48ab4ff}
	cloths = []ink{
		0x24272eff, 0x4b5360ff, 0x9aa3adff, 0xe8e6dfff, 0x7c2630ff, 0xc8443aff, 0xe58a3aff, 0xe9c552ff,
		0x51703dff, 0x2c8a5cff, 0x2f8f9aff, 0x2f5fa8ff, 0x27306bff, 0x6a4494ff, 0xc86fa6ff, 0x7a5534ff,
	}
)

// stranger returns a skin of somebody who has never been seen before, on a sheet
// of width × height texels: who it is depends on the seed, how it is shaded on the
// weave.
func stranger(seed uint64, model skin.Type, width, height int, woven weave) skin.Sheet {
	d := dice(seed)
	c := newCanvas(model, width, height)
	c.weave = woven
	tone, hair := d.pick(tones), d.pick(hairs)
	shirt, trousers, accent := d.pick(cloths), d.pick(cloths), d.pick(cloths)
	c.dress(outfit{
		skin: tone, hair: hair, shirt: shirt, belt: accent.lit(-20), sleeve: 3 + d.roll(9), hand: tone,
		trousers: trousers, boot: d.pick(cloths).lit(-25),
	})
	c.front(skin.Head, inks{'h': hair, 'w': 0xf4f4f4ff, 'e': d.pick(cloths), 'd': tone.lit(-14), 'm': tone.lit(-35)},
		d.face()...)
	switch d.roll(4) {
	case 0:
		c.wrap(skin.Body, 3, 5, accent)
		c.both(arms, 3, 5, accent)
	case 1:
		c.emblem(&d, skin.Rect{X: 21, Y: 22, W: 6, H: 6}, accent)
	}

	c.strands(&d, hair.lit(8))
	switch d.roll(5) {
	case 0: // glasses
		glass := d.pick(cloths)&^0xff | 0x70
		c.front(skin.Hat, inks{'f': 0x30343cff, 'g': glass},
			"        ",
			"        ",
			"        ",
			"ffffffff",
			" fgffgf ",
		)
	case 1: // a veil
		c.wrap(skin.Hat, 3, 8, d.pick(cloths)&^0xff|0x58)
	}
	if d.roll(3) > 0 { // an open jacket
		coat := d.pick(cloths)
		c.wrap(skin.Jacket, 0, 8+d.roll(4), coat)
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
		c.both(sleeves, 0, 4+d.roll(7), coat)
	}
	if d.roll(2) == 0 { // pads and turn-ups
		c.both(sleeves, 0, 2, accent)
		c.both(pants, 7+d.roll(2), 10, trousers.lit(12))
	}
	return c.Sheet
}

// strands hangs hair over the head: of uneven length, short before the face, and
// with gaps.
func (c canvas) strands(d *dice, hair ink) {
	box := skin.Faces(skin.Hat, c.model)
	c.fill(box.Top, hair)
	long := 2 + d.roll(6)
	for _, side := range []struct {
		face     skin.Rect
		shortest int
	}{{box.Front, 1}, {box.Right, long}, {box.Left, long}, {box.Back, long}} {
		for x := range side.face.W {
			length := min(side.shortest+d.roll(3), side.face.H)
			c.fill(skin.Rect{X: side.face.X + x, Y: side.face.Y, W: 1, H: length}, hair)
			if d.roll(3) == 0 {
				c.fill(skin.Rect{X: side.face.X + x, Y: side.face.Y + d.roll(length), W: 1, H: 1}, 0)
			}
		}
	}
}

// emblem paints a badge of chance whose left is the mirror image of its right.
func (c canvas) emblem(d *dice, area skin.Rect, colour ink) {
	for y := range area.H {
		for x := range area.W / 2 {
			if d.roll(2) == 0 {
				continue
			}
			for _, x := range []int{x, area.W - 1 - x} {
				c.fill(skin.Rect{X: area.X + x, Y: area.Y + y, W: 1, H: 1}, colour)
			}
		}
	}
}

// dice decides what nobody else does. The same dice always fall the same way.
type dice uint64

// roll returns a number below n.
func (d *dice) roll(n int) int {
	*d = dice(mix(uint64(*d) + 0x9e3779b97f4a7c15))
	return int(uint64(*d) % uint64(n))
}

// pick returns one of the inks, a little lighter or darker.
func (d *dice) pick(from []ink) ink { return from[d.roll(len(from))].lit(d.roll(17) - 8) }

// face returns one of several faces.
func (d *dice) face() []string {
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
	return faces[d.roll(len(faces))]
}
