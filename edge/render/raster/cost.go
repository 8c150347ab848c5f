package raster

// Work is what drawing a scene costs besides its size: constants here are fitted to measurements of the
// sizes and scales of BenchmarkCost in package render.
type Work struct {
	Share      WorkShare
	Crossings  int  // things that make boxes go through each other
	IsReusable bool // its sample map is worth building
	IsCached   bool // it is built
}

// WorkShare is how much of a whole figure, drawn twice, a scene has: of its texels, and of the borders
// between texels on a vertical line.
type WorkShare struct{ Texels, Borders float64 }

// Cost returns about how many milliseconds it takes to draw a scene of noise.
func (s Scene) Cost(k Scales, w Work) float64 {
	const sheet = SheetColumns * SheetColumns
	const onFaces = 0.35 // share of a worn sheet
	scale := k.Finest()
	pixels := float64(s.Width*s.Height) / 1e6
	texels := float64(sheet*k.Skin*k.Skin)/1e6*w.Share.Texels + onFaces*float64(sheet/2*k.Worn*k.Worn)/1e6
	borders := float64(s.Height*scale) / 1e3 * w.Share.Borders
	crossing, lines := float64(1+w.Crossings), 1.0 // as many times as much work, and lines, as without what crosses
	if w.Crossings > 0 {
		lines = 1.5
	}
	switch {
	case !s.isMapped(scale), !w.IsReusable && !s.Crisp(scale):
		return 75*texels + 3.6*borders*crossing*lines
	case w.IsCached:
		return 40*texels + 10*pixels
	case s.Crisp(scale):
		return (2 + 300*texels + 18*pixels) * crossing
	default:
		return (350*texels + 110*pixels) * crossing
	}
}
