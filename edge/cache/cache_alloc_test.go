//go:build !race

package cache

import (
	"context"
	"encoding/binary"
	"testing"
	"time"

	"github.com/veneer-skins/veneer/shared/testenv"
)

func newFileCache(tb testing.TB) *Cache[[]byte] {
	tb.Helper()
	return New(Options[[]byte]{
		Name: "test", Bytes: 1 << 26, TypicalSize: 1 << 10, Size: func(file []byte) int { return cap(file) },
		LoadTimeout: time.Minute, Now: time.Now,
	})
}

// testKey returns a key of MaxKeySize.
func testKey(i int) []byte {
	return append(make([]byte, MaxKeySize-4), binary.BigEndian.AppendUint32(nil, uint32(i))...)
}

func loadFile(tb testing.TB, c *Cache[[]byte], key []byte) {
	tb.Helper()
	_, _, err := c.Get(tb.Context(), key, nil, func(context.Context) ([]byte, error) { return make([]byte, 300), nil })
	if err != nil {
		tb.Fatal(err)
	}
}

// TestHitAllocatesNothing is an average without its fraction: ristretto's access log allocates
// once in 64 hits.
func TestHitAllocatesNothing(t *testing.T) {
	c, key := newFileCache(t), testKey(1)
	loadFile(t, c, key)
	waitIdle(t, c)
	testenv.Equal(t, testing.AllocsPerRun(1000, func() { c.TryGet(key) }), 0, "allocations of a hit")
}

func BenchmarkHit(b *testing.B) {
	c := newFileCache(b)
	var keys [][]byte
	for i := range 10_000 {
		keys = append(keys, testKey(i))
		loadFile(b, c, keys[i])
	}
	c.store.Wait()
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		if _, ok := c.TryGet(keys[i%len(keys)]); !ok {
			b.Fatal("a miss")
		}
		i++
	}
}
