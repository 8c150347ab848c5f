//go:build !race

package edge

import (
	"context"
	"testing"
	"time"

	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// TestPicturesAndSheetsAllocateWhatTheyCost compares the estimated sizes of values with the
// growth of the heap, after many have been added and evicted. No test runs in parallel.
func TestPicturesAndSheetsAllocateWhatTheyCost(t *testing.T) {
	testenv.SkipShort(t)
	for _, budget := range []int64{12 << 20, 16 << 20} {
		for _, size := range []int{320, 2048} {
			before := heap()
			p := (&fakeBackend{}).open(t, Config{CacheBytes: budget, SheetBytes: 1 << 20, RenderWorkers: 1, RenderQueueTimeout: time.Minute})
			for i := range int(6*budget) / (size + 400) {
				view := viewOf(byte(i), i>>16)
				view.Texture[1] = byte(i >> 8)
				_, _, err := p.pictureCache.load(t.Context(), view.appendKey(nil), nil, func(context.Context) (Picture, error) { return Picture{Body: make([]byte, size)}, nil })
				if err != nil {
					t.Fatal(err)
				}
			}
			waitIdle(t, p.pictureCache)
			checkHeapCost(t, "pictures", len(p.pictureCache.policy.entries), heap()-before, budget)
		}
	}
	const budget = 16 << 20
	before := heap()
	p := (&fakeBackend{}).open(t, Config{CacheBytes: 1 << 20, SheetBytes: budget, RenderWorkers: 1, RenderQueueTimeout: time.Minute})
	for i := range 3000 {
		view := View{Texture: skin.Hash{byte(i), byte(i >> 8)}}
		demand := p.workers.demand(testNetwork)
		permit, err := p.workers.admit(demand)
		if err != nil {
			t.Fatal(err)
		}
		texture, err := p.texture(t.Context(), permit, demand, view)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := texture.decode(t.Context(), view); err != nil {
			t.Fatal(err)
		}
		permit.release()
	}
	waitIdle(t, p.textureCache)
	checkHeapCost(t, "sheets", len(p.textureCache.policy.entries), heap()-before, budget)
}

func checkHeapCost(t *testing.T, what string, n int, grown, thought int64) {
	t.Helper()
	t.Logf("%d %s: %d bytes each, estimated as %d", n, what, grown/int64(n), thought/int64(n))
	if ratio := float64(grown) / float64(thought); ratio < 0.8 || ratio > 1.1 {
		t.Errorf("they take %.2f of the estimate; want 0.8 to 1.1", ratio)
	}
}

// TestHitAllocatesNothing is an average without its fraction: ristretto's access log allocates
// once in 64 hits.
func TestHitAllocatesNothing(t *testing.T) {
	p := (&fakeBackend{}).open(t, testConfig())
	view := viewOf(1, 8)
	if _, _, err := p.Picture(t.Context(), view); err != nil {
		t.Fatal(err)
	}
	waitIdle(t, p.pictureCache)
	name := view.appendKey(nil)
	if allocs := testing.AllocsPerRun(1000, func() { p.pictureCache.get(name) }); allocs != 0 {
		t.Errorf("a hit allocates %v times; want 0", allocs)
	}
}

func BenchmarkHit(b *testing.B) {
	c, err := newCache("test", 1<<26, 1<<10, func(file []byte) int { return cap(file) })
	if err != nil {
		b.Fatal(err)
	}
	var names [][]byte
	for i := range 10_000 {
		view := viewOf(byte(i), i)
		names = append(names, view.appendKey(nil))
		if _, _, err := c.load(b.Context(), names[i], nil, func(context.Context) ([]byte, error) { return make([]byte, 300), nil }); err != nil {
			b.Fatal(err)
		}
	}
	c.store.Wait()
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		if _, ok := c.get(names[i%len(names)]); !ok {
			b.Fatal("a miss")
		}
		i++
	}
}
