package edge

import (
	"context"
	"fmt"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/veneer-skins/veneer/shared/mapping"
)

// instant is a core that knows every key and answers at once.
type instant struct{}

func (instant) Ask(_ context.Context, key mapping.Key, answer func(mapping.Mapping, mapping.Position, error)) error {
	go answer(mapping.Mapping{Player: &mapping.Player{Name: string(key)}}, at(10), nil)
	return nil
}

func (instant) Refusal(mapping.Key, netip.Prefix) error { return nil }
func (instant) Probe(done func(error))                  { go done(nil) }

func TestMemoryIsBoundedAndHotKeysSurviveAScan(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const budget = 1 << 18
		m, err := NewMappings(MappingsConfig{Bytes: budget, NegativeBytes: 1 << 16, MaxStale: time.Hour}, instant{})
		if err != nil {
			t.Fatal(err)
		}
		s := script{T: t, m: m}
		s.apply(mapping.Event{Position: at(10), Start: true})
		s.beat(10)

		hot := make([]mapping.Key, 64)
		for i := range hot {
			hot[i] = mapping.TID(int64(i))
		}
		look := func(key mapping.Key) Source {
			_, source, err := m.Lookup(t.Context(), key)
			if err != nil {
				t.Fatal(err)
			}
			return source
		}
		for i := range 20_000 {
			key := mapping.Name(fmt.Sprintf("visitor%d", i))
			look(key)
			if source := look(hot[i%len(hot)]); i > 2*len(hot) && source != Kept {
				t.Fatalf("after %d keys that nobody asks for again, a key in constant use is forgotten", i)
			}
			if i%7 == 0 {
				s.apply(mapping.Event{Position: at(10), Keys: []mapping.Key{key, mapping.Name(fmt.Sprintf("visitor%d", i/2))}})
			}
			if used := m.usage(existing); used.bytes > budget {
				t.Fatalf("%d mappings take %d bytes; want at most %d", used.count, used.bytes, budget)
			}
		}
		if used := m.usage(existing); used.count < 400 || used.evicted == 0 {
			t.Errorf("%d mappings remain and %d were evicted; the budget has room for more", used.count, used.evicted)
		}

		s.apply(mapping.Event{Position: at(11), Start: true})
		if used := m.usage(existing); used.count != 0 || used.bytes != 0 {
			t.Errorf("after all is forgotten, %d mappings take %d bytes", used.count, used.bytes)
		}
	})
}

// existing and missing are the parts of a shard.
func existing(s *shard) *memories { return s.existing }
func missing(s *shard) *memories  { return s.missing }

// half is a core that knows every name that begins with a "y", and no other.
type half struct{}

func (half) Ask(ctx context.Context, key mapping.Key, answer func(mapping.Mapping, mapping.Position, error)) error {
	if key[len(mapping.NamePrefix)] == 'y' {
		return instant{}.Ask(ctx, key, answer)
	}
	go answer(mapping.Mapping{}, at(10), nil)
	return nil
}

func (half) Refusal(mapping.Key, netip.Prefix) error { return nil }
func (half) Probe(done func(error))                  { go done(nil) }

func TestNamesThatLeadNowherePushOutNoOthers(t *testing.T) {
	t.Parallel()
	for flood, others := range map[string]string{"no": "yes", "yes": "no"} {
		synctest.Test(t, func(t *testing.T) {
			const budget = 1 << 18
			m, err := NewMappings(MappingsConfig{Bytes: budget, NegativeBytes: budget, MaxStale: time.Hour}, half{})
			if err != nil {
				t.Fatal(err)
			}
			s := script{T: t, m: m}
			s.apply(mapping.Event{Position: at(10), Start: true})
			s.beat(10)
			look := func(name string) Source {
				_, source, err := m.Lookup(t.Context(), mapping.Name(name))
				if err != nil {
					t.Fatal(err)
				}
				return source
			}
			const few = 200
			for i := range few {
				look(fmt.Sprintf("%s%d", others, i))
			}
			for i := range 10_000 {
				look(fmt.Sprintf("%s%d", flood, i))
				for name, part := range map[string]func(*shard) *memories{"existing": existing, "missing": missing} {
					if used := m.usage(part); i%1000 == 0 && used.bytes > budget {
						t.Fatalf("%s: %d bytes; want at most %d", name, used.bytes, budget)
					}
				}
			}
			for i := range few {
				if name := fmt.Sprintf("%s%d", others, i); look(name) != Kept {
					t.Errorf("%s is forgotten after a flood of %s", name, flood)
				}
			}
		})
	}
}

func TestNameMayComeToLeadSomewhere(t *testing.T) {
	t.Parallel()
	play(t, func(s script) {
		got := s.ask(key)
		s.answer(s.question(key), mapping.Mapping{}, at(10))
		s.want(got, outcome{Source: Asked})
		if count := s.m.usage(missing).count; count != 1 {
			s.Errorf("%d names lead nowhere; want 1", count)
		}
		s.change(11, key)
		s.learn(key, 1, 11)
		absent, present := s.m.usage(missing).count, s.m.usage(existing).count
		if absent != 0 || present != 1 {
			s.Errorf("%d names lead nowhere and %d somewhere; want 0 and 1", absent, present)
		}
	})
}
