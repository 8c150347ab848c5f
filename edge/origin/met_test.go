package origin

import (
	"testing"

	"github.com/veneer-skins/veneer/shared/mapping"
	"github.com/veneer-skins/veneer/shared/testenv"
)

func TestMet(t *testing.T) {
	t.Parallel()
	testenv.Long(t)
	m := newMet()
	regular := mapping.UID(-1)
	// So many that the first ones are forgotten.
	const keys = 4 * metEach
	for i := range int64(keys) {
		if i%(metEach/2) == 0 {
			m.add(regular)
		}
		m.add(mapping.TID(i))
	}
	if !m.has(regular) {
		t.Error("who comes again and again is forgotten")
	}
	count := func(of func(int64) mapping.Key, from, to int64) (known int) {
		for i := from; i < to; i++ {
			if m.has(of(i)) {
				known++
			}
		}
		return known
	}
	if n := count(mapping.TID, keys-metEach, keys); n != metEach {
		t.Errorf("of the last %d only %d are remembered", metEach, n)
	}
	// One in four hundred, and less before the present generation is full; the seed is another
	// each time.
	const strangers = 100_000
	for whom, n := range map[string]int{"strangers": count(mapping.UID, 0, strangers), "those of long ago": count(mapping.TID, 0, strangers)} {
		if n > strangers/350 {
			t.Errorf("of %d %s %d are taken for acquaintances", strangers, whom, n)
		}
	}
}
