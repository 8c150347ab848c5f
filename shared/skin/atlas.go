package skin

// Rect is a rectangle of texels: its top left corner and its size.
type Rect struct{ X, Y, W, H int }

// Scaled returns the rectangle on a sheet of scale k.
func (r Rect) Scaled(k int) Rect { return Rect{X: r.X * k, Y: r.Y * k, W: r.W * k, H: r.H * k} }

// Box has the rectangles of the six faces of a box on a sheet. Right and left are the
// player's own. Every side is stored as seen from outside, upright. The top is seen from
// above with the player's back up. The bottom is seen in the same direction, through the box,
// so that its first row is at the back.
type Box struct{ Top, Bottom, Right, Front, Left, Back Rect }

// Scaled returns the faces on a sheet of scale k.
func (b Box) Scaled(k int) Box {
	return Box{
		Top: b.Top.Scaled(k), Bottom: b.Bottom.Scaled(k),
		Right: b.Right.Scaled(k), Front: b.Front.Scaled(k), Left: b.Left.Scaled(k), Back: b.Back.Scaled(k),
	}
}

// faces returns the six faces in a fixed order.
func (b Box) faces() [6]Rect { return [6]Rect{b.Top, b.Bottom, b.Right, b.Front, b.Left, b.Back} }

// unfold returns the layout of a box of w × h × d units at x, y in the game's order: top and
// bottom in the first row, right, front, left and back in the second.
func unfold(x, y, w, h, d int) Box {
	return Box{
		Top:    Rect{X: x + d, Y: y, W: w, H: d},
		Bottom: Rect{X: x + d + w, Y: y, W: w, H: d},
		Right:  Rect{X: x, Y: y + d, W: d, H: h},
		Front:  Rect{X: x + d, Y: y + d, W: w, H: h},
		Left:   Rect{X: x + d + w, Y: y + d, W: d, H: h},
		Back:   Rect{X: x + d + w + d, Y: y + d, W: w, H: h},
	}
}

// Part is a box of the player model. Right and left are the player's own.
type Part uint8

// The parts of the player model: six limbs, each with the layer over it.
const (
	Head Part = iota
	Hat
	Body
	Jacket
	RightArm
	RightSleeve
	LeftArm
	LeftSleeve
	RightLeg
	RightPants
	LeftLeg
	LeftPants
)

// Faces returns the faces of a part on a classic 64 × 64 sheet. Only arms and sleeves depend
// on the model: arms of Slim are three units wide.
func Faces(part Part, model Type) Box {
	arm := 4
	if model == Slim {
		arm = 3
	}
	switch part {
	case Head:
		return unfold(0, 0, 8, 8, 8)
	case Hat:
		return unfold(32, 0, 8, 8, 8)
	case Body:
		return unfold(16, 16, 8, 12, 4)
	case Jacket:
		return unfold(16, 32, 8, 12, 4)
	case RightArm:
		return unfold(40, 16, arm, 12, 4)
	case RightSleeve:
		return unfold(40, 32, arm, 12, 4)
	case LeftArm:
		return unfold(32, 48, arm, 12, 4)
	case LeftSleeve:
		return unfold(48, 48, arm, 12, 4)
	case RightLeg:
		return unfold(0, 16, 4, 12, 4)
	case RightPants:
		return unfold(0, 32, 4, 12, 4)
	case LeftLeg:
		return unfold(16, 48, 4, 12, 4)
	case LeftPants:
		return unfold(0, 48, 4, 12, 4)
	default:
		return Box{}
	}
}

// CapeFaces returns the faces of the cape on a 64 × 32 sheet. Front is the outer face, which
// is visible from behind the player, and Back the inner one.
func CapeFaces() Box { return unfold(0, 0, 10, 16, 1) }

// ElytraFaces returns the faces of the elytra's left wing on the sheet of a cape; the right
// wing mirrors it. Back is the outer face, which is visible from behind the player, and Front
// the inner one: the game turns a cape round, but not a wing.
func ElytraFaces() Box { return unfold(22, 0, 10, 20, 2) }
