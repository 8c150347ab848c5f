package render

import (
	"time"

	"github.com/veneer-skins/veneer/edge/render/model"
	"github.com/veneer-skins/veneer/edge/render/raster"
	"github.com/veneer-skins/veneer/shared/skin"
)

// maxPreviewHeight returns the height up to which previews of skins of a scale are drawn, and
// maxBodyHeight the one of bodies. Up to that height no picture takes longer than 150 ms on one core of
// the machine that docs/benchmarks.md names, with the sheet decoded and the sample map built for the
// first time.
func maxPreviewHeight(scale int) int {
	switch {
	case scale <= 8:
		return figureSizes.max
	case scale <= 12:
		return 720
	case scale <= 14:
		return 384
	default:
		return 240
	}
}

func maxBodyHeight(scale int) int {
	if scale <= 14 {
		return figureSizes.max
	}
	return 960
}

// maxCrossingSize is the same for bodies and busts in a pose or with something worn, by the scale of the
// finer sheet.
func maxCrossingSize(scale int) int {
	switch {
	case scale <= 8:
		return figureSizes.max
	case scale <= 12:
		return 480
	case scale <= 14:
		return 288
	default:
		return 208
	}
}

// crossings returns how many things make boxes of the figure go through each other.
func (v View) crossings() (n int) {
	if v.Pose != model.Stand {
		n++
	}
	if v.Wear != model.WearNothing {
		n++
	}
	return n
}

// capped returns the view that is drawn for a view of sheets: a preview of a skin is at most
// maxPreviewHeight high, a body maxBodyHeight, and a figure with crossing boxes maxCrossingSize.
func (v View) capped(k raster.Scales) View {
	if !v.Type.IsSkin() || !v.Mode.InSpace() {
		return v
	}
	row := v.Mode.row()
	most := row.sizes.max
	if row.most != nil {
		most = row.most(k.Skin)
	}
	if v.crossings() > 0 {
		most = min(most, maxCrossingSize(k.Finest()))
	}
	const large = 8
	if v.Exact != 0 && k.Finest() >= large && v.Mode.HasPoses() { // reducing takes up to a fifth of the time
		most = most * 4 / 5 / 16 * 16
	}
	if size := min(v.Size, most); v.Exact == 0 || v.Exact >= size { // which is not reduced
		v.Size, v.Width, v.Exact = size, v.scaledWidth(size), 0
	} else {
		v.Size = size
	}
	return v
}

// Cost returns about how long Render takes on one core of the reference machine, for a sheet that is
// width texels wide, and a worn one that is wornWidth texels wide, 0 for none. It is the time for noise,
// within a factor of four (BenchmarkCost). Skins of few colours take a third of it to all of it.
func (r *Renderer) Cost(view View, width, wornWidth int) time.Duration {
	k := raster.Scales{Skin: max(1, width/raster.SheetColumns), Worn: wornWidth / raster.SheetColumns}
	if coarsened := view.Mode.row().coarsened; coarsened != nil && view.Type != skin.Cape {
		k = raster.Scales{Skin: coarsened(k.Skin), Worn: coarsened(k.Worn)}
	}
	scale := k.Finest()
	view = view.capped(k)
	exact := view
	view = view.drawn()
	w, h := view.Extent()
	job := encodingJob{view: view, scale: scale, pixels: w * h, isCrisp: true}
	const fixed, background = 0.2, 10e-6 // of a pixel
	ms := fixed
	if view.Mode.HasBackground() {
		ms += background * float64(w*h)
	}
	switch row := view.Mode.row(); {
	case view.Type == skin.Cape:
		job.isCrisp = isCapeCrisp(view.Size, scale)
	case view.Mode.InSpace():
		s := view.scene()
		job.isCrisp = s.Crisp(scale)
		ms += s.Cost(k, raster.Work{
			Share: row.share, Crossings: view.crossings(), IsReusable: view.isMapCached(),
			IsCached: view.isMapCached() && r.sampleMaps.Contains(mapKeyOf(view, k)),
		})
	case row.flatCost != nil:
		ms += row.flatCost(view, w*h, scale)
	}
	if view.Mode.IsSheet() {
		job.scale = 1
	}
	cost := time.Duration(ms * float64(time.Millisecond))
	if exact.Exact != 0 && r.reducer != nil {
		cost += r.reducer.Cost(job.pixels)
		w, h = exact.Extent()
		job.pixels, job.isCrisp = w*h, false
	}
	return cost + job.cost()
}

// encodingJob is what the time to encode a picture depends on.
type encodingJob struct {
	view    View
	scale   int  // of the sheet
	pixels  int  // of the picture
	isCrisp bool // texels have hard edges; always true for flat heads and sides that are not reduced
}

// cost returns about how long Encode takes on one core of the reference machine.
func (j encodingJob) cost() time.Duration {
	pixels, scale := float64(j.pixels)/1e6, float64(j.scale)
	var ms float64
	switch {
	case j.view.Type == skin.Cape && j.isCrisp:
		ms = pixels * (4 + 3*scale)
	case j.view.Type == skin.Cape:
		ms = min(150*pixels, 20+35*pixels)
	case !j.view.Mode.InSpace():
		ms = pixels * (2 + 3.5*scale)
	case j.view.Format == PNG && j.isCrisp:
		ms = min(pixels*(40+6*scale), 10+52*pixels)
	case j.view.Format == PNG:
		ms = min(150*pixels, 12+66*pixels)
	case j.isCrisp:
		ms = min(pixels*(20+25*scale), 8+pixels*(20+4*scale))
	default:
		ms = min(125*pixels, 8+68*pixels)
	}
	return time.Duration(ms * float64(time.Millisecond))
}
