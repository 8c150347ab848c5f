//go:build !race

package origin

import (
	"testing"

	"github.com/veneer-skins/veneer/shared/edgeproto"
	"github.com/veneer-skins/veneer/shared/testenv"
)

func TestBloomFilter(t *testing.T) {
	t.Parallel()
	testenv.SkipShort(t)
	f := newBloomFilter()
	repeated := edgeproto.UIDKey(-1)
	// Enough keys to drop the first ones.
	const keys = 4 * bloomGenerationKeys
	for i := range int64(keys) {
		if i%(bloomGenerationKeys/2) == 0 {
			f.add(repeated)
		}
		f.add(edgeproto.TIDKey(i))
	}
	if !f.has(repeated) {
		t.Error("a key that was added repeatedly was dropped")
	}
	count := func(of func(int64) edgeproto.Key, from, to int64) (found int) {
		for i := from; i < to; i++ {
			if f.has(of(i)) {
				found++
			}
		}
		return found
	}
	testenv.Equal(t, count(edgeproto.TIDKey, keys-bloomGenerationKeys, keys), bloomGenerationKeys,
		"of as many last keys the filter has")
	// One in four hundred, and fewer before the current generation is full; the seed is random.
	const samples = 100_000
	for kind, n := range map[string]int{"absent": count(edgeproto.UIDKey, 0, samples), "dropped": count(edgeproto.TIDKey, 0, samples)} {
		if n > samples/350 {
			t.Errorf("of %d %s keys %d are false positives", samples, kind, n)
		}
	}
}
