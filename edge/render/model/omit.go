package model

// Omissions are what a picture leaves out, a bit set.
type Omissions uint8

// The omissions.
const (
	OmitHat    Omissions = 1 << iota // the layer over the head
	OmitLayers                       // all other layers
	OmitLight                        // every face has the colours of the sheet
)

// LeavesOut reports whether the layer of a body part is left out.
func (o Omissions) LeavesOut(b BodyPart) bool {
	if b.isHead() {
		return o&OmitHat != 0
	}
	return o&OmitLayers != 0
}
