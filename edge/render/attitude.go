package render

import "math"

// Tilt is the elevation of the camera above the horizon.
type Tilt uint8

// The tilts.
const (
	TiltIso   Tilt = iota // 35.264°, at which all three axes are equally foreshortened
	Tilt25                // 25°
	TiltLevel             // 0°

	tiltCount = iota
)

// isometricPitch is the elevation of TiltIso.
var isometricPitch = math.Atan(1 / math.Sqrt2)

// pitch returns the elevation in radians.
func (t Tilt) pitch() float64 {
	switch t {
	case TiltIso:
		return isometricPitch
	case Tilt25:
		return previewPitch
	case TiltLevel:
	}
	return 0
}

// TurnCount is how many turns there are.
const TurnCount = 8

// Attitude is how a figure is turned, and from which elevation it is seen. It counts from the
// attitude that its mode has by default, which is 0, so that equal pictures have equal views.
type Attitude uint8

const attitudeCount = TurnCount * tiltCount

// Attitude returns the attitude of a turn and a tilt. The turn, from 0 to 7, is in eighths: 0 shows
// the player from the front, 1 the front on the viewer's right, 4 the back and 7 the front on the
// viewer's left.
func (p Mode) Attitude(turn int, tilt Tilt) Attitude {
	ownTurn, ownTilt := p.DefaultAttitude()
	turned, tilted := turn+TurnCount-ownTurn, int(tilt)+tiltCount-int(ownTilt)
	return Attitude(turned%TurnCount*tiltCount + tilted%tiltCount)
}

// turnAndTilt is the inverse of Mode.Attitude.
func (a Attitude) turnAndTilt(p Mode) (turn int, tilt Tilt) {
	turn, tilt = p.DefaultAttitude()
	return (turn + int(a)/tiltCount) % TurnCount, (tilt + Tilt(a)%tiltCount) % tiltCount
}

// DefaultAttitude returns the turn and the tilt of the attitude 0.
func (p Mode) DefaultAttitude() (turn int, tilt Tilt) {
	switch p {
	case Isometric:
		return 1, TiltIso
	case Bust, Body:
		return 7, Tilt25
	case Flat, Preview, LegacySheet, Front, Back, Left, Right:
	}
	return 0, TiltIso
}

// HasAttitudes reports whether the mode has other attitudes than 0.
func (p Mode) HasAttitudes() bool {
	switch p {
	case Isometric, Bust, Body:
		return true
	case Flat, Preview, LegacySheet, Front, Back, Left, Right:
	}
	return false
}

// newTurnedCamera returns the camera of a turn and a tilt.
func newTurnedCamera(turn int, tilt Tilt) camera {
	const eighth = 45
	return newCamera(float64(eighth*turn), tilt.pitch())
}

// Omissions are what a picture leaves out, a bit set.
type Omissions uint8

// The omissions.
const (
	OmitHat    Omissions = 1 << iota // the layer over the head
	OmitLayers                       // all other layers
	OmitLight                        // every face has the colours of the sheet
)

// Omissible returns what pictures in the mode can leave out.
func (p Mode) Omissible() Omissions {
	switch p {
	case Flat:
		return OmitHat
	case Isometric:
		return OmitHat | OmitLight
	case Bust, Body:
		return OmitHat | OmitLayers | OmitLight
	case Front, Back, Left, Right:
		return OmitHat | OmitLayers
	case Preview, LegacySheet:
	}
	return 0
}

// leavesOut reports whether the layer of a body part is left out.
func (o Omissions) leavesOut(b bodyPart) bool {
	if b.isHead() {
		return o&OmitHat != 0
	}
	return o&OmitLayers != 0
}
