// Package bloom holds a Bloom filter of the keys that were found last.
package bloom

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
)

// Filter is a Bloom filter of keys that are known to exist, since a look-up has found them or a
// change has named them.
//
// It has two generations. When the current one is full, it becomes the previous one, and the
// keys of the latter are dropped unless they were added again. So it holds at least the last
// generationKeys keys. At most one absent key in four hundred is a false positive: a bit
// of a full generation is set with the probability
// 1-exp(-bitsPerKey*generationKeys/bits).
type Filter struct {
	seed        maphash.Seed
	generations atomic.Pointer[generations]

	mu    sync.Mutex // serialises Add
	added int        // keys in the current generation
}

type generations struct{ current, previous *bitset }

type bitset [bits / 64]atomic.Uint64

const (
	bits           = 1 << 24 // 2 MiB a generation
	generationKeys = 1_000_000
	bitsPerKey     = 5
)

// New returns an empty filter, of 4 MiB.
func New() *Filter {
	f := &Filter{seed: maphash.MakeSeed()}
	f.generations.Store(&generations{new(bitset), new(bitset)})
	return f
}

// Add adds a key.
func (f *Filter) Add(key string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	gens, positions := f.generations.Load(), f.bitPositions(key)
	if gens.current.has(positions) {
		return
	}
	if f.added == generationKeys {
		f.added = 0
		gens = &generations{new(bitset), gens.current}
		f.generations.Store(gens)
	}
	f.added++
	for _, position := range positions {
		gens.current[position/64].Or(1 << (position % 64))
	}
}

// Has reports whether a key was added; of absent keys it says so for one in four hundred.
func (f *Filter) Has(key string) bool {
	gens, positions := f.generations.Load(), f.bitPositions(key)
	return gens.current.has(positions) || gens.previous.has(positions)
}

func (b *bitset) has(positions [bitsPerKey]uint64) bool {
	for _, position := range positions {
		if b[position/64].Load()&(1<<(position%64)) == 0 {
			return false
		}
	}
	return true
}

// bitPositions returns the bits of a key by double hashing: a start and a constant step.
func (f *Filter) bitPositions(key string) (positions [bitsPerKey]uint64) {
	digest := maphash.String(f.seed, key)
	position, step := digest, digest>>32|1
	for i := range positions {
		positions[i] = position % bits
		position += step
	}
	return positions
}
