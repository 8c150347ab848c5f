package load

import (
	"math"
	"math/rand/v2"
	"sort"
)

// Random returns an order that draws each of n requests at random, the same for the same seed.
func Random(n int, seed uint64) (order func() int) {
	random := rand.New(rand.NewPCG(seed, 0))
	return func() int { return random.IntN(n) }
}

// Once returns the order in which each of n requests is sent once.
func Once(n int) (order func() int) { return Repeat(n, 1) }

// Repeat returns the order in which n requests are sent some times, one after the other.
func Repeat(n, times int) (order func() int) {
	next := -1
	return func() int {
		if next++; next >= n*times {
			return -1
		}
		return next % n
	}
}

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
