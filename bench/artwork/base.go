package main

import "github.com/veneer-skins/veneer/shared/skin"

// figureColours are the colours of a figure's base layer.
type figureColours struct {
	skin, hair     rgba
	shirt, belt    rgba
	sleeve         int // number of rows of the arms in the shirt's colour
	hand           rgba
	trousers, boot rgba
}

// The parts that come in pairs.
var (
	arms    = []skin.Part{skin.RightArm, skin.LeftArm}
	sleeves = []skin.Part{skin.RightSleeve, skin.LeftSleeve}
	legs    = []skin.Part{skin.RightLeg, skin.LeftLeg}
	pants   = []skin.Part{skin.RightPants, skin.LeftPants}
)

// paintBase paints every face of the base layer.
func (c canvas) paintBase(o figureColours) {
	c.wrap(skin.Head, 0, 8, o.skin)
	c.wrap(skin.Head, 0, 4, o.hair)
	c.sides(skin.Head, palette{'h': o.hair},
		"        ",
		"        ",
		"        ",
		"        ",
		"hhhh    ",
		"hhh     ",
		"hhh     ",
	)
	c.fill(skin.Faces(skin.Head, c.model).Back, o.hair)
	c.wrap(skin.Body, 0, 9, o.shirt)
	c.wrap(skin.Body, 9, 10, o.belt)
	c.wrap(skin.Body, 10, 12, o.trousers)
	c.wrapPair(arms, 0, 12, o.hand)
	c.wrapPair(arms, 0, o.sleeve, o.shirt)
	c.wrapPair(legs, 0, 9, o.trousers)
	c.wrapPair(legs, 9, 12, o.boot)
}

// wrapPair paints the same band around both parts of a pair.
func (c canvas) wrapPair(pair []skin.Part, from, to int, colour rgba) {
	for _, part := range pair {
		c.wrap(part, from, to, colour)
	}
}
