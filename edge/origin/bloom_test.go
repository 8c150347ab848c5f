package origin

import (
	"testing"

	"github.com/veneer-skins/veneer/shared/edgeproto"
	"github.com/veneer-skins/veneer/shared/testenv"
)

func TestBloomFilter(t *testing.T) {
	t.Parallel()
	testenv.SkipShort(t)
	m := newBloomFilter()
	repeated := edgeproto.UIDKey(-1)
	// So many that the first ones are forgotten.
	const keys = 4 * bloomGenerationKeys
	for i := range int64(keys) {
		if i%(bloomGenerationKeys/2) == 0 {
			m.add(repeated)
		}
		m.add(edgeproto.TIDKey(i))
	}
	if !m.has(repeated) {
		t.Error("who comes again and again is forgotten")
	}
	count := func(of func(int64) edgeproto.Key, from, to int64) (known int) {
		for i := from; i < to; i++ {
			if m.has(of(i)) {
				known++
			}
		}
		return known
	}
	if n := count(edgeproto.TIDKey, keys-bloomGenerationKeys, keys); n != bloomGenerationKeys {
		t.Errorf("of the last %d only %d are remembered", bloomGenerationKeys, n)
	}
	// One in four hundred, and less before the present generation is full; the seed is another
	// each time.
	const samples = 100_000
	for kind, n := range map[string]int{"strangers": count(edgeproto.UIDKey, 0, samples), "those of long ago": count(edgeproto.TIDKey, 0, samples)} {
		if n > samples/350 {
			t.Errorf("of %d %s %d are taken for acquaintances", samples, kind, n)
		}
	}
}
