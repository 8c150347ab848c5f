package results

import (
	"image/color"
	"math"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// The chart of ratios has a row for each baseline, and one for each scenario's name.
const (
	rowHeight = 17
	groupGap  = 9 // before a scenario's name
	barHeight = 10
	axisSpace = 18 // for the axis below
)

// bars is the chart of ratios.
type bars struct {
	rows   []bar
	labels vg.Length // width of the names at the left
	values vg.Length // width of the figures at the bars' ends
}

// bar is a row of the chart.
type bar struct {
	heading string // of a scenario; else empty
	name    string // of the baseline; after a heading, what is measured
	ratio   Summary
	absent  string // why there is no ratio
	top     vg.Length
}

// ratioPlot draws the ratios to all baselines. ok is false if there are none.
func (r *Run) ratioPlot() (chart, bool) {
	b := bars{}
	height := vg.Length(0)
	for i := range r.Scenarios {
		s := &r.Scenarios[i]
		if len(s.Subjects) < 2 {
			continue
		}
		if height > 0 {
			height += groupGap
		}
		first, _, _ := strings.Cut(s.Measures, ". ")
		b.rows = append(b.rows, bar{heading: s.Name, name: strings.TrimSuffix(first, "."), top: height})
		height += rowHeight
		for j := range s.Subjects[1:] {
			subject := &s.Subjects[j+1]
			row := bar{name: subject.Name, top: height}
			switch {
			case subject.Missing != "":
				row.absent = "missing"
			case subject.Unsupported != "":
				row.absent = "cannot do this"
			default:
				row.ratio = s.Ratio(subject)
			}
			b.rows = append(b.rows, row)
			b.labels = max(b.labels, regular(10, ink).Width(row.name))
			height += rowHeight
		}
	}
	b.labels += 12
	b.values = regular(10, ink).Width("0,000×") + 8
	return chart{
		name:     "ratios",
		title:    r.title(),
		subtitle: "Veneer's result relative to each other one's: medians of the ratios within rounds, and their 95 % bounds",
		height:   height + axisSpace + legendHeight,
		draw: func(c draw.Canvas) {
			drawLegend(&c, vg.Point{X: c.Min.X, Y: c.Max.Y - 4}, []legendEntry{
				{draw.LineStyle{Color: blue, Width: barHeight}, "Veneer is better"},
				{draw.LineStyle{Color: mist, Width: barHeight}, "no sure difference"},
				{draw.LineStyle{Color: vermilion, Width: barHeight}, "the other is better"},
			})
			p := newPlot(logTicks(func(ratio float64) string { return number(ratio) + "×" }), plot.ConstantTicks{})
			p.X.Scale = plot.LogScale{}
			p.X.Min, p.X.Max = b.span()
			p.Y.Min, p.Y.Max = 0, 1 // rows have heights of their own
			p.Add(&b)
			p.Draw(draw.Crop(c, b.labels, 0, 0, -legendHeight))
		},
	}, height > 0
}

// legendHeight is the height of a legend.
const legendHeight = 22

// span returns the range of the axis of ratios, with space for the figures beyond the bars' ends.
func (b *bars) span() (least, greatest float64) {
	least, greatest = 1, 1
	for _, row := range b.rows {
		if row.heading != "" || row.absent != "" {
			continue
		}
		low, high := row.ends()
		least, greatest = min(least, low), max(greatest, high)
	}
	// The share of the axis that a figure takes is taken from both ends.
	share := float64(b.values / (plotWidth - 2*margin - b.labels))
	factor := math.Pow(greatest/least, share/(1-2*share))
	if least < 1 {
		least /= factor
	}
	greatest *= factor
	return min(least, 0.8), max(greatest, 2)
}

// ends returns the ends of a row's bar, or its bounds if they go further.
func (b *bar) ends() (low, high float64) {
	low, high = min(1, b.ratio.Median), max(1, b.ratio.Median)
	if b.ratio.Bounded() {
		low, high = min(low, b.ratio.Low), max(high, b.ratio.High)
	}
	return low, high
}

// colour is blue if Veneer is better, vermilion if it is worse, and grey if the bounds include 1.
func (b *bar) colour() color.Color {
	switch {
	case b.ratio.Low > 1:
		return blue
	case b.ratio.High < 1:
		return vermilion
	}
	return mist
}

// Plot draws all rows.
func (b *bars) Plot(c draw.Canvas, p *plot.Plot) {
	x, _ := p.Transforms(&c)
	c.StrokeLine2(draw.LineStyle{Color: ink, Width: 1}, x(1), c.Min.Y, x(1), c.Max.Y)
	for i := range b.rows {
		row := &b.rows[i]
		y := c.Max.Y - row.top - rowHeight/2
		if row.heading != "" {
			c.SetColor(color.White) // no grid line crosses it
			c.Fill(vg.Rectangle{Min: vg.Point{X: c.Min.X - 1, Y: y - rowHeight/2}, Max: vg.Point{X: c.Max.X + 1, Y: y + rowHeight/2 + groupGap}}.Path())
			left := c.Min.X - b.labels
			after := left + 8 + drawText(&c, vg.Point{X: left, Y: y}, draw.XLeft, draw.YCenter, bold(10.5, ink), row.heading)
			if after+regular(9, pale).Width(row.name) <= c.Max.X { // else it is in the table only
				drawText(&c, vg.Point{X: after, Y: y}, draw.XLeft, draw.YCenter, regular(9, pale), row.name)
			}
			continue
		}
		drawText(&c, vg.Point{X: c.Min.X - 8, Y: y}, draw.XRight, draw.YCenter, regular(10, ink), row.name)
		if row.absent != "" {
			drawText(&c, vg.Point{X: x(1) + 6, Y: y}, draw.XLeft, draw.YCenter, regular(10, mist), row.absent)
			continue
		}
		row.draw(&c, x, y)
	}
}

func (b *bar) draw(c *draw.Canvas, x func(float64) vg.Length, y vg.Length) {
	left, right := x(min(1, b.ratio.Median)), x(max(1, b.ratio.Median))
	c.SetColor(b.colour())
	c.Fill(vg.Rectangle{Min: vg.Point{X: left, Y: y - barHeight/2}, Max: vg.Point{X: right, Y: y + barHeight/2}}.Path())
	if b.ratio.Bounded() {
		line := draw.LineStyle{Color: ink, Width: 1}
		c.StrokeLine2(line, x(b.ratio.Low), y, x(b.ratio.High), y)
		for _, end := range []vg.Length{x(b.ratio.Low), x(b.ratio.High)} {
			c.StrokeLine2(line, end, y-3, end, y+3)
		}
	}
	low, high := b.ends()
	if b.ratio.Median < 1 {
		drawText(c, vg.Point{X: x(low) - 5, Y: y}, draw.XRight, draw.YCenter, bold(10, ink), times(b.ratio.Median))
		return
	}
	drawText(c, vg.Point{X: x(high) + 5, Y: y}, draw.XLeft, draw.YCenter, bold(10, ink), times(b.ratio.Median))
}
