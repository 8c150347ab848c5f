package main

import "github.com/veneer-skins/veneer/shared/skin"

// newCape returns the canvas of a classic cape.
func newCape(outside, lining rgba) canvas {
	c := newCanvas(skin.Cape, 64, 32)
	c.paintCape(outside, lining)
	return c
}

// paintCape paints a whole cape, with another colour on its inner face.
func (c canvas) paintCape(outside, lining rgba) {
	box := skin.CapeFaces()
	for _, face := range []skin.Rect{box.Front, box.Left, box.Right, box.Top, box.Bottom} {
		c.fill(face, outside)
	}
	c.fill(box.Back, lining)
}

// sunrise returns a cape with a sunrise over the sea.
func sunrise() skin.Sheet {
	c := newCape(0xe4684fff, 0x7a2f3fff)
	c.draw(skin.CapeFaces().Front, palette{
		'1': 0x503a78ff, '2': 0x8f4a80ff, '3': 0xd2626fff, '4': 0xf08c5cff, '5': 0xf8b760ff,
		'y': 0xffe58aff, 'w': 0xfff6cfff, 'a': 0x2f6f98ff, 'b': 0x25597fff, 'g': 0xf6c878ff,
	},
		"1111111111",
		"1112111111",
		"2212222122",
		"2222222222",
		"3323333323",
		"3333333333",
		"333yyyy333",
		"44yyyyyy44",
		"44yywwyy44",
		"55yywwyy55",
		"55ywwwwy55",
		"aaaggggaaa",
		"baabggbaab",
		"aaabggaaaa",
		"bbaaagbabb",
		"bbbbbbbbbb",
	)
	return c.Sheet
}

// evergreen returns a cape with a fir tree and a golden hem.
func evergreen() skin.Sheet {
	c := newCape(0x2f6b4fff, 0x1f4636ff)
	c.draw(skin.CapeFaces().Front, palette{'g': 0xe8c766ff, 'l': 0x8fce84ff, 'd': 0x5fa765ff, 't': 0x7b5636ff},
		"gggggggggg",
		"          ",
		"    l     ",
		"    ld    ",
		"   lld    ",
		"   lldd   ",
		"    ld    ",
		"   lldd   ",
		"  lllddd  ",
		"   lldd   ",
		"  lllddd  ",
		" lllldddd ",
		"    tt    ",
		"    tt    ",
		"          ",
		"gggggggggg",
	)
	return c.Sheet
}

// nightSky returns a cape with the moon and stars.
func nightSky() skin.Sheet {
	c := newCape(0x232a55ff, 0x151a38ff)
	c.draw(skin.CapeFaces().Front, palette{'m': 0xf7efc8ff, 'n': 0xdccf9cff, 's': 0xffffffff, 'd': 0x8f9be0ff, 'h': 0x3c478cff},
		"          ",
		"  d    s  ",
		"          ",
		"    mm    ",
		"  mmmn   d",
		" smmn     ",
		"  mmn     ",
		"  mmn   s ",
		"  mmmn  n ",
		"    mmmn  ",
		" d        ",
		"      d   ",
		"  s       ",
		"       s  ",
		"   d      ",
		"hhhhhhhhhh",
	)
	return c.Sheet
}
