package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/veneer-skins/veneer/bench/load"
)

// sample is what a server came to in a round.
type sample struct {
	load.Replayed
	taken time.Duration // of the processor's time, by the server
}

func (s sample) rate() float64 { return float64(s.Answers) / s.Elapsed.Seconds() }

// cost returns the microseconds of processor time that the server took for an
// answer.
func (s sample) cost() float64 { return float64(s.taken.Nanoseconds()) / 1000 / float64(s.Answers) }

// table prints rounds as they come, and in the end what they say.
type table struct {
	names []string
	rows  [][]sample
	out   io.Writer
}

func newTable(title string, rivals []*rival, out io.Writer) *table {
	t := &table{out: out}
	fmt.Fprintf(out, "\n%s:\n\n| round |", title)
	for _, s := range rivals {
		t.names = append(t.names, s.name)
		fmt.Fprintf(out, " %s 1/s | µs |", s.name)
	}
	fmt.Fprintf(out, "\n|--:|%s\n", strings.Repeat("--:|--:|", len(rivals)))
	return t
}

func (t *table) add(row []sample) {
	t.rows = append(t.rows, row)
	fmt.Fprintf(t.out, "| %d |", len(t.rows))
	for _, s := range row {
		fmt.Fprintf(t.out, " %.0f | %.2f |", s.rate(), s.cost())
	}
	fmt.Fprintln(t.out)
}

// of returns one figure of every round.
func (t *table) of(figure func(row []sample) float64) []float64 {
	figures := make([]float64, len(t.rows))
	for i, row := range t.rows {
		figures[i] = figure(row)
	}
	slices.Sort(figures)
	return figures
}

func (t *table) conclude() {
	fmt.Fprint(t.out, "| median |")
	for i := range t.names {
		rate := median(t.of(func(row []sample) float64 { return row[i].rate() }))
		cost := median(t.of(func(row []sample) float64 { return row[i].cost() }))
		fmt.Fprintf(t.out, " %.0f | %.2f |", rate, cost)
	}
	fmt.Fprint(t.out, "\n\n| | edge's rate, median | lower bound | edge's µs, median | upper bound | bytes an answer | server's processor | load's processor |\n")
	fmt.Fprintln(t.out, "|---|--:|--:|--:|--:|--:|--:|--:|")
	for i, name := range t.names {
		rates := t.of(func(row []sample) float64 { return row[0].rate() / row[i].rate() })
		costs := t.of(func(row []sample) float64 { return row[0].cost() / row[i].cost() })
		rank := lowerRank(len(t.rows))
		fmt.Fprintf(t.out, "| of %s's | %.3f | %.3f | %.3f | %.3f |", name, median(rates), rates[rank-1], median(costs), costs[len(costs)-rank])
		length := median(t.of(func(row []sample) float64 { return float64(row[i].Bytes) / float64(row[i].Answers) }))
		server := median(t.of(func(row []sample) float64 { return row[i].taken.Seconds() / row[i].Elapsed.Seconds() }))
		busy := median(t.of(func(row []sample) float64 { return row[i].Busy.Seconds() / row[i].Elapsed.Seconds() }))
		fmt.Fprintf(t.out, " %.0f | %.0f %% | %.0f %% |\n", length, 100*server, 100*busy)
	}
	fmt.Fprintf(t.out, "\nThe bounds are those of the 95 %% confidence interval of the median, by order statistics: of %d ratios in their order, number %d from either end.\n",
		len(t.rows), lowerRank(len(t.rows)))
}

// median returns the middle of what is sorted.
func median(sorted []float64) float64 {
	middle := len(sorted) / 2
	if len(sorted)%2 == 0 {
		return (sorted[middle-1] + sorted[middle]) / 2
	}
	return sorted[middle]
}

// lowerRank returns which of n sorted values, counted from 1, is the lower bound of
// the 95 % confidence interval of the median: the highest that is above the true
// median in at most 2.5 % of all cases, whatever the values' distribution. It is 0
// for fewer than 6 values, which say nothing so sure. Counted from the other end it
// is the upper bound.
func lowerRank(n int) int {
	// Each value is below the true median with a chance of one half. The bound at
	// rank k is too high if fewer than k of them are.
	chance, fewer := math.Pow(0.5, float64(n)), 0.0
	for k := range n {
		if fewer += chance; fewer > 0.025 {
			return k
		}
		chance *= float64(n-k) / float64(k+1)
	}
	return n
}
