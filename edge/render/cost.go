package render

import (
	"time"

	"github.com/veneer-skins/veneer/shared/skin"
)

// maxPreviewHeight returns the height up to which previews of skins of a scale are drawn. Up to
// that height no picture takes longer than 150 ms on one core of the machine that
// docs/benchmarks.md names, with the sheet decoded and the sample map built for the first time.
func maxPreviewHeight(scale int) int {
	switch {
	case scale <= 8:
		return maxHeight
	case scale <= 12:
		return 720
	case scale <= 14:
		return 384
	default:
		return 240
	}
}

// capped returns the view that is drawn for a view of a sheet: a preview of a skin is at most
// maxPreviewHeight high.
func (v View) capped(scale int) View {
	if v.Pose == Preview && v.Type.IsSkin() {
		v.Size = min(v.Size, maxPreviewHeight(scale))
	}
	return v
}

// Cost returns about how long Render takes on one core of the reference machine, for a sheet
// that is width texels wide. It is the time for noise, within a factor of four (TestCost).
// Skins of few colours take a third of it to all of it.
func (r *Renderer) Cost(view View, width int) time.Duration {
	scale := max(1, width/sheetColumns)
	view = view.capped(scale)
	w, h := view.Extent()
	e := encodingCost{scale: float64(scale), pixels: float64(w*h) / 1e6, by: r.encoder, format: view.Format}
	const fixed = 0.2
	ms := fixed
	switch {
	case view.Pose == Flat:
		ms += e.flat()
	case view.Type == skin.Cape:
		ms += e.cape(isCapeCrisp(view.Size, scale))
	default:
		key := mapKeyOf(view, scale)
		s := key.scene()
		ms += drawingCost(s, view, scale, r.sampleMaps.contains(key)) + e.figure(s.crisp(scale))
	}
	return time.Duration(ms * float64(time.Millisecond))
}

// drawingCost returns about how many milliseconds it takes to draw a figure of noise. All
// constants here and below are fitted to measurements of the sizes and scales of TestCost.
func drawingCost(s scene, view View, scale int, isCached bool) float64 {
	pixels, texels := float64(s.width*s.height)/1e6, float64(sheetColumns*sheetColumns*scale*scale)/1e6
	borders := float64(view.Size*scale) / 1e3 // between texels on a vertical line
	if view.Pose == Isometric {
		const head, line = 0.16, 0.33 // shares of a whole figure's, drawn twice
		texels *= head
		borders *= line
	}
	switch {
	case !s.isMapped(scale):
		return 75*texels + 3.6*borders
	case isCached:
		return 40*texels + 10*pixels
	case s.crisp(scale):
		return 2 + 300*texels + 18*pixels
	default:
		return 350*texels + 110*pixels
	}
}

// encodingCost is what the time to encode a picture depends on.
type encodingCost struct {
	scale  float64 // of the sheet
	pixels float64 // in millions
	by     Encoder
	format Format
}

// figure returns about how many milliseconds it takes to encode an isometric head or a preview.
func (e encodingCost) figure(crisp bool) float64 {
	switch {
	case e.by == Libvips:
		return e.libvips(crisp)
	case e.format == PNG && crisp:
		return min(e.pixels*(40+6*e.scale), 10+52*e.pixels)
	case e.format == PNG:
		return min(150*e.pixels, 12+66*e.pixels)
	case crisp:
		return min(e.pixels*(20+25*e.scale), 8+e.pixels*(20+4*e.scale))
	default:
		return min(125*e.pixels, 8+68*e.pixels)
	}
}

// flat returns about how many milliseconds it takes to encode a flat head.
func (e encodingCost) flat() float64 {
	if e.by == Libvips {
		return e.libvips(true) / 3
	}
	return e.pixels * (2 + 3.5*e.scale)
}

// cape returns about how many milliseconds it takes to encode a cape.
func (e encodingCost) cape(crisp bool) float64 {
	switch {
	case e.by == Libvips:
		return e.libvips(crisp) / 2
	case crisp:
		return e.pixels * (4 + 3*e.scale)
	default:
		return min(150*e.pixels, 20+35*e.pixels)
	}
}

// libvips returns about how many milliseconds libvips takes.
func (e encodingCost) libvips(crisp bool) float64 {
	const start = 0.3
	switch {
	case e.format == WebP && e.pixels*1e6 <= maxThoroughWebP:
		return start + 300*e.pixels
	case e.format == WebP:
		return start + e.pixels*(30+5*min(e.scale, 8))
	case crisp:
		return start + e.pixels*(12+3*min(e.scale, 8))
	case e.pixels*1e6 <= maxThoroughPNG:
		return start + 100*e.pixels
	default:
		return start + 75*e.pixels
	}
}
