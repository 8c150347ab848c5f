package origin

import (
	"hash/maphash"
	"sync"
	"sync/atomic"

	"github.com/veneer-skins/veneer/shared/mapping"
)

// met remembers which keys have led somewhere lately, or have changed, in little room: a Bloom filter. For
// each key it sets some bits of many. A key whose bits are set by others is taken for one
// of them.
//
// It remembers in two generations. When enough keys are new in the present one, that
// becomes the former one, and what was the former is forgotten; what is met again lives
// on. So at least the last metEach keys are remembered, and at most one stranger in
// four hundred is taken for one of them: in a generation that is full a bit is set with a
// probability of 1-exp(-metPlaces*metEach/metBits).
type met struct {
	seed        maphash.Seed
	generations atomic.Pointer[generations]

	mu    sync.Mutex // whoever adds
	fresh int        // keys that are new in the present generation
}

type generations struct{ present, former *bits }

type bits [metBits / 64]atomic.Uint64

const (
	metBits   = 1 << 24 // 2 MiB
	metEach   = 1_000_000
	metPlaces = 5
)

func newMet() *met {
	m := &met{seed: maphash.MakeSeed()}
	m.generations.Store(&generations{new(bits), new(bits)})
	return m
}

func (m *met) add(key mapping.Key) {
	m.mu.Lock()
	defer m.mu.Unlock()
	all, places := m.generations.Load(), m.places(key)
	if all.present.has(places) {
		return
	}
	if m.fresh == metEach {
		m.fresh = 0
		all = &generations{new(bits), all.present}
		m.generations.Store(all)
	}
	m.fresh++
	for _, at := range places {
		all.present[at/64].Or(1 << (at % 64))
	}
}

func (m *met) has(key mapping.Key) bool {
	all, places := m.generations.Load(), m.places(key)
	return all.present.has(places) || all.former.has(places)
}

func (b *bits) has(places [metPlaces]uint64) bool {
	for _, at := range places {
		if b[at/64].Load()&(1<<(at%64)) == 0 {
			return false
		}
	}
	return true
}

// places returns the bits of a key: where it begins, and steps of one length from there.
func (m *met) places(key mapping.Key) (all [metPlaces]uint64) {
	digest := maphash.String(m.seed, string(key))
	at, step := digest, digest>>32|1
	for i := range all {
		all[i] = at % metBits
		at += step
	}
	return all
}
