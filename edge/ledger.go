package edge

import (
	"math"
	"math/rand/v2"
	"slices"
	"sync/atomic"
)

// account is what the ledger knows of a value that is kept.
type account struct {
	key  uint64
	cost int64
	uses atomic.Uint32
}

// use counts a use. One that is lost to another at the same moment does not
// matter, and values in constant use are not written to at all.
func (a *account) use() {
	if n := a.uses.Load(); n < math.MaxUint8 {
		a.uses.Store(n + 1)
	}
}

// worth returns how much a byte of the value is used.
func (a *account) worth() float64 { return float64(a.uses.Load()) / float64(a.cost) }

const (
	// sampleSize is how many accounts are looked at to find one that may go.
	sampleSize = 8
	// rows is how many counters a key has in the sketch.
	rows = 4
	// An account is expected to have so many counters, and the past to count half
	// after so many loads for each.
	countersEach, loadsEach = 16, 16
)

// ledger decides which values are kept within a budget of bytes: those whose
// bytes are used most. Large values must be used more than small ones to stay, as
// more of the small ones could be kept in their place.
//
// Uses of what is kept are counted exactly; of all else a sketch remembers about
// how often it was loaded. Whoever is loaded comes in if it is worth more than
// each of those that must make room, and those are the worst of small samples.
// Every so many loads all counts are halved, so that what was popular once does
// not stay for ever. The clock is loads, not uses: it runs fast just when what is
// kept is no longer what is asked for.
type ledger struct {
	budget, spent int64
	accounts      []*account
	sketch        []uint8 // a power of two of counters
	loads, period int
}

// newLedger returns a ledger for so many bytes, its own included, in which values
// of typical cost are to be kept.
func newLedger(bytes, typical int64) *ledger {
	expected := int(max(bytes/typical, 64))
	counters := 1
	for counters < countersEach*expected {
		counters *= 2
	}
	return &ledger{budget: bytes - int64(counters), sketch: make([]uint8, counters), period: loadsEach * expected}
}

// admit counts the loading of a value and says whether it is to be kept, and
// which others are to go for it.
func (l *ledger) admit(a *account) (victims []*account, ok bool) {
	if l.loads++; l.loads%l.period == 0 {
		l.age()
	}
	a.uses.Store(uint32(l.count(a.key)))
	if a.cost > l.budget {
		return nil, false
	}
	worth, staying := a.worth(), len(l.accounts) // accounts[staying:] are to go
	for room := l.budget - l.spent; room < a.cost; room += l.accounts[staying].cost {
		worst := l.worst(staying)
		if l.accounts[worst].worth() >= worth {
			return nil, false
		}
		staying--
		l.accounts[worst], l.accounts[staying] = l.accounts[staying], l.accounts[worst]
	}
	victims = slices.Clone(l.accounts[staying:])
	for _, v := range victims {
		l.spent -= v.cost
		l.raise(v.key, uint8(v.uses.Load()))
	}
	clear(l.accounts[staying:])
	l.accounts = append(l.accounts[:staying], a)
	l.spent += a.cost
	return victims, true
}

// withdraw takes back the last admission.
func (l *ledger) withdraw() {
	last := len(l.accounts) - 1
	l.spent -= l.accounts[last].cost
	l.accounts[last] = nil
	l.accounts = l.accounts[:last]
}

// worst returns the place of the account that is worth least among a few of the
// first n.
func (l *ledger) worst(n int) int {
	place, least := 0, math.Inf(1)
	for range sampleSize {
		i := rand.IntN(n) //nolint:gosec // nothing secret
		if worth := l.accounts[i].worth(); worth < least {
			place, least = i, worth
		}
	}
	return place
}

// counters returns the places of a key's counters.
func (l *ledger) counters(key uint64) (places [rows]uint64) {
	step := key>>32 | 1
	for i := range places {
		places[i] = (key + uint64(i)*step) & uint64(len(l.sketch)-1)
	}
	return places
}

// count counts a load of a key and returns about how many there were.
func (l *ledger) count(key uint64) uint8 {
	// What others have added to some of the counters is not in all of them.
	least := uint8(math.MaxUint8 - 1)
	for _, i := range l.counters(key) {
		least = min(least, l.sketch[i])
	}
	l.raise(key, least+1)
	return least + 1
}

// raise makes the sketch remember at least so many loads of a key.
func (l *ledger) raise(key uint64, to uint8) {
	for _, i := range l.counters(key) {
		l.sketch[i] = max(l.sketch[i], to)
	}
}

// age halves all counts.
func (l *ledger) age() {
	for i := range l.sketch {
		l.sketch[i] /= 2
	}
	for _, a := range l.accounts {
		a.uses.Store(a.uses.Load() / 2)
	}
}
