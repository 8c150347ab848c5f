package load_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/veneer-skins/veneer/bench/speed/load"
)

func TestZipfShape(t *testing.T) {
	t.Parallel()

	const n, draws = 1000, 1_000_000
	for _, exponent := range []float64{0, 0.9, 1.2} {
		z, random := load.NewZipf(n, exponent), rand.New(rand.NewPCG(1, 2))
		counts := make([]float64, n)
		for range draws {
			counts[z.Draw(random)]++
		}
		sum := 0.0
		for k := range n {
			sum += math.Pow(float64(k+1), -exponent)
		}
		// Six standard deviations of each count, which none of so many exceeds by chance.
		for k, count := range counts {
			want := draws * math.Pow(float64(k+1), -exponent) / sum
			if math.Abs(count-want) > 6*math.Sqrt(want) {
				t.Errorf("of exponent %v, number %d was drawn %.0f times; want about %.0f", exponent, k, count, want)
			}
		}
	}
}
