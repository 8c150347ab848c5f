package load

import (
	"math"
	"math/rand/v2"
	"sort"
)

// Zipf draws numbers by Zipf's law: 0 is the most popular one, and number k is drawn
// (k+1)^exponent times less often.
type Zipf struct{ sums []float64 }

// NewZipf returns a Zipf of the numbers below n. The exponent is 0, which is uniform, or more.
func NewZipf(n int, exponent float64) Zipf {
	sums, sum := make([]float64, n), 0.0
	for rank := range sums {
		sum += math.Pow(float64(rank+1), -exponent)
		sums[rank] = sum
	}
	return Zipf{sums}
}

// Draw returns a number. It costs a binary search in n sums.
func (z Zipf) Draw(random *rand.Rand) int {
	last := len(z.sums) - 1
	return min(sort.SearchFloat64s(z.sums, random.Float64()*z.sums[last]), last)
}
