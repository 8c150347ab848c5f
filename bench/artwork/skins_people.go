package main

import "github.com/veneer-skins/veneer/shared/skin"

// explorer returns a classic sheet with translucent goggles, an open coat and dust on its
// sleeves.
func explorer() skin.Sheet {
	const tan, hair, coat, seam, leather = 0xe3a878ff, 0x5b3a21ff, 0x5d7048ff, 0x46563aff, 0x6e4a2cff
	c := newCanvas(skin.Classic, 64, 64)
	c.paintBase(figureColours{
		skin: tan, hair: hair, shirt: 0xeadfc4ff, belt: leather, sleeve: 9, hand: tan,
		trousers: 0x8d7653ff, boot: 0x4b3322ff,
	})
	c.front(skin.Head, palette{'h': hair, 'w': 0xffffffff, 'e': 0x2f6b4aff, 'p': 0xdb8b68ff, 'm': 0xa6553fff},
		"        ",
		"        ",
		"        ",
		"hh hh hh",
		" we  ew ",
		" we  ew ",
		"p      p",
		"   mm   ",
	)

	c.wrap(skin.Hat, 0, 2, 0xbb9d64ff)
	c.wrap(skin.Hat, 2, 3, leather)
	c.front(skin.Hat, palette{'f': 0xd0a850ff, 'g': 0x6fd0e4a0, 'h': 0xe4fbffc0},
		"        ",
		" ff  ff ",
		"fghffghf",
		" ff..ff ",
	)
	c.wrap(skin.Jacket, 0, 11, coat)
	c.front(skin.Jacket, palette{'s': seam, 'o': 0xd8b45aff},
		" s....s ",
		" s....s ",
		"  s..s  ",
		"  s..s  ",
		"  so.s  ",
		"  s..s  ",
		"  so.s  ",
		"oos..soo",
		"  s..s  ",
		"  s..s  ",
		"  s..s  ",
	)
	c.wrapPair(sleeves, 0, 6, coat)
	c.wrapPair(sleeves, 6, 7, seam)
	c.wrapPair(sleeves, 4, 6, 0x8c8458c0)
	c.wrapPair(pants, 8, 9, leather)
	return c.Sheet
}

// ranger returns a slim sheet: long red hair, a moss green tunic and a lowered hood.
func ranger() skin.Sheet {
	const pale, hair, dark, moss, bark = 0xf3c9a5ff, 0xb4482aff, 0x8f3520ff, 0x6d8a45ff, 0x5a4030ff
	c := newCanvas(skin.Slim, 64, 64)
	c.paintBase(figureColours{
		skin: pale, hair: hair, shirt: moss, belt: bark, sleeve: 5, hand: pale,
		trousers: 0x4d5a3cff, boot: bark,
	})
	c.front(skin.Head, palette{'h': hair, 'd': dark, 'w': 0xffffffff, 'e': 0x3b6fb0ff, 'f': 0xdc9c76ff, 'm': 0xb9543fff},
		"        ",
		"        ",
		"   hd   ",
		"hh  h  h",
		"h e  e h",
		"hwe  ewh",
		"hf f  fh",
		"h  mm  h",
	)
	c.wrap(skin.Hat, 0, 2, hair)
	c.front(skin.Hat, palette{'h': hair, 'd': dark},
		"        ",
		"        ",
		"hhd..dhh",
		"hd....dh",
		"h......h",
		"h......h",
		"d......d",
		"d......d",
	)
	c.sides(skin.Hat, palette{'h': hair, 'd': dark},
		"        ",
		"        ",
		"hhdhhdhh",
		"hdhhd.hh",
		"hhdh..hh",
		"dhhd..hd",
		"hdh...hd",
		"hhd...dd",
	)
	c.back(skin.Hat, palette{'h': hair, 'd': dark},
		"        ",
		"        ",
		"hhdhhdhh",
		"hdhhdhhh",
		"hhdhhdhh",
		"dhhdhhhd",
		"hdhhdhdh",
		"hhdhhdhh",
	)
	c.back(skin.Jacket, palette{'h': hair, 'd': dark, 'c': 0x4b6130ff, 'l': 0x4b613090},
		".hhdhhd.",
		".hdhhhd.",
		".chhdhc.",
		"cccddccc",
		"cccccccc",
		"cccccccc",
		"lccccccl",
		"l.lccl.l",
	)
	c.front(skin.Jacket, palette{'c': 0x4b6130ff, 'b': 0xc9a45bff, 's': bark},
		"cccccccc",
		"ccc..ccs",
		"cc....s.",
		".....s..",
		"....s...",
		"...s....",
		"..s.....",
		".s......",
		"s.......",
		"...bb...",
	)
	c.wrapPair(sleeves, 0, 2, 0x4b6130ff)
	c.wrapPair(sleeves, 8, 10, bark)
	c.wrapPair(pants, 8, 9, 0xc9a45bff)
	return c.Sheet
}

// astronaut returns a classic sheet with a helmet and a translucent visor.
func astronaut() skin.Sheet {
	const brown, suit, grey, orange = 0xb07a50ff, 0xe9ecf0ff, 0xaab2bdff, 0xf08a3cff
	c := newCanvas(skin.Classic, 64, 64)
	c.paintBase(figureColours{
		skin: brown, hair: 0x2a1d18ff, shirt: suit, belt: grey, sleeve: 10, hand: orange,
		trousers: suit, boot: grey,
	})
	c.front(skin.Head, palette{'h': 0x2a1d18ff, 'w': 0xffffffff, 'e': 0x20120cff, 'm': 0x7a3d30ff},
		"        ",
		"        ",
		"        ",
		"h      h",
		" we  ew ",
		" we  ew ",
		"        ",
		"  mmmm  ",
	)
	c.wrap(skin.Hat, 0, 8, suit)
	c.front(skin.Hat, palette{'r': grey, 'g': 0x9fdcff30, 'h': 0xffffff70},
		"        ",
		" rrrrrr ",
		"rgggghgr",
		"rggghggr",
		"rggggggr",
		"rggggggr",
		"rggggggr",
		" rrrrrr ",
	)
	c.front(skin.Jacket, palette{'o': orange, 'p': 0x57616eff, 'r': 0xe5484dff, 'g': 0x59c36aff, 'b': 0x4aa3e0ff},
		"o......o",
		"o......o",
		"........",
		".pppppp.",
		".prpgbp.",
		".pppppp.",
	)
	c.back(skin.Jacket, palette{'p': 0xc3cad3ff, 'd': 0x7c8693ff, 'o': orange},
		"........",
		".pppppp.",
		".pdppdp.",
		".pdppdp.",
		".pdoodp.",
		".pdppdp.",
		".pppppp.",
	)
	c.wrapPair(sleeves, 2, 3, orange)
	c.wrapPair(sleeves, 9, 10, grey)
	c.wrapPair(pants, 4, 6, grey)
	return c.Sheet
}

// mage returns a classic sheet: a long robe with stars, a white beard and a hat.
func mage() skin.Sheet {
	const pale, beard, robe, dusk, gold = 0xecc3a0ff, 0xeeeef2ff, 0x5b3f96ff, 0x432d75ff, 0xf3cf63ff
	c := newCanvas(skin.Classic, 64, 64)
	c.paintBase(figureColours{
		skin: pale, hair: beard, shirt: robe, belt: gold, sleeve: 10, hand: pale,
		trousers: robe, boot: dusk,
	})
	c.front(skin.Head, palette{'b': beard, 'g': 0xd3d3dcff, 'w': 0xffffffff, 'e': 0x4b7fc4ff, 'p': 0xdc9c84ff, 'm': 0xa05a50ff},
		"        ",
		"        ",
		"        ",
		"bbb  bbb",
		" we  ew ",
		"p  pp  p",
		"bbggggbb",
		"bbbmmbbb",
	)
	c.wrap(skin.Hat, 0, 2, robe)
	c.wrap(skin.Hat, 2, 3, gold)
	c.front(skin.Hat, palette{'s': gold, 'b': beard, 'g': 0xd3d3dcff},
		"   s    ",
		"  sss   ",
		"        ",
		"........",
		"........",
		"........",
		"b.gggg.b",
		"bbb..bbb",
	)
	star := palette{'s': gold, 'b': beard, 'g': 0xd3d3dcff, 'd': dusk}
	c.wrap(skin.Jacket, 10, 12, dusk)
	c.front(skin.Jacket, star,
		".bbggbb.",
		".bgbbgb.",
		"..bggb..",
		"..bgbb..",
		"...bb...",
	)
	c.back(skin.Jacket, star,
		"d......d",
		"dd....dd",
		"...s....",
		"..sss...",
		"...s....",
		".....s..",
		"........",
		"..s.....",
	)
	c.wrapPair(sleeves, 8, 10, dusk)
	c.wrapPair(sleeves, 10, 11, gold)
	c.wrapPair(pants, 0, 8, robe)
	c.wrapPair(pants, 8, 9, gold)
	for _, part := range pants {
		c.front(part, star,
			"    ",
			" s  ",
			"    ",
			"    ",
			"  s ",
		)
	}
	return c.Sheet
}

// knight returns a classic sheet: plate armour, a visor with eyes behind it, and a tabard
// with a star.
func knight() skin.Sheet {
	const steel, plate, dark, red, gold = 0xb3bcc6ff, 0xc4cdd6ff, 0x5d6873ff, 0xb23a3aff, 0xe7bd55ff
	c := newCanvas(skin.Classic, 64, 64)
	c.paintBase(figureColours{
		skin: 0xd9a077ff, hair: 0x6a4a2eff, shirt: steel, belt: 0x5a3d28ff, sleeve: 9, hand: dark,
		trousers: steel, boot: dark,
	})
	c.front(skin.Head, palette{'h': 0x6a4a2eff, 'w': 0xffffffff, 'e': 0x3d5a80ff, 'm': 0x9c5540ff},
		"        ",
		"        ",
		"        ",
		"h      h",
		" we  ew ",
		" we  ew ",
		"        ",
		"   mm   ",
	)
	c.wrap(skin.Hat, 0, 8, steel)
	c.draw(skin.Faces(skin.Hat, skin.Classic).Top, palette{'r': red, 'd': 0x8e2b2bff},
		"   rd   ",
		"   dr   ",
		"   rd   ",
		"   dr   ",
		"   rd   ",
		"   dr   ",
		"   rd   ",
		"   dr   ",
	)
	c.front(skin.Hat, palette{'r': red, 'd': dark, 'l': 0xd5dce3ff, 'g': gold},
		"   rr   ",
		"   rr   ",
		" llggll ",
		"dddggddd",
		"....d...",
		"........",
		"dd.dd.dd",
		" d d d  ",
	)
	c.back(skin.Hat, palette{'r': red, 'd': 0x8e2b2bff},
		"   rd   ",
		"   dr   ",
		"   rd   ",
		"   dr   ",
		"   rd   ",
		"    r   ",
	)
	tabard := palette{'r': red, 'g': gold, 'd': 0x8e2b2bff}
	c.front(skin.Jacket, tabard,
		".rr..rr.",
		".rrrrrr.",
		".rrrgrr.",
		".rrggrr.",
		".rggggr.",
		".rrggrr.",
		".rrrgrr.",
		".rrrrrr.",
		".gggggg.",
		"........",
		".rrrrrr.",
		".dr.rrd.",
	)
	c.back(skin.Jacket, tabard,
		".rrrrrr.",
		".rrrrrr.",
		".rrrrrr.",
		".rrrrrr.",
		".rrrrrr.",
		".rrrrrr.",
		".rrrrrr.",
		".rrrrrr.",
		".gggggg.",
		"........",
		".rrrrrr.",
		".dr.rrd.",
	)
	c.wrapPair(sleeves, 0, 3, plate)
	c.wrapPair(sleeves, 8, 9, gold)
	c.wrapPair(pants, 4, 6, plate)
	return c.Sheet
}

// gardener returns a legacy sheet, half as high as wide, with a straw hat.
func gardener() skin.Sheet {
	const tan, hair, straw, denim, plaid = 0xc98e63ff, 0x3c2a20ff, 0xe6c56fff, 0x456a9cff, 0xc9574eff
	c := newCanvas(skin.Classic, 64, 32)
	c.paintBase(figureColours{
		skin: tan, hair: hair, shirt: plaid, belt: denim, sleeve: 6, hand: tan,
		trousers: denim, boot: 0x4f7a4aff,
	})
	c.front(skin.Head, palette{'h': hair, 'w': 0xffffffff, 'e': 0x5a3a22ff, 'p': 0xb8704fff, 'm': 0x8c4a38ff},
		"        ",
		"        ",
		"        ",
		"hhh  hhh",
		" we  ew ",
		" we  ew ",
		"p      p",
		"  mmmm  ",
	)
	c.wrap(skin.Hat, 0, 3, straw)
	c.wrap(skin.Hat, 1, 2, 0x7fa65aff)
	c.front(skin.Hat, palette{'f': 0xf2f2f2ff, 'y': 0xf3b83cff},
		"     f  ",
		"    fyf ",
		"     f  ",
	)
	dungarees := palette{'d': denim, 'l': 0x3a5a86ff, 'b': 0xe8d070ff, 'w': 0xd9756cff}
	c.front(skin.Body, dungarees,
		" d w  d ",
		" d  w d ",
		"wd w  dw",
		" bddddb ",
		" dddddd ",
		" dlllld ",
		"ddlddldd",
		"ddlllldd",
		"dddddddd",
	)
	c.back(skin.Body, dungarees,
		" d w  d ",
		"  d  d  ",
		"w  dd  w",
		"   dd   ",
		"  d  d  ",
		" dddddd ",
		"dddddddd",
		"dddddddd",
		"dddddddd",
	)
	c.sides(skin.Body, dungarees,
		"    ",
		" w  ",
		"   w",
		"    ",
		"w   ",
		"  w ",
		"dddd",
		"dddd",
		"dddd",
	)
	return c.Sheet
}

// diver returns a slim sheet: a wet suit, and a mask with translucent glass.
func diver() skin.Sheet {
	const deep, suit, teal, yellow = 0x8f5a3cff, 0x22333fff, 0x2fa6a0ff, 0xf5c542ff
	c := newCanvas(skin.Slim, 64, 64)
	c.paintBase(figureColours{
		skin: deep, hair: 0x1c1412ff, shirt: suit, belt: yellow, sleeve: 10, hand: deep,
		trousers: suit, boot: teal,
	})
	c.front(skin.Head, palette{'h': 0x1c1412ff, 'w': 0xffffffff, 'e': 0x170c08ff, 'm': 0xb4584eff},
		"        ",
		"        ",
		"        ",
		"h      h",
		" we  ew ",
		" we  ew ",
		"        ",
		"   mm   ",
	)
	c.wrap(skin.Hat, 4, 5, yellow)
	c.front(skin.Hat, palette{'f': yellow, 'g': 0x8feaf020, 'h': 0xe8ffff60},
		"........",
		"........",
		"........",
		"ffffffff",
		"fhggghgf",
		"fggggggf",
		"fff..fff",
		"........",
	)
	c.front(skin.Body, palette{'t': teal, 'd': 0x1a2730ff},
		"tt    tt",
		" tt  tt ",
		"  tttt  ",
		"   dd   ",
		"   dd   ",
		"   dd   ",
	)
	c.back(skin.Jacket, palette{'y': yellow, 'd': 0xc99a2cff, 'k': 0x3b4650ff},
		"........",
		".kk..kk.",
		".yd..yd.",
		".yd..yd.",
		".yd..yd.",
		".yd..yd.",
		".yd..yd.",
		".yd..yd.",
		".kk..kk.",
	)
	c.wrapPair(sleeves, 8, 9, teal)
	c.wrapPair(arms, 2, 3, teal)
	c.wrapPair(legs, 3, 4, teal)
	return c.Sheet
}
