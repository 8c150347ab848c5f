//go:build !race

package bloom

import (
	"strconv"
	"testing"

	"github.com/veneer-skins/veneer/shared/testenv"
)

func TestFilter(t *testing.T) {
	t.Parallel()
	testenv.SkipShort(t)
	f := New()
	repeated := uid(-1)
	// Enough keys to drop the first ones.
	const keys = 4 * generationKeys
	for i := range int64(keys) {
		if i%(generationKeys/2) == 0 {
			f.Add(repeated)
		}
		f.Add(tid(i))
	}
	testenv.Check(t, f.Has(repeated), "a key that was added repeatedly was dropped")
	count := func(of func(int64) string, from, to int64) (found int) {
		for i := from; i < to; i++ {
			if f.Has(of(i)) {
				found++
			}
		}
		return found
	}
	testenv.Equal(t, count(tid, keys-generationKeys, keys), generationKeys,
		"of as many last keys the filter has")
	// One in four hundred, and fewer before the current generation is full; the seed is random.
	const samples = 100_000
	for kind, n := range map[string]int{"absent": count(uid, 0, samples), "dropped": count(tid, 0, samples)} {
		testenv.Check(t, n <= samples/350, "of %d %s keys %d are false positives", samples, kind, n)
	}
}

func uid(n int64) string { return "uid:" + strconv.FormatInt(n, 10) }

func tid(n int64) string { return "tid:" + strconv.FormatInt(n, 10) }
