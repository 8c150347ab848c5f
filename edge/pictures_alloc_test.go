//go:build !race

package edge

import (
	"testing"
	"time"

	"github.com/veneer-skins/veneer/edge/cache"
	"github.com/veneer-skins/veneer/edge/render"
	"github.com/veneer-skins/veneer/shared/edgeproto"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// TestTryGetAllocatesNothing is an average without its fraction: the cache allocates once in
// 64 hits.
func TestTryGetAllocatesNothing(t *testing.T) {
	pictures := (&fakeBackend{}).open(t, testConfig())
	s := script{T: t, resolver: pictures.resolver}
	s.apply(edgeproto.Event{Cursor: at(10), Start: true})
	s.heartbeat(10)
	for _, req := range []Request{
		{View: render.View{Mode: render.Isometric, Size: 64}}, // the default avatar
		{Key: "name:steve", Kind: KindProfile},
	} {
		now := time.Now() // at which a mapping that is looked up later is valid
		want, err := pictures.Find(t.Context(), req)
		if err == nil {
			err = pictures.Load(t.Context(), req, &want)
		}
		if err != nil || want.Err != nil {
			t.Fatalf("Find and Load(%+v) = %v, %v", req, want.Err, err)
		}
		waitIdle(t, pictures.pictureCache)
		got, ok := pictures.TryGet(req, now)
		if !ok || string(got.Body) != string(want.Body) || got.ETag != want.ETag || got.Lookup != LookupHit || got.Outcome != cache.Hit {
			t.Errorf("TryGet(%+v) = %+v, %t; want the same response from the caches", req, got, ok)
		}
		testenv.Equal(t, testing.AllocsPerRun(1000, func() { pictures.TryGet(req, now) }), 0,
			"allocations of TryGet(%+v)", req)
	}
}
