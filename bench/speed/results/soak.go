package results

import (
	"bytes"
	"fmt"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// panels are the plots of a soak, one below the other.
var panels = []struct {
	name string
	of   func(Usage) float64
}{
	{"resident memory, MiB", func(u Usage) float64 { return float64(u.Resident) / (1 << 20) }},
	{"memory of libvips, MiB", func(u Usage) float64 { return float64(u.Libvips) / (1 << 20) }},
	{"goroutines", func(u Usage) float64 { return float64(u.Goroutines) }},
	{"open files", func(u Usage) float64 { return float64(u.Files) }},
}

const (
	panelHeight = 118
	panelHead   = 18 // for its name
)

// quarterMedian returns the median of a panel's figures in a quarter of the series, counted from 0.
func (s *Series) quarterMedian(n int, of func(Usage) float64) float64 {
	from, to := len(s.Samples)*n/4, len(s.Samples)*(n+1)/4
	var figures []float64
	for _, usage := range s.Samples[from:to] {
		figures = append(figures, of(usage))
	}
	return Summarize(figures).Median
}

const (
	minSamples = 8 // minimum for quarters
	// A figure that grows by more than this factor from the second quarter to the last, and by
	// more than one, is not flat.
	maxGrowth = 1.03
)

// CheckFlat returns an error if some usage of a program is higher in the last quarter than in the
// second, by the medians.
func (r *Run) CheckFlat() error {
	for i := range r.Soak {
		series := &r.Soak[i]
		if len(series.Samples) < minSamples {
			return fmt.Errorf("%d samples of the %s are too few", len(series.Samples), series.Program)
		}
		for _, panel := range panels {
			if before, after := series.quarterMedian(1, panel.of), series.quarterMedian(3, panel.of); after > max(maxGrowth*before, before+1) {
				return fmt.Errorf("%s of the %s: %s in the second quarter, and %s in the last", panel.name, series.Program, number(before), number(after))
			}
		}
	}
	return nil
}

// writeSoak writes a table of resource usage.
func (r *Run) writeSoak(b *bytes.Buffer) {
	if len(r.Soak) == 0 || r.Quick {
		return
	}
	rows := [][]string{{"program", "has in use", "first quarter", "second", "third", "last", "least", "most"}}
	minutes := 0.0
	for i := range r.Soak {
		series := &r.Soak[i]
		if len(series.Samples) < minSamples {
			continue
		}
		minutes = max(minutes, series.Samples[len(series.Samples)-1].Minutes)
		for _, panel := range panels {
			row := []string{series.Program, panel.name}
			for quarter := range 4 {
				row = append(row, number(series.quarterMedian(quarter, panel.of)))
			}
			least, most := panel.of(series.Samples[0]), panel.of(series.Samples[0])
			for _, usage := range series.Samples {
				least, most = min(least, panel.of(usage)), max(most, panel.of(usage))
			}
			rows = append(rows, append(row, number(least), number(most)))
		}
	}
	fmt.Fprintf(b, "\nOver %s minutes, medians of the quarters (see soak.svg):\n\n", number(minutes))
	writeRows(b, rows, "llrrrrrr")
}

// soakPlot draws resource usage over time. There is none without series.
func (r *Run) soakPlot() (chart, bool) {
	samples := 0
	for _, series := range r.Soak {
		samples += len(series.Samples)
	}
	return chart{
		name:     "soak",
		title:    "What the programs have in use as time passes",
		subtitle: "Under the load of a mixed day; every axis begins at 0",
		height:   legendHeight + panelHeight*vg.Length(len(panels)) + 18,
		draw:     r.drawSoak,
	}, samples > 0
}

func (r *Run) drawSoak(c draw.Canvas) {
	var keys []legendEntry
	last := 0.0
	for i, series := range r.Soak {
		keys = append(keys, legendEntry{draw.LineStyle{Color: hue(i), Width: 6}, series.Program})
		if n := len(series.Samples); n > 0 {
			last = max(last, series.Samples[n-1].Minutes)
		}
	}
	drawLegend(&c, vg.Point{X: c.Min.X, Y: c.Max.Y - 4}, keys)

	plots := make([][]*plot.Plot, len(panels))
	for i, panel := range panels {
		minutes := roundTicks(func(float64) string { return " " }) // a grid line without a label
		if i == len(panels)-1 {
			minutes = number
		}
		p := newPlot(minutes, roundTicks(number))
		if i == len(panels)-1 {
			p.X.Label.Text = "minutes"
		}
		p.X.Min, p.X.Max = 0, max(last, 1)
		greatest := 0.0
		for n, series := range r.Soak {
			line := plotter.Line{LineStyle: draw.LineStyle{Color: hue(n), Width: 1.75}}
			highest := 0.0
			for _, usage := range series.Samples {
				line.XYs = append(line.XYs, plotter.XY{X: usage.Minutes, Y: panel.of(usage)})
				highest = max(highest, panel.of(usage))
			}
			if highest > 0 { // else it does not apply to the program
				p.Add(&line)
			}
			greatest = max(greatest, highest)
		}
		p.Y.Min, p.Y.Max = 0, max(greatest*1.1, 1) // from 0, or a flat line would not look flat
		name := panel.name
		if greatest == 0 {
			name += ": none at any time"
		}
		p.Add(panelName(name))
		plots[i] = []*plot.Plot{p}
	}
	tiles := draw.Tiles{Rows: len(panels), Cols: 1, PadY: panelHead, PadTop: panelHead}
	for i, row := range plot.Align(plots, tiles, draw.Crop(c, 0, 0, 0, -legendHeight)) {
		plots[i][0].Draw(row[0])
	}
}

// panelName is written above a panel.
type panelName string

// Plot writes the name.
func (name panelName) Plot(c draw.Canvas, _ *plot.Plot) {
	drawText(&c, vg.Point{X: c.Min.X, Y: c.Max.Y + 5}, draw.XLeft, draw.YBottom, bold(10.5, ink), string(name))
}
