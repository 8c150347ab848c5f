package render

import (
	"time"

	"github.com/veneer-skins/veneer/shared/skin"
)

// maxPreviewHeight returns the height up to which previews of skins of a scale are drawn, and
// maxBodyHeight that of bodies. Up to that height no picture takes longer than 150 ms on one core of
// the machine that docs/benchmarks.md names, with the sheet decoded and the sample map built for the
// first time.
func maxPreviewHeight(scale int) int {
	switch {
	case scale <= 8:
		return Preview.sizes().max
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
		return Body.sizes().max
	}
	return 960
}

// maxCrossingSize is the same for bodies and busts in a pose or with something worn, by the scale of the
// finer sheet.
func maxCrossingSize(scale int) int {
	switch {
	case scale <= 8:
		return Body.sizes().max
	case scale <= 12:
		return 480
	case scale <= 14:
		return 288
	default:
		return 208
	}
}

// crosses reports whether boxes of the figure go through each other.
func (v View) crosses() bool { return v.Pose != Stand || v.Wear != WearNothing }

// capped returns the view that is drawn for a view of sheets: a preview of a skin is at most
// maxPreviewHeight high, a body maxBodyHeight, and a figure with crossing boxes maxCrossingSize.
func (v View) capped(k scales) View {
	if !v.Type.IsSkin() || !v.Mode.InSpace() {
		return v
	}
	most := v.Mode.sizes().max
	switch v.Mode {
	case Preview:
		most = maxPreviewHeight(k.skin)
	case Body:
		most = maxBodyHeight(k.skin)
	case Flat, Isometric, LegacySheet, Bust, Front, Back, Left, Right:
	}
	if v.crosses() {
		most = min(most, maxCrossingSize(k.finest()))
	}
	const large = 8
	if v.Exact != 0 && k.finest() >= large && v.Mode != Isometric { // reducing takes up to a fifth of the time
		most = most * 4 / 5 / 16 * 16
	}
	v.Size = min(v.Size, most)
	if v.Exact >= v.Size { // which is not drawn
		v.Exact = 0
	}
	return v
}

// Cost returns about how long Render takes on one core of the reference machine, for a sheet that is
// width texels wide, and a worn one that is wornWidth texels wide, 0 for none. It is the time for noise,
// within a factor of four (TestCost). Skins of few colours take a third of it to all of it.
func (r *Renderer) Cost(view View, width, wornWidth int) time.Duration {
	k := scales{max(1, width/sheetColumns), wornWidth / sheetColumns}
	scale := k.finest()
	view = view.capped(k)
	exact := view
	view.Exact = 0
	w, h := view.Extent()
	job := EncodingJob{View: view, Scale: scale, Pixels: w * h, Crisp: true}
	const fixed = 0.2
	ms := fixed
	switch {
	case view.Type == skin.Cape:
		job.Crisp = isCapeCrisp(view.Size, scale)
	case view.Mode == LegacySheet:
		const blending = 11e-6 // of a texel, in milliseconds
		ms += blending * float64(w*h*scale*scale)
		job.Scale = 1
	case view.Mode.isSide():
		if h%(sideHeight*scale) != 0 {
			const averaging = 25e-6 // of a pixel, in milliseconds
			ms += averaging * float64(w*h)
		}
		if view.Wear != WearNothing {
			const blending = 20e-6 // of a texel, in milliseconds
			ms += blending * float64(sideWidth*sideHeight*scale*scale)
		}
	case view.Mode.InSpace():
		s := view.scene()
		job.Crisp = s.crisp(scale)
		ms += drawingCost(s, view, k, view.isMapCached() && r.sampleMaps.contains(mapKeyOf(view, k)))
	}
	cost := time.Duration(ms * float64(time.Millisecond))
	if exact.Exact != 0 && r.reducer != nil {
		cost += r.reducer.Cost(job.Pixels)
		w, h = exact.Extent()
		job.Pixels, job.Crisp = w*h, false
	}
	return cost + r.encoder.Cost(job)
}

// drawingCost returns about how many milliseconds it takes to draw a figure of noise. All
// constants here and below are fitted to measurements of the sizes and scales of TestCost.
func drawingCost(s scene, view View, k scales, isCached bool) float64 {
	scale := k.finest()
	pixels, texels := float64(s.width*s.height)/1e6, float64(sheetColumns*sheetColumns*k.skin*k.skin)/1e6
	borders := float64(view.Size*scale) / 1e3 // between texels on a vertical line
	switch view.Mode {
	case Isometric:
		const head, line = 0.16, 0.33 // shares of a whole figure's, drawn twice
		texels *= head
		borders *= line
	case Bust, Body:
		const once = 0.5
		texels *= once
		borders *= once
	case Preview, Flat, LegacySheet, Front, Back, Left, Right:
	}
	const onFaces = 0.35 // share of a worn sheet
	texels += onFaces * float64(sheetColumns*sheetColumns/2*k.worn*k.worn) / 1e6
	crossing, lines := 1.0, 1.0 // as many times as much work, and lines, as without what crosses
	if view.Pose != Stand {
		crossing++
	}
	if view.Wear != WearNothing {
		crossing++
	}
	if view.crosses() {
		lines = 1.5
	}
	switch {
	case !s.isMapped(scale), !view.isMapCached() && !s.crisp(scale):
		return 75*texels + 3.6*borders*crossing*lines
	case isCached:
		return 40*texels + 10*pixels
	case s.crisp(scale):
		return (2 + 300*texels + 18*pixels) * crossing
	default:
		return (350*texels + 110*pixels) * crossing
	}
}

// Cost returns about how long Encode takes on one core of the reference machine.
func (*NativeEncoder) Cost(job EncodingJob) time.Duration {
	pixels, scale := float64(job.Pixels)/1e6, float64(job.Scale)
	var ms float64
	switch {
	case job.View.Type == skin.Cape && job.Crisp:
		ms = pixels * (4 + 3*scale)
	case job.View.Type == skin.Cape:
		ms = min(150*pixels, 20+35*pixels)
	case !job.View.Mode.InSpace():
		ms = pixels * (2 + 3.5*scale)
	case job.View.Format == PNG && job.Crisp:
		ms = min(pixels*(40+6*scale), 10+52*pixels)
	case job.View.Format == PNG:
		ms = min(150*pixels, 12+66*pixels)
	case job.Crisp:
		ms = min(pixels*(20+25*scale), 8+pixels*(20+4*scale))
	default:
		ms = min(125*pixels, 8+68*pixels)
	}
	return time.Duration(ms * float64(time.Millisecond))
}
