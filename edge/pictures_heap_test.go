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
			p := (&fakeBackend{}).open(t, Config{CacheBytes: budget, TextureCacheBytes: 1 << 20, RenderWorkers: 1, RenderQueueTimeout: time.Minute})
			for i := range int(6*budget) / (size + 400) {
				variant := viewOf(byte(i), i>>16)
				variant.Texture[1] = byte(i >> 8)
				_, _, err := p.pictureCache.Get(t.Context(), variant.appendKey(nil), nil, func(context.Context) (picture, error) { return picture{body: make([]byte, size)}, nil })
				testenv.Do(t, err)
			}
			waitIdle(t, p.pictureCache)
			checkHeapCost(t, "pictures", p.pictureCache.Stats().Entries, heap()-before, budget)
		}
	}
	const budget = 16 << 20
	before := heap()
	p := (&fakeBackend{}).open(t, Config{CacheBytes: 1 << 20, TextureCacheBytes: budget, RenderWorkers: 1, RenderQueueTimeout: time.Minute})
	for i := range 3000 {
		variant := Variant{Texture: skin.Hash{byte(i), byte(i >> 8)}}
		l := p.newLoader(t.Context(), variant, ETag{})
		l.permit = testenv.Must(p.workers.admit(l.requesters))(t)
		texture := testenv.Must(l.texture(t.Context(), variant.Texture))(t)
		testenv.Must(texture.decode(t.Context(), variant))(t)
		l.permit.release()
	}
	waitIdle(t, p.textureCache)
	checkHeapCost(t, "sheets", p.textureCache.Stats().Entries, heap()-before, budget)
}

func checkHeapCost(t *testing.T, what string, n int, grown, estimate int64) {
	t.Helper()
	t.Logf("%d %s: %d bytes each, estimated as %d", n, what, grown/int64(n), estimate/int64(n))
	ratio := float64(grown) / float64(estimate)
	testenv.Check(t, ratio >= 0.8 && ratio <= 1.1, "they take %.2f of the estimate; want 0.8 to 1.1", ratio)
}
