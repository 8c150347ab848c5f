package origin

import (
	"testing"

	"github.com/veneer-skins/veneer/shared/mapping"
)

func TestMet(t *testing.T) {
	t.Parallel()
	m := newMet()
	const keys = 100_000
	for i := range int64(keys) {
		m.add(mapping.TID(i))
	}
	taken := 0
	for i := range int64(keys) {
		if !m.has(mapping.TID(i)) {
			t.Fatalf("%d is forgotten", i)
		}
		if m.has(mapping.UID(i)) {
			taken++
		}
	}
	// One in seven thousand; the seed is another each time.
	if taken > keys/1000 {
		t.Errorf("of %d strangers %d are taken for acquaintances", keys, taken)
	}
}
