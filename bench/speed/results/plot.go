package results

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math"
	"time"

	xfont "golang.org/x/image/font"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Plots are as wide as a README, 900 pixels of 1/96 inch, and PNGs have twice as many for
// high-density screens.
const (
	plotWidth = 675 * vg.Length(1)
	pngDPI    = 192
	margin    = 18
)

// The colours are of Okabe and Ito's palette, which is safe for colour-blind readers; and greys.
var (
	blue      = color.NRGBA{R: 0x00, G: 0x72, B: 0xB2, A: 0xFF}
	vermilion = color.NRGBA{R: 0xD5, G: 0x5E, B: 0x00, A: 0xFF}
	green     = color.NRGBA{R: 0x00, G: 0x9E, B: 0x73, A: 0xFF}
	purple    = color.NRGBA{R: 0xCC, G: 0x79, B: 0xA7, A: 0xFF}
	orange    = color.NRGBA{R: 0xE6, G: 0x9F, B: 0x00, A: 0xFF}
	sky       = color.NRGBA{R: 0x56, G: 0xB4, B: 0xE9, A: 0xFF}

	ink   = color.NRGBA{R: 0x1F, G: 0x23, B: 0x28, A: 0xFF}
	pale  = color.NRGBA{R: 0x65, G: 0x6D, B: 0x76, A: 0xFF}
	mist  = color.NRGBA{R: 0x9A, G: 0xA2, B: 0xAB, A: 0xFF}
	faint = color.NRGBA{R: 0xE4, G: 0xE7, B: 0xEB, A: 0xFF}
)

// hues are for subjects in their order, Veneer first.
var hues = []color.NRGBA{blue, vermilion, green, purple, orange, sky}

func hue(of int) color.NRGBA { return hues[of%len(hues)] }

// chart is a plot that can be drawn on any canvas.
type chart struct {
	name     string // of its files
	title    string
	subtitle string
	footnote string            // machine and commit
	warning  string            // before the title; may be empty
	height   vg.Length         // without title and footnote
	draw     func(draw.Canvas) // between them
}

// plots returns a chart for each kind of figures in the run.
func (r *Run) plots() []chart {
	var all []chart
	if p, ok := r.ratioPlot(); ok {
		all = append(all, p)
	}
	if p, ok := r.latencyPlot(); ok {
		all = append(all, p)
	}
	if p, ok := r.soakPlot(); ok {
		all = append(all, p)
	}
	for i := range r.Sweeps {
		if p, ok := r.Sweeps[i].plot(); ok {
			all = append(all, p)
		}
	}
	warning := ""
	switch {
	case r.Quick:
		warning = "A quick check, which claims no figures: "
	case r.Failed != "":
		warning = "A run that failed: "
	}
	for i := range all {
		all[i].warning = warning
		all[i].footnote = fmt.Sprintf("%d processors of an %s, %s, on %s, commit %s",
			r.Machine.Processors, r.Machine.Processor, r.Machine.Kernel, r.Date.UTC().Format(time.DateOnly), r.Commit)
	}
	return all
}

// The heights of title with subtitle, and of the footnote.
const (
	headHeight = 50
	footHeight = 24
)

func (p *chart) size() (width, height vg.Length) {
	return plotWidth, p.height + headHeight + footHeight + 2*margin
}

func (p *chart) drawOn(canvas vg.CanvasSizer) {
	c := draw.New(canvas)
	c.SetColor(color.White)
	c.Fill(c.Path())
	c = draw.Crop(c, margin, -margin, margin, -margin)
	drawText(&c, vg.Point{X: c.Min.X, Y: c.Max.Y}, draw.XLeft, draw.YTop, bold(15, ink), p.warning+p.title)
	drawText(&c, vg.Point{X: c.Min.X, Y: c.Max.Y - 22}, draw.XLeft, draw.YTop, regular(10, pale), p.subtitle)
	drawText(&c, c.Min, draw.XLeft, draw.YBottom, regular(8.5, mist), p.footnote)
	p.draw(draw.Crop(c, 0, 0, footHeight, -headHeight))
}

// svg draws the chart for a browser, which renders text in its own font: the one it is laid out
// for, or another of the same widths.
func (p *chart) svg() ([]byte, error) {
	canvas := vgsvg.NewWith(vgsvg.UseWH(p.size()))
	p.drawOn(canvas)
	var b bytes.Buffer
	if _, err := canvas.WriteTo(&b); err != nil {
		return nil, err
	}
	return bytes.ReplaceAll(b.Bytes(), []byte("font-family:Liberation Sans;"), []byte("font-family:Liberation Sans,Arimo,Arial,Helvetica,sans-serif;")), nil
}

func (p *chart) png() ([]byte, error) {
	canvas := vgimg.NewWith(vgimg.UseWH(p.size()), vgimg.UseDPI(pngDPI))
	p.drawOn(canvas)
	b, drawn := bytes.Buffer{}, canvas.Image()
	reduced := image.NewPaletted(drawn.Bounds(), palette())
	indexes := map[color.Color]uint8{} // finding the nearest colour is slow
	for y := range drawn.Bounds().Dy() {
		for x := range drawn.Bounds().Dx() {
			at := drawn.At(x, y)
			index, ok := indexes[at]
			if !ok {
				index = uint8(reduced.Palette.Index(at))
				indexes[at] = index
			}
			reduced.SetColorIndex(x, y, index)
		}
	}
	encoder := png.Encoder{CompressionLevel: png.BestCompression}
	if err := encoder.Encode(&b, reduced); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// palette returns every colour in steps to white, as anti-aliasing needs. A picture of so few
// colours is a third as large.
func palette() color.Palette {
	const steps = 21
	reduced := color.Palette{color.White}
	for _, c := range append([]color.NRGBA{ink, pale, mist, faint}, hues...) {
		for step := range steps {
			mix := func(c uint8) uint8 { return uint8(255 - (255-int(c))*(step+1)/steps) }
			reduced = append(reduced, color.NRGBA{R: mix(c.R), G: mix(c.G), B: mix(c.B), A: 255})
		}
	}
	return reduced
}

// ---- Text ---------------------------------------------------------------------

func regular(size vg.Length, ink color.Color) text.Style {
	return text.Style{
		Color: ink, Handler: plot.DefaultTextHandler,
		Font: font.Font{Typeface: "Liberation", Variant: "Sans", Size: size},
	}
}

func bold(size vg.Length, ink color.Color) text.Style {
	style := regular(size, ink)
	style.Font.Weight = xfont.WeightBold
	return style
}

// drawText draws a line of text at a point, and returns its width.
func drawText(c *draw.Canvas, at vg.Point, x draw.XAlignment, y draw.YAlignment, style text.Style, line string) vg.Length {
	style.XAlign, style.YAlign = x, y
	if y == draw.YCenter {
		at.Y += style.Font.Size / 7 // descenders count in the height, but are rare
	}
	c.FillText(style, at, line)
	return style.Width(line)
}

// legendEntry explains a colour or a line.
type legendEntry struct {
	line draw.LineStyle
	name string
}

// drawLegend draws a row of entries from a point to the right.
func drawLegend(c *draw.Canvas, at vg.Point, keys []legendEntry) {
	for _, k := range keys {
		c.StrokeLine2(k.line, at.X, at.Y, at.X+20, at.Y)
		at.X += 25
		at.X += 18 + drawText(c, at, draw.XLeft, draw.YCenter, regular(10, ink), k.name)
	}
}

// ---- Axes ---------------------------------------------------------------------

// newPlot returns a plot without data, with faint grid lines at its ticks.
func newPlot(x, y plot.Ticker) *plot.Plot {
	p := plot.New()
	p.BackgroundColor = nil // already painted
	for _, axis := range []*plot.Axis{&p.X, &p.Y} {
		axis.Padding = 0
		axis.Width = 0
		axis.Tick.Width = 0
		axis.Tick.Label.Font = regular(10, ink).Font
		axis.Tick.Label.Color = pale
		axis.Label.TextStyle.Font = regular(10, ink).Font
		axis.Label.TextStyle.Color = pale
		axis.Label.Padding = 4
	}
	p.X.Tick.Marker, p.Y.Tick.Marker = x, y
	grid := plotter.NewGrid()
	line := draw.LineStyle{Color: faint, Width: 0.75}
	grid.Horizontal, grid.Vertical = line, line
	p.Add(grid)
	return p
}

// logTicks has ticks at 1, 2, 5, 10 and so on: only the powers of ten when those are many, and all
// digits when they are few.
type logTicks func(float64) string

// Ticks returns the ticks from least to greatest.
func (name logTicks) Ticks(least, greatest float64) []plot.Tick {
	ticks := name.at(least, greatest, 1, 2, 5)
	switch {
	case len(ticks) > 10:
		return name.at(least, greatest, 1)
	case len(ticks) < 2:
		return name.at(least, greatest, 1, 2, 3, 4, 5, 6, 7, 8, 9)
	}
	return ticks
}

// at returns ticks of those digits times powers of ten.
func (name logTicks) at(least, greatest float64, digits ...float64) []plot.Tick {
	var ticks []plot.Tick
	for exponent := math.Floor(math.Log10(least)); exponent <= math.Log10(greatest); exponent++ {
		for _, digit := range digits {
			if value := digit * math.Pow(10, exponent); value >= least*(1-epsilon) && value <= greatest*(1+epsilon) {
				ticks = append(ticks, plot.Tick{Value: value, Label: name(value)})
			}
		}
	}
	return ticks
}

// epsilon absorbs rounding errors.
const epsilon = 1e-9

// roundTicks has ticks at 0 and up to four multiples of one round number.
type roundTicks func(float64) string

// Ticks returns the ticks from 0 to greatest.
func (name roundTicks) Ticks(_, greatest float64) []plot.Tick {
	step := roundStep(greatest)
	var ticks []plot.Tick
	for i := 0; float64(i)*step <= greatest*(1+epsilon); i++ {
		ticks = append(ticks, plot.Tick{Value: float64(i) * step, Label: name(float64(i) * step)})
	}
	return ticks
}

// roundStep returns the smallest of 1, 2, 5, 10 and so on of which fewer than five fit into a
// positive number.
func roundStep(into float64) float64 {
	step := math.Pow(10, math.Floor(math.Log10(into/5)))
	for _, digit := range []float64{1, 2, 5} {
		if into/(digit*step) < 5*(1-epsilon) {
			return digit * step
		}
	}
	return 10 * step
}
