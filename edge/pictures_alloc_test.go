//go:build !race

package edge

import (
	"testing"
	"time"

	"github.com/veneer-skins/veneer/edge/cache"
	"github.com/veneer-skins/veneer/edge/render"
	"github.com/veneer-skins/veneer/shared/edgeproto"
)

// TestTryGetAllocatesNothing is an average without its fraction: the cache allocates once in
// 64 hits.
func TestTryGetAllocatesNothing(t *testing.T) {
	pictures := (&fakeBackend{}).open(t, testConfig())
	s := script{T: t, resolver: pictures.resolver}
	s.apply(edgeproto.Event{Cursor: at(10), Start: true})
	s.heartbeat(10)
	always := func(*Response) (bool, error) { return true, nil }
	for _, req := range []Request{
		{View: render.View{Mode: render.Isometric, Size: 64}}, // the default avatar
		{Key: "name:steve", Kind: KindProfile},
	} {
		now := time.Now() // at which a mapping that is looked up later is valid
		want, err := pictures.Get(t.Context(), req, always)
		if err != nil || want.Err != nil {
			t.Fatalf("Get(%+v) = %v, %v", req, want.Err, err)
		}
		waitIdle(t, pictures.pictureCache)
		got, ok := pictures.TryGet(req, now)
		if !ok || string(got.Body) != string(want.Body) || got.ETag != want.ETag || got.Lookup != LookupHit || got.Outcome != cache.Hit {
			t.Errorf("TryGet(%+v) = %+v, %t; want the same response from the caches", req, got, ok)
		}
		if allocs := testing.AllocsPerRun(1000, func() { pictures.TryGet(req, now) }); allocs != 0 {
			t.Errorf("TryGet(%+v) allocates %v times; want 0", req, allocs)
		}
	}
}
