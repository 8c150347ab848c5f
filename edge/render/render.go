// Package render draws pictures of skins and capes and encodes them: a skin sheet becomes pixels, and
// those become a PNG or WebP file. It uses no cgo.
//
// Package model has what is drawn: body parts, poses, what is worn, and sides. Package raster has how: it
// projects a scene of these and paints it. This package has the modes, which are what a picture can show.
// Each is a row of one table, modes, and has a geometry: in space, a scene; otherwise what is copied from
// the sheet. Flat modes and the legacy sheet have the colours of the sheet, without light.
//
// What depends only on the geometry of a mode, a size and the scale of the sheet is computed once and
// cached, mostly as a raster.SampleMap. Figures in another attitude or pose than the default ones are
// scanned anew for every texture: there are 119 of these for each size, and their maps would displace the
// common ones.
//
// Drawing and encoding are plain Go: libvips costs 0.1 ms for each operation on however small a
// picture, and encoders made for pictures of texels are faster and write smaller files. A Reducer
// can be passed in for exact sizes; package vips has one that calls libvips.
//
// The package starts no goroutines; the caller bounds how many pictures are drawn at once.
// Cached sample maps take up to 64 MiB. Each concurrent picture takes reusable scratch memory
// besides: at most, for previews of 1024 pixels, 12 MB to be drawn, 20 to 50 MB to be encoded
// as WebP and 12 to 40 MB as PNG; a tenth of that for usual sizes. Building a sample map takes
// up to 60 MB, mostly far less.
package render

import (
	"cmp"

	"github.com/veneer-skins/veneer/edge/render/model"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/skin"
)

// Format is a file format. Both keep every pixel.
type Format uint8

// The formats.
const (
	PNG Format = iota
	WebP
)

// String returns png or webp.
func (f Format) String() string {
	switch f {
	case PNG:
		return "png"
	case WebP:
		return "webp"
	default:
		return "unknown"
	}
}

// Default sizes, in pixels.
const (
	DefaultSize   = 96
	DefaultHeight = 400
)

// View is which picture of a texture is meant. Views are comparable: the same View of the same
// texture is the same file, as long as the renderer's revision is the same.
type View struct {
	Mode       Mode
	Type       skin.Type
	Background Background // 0, unless Mode.HasBackground
	Size       int        // in pixels, a value of Mode.SizeOf
	Format     Format

	Attitude Attitude        // a value of Mode.Attitude, if Mode.HasAttitudes
	Omit     model.Omissions // of Mode.Omissible
	Pose     model.Pose      // Stand, unless Mode.HasPoses
	Wear     model.Wear      // WearNothing, unless Mode.ShowsWorn
	Exact    int             // of Mode.ExactOf: the picture is reduced to this side or height; 0: it is not
	Width    int             // of Mode.WidthOf, beside Exact or Size; 0: the usual one of the mode
}

// Check returns the Invalid fault that Draw or Render would return for the view, or nil.
func (v View) Check() error {
	if v.Type != skin.Cape && !v.Type.IsSkin() {
		return fault.New(fault.Invalid, "A texture of no known type cannot be drawn.")
	}
	if v.Format > WebP {
		return fault.New(fault.Invalid, "Pictures are PNG or WebP.")
	}
	if v.Mode >= ModeCount {
		return fault.New(fault.Invalid, "A texture has no such mode.")
	}
	if v.Type == skin.Cape && !v.Mode.ShowsCapes() {
		return fault.New(fault.Invalid, "A cape has no face.")
	}
	if v.Attitude >= attitudeCount || v.Attitude != 0 && !v.Mode.HasAttitudes() {
		return fault.New(fault.Invalid, "This picture cannot be turned like that.")
	}
	if v.Omit&^v.Mode.Omissible() != 0 {
		return fault.New(fault.Invalid, "This picture has nothing of that kind to leave out.")
	}
	if v.Pose >= model.PoseCount || v.Pose != model.Stand && !v.Mode.HasPoses() {
		return fault.New(fault.Invalid, "This picture has no such pose.")
	}
	if v.Wear >= model.WearCount || v.Wear != model.WearNothing && !v.Mode.ShowsWorn() {
		return fault.New(fault.Invalid, "This picture cannot show such a thing on a player's back.")
	}
	if r := v.Mode.row().sizes; v.Size != r.round(v.Size) {
		return fault.Field("size", "The size is a multiple of %d from %d to %d pixels.", r.step, r.min, r.max)
	}
	if !v.checkExact() || v.Width != 0 && v.Width != v.Mode.WidthOf(v.Width, v.ShownSize()) {
		return fault.Field("size", "This picture has no such size.")
	}
	return v.checkBackground()
}

func (v View) checkBackground() error {
	if v.Background != 0 && (v.Background>>24 != 1 || !v.Mode.HasBackground()) {
		return fault.New(fault.Invalid, "This picture has no such background.")
	}
	return nil
}

// Extent returns the width and height in pixels of the picture that Draw draws of the view, or
// 0, 0 if Check returns a fault.
func (v View) Extent() (width, height int) {
	if v.Check() != nil {
		return 0, 0
	}
	return v.widthAt(v.ShownSize()), v.ShownSize()
}

// ShownSize returns the side or the height of the picture.
func (v View) ShownSize() int { return cmp.Or(v.Exact, v.Size) }

// widthAt returns the width of the picture when it is drawn with a side or a height.
func (v View) widthAt(size int) int {
	return cmp.Or(v.scaledWidth(size), v.Mode.row().width(v.Type, size))
}

// scaledWidth returns the width that Width is when the picture is drawn with a height.
func (v View) scaledWidth(height int) int {
	if v.Width == 0 {
		return 0
	}
	return (v.Width*height + v.ShownSize()/2) / v.ShownSize()
}

// drawn returns the view of the picture that is reduced to the exact size.
func (v View) drawn() View {
	v.Width, v.Exact = v.scaledWidth(v.Size), 0
	return v
}
