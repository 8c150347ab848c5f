package load

import "math/rand/v2"

// Random returns an order that draws each of n requests at random, the same for the same seed.
func Random(n int, seed uint64) (order func() int) {
	random := rand.New(rand.NewPCG(seed, 0))
	return func() int { return random.IntN(n) }
}
