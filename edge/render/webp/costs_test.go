package webp

import (
	"testing"

	"github.com/veneer-skins/veneer/shared/testenv"
)

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
	testenv.Equal(t, costOf(most)-costOf(1), uint64((most-1)*channelSymbols*pixel),
		"the largest picture costs more than the smallest by")
}
