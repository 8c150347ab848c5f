package origin_test

import (
	"context"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/veneer-skins/veneer/edge"
	"github.com/veneer-skins/veneer/edge/origin"
	"github.com/veneer-skins/veneer/edge/origin/origintest"
	"github.com/veneer-skins/veneer/shared/blobstore"
	"github.com/veneer-skins/veneer/shared/blobstore/blobstoretest"
	"github.com/veneer-skins/veneer/shared/edgeproto"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/logging/loggingtest"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/skin/artwork"
	"github.com/veneer-skins/veneer/shared/testenv"
	"github.com/veneer-skins/veneer/shared/testenv/cmptest"
)

var _ origin.Follower = (*edge.Resolver)(nil)

// startCore returns a client of core that sends look-ups until the test ends.
func startCore(t *testing.T, config origin.Config, log *slog.Logger) *origin.Core {
	t.Helper()
	core := newCore(t, config, log)
	background(t, core.Run)
	return core
}

// newCore returns a client of core that sends no look-ups.
func newCore(t *testing.T, config origin.Config, log *slog.Logger) *origin.Core {
	t.Helper()
	if config.Secrets == nil {
		config.Secrets = []string{origintest.Secret, "an-older-secret-of-the-ring"}
	}
	if config.Queue == 0 {
		config.Queue = 8192
	}
	if config.Timeout == 0 {
		config.Timeout = 5 * time.Second
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return testenv.Must(origin.NewCore(config, log))(t)
}

// background runs a function until the test ends.
func background(t *testing.T, run func(ctx context.Context)) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var running sync.WaitGroup
	running.Go(func() { run(ctx) })
	t.Cleanup(func() { cancel(); running.Wait() })
}

func texture(tid int64) edgeproto.Mapping {
	return edgeproto.Mapping{Texture: &edgeproto.Texture{TID: tid, Hash: skin.Hash{byte(tid)}, Type: skin.Slim}}
}

func TestLookup(t *testing.T) {
	t.Parallel()
	server := origintest.Start(t)
	worn := texture(3).Texture
	player := edgeproto.Mapping{Player: &edgeproto.Player{PID: 1, UUID: "u", Name: "Steve", Skin: worn}}
	user := edgeproto.Mapping{User: &edgeproto.User{UID: 2, Avatar: 3, Texture: worn}}
	server.Set(map[edgeproto.Key]edgeproto.Mapping{"name:steve": player, "uid:2": user, "tid:3": texture(3)})
	core := startCore(t, origin.Config{URL: server.URL + "/"}, nil)

	f := func(key edgeproto.Key, want edgeproto.Mapping) {
		t.Helper()
		got, cursor, err := core.Lookup(t.Context(), key)
		if err != nil {
			t.Fatalf("Lookup(%s): %v", key, err)
		}
		cmptest.Same(t, got, want, "Lookup(%s)", key)
		testenv.Equal(t, cursor, edgeproto.Cursor{Epoch: "first", Revision: 101}, "the cursor of Lookup(%s)", key)
	}
	f("name:steve", player)
	f("uid:2", user)
	f("tid:3", texture(3))
	f("name:missing", edgeproto.Mapping{})
}

// lookUpTextures creates a number of textures and looks each up once.
func lookUpTextures(t *testing.T, core *origin.Core, server *origintest.Core, textures int64) {
	t.Helper()
	changes := map[edgeproto.Key]edgeproto.Mapping{}
	for i := range textures {
		changes[edgeproto.TIDKey(i)] = texture(i)
	}
	server.Set(changes)
	var all sync.WaitGroup
	for i := range textures {
		all.Go(func() {
			_, _, err := core.Lookup(t.Context(), edgeproto.TIDKey(i))
			testenv.Check(t, err == nil, "Lookup of %d: %v", i, err)
		})
	}
	all.Wait()
	server.Lookups.Store(0)
	server.Keys.Store(0)
}

func TestLookupsAreBatched(t *testing.T) {
	t.Parallel()
	server := origintest.Start(t)
	const keys, atOnce = 2000, 6
	core := startCore(t, origin.Config{URL: server.URL}, nil)
	lookUpTextures(t, core, server, keys)
	release, entered := make(chan struct{}), make(chan struct{}, 100)
	var inFlight, most atomic.Int64
	server.SetOnLookup(func([]edgeproto.Key) {
		most.Store(max(most.Load(), inFlight.Add(1)))
		entered <- struct{}{}
		<-release
		inFlight.Add(-1)
	})

	var all sync.WaitGroup
	lookUp := func(i int64) {
		got, _, err := core.Lookup(t.Context(), edgeproto.TIDKey(i))
		testenv.Check(t, err == nil && got.Texture != nil && got.Texture.TID == i,
			"Lookup of %d = %+v, %v", i, got, err)
	}
	for i := range int64(atOnce) { // one each, to fill what may be in flight
		all.Go(func() { lookUp(i) })
		<-entered
	}
	var started atomic.Int64
	for i := range int64(keys - atOnce) {
		all.Go(func() { started.Add(1); lookUp(i + atOnce) })
	}
	testenv.Eventually(t, "all are queued", func() bool { return started.Load() == keys-atOnce })
	close(release)
	all.Wait()
	testenv.Equal(t, server.Keys.Load(), keys, "keys that core got")
	if got := server.Lookups.Load(); got > 200 {
		t.Errorf("core got %d requests for %d keys; want them batched", got, keys)
	}
	testenv.Equal(t, most.Load(), atOnce, "requests were in flight")
}

func TestFullQueueRejects(t *testing.T) {
	t.Parallel()
	core := newCore(t, origin.Config{URL: "http://127.0.0.1:1", Queue: 2}, nil)
	ctx, cancel := context.WithCancel(t.Context())
	var waiting sync.WaitGroup
	defer waiting.Wait()
	defer cancel()
	errs := make(chan error, 3)
	for range 3 {
		waiting.Go(func() { _, _, err := core.Lookup(ctx, "tid:1"); errs <- err })
	}
	if err := <-errs; fault.KindOf(err) != fault.Unavailable || !errors.Is(err, edge.ErrShed) {
		t.Errorf("Lookup() = %v; want ErrShed", err)
	}
}

func TestLookupFails(t *testing.T) {
	t.Parallel()
	hang := make(chan struct{})
	t.Cleanup(func() { close(hang) })
	for _, test := range []struct {
		name   string
		answer http.HandlerFunc
	}{
		{"when core is overloaded", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTooManyRequests) }},
		{"when core is broken", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }},
		{"when core rejects the secret", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }},
		{"when core redirects", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/", http.StatusFound) }},
		{"when the response is no JSON", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) }},
		{"when the response is for other keys", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"mappings":[]}`)) }},
		{"when the response has no epoch", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"mappings":[{}]}`)) }},
		{"when the response is truncated", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = w.Write([]byte("{"))
		}},
		{"when core hangs", func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body) // or the server would not notice that the client disconnects
			select {
			case <-hang:
			case <-r.Context().Done():
			}
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(test.answer)
			defer server.Close()
			core := startCore(t, origin.Config{URL: server.URL, Timeout: 100 * time.Millisecond}, nil)
			_, _, err := core.Lookup(t.Context(), "tid:1")
			if f := fault.Of(err); f.Kind != fault.Unavailable || f.RetryAfter == 0 {
				t.Errorf("Lookup() = %v; want it unavailable, with a Retry-After", err)
			}
		})
	}
	t.Run("when the port is closed", func(t *testing.T) {
		t.Parallel()
		listener := testenv.Must(new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0"))(t)
		_ = listener.Close()
		core := startCore(t, origin.Config{URL: "http://" + listener.Addr().String()}, nil)
		_, _, err := core.Lookup(t.Context(), "tid:1")
		testenv.Check(t, fault.KindOf(err) == fault.Unavailable, "Lookup() = %v; want it unavailable", err)
	})
}

// flakyCore closes the connection of the next failures requests, and answers others.
type flakyCore struct {
	requests, failures atomic.Int64
	url                string
}

func startFlakyCore(t *testing.T) *flakyCore {
	t.Helper()
	f := &flakyCore{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		f.requests.Add(1)
		if f.failures.Add(-1) >= 0 {
			if connection, _, err := http.NewResponseController(w).Hijack(); err == nil {
				_ = connection.Close()
			}
			return
		}
		_, _ = w.Write([]byte(`{"epoch":"e","revision":1,"mappings":[{}]}`))
	}))
	t.Cleanup(server.Close)
	f.url = server.URL
	return f
}

func TestBrokenConnectionIsRetried(t *testing.T) {
	t.Parallel()
	server := startFlakyCore(t)
	server.failures.Store(1)
	core := startCore(t, origin.Config{URL: server.url}, nil)
	_, _, err := core.Lookup(t.Context(), "tid:1")
	testenv.Check(t, err == nil, "Lookup() = %v; want it to be retried", err)
	testenv.Equal(t, server.requests.Load(), 2, "requests that core got")
}

func TestBreakerOpens(t *testing.T) {
	t.Parallel()
	server := startFlakyCore(t)
	server.failures.Store(1 << 30)
	core := startCore(t, origin.Config{URL: server.url}, nil)
	lookUp := func() error {
		_, _, err := core.Lookup(t.Context(), "tid:1")
		return err
	}
	const lookups = 1000
	for range lookups {
		if err := lookUp(); fault.KindOf(err) != fault.Unavailable || errors.Is(err, edge.ErrShed) {
			t.Fatalf("Lookup() = %v; want it unavailable, not shed", err)
		}
	}
	if n := server.requests.Load(); n < 5 || n > lookups/2 {
		t.Errorf("core got %d requests for %d look-ups; want 5, and then a few", n, lookups)
	}
	server.failures.Store(0)
	testenv.Eventually(t, "core gets look-ups again", func() bool { return lookUp() == nil })
}

func TestQueuedLookupsExpire(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		core, err := origin.NewCore(origin.Config{URL: "http://127.0.0.1:1", Secrets: []string{origintest.Secret}, Queue: 10, Timeout: time.Second}, slog.New(slog.DiscardHandler))
		testenv.Do(t, err)
		ctx, end := context.WithCancel(t.Context())
		dialled := make(chan struct{}, 1)
		core.SetDial(func(context.Context, string, string) (net.Conn, error) {
			dialled <- struct{}{}
			<-ctx.Done()
			return nil, ctx.Err()
		})
		answers := make(chan error, 3)
		lookUp := func(key edgeproto.Key) {
			t.Helper()
			err := core.StartLookups(t.Context(), []edgeproto.Key{key}, func(_ int, _ edgeproto.Mapping, _ edgeproto.Cursor, err error) { answers <- err })
			testenv.Check(t, err == nil, "StartLookups(%s) = %v", key, err)
		}
		lookUp("tid:1")
		<-time.After(6 * time.Second) // longer than queueTimeout, before Run is called
		stopped := make(chan struct{})
		go func() { core.Run(ctx); close(stopped) }()
		if err := <-answers; !errors.Is(err, context.DeadlineExceeded) || fault.KindOf(err) != fault.Unavailable {
			t.Errorf("a look-up that was queued for six seconds: %v", err)
		}
		lookUp("tid:2")
		<-dialled
		end()
		if err := <-answers; fault.KindOf(err) != fault.Unavailable {
			t.Errorf("a look-up in flight when Run ends: %v", err)
		}
		<-stopped
		lookUp("tid:3")
		core.Run(ctx)
		if err := <-answers; !errors.Is(err, context.Canceled) || fault.KindOf(err) != fault.Unavailable {
			t.Errorf("a queued look-up when Run ends: %v", err)
		}
	})
}

func TestRefusedSecretIsLoggedOnce(t *testing.T) {
	t.Parallel()
	server := origintest.Start(t)
	var log loggingtest.Buffer
	core := startCore(t, origin.Config{URL: server.URL, Secrets: []string{"wrong-but-long-enough", origintest.Secret}}, slog.New(slog.NewTextHandler(&log, nil)))
	for range 3 {
		_, _, err := core.Lookup(t.Context(), "tid:1")
		testenv.Check(t, fault.KindOf(err) == fault.Unavailable, "Lookup() = %v; want it unavailable", err)
	}
	got := strings.Count(log.String(), "level=ERROR")
	testenv.Check(t, got == 1, "%d errors are logged; want 1:\n%s", got, log.String())
	testenv.Check(t, !strings.Contains(log.String(), "wrong"), "the log tells the secret:\n%s", log.String())
}

func TestTLS(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"epoch":"e","revision":1,"mappings":[{}]}`))
	}))
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	server.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	server.StartTLS()
	defer server.Close()
	path := filepath.Join(t.TempDir(), "ca.pem")
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	testenv.Do(t, os.WriteFile(path, authority, 0o600))
	_, _, err := startCore(t, origin.Config{URL: server.URL, CA: path}, nil).Lookup(t.Context(), "tid:1")
	testenv.Check(t, err == nil, "Lookup() with the CA of core: %v", err)
	if _, _, err := startCore(t, origin.Config{URL: server.URL}, nil).Lookup(t.Context(), "tid:1"); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("Lookup() without the CA of core: %v", err)
	}
}

func TestNewCoreRejectsWrongSettings(t *testing.T) {
	t.Parallel()
	f := func(setting string, wrong func(*origin.Config)) {
		t.Helper()
		config := origin.Config{URL: "http://127.0.0.1:9090", Secrets: []string{origintest.Secret}, Queue: 1, Timeout: time.Second}
		testenv.Must(origin.NewCore(config, nil))(t)
		wrong(&config)
		if _, err := origin.NewCore(config, nil); err == nil || !strings.HasPrefix(err.Error(), setting) {
			t.Errorf("NewCore(%+v) = %v; want an error about %s", config, err, setting)
		}
	}
	f("URL", func(c *origin.Config) { c.URL = "127.0.0.1:9090" })
	f("URL", func(c *origin.Config) { c.URL = "ftp://core" })
	f("URL", func(c *origin.Config) { c.URL = "http://core/base" })
	f("SECRETS", func(c *origin.Config) { c.Secrets = []string{" "} })
	f("SECRETS", func(c *origin.Config) { c.Secrets = []string{"a-line-feed-inside\nof-it"} })
	f("CA", func(c *origin.Config) { c.CA = "/nowhere" })
	f("CA", func(c *origin.Config) { c.CA = "/dev/null" })
}

func TestFile(t *testing.T) {
	t.Parallel()
	directory := t.TempDir()
	store := testenv.Must(blobstore.New(blobstore.Config{URL: "file://" + directory, Timeout: 5 * time.Second}))(t)
	files := origin.NewFiles(store)
	missing := func(want fault.Kind) {
		t.Helper()
		_, err := files.File(t.Context(), skin.Hash{1})
		testenv.Check(t, fault.KindOf(err) == want, "File() of a hash that was not stored: %v; want it %v", err, want)
	}
	// Without its marker, a store cannot report a file as missing.
	missing(fault.Unavailable)
	testenv.Do(t, store.Init(t.Context()))
	missing(fault.NotFound)

	file := origintest.File(t, artwork.Robot(), skin.Classic)
	testenv.Do(t, store.Put(t.Context(), skin.HashOf(file), file))
	got := testenv.Must(files.File(t.Context(), skin.HashOf(file)))(t)
	cmptest.Same(t, got, file, "File()")

	// The stored file has other content than its name says.
	name := filepath.Join(directory, skin.HashOf(file).String()[:2], skin.HashOf(file).String()+".png")
	testenv.Do(t, os.WriteFile(name, []byte("rubbish"), 0o600))
	if _, err := files.File(t.Context(), skin.HashOf(file)); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("File() of a corrupt file: %v; want it unavailable", err)
	}
}

// countingStore is a store that counts calls and runs a function after the first one.
type countingStore struct {
	origin.Store
	calls      int
	firstErr   error // of the first call
	afterFirst func()
}

func (c *countingStore) Get(ctx context.Context, hash skin.Hash) ([]byte, error) {
	file, err := c.Store.Get(ctx, hash)
	if c.calls++; c.calls == 1 {
		c.firstErr = err
		c.afterFirst()
	}
	return file, err
}

// A file is missing when the store reports so twice.
func TestMissingFileIsRechecked(t *testing.T) {
	t.Parallel()
	store := blobstoretest.OpenInit(t, blobstoretest.Bucket(t).Config)
	file := origintest.File(t, artwork.Robot(), skin.Classic)
	ctx, leave := context.WithCancel(t.Context())
	for _, test := range []struct {
		name  string
		then  func()
		asked int
		want  fault.Kind
	}{
		{"permanently", func() {}, 2, fault.NotFound},
		{"to a client that disconnects", leave, 1, fault.Unavailable},
	} {
		w := &countingStore{Store: store, afterFirst: test.then}
		if _, err := origin.NewFiles(w).File(ctx, skin.HashOf(file)); fault.KindOf(err) != test.want || w.calls != test.asked {
			t.Errorf("%s: %v after %d calls; want it %v after %d", test.name, err, w.calls, test.want, test.asked)
		}
	}

	w := &countingStore{Store: store, afterFirst: func() {
		testenv.Is(t, store.Put(t.Context(), skin.HashOf(file), file), nil, "a put")
	}}
	got, err := origin.NewFiles(w).File(t.Context(), skin.HashOf(file))
	if err != nil || !errors.Is(w.firstErr, blobstore.ErrNotFound) {
		t.Fatalf("File() of a file that is stored late: %v, after %v", err, w.firstErr)
	}
	cmptest.Same(t, got, file, "File()")
	testenv.Equal(t, w.calls, 2, "calls")
	// An existing file takes one call.
	if _, err := origin.NewFiles(w).File(t.Context(), skin.HashOf(file)); err != nil || w.calls != 3 {
		t.Errorf("File() of an existing file: %v after %d further calls; want 1", err, w.calls-2)
	}
}

// emptyStore is a store without files.
type emptyStore struct{ calls atomic.Int64 }

func (e *emptyStore) Get(context.Context, skin.Hash) ([]byte, error) {
	e.calls.Add(1)
	return nil, blobstore.ErrNotFound
}

// When many files are missing, only some are rechecked, so that other fetches do not wait.
func TestRechecksAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := new(emptyStore)
		files := origin.NewFiles(store)
		began := time.Now()
		var atOnce atomic.Int64
		var all sync.WaitGroup
		const several = 10
		for i := range several {
			all.Go(func() {
				_, err := files.File(t.Context(), skin.Hash{byte(i)})
				testenv.Check(t, fault.KindOf(err) == fault.NotFound, "File() of a missing file: %v", err)
				if time.Since(began) == 0 {
					atOnce.Add(1)
				}
			})
		}
		all.Wait()
		if reported, asked := atOnce.Load(), store.calls.Load(); reported != 6 || asked != 14 {
			t.Errorf("%d of %d are reported at once, after %d calls; want 6 and 14", reported, several, asked)
		}
	})
}
