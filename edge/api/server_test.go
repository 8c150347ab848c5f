package api_test

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/edge"
	"github.com/veneer-skins/veneer/edge/api"
	"github.com/veneer-skins/veneer/edge/origin"
	"github.com/veneer-skins/veneer/edge/origin/origintest"
	"github.com/veneer-skins/veneer/edge/render"
	"github.com/veneer-skins/veneer/edge/render/vips"
	"github.com/veneer-skins/veneer/shared/blobstore"
	"github.com/veneer-skins/veneer/shared/edgeproto"
	"github.com/veneer-skins/veneer/shared/httpserver"
	"github.com/veneer-skins/veneer/shared/httpserver/clientip"
	"github.com/veneer-skins/veneer/shared/httpserver/httpservertest"
	"github.com/veneer-skins/veneer/shared/logging/loggingtest"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/skin/artwork"
)

// renderer is used by all tests.
var renderer = render.New(new(render.NativeEncoder), func() render.Reducer {
	reducer, err := vips.StartReducer(nil)
	if err != nil {
		panic(err)
	}
	return reducer
}())

// testServer is a whole edge on a socket, with a core and an object store of its own.
type testServer struct {
	url       string
	slowURL   string           // of a server without the fast path
	server    *fasthttp.Server // the one of slowURL
	handled   atomic.Int64     // requests that did not take the fast path
	core      *origintest.Core
	store     *blobstore.Store
	directory string
	resolver  *edge.Resolver
	log       *loggingtest.Buffer

	backend *countingBackend // counts fetches and renders
}

// countingBackend is the real object store and renderer. It counts calls, and calls a hook of
// the test.
type countingBackend struct {
	files          origin.Files
	fetched, drawn atomic.Int64
	onDraw         func()
	padding        []byte // makes pictures larger
	png            bool   // pretend that WebP cannot be written
}

func (s *countingBackend) File(ctx context.Context, hash skin.Hash) ([]byte, error) {
	s.fetched.Add(1)
	return s.files.File(ctx, hash)
}

func (s *countingBackend) Render(sheet, worn skin.Sheet, view render.View) ([]byte, render.Timing, error) {
	s.drawn.Add(1)
	if s.onDraw != nil {
		s.onDraw()
	}
	file, took, err := renderer.Render(sheet, worn, view)
	return append(file, s.padding...), took, err
}

func (s *countingBackend) DrawTile(sprite render.Picture, number int, sheet skin.Sheet, view render.View) error {
	s.drawn.Add(1)
	return renderer.DrawTile(sprite, number, sheet, view)
}

func (s *countingBackend) Encode(picture render.Picture, format render.Format) ([]byte, error) {
	return renderer.Encode(picture, format)
}

func (s *countingBackend) Cost(view render.View, width, wornWidth int) time.Duration {
	return renderer.Cost(view, width, wornWidth)
}

func (s *countingBackend) RevisionOf(view render.View) string { return renderer.RevisionOf(view) }
func (s *countingBackend) CanWebP() bool                      { return !s.png && renderer.CanWebP() }

// setup is the configuration of a server, which a test may change.
type setup struct {
	api      api.Config
	proxies  clientip.Config
	sample   float64 // share of requests that are logged
	pictures edge.Config
	backend  *countingBackend
	limits   func(*httpserver.Limits) // changes the limits; nil: does not
	unknown  int                      // EDGE_CORE_UNKNOWN_KEYS_PER_SECOND
}

// open starts a server that receives heartbeats from its core.
func open(tb testing.TB, changes ...func(*setup)) *testServer {
	tb.Helper()
	with := setup{
		api:      api.Config{CacheTags: api.TagsBoth, UnknownPlayerStatus: http.StatusNotFound, Foreign: true},
		pictures: edge.Config{CacheBytes: 1 << 24, SheetBytes: 1 << 24, RenderWorkers: 2, RenderQueuePerWorker: 64, RenderQueueTimeout: time.Minute},
		backend:  &countingBackend{},
	}
	for _, change := range changes {
		change(&with)
	}
	s := &testServer{core: origintest.Start(tb), directory: tb.TempDir(), backend: with.backend, log: &loggingtest.Buffer{}}
	log := slog.New(slog.NewTextHandler(s.log, nil))

	store, err := blobstore.New(blobstore.Config{URL: "file://" + s.directory, Timeout: time.Minute})
	must(tb, err)
	must(tb, store.Init(tb.Context()))
	s.store, s.backend.files = store, origin.NewFiles(store)
	core, err := origin.NewCore(origin.Config{URL: s.core.URL, Secrets: []string{origintest.Secret}, Queue: 8192, UnknownKeysPerSecond: with.unknown, Timeout: 2 * time.Second}, log)
	must(tb, err)
	s.resolver, err = edge.NewResolver(edge.ResolverConfig{Bytes: 1 << 20, NegativeBytes: 1 << 20, MaxStale: time.Hour}, core)
	must(tb, err)
	pictures, err := edge.NewPictures(with.pictures, s.resolver, s.backend, s.backend, artwork.Default())
	must(tb, err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(tb.Context()))
	var background sync.WaitGroup
	background.Go(func() { core.Run(ctx) })
	background.Go(func() { core.Follow(ctx, s.resolver) })
	limits := httpserver.Limits{ // long enough for a busy machine
		ReadTimeout: time.Minute, WriteTimeout: time.Minute, IdleTimeout: time.Minute,
		WorkTimeout: time.Minute, UploadTimeout: time.Minute, HeaderBytes: 16 << 10, MaxConnections: 4096, BodiesBytes: 64 << 20,
	}
	if with.limits != nil {
		with.limits(&limits)
	}
	server, err := api.New(httpserver.Options{Log: log, LogSampleRate: with.sample, Limits: limits, Proxies: clientip.New(with.proxies, log)}, pictures, with.api)
	must(tb, err)
	s.server = server.HTTP()
	s.slowURL = listen(tb, httpserver.Listener{Server: s.server})
	behind := server.HTTP()
	handle := behind.Handler
	behind.Handler = func(rc *fasthttp.RequestCtx) {
		s.handled.Add(1)
		handle(rc)
	}
	s.url = listen(tb, httpserver.Listener{Server: behind, FastPath: server.FastPath()})
	tb.Cleanup(func() {
		cancel()
		background.Wait()
		pictures.Close()
	})
	eventually(tb, "the edge receives heartbeats", func() bool { return s.resolver.Check(tb.Context()) == nil })
	return s
}

// listen serves on a socket of its own until the test ends, and returns the URL.
func listen(tb testing.TB, with httpserver.Listener) string {
	tb.Helper()
	listener, err := new(net.ListenConfig).Listen(tb.Context(), "tcp", "127.0.0.1:0")
	must(tb, err)
	served := make(chan error, 1)
	go func() { served <- with.Server.Serve(with.Wrap(listener)) }()
	tb.Cleanup(func() {
		must(tb, with.Server.Shutdown())
		must(tb, <-served)
	})
	return "http://" + listener.Addr().String()
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

func eventually(tb testing.TB, what string, holds func() bool) {
	tb.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	deadline := time.After(20 * time.Second)
	for !holds() {
		select {
		case <-tick.C:
		case <-deadline:
			tb.Fatalf("this never happened: %s", what)
		}
	}
}

// put stores a texture and returns it for mappings.
func (s *testServer) put(tb testing.TB, tid int64, sheet skin.Sheet, kind skin.Type) *edgeproto.Texture {
	tb.Helper()
	file := origintest.File(tb, sheet, kind)
	must(tb, s.store.Put(tb.Context(), skin.HashOf(file), file))
	return &edgeproto.Texture{TID: tid, Hash: skin.HashOf(file), Type: kind}
}

// set changes the mappings of keys and waits until the edge has applied the change.
func (s *testServer) set(tb testing.TB, changes map[edgeproto.Key]edgeproto.Mapping) {
	tb.Helper()
	before := s.resolver.Cursor().Revision
	s.core.Set(changes)
	eventually(tb, "the edge applies the change", func() bool { return s.resolver.Cursor().Revision > before })
}

// remove deletes a texture's file from the object store.
func (s *testServer) remove(tb testing.TB, hash skin.Hash) {
	tb.Helper()
	must(tb, os.Remove(filepath.Join(s.directory, hash.String()[:2], hash.String()+".png")))
}

// reply is a response with its body.
type reply struct {
	status int
	header http.Header
	body   string
	id     string // X-Request-ID, which is not in header
}

func (s *testServer) do(tb testing.TB, method, path string, header http.Header, body string) reply {
	tb.Helper()
	response := httpservertest.Call(tb, nil, method, s.url+path, header, body)
	isCore := strings.HasPrefix(path, "/api") || path == "/console"
	// Responses of core have their own.
	for name, want := range map[string]string{"X-Content-Type-Options": "nosniff", "Cross-Origin-Resource-Policy": "cross-origin"} {
		if got := response.Header.Values(name); !isCore && (len(got) != 1 || got[0] != want) {
			tb.Errorf("%s %s: %d with %s %q; want %q", method, path, response.Status, name, got, want)
		}
	}
	ids := response.Header.Values("X-Request-Id")
	if len(ids) != 1 || ids[0] == "" {
		tb.Fatalf("%s %s: %d with X-Request-ID %q; want one", method, path, response.Status, ids)
	}
	response.Header.Del("X-Request-Id")
	return reply{status: response.Status, header: response.Header, body: response.Body, id: ids[0]}
}

func (s *testServer) get(tb testing.TB, path string) reply {
	tb.Helper()
	return s.do(tb, http.MethodGet, path, nil, "")
}

// removeMarker deletes the marker of the object store, without which a missing file counts as
// an unavailable store.
func (s *testServer) removeMarker(tb testing.TB) {
	tb.Helper()
	must(tb, os.Remove(filepath.Join(s.directory, ".veneer")))
}
