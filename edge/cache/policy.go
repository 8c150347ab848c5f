package cache

import (
	"math"
	"math/rand/v2"
	"slices"
	"sync/atomic"
)

// policyEntry is a cached value in the policy.
type policyEntry struct {
	hash uint64
	cost int64
	freq atomic.Uint32
	gone atomic.Bool // whether it is evicted
}

// touch counts a use. Losing one to a concurrent use does not matter, and the counter is not
// written at all once it is at its maximum.
func (e *policyEntry) touch() {
	if n := e.freq.Load(); n < math.MaxUint8 {
		e.freq.Store(n + 1)
	}
}

// density returns the uses per byte of the value.
func (e *policyEntry) density() float64 { return float64(e.freq.Load()) / float64(e.cost) }

const (
	// sampleSize is how many entries are compared to find a victim.
	sampleSize = 8
	// sketchRows is how many counters a hash has in the sketch.
	sketchRows = 4
	// countersPerEntry is the size of the sketch for each entry that is expected to fit.
	// loadsPerEntry is after how many loads for each such entry all counts are halved.
	countersPerEntry, loadsPerEntry = 16, 16
)

// policy decides which values are cached within a budget of bytes: those with the most uses
// per byte. A large value must be used more than a small one to stay, since several small
// ones fit in its place. It is a sampled, size-aware variant of TinyLFU (Einziger, Friedman
// and Manes, 2017).
//
// Uses of cached values are counted exactly. For all other values, a count-min sketch
// estimates how often they were loaded. A loaded value is admitted if its density is higher
// than the density of each value that must be evicted for it. The victims are the least dense
// values of small samples. All counts are halved periodically, so that values that are no longer used
// are evicted. The period is counted in loads and not in uses, so it is short just when the
// cached values are not the requested ones.
type policy struct {
	budget, used  int64
	entries       []*policyEntry
	freqSketch    []uint8 // the length is a power of two
	loads, period int
}

// newPolicy returns a policy for a budget of bytes, the sketch included. typical is the
// expected cost of a value.
func newPolicy(bytes, typical int64) *policy {
	expected := int(max(bytes/typical, 64))
	counters := 1
	for counters < countersPerEntry*expected {
		counters *= 2
	}
	return &policy{budget: bytes - int64(counters), freqSketch: make([]uint8, counters), period: loadsPerEntry * expected}
}

// admit counts a load of a value and reports whether it is to be cached, and which others are
// to be evicted for it. A value with fewer than minLoads loads is not.
func (p *policy) admit(e *policyEntry, minLoads uint32) (victims []*policyEntry, ok bool) {
	if p.loads++; p.loads%p.period == 0 {
		p.age()
	}
	e.freq.Store(uint32(p.increment(e.hash)))
	if e.cost > p.budget || e.freq.Load() < minLoads {
		return nil, false
	}
	density, staying := e.density(), len(p.entries) // entries[staying:] are victims
	for free := p.budget - p.used; free < e.cost; free += p.entries[staying].cost {
		worst := p.sampleVictim(staying)
		if p.entries[worst].density() >= density {
			return nil, false
		}
		staying--
		p.entries[worst], p.entries[staying] = p.entries[staying], p.entries[worst]
	}
	victims = slices.Clone(p.entries[staying:])
	for _, v := range victims {
		v.gone.Store(true)
		p.used -= v.cost
		p.bump(v.hash, uint8(v.freq.Load()))
	}
	clear(p.entries[staying:])
	p.entries = append(p.entries[:staying], e)
	p.used += e.cost
	return victims, true
}

// undoAdmit undoes the last admission. Its victims stay evicted.
func (p *policy) undoAdmit() {
	last := len(p.entries) - 1
	p.used -= p.entries[last].cost
	p.entries[last] = nil
	p.entries = p.entries[:last]
}

// sampleVictim returns the index of the least dense entry in a sample of the first n.
func (p *policy) sampleVictim(n int) int {
	index, least := 0, math.Inf(1)
	for range sampleSize {
		i := rand.IntN(n) //nolint:gosec // nothing secret
		if density := p.entries[i].density(); density < least {
			index, least = i, density
		}
	}
	return index
}

// counterIndexes returns the indexes of a hash's counters in the sketch.
func (p *policy) counterIndexes(hash uint64) (indexes [sketchRows]uint64) {
	step := hash>>32 | 1
	for i := range indexes {
		indexes[i] = (hash + uint64(i)*step) & uint64(len(p.freqSketch)-1)
	}
	return indexes
}

// increment counts a load of a hash and returns an estimate of how many there were.
func (p *policy) increment(hash uint64) uint8 {
	// Collisions add to some of the counters, so the smallest one is the best estimate.
	least := uint8(math.MaxUint8 - 1)
	for _, i := range p.counterIndexes(hash) {
		least = min(least, p.freqSketch[i])
	}
	p.bump(hash, least+1)
	return least + 1
}

// bump raises the counters of a hash to at least a number of loads.
func (p *policy) bump(hash uint64, to uint8) {
	for _, i := range p.counterIndexes(hash) {
		p.freqSketch[i] = max(p.freqSketch[i], to)
	}
}

// age halves all counts.
func (p *policy) age() {
	for i := range p.freqSketch {
		p.freqSketch[i] /= 2
	}
	for _, e := range p.entries {
		e.freq.Store(e.freq.Load() / 2)
	}
}
