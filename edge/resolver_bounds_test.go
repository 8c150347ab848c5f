package edge

import (
	"context"
	"fmt"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/veneer-skins/veneer/shared/edgeproto"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// stubCore is a core in which every key exists.
type stubCore struct{}

func (stubCore) StartLookups(_ context.Context, keys []edgeproto.Key, done LookupsDone) error {
	go func() {
		for i, key := range keys {
			done(i, edgeproto.Mapping{Player: &edgeproto.Player{Name: string(key)}}, at(10), nil)
		}
	}()
	return nil
}

func (stubCore) WouldReject(edgeproto.Key, netip.Prefix) error { return nil }
func (stubCore) Probe(done func(error))                        { go done(nil) }

func TestResolverIsBoundedAndScanResistant(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const budget = 1 << 18
		m := NewResolver(ResolverConfig{Bytes: budget, NegativeBytes: 1 << 16, MaxStale: time.Hour}, stubCore{})
		s := script{T: t, resolver: m}
		s.begin()

		hot := make([]edgeproto.Key, 64)
		for i := range hot {
			hot[i] = edgeproto.TIDKey(int64(i))
		}
		look := func(key edgeproto.Key) LookupResult {
			_, source, err := m.Lookup(t.Context(), key)
			testenv.Do(t, err)
			return source
		}
		for i := range 20_000 {
			key := edgeproto.NameKey(fmt.Sprintf("player%d", i))
			look(key)
			if source := look(hot[i%len(hot)]); i > 2*len(hot) && source != LookupHit {
				t.Fatalf("after %d keys that are requested once, a key in constant use is not cached", i)
			}
			if i%7 == 0 {
				s.apply(edgeproto.Event{Cursor: at(10), Keys: []edgeproto.Key{key, edgeproto.NameKey(fmt.Sprintf("player%d", i/2))}})
			}
			if used := m.usage(positivePart); used.bytes > budget {
				t.Fatalf("%d mappings take %d bytes; want at most %d", used.count, used.bytes, budget)
			}
		}
		if used := m.usage(positivePart); used.count < 400 || used.evicted == 0 {
			t.Errorf("%d mappings remain and %d were evicted; the budget has room for more", used.count, used.evicted)
		}

		s.apply(edgeproto.Event{Cursor: at(11), Start: true})
		if used := m.usage(positivePart); used.count != 0 || used.bytes != 0 {
			t.Errorf("after a flush, %d mappings take %d bytes", used.count, used.bytes)
		}
	})
}

// positivePart and negativePart are the parts of a shard.
func positivePart(s *shard) *mappingCache { return s.positive }
func negativePart(s *shard) *mappingCache { return s.negative }

// halfCore is a core in which only names with an initial "y" exist.
type halfCore struct{ stubCore }

func (h halfCore) StartLookups(ctx context.Context, keys []edgeproto.Key, done LookupsDone) error {
	if keys[0][len(edgeproto.NamePrefix)] == 'y' {
		return h.stubCore.StartLookups(ctx, keys, done)
	}
	go done(0, edgeproto.Mapping{}, at(10), nil)
	return nil
}

func TestNegativeEntriesHaveTheirOwnBudget(t *testing.T) {
	t.Parallel()
	for flood, others := range map[string]string{"no": "yes", "yes": "no"} {
		synctest.Test(t, func(t *testing.T) {
			const budget = 1 << 18
			m := NewResolver(ResolverConfig{Bytes: budget, NegativeBytes: budget, MaxStale: time.Hour}, halfCore{})
			script{T: t, resolver: m}.begin()
			look := func(name string) LookupResult {
				_, source, err := m.Lookup(t.Context(), edgeproto.NameKey(name))
				testenv.Do(t, err)
				return source
			}
			const few = 200
			for i := range few {
				look(fmt.Sprintf("%s%d", others, i))
			}
			for i := range 10_000 {
				look(fmt.Sprintf("%s%d", flood, i))
				for name, part := range map[string]func(*shard) *mappingCache{"existing": positivePart, "missing": negativePart} {
					if used := m.usage(part); i%1000 == 0 && used.bytes > budget {
						t.Fatalf("%s: %d bytes; want at most %d", name, used.bytes, budget)
					}
				}
			}
			for i := range few {
				name := fmt.Sprintf("%s%d", others, i)
				testenv.Check(t, look(name) == LookupHit, "%s is not cached after a flood of %s", name, flood)
			}
		})
	}
}

func TestNegativeEntryBecomesPositive(t *testing.T) {
	t.Parallel()
	runScript(t, func(s script) {
		s.ask(key, edgeproto.Mapping{}, at(10))
		testenv.Equal(s, s.resolver.usage(negativePart).count, 1, "negative entries")
		s.change(11, key)
		s.learn(key, 1, 11)
		absent, present := s.resolver.usage(negativePart).count, s.resolver.usage(positivePart).count
		testenv.Check(s, absent == 0 && present == 1,
			"%d negative and %d positive entries; want 0 and 1", absent, present)
	})
}
