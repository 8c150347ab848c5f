//go:build !race

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/veneer-skins/veneer/edge/origin/origintest"
	"github.com/veneer-skins/veneer/shared/blobstore"
	"github.com/veneer-skins/veneer/shared/blobstore/blobstoretest"
	"github.com/veneer-skins/veneer/shared/edgeproto"
	"github.com/veneer-skins/veneer/shared/httpserver/httpservertest"
	"github.com/veneer-skins/veneer/shared/metrics/metricstest"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/skin/artwork"
	"github.com/veneer-skins/veneer/shared/skin/skintest"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// failure is a way in which a dependency fails.
type failure struct {
	name    string
	respond http.HandlerFunc
}

// failures are outages: of a dependency that is killed or unreachable, without any response,
// and of one that responds uselessly.
var failures = []failure{
	{"refuses connections", nil},
	{"never answers", func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // or the server would not notice that the client disconnects
		<-r.Context().Done()
	}},
	{"cuts connections", func(w http.ResponseWriter, _ *http.Request) { hijackAndClose(w, "") }},
	{"answers 500", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }},
	{"answers half", func(w http.ResponseWriter, _ *http.Request) {
		hijackAndClose(w, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{\"epoch\":\"first\",\"revision\":101,\"mapp")
	}},
	{"answers garbage", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>It works!</html>") }},
	{"answers slowly", func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-time.After(2 * time.Second): // far longer than the timeouts
			w.WriteHeader(http.StatusOK)
		case <-r.Context().Done():
		}
	}},
}

func hijackAndClose(w http.ResponseWriter, last string) {
	connection, _, err := http.NewResponseController(w).Hijack()
	if err == nil {
		_, _ = io.WriteString(connection, last)
		_ = connection.Close()
	}
}

// faultProxy is a proxy in front of a dependency that injects failures.
type faultProxy struct {
	tb      testing.TB
	address string
	server  *httptest.Server
	proxy   http.Handler
	failure atomic.Pointer[failure] // nil: requests are forwarded
}

// newFaultProxy returns a proxy in front of a dependency.
func newFaultProxy(tb testing.TB, upstream string) *faultProxy {
	tb.Helper()
	target := testenv.Must(url.Parse(upstream))(tb)
	g := &faultProxy{tb: tb, proxy: &httputil.ReverseProxy{
		FlushInterval: -1, // for streams
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Host = r.In.Host // S3 clients sign it
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}}
	g.listen("127.0.0.1:0")
	g.address = g.server.Listener.Addr().String()
	tb.Cleanup(func() { g.close() })
	return g
}

func (p *faultProxy) listen(address string) {
	p.tb.Helper()
	listener := testenv.Must(net.Listen("tcp", address))(p.tb)
	p.server = &httptest.Server{Listener: listener, Config: &http.Server{Handler: p}}
	p.server.Start()
}

func (p *faultProxy) close() {
	p.server.CloseClientConnections()
	p.server.Close()
}

// inject makes all requests fail, including those in flight.
func (p *faultProxy) inject(f failure) {
	p.failure.Store(&f)
	if f.respond == nil {
		p.close()
	} else {
		p.server.CloseClientConnections()
	}
}

// restore forwards requests again.
func (p *faultProxy) restore() {
	if f := p.failure.Swap(nil); f.respond == nil {
		p.listen(p.address)
	} else {
		p.server.CloseClientConnections()
	}
}

func (p *faultProxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if f := p.failure.Load(); f != nil && f.respond != nil {
		f.respond(w, r)
		return
	}
	p.proxy.ServeHTTP(w, r)
}

// run starts an edge, and waits until it is ready.
func run(t *testing.T, settings ...string) *edgeProcess {
	t.Helper()
	e := start(t, append(settings, "EDGE_LISTEN=127.0.0.1:0", "EDGE_OPS_LISTEN=127.0.0.1:0")...)
	testenv.Eventually(t, "it is ready", func() bool { return e.get(e.operators, "/readyz").Status == http.StatusOK })
	return e
}

func (e *edgeProcess) get(address, path string) httpservertest.Response {
	e.Helper()
	return httpservertest.Get(e.T, "http://"+address+path)
}

// picture gets a picture, which must exist.
func (e *edgeProcess) picture(path string) httpservertest.Response {
	e.Helper()
	a := e.get(e.public, path)
	if a.Status != http.StatusOK || !strings.HasPrefix(a.Header.Get("Content-Type"), "image/") {
		e.Fatalf("%s: %d %s; want a picture", path, a.Status, a.Body)
	}
	return a
}

// await waits until a path has a status: beside a busy machine the first requests may take longer than
// the edge waits.
func (e *edgeProcess) await(path string, status int) {
	e.Helper()
	testenv.Eventually(e, fmt.Sprintf("%s has status %d", path, status), func() bool { return e.get(e.public, path).Status == status })
}

// same checks that a picture has not changed, and returns its response.
func (e *edgeProcess) same(path string, want httpservertest.Response) httpservertest.Response {
	e.Helper()
	a := e.picture(path)
	testenv.Check(e, a.Body == want.Body && a.Header.Get("ETag") == want.Header.Get("ETag"), "%s has changed", path)
	return a
}

// unavailable checks that paths get 503 with a Retry-After and without caching: no default
// picture, and nothing that a cache may store.
func (e *edgeProcess) unavailable(paths ...string) {
	e.Helper()
	for _, path := range paths {
		a := e.get(e.public, path)
		var problem struct{ Code int }
		if err := json.Unmarshal([]byte(a.Body), &problem); err != nil || a.Status != http.StatusServiceUnavailable || problem.Code != 9 {
			e.Errorf("%s: %d %.100s; want 503, code 9", path, a.Status, a.Body)
		}
		if a.Header.Get("Retry-After") == "" || a.Header.Get("Cache-Control") != "no-store" || a.Header.Get("ETag") != "" {
			e.Errorf("%s: 503 with the headers %v", path, a.Header)
		}
	}
}

// metric reports whether the program's metrics contain a line.
func (e *edgeProcess) metric(line string) bool {
	e.Helper()
	return strings.Contains(e.get(e.operators, "/metrics").Body, line+"\n")
}

// breakerOpened returns how often the circuit breaker of a dependency has opened.
func (e *edgeProcess) breakerOpened(dependency string) float64 {
	e.Helper()
	return metricstest.Value(e.T, e.get(e.operators, "/metrics").Body, "veneer_breaker_opened_total{dependency=\""+dependency+"\"}")
}

// player returns the mapping of a player with a skin.
func player(pid int64, worn skin.Hash) edgeproto.Mapping {
	return edgeproto.Mapping{Player: &edgeproto.Player{PID: pid, Name: fmt.Sprint("player", pid), Skin: &edgeproto.Texture{TID: pid, Hash: worn, Type: skin.Classic}}}
}

// put stores a sheet and returns its hash.
func put(t *testing.T, store *blobstore.Store, sheet skin.Sheet) skin.Hash {
	t.Helper()
	file := origintest.File(t, sheet, skin.Classic)
	hash := skin.HashOf(file)
	testenv.Do(t, store.Put(t.Context(), hash, file))
	return hash
}

// TestCoreUnavailable makes core fail in every way, and recover.
func TestCoreUnavailable(t *testing.T) {
	t.Parallel()
	testenv.SkipShort(t)
	malformed := []failure{
		{"answers about other keys", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"epoch":"first","revision":101,"mappings":[{},{},{}]}`)
		}},
		{"answers of no time", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"mappings":[{}]}`) }},
	}
	for _, f := range append(malformed, failures...) {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			core, place := origintest.Start(t), blobstoretest.Directory(t)
			store := blobstoretest.OpenInit(t, place.Config)
			worn, after := put(t, store, artwork.Robot()), put(t, store, artwork.Default())
			core.Set(map[edgeproto.Key]edgeproto.Mapping{
				"name:known": player(1, worn), "name:unknown": player(2, worn),
				"uid:1": {User: &edgeproto.User{UID: 1, Avatar: 1, Texture: player(1, worn).Player.Skin}},
			})
			proxy := newFaultProxy(t, core.URL)
			r := run(t, "EDGE_CORE_URL=http://"+proxy.address, "EDGE_CORE_SECRETS="+origintest.Secret, "EDGE_OBJECTS_URL="+place.Config.URL, "EDGE_CORE_TIMEOUT=300ms")
			r.await("/avatar/player/nobody", http.StatusNotFound)
			r.await("/avatar/player/known", http.StatusOK)
			cached := r.picture("/avatar/player/known")

			opened := r.breakerOpened("core")
			proxy.inject(f)
			stale := func() bool {
				return strings.Contains(r.same("/avatar/player/known", cached).Header.Get("Cache-Status"), "stale")
			}
			testenv.Eventually(r, "the mapping is stale", stale)
			for range 20 {
				testenv.Check(t, stale(), "the mapping is not stale any more, though core has not answered")
				r.unavailable("/avatar/player/unknown", "/avatar/user/1", "/avatar/7", "/preview/hash/"+worn.String())
			}
			testenv.Equal(t, r.get(r.public, "/avatar/player/nobody").Status, http.StatusNotFound,
				"a player that does not exist, from the cache")
			testenv.Check(t, r.breakerOpened("core") != opened,
				"the metrics do not show that the breaker of core has opened")
			// Views of the cached texture are rendered without core.
			r.picture("/avatar/player/known?size=64&png")

			core.Set(map[edgeproto.Key]edgeproto.Mapping{"name:known": player(1, after)})
			proxy.restore()
			r.await("/avatar/player/unknown", http.StatusOK)
			testenv.Eventually(r, "the change is seen", func() bool {
				a := r.picture("/avatar/player/known")
				return a.Body != cached.Body && !strings.Contains(a.Header.Get("Cache-Status"), "stale")
			})
		})
	}
}

// TestStaleMappingsExpire makes core unavailable for longer than EDGE_MAX_STALE.
func TestStaleMappingsExpire(t *testing.T) {
	t.Parallel()
	testenv.SkipShort(t)
	core, place := origintest.Start(t), blobstoretest.Directory(t)
	store := blobstoretest.OpenInit(t, place.Config)
	core.Set(map[edgeproto.Key]edgeproto.Mapping{"name:known": player(1, put(t, store, artwork.Robot()))})
	proxy := newFaultProxy(t, core.URL)
	r := run(t, "EDGE_CORE_URL=http://"+proxy.address, "EDGE_CORE_SECRETS="+origintest.Secret, "EDGE_OBJECTS_URL="+place.Config.URL, "EDGE_MAX_STALE=1200ms")
	cached := r.picture("/avatar/player/known")
	proxy.inject(failures[0])
	testenv.Eventually(r, "the mapping has expired", func() bool { return r.get(r.public, "/avatar/player/known").Status != http.StatusOK })
	r.unavailable("/avatar/player/known")
	proxy.restore()
	testenv.Eventually(r, "core is available again", func() bool { return r.get(r.public, "/avatar/player/known").Status == http.StatusOK })
	r.same("/avatar/player/known", cached)
}

// TestStoreUnavailable makes the object store fail in every way, and recover.
func TestStoreUnavailable(t *testing.T) {
	t.Parallel()
	testenv.SkipShort(t)
	for _, f := range failures {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			core, place := origintest.Start(t), blobstoretest.Bucket(t)
			store := blobstoretest.OpenInit(t, place.Config)
			mappings := map[edgeproto.Key]edgeproto.Mapping{"name:known": player(1, put(t, store, artwork.Robot()))}
			for i := range int64(10) { // a failed fetch is not retried for a moment
				mappings[edgeproto.NameKey(fmt.Sprintf("unknown_%d", i))] = player(2+i, put(t, store, skintest.Noise(uint64(i), 64, 64)))
			}
			core.Set(mappings)
			proxy := newFaultProxy(t, place.Config.Endpoint)
			r := run(t, "EDGE_CORE_URL="+core.URL, "EDGE_CORE_SECRETS="+origintest.Secret,
				"EDGE_OBJECTS_URL="+place.Config.URL, "EDGE_OBJECTS_ENDPOINT=http://"+proxy.address,
				"EDGE_OBJECTS_ACCESS_KEY="+place.Config.AccessKey, "EDGE_OBJECTS_SECRET_KEY="+place.Config.SecretKey, "EDGE_OBJECTS_TIMEOUT=300ms")
			r.await("/avatar/player/known", http.StatusOK)
			cached := r.picture("/avatar/player/known")

			opened := r.breakerOpened("texture store")
			proxy.inject(f)
			for i := range 10 {
				r.same("/avatar/player/known", cached)
				// Rendered from the cached sheet.
				r.picture(fmt.Sprintf("/avatar/player/known?size=%d&3d", 16+8*i))
				uncached := fmt.Sprintf("/avatar/player/unknown_%d", i%10)
				r.unavailable(uncached, fmt.Sprintf("%s?size=%d", uncached, 16+8*i))
			}
			testenv.Check(t, r.breakerOpened("texture store") != opened,
				"the metrics do not show that the breaker of the store has opened")
			testenv.Check(t, r.metric("veneer_edge_missing_objects_total 0"),
				"a file counts as missing though the store was unavailable")
			proxy.restore()
			r.await("/avatar/player/unknown_0", http.StatusOK)
		})
	}
}

// When a change is acknowledged while an older response of core is in flight, clients get the
// new picture: the CDN may have been purged by then.
func TestChangeDuringLookup(t *testing.T) {
	t.Parallel()
	const path = "/avatar/player/known"
	core, place := origintest.Start(t), blobstoretest.Directory(t)
	core.Stream = "4f2e5a52-8f0c-4b67-9a1c-2b7a3f7b3f11"
	store := blobstoretest.OpenInit(t, place.Config)
	worn, after := put(t, store, artwork.Robot()), put(t, store, artwork.Default())
	core.Set(map[edgeproto.Key]edgeproto.Mapping{"name:known": player(1, worn), "name:twin": player(2, worn)})
	proxy := newFaultProxy(t, core.URL)
	r := run(t, "EDGE_CORE_URL=http://"+proxy.address, "EDGE_CORE_SECRETS="+origintest.Secret, "EDGE_OBJECTS_URL="+place.Config.URL, "EDGE_S_MAXAGE=24h")
	r.picture("/avatar/player/twin") // the old picture is cached
	reached, release := make(chan struct{}, 8), make(chan struct{})
	f := failure{"late", func(w http.ResponseWriter, req *http.Request) {
		if req.URL.Path != edgeproto.LookupPath {
			proxy.proxy.ServeHTTP(w, req)
			return
		}
		rec := httptest.NewRecorder()
		proxy.proxy.ServeHTTP(rec, req)
		reached <- struct{}{}
		<-release
		_, _ = w.Write(rec.Body.Bytes())
	}}
	proxy.failure.Store(&f)
	got := make(chan *http.Response, 1)
	go func() {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+r.public+path, http.NoBody)
		testenv.Is(t, err, nil, "a request")
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Error(err)
			got <- nil
			return
		}
		_, _ = io.Copy(io.Discard, response.Body)
		_ = response.Body.Close()
		got <- response
	}()
	<-reached
	core.Set(map[edgeproto.Key]edgeproto.Mapping{"name:known": player(1, after)})
	testenv.Eventually(r, "acknowledged", func() bool { return core.Applied().Revision >= 102 })
	close(release)
	old := <-got
	proxy.failure.Store(nil)
	fresh := r.picture(path)
	if old != nil && old.Header.Get("ETag") != fresh.Header.Get("ETag") {
		t.Errorf("after the acknowledgement the old picture is served with %q", old.Header.Get("Cache-Control"))
	}
}
