package baseline

import (
	"fmt"

	"github.com/veneer-skins/veneer/shared/skin"
)

// View is a picture of a skin, in the terms of edge/render: Mode is flat, isometric or preview;
// Size is in pixels; Format is png or webp.
type View struct {
	Mode   string
	Size   int
	Format string
}

// minFlatSize and maxFlatSize are the bounds of the size of StartSharp and StartImagePNG, in
// pixels.
const minFlatSize, maxFlatSize = 8, 512

// Target returns the request target of a view of a skin for StartSharp and StartImagePNG.
func (v View) Target(hash skin.Hash) string {
	target := fmt.Sprintf("/%s/%s?size=%d", v.Mode, hash, v.Size)
	if v.Format == "webp" {
		target += "&webp"
	}
	return target
}

// flatOnly returns why a server that renders only flat faces cannot render a view; empty if it can.
func flatOnly(v View) string {
	switch {
	case v.Mode != "flat":
		return "it cuts rectangles out of a picture and cannot draw anything in space"
	case v.Size < minFlatSize || v.Size > maxFlatSize:
		return fmt.Sprintf("it draws sides of %d to %d pixels", minFlatSize, maxFlatSize)
	default:
		return ""
	}
}
