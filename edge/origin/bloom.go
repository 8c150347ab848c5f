package origin

import (
	"hash/maphash"
	"sync"
	"sync/atomic"

	"github.com/veneer-skins/veneer/shared/edgeproto"
)

// bloomFilter remembers which keys have led somewhere lately, or have changed, in little room: a Bloom filter. For
// each key it sets some bits of many. A key whose bits are set by others is taken for one
// of them.
//
// It remembers in two generations. When enough keys are new in the present one, that
// becomes the former one, and what was the former is forgotten; what is met again lives
// on. So at least the last bloomGenerationKeys keys are remembered, and at most one stranger in
// four hundred is taken for one of them: in a generation that is full a bit is set with a
// probability of 1-exp(-bloomBitsPerKey*bloomGenerationKeys/bloomBits).
type bloomFilter struct {
	seed        maphash.Seed
	generations atomic.Pointer[generations]

	mu    sync.Mutex // whoever adds
	added int        // keys that are new in the present generation
}

type generations struct{ current, previous *bitset }

type bitset [bloomBits / 64]atomic.Uint64

const (
	bloomBits           = 1 << 24 // 2 MiB
	bloomGenerationKeys = 1_000_000
	bloomBitsPerKey     = 5
)

func newBloomFilter() *bloomFilter {
	m := &bloomFilter{seed: maphash.MakeSeed()}
	m.generations.Store(&generations{new(bitset), new(bitset)})
	return m
}

func (m *bloomFilter) add(key edgeproto.Key) {
	m.mu.Lock()
	defer m.mu.Unlock()
	all, positions := m.generations.Load(), m.bitPositions(key)
	if all.current.has(positions) {
		return
	}
	if m.added == bloomGenerationKeys {
		m.added = 0
		all = &generations{new(bitset), all.current}
		m.generations.Store(all)
	}
	m.added++
	for _, position := range positions {
		all.current[position/64].Or(1 << (position % 64))
	}
}

func (m *bloomFilter) has(key edgeproto.Key) bool {
	all, positions := m.generations.Load(), m.bitPositions(key)
	return all.current.has(positions) || all.previous.has(positions)
}

func (b *bitset) has(positions [bloomBitsPerKey]uint64) bool {
	for _, position := range positions {
		if b[position/64].Load()&(1<<(position%64)) == 0 {
			return false
		}
	}
	return true
}

// bitPositions returns the bits of a key: where it begins, and steps of one length from there.
func (m *bloomFilter) bitPositions(key edgeproto.Key) (all [bloomBitsPerKey]uint64) {
	digest := maphash.String(m.seed, string(key))
	position, step := digest, digest>>32|1
	for i := range all {
		all[i] = position % bloomBits
		position += step
	}
	return all
}
