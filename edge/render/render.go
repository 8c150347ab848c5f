// Package render draws pictures of skins and capes and encodes them: a skin sheet becomes
// pixels, and those become a PNG or WebP file. It uses no cgo.
//
// Geometry. A picture shows the player of the game, standing or in another Pose: six body parts, each
// a box (the base) and a slightly larger one over it (the layer), which stands off 0.5 units around
// the head and 0.25 elsewhere and is clipped where body parts adjoin. Body parts that a pose moves
// apart go through each other instead, and so does what a player wears: a cape is one box, and elytra
// are two, the right one the mirror image of the left. A unit is a texel of a classic sheet. Boxes are
// unfolded on the sheet as skin.Faces, skin.CapeFaces and skin.ElytraFaces say. What lies behind holes and translucent texels shows through, including the inner sides of layers.
// In modes in space the light is fixed to each box, however it is turned: it leaves 100 % of a colour
// on top, 90 % in front and behind, 70 % at the sides and 60 % beneath, on inner sides too, so that a
// texel has the same colour in every pose. Flat modes and the
// legacy sheet have the colours of the sheet.
//
// Rasterisation. Figures are scanned along vertical lines, on which every border between texels
// is found exactly (columnScan). What depends only on the geometry of a mode, a size and the
// scale of the sheet is the same for all textures, so it is computed once and cached: mostly as
// a sampleMap, which says what texels each pixel shows, so that painting a texture is a look-up
// of colours. Large smooth pictures of sheets of high scale are scanned anew for every texture
// (scannedFigures), and so are figures in another attitude or pose than the default ones: there are
// 119 of these for each size, of which maps would displace the common ones.
//
// Boxes that are moved alike are a group. In a group faces are cut until one of two is nearer wherever
// they overlap. Faces of different groups cross: as how near a face is to the viewer is an affine
// function of the picture, two cross at most once on a line, and are cut there (columnScan.split).
// Borders between texels of rotated boxes are slanted across and down, which takes twice as many lines
// for the same precision.
//
// Anti-aliasing. A pixel covers a square. Where texels are at least four pixels wide, a picture
// is crisp: a pixel shows what is at its centre. Only at the outline, before nothing, is it
// mixed: its alpha is the average over its square, in eighteen steps, and its colour the one
// with the greatest share. Where a body part or a layer ends before another one, like the rim
// of a hat before the body, the edge stays as hard as between two texels: mixed colours would
// look soft beside hard texels and enlarge the palette. In all other pictures, the smooth ones,
// each pixel is the average of its square.
//
// Drawing and the native encoders are plain Go: libvips costs 0.1 ms for each operation on
// however small a picture, and encoders made for pictures of texels are faster and write
// smaller files. Another Encoder can be passed in; package vips has one that calls libvips once
// a picture.
//
// The package starts no goroutines; the caller bounds how many pictures are drawn at once.
// Cached sample maps take up to 64 MiB. Each concurrent picture takes reusable scratch memory
// besides: at most, for previews of 1024 pixels, 12 MB to be drawn, 20 to 50 MB to be encoded
// as WebP and 12 to 40 MB as PNG; a tenth of that for usual sizes. Building a sample map takes
// up to 60 MB, mostly far less.
package render

import (
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
	Mode   Mode
	Type   skin.Type
	Size   int // in pixels, a value of Mode.SizeOf
	Format Format

	Attitude Attitude  // a value of Mode.Attitude, if Mode.HasAttitudes
	Omit     Omissions // of Mode.Omissible
	Pose     Pose      // Stand, unless Mode.HasPoses
	Wear     Wear      // WearNothing, unless Mode.ShowsWorn
	Exact    int       // of Mode.ExactOf: the picture is reduced to this side or height; 0: it is not
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
	if v.Pose >= PoseCount || v.Pose != Stand && !v.Mode.HasPoses() {
		return fault.New(fault.Invalid, "This picture has no such pose.")
	}
	if v.Wear >= wearCount || v.Wear != WearNothing && !v.Mode.ShowsWorn() {
		return fault.New(fault.Invalid, "This picture cannot show such a thing on a player's back.")
	}
	if r := v.Mode.sizes(); v.Size != r.round(v.Size) {
		return fault.Field("size", "The size is a multiple of %d from %d to %d pixels.", r.step, r.min, r.max)
	}
	if !v.checkExact() {
		return fault.Field("size", "This picture has no such size.")
	}
	return nil
}

// Extent returns the width and height in pixels of the picture that Draw draws of the view, or
// 0, 0 if Check returns a fault.
func (v View) Extent() (width, height int) {
	if v.Check() != nil {
		return 0, 0
	}
	if v.Exact != 0 {
		return v.Mode.reducedExtent(v.Exact)
	}
	return v.Mode.extent(v.Type, v.Size)
}

// Picture is a drawn picture: Width × Height pixels in rows from the top, four bytes a pixel
// (red, green, blue, alpha; not premultiplied), the stride being exactly 4 × Width. A pixel
// with alpha 0 is black.
type Picture struct {
	Width, Height int
	Pix           []byte
}

// newPicture returns a picture in the memory of pixels, with its old content, if that is large
// enough; otherwise in new memory.
func newPicture(width, height int, pixels []byte) Picture {
	size := 4 * width * height
	if cap(pixels) < size {
		pixels = make([]byte, size)
	}
	return Picture{Width: width, Height: height, Pix: pixels[:size]}
}
