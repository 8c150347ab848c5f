package sieve_test

import (
	"maps"
	"runtime"
	"slices"
	"testing"
	"weak"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/veneer-skins/veneer/shared/sieve"
	"github.com/veneer-skins/veneer/shared/testenv"
)

func TestHitsAreKept(t *testing.T) {
	t.Parallel()
	c := sieve.New[string, int](3)
	f := func(step string, want ...string) {
		t.Helper()
		var got []string
		for _, key := range []string{"a", "b", "c", "d", "e", "f"} {
			if c.Peek(key) != nil {
				got = append(got, key)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" || c.Len() != len(want) || c.Cost() != int64(len(want)) {
			t.Errorf("after %s there are %d of cost %d (-want +got):\n%s", step, c.Len(), c.Cost(), diff)
		}
	}
	for i, key := range []string{"a", "b", "c"} {
		c.Put(key, i, 1)
	}
	f("three puts", "a", "b", "c")
	if got := c.Get("a"); got == nil || *got != 0 {
		t.Errorf("a is %v; want 0", got)
	}
	c.Put("d", 3, 1)
	f("a hit of the oldest, which the hand passes", "a", "c", "d")
	c.Put("e", 4, 1)
	f("no other hit: the hand goes on where it was", "a", "d", "e")
	c.Put("d", 5, 1)
	c.Put("f", 6, 1)
	f("a replacement, which counts as a hit", "a", "d", "f")
	testenv.Equal(t, c.Evicted(), 3, "entries were evicted")
	cleared := c.GetEntry("f")
	c.Clear()
	f("a clear")
	testenv.Equal(t, cleared.TryAgain(), false, "an entry of a cleared cache is cached")
	testenv.Check(t, c.Get("a") == nil && !c.Delete("a") && c.Evicted() == 3 && c.Budget() == 3,
		"a cleared cache has entries or other statistics")
}

func TestTooCostly(t *testing.T) {
	t.Parallel()
	c := sieve.New[int, string](10)
	c.Put(1, "small", 4)
	c.Put(2, "small", 4)
	testenv.Check(t, c.Put(1, "large", 11) == nil && c.Peek(1) == nil,
		"a value beyond the budget is cached, or the one that it replaces")
	testenv.Check(t, c.Peek(2) != nil && c.Cost() == 4 && c.Evicted() == 0, "other values were evicted")
	testenv.Check(t, c.Put(3, "exact", 10) != nil && c.Len() == 1, "a value of the whole budget is not the only one")
}

// An entry that is kept elsewhere keeps no others that are gone.
func TestGoneEntriesAreFreed(t *testing.T) {
	t.Parallel()
	c := sieve.New[int, int](2)
	c.Put(1, 1, 1)
	first := c.GetEntry(1)
	var others []weak.Pointer[sieve.Entry[int, int]]
	for key := range 10 {
		c.Put(key+2, key, 1)
		others = append(others, weak.Make(c.GetEntry(key+2)))
	}
	second := c.GetEntry(11)
	c.Clear()
	runtime.GC()
	for i, other := range others[:len(others)-1] {
		testenv.Check(t, other.Value() == nil, "entry %d is still in memory", i+2)
	}
	testenv.Check(t, !first.TryAgain() && !second.TryAgain(), "entries are in the cleared cache")
}

// The cache against a simple model: SIEVE on a slice.
func TestModel(t *testing.T) {
	t.Parallel()
	type element struct {
		key     int
		cost    int64
		visited bool
	}
	rapid.Check(t, func(t *rapid.T) {
		const budget = 12
		c := sieve.New[int, int64](budget)
		var queue []*element // the oldest first
		found := map[*element]*sieve.Entry[int, int64]{}
		hand := 0
		remove := func(i int) {
			queue = slices.Delete(queue, i, i+1)
			if i < hand {
				hand--
			}
		}
		find := func(key int) int { return slices.IndexFunc(queue, func(e *element) bool { return e.key == key }) }
		total := func() (sum int64) {
			for _, e := range queue {
				sum += e.cost
			}
			return sum
		}
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			key := rapid.IntRange(0, 9).Draw(t, "key")
			i := find(key)
			switch rapid.IntRange(0, 6).Draw(t, "operation") {
			case 0:
				if c.Delete(key) != (i >= 0) {
					t.Fatalf("the deletion of %d is wrong", key)
				}
				if i >= 0 {
					remove(i)
				}
			case 1, 2, 3:
				entry := c.GetEntry(key)
				if (entry != nil) != (i >= 0) || i >= 0 && (entry.Key != key || entry.Value != queue[i].cost) {
					t.Fatalf("%d is %v; want the element %d", key, entry, i)
				}
				if i >= 0 {
					queue[i].visited = true
					found[queue[i]] = entry
				}
			case 4:
				for e, entry := range found {
					if isCached := slices.Contains(queue, e); entry.TryAgain() != isCached {
						t.Fatalf("that %d is cached is %t; want %t", e.key, !isCached, isCached)
					}
					e.visited = true
				}
			default:
				cost := rapid.Int64Range(1, 5).Draw(t, "cost")
				c.Put(key, cost, cost)
				if i >= 0 {
					remove(i)
				}
				for total()+cost > budget {
					hand %= len(queue)
					for queue[hand].visited {
						queue[hand].visited = false
						hand = (hand + 1) % len(queue)
					}
					remove(hand)
				}
				// After the newest entry the hand wraps to the oldest one, not to later
				// additions.
				if hand == len(queue) {
					hand = 0
				}
				queue = append(queue, &element{key, cost, i >= 0})
			}
			if hand == len(queue) {
				hand = 0
			}
			keys := map[int]bool{}
			for _, e := range queue {
				keys[e.key] = true
			}
			for key := range 10 {
				if (c.Peek(key) != nil) != keys[key] {
					t.Fatalf("there are other keys than %v", slices.Sorted(maps.Keys(keys)))
				}
			}
			if c.Len() != len(queue) || c.Cost() != total() {
				t.Fatalf("there are %d of cost %d; want %d of %d", c.Len(), c.Cost(), len(queue), total())
			}
		}
	})
}
