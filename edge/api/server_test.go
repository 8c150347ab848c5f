package api_test

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
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
	"github.com/veneer-skins/veneer/shared/roots"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/skin/artwork"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// renderer is used by all tests.
var renderer = render.New(func() render.Reducer {
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
	forwards  bool   // to an upstream
	unfollow  func() // ends the stream of changes

	backend *countingBackend // counts fetches and renders
}

// countingBackend is the real object store and renderer. It counts calls, and calls a hook of
// the test.
type countingBackend struct {
	files          origin.Files
	fetched, drawn atomic.Int64
	onDraw         func()
	padding        []byte // makes pictures larger
}

func (c *countingBackend) File(ctx context.Context, hash skin.Hash) ([]byte, error) {
	c.fetched.Add(1)
	return c.files.File(ctx, hash)
}

func (c *countingBackend) Render(sheet, worn skin.Sheet, view render.View) ([]byte, render.Timing, error) {
	c.drawn.Add(1)
	if c.onDraw != nil {
		c.onDraw()
	}
	file, took, err := renderer.Render(sheet, worn, view)
	return append(file, c.padding...), took, err
}

func (c *countingBackend) DrawTile(sprite render.Picture, number int, sheet skin.Sheet, view render.View) error {
	c.drawn.Add(1)
	return renderer.DrawTile(sprite, number, sheet, view)
}

func (c *countingBackend) Encode(picture render.Picture, format render.Format) ([]byte, error) {
	return renderer.Encode(picture, format)
}

func (c *countingBackend) Cost(view render.View, width, wornWidth int) time.Duration {
	return renderer.Cost(view, width, wornWidth)
}

func (c *countingBackend) RevisionOf(view render.View) string { return renderer.RevisionOf(view) }

// setup is the configuration of a server, which a test may change.
type setup struct {
	api      api.Config
	proxies  clientip.Config
	sample   float64 // share of requests that are logged
	pictures edge.Config
	backend  *countingBackend
	limits   func(*httpserver.Limits) // changes the limits; nil: does not
	unknown  int                      // EDGE_CORE_UNKNOWN_KEYS_PER_SECOND
	isAging  bool                     // by default mappings stay valid for an hour
}

// aging has mappings become stale without heartbeats, as they do for users.
func aging(s *setup) { s.isAging = true }

// open starts a server that receives heartbeats from its core.
func open(tb testing.TB, changes ...func(*setup)) *testServer {
	tb.Helper()
	with := setup{
		api:      api.Config{CacheTags: api.TagsBoth, UnknownPlayerStatus: http.StatusNotFound, CompatRoutes: true},
		pictures: edge.Config{CacheBytes: 1 << 24, TextureCacheBytes: 1 << 24, RenderWorkers: 2, RenderQueuePerWorker: 64, RenderQueueTimeout: time.Minute},
		backend:  &countingBackend{},
	}
	for _, change := range changes {
		change(&with)
	}
	s := &testServer{core: origintest.Start(tb), forwards: with.api.APIUpstream != "", directory: tb.TempDir(), backend: with.backend, log: &loggingtest.Buffer{}}
	log := slog.New(slog.NewTextHandler(s.log, nil))

	store := testenv.Must(blobstore.New(blobstore.Config{URL: "file://" + s.directory, Timeout: time.Minute}))(tb)
	testenv.Do(tb, store.Init(tb.Context()))
	s.store, s.backend.files = store, origin.NewFiles(store)
	core, err := origin.NewCore(origin.Config{URL: s.core.URL, Secrets: []string{origintest.Secret}, Queue: 8192, UnknownKeysPerSecond: with.unknown, Timeout: time.Minute}, log)
	testenv.Do(tb, err)
	s.resolver = edge.NewResolver(edge.ResolverConfig{Bytes: 1 << 20, NegativeBytes: 1 << 20, MaxStale: time.Hour}, core)
	pictures := edge.NewPictures(with.pictures, s.resolver, s.backend, s.backend, artwork.Default())
	s.unfollow = inBackground(tb, func(ctx context.Context) { core.Follow(ctx, s.resolver) })
	stop := inBackground(tb, core.Run)
	limits := httpserver.Limits{ // long enough for a busy machine
		ReadTimeout: time.Minute, WriteTimeout: time.Minute, IdleTimeout: time.Minute,
		WorkTimeout: time.Minute, UploadTimeout: time.Minute, HeaderBytes: 16 << 10, MaxConnections: 4096, BodiesBytes: 64 << 20,
	}
	if with.limits != nil {
		with.limits(&limits)
	}
	server, err := api.New(httpserver.Options{Log: log, LogSampleRate: with.sample, Limits: limits, Proxies: clientip.New(with.proxies, log)}, pictures, with.api)
	testenv.Do(tb, err)
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
		s.unfollow()
		stop()
		pictures.Close()
	})
	testenv.Eventually(tb, "the edge receives heartbeats", func() bool { return s.resolver.Check(tb.Context()) == nil })
	if !with.isAging { // heartbeats are late on a busy machine
		testenv.Do(tb, s.resolver.Apply(edgeproto.Event{Cursor: s.resolver.Cursor()}, time.Now().Add(time.Hour)))
	}
	return s
}

// inBackground runs a function, and returns one that ends it.
func inBackground(tb testing.TB, run func(context.Context)) (end func()) {
	tb.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(tb.Context()))
	done := make(chan struct{})
	go func() { defer close(done); run(ctx) }()
	return func() { cancel(); <-done }
}

// listen serves on a socket of its own until the test ends, and returns the URL.
func listen(tb testing.TB, with httpserver.Listener) string {
	tb.Helper()
	listener := testenv.Must(new(net.ListenConfig).Listen(tb.Context(), "tcp", "127.0.0.1:0"))(tb)
	served := make(chan error, 1)
	go func() { served <- with.Server.Serve(with.Wrap(listener)) }()
	tb.Cleanup(func() {
		testenv.Do(tb, with.Server.Shutdown())
		testenv.Do(tb, <-served)
	})
	return "http://" + listener.Addr().String()
}

// put stores a texture and returns it for mappings.
func (s *testServer) put(tb testing.TB, tid int64, sheet skin.Sheet, kind skin.Type) *edgeproto.Texture {
	tb.Helper()
	file := origintest.File(tb, sheet, kind)
	testenv.Do(tb, s.store.Put(tb.Context(), skin.HashOf(file), file))
	return &edgeproto.Texture{TID: tid, Hash: skin.HashOf(file), Type: kind}
}

// set changes the mappings of keys and waits until the edge has applied the change.
func (s *testServer) set(tb testing.TB, changes map[edgeproto.Key]edgeproto.Mapping) {
	tb.Helper()
	before := s.resolver.Cursor().Revision
	s.core.Set(changes)
	testenv.Eventually(tb, "the edge applies the change", func() bool { return s.resolver.Cursor().Revision > before })
}

// remove deletes a texture's file from the object store.
func (s *testServer) remove(tb testing.TB, hash skin.Hash) {
	tb.Helper()
	testenv.Do(tb, os.Remove(filepath.Join(s.directory, hash.String()[:2], hash.String()+".png")))
}

// reply is a response with its body.
type reply struct {
	status int
	header http.Header
	body   string
	id     string // X-Request-ID, which is not in header
}

// expect checks the status of a response, and fields of its header by their names and values. The field body is the
// whole body, and code the code of an error.
func (r reply) expect(tb testing.TB, what string, status int, fields ...string) {
	tb.Helper()
	testenv.Check(tb, r.status == status, "%s: %d %.200q; want %d", what, r.status, r.body, status)
	for field := range slices.Chunk(fields, 2) {
		got := r.header.Get(field[0])
		switch field[0] {
		case "body":
			got = r.body
		case "code":
			got, _, _ = strings.Cut(strings.TrimPrefix(r.body, `{"code":`), ",")
		}
		testenv.Check(tb, got == field[1], "%s: the %s is %.200q; want %.200q", what, field[0], got, field[1])
	}
}

func (s *testServer) do(tb testing.TB, method, path string, header http.Header, body string) reply {
	tb.Helper()
	response := httpservertest.Call(tb, nil, method, s.url+path, header, body)
	isCore := strings.HasPrefix(path, "/api") || roots.Of(path) != "" && s.forwards
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

// connection is a connection on which a test writes requests itself.
type connection struct {
	net.Conn
	reader *bufio.Reader
}

// dial connects to a server from an address, empty for any.
func dial(tb testing.TB, url, from string) *connection {
	tb.Helper()
	var dialer net.Dialer
	if from != "" {
		dialer.LocalAddr = &net.TCPAddr{IP: net.ParseIP(from)}
	}
	conn := testenv.Must(dialer.DialContext(tb.Context(), "tcp", addressOf(url)))(tb)
	tb.Cleanup(func() { _ = conn.Close() })
	return &connection{conn, bufio.NewReader(conn)}
}

// send writes a text.
func (c *connection) send(tb testing.TB, text string) *connection {
	tb.Helper()
	testenv.Must(io.WriteString(c, text))(tb)
	return c
}

// reply reads the next response. To HEAD it has no body.
func (c *connection) reply(tb testing.TB, method string) reply {
	tb.Helper()
	response, err := http.ReadResponse(c.reader, &http.Request{Method: method})
	testenv.Do(tb, err)
	body := testenv.Must(io.ReadAll(response.Body))(tb)
	_ = response.Body.Close()
	id := strings.Join(response.Header.Values("X-Request-Id"), ", ")
	response.Header.Del("X-Request-Id")
	return reply{status: response.StatusCode, header: response.Header, body: string(body), id: id}
}

// get requests a path and reads the response.
func (c *connection) get(tb testing.TB, path string) reply {
	tb.Helper()
	return c.send(tb, "GET "+path+" HTTP/1.1\r\nHost: x\r\n\r\n").reply(tb, http.MethodGet)
}

// removeMarker deletes the marker of the object store, without which a missing file counts as
// an unavailable store.
func (s *testServer) removeMarker(tb testing.TB) {
	tb.Helper()
	testenv.Do(tb, os.Remove(filepath.Join(s.directory, ".veneer")))
}
