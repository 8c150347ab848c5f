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
		most := 0
		for i := range 20_000 {
			key := mapping.Name(fmt.Sprintf("visitor%d", i))
			look(key)
			if source := look(hot[i%len(hot)]); i > 2*len(hot) && source != Kept {
				t.Fatalf("after %d keys that nobody asks for again, a key in constant use is forgotten", i)
			}
			if i%7 == 0 {
				s.apply(mapping.Event{Position: at(10), Keys: []mapping.Key{key, mapping.Name(fmt.Sprintf("visitor%d", i/2))}})
			}
			count, bytes, _ := m.usage(existing)
			if most = max(most, count); bytes > budget {
				t.Fatalf("%d mappings take %d bytes; want at most %d", count, bytes, budget)
			}
		}
		count, bytes, _ := m.usage(existing)
		if count < 400 {
			t.Errorf("%d mappings remain; the budget has room for more", count)
		}
		m.checkLines(t)
		t.Logf("%d mappings in %d bytes", count, bytes)

		s.apply(mapping.Event{Position: at(11), Start: true})
		if count, bytes, _ := m.usage(existing); count != 0 || bytes != 0 {
			t.Errorf("after all is forgotten, %d mappings take %d bytes", count, bytes)
		}
	})
}

// existing and missing are the parts of a shard.
func existing(s *shard) *line { return &s.existing }
func missing(s *shard) *line  { return &s.missing }

// checkLines walks the lines of every shard both ways.
func (m *Mappings) checkLines(t *testing.T) {
	t.Helper()
	for i := range m.shards {
		s := &m.shards[i]
		for _, l := range []*line{&s.existing, &s.missing} {
			forth, back, bytes := 0, 0, int64(0)
			for n := l.oldest; n != nil; n = n.later {
				forth++
				bytes += n.bytes
			}
			for n := l.latest; n != nil; n = n.older {
				back++
			}
			if forth != l.count || back != l.count || bytes != l.bytes {
				t.Errorf("shard %d: %d nodes forth, %d back, %d known; %d bytes, %d known", i, forth, back, l.count, bytes, l.bytes)
			}
		}
		if known := s.existing.count + s.missing.count; known != len(s.nodes) {
			t.Errorf("shard %d: %d nodes stand in lines, %d are known", i, known, len(s.nodes))
		}
	}
}

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
				for name, part := range map[string]func(*shard) *line{"existing": existing, "missing": missing} {
					if _, bytes, _ := m.usage(part); i%1000 == 0 && bytes > budget {
						t.Fatalf("%s: %d bytes; want at most %d", name, bytes, budget)
					}
				}
			}
			for i := range few {
				if name := fmt.Sprintf("%s%d", others, i); look(name) != Kept {
					t.Errorf("%s is forgotten after a flood of %s", name, flood)
				}
			}
			m.checkLines(t)
		})
	}
}

func TestNameMayComeToLeadSomewhere(t *testing.T) {
	t.Parallel()
	play(t, func(s script) {
		got := s.ask(key)
		s.answer(s.question(key), mapping.Mapping{}, at(10))
		s.want(got, outcome{Source: Asked})
		if count, _, _ := s.m.usage(missing); count != 1 {
			s.Errorf("%d names lead nowhere; want 1", count)
		}
		s.change(11, key)
		s.learn(key, 1, 11)
		absent, _, _ := s.m.usage(missing)
		present, _, _ := s.m.usage(existing)
		if absent != 0 || present != 1 {
			s.Errorf("%d names lead nowhere and %d somewhere; want 0 and 1", absent, present)
		}
		s.m.checkLines(s.T)
	})
}
