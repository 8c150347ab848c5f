package render

import (
	"math"

	"github.com/veneer-skins/veneer/edge/render/raster"
)

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
func (m Mode) Attitude(turn int, tilt Tilt) Attitude {
	ownTurn, ownTilt := m.DefaultAttitude()
	turned, tilted := turn+TurnCount-ownTurn, int(tilt)+tiltCount-int(ownTilt)
	return Attitude(turned%TurnCount*tiltCount + tilted%tiltCount)
}

// turnAndTilt is the inverse of Mode.Attitude.
func (a Attitude) turnAndTilt(m Mode) (turn int, tilt Tilt) {
	turn, tilt = m.DefaultAttitude()
	return (turn + int(a)/tiltCount) % TurnCount, (tilt + Tilt(a)%tiltCount) % tiltCount
}

// newTurnedCamera returns the camera of a turn and a tilt.
func newTurnedCamera(turn int, tilt Tilt) raster.Camera {
	const eighth = 45
	return raster.NewCamera(float64(eighth*turn), tilt.pitch())
}
