// Package render turns the pixels of a texture into the pixels of a picture,
// and those into a file.
//
// What a picture shows follows the player of the game, standing: six limbs, each of
// them a box and a layer worn over it, which stands off 0.5 units around the head and
// 0.25 elsewhere, but ends where limbs adjoin. A unit is a texel of a classic sheet.
// Boxes are unfolded on the sheet as skin.Faces and skin.CapeFaces say. All that is
// seen through holes and through texels that are not opaque shows, the layers also
// from within. In poses in space the light belongs to the model: it leaves all of a
// colour on top, 90 % in front and behind, 70 % aside and 60 % beneath, also of a
// layer's inner faces. Faces that are drawn flat have the colours of the sheet.
//
// Poses in space are drawn by sweeps: lines from top to bottom of a picture, along
// which every border between texels is found exactly. What depends on the geometry of
// a pose, a size and a scale of the sheet alone is the same for all textures, worked
// out once and kept: mostly a plan which says what texels each pixel shows, so that
// painting a texture is a matter of looking up colours. Only large smooth pictures,
// see below, of sheets of high scale are swept for every texture.
//
// A pixel covers a square. Where texels are at least four pixels wide, a picture
// is crisp: a pixel shows what is at its middle, except at the outline, where it
// is as opaque as what lies in its square is on average, on a scale of eighteen, and
// has the colour of which most is seen there. In other pictures, smooth ones, each
// pixel is the average of its square. In a crisp picture only edges before nothing are
// anti-aliased. Where a limb or a layer ends before another, as the rim of a hat does
// before the body, the edge is as hard as between two texels: mixed colours there
// would look soft beside hard texels, and be many more than the picture has.
//
// Pictures are drawn in plain Go, because libvips costs a tenth of a millisecond
// for each operation however small the picture is. They are also written in plain
// Go, by writers that know what pictures of texels are like and are both quicker
// and more thorough than what libvips calls; libvips writes them only if it is asked
// to, and is then crossed into once a picture.
//
// The package starts no goroutines: whoever calls it bounds how much is drawn at
// once. Plans that are kept take up to 64 MiB. Besides, every picture that is made
// at the same time takes memory which is used again for the next ones: at the most,
// for previews of 1024 pixels, 12 MB to be drawn, 20 to 50 MB to be written as WebP
// and 12 to 40 MB as PNG; a tenth of that for usual sizes. A plan in the making
// takes up to 60 MB, mostly far less.
package render

import (
	"fmt"
	"time"

	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/skin"
)

// Pose is what of a texture a picture shows.
type Pose uint8

// The poses.
const (
	// Flat is the front of the head with the hat's laid over it, square, opaque and
	// without light. Where the side is a multiple of the face's texels they are squares
	// of one colour; elsewhere every pixel is the average of what it covers.
	Flat Pose = iota

	// Isometric is the head with its hat in true isometric projection, from above and
	// with the face on the viewer's right, square. The hat's box fills the height.
	Isometric

	// Preview is, of a skin, the whole figure in parallel projection from 25° above,
	// from the front on the left and from the back on the right, both turned by 45° so
	// that the player's left side shows in front. Both models are drawn to one scale.
	// Of a cape it is the outer face on the left and the inner one on the right, each
	// flat, without light, in the middle of a half that is 11/16 as wide as high. They
	// are 10/16 as wide as high and fill the height, or with a whole number of pixels
	// for every texel at least 90 % of it. A cape whose two faces are transparent shows
	// its elytra, both wings from behind on the left and from the front on the right.
	Preview
)

// String returns flat, isometric or preview.
func (p Pose) String() string {
	switch p {
	case Flat:
		return "flat"
	case Isometric:
		return "isometric"
	case Preview:
		return "preview"
	default:
		return "unknown"
	}
}

// Format is how a picture is written. Both formats keep every pixel.
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

// What pictures measure when nobody asks for a size, in pixels.
const (
	DefaultSize   = 96
	DefaultHeight = 400
)

// The sizes that are drawn, in pixels. A head's side is a multiple of sizeStep,
// as its face is eight texels wide; a preview's height is one of heightStep, as
// a cape is sixteen texels high.
const (
	minSize, maxSize, sizeStep       = 8, 512, 8
	minHeight, maxHeight, heightStep = 64, 1024, 16
)

// SizeOf returns the side of the head drawn for whoever asks for a size: the next
// multiple of 8, within bounds. At these a flat head shows all texels of a classic
// face equally large.
func SizeOf(requested int) int { return roundUp(requested, minSize, maxSize, sizeStep) }

// HeightOf returns the height of the preview drawn for whoever asks for a height: the
// next multiple of 16, within bounds. At these a classic cape fills the height.
func HeightOf(requested int) int { return roundUp(requested, minHeight, maxHeight, heightStep) }

// roundUp clamps a length and rounds it up to a multiple of step.
func roundUp(requested, lower, upper, step int) int {
	requested = min(max(requested, lower), upper)
	return (requested + step - 1) / step * step
}

// View says which picture of a texture is meant, apart from the texture itself.
// Views are comparable: the same View of the same texture is the same file, as
// long as the renderer's revision is the same.
type View struct {
	Pose Pose
	Type skin.Type
	// Size is the side of a head, a value of SizeOf, or the height of a preview,
	// a value of HeightOf, in pixels.
	Size   int
	Format Format
}

// Check returns the Invalid fault for which Draw or Render would refuse the
// view, and nil if they would not.
func (v View) Check() error {
	if v.Type != skin.Cape && !v.Type.IsSkin() {
		return fault.New(fault.Invalid, "A texture of no known type cannot be drawn.")
	}
	if v.Format > WebP {
		return fault.New(fault.Invalid, "Pictures are PNG or WebP.")
	}
	switch v.Pose {
	case Flat, Isometric:
		if v.Type == skin.Cape {
			return fault.New(fault.Invalid, "A cape has no face.")
		}
		if v.Size != SizeOf(v.Size) {
			return fault.Field("size", "The size is a multiple of %d from %d to %d pixels.", sizeStep, minSize, maxSize)
		}
	case Preview:
		if v.Size != HeightOf(v.Size) {
			return fault.Field("height", "The height is a multiple of %d from %d to %d pixels.", heightStep, minHeight, maxHeight)
		}
	default:
		return fault.New(fault.Invalid, "A texture has no such pose.")
	}
	return nil
}

// Extent returns the width and the height in pixels of the picture that Draw draws
// of the view. They are 0 if Check returns a fault.
func (v View) Extent() (width, height int) {
	switch {
	case v.Check() != nil:
		return 0, 0
	case v.Pose != Preview:
		return v.Size, v.Size
	case v.Type == skin.Cape:
		return capeWidth(v.Size), v.Size
	default:
		s := preview(v.Type, v.Size)
		return s.width, s.height
	}
}

// Picture is a drawn picture: Width × Height pixels in rows from the top, four
// bytes a pixel (red, green, blue, alpha; not premultiplied), the stride being
// exactly 4 × Width. A pixel whose alpha is 0 is black.
type Picture struct {
	Width, Height int
	Pix           []byte
}

// newPicture returns a picture in the memory of pixels if that is enough, and then
// with whatever is in it.
func newPicture(width, height int, pixels []byte) Picture {
	size := 4 * width * height
	if cap(pixels) < size {
		pixels = make([]byte, size)
	}
	return Picture{Width: width, Height: height, Pix: pixels[:size]}
}

// Draw draws a view of a sheet: a skin of 64k × 64k or 64k × 32k texels, or a
// cape of 64k × 32k, k being its scale, from 1 to skin.MaxScale. Skins are worn as
// Sheet.Normalised says, so that the base is opaque; the sheet itself is left as it
// is. A view that cannot be drawn is an Invalid fault; a sheet of another shape is a
// plain error, as none such should ever have been stored.
//
// Previews of skins are drawn no higher than 720 pixels from scale 9 on, 384 from 13 on
// and 240 from 15 on, as higher ones would take too long.
func (r *Renderer) Draw(sheet skin.Sheet, view View) (Picture, error) {
	return r.draw(sheet, view, nil)
}

// draw draws in the memory of pixels if that is enough.
func (r *Renderer) draw(sheet skin.Sheet, view View, pixels []byte) (Picture, error) {
	if err := view.Check(); err != nil {
		return Picture{}, err
	}
	if err := checkSheet(sheet, view.Type); err != nil {
		return Picture{}, fmt.Errorf("draw %s of %s: %w", view.Pose, view.Type, err)
	}
	if view.Type == skin.Cape {
		return drawCape(sheet, view.Size, pixels), nil
	}
	if sheet.Height < sheet.Width {
		// Of all that normalising does, square sheets need only an opaque base, and
		// whoever reads a texel of the base takes it for opaque.
		sheet = sheet.Normalised(view.Type)
	}
	if view.Pose == Flat {
		return drawFlat(sheet, view.Size, pixels), nil
	}
	return r.drawFigure(sheet, view.capped(sheet.Scale()), pixels), nil
}

// drawFigure draws the poses in which the model stands in space.
func (r *Renderer) drawFigure(sheet skin.Sheet, view View, pixels []byte) Picture {
	samples := r.sampleMaps.get(mapKeyOf(view, sheet.Scale()))
	scratch, ok := r.painters.Get().(*painter)
	if !ok {
		scratch = new(painter)
	}
	defer r.painters.Put(scratch)

	picture := newPicture(samples.width, samples.height, pixels)
	samples.paint(picture.Pix, sheet, scratch)
	return picture
}

// checkSheet makes sure that every texel the drawing looks up is there.
func checkSheet(sheet skin.Sheet, as skin.Type) error {
	w, h := sheet.Width, sheet.Height
	shaped := w > 0 && w <= 64*skin.MaxScale && w%64 == 0 && (2*h == w || as.IsSkin() && h == w)
	if !shaped || len(sheet.Pix) != 4*w*h {
		return fmt.Errorf("a sheet of %d × %d texels in %d bytes is none", w, h, len(sheet.Pix))
	}
	return nil
}

// Timing is how long it took to draw a picture and to encode it.
type Timing struct{ Drawing, Encoding time.Duration }

// Render draws a view of a sheet, encodes it in the view's format, and returns how long
// that took. It fails as Draw does, and as Encode does.
func (r *Renderer) Render(sheet skin.Sheet, view View) (file []byte, timing Timing, err error) {
	// Only the file leaves, so the next picture can be drawn over this one.
	pixels, ok := r.pixels.Get().(*[]byte)
	if !ok {
		pixels = new([]byte)
	}
	defer r.pixels.Put(pixels)

	began := time.Now()
	picture, err := r.draw(sheet, view, *pixels)
	if err != nil {
		return nil, timing, err
	}
	*pixels = picture.Pix
	drawn := time.Now()
	file, err = r.Encode(picture, view.Format)
	return file, Timing{Drawing: drawn.Sub(began), Encoding: time.Since(drawn)}, err
}
