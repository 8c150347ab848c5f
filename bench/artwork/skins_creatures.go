package main

import "github.com/veneer-skins/veneer/shared/skin"

// woodenDoll returns the default skin of players without one: a doll of light wood.
func woodenDoll() skin.Sheet {
	const wood, joint = 0xdbb484ff, 0xad8154ff
	colours := palette{'g': 0xc99e6bff, 'd': joint, 'e': 0x4a3423ff, 'h': 0xf3dfbdff, 'p': 0xdd9c74ff}
	c := newCanvas(skin.Classic, 64, 64)
	c.paintBase(figureColours{skin: wood, hair: wood, shirt: wood, belt: joint, sleeve: 12, trousers: wood, boot: wood})
	for _, pair := range [][]skin.Part{arms, legs} {
		c.wrapPair(pair, 0, 1, joint)
		c.wrapPair(pair, 5, 6, joint)
		c.wrapPair(pair, 10, 11, joint)
	}
	head := skin.Faces(skin.Head, skin.Classic)
	for _, face := range []skin.Rect{head.Top, head.Right, head.Left, head.Back} {
		c.draw(face, colours,
			"  ggg   ",
			"gg   gg ",
			"   g   g",
			"ggg ggg ",
			"        ",
			"gg  ggg ",
			"  gg   g",
			" gg  gg ",
		)
	}
	c.front(skin.Head, colours,
		"  ggg   ",
		"gg   gg ",
		"   g   g",
		" he  he ",
		" ee  ee ",
		"pg    gp",
		"  e  e  ",
		"   ee  g",
	)
	for _, draw := range []func(skin.Part, palette, ...string){c.front, c.back} {
		draw(skin.Body, colours,
			"   dd   ",
			" g    g ",
			" gg  gg ",
			"  g  g  ",
			"  g  g  ",
			" gg  gg ",
			" g    g ",
			"g      g",
		)
	}
	return c.Sheet
}

// robot returns an HD sheet, 128 texels wide, with a screen for a face.
func robot() skin.Sheet {
	const steel, dark, cyan, amber = 0xa9b8c6ff, 0x4c5965ff, 0x6ff2ffff, 0xf2a93bff
	colours := palette{
		'b': 0x16202aff, 'd': dark, 'c': cyan, 'l': 0xdcfcffff, 'k': 0x1f3f50ff, 'p': 0xff8fb0ff, 'a': amber,
		'h': 0xd2dde6ff, 'g': 0x6ff2ff50,
	}
	c := newCanvas(skin.Classic, 128, 128)
	c.paintBase(figureColours{
		skin: steel, hair: steel, shirt: steel, belt: dark, sleeve: 9, hand: dark,
		trousers: steel, boot: dark,
	})
	c.front(skin.Head, colours,
		"                ",
		"  dddddddddddd  ",
		" dbbbbbbbbbbbbd ",
		" dbbbbbbbbbbbbd ",
		" dbbkkbbbbkkbbd ",
		" dbklckbbklckbd ",
		" dbkcckbbkcckbd ",
		" dbkcckbbkcckbd ",
		" dbkcckbbkcckbd ",
		" dbbkkbbbbkkbbd ",
		" dbppbcbbcbppbd ",
		" dbbbbbccbbbbbd ",
		" dbbbbbbbbbbbbd ",
		"  dddddddddddd  ",
		"                ",
		"  d d d  d d d  ",
	)
	c.sides(skin.Head, colours,
		"                ",
		" d            d ",
		"                ",
		"                ",
		"     dddddd     ",
		"    daaaaaad    ",
		"    dahhhhad    ",
		"    dahaahad    ",
		"    dahaahad    ",
		"    dahhhhad    ",
		"    daaaaaad    ",
		"     dddddd     ",
		"                ",
		"                ",
		" d            d ",
	)
	c.back(skin.Head, colours,
		"                ",
		" d            d ",
		"                ",
		"   dddddddddd   ",
		"                ",
		"   dddddddddd   ",
		"                ",
		"   dddddddddd   ",
		"                ",
		"                ",
		"    aa    cc    ",
		"    aa    cc    ",
		"                ",
		"                ",
		" d            d ",
	)
	c.front(skin.Body, colours,
		"                ",
		" d            d ",
		"                ",
		"   dddddddddd   ",
		"  dbbbbbbbbbbd  ",
		"  dbbbcbbbbbbd  ",
		"  dbbbcbbbbbbd  ",
		"  dbbcbcbbcbbd  ",
		"  dccbbcbcbccd  ",
		"  dbbbbbcbbbbd  ",
		"  dbbbbbcbbbbd  ",
		"  dbbbbbbbbbbd  ",
		"   dddddddddd   ",
		"                ",
		" d   aa  pp   d ",
		"                ",
	)
	c.front(skin.Jacket, colours,
		"                ",
		"                ",
		"                ",
		"                ",
		"   gggggggggg   ",
		"   gggggggggg   ",
	)
	hat := skin.Faces(skin.Hat, skin.Classic)
	c.draw(hat.Top, colours,
		"................",
		"................",
		"................",
		"................",
		"................",
		"................",
		"......dddd......",
		"......daad......",
		"......daad......",
		"......dddd......",
	)
	for _, pair := range [][]skin.Part{arms, legs} {
		c.wrapPair(pair, 5, 6, dark)
	}
	c.wrapPair(sleeves, 0, 2, amber)
	c.wrapPair(pants, 8, 9, amber)
	return c.Sheet
}

// fox returns a classic sheet: a fox with a scarf.
func fox() skin.Sheet {
	const fur, cream, dark, scarf = 0xe07b35ff, 0xfbeedbff, 0x3d2a22ff, 0x2f8f87ff
	colours := palette{
		'o': fur, 'c': cream, 'd': dark, 'n': 0x221815ff, 'e': 0x2b1c17ff, 'h': 0xffffffff,
		'p': 0xf2a58aff, 's': scarf, 't': 0x23716bff,
	}
	c := newCanvas(skin.Classic, 64, 64)
	c.paintBase(figureColours{skin: fur, hair: fur, shirt: fur, belt: fur, sleeve: 8, hand: dark, trousers: fur, boot: dark})
	c.front(skin.Head, colours,
		"        ",
		"        ",
		"        ",
		" he  he ",
		" ee  ee ",
		"cc    cc",
		"cccnnccc",
		" cccccc ",
	)
	c.sides(skin.Head, colours,
		"        ",
		"        ",
		"        ",
		"        ",
		"        ",
		"     ccc",
		"    cccc",
		"     ccc",
	)
	c.front(skin.Hat, colours,
		"d......d",
		"od....do",
		"op....po",
	)
	c.sides(skin.Hat, colours,
		".....dd.",
		"....ooo.",
		"....ooo.",
	)
	c.draw(skin.Faces(skin.Hat, skin.Classic).Top, colours,
		"........",
		"........",
		"........",
		"........",
		"oo....oo",
		"oo....oo",
		"dd....dd",
	)
	c.front(skin.Body, colours,
		"        ",
		"  cccc  ",
		" cccccc ",
		" cccccc ",
		" cccccc ",
		" cccccc ",
		" cccccc ",
		"  cccc  ",
		"  cccc  ",
		"   cc   ",
	)
	c.wrap(skin.Jacket, 0, 2, scarf)
	c.front(skin.Jacket, colours,
		"        ",
		"tttttttt",
		".....st.",
		".....st.",
		".....ts.",
		".....t.s",
	)
	c.back(skin.Jacket, colours,
		"        ",
		"tttttttt",
		"........",
		"........",
		"...oo...",
		"..oooo..",
		"..oooo..",
		".oooooo.",
		".oooooo.",
		".cooooc.",
		"..cccc..",
		"...cc...",
	)
	return c.Sheet
}

// frog returns a slim sheet: a hoodie with the eyes of a frog.
func frog() skin.Sheet {
	const tone, hair, green, shade, cream = 0xf0c09aff, 0x53372aff, 0x74b84bff, 0x569637ff, 0xf3edcfff
	colours := palette{
		'g': green, 'd': shade, 'w': 0xffffffff, 'k': 0x20251cff, 'c': cream, 'h': hair,
		'e': 0x6b4a2fff, 'p': 0xee9b86ff, 'm': 0xb65a4aff, 's': tone,
	}
	c := newCanvas(skin.Slim, 64, 64)
	c.paintBase(figureColours{
		skin: tone, hair: hair, shirt: green, belt: shade, sleeve: 10, hand: tone,
		trousers: 0x4a638fff, boot: 0xf2f2f2ff,
	})
	c.front(skin.Head, colours,
		"        ",
		"        ",
		"        ",
		"hhhh  hh",
		"hwe  ewh",
		" we  ew ",
		"pp    pp",
		"   mm   ",
	)
	c.wrap(skin.Hat, 0, 8, green)
	c.front(skin.Hat, colours,
		"wwg  gww",
		"wkg  gkw",
		"gddddddg",
		"d......d",
		"d......d",
		"d......d",
		"d......d",
		"gd....dg",
	)
	c.draw(skin.Faces(skin.Hat, skin.Slim).Top, colours,
		"        ",
		"        ",
		"        ",
		"        ",
		"        ",
		"ddd  ddd",
		"wwd  dww",
		"wwd  dww",
	)
	c.front(skin.Jacket, colours,
		"d......d",
		"........",
		"..cccc..",
		".cccccc.",
		".cccccc.",
		".cccccc.",
		".cddddc.",
		"..dddd..",
	)
	c.back(skin.Jacket, colours,
		".dggggd.",
		".dggggd.",
		"..dddd..",
	)
	c.wrapPair(sleeves, 9, 10, shade)
	c.wrapPair(legs, 11, 12, cream)
	return c.Sheet
}

// penguin returns a classic sheet: a penguin with a bow tie.
func penguin() skin.Sheet {
	const night, white, orange, red = 0x2d3547ff, 0xf4f6faff, 0xf29b38ff, 0xd6455bff
	colours := palette{
		'w': white, 'e': 0x161a24ff, 'h': 0xffffffff, 'o': orange, 'd': 0xcf7b22ff, 'p': 0xf7b5b0ff, 'r': red,
		'k': 0xa92e43ff,
	}
	c := newCanvas(skin.Classic, 64, 64)
	c.paintBase(figureColours{
		skin: night, hair: night, shirt: night, belt: night, sleeve: 12, trousers: night, boot: orange,
	})
	c.front(skin.Head, colours,
		"        ",
		"        ",
		" ww  ww ",
		"wwwwwwww",
		"whewwhew",
		"weeooeew",
		"pwwddwwp",
		" wwwwww ",
	)
	c.front(skin.Hat, colours,
		"........",
		"........",
		"........",
		"........",
		"........",
		"...oo...",
		"...dd...",
	)
	c.front(skin.Body, colours,
		"  wwww  ",
		" wwwwww ",
		" wwwwww ",
		" wwwwww ",
		" wwwwww ",
		" wwwwww ",
		" wwwwww ",
		" wwwwww ",
		" wwwwww ",
		" wwwwww ",
		"  wwww  ",
	)
	c.front(skin.Jacket, colours,
		".r....r.",
		".rrkkrr.",
		".r....r.",
	)
	return c.Sheet
}
