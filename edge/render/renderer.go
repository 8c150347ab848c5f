package render

import (
	"fmt"
	"sync"
	"time"

	"github.com/veneer-skins/veneer/edge/render/model"
	"github.com/veneer-skins/veneer/edge/render/raster"
	"github.com/veneer-skins/veneer/shared/skin"
)

// Renderer draws and encodes pictures. It is safe for concurrent use. New returns one; the zero
// Renderer is not ready.
type Renderer struct {
	reducer       Reducer // nil: there are no exact sizes
	revision      string
	exactRevision string // of pictures of exact sizes
	sampleMaps    *raster.MapCache[mapKey]
	painters      sync.Pool // of *painter
	encoders      sync.Pool // of *encoder
	pixels        sync.Pool // of *[]byte, the memory of pictures that only become files
}

// New returns a Renderer that reduces pictures to exact sizes with a reducer. Without one, which is nil,
// such views cannot be drawn.
func New(reducer Reducer) *Renderer {
	r := &Renderer{
		reducer:    reducer,
		revision:   digestOf("%d %s native", revision, raster.Platform),
		sampleMaps: raster.NewMapCache[mapKey](mapCacheBytes),
	}
	if reducer != nil {
		r.exactRevision = digestOf("%s %s", r.revision, reducer.Revision())
	}
	return r
}

// Revision returns a token of 12 lower-case hexadecimal digits. It differs whenever the same view
// of the same texture could be another file: with the constant revision and the processor
// architecture.
func (r *Renderer) Revision() string { return r.revision }

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
// ones would take too long. A card has one size; it shows finer sheets as sheets of at most scale 4, of
// scale 3 from 9 on, and of 2 from 13 on.
func (r *Renderer) Draw(sheet, worn skin.Sheet, view View) (raster.Picture, error) {
	picture, err := r.draw(sheet, worn, view, nil)
	if err != nil {
		return raster.Picture{}, err
	}
	return r.reduce(picture, view)
}

// draw draws in the memory of pixels if that is large enough.
func (r *Renderer) draw(sheet, worn skin.Sheet, view View, pixels []byte) (raster.Picture, error) {
	if err := view.Check(); err != nil {
		return raster.Picture{}, err
	}
	if err := checkSheet(sheet, view.Type); err != nil {
		return raster.Picture{}, fmt.Errorf("draw %s of %s: %w", view.Mode, view.Type, err)
	}
	switch view.Wear {
	case model.WearNothing:
		worn = skin.Sheet{}
	case model.WearCape, model.WearElytra:
		if err := checkSheet(worn, skin.Cape); err != nil {
			return raster.Picture{}, fmt.Errorf("draw %s of %s with a cape: %w", view.Mode, view.Type, err)
		}
		view.Wear = view.Wear.Of(worn)
	}
	picture := r.drawTexture(sheet, worn, view, pixels)
	if drawBehind := view.Mode.row().behind; drawBehind != nil {
		drawBehind(picture, view)
	}
	return picture, nil
}

// drawTexture draws what is in front of the background.
func (r *Renderer) drawTexture(sheet, worn skin.Sheet, view View, pixels []byte) raster.Picture {
	row := view.Mode.row()
	if view.Type == skin.Cape {
		return row.cape(sheet, view.Size, pixels)
	}
	if row.coarsened != nil {
		sheet, worn = coarser(sheet, row.coarsened(sheet.Scale())), coarser(worn, row.coarsened(worn.Scale()))
	}
	if sheet.Height < sheet.Width {
		// Of all that Normalised does, square sheets need only an opaque base, and all
		// drawing takes the base for opaque.
		sheet = sheet.Normalised(view.Type)
		if view.Mode.IsSheet() {
			view.Type = skin.Classic // the only model for which such sheets are made
		}
	}
	if view.Mode.InSpace() {
		return r.drawFigure(sheet, worn, view, pixels)
	}
	return row.draw(sheet, worn, view, pixels)
}

// drawFigure draws the modes of the model in space.
func (r *Renderer) drawFigure(sheet, worn skin.Sheet, view View, pixels []byte) raster.Picture {
	k := raster.Scales{Skin: sheet.Scale(), Worn: worn.Scale()}
	samples := r.samples(view.capped(k), k)
	scratch, ok := r.painters.Get().(*raster.Painter)
	if !ok {
		scratch = new(raster.Painter)
	}
	defer r.painters.Put(scratch)

	picture := raster.NewPicture(samples.Width, samples.Height, pixels)
	samples.Paint(picture.Pix, sheet, worn, view.Type, view.Omit, scratch)
	return picture
}

// samples returns the sample map of a view for sheets of scales.
func (r *Renderer) samples(view View, k raster.Scales) *raster.SampleMap {
	if view.isMapCached() {
		return r.sampleMaps.Get(mapKeyOf(view, k))
	}
	return raster.NewUncachedMap(view.scene(), k)
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

// NewSprite returns the transparent picture of a sprite: square pictures of a size beside and below each
// other, columns in each row.
func NewSprite(count, columns, size int) raster.Picture {
	return raster.NewPicture(columns*size, (count+columns-1)/columns*size, nil)
}

// DrawTile draws a view of a skin, which is square, as the picture with a number of a sprite. Pictures are
// numbered row by row. It fails as Draw does.
func (r *Renderer) DrawTile(sprite raster.Picture, number int, sheet skin.Sheet, view View) error {
	tile, err := r.Draw(sheet, skin.Sheet{}, view)
	if err != nil {
		return err
	}
	side := view.ShownSize()
	columns := sprite.Width / side
	for y := range side {
		copy(sprite.Row(number%columns*side, number/columns*side+y, side), tile.Row(0, y, side))
	}
	return nil
}

// mapCacheBytes bounds the memory of cached sample maps. A site links to few sizes, and a map
// of one of these for classic sheets takes 0.1 to 1 MB. The rest is for other requests; the
// largest map takes 10 MB.
const mapCacheBytes = 64 << 20

// mapKey is what a cached sample map depends on: the parts of a view that concern neither colours
// nor the file, and the scales of the sheets.
type mapKey struct {
	mode   Mode
	model  skin.Type
	size   int
	width  int
	wear   model.Wear
	scales raster.Scales
}

// isMapCached reports whether the sample map of a view is cached: in the default attitude and pose only.
func (v View) isMapCached() bool { return v.Attitude == 0 && v.Pose == model.Stand }

// mapKeyOf returns the key of the sample map of a view.
func mapKeyOf(view View, k raster.Scales) mapKey {
	key := mapKey{view.Mode, view.Type, view.Size, view.drawn().Width, view.Wear, k}
	if view.Mode.row().isOneModel {
		key.model = skin.Classic
	}
	return key
}

// Build builds the sample map.
func (k mapKey) Build() *raster.SampleMap { return raster.NewSampleMap(k.scene(), k.scales) }

// scene returns the scene of the sample map.
func (k mapKey) scene() raster.Scene {
	return View{Mode: k.mode, Type: k.model, Size: k.size, Width: k.width, Wear: k.wear}.scene()
}

// scene returns the figures of a view of a mode in space.
func (v View) scene() raster.Scene {
	turn, tilt := v.Attitude.turnAndTilt(v.Mode)
	return v.Mode.row().scene(v, turn, tilt)
}
