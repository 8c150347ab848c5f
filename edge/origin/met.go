package origin

import (
	"hash/maphash"
	"sync/atomic"

	"github.com/veneer-skins/veneer/shared/mapping"
)

// met remembers for ever which keys have led somewhere, in little room: for each
// it sets two bits of many. A key whose bits are set by others is taken for one of
// them, which is one in eighty once a million are remembered.
type met struct {
	seed maphash.Seed
	bits []atomic.Uint64
}

// metBits is 2 MiB of them.
const metBits = 1 << 24

func newMet() *met { return &met{seed: maphash.MakeSeed(), bits: make([]atomic.Uint64, metBits/64)} }

func (m *met) add(key mapping.Key) {
	for _, at := range m.places(key) {
		m.bits[at/64].Or(1 << (at % 64))
	}
}

func (m *met) has(key mapping.Key) bool {
	for _, at := range m.places(key) {
		if m.bits[at/64].Load()&(1<<(at%64)) == 0 {
			return false
		}
	}
	return true
}

func (m *met) places(key mapping.Key) [2]uint64 {
	digest := maphash.String(m.seed, string(key))
	return [...]uint64{digest % metBits, digest >> 32 % metBits}
}
