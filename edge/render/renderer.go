package render

import (
	"fmt"
	"sync"
	"time"

	"github.com/veneer-skins/veneer/shared/skin"
)

// Renderer draws and encodes pictures. It is safe for concurrent use. New returns one; the zero
// Renderer is not ready.
type Renderer struct {
	encoder       Encoder
	reducer       Reducer // nil: there are no exact sizes
	revision      string
	exactRevision string // of pictures of exact sizes
	sampleMaps    *mapCache
	painters      sync.Pool // of *painter
	pixels        sync.Pool // of *[]byte, the memory of pictures that only become files
}

// New returns a Renderer that encodes with an encoder, and reduces pictures to exact sizes with a reducer.
// Without one, which is nil, such views cannot be drawn.
func New(encoder Encoder, reducer Reducer) *Renderer {
	r := &Renderer{
		encoder:    encoder,
		reducer:    reducer,
		revision:   digestOf("%d %s %s", revision, platform, encoder.Revision()),
		sampleMaps: newMapCache(mapCacheBytes),
	}
	if reducer != nil {
		r.exactRevision = digestOf("%s %s", r.revision, reducer.Revision())
	}
	return r
}

// Revision returns a token of 12 lower-case hexadecimal digits. It differs whenever the same view
// of the same texture could be another file: with the constant revision, the processor
// architecture, and the encoder's revision.
func (r *Renderer) Revision() string { return r.revision }

// CanWebP reports whether pictures can be encoded as WebP.
func (r *Renderer) CanWebP() bool { return r.encoder.Supports(WebP) }

// Draw draws a view of a sheet: a skin of 64k × 64k or 64k × 32k texels, or a cape of 64k ×
// 32k, k being its scale, from 1 to skin.MaxScale. Skins are drawn as Sheet.Normalised says, so
// that the base is opaque; the sheet itself is not modified. For a view that cannot be drawn
// the error is an Invalid fault. A sheet of another shape is a plain error, as none should have
// been stored.
//
// Worn is the sheet of the cape or elytra that the figure wears, of any scale, and the zero Sheet if
// View.Wear is WearNothing.
//
// Previews of skins are drawn no higher than 720 pixels from scale 9 on, 384 from 13 on and 240
// from 15 on, and bodies no higher than 960 from 15 on. Bodies and busts in another pose than Stand, or
// with something worn, are drawn no higher than 480 pixels if the finer sheet is of scale 9 or more, 288
// from 13 on and 208 from 15 on. For exact sizes these bounds are a fifth less from scale 8 on. Higher
// ones would take too long.
func (r *Renderer) Draw(sheet, worn skin.Sheet, view View) (Picture, error) {
	picture, err := r.draw(sheet, worn, view, nil)
	if err != nil {
		return Picture{}, err
	}
	return r.reduce(picture, view)
}

// draw draws in the memory of pixels if that is large enough.
func (r *Renderer) draw(sheet, worn skin.Sheet, view View, pixels []byte) (Picture, error) {
	if err := view.Check(); err != nil {
		return Picture{}, err
	}
	if err := checkSheet(sheet, view.Type); err != nil {
		return Picture{}, fmt.Errorf("draw %s of %s: %w", view.Mode, view.Type, err)
	}
	switch view.Wear {
	case WearNothing:
		worn = skin.Sheet{}
	case WearCape, WearElytra:
		if err := checkSheet(worn, skin.Cape); err != nil {
			return Picture{}, fmt.Errorf("draw %s of %s with a cape: %w", view.Mode, view.Type, err)
		}
		view.Wear = view.Wear.of(worn)
	}
	if view.Type == skin.Cape {
		return drawCape(sheet, view.Size, pixels), nil
	}
	model := view.Type
	if sheet.Height < sheet.Width {
		model = skin.Classic // the only one for which such sheets are made
		// Of all that Normalised does, square sheets need only an opaque base, and all
		// of texel.colour, faceWithHat and drawLegacy take the base for opaque.
		sheet = sheet.Normalised(view.Type)
	}
	switch view.Mode {
	case Isometric, Preview, Bust, Body:
		return r.drawFigure(sheet, worn, view, pixels), nil
	case LegacySheet:
		return drawLegacy(sheet, model, pixels), nil
	case Front, Back, Left, Right:
		return drawSide(sheet, worn, view, pixels), nil
	case Flat:
	}
	return drawFlat(sheet, view, pixels), nil
}

// drawFigure draws the modes of the model in space.
func (r *Renderer) drawFigure(sheet, worn skin.Sheet, view View, pixels []byte) Picture {
	k := scales{sheet.Scale(), worn.Scale()}
	samples := r.samples(view.capped(k), k)
	scratch, ok := r.painters.Get().(*painter)
	if !ok {
		scratch = new(painter)
	}
	defer r.painters.Put(scratch)

	picture := newPicture(samples.width, samples.height, pixels)
	samples.paint(picture.Pix, sheet, worn, view, scratch)
	return picture
}

// samples returns the sample map of a view for sheets of scales.
func (r *Renderer) samples(view View, k scales) *sampleMap {
	if view.isMapCached() {
		return r.sampleMaps.get(mapKeyOf(view, k))
	}
	return newSweptMap(view.scene(), k)
}

// checkSheet makes sure that every texel that drawing looks up exists.
func checkSheet(sheet skin.Sheet, as skin.Type) error {
	w, h := sheet.Width, sheet.Height
	shaped := w > 0 && w <= 64*skin.MaxScale && w%64 == 0 && (2*h == w || as.IsSkin() && h == w)
	if !shaped || len(sheet.Pix) != 4*w*h {
		return fmt.Errorf("a sheet cannot have %d × %d texels in %d bytes", w, h, len(sheet.Pix))
	}
	return nil
}

// Timing is how long it took to draw a picture and to encode it.
type Timing struct{ Drawing, Encoding time.Duration }

// Render draws a view of a sheet, and of a worn one, and encodes it in the view's format. It fails as Draw and
// Encode do.
func (r *Renderer) Render(sheet, worn skin.Sheet, view View) (file []byte, timing Timing, err error) {
	// Only the file is returned, so the next picture can be drawn in the same memory.
	pixels, ok := r.pixels.Get().(*[]byte)
	if !ok {
		pixels = new([]byte)
	}
	defer r.pixels.Put(pixels)

	began := time.Now()
	picture, err := r.draw(sheet, worn, view, *pixels)
	if err != nil {
		return nil, timing, err
	}
	*pixels = picture.Pix
	if picture, err = r.reduce(picture, view); err != nil {
		return nil, timing, err
	}
	drawn := time.Now()
	file, err = r.Encode(picture, view.Format)
	return file, Timing{Drawing: drawn.Sub(began), Encoding: time.Since(drawn)}, err
}

// Encode encodes a picture. The file contains nothing but pixels, and every pixel can be decoded
// unchanged, except for the colour of transparent ones.
func (r *Renderer) Encode(picture Picture, format Format) ([]byte, error) {
	file, err := r.encoder.Encode(picture, format)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", format, err)
	}
	return file, nil
}
