package edge

import (
	"math"
	"math/rand/v2"
	"slices"
	"sync/atomic"
)

// policyEntry is what the ledger knows of a value that is kept.
type policyEntry struct {
	hash uint64
	cost int64
	freq atomic.Uint32
}

// touch counts a use. One that is lost to another at the same moment does not
// matter, and values in constant use are not written to at all.
func (a *policyEntry) touch() {
	if n := a.freq.Load(); n < math.MaxUint8 {
		a.freq.Store(n + 1)
	}
}

// density returns how much a byte of the value is used.
func (a *policyEntry) density() float64 { return float64(a.freq.Load()) / float64(a.cost) }

const (
	// sampleSize is how many accounts are looked at to find one that may go.
	sampleSize = 8
	// sketchRows is how many counters a key has in the sketch.
	sketchRows = 4
	// An account is expected to have so many counters, and the past to count half
	// after so many loads for each.
	countersPerEntry, loadsPerEntry = 16, 16
)

// policy decides which values are kept within a budget of bytes: those whose
// bytes are used most. Large values must be used more than small ones to stay, as
// more of the small ones could be kept in their place.
//
// Uses of what is kept are counted exactly; of all else a sketch remembers about
// how often it was loaded. Whoever is loaded comes in if it is worth more than
// each of those that must make room, and those are the worst of small samples.
// Every so many loads all counts are halved, so that what was popular once does
// not stay for ever. The clock is loads, not uses: it runs fast just when what is
// kept is no longer what is asked for.
type policy struct {
	budget, used  int64
	entries       []*policyEntry
	freqSketch    []uint8 // a power of two of counters
	loads, period int
}

// newPolicy returns a ledger for so many bytes, its own included, in which values
// of typical cost are to be kept.
func newPolicy(bytes, typical int64) *policy {
	expected := int(max(bytes/typical, 64))
	counters := 1
	for counters < countersPerEntry*expected {
		counters *= 2
	}
	return &policy{budget: bytes - int64(counters), freqSketch: make([]uint8, counters), period: loadsPerEntry * expected}
}

// admit counts the loading of a value and says whether it is to be kept, and
// which others are to go for it.
func (l *policy) admit(a *policyEntry) (victims []*policyEntry, ok bool) {
	if l.loads++; l.loads%l.period == 0 {
		l.age()
	}
	a.freq.Store(uint32(l.increment(a.hash)))
	if a.cost > l.budget {
		return nil, false
	}
	density, staying := a.density(), len(l.entries) // accounts[staying:] are to go
	for free := l.budget - l.used; free < a.cost; free += l.entries[staying].cost {
		worst := l.sampleVictim(staying)
		if l.entries[worst].density() >= density {
			return nil, false
		}
		staying--
		l.entries[worst], l.entries[staying] = l.entries[staying], l.entries[worst]
	}
	victims = slices.Clone(l.entries[staying:])
	for _, v := range victims {
		l.used -= v.cost
		l.bump(v.hash, uint8(v.freq.Load()))
	}
	clear(l.entries[staying:])
	l.entries = append(l.entries[:staying], a)
	l.used += a.cost
	return victims, true
}

// undoAdmit takes back the last admission.
func (l *policy) undoAdmit() {
	last := len(l.entries) - 1
	l.used -= l.entries[last].cost
	l.entries[last] = nil
	l.entries = l.entries[:last]
}

// sampleVictim returns the place of the account that is worth least among a few of the
// first n.
func (l *policy) sampleVictim(n int) int {
	place, least := 0, math.Inf(1)
	for range sampleSize {
		i := rand.IntN(n) //nolint:gosec // nothing secret
		if density := l.entries[i].density(); density < least {
			place, least = i, density
		}
	}
	return place
}

// counterIndexes returns the places of a key's counters.
func (l *policy) counterIndexes(key uint64) (places [sketchRows]uint64) {
	step := key>>32 | 1
	for i := range places {
		places[i] = (key + uint64(i)*step) & uint64(len(l.freqSketch)-1)
	}
	return places
}

// increment counts a load of a key and returns about how many there were.
func (l *policy) increment(key uint64) uint8 {
	// What others have added to some of the counters is not in all of them.
	least := uint8(math.MaxUint8 - 1)
	for _, i := range l.counterIndexes(key) {
		least = min(least, l.freqSketch[i])
	}
	l.bump(key, least+1)
	return least + 1
}

// bump makes the sketch remember at least so many loads of a key.
func (l *policy) bump(key uint64, to uint8) {
	for _, i := range l.counterIndexes(key) {
		l.freqSketch[i] = max(l.freqSketch[i], to)
	}
}

// age halves all counts.
func (l *policy) age() {
	for i := range l.freqSketch {
		l.freqSketch[i] /= 2
	}
	for _, a := range l.entries {
		a.freq.Store(a.freq.Load() / 2)
	}
}
