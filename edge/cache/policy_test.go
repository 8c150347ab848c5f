package cache

import (
	"testing"

	"github.com/veneer-skins/veneer/shared/testenv"
)

// cacheSim calls a policy as a cache does.
type cacheSim struct {
	policy *policy
	cached map[uint64]*policyEntry
}

// simBudget is the budget of the policy of a cacheSim.
const simBudget = 1 << 20

func newCacheSim() cacheSim {
	return cacheSim{policy: newPolicy(simBudget, 1<<10), cached: map[uint64]*policyEntry{}}
}

// spread hashes a key.
func spread(key uint64) uint64 { return key * 0x9e3779b97f4a7c15 }

// request requests a value of a cost and reports whether it was cached.
func (c cacheSim) request(key uint64, cost int64) bool {
	key = spread(key)
	if a, ok := c.cached[key]; ok {
		a.touch()
		return true
	}
	a := &policyEntry{hash: key, cost: cost}
	victims, ok := c.policy.admit(a, 1)
	for _, v := range victims {
		delete(c.cached, v.hash)
	}
	if ok {
		c.cached[key] = a
	}
	return false
}

func TestPolicyKeepsBudget(t *testing.T) {
	t.Parallel()
	c := newCacheSim()
	for i := range uint64(100_000) {
		c.request(i*i%7919, int64(200+i%50*i%50*10))
		if l := c.policy; l.used+int64(len(l.freqSketch)) > simBudget {
			t.Fatalf("%d bytes are used, and %d by the sketch; want at most %d", l.used, len(l.freqSketch), simBudget)
		}
	}
	sum := int64(0)
	for _, a := range c.policy.entries {
		sum += a.cost
	}
	if sum != c.policy.used || len(c.cached) != len(c.policy.entries) {
		t.Errorf("%d entries add up to %d; %d are cached, and %d bytes are used", len(c.policy.entries), sum, len(c.cached), c.policy.used)
	}
	testenv.Check(t, c.policy.used >= c.policy.budget*9/10,
		"%d of %d bytes are used; want most", c.policy.used, c.policy.budget)
}

func TestPolicyPrefersUsesPerByte(t *testing.T) {
	t.Parallel()
	const small, large = 1 << 10, 16 << 10
	c := newCacheSim()
	// All values have the same uses, and only the small or the large ones fit.
	for range 20 {
		for i := range uint64(900) {
			c.request(i, small)
			if i%9 == 0 {
				c.request(1_000_000+i, large)
			}
		}
	}
	smalls := 0
	for _, a := range c.cached {
		if a.cost == small {
			smalls++
		}
	}
	testenv.Check(t, smalls >= 800,
		"%d of 900 small values are cached; want nearly all, rather than large ones", smalls)
	// A large one with enough uses is admitted.
	for range 300 {
		c.request(2_000_000, large)
	}
	testenv.Check(t, c.request(2_000_000, large), "a large value in constant use is not cached")
}

func TestScanEvictsNothingInUse(t *testing.T) {
	t.Parallel()
	c := newCacheSim()
	const inUse = 500
	hits := 0
	for round := range uint64(40) {
		for i := range uint64(inUse) {
			if c.request(i, 1<<10) {
				hits++
			}
		}
		if round < 3 {
			continue
		}
		for i := range uint64(2000) {
			c.request(1_000_000+round*2000+i, 1<<10)
		}
	}
	testenv.Check(t, hits >= 39*inUse*99/100, "%d hits in 39 rounds over %d values; want nearly all", hits, inUse)
}

func TestPolicyAges(t *testing.T) {
	t.Parallel()
	c := newCacheSim()
	use := func(from uint64, rounds int) (hits int) {
		for range rounds {
			hits = 0
			for i := range uint64(900) {
				if c.request(from+i, 1<<10) {
					hits++
				}
			}
		}
		return hits
	}
	use(0, 1000)
	if hits := use(1_000_000, 80); hits < 800 {
		t.Errorf("%d of 900 values in use are cached; want nearly all, whatever was used before", hits)
	}
}

func TestUndoAdmit(t *testing.T) {
	t.Parallel()
	c := newCacheSim()
	c.request(1, 1000)
	c.request(2, 2000)
	c.policy.undoAdmit()
	if l := c.policy; l.used != 1000 || len(l.entries) != 1 || l.entries[0].hash != spread(1) {
		t.Errorf("%d entries of %d bytes remain; want the first", len(l.entries), l.used)
	}
}
