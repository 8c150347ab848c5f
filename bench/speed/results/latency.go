package results

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// quantiles are the lines of a curve.
var quantiles = []struct {
	name   string
	of     func(*Point) []float64
	width  vg.Length
	dashes []vg.Length
}{
	{"half of the answers are faster", func(p *Point) []float64 { return p.P50 }, 1.25, []vg.Length{5, 3}},
	{"99 % are", func(p *Point) []float64 { return p.P99 }, 2.5, nil},
	{"99.9 % are", func(p *Point) []float64 { return p.P999 }, 1.25, []vg.Length{1.5, 2.5}},
}

// latencyPlot draws latency against rate. There is none without curves.
func (r *Run) latencyPlot() (chart, bool) {
	points := 0
	for _, curve := range r.Latency {
		points += len(curve.Points)
	}
	return chart{
		name:     "latency",
		title:    "Latency",
		subtitle: "A mixed day at rising rates, medians of alternating rounds and the p99's 95 % bounds; latencies count from the time at which a request was due",
		height:   340,
		draw:     r.drawLatency,
	}, points > 0
}

func (r *Run) drawLatency(c draw.Canvas) {
	row := vg.Point{X: c.Min.X, Y: c.Max.Y - 4}
	var keys []legendEntry
	for i, curve := range r.Latency {
		keys = append(keys, legendEntry{draw.LineStyle{Color: hue(i), Width: 6}, curve.Name})
	}
	drawLegend(&c, row, keys)
	keys = keys[:0]
	for _, q := range quantiles {
		keys = append(keys, legendEntry{draw.LineStyle{Color: ink, Width: q.width, Dashes: q.dashes}, q.name})
	}
	keys = append(keys, legendEntry{limitStyle, fmt.Sprintf("%d ms, the limit for 99 %% of them", p99Limit)})
	row.Y -= 18
	drawLegend(&c, row, keys)

	p := newPlot(r.rateTicks(), logTicks(func(ms float64) string { return number(ms) + " ms" }))
	p.X.Scale, p.Y.Scale = plot.LogScale{}, plot.LogScale{}
	p.X.Label.Text = "requests a second"
	rates, latencies := r.ranges()
	p.X.Min, p.X.Max = rates[0], rates[1]
	p.Y.Min, p.Y.Max = latencies[0], latencies[1]
	p.Add(limitLine{})
	for i, curve := range r.Latency {
		for _, q := range quantiles {
			line := plotter.Line{LineStyle: draw.LineStyle{Color: hue(i), Width: q.width, Dashes: q.dashes}}
			// Side by side, so that no bar hides another.
			shift := math.Pow(1.012, float64(2*i-len(r.Latency)+1))
			for j := range curve.Points {
				point := &curve.Points[j]
				s, x := point.Summarize(q.of(point)), shift*point.Rate
				line.XYs = append(line.XYs, plotter.XY{X: x, Y: s.Median})
				if q.dashes == nil {
					bar := plotter.XYs{{X: x, Y: max(s.Low, p.Y.Min)}, {X: x, Y: min(s.High, p.Y.Max)}}
					p.Add(&plotter.Line{XYs: bar, LineStyle: draw.LineStyle{Color: hue(i), Width: 1}})
				}
			}
			p.Add(&line)
			if q.dashes == nil {
				p.Add(&plotter.Scatter{XYs: line.XYs, GlyphStyle: draw.GlyphStyle{Color: hue(i), Radius: 3, Shape: draw.CircleGlyph{}}})
			}
		}
	}
	p.Draw(draw.Crop(c, 0, 0, 0, -48))
}

// rateTicks has a tick at each measured rate.
func (r *Run) rateTicks() plot.ConstantTicks {
	var rates []float64
	for _, curve := range r.Latency {
		for i := range curve.Points {
			rates = append(rates, curve.Points[i].Rate)
		}
	}
	slices.Sort(rates)
	var ticks plot.ConstantTicks
	for _, rate := range slices.Compact(rates) {
		ticks = append(ticks, plot.Tick{Value: rate, Label: number(rate)})
	}
	return ticks
}

// maxBoundFactor is how many times the median its bounds are at most shown.
const maxBoundFactor = 10

// ranges returns the ranges of both axes, with bounds of the p99: latencies to the next 1, 2 or 5.
func (r *Run) ranges() (rates, latencies [2]float64) {
	rates = [2]float64{math.Inf(1), 0}
	latencies = [2]float64{p99Limit, p99Limit}
	for _, curve := range r.Latency {
		for i := range curve.Points {
			p := &curve.Points[i]
			rates[0], rates[1] = min(rates[0], p.Rate), max(rates[1], p.Rate)
			for _, q := range quantiles {
				s := p.Summarize(q.of(p))
				least, greatest := s.Median, s.Median
				if q.dashes == nil {
					least = max(s.Low, least/maxBoundFactor)
					greatest = min(s.High, greatest*maxBoundFactor)
				}
				latencies[0], latencies[1] = min(latencies[0], least), max(latencies[1], greatest)
			}
		}
	}
	rates[0], rates[1] = rates[0]/1.1, rates[1]*1.1 // no point is on the border
	latencies[0], latencies[1] = 1/roundUp(1/latencies[0]), roundUp(latencies[1]*1.05)
	return rates, latencies
}

// roundUp returns the next of 1, 2, 5, 10 and so on.
func roundUp(x float64) float64 {
	step := math.Pow(10, math.Floor(math.Log10(x)))
	for _, digit := range []float64{1, 2, 5} {
		if x <= digit*step*(1+epsilon) {
			return digit * step
		}
	}
	return 10 * step
}

// limitLine is the limit of the p99.
type limitLine struct{}

var limitStyle = draw.LineStyle{Color: ink, Width: 1}

// Plot draws the line.
func (limitLine) Plot(c draw.Canvas, p *plot.Plot) {
	_, y := p.Transforms(&c)
	at := y(p99Limit)
	c.StrokeLine2(limitStyle, c.Min.X, at, c.Max.X, at)
}
