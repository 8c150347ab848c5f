package baseline

import (
	"fmt"

	"github.com/veneer-skins/veneer/shared/skin"
)

// View is a picture of a skin, in the words of edge/render: Pose is flat, isometric or
// preview; Size is in pixels; Format is png or webp.
type View struct {
	Pose   string
	Size   int
	Format string
}

// minFlatSize and maxFlatSize are the least and the largest side of what StartSharp and StartImagePNG
// draw, in pixels.
const minFlatSize, maxFlatSize = 8, 512

// Target returns what StartSharp and StartImagePNG are asked for to draw a view of the
// skin with a hash.
func (v View) Target(hash skin.Hash) string {
	target := fmt.Sprintf("/%s/%s?size=%d", v.Pose, hash, v.Size)
	if v.Format == "webp" {
		target += "&webp"
	}
	return target
}

// flatOnly says why a server that knows the front of the head only cannot draw a view.
func flatOnly(v View) string {
	switch {
	case v.Pose != "flat":
		return "it cuts rectangles out of a picture and cannot draw anything in space"
	case v.Size < minFlatSize || v.Size > maxFlatSize:
		return fmt.Sprintf("it draws sides of %d to %d pixels", minFlatSize, maxFlatSize)
	default:
		return ""
	}
}
