package results

import (
	"cmp"
	"math"
	"slices"
)

// Summary is the median of rounds with its bounds.
type Summary struct {
	Median float64
	// The bounds of the median's 95 % confidence interval. They are infinite for fewer than 6
	// rounds, which are too few for it.
	Low, High float64
}

// Bounded reports whether there were enough rounds for bounds.
func (s Summary) Bounded() bool { return !math.IsInf(s.High, 1) }

// Summarize returns the median of at least one round, and its bounds by order statistics: of the
// sorted rounds, the one of LowerRank, counted from either end.
func Summarize(rounds []float64) Summary {
	sorted := slices.Sorted(slices.Values(rounds))
	s := Summary{Median: Median(sorted), Low: math.Inf(-1), High: math.Inf(1)}
	if rank := LowerRank(len(sorted)); rank > 0 {
		s.Low, s.High = sorted[rank-1], sorted[len(sorted)-rank]
	}
	return s
}

// Median returns the median of sorted values.
func Median(sorted []float64) float64 {
	middle := len(sorted) / 2
	if len(sorted)%2 == 0 {
		return (sorted[middle-1] + sorted[middle]) / 2
	}
	return sorted[middle]
}

// Trend reports whether rounds rise (above 0) or fall (below 0) from the first to the last, by the
// Mann-Kendall test with a false positive rate of one in a hundred. It is 0 for fewer than 8
// rounds.
//
// Source: M. G. Kendall, Rank Correlation Methods, chapter 4.
func Trend(rounds []float64) int {
	n := len(rounds)
	if n < 8 {
		return 0
	}
	rising := 0
	for i := range rounds {
		for _, later := range rounds[i+1:] {
			rising += cmp.Compare(later, rounds[i])
		}
	}
	const sure = 2.576 // standard deviations
	if math.Abs(float64(rising)) < 1+sure*math.Sqrt(float64(n*(n-1)*(2*n+5))/18) {
		return 0
	}
	return cmp.Compare(rising, 0)
}

// LowerRank returns which of n sorted values, counted from 1, is the lower bound of the 95 %
// confidence interval of the median: the highest that is above the true median in at most 2.5 % of
// all cases, whatever the values' distribution. It is 0 for fewer than 6 values, which are too few
// for it. Counted from the other end it is the upper bound.
func LowerRank(n int) int {
	// Each value is below the true median with a chance of one half. The bound at rank k is too
	// high if fewer than k of them are.
	chance, fewer := math.Pow(0.5, float64(n)), 0.0
	for k := range n {
		if fewer += chance; fewer > 0.025 {
			return k
		}
		chance *= float64(n-k) / float64(k+1)
	}
	return n
}
