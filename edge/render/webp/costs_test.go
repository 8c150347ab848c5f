package webp

import "testing"

// The cost of the largest picture of noise does not overflow.
func TestCostDoesNotOverflow(t *testing.T) {
	t.Parallel()

	// costOf returns the cost of noise in which every value of every channel occurs so often.
	costOf := func(often uint32) uint64 {
		var h histogram
		h.reset(0)
		for v := range channelSymbols {
			h.green[v], h.red[v], h.blue[v], h.alpha[v] = often, often, often, often
		}
		return h.cost()
	}

	const pixel = 32 * perBit
	const most = maxSide * maxSide / channelSymbols
	if got, want := costOf(most)-costOf(1), uint64((most-1)*channelSymbols*pixel); got != want {
		t.Errorf("the largest picture costs %d more than the smallest; want %d", got, want)
	}
}
