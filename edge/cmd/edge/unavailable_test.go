//go:build !race

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
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
	target, err := url.Parse(upstream)
	if err != nil {
		tb.Fatal(err)
	}
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

func (g *faultProxy) listen(address string) {
	g.tb.Helper()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		g.tb.Fatal(err)
	}
	g.server = &httptest.Server{Listener: listener, Config: &http.Server{Handler: g}}
	g.server.Start()
}

func (g *faultProxy) close() {
	g.server.CloseClientConnections()
	g.server.Close()
}

// inject makes all requests fail, including those in flight.
func (g *faultProxy) inject(f failure) {
	g.failure.Store(&f)
	if f.respond == nil {
		g.close()
	} else {
		g.server.CloseClientConnections()
	}
}

// restore forwards requests again.
func (g *faultProxy) restore() {
	if f := g.failure.Swap(nil); f.respond == nil {
		g.listen(g.address)
	} else {
		g.server.CloseClientConnections()
	}
}

func (g *faultProxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if f := g.failure.Load(); f != nil && f.respond != nil {
		f.respond(w, r)
		return
	}
	g.proxy.ServeHTTP(w, r)
}

// edgeProcess is a running edge.
type edgeProcess struct {
	*testing.T
	public, operators string
}

// run starts an edge, which is stopped when the test ends, and waits until it is ready.
func run(t *testing.T, settings ...string) edgeProcess {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	command := exec.CommandContext(ctx, edgeWith(t, "").Path, "serve")
	command.Env = append([]string{asProgram + "=1", "EDGE_LISTEN=127.0.0.1:0", "EDGE_OPS_LISTEN=127.0.0.1:0"}, settings...)
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	stdout, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	addresses, ended := make(chan string, 2), make(chan struct{})
	go func() {
		defer close(ended)
		var line struct{ Msg, Address string }
		for lines := json.NewDecoder(stdout); lines.Decode(&line) == nil; {
			if line.Msg == "listening" {
				addresses <- line.Address
			}
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
		_ = command.Wait()
	})
	r := edgeProcess{T: t}
	for _, address := range []*string{&r.public, &r.operators} {
		select {
		case *address = <-addresses:
		case <-ended:
			t.Fatal("the program ended")
		}
	}
	r.eventually("it is ready", func() bool { return r.get(r.operators, "/readyz").Status == http.StatusOK })
	return r
}

// eventually waits until a condition holds.
func (r edgeProcess) eventually(what string, holds func() bool) {
	r.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(30 * time.Second); !holds(); <-tick.C {
		if time.Now().After(deadline) {
			r.Fatalf("timeout: %s", what)
		}
	}
}

func (r edgeProcess) get(address, path string) httpservertest.Response {
	r.Helper()
	return httpservertest.Get(r.T, "http://"+address+path)
}

// picture gets a picture, which must exist.
func (r edgeProcess) picture(path string) httpservertest.Response {
	r.Helper()
	a := r.get(r.public, path)
	if a.Status != http.StatusOK || !strings.HasPrefix(a.Header.Get("Content-Type"), "image/") {
		r.Fatalf("%s: %d %s; want a picture", path, a.Status, a.Body)
	}
	return a
}

// same checks that a picture has not changed, and returns its response.
func (r edgeProcess) same(path string, want httpservertest.Response) httpservertest.Response {
	r.Helper()
	a := r.picture(path)
	if a.Body != want.Body || a.Header.Get("ETag") != want.Header.Get("ETag") {
		r.Errorf("%s has changed", path)
	}
	return a
}

// unavailable checks that paths get 503 with a Retry-After and without caching: no default
// picture, and nothing that a cache may store.
func (r edgeProcess) unavailable(paths ...string) {
	r.Helper()
	for _, path := range paths {
		a := r.get(r.public, path)
		var problem struct{ Code int }
		if err := json.Unmarshal([]byte(a.Body), &problem); err != nil || a.Status != http.StatusServiceUnavailable || problem.Code != 9 {
			r.Errorf("%s: %d %.100s; want 503, code 9", path, a.Status, a.Body)
		}
		if a.Header.Get("Retry-After") == "" || a.Header.Get("Cache-Control") != "no-store" || a.Header.Get("ETag") != "" {
			r.Errorf("%s: 503 with the headers %v", path, a.Header)
		}
	}
}

// metric reports whether the program's metrics contain a line.
func (r edgeProcess) metric(line string) bool {
	r.Helper()
	return strings.Contains(r.get(r.operators, "/metrics").Body, line+"\n")
}

// breakerOpened returns how often the circuit breaker of a dependency has opened.
func (r edgeProcess) breakerOpened(dependency string) float64 {
	r.Helper()
	return metricstest.Value(r.T, r.get(r.operators, "/metrics").Body, "veneer_breaker_opened_total{dependency=\""+dependency+"\"}")
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
	if err := store.Put(t.Context(), hash, file); err != nil {
		t.Fatal(err)
	}
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
			store := blobstoretest.Open(t, place.Config)
			if err := store.Init(t.Context()); err != nil {
				t.Fatal(err)
			}
			worn, after := put(t, store, artwork.Robot()), put(t, store, artwork.Default())
			core.Set(map[edgeproto.Key]edgeproto.Mapping{
				"name:known": player(1, worn), "name:unknown": player(2, worn),
				"uid:1": {User: &edgeproto.User{UID: 1, Avatar: 1, Texture: player(1, worn).Player.Skin}},
			})
			proxy := newFaultProxy(t, core.URL)
			r := run(t, "EDGE_CORE_URL=http://"+proxy.address, "EDGE_CORE_SECRETS="+origintest.Secret, "EDGE_OBJECTS_URL="+place.Config.URL, "EDGE_CORE_TIMEOUT=300ms")
			cached, absent := r.picture("/avatar/player/known"), r.get(r.public, "/avatar/player/nobody")
			if absent.Status != http.StatusNotFound {
				t.Fatalf("a player that does not exist: %d", absent.Status)
			}

			opened := r.breakerOpened("core")
			proxy.inject(f)
			stale := func() bool {
				return strings.Contains(r.same("/avatar/player/known", cached).Header.Get("Cache-Status"), "stale")
			}
			r.eventually("the mapping is stale", stale)
			for range 20 {
				if !stale() {
					t.Error("the mapping is not stale any more, though core has not answered")
				}
				r.unavailable("/avatar/player/unknown", "/avatar/user/1", "/avatar/7", "/preview/hash/"+worn.String())
			}
			if a := r.get(r.public, "/avatar/player/nobody"); a.Status != http.StatusNotFound {
				t.Errorf("a player that does not exist, from the cache: %d; want 404", a.Status)
			}
			if r.breakerOpened("core") == opened {
				t.Error("the metrics do not show that the breaker of core has opened")
			}
			// Views of the cached texture are rendered without core.
			r.picture("/avatar/player/known?size=64&png")

			core.Set(map[edgeproto.Key]edgeproto.Mapping{"name:known": player(1, after)})
			proxy.restore()
			r.eventually("core is available again", func() bool { return r.get(r.public, "/avatar/player/unknown").Status == http.StatusOK })
			r.eventually("the change is seen", func() bool {
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
	store := blobstoretest.Open(t, place.Config)
	if err := store.Init(t.Context()); err != nil {
		t.Fatal(err)
	}
	core.Set(map[edgeproto.Key]edgeproto.Mapping{"name:known": player(1, put(t, store, artwork.Robot()))})
	proxy := newFaultProxy(t, core.URL)
	r := run(t, "EDGE_CORE_URL=http://"+proxy.address, "EDGE_CORE_SECRETS="+origintest.Secret, "EDGE_OBJECTS_URL="+place.Config.URL, "EDGE_MAX_STALE=1200ms")
	cached := r.picture("/avatar/player/known")
	proxy.inject(failures[0])
	r.eventually("the mapping has expired", func() bool { return r.get(r.public, "/avatar/player/known").Status != http.StatusOK })
	r.unavailable("/avatar/player/known")
	proxy.restore()
	r.eventually("core is available again", func() bool { return r.get(r.public, "/avatar/player/known").Status == http.StatusOK })
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
			store := blobstoretest.Open(t, place.Config)
			if err := store.Init(t.Context()); err != nil {
				t.Fatal(err)
			}
			mappings := map[edgeproto.Key]edgeproto.Mapping{"name:known": player(1, put(t, store, artwork.Robot()))}
			for i := range int64(10) { // a failed fetch is not retried for a moment
				mappings[edgeproto.NameKey(fmt.Sprintf("unknown_%d", i))] = player(2+i, put(t, store, skintest.Noise(uint64(i), 64, 64)))
			}
			core.Set(mappings)
			proxy := newFaultProxy(t, place.Config.Endpoint)
			r := run(t, "EDGE_CORE_URL="+core.URL, "EDGE_CORE_SECRETS="+origintest.Secret,
				"EDGE_OBJECTS_URL="+place.Config.URL, "EDGE_OBJECTS_ENDPOINT=http://"+proxy.address,
				"EDGE_OBJECTS_ACCESS_KEY="+place.Config.AccessKey, "EDGE_OBJECTS_SECRET_KEY="+place.Config.SecretKey, "EDGE_OBJECTS_TIMEOUT=300ms")
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
			if r.breakerOpened("texture store") == opened {
				t.Error("the metrics do not show that the breaker of the store has opened")
			}
			if !r.metric("veneer_edge_missing_objects_total 0") {
				t.Error("a file counts as missing though the store was unavailable")
			}
			proxy.restore()
			r.eventually("the store is available again", func() bool { return r.get(r.public, "/avatar/player/unknown_0").Status == http.StatusOK })
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
	store := blobstoretest.Open(t, place.Config)
	if err := store.Init(t.Context()); err != nil {
		t.Fatal(err)
	}
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
		if err != nil {
			t.Error(err)
		}
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
	r.eventually("acknowledged", func() bool { return core.Applied().Revision >= 102 })
	close(release)
	old := <-got
	proxy.failure.Store(nil)
	fresh := r.picture(path)
	if old != nil && old.Header.Get("ETag") != fresh.Header.Get("ETag") {
		t.Errorf("after the acknowledgement the old picture is served with %q", old.Header.Get("Cache-Control"))
	}
}
