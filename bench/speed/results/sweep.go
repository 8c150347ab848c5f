package results

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Sweep is figures as a parameter grows.
type Sweep struct {
	Name      string   `json:"name"`     // a word, also for the names of its plots
	Measures  string   `json:"measures"` // one sentence: what is measured
	Parameter string   `json:"grows"`    // what does, as "edges"
	Steps     []Step   `json:"steps"`    // by rising parameter; all have the same figures in the same order
	Plotted   []string `json:"plotted"`  // names of the figures that the plot shows
}

// Step is one step of a sweep.
type Step struct {
	At      float64  `json:"at"` // value of the parameter
	Figures []Figure `json:"figures"`
}

// Cost is the cost of one thing, for capacity planning.
type Cost struct {
	Figure

	Method string `json:"how"` // how it was measured: a part of a sentence
}

func (s *Sweep) check() error {
	if s.Name == "" || strings.ContainsAny(s.Name, "/ ") || len(s.Steps) == 0 {
		return errors.New("it has no steps, or no name that a file could have")
	}
	for i := range s.Steps {
		step := &s.Steps[i]
		if !positive(step.At) || i > 0 && step.At <= s.Steps[i-1].At {
			return fmt.Errorf("step %v is out of order", step.At)
		}
		if len(step.Figures) != len(s.Steps[0].Figures) {
			return fmt.Errorf("step %v has %d figures and the first one %d", step.At, len(step.Figures), len(s.Steps[0].Figures))
		}
		for n, figure := range step.Figures {
			if first := s.Steps[0].Figures[n]; figure.Name != first.Name || figure.Unit != first.Unit {
				return fmt.Errorf("step %v has %s in %s, and the first one %s in %s", step.At, figure.Name, figure.Unit, first.Name, first.Unit)
			}
			if err := figure.check(); err != nil {
				return err
			}
		}
	}
	for _, name := range s.Plotted {
		if s.figure(name) < 0 {
			return fmt.Errorf("there is no %s to plot", name)
		}
	}
	return nil
}

// figure returns the index of a figure in each step; -1 if there is none.
func (s *Sweep) figure(name string) int {
	for i, figure := range s.Steps[0].Figures {
		if figure.Name == name {
			return i
		}
	}
	return -1
}

func (f *Figure) check() error {
	if len(f.Rounds) == 0 {
		return fmt.Errorf("%s has no rounds", f.Name)
	}
	for _, round := range f.Rounds {
		if !finite(round) {
			return fmt.Errorf("%s is %v %s", f.Name, round, f.Unit)
		}
	}
	return nil
}

// writeSweeps writes a table for each sweep: a row for a figure, a column for a step.
func (r *Run) writeSweeps(b *bytes.Buffer) {
	for i := range r.Sweeps {
		s := &r.Sweeps[i]
		fmt.Fprintf(b, "\n%s: %s\n\n", s.Name, sentence(s.Measures))
		header, align := []string{s.Parameter}, "l"
		for _, step := range s.Steps {
			header, align = append(header, number(step.At)), align+"r"
		}
		rows := [][]string{header}
		for n, figure := range s.Steps[0].Figures {
			row := []string{figure.Name + ", " + figure.Unit}
			for _, step := range s.Steps {
				cell := r.median(step.Figures[n].Rounds)
				if s := Summarize(step.Figures[n].Rounds); s.Bounded() && !r.Quick {
					cell += " (" + number(s.Low) + " to " + number(s.High) + ")"
				}
				row = append(row, cell)
			}
			rows = append(rows, row)
		}
		writeRows(b, rows, align)
	}
	if len(r.Sweeps) > 0 && !r.Quick {
		fmt.Fprint(b, "\nThese are medians and, where there were six rounds or more, the bounds of their 95 % confidence intervals.\n")
	}
}

// writeCosts writes a table of costs.
func (r *Run) writeCosts(b *bytes.Buffer) {
	if len(r.Costs) == 0 {
		return
	}
	rows := [][]string{{"cost of", "median", "unit", "95 % bounds", "how it was measured"}}
	for _, cost := range r.Costs {
		row := []string{cost.Name, r.median(cost.Rounds), cost.Unit, "", cost.Method}
		if s := Summarize(cost.Rounds); s.Bounded() && !r.Quick {
			row[3] = number(s.Low) + " to " + number(s.High)
		}
		rows = append(rows, row)
	}
	b.WriteByte('\n')
	writeRows(b, rows, "lrlrl")
}

// median formats the median of rounds, which a quick check does not show.
func (r *Run) median(rounds []float64) string {
	if r.Quick {
		return "ran"
	}
	return number(Summarize(rounds).Median)
}

const (
	sweepColumns = 2
	logFrom      = 50 // an axis is logarithmic when the last step is so many times the first
)

// plot draws the figures of a sweep. There is none without figures, or with one step only.
func (s *Sweep) plot() (chart, bool) {
	rows := (len(s.Plotted) + sweepColumns - 1) / sweepColumns
	return chart{
		name:     s.Name,
		title:    strings.ToUpper(s.Name[:1]) + s.Name[1:] + ": what changes with more " + s.Parameter,
		subtitle: strings.TrimSuffix(s.Measures, "."),
		height:   panelHeight*vg.Length(rows) + 18,
		draw:     func(c draw.Canvas) { s.draw(c, rows) },
	}, rows > 0 && len(s.Steps) > 1
}

func (s *Sweep) draw(c draw.Canvas, rows int) {
	least, greatest := s.Steps[0].At, s.Steps[len(s.Steps)-1].At
	var steps plot.ConstantTicks
	for _, step := range s.Steps {
		steps = append(steps, plot.Tick{Value: step.At, Label: number(step.At)})
	}
	plots := make([][]*plot.Plot, rows)
	for i, name := range s.Plotted {
		row, column := i/sweepColumns, i%sweepColumns
		if column == 0 {
			plots[row] = make([]*plot.Plot, sweepColumns)
		}
		p := newPlot(steps, roundTicks(number))
		if row == rows-1 {
			p.X.Label.Text = s.Parameter
		}
		p.X.Min, p.X.Max = least-0.1*(greatest-least), greatest+0.1*(greatest-least)
		if greatest >= logFrom*least {
			p.X.Scale = plot.LogScale{}
			p.X.Min, p.X.Max = least/2, greatest*2
		}
		figure := s.figure(name)
		line := plotter.Line{LineStyle: draw.LineStyle{Color: blue, Width: 1.75}}
		bounds := verticalBars{}
		highest := 0.0
		for _, step := range s.Steps {
			summary := Summarize(step.Figures[figure].Rounds)
			line.XYs = append(line.XYs, plotter.XY{X: step.At, Y: summary.Median})
			highest = max(highest, summary.Median)
			if summary.Bounded() {
				bounds = append(bounds, verticalBar{step.At, summary.Low, summary.High})
				highest = max(highest, summary.High)
			}
		}
		p.Y.Min, p.Y.Max = 0, highest*1.15
		if highest <= 0 {
			p.Y.Max = 1
		}
		p.Add(bounds, &line, &plotter.Scatter{XYs: line.XYs, GlyphStyle: draw.GlyphStyle{Color: blue, Radius: 3, Shape: draw.CircleGlyph{}}},
			panelName(name+", "+s.Steps[0].Figures[figure].Unit))
		plots[row][column] = p
	}
	tiles := draw.Tiles{Rows: rows, Cols: sweepColumns, PadX: 24, PadY: panelHead, PadTop: panelHead}
	for i, row := range plot.Align(plots, tiles, c) {
		for j, canvas := range row {
			if plots[i][j] != nil {
				plots[i][j].Draw(canvas)
			}
		}
	}
}

// verticalBars are the bounds of medians.
type verticalBars []verticalBar

type verticalBar struct{ x, low, high float64 }

// Plot draws the bars.
func (bars verticalBars) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	for _, bar := range bars {
		c.StrokeLine2(draw.LineStyle{Color: ink, Width: 1}, x(bar.x), y(bar.low), x(bar.x), y(bar.high))
	}
}
