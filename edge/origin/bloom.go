package origin

import (
	"hash/maphash"
	"sync"
	"sync/atomic"

	"github.com/veneer-skins/veneer/shared/edgeproto"
)

// bloomFilter is a Bloom filter of keys that are known to exist, since a look-up has found
// them or core has named them in a change.
//
// It has two generations. When the current one is full, it becomes the previous one, and the
// keys of the latter are dropped unless they were added again. So it holds at least the last
// bloomGenerationKeys keys. At most one absent key in four hundred is a false positive: a bit
// of a full generation is set with the probability
// 1-exp(-bloomBitsPerKey*bloomGenerationKeys/bloomBits).
type bloomFilter struct {
	seed        maphash.Seed
	generations atomic.Pointer[generations]

	mu    sync.Mutex // serialises add
	added int        // keys in the current generation
}

type generations struct{ current, previous *bitset }

type bitset [bloomBits / 64]atomic.Uint64

const (
	bloomBits           = 1 << 24 // 2 MiB a generation
	bloomGenerationKeys = 1_000_000
	bloomBitsPerKey     = 5
)

func newBloomFilter() *bloomFilter {
	f := &bloomFilter{seed: maphash.MakeSeed()}
	f.generations.Store(&generations{new(bitset), new(bitset)})
	return f
}

func (f *bloomFilter) add(key edgeproto.Key) {
	f.mu.Lock()
	defer f.mu.Unlock()
	gens, positions := f.generations.Load(), f.bitPositions(key)
	if gens.current.has(positions) {
		return
	}
	if f.added == bloomGenerationKeys {
		f.added = 0
		gens = &generations{new(bitset), gens.current}
		f.generations.Store(gens)
	}
	f.added++
	for _, position := range positions {
		gens.current[position/64].Or(1 << (position % 64))
	}
}

func (f *bloomFilter) has(key edgeproto.Key) bool {
	gens, positions := f.generations.Load(), f.bitPositions(key)
	return gens.current.has(positions) || gens.previous.has(positions)
}

func (b *bitset) has(positions [bloomBitsPerKey]uint64) bool {
	for _, position := range positions {
		if b[position/64].Load()&(1<<(position%64)) == 0 {
			return false
		}
	}
	return true
}

// bitPositions returns the bits of a key by double hashing: a start and a constant step.
func (f *bloomFilter) bitPositions(key edgeproto.Key) (positions [bloomBitsPerKey]uint64) {
	digest := maphash.String(f.seed, string(key))
	position, step := digest, digest>>32|1
	for i := range positions {
		positions[i] = position % bloomBits
		position += step
	}
	return positions
}
