package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/veneer-skins/veneer/bench/speed/baseline"
	"github.com/veneer-skins/veneer/bench/speed/load"
	"github.com/veneer-skins/veneer/bench/speed/results"
)

// measurement is the result of a server in a round.
type measurement struct {
	load.Answers
	cpuTime time.Duration // of the server
}

func (m measurement) rate() float64 { return float64(m.Total()) / m.Elapsed.Seconds() }

// cost returns the server's CPU time for an answer in microseconds.
func (m measurement) cost() float64 {
	return float64(m.cpuTime.Nanoseconds()) / 1000 / float64(m.Total())
}

// table prints rounds as they come, and a summary at the end.
type table struct {
	names []string
	rows  [][]measurement
	out   io.Writer
}

func newTable(title string, servers []*baseline.Server, out io.Writer) *table {
	t := &table{out: out}
	fmt.Fprintf(out, "\n%s:\n\n| round |", title)
	for _, s := range servers {
		t.names = append(t.names, s.Name)
		fmt.Fprintf(out, " %s 1/s | µs |", s.Name)
	}
	fmt.Fprintf(out, "\n|--:|%s\n", strings.Repeat("--:|--:|", len(servers)))
	return t
}

func (t *table) add(row []measurement) {
	t.rows = append(t.rows, row)
	fmt.Fprintf(t.out, "| %d |", len(t.rows))
	for _, s := range row {
		fmt.Fprintf(t.out, " %.0f | %.2f |", s.rate(), s.cost())
	}
	fmt.Fprintln(t.out)
}

// summarize summarizes one figure of all rounds.
func (t *table) summarize(figure func(row []measurement) float64) results.Summary {
	figures := make([]float64, len(t.rows))
	for i, row := range t.rows {
		figures[i] = figure(row)
	}
	return results.Summarize(figures)
}

func (t *table) printSummary() {
	fmt.Fprint(t.out, "| median |")
	for i := range t.names {
		rate := t.summarize(func(row []measurement) float64 { return row[i].rate() }).Median
		cost := t.summarize(func(row []measurement) float64 { return row[i].cost() }).Median
		fmt.Fprintf(t.out, " %.0f | %.2f |", rate, cost)
	}
	fmt.Fprintf(t.out, "\n\n| | %s's rate, median | lower bound | %[1]s's µs, median | upper bound | bytes an answer | server's processor | load's processor |\n", t.names[0])
	fmt.Fprintln(t.out, "|---|--:|--:|--:|--:|--:|--:|--:|")
	for i, name := range t.names {
		rates := t.summarize(func(row []measurement) float64 { return row[0].rate() / row[i].rate() })
		costs := t.summarize(func(row []measurement) float64 { return row[0].cost() / row[i].cost() })
		fmt.Fprintf(t.out, "| of %s's | %.3f | %.3f | %.3f | %.3f |", name, rates.Median, rates.Low, costs.Median, costs.High)
		length := t.summarize(func(row []measurement) float64 { return float64(row[i].Bytes) / float64(row[i].Total()) }).Median
		server := t.summarize(func(row []measurement) float64 { return row[i].cpuTime.Seconds() / row[i].Elapsed.Seconds() }).Median
		busy := t.summarize(func(row []measurement) float64 { return row[i].Busy.Seconds() / row[i].Elapsed.Seconds() }).Median
		fmt.Fprintf(t.out, " %.0f | %.0f %% | %.0f %% |\n", length, 100*server, 100*busy)
	}
	fmt.Fprintf(t.out, "\nThe bounds are those of the 95 %% confidence interval of the median, by order statistics: of %d ratios in their order, number %d from either end.\n",
		len(t.rows), results.LowerRank(len(t.rows)))
}
