package paint

import "github.com/veneer-skins/veneer/shared/skin"

// outfit is what a figure is painted in before it gets a face and whatever else
// makes it itself.
type outfit struct {
	skin, hair     ink
	shirt, belt    ink
	sleeve         int // how many rows of the arms are shirt
	hand           ink
	trousers, boot ink
}

// The parts that come in pairs.
var (
	arms    = []skin.Part{skin.RightArm, skin.LeftArm}
	sleeves = []skin.Part{skin.RightSleeve, skin.LeftSleeve}
	legs    = []skin.Part{skin.RightLeg, skin.LeftLeg}
	pants   = []skin.Part{skin.RightPants, skin.LeftPants}
)

// dress paints every face of every part that lies under the overlays.
func (c canvas) dress(o outfit) {
	c.wrap(skin.Head, 0, 8, o.skin)
	c.wrap(skin.Head, 0, 4, o.hair)
	c.sides(skin.Head, inks{'h': o.hair},
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
	c.both(arms, 0, 12, o.hand)
	c.both(arms, 0, o.sleeve, o.shirt)
	c.both(legs, 0, 9, o.trousers)
	c.both(legs, 9, 12, o.boot)
}

// both wraps the same band round both parts of a pair.
func (c canvas) both(pair []skin.Part, from, to int, colour ink) {
	for _, part := range pair {
		c.wrap(part, from, to, colour)
	}
}
