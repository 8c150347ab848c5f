package edge

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/veneer-skins/veneer/edge/cache"
	"github.com/veneer-skins/veneer/edge/render"
	"github.com/veneer-skins/veneer/shared/edgeproto"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/metrics/metricstest"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// fakeBackend is the object store and the renderer of a test. It counts calls, and calls the
// hooks of the test.
type fakeBackend struct {
	fetched, drawn, drawing, mostDrawing atomic.Int64
	fetch                                func(ctx context.Context) error
	fetchHash                            func(skin.Hash)
	draw                                 func() error
	drawView                             func(render.View)
}

func (f *fakeBackend) File(ctx context.Context, hash skin.Hash) ([]byte, error) {
	f.fetched.Add(1)
	if f.fetch != nil {
		if err := f.fetch(ctx); err != nil {
			return nil, err
		}
	}
	if f.fetchHash != nil {
		f.fetchHash(hash)
	}
	sheet := skin.NewSheet(64, 64)
	copy(sheet.Pix, hash[:])
	return sheet.PNG()
}

func (f *fakeBackend) Render(sheet, _ skin.Sheet, view render.View) ([]byte, render.Timing, error) {
	f.drawn.Add(1)
	f.mostDrawing.Store(max(f.mostDrawing.Load(), f.drawing.Add(1)))
	defer f.drawing.Add(-1)
	if f.draw != nil {
		if err := f.draw(); err != nil {
			return nil, render.Timing{}, err
		}
	}
	if f.drawView != nil {
		f.drawView(view)
	}
	return fmt.Appendf(nil, "%x %v", sheet.Pix[:32], view), render.Timing{}, nil
}

// DrawTile draws nothing.
func (f *fakeBackend) DrawTile(render.Picture, int, skin.Sheet, render.View) error { return nil }

// Encode returns a text.
func (f *fakeBackend) Encode(picture render.Picture, format render.Format) ([]byte, error) {
	return fmt.Appendf(nil, "%d × %d as %v", picture.Width, picture.Height, format), nil
}

// Cost is a millisecond per pixel of the size.
func (f *fakeBackend) Cost(view render.View, _, _ int) time.Duration {
	return time.Duration(view.Size) * time.Millisecond
}

func (f *fakeBackend) RevisionOf(view render.View) string {
	if view.Exact != 0 {
		return "r2"
	}
	return "r1"
}

func (f *fakeBackend) open(t *testing.T, config Config) *Pictures {
	t.Helper()
	mappings := NewResolver(ResolverConfig{Bytes: 1 << 20, NegativeBytes: 1 << 20, MaxStale: time.Hour}, stubCore{})
	if config.CacheBytes == 0 {
		config.CacheBytes, config.TextureCacheBytes = 1<<24, 1<<24
	}
	pictures := NewPictures(config, mappings, f, f, skin.NewSheet(64, 64))
	t.Cleanup(pictures.Close)
	return pictures
}

// errorOf returns the error of a request for a picture.
func (p *Pictures) errorOf(ctx context.Context, variant Variant) error {
	_, _, err := p.picture(ctx, variant, ETag{})
	return err
}

// wantUnavailable checks that an error is an Unavailable fault.
func wantUnavailable(t *testing.T, err error, what string) {
	t.Helper()
	testenv.Check(t, fault.KindOf(err) == fault.Unavailable, "%s: %v; want it unavailable", what, err)
}

func viewOf(hash byte, size int) Variant {
	return Variant{Texture: skin.Hash{hash}, View: render.View{Type: skin.Classic, Size: size}}
}

// testNetwork is a client network.
var testNetwork = netip.MustParsePrefix("192.0.2.0/24")

// clock is a clock that only advance moves.
type clock struct{ time atomic.Int64 }

func (c *clock) now() time.Time          { return time.Unix(0, c.time.Load()) }
func (c *clock) advance(d time.Duration) { c.time.Add(int64(d)) }

// newClock replaces the caches of pictures by empty ones with a clock of the test.
func newClock(t *testing.T, p *Pictures) *clock {
	t.Helper()
	c := &clock{}
	p.pictureCache, p.textureCache = newPictureCache(1<<24, c.now), newTextureCache(1<<24, c.now)
	return c
}

// waitIdle waits until no load of a cache is running.
func waitIdle[V any](t *testing.T, c *cache.Cache[V]) {
	t.Helper()
	testenv.Eventually(t, "all loads end", func() bool { return c.Stats().Loads == 0 })
}

func testConfig() Config {
	return Config{RenderWorkers: 1, RenderQueuePerWorker: 64, RenderQueueTimeout: time.Hour}
}

func TestPictureIsMadeOnce(t *testing.T) {
	t.Parallel()
	arrived := make(chan struct{})
	s := &fakeBackend{fetch: func(context.Context) error { <-arrived; return nil }}
	pictures := s.open(t, testConfig())

	const callers = 1000
	type result struct {
		file string
		err  error
	}
	results := make(chan result, callers)
	for range callers {
		go func() {
			got, _, err := pictures.picture(t.Context(), viewOf(1, 8), ETag{})
			results <- result{string(got.body), err}
		}()
	}
	close(arrived)
	first := <-results
	for range callers - 1 {
		if r := <-results; r != first || r.err != nil {
			t.Fatalf("picture() = %+v; want %+v as the first caller", r, first)
		}
	}
	// Another picture of the same texture does not fetch the file again.
	for _, want := range []cache.Outcome{cache.Miss, cache.Hit} {
		_, outcome, err := pictures.picture(t.Context(), viewOf(1, 16), ETag{})
		testenv.Check(t, err == nil && outcome == want, "another size: %v, %v; want %v", outcome, err, want)
	}
	testenv.Check(t, s.fetched.Load() == 1 && s.drawn.Load() == 2,
		"%d sheets were fetched and %d pictures drawn; want 1 and 2", s.fetched.Load(), s.drawn.Load())
}

func TestCanceledCallerKeepsRender(t *testing.T) {
	t.Parallel()
	entered, arrived := make(chan struct{}), make(chan struct{})
	s := &fakeBackend{fetch: func(ctx context.Context) error {
		close(entered)
		<-arrived
		return ctx.Err()
	}}
	pictures := s.open(t, testConfig())

	ctx, leave := context.WithCancel(t.Context())
	left := make(chan error, 1)
	go func() { _, _, err := pictures.picture(ctx, viewOf(1, 8), ETag{}); left <- err }()
	<-entered
	leave()
	testenv.Is(t, <-left, context.Canceled, "picture() of a cancelled caller")
	close(arrived)
	testenv.Is(t, pictures.errorOf(t.Context(), viewOf(1, 8)), nil, "picture() of another caller")
	testenv.Check(t, s.fetched.Load() == 1 && s.drawn.Load() == 1,
		"%d sheets were fetched and %d pictures drawn; want 1 and 1", s.fetched.Load(), s.drawn.Load())
}

func TestFailureIsRememberedForAMoment(t *testing.T) {
	t.Parallel()
	trouble := errors.New("trouble")
	var sick atomic.Bool
	fail := func() error {
		if sick.Load() {
			return trouble
		}
		return nil
	}
	for _, test := range []struct {
		name    string
		backend *fakeBackend
		tries   func(s *fakeBackend) int64
	}{
		{"of the store", &fakeBackend{fetch: func(context.Context) error { return fail() }}, func(s *fakeBackend) int64 { return s.fetched.Load() }},
		{"of the renderer", &fakeBackend{draw: fail}, func(s *fakeBackend) int64 { return s.drawn.Load() }},
	} {
		pictures := test.backend.open(t, testConfig())
		clock := newClock(t, pictures)
		sick.Store(true)
		for range 100 {
			testenv.Is(t, pictures.errorOf(t.Context(), viewOf(1, 8)), trouble, "failure %s", test.name)
		}
		testenv.Equal(t, test.tries(test.backend), 1, "failure %s: tries at one moment", test.name)
		sick.Store(false)
		// A failure is returned before it is remembered, and remembered from then on.
		waitIdle(t, pictures.pictureCache)
		waitIdle(t, pictures.textureCache)
		clock.advance(2 * time.Second) // the maximum of the back-off
		testenv.Is(t, pictures.errorOf(t.Context(), viewOf(1, 8)), nil, "after a failure %s", test.name)
	}
}

func TestRejectionIsNotRemembered(t *testing.T) {
	t.Parallel()
	drawing, finish := make(chan struct{}), make(chan struct{})
	var first atomic.Bool
	s := &fakeBackend{draw: func() error {
		if !first.Swap(true) {
			close(drawing)
			<-finish
		}
		return nil
	}}
	pictures := s.open(t, Config{RenderWorkers: 1, RenderQueuePerWorker: 0, RenderQueueTimeout: time.Second})
	newClock(t, pictures) // which is not advanced
	done := make(chan error, 1)
	go func() { done <- pictures.errorOf(t.Context(), viewOf(1, 8)) }()
	<-drawing
	wantUnavailable(t, pictures.errorOf(t.Context(), viewOf(2, 8)), "picture() without a free worker")
	close(finish)
	testenv.Is(t, <-done, nil, "a picture")
	for pictures.workers.state().admitted > 0 {
		runtime.Gosched() // the permit is released just before picture returns
	}
	waitIdle(t, pictures.pictureCache)
	testenv.Is(t, pictures.errorOf(t.Context(), viewOf(2, 8)), nil, "picture() with a free worker, at the same time")
}

func TestPanicWhileDrawingIsAnError(t *testing.T) {
	t.Parallel()
	s := &fakeBackend{draw: func() error { panic("a texel too far") }}
	pictures := s.open(t, testConfig())
	for i := range byte(3) { // more often than there are workers: none is lost
		_, _, err := pictures.picture(t.Context(), viewOf(i, 8), ETag{})
		if err == nil || !strings.Contains(err.Error(), "a texel too far") || fault.KindOf(err) != fault.Internal {
			t.Errorf("picture() = %v; want the panic as an internal fault", err)
		}
	}
}

func TestMemoryOfPicturesIsBounded(t *testing.T) {
	t.Parallel()
	s := &fakeBackend{}
	const budget = 1 << 20
	pictures := s.open(t, Config{CacheBytes: budget, TextureCacheBytes: budget, RenderWorkers: 1, RenderQueuePerWorker: 64, RenderQueueTimeout: time.Second})
	for i := range 400 {
		variant := viewOf(byte(i), 8)
		variant.Texture[1] = byte(i >> 8)
		testenv.Do(t, pictures.errorOf(t.Context(), variant))
	}
	waitIdle(t, pictures.pictureCache)
	for range 100 {
		if _, outcome, err := pictures.picture(t.Context(), viewOf(0, 8), ETag{}); outcome != cache.Hit || err != nil {
			t.Fatalf("a small picture is not cached: %v, %v", outcome, err)
		}
	}
	waitIdle(t, pictures.textureCache)
	stats := pictures.textureCache.Stats()
	if spent, evicted := stats.Bytes, stats.Evicted+stats.Rejected; spent > budget || evicted == 0 {
		t.Errorf("sheets take %d bytes and %d had to go; want at most %d bytes", spent, evicted, budget)
	}
	registry := prometheus.NewRegistry()
	pictures.Expose(registry)
	text := metricstest.Text(t, registry)
	metricstest.Value(t, text, "veneer_edge_texture_cache_evicted_total")
	testenv.Equal(t, metricstest.Value(t, text, "veneer_edge_picture_cache_hit_ratio"), 0.2, "the hit ratio")
}

func TestETagNamesTheContent(t *testing.T) {
	t.Parallel()
	pictures := (&fakeBackend{}).open(t, testConfig())
	base := viewOf(1, 8)
	seen := map[ETag]Variant{}
	for _, change := range []func(*Variant){
		func(*Variant) {},
		func(v *Variant) { v.Texture[31] = 1 },
		func(v *Variant) { v.Mode = render.Isometric },
		func(v *Variant) { v.Type = skin.Slim },
		func(v *Variant) { v.Size = 512 },
		func(v *Variant) { v.Format = render.WebP },
		func(v *Variant) { v.Attitude = 1 },
		func(v *Variant) { v.Omit = 1 },
		func(v *Variant) { *v = Variant{Texture: v.Texture, File: true} },
	} {
		variant := base
		change(&variant)
		tag := variant.etag("r1")
		other, ok := seen[tag]
		testenv.Check(t, !ok, "%+v and %+v share the entity tag %s", variant, other, tag)
		seen[tag] = variant
		testenv.Check(t, tag == variant.etag("r1") && len(tag) == 24 && tag[0] == '"' && tag[23] == '"',
			"etag(%+v) = %s; want the same 22 characters in quotes each time", variant, tag)
	}
	testenv.Check(t, base.etag("r1") != base.etag("r2"), "another revision of the renderer has the same entity tags")
	// Each response has the revision behind it, and a file, which the renderer does not draw, has none.
	mapping := edgeproto.Mapping{Texture: &edgeproto.Texture{Hash: base.Texture, Type: skin.Classic}}
	for want, req := range map[string]Request{"": {Kind: KindFile}, "r1": {View: render.View{Size: 8}}, "r2": {View: render.View{Size: 8, Exact: 8}}} {
		res := Response{Mapping: mapping}
		if pictures.setVariant(&req, &res); res.Revision != want || res.Err != nil {
			t.Errorf("%+v has the revision %q, %v; want %q", req, res.Revision, res.Err, want)
		}
	}
}

// variantOf returns the variant that a request means.
func variantOf(p *Pictures, req *Request, mapping edgeproto.Mapping) (Variant, error) {
	res := Response{Mapping: mapping}
	p.setVariant(req, &res)
	return res.Variant, res.Err
}

func TestView(t *testing.T) {
	t.Parallel()
	sheet := &edgeproto.Texture{TID: 7, Hash: skin.Hash{7}, Type: skin.Slim}
	cape := &edgeproto.Texture{TID: 8, Hash: skin.Hash{8}, Type: skin.Cape}
	defaultHash := skin.Hash(skin.NewSheet(64, 64).Digest())
	pictures := (&fakeBackend{}).open(t, testConfig())

	f := func(mapping edgeproto.Mapping, key edgeproto.Key, mode render.Mode, wantHash skin.Hash, wantType skin.Type, wantKind fault.Kind) {
		t.Helper()
		variant, err := variantOf(pictures, &Request{Key: key, View: render.View{Mode: mode, Size: 64, Format: render.WebP}}, mapping)
		want := Variant{Texture: wantHash, View: render.View{Mode: mode, Type: wantType, Size: 64, Format: render.WebP}}
		switch {
		case wantType == 0 && fault.KindOf(err) != wantKind:
			t.Errorf("view(%s) = %v; want a fault %v", key, err, wantKind)
		case wantType != 0 && (err != nil || variant != want):
			t.Errorf("view(%s) = %+v, %v; want %+v", key, variant, err, want)
		}
	}
	const none = skin.Type(0)
	player := func(worn *edgeproto.Texture) edgeproto.Mapping {
		return edgeproto.Mapping{Player: &edgeproto.Player{Skin: worn}}
	}
	user := func(avatar int64, worn *edgeproto.Texture) edgeproto.Mapping {
		return edgeproto.Mapping{User: &edgeproto.User{Avatar: avatar, Texture: worn}}
	}
	f(player(sheet), "name:a", render.Flat, sheet.Hash, skin.Slim, 0)
	f(player(nil), "name:a", render.Flat, defaultHash, none, fault.NotFound)
	f(edgeproto.Mapping{}, "name:a", render.Flat, defaultHash, none, fault.NotFound)
	f(user(7, sheet), "uid:1", render.Isometric, sheet.Hash, skin.Slim, 0)
	f(user(0, nil), "uid:1", render.Flat, defaultHash, skin.Classic, 0)
	f(user(7, nil), "uid:1", render.Flat, defaultHash, none, fault.NotFound)
	f(edgeproto.Mapping{}, "uid:1", render.Flat, defaultHash, skin.Classic, 0)
	f(edgeproto.Mapping{}, "", render.Flat, defaultHash, skin.Classic, 0)
	f(edgeproto.Mapping{Texture: sheet}, "tid:7", render.Preview, sheet.Hash, skin.Slim, 0)
	f(edgeproto.Mapping{Texture: cape}, "tid:8", render.Preview, cape.Hash, skin.Cape, 0)
	f(edgeproto.Mapping{Texture: cape}, "tid:8", render.Flat, defaultHash, none, fault.Invalid)
	f(edgeproto.Mapping{Texture: cape}, "tid:8", render.Body, defaultHash, none, fault.Invalid)
	f(user(0, nil), "uid:1", render.Left, defaultHash, skin.Classic, 0)
	f(edgeproto.Mapping{}, "tid:8", render.Preview, defaultHash, none, fault.NotFound)

	// Slots, and files.
	worn := edgeproto.Mapping{Player: &edgeproto.Player{Skin: sheet, Cape: cape}}
	for want, variant := range map[*Request]Variant{
		{Slot: SkinSlot, Kind: KindFile}:                          {Texture: sheet.Hash, File: true},
		{Slot: CapeSlot, Kind: KindFile}:                          {Texture: cape.Hash, File: true},
		{Slot: CapeSlot, View: render.View{Mode: render.Preview}}: {Texture: cape.Hash, View: render.View{Mode: render.Preview, Type: skin.Cape}},
	} {
		want.Key = "name:a"
		got, err := variantOf(pictures, want, worn)
		testenv.Check(t, got == variant && err == nil, "view(%+v) = %+v, %v; want %+v", want, got, err, variant)
	}
}
