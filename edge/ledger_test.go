package edge

import (
	"testing"
)

// customer asks a ledger for values as a cache does.
type customer struct {
	ledger *ledger
	kept   map[uint64]*account
}

// purse is what a customer's ledger may spend.
const purse = 1 << 20

func newCustomer() customer {
	return customer{ledger: newLedger(purse, 1<<10), kept: map[uint64]*account{}}
}

// spread makes keys as a hash does.
func spread(key uint64) uint64 { return key * 0x9e3779b97f4a7c15 }

// ask uses a value of some cost and reports whether it was kept already.
func (c customer) ask(key uint64, cost int64) bool {
	key = spread(key)
	if a, ok := c.kept[key]; ok {
		a.use()
		return true
	}
	a := &account{key: key, cost: cost}
	victims, ok := c.ledger.admit(a)
	for _, v := range victims {
		delete(c.kept, v.key)
	}
	if ok {
		c.kept[key] = a
	}
	return false
}

func TestLedgerKeepsToItsBudget(t *testing.T) {
	t.Parallel()
	c := newCustomer()
	for i := range uint64(100_000) {
		c.ask(i*i%7919, int64(200+i%50*i%50*10))
		if l := c.ledger; l.spent+int64(len(l.sketch)) > purse {
			t.Fatalf("%d bytes are spent and %d counters kept; want at most %d bytes", l.spent, len(l.sketch), purse)
		}
	}
	sum := int64(0)
	for _, a := range c.ledger.accounts {
		sum += a.cost
	}
	if sum != c.ledger.spent || len(c.kept) != len(c.ledger.accounts) {
		t.Errorf("%d accounts add up to %d; %d are kept, and %d bytes are spent", len(c.ledger.accounts), sum, len(c.kept), c.ledger.spent)
	}
	if c.ledger.spent < c.ledger.budget*9/10 {
		t.Errorf("%d of %d bytes are spent; want most", c.ledger.spent, c.ledger.budget)
	}
}

func TestLedgerPrefersWhatIsUsedMoreForItsSize(t *testing.T) {
	t.Parallel()
	const small, large = 1 << 10, 16 << 10
	c := newCustomer()
	// All are used alike, and only one kind fits.
	for range 20 {
		for i := range uint64(900) {
			c.ask(i, small)
			if i%9 == 0 {
				c.ask(1_000_000+i, large)
			}
		}
	}
	smalls := 0
	for _, a := range c.kept {
		if a.cost == small {
			smalls++
		}
	}
	if smalls < 800 {
		t.Errorf("%d of 900 small values are kept; want nearly all, rather than large ones", smalls)
	}
	// A large one that is used enough comes in.
	for range 300 {
		c.ask(2_000_000, large)
	}
	if !c.ask(2_000_000, large) {
		t.Error("a large value in constant use is not kept")
	}
}

func TestScanPushesOutNothingInUse(t *testing.T) {
	t.Parallel()
	c := newCustomer()
	const inUse = 500
	hits := 0
	for round := range uint64(40) {
		for i := range uint64(inUse) {
			if c.ask(i, 1<<10) {
				hits++
			}
		}
		if round < 3 {
			continue
		}
		for i := range uint64(2000) {
			c.ask(1_000_000+round*2000+i, 1<<10)
		}
	}
	if hits < 39*inUse*99/100 {
		t.Errorf("%d hits in 39 rounds over %d values; want nearly all", hits, inUse)
	}
}

func TestLedgerForgetsWhatWasPopular(t *testing.T) {
	t.Parallel()
	c := newCustomer()
	use := func(from uint64, rounds int) (hits int) {
		for range rounds {
			hits = 0
			for i := range uint64(900) {
				if c.ask(from+i, 1<<10) {
					hits++
				}
			}
		}
		return hits
	}
	use(0, 1000)
	if hits := use(1_000_000, 80); hits < 800 {
		t.Errorf("%d of 900 values in use are kept; want nearly all, whatever was used before", hits)
	}
}

func TestWithdrawUndoesAnAdmission(t *testing.T) {
	t.Parallel()
	c := newCustomer()
	c.ask(1, 1000)
	c.ask(2, 2000)
	c.ledger.withdraw()
	if l := c.ledger; l.spent != 1000 || len(l.accounts) != 1 || l.accounts[0].key != spread(1) {
		t.Errorf("%d accounts of %d bytes remain; want the first", len(l.accounts), l.spent)
	}
}
