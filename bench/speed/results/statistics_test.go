package results

import (
	"math/big"
	"slices"
	"testing"
)

func TestLowerRank(t *testing.T) {
	t.Parallel()

	// From tables of the sign test.
	for n, want := range map[int]int{1: 0, 5: 0, 6: 1, 8: 1, 9: 2, 20: 6, 30: 10, 50: 18} {
		if got := LowerRank(n); got != want {
			t.Errorf("LowerRank(%d) = %d; want %d", n, got, want)
		}
	}
	// 40 times the number of ways in which fewer than k of n values can be low must be at most
	// the number of all ways.
	for n := range 200 {
		k, fewer := 0, new(big.Int)
		for all := new(big.Int).Lsh(big.NewInt(1), uint(n)); ; k++ {
			fewer.Add(fewer, new(big.Int).Binomial(int64(n), int64(k)))
			if new(big.Int).Mul(fewer, big.NewInt(40)).Cmp(all) > 0 {
				break
			}
		}
		if got := LowerRank(n); n > 0 && got != k {
			t.Errorf("LowerRank(%d) = %d; want %d", n, got, k)
		}
	}
}

func TestMedian(t *testing.T) {
	t.Parallel()

	if odd, even := Median([]float64{1, 2, 9}), Median([]float64{1, 2, 4, 9}); odd != 2 || even != 3 {
		t.Errorf("medians: %v and %v; want 2 and 3", odd, even)
	}
}

func TestSummarize(t *testing.T) {
	t.Parallel()

	rounds := []float64{7, 1, 5, 9, 3, 8, 2, 6, 4} // the bounds are the second from either end
	if got, want := Summarize(rounds), (Summary{Median: 5, Low: 2, High: 8}); got != want || !got.Bounded() {
		t.Errorf("Summarize(%v) = %+v; want %+v", rounds, got, want)
	}
	if rounds[0] != 7 {
		t.Error("the rounds are not in their order any more")
	}
	if got := Summarize(rounds[:5]); got.Median != 5 || got.Bounded() || got.Low > -1e300 {
		t.Errorf("five rounds: %+v; want no bounds", got)
	}
}

// Of all permutations of n rounds, Trend finds a trend in nearly one of a hundred, and in no more.
func TestTrend(t *testing.T) {
	t.Parallel()

	for _, n := range []int{8, 11, 15, 20, 30} {
		// The number of permutations by falling pairs: those of one round fewer, with the
		// last at any position.
		orders := []*big.Int{big.NewInt(1)}
		for rounds := 2; rounds <= n; rounds++ {
			more := make([]*big.Int, len(orders)+rounds-1)
			for i := range more {
				more[i] = new(big.Int)
			}
			for falling, count := range orders {
				for place := range rounds {
					more[falling+place].Add(more[falling+place], count)
				}
			}
			orders = more
		}
		all, found := new(big.Int).MulRange(1, int64(n)), new(big.Int)
		for falling, count := range orders {
			if trend := Trend(inOrder(n, falling)); trend != 0 {
				found.Add(found, count)
				if rises := falling < n*(n-1)/4; rises != (trend > 0) {
					t.Errorf("%d of %d pairs fall: %d", falling, n*(n-1)/2, trend)
				}
			}
		}
		share, _ := new(big.Rat).SetFrac(found, all).Float64()
		if share > 0.01 || share < 0.005 {
			t.Errorf("%d rounds have a trend in %v of all orders", n, share)
		}
	}
	if Trend(inOrder(7, 0)) != 0 || Trend(make([]float64, 20)) != 0 {
		t.Error("there is a trend in few rounds, or in equal ones")
	}
}

// inOrder returns n values with so many falling pairs.
func inOrder(n, falling int) (values []float64) {
	for i := range n {
		place := min(falling, i) // from the end
		falling -= place
		values = slices.Insert(values, i-place, float64(i))
	}
	return values
}
