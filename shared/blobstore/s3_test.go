package blobstore_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/veneer-skins/veneer/shared/blobstore"
	"github.com/veneer-skins/veneer/shared/blobstore/blobstoretest"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/testenv"
)

func TestBucket(t *testing.T) {
	t.Parallel()
	blobstoretest.Run(t, blobstoretest.Bucket)
}

func TestBucketRequests(t *testing.T) {
	t.Parallel()
	cfg := blobstoretest.Bucket(t).Config
	var requests atomic.Int32
	var contentType atomic.Value
	proxy := newProxy(t, cfg.Endpoint)
	cfg.Endpoint = serve(t, func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		contentType.Store(r.Header.Get("Content-Type"))
		proxy.ServeHTTP(w, r)
	})
	store := blobstoretest.OpenInit(t, cfg)

	f := func(operation string, want int32, do func() error) {
		t.Helper()
		requests.Store(0)
		testenv.Is(t, do(), nil, "%s", operation)
		testenv.Equal(t, requests.Load(), want, "requests that %s took", operation)
	}
	file := bytes.Repeat([]byte("1 MiB of texture"), 1<<16)
	hash := skin.HashOf(file)
	f("get of nothing", 2, func() error {
		testenv.Is(t, testenv.ErrOf(store.Get(t.Context(), hash)), blobstore.ErrNotFound, "get of nothing")
		return nil
	})
	f("put", 1, func() error { return store.Put(t.Context(), hash, file) })
	testenv.Equal(t, contentType.Load(), "image/png", "the Content-Type of a put")
	f("get", 1, func() error { _, err := store.Get(t.Context(), hash); return err })
	f("delete", 1, func() error { return store.Delete(t.Context(), hash) })
}

// newProxy returns a proxy before an S3 store.
func newProxy(t *testing.T, endpoint string) *httputil.ReverseProxy {
	t.Helper()
	upstream := testenv.Must(url.Parse(endpoint))(t)
	return &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(upstream)
		r.Out.Host = r.In.Host // the signature includes it
	}}
}

// flakyProxy is a proxy before a bucket that breaks the connections of some requests.
type flakyProxy struct {
	blobstore.Config

	breaks, requests atomic.Int32 // requests that are still to be broken, requests received
}

func newFlakyProxy(t *testing.T) *flakyProxy {
	t.Helper()
	flaky := &flakyProxy{Config: blobstoretest.Bucket(t).Config}
	blobstoretest.OpenInit(t, flaky.Config)
	proxy := newProxy(t, flaky.Endpoint)
	flaky.Endpoint = serve(t, func(w http.ResponseWriter, r *http.Request) {
		flaky.requests.Add(1)
		if flaky.breaks.Add(-1) >= 0 {
			panic(http.ErrAbortHandler)
		}
		proxy.ServeHTTP(w, r)
	})
	return flaky
}

// A request is sent once more if its connection breaks.
func TestBucketRetriesOnce(t *testing.T) {
	t.Parallel()
	flaky := newFlakyProxy(t)
	file := []byte("at the second attempt")
	hash := skin.HashOf(file)
	f := func(operation string, do func(*blobstore.Store) error) {
		t.Helper()
		for _, broken := range []int32{1, 2} {
			flaky.breaks.Store(broken)
			flaky.requests.Store(0)
			err := do(blobstoretest.Open(t, flaky.Config))
			testenv.Check(t, (err == nil) == (broken == 1), "%s with %d broken connections: %v", operation, broken, err)
			got := flaky.requests.Load()
			testenv.Check(t, broken != 2 || got == 2, "%s was tried %d times; want 2", operation, got)
		}
	}
	testenv.Do(t, blobstoretest.Open(t, flaky.Config).Put(t.Context(), hash, file))
	f("get", func(store *blobstore.Store) error { _, err := store.Get(t.Context(), hash); return err })
	f("check", func(store *blobstore.Store) error { return store.Check(t.Context()) })
	f("list", func(store *blobstore.Store) error { return blobstoretest.LastError(t.Context(), store) })
	f("delete", func(store *blobstore.Store) error { return store.Delete(t.Context(), hash) })
}

// Put retries transient failures, and only those.
func TestBucketRetriesPut(t *testing.T) {
	t.Parallel()
	flaky := newFlakyProxy(t)
	store := blobstoretest.Open(t, flaky.Config)
	file := []byte("at the sixth attempt")
	flaky.breaks.Store(5)
	testenv.Do(t, store.Put(t.Context(), skin.HashOf(file), file))
	testenv.Equal(t, flaky.requests.Load(), 6, "how often the file was put")
	got, err := store.Get(t.Context(), skin.HashOf(file))
	testenv.Check(t, err == nil && bytes.Equal(got, file), "got %q (%v)", got, err)

	// A breaker that is opened by the failures of several puts fails none of them: all eight
	// are in flight before the first one fails.
	var first sync.WaitGroup
	first.Add(8)
	var tries atomic.Int32
	shared := newFakeS3(t, func(w http.ResponseWriter, _ *http.Request) {
		try := tries.Add(1)
		if try <= 8 {
			first.Done()
		}
		first.Wait()
		if try <= 20 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	var putting sync.WaitGroup
	for i := range 8 {
		putting.Go(func() {
			file := fmt.Appendf(nil, "one of eight: %d", i)
			testenv.Is(t, shared.Put(t.Context(), skin.HashOf(file), file), nil, "one of several puts")
		})
	}
	putting.Wait()

	full := newFakeS3(t, func(w http.ResponseWriter, _ *http.Request) {
		flaky.requests.Add(1)
		w.WriteHeader(http.StatusInsufficientStorage)
	})
	flaky.requests.Store(0)
	unavailable(t, full.Put(t.Context(), skin.HashOf(file), file))
	if got := flaky.requests.Load(); got > 2 { // the client's own second attempt
		t.Errorf("a full store got %d requests; want at most two", got)
	}

	flaky.requests.Store(0)
	flaky.SecretKey = "another"
	unavailable(t, blobstoretest.Open(t, flaky.Config).Put(t.Context(), skin.HashOf(file), file))
	testenv.Equal(t, flaky.requests.Load(), 1, "how often a forbidden request was sent")

	// A caller that cancels does not wait for retries.
	ctx, cancel := context.WithCancel(t.Context())
	away := newFakeS3(t, func(w http.ResponseWriter, _ *http.Request) {
		cancel()
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	testenv.Is(t, away.Put(ctx, skin.HashOf(file), file), context.Canceled, "put of a caller that cancels")
}

func TestBucketPages(t *testing.T) {
	t.Parallel()
	store := blobstoretest.OpenInit(t, blobstoretest.Bucket(t).Config)
	const files = 1234
	numbers := make(chan int)
	var group sync.WaitGroup
	for range 16 {
		group.Go(func() {
			for n := range numbers {
				file := fmt.Appendf(nil, "file %d", n)
				testenv.Is(t, store.Put(t.Context(), skin.HashOf(file), file), nil, "a put")
			}
		})
	}
	for n := range files {
		numbers <- n
	}
	close(numbers)
	group.Wait()

	listed := map[skin.Hash]bool{}
	for object, err := range store.List(t.Context()) {
		testenv.Do(t, err)
		listed[object.Hash] = true
	}
	testenv.Equal(t, len(listed), files, "listed files")
}

func TestBucketPrefixes(t *testing.T) {
	t.Parallel()
	cfg := blobstoretest.Bucket(t).Config
	location := testenv.Must(url.Parse(cfg.URL))(t)
	file, other := []byte("inside"), []byte("outside")

	cfg.URL = "s3://" + location.Host + "/0"
	inner := blobstoretest.OpenInit(t, cfg)
	testenv.Do(t, inner.Put(t.Context(), skin.HashOf(file), file))

	cfg.URL = "s3://" + location.Host
	outer := blobstoretest.Open(t, cfg)
	// The marker is valid for its own prefix only.
	unavailable(t, testenv.ErrOf(outer.Get(t.Context(), skin.HashOf(file))))
	testenv.Do(t, outer.Init(t.Context()))
	testenv.Do(t, outer.Put(t.Context(), skin.HashOf(other), other))
	testenv.Is(t, testenv.ErrOf(outer.Get(t.Context(), skin.HashOf(file))), blobstore.ErrNotFound,
		"get of a file of another prefix")

	f := func(store *blobstore.Store, want []byte) {
		t.Helper()
		for object, err := range store.List(t.Context()) {
			testenv.Do(t, err)
			testenv.Check(t, object.Hash == skin.HashOf(want), "listed %s", object.Hash)
		}
	}
	f(inner, file)
	f(outer, other)
}

func TestBucketWrongKey(t *testing.T) {
	t.Parallel()
	cfg := blobstoretest.Bucket(t).Config
	blobstoretest.OpenInit(t, cfg)
	cfg.SecretKey = "not the secret"
	everyCallFails(t, cfg, nil)
}

func TestBucketUnreachable(t *testing.T) {
	t.Parallel()
	listener := testenv.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	testenv.Do(t, listener.Close())
	everyCallFails(t, stubConfig("http://"+listener.Addr().String(), time.Minute), nil)
}

// TestBucketTimeout has a server that accepts connections, but never responds.
func TestBucketTimeout(t *testing.T) {
	t.Parallel()
	listener := testenv.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	accepted := make(chan net.Conn, 100)
	go func() {
		defer close(accepted)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			accepted <- conn
		}
	}()
	t.Cleanup(func() {
		testenv.Do(t, listener.Close())
		for conn := range accepted {
			conn.Close()
		}
	})
	everyCallFails(t, stubConfig("http://"+listener.Addr().String(), 50*time.Millisecond), context.DeadlineExceeded)

	// A caller that cancels does not wait for the deadline.
	for len(accepted) > 0 {
		(<-accepted).Close()
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		conn := <-accepted
		cancel()
		conn.Close()
	}()
	_, err := blobstoretest.Open(t, stubConfig("http://"+listener.Addr().String(), time.Hour)).Get(ctx, skin.Hash{})
	unavailable(t, err)
	testenv.Is(t, err, context.Canceled, "get of a caller that cancels")
}

// TestBucketNotS3 has another kind of server at the address: none of its responses means that
// a file is missing.
func TestBucketNotS3(t *testing.T) {
	t.Parallel()
	f := func(answer http.HandlerFunc) {
		t.Helper()
		everyCallFails(t, stubConfig(serve(t, answer), time.Minute), nil)
	}
	f(http.NotFound)
	f(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) })
	f(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "busy", http.StatusServiceUnavailable) })
	f(func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/log-in", http.StatusFound) })
}

func TestBucketTruncatedFile(t *testing.T) {
	t.Parallel()
	store := newFakeS3(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		writeFile(w, []byte("less than that"))
	})
	unavailable(t, testenv.ErrOf(store.Get(t.Context(), skin.HashOf([]byte("less than that")))))
}

// TestBucketListOutOfOrder has a server that begins every page at the start.
func TestBucketListOutOfOrder(t *testing.T) {
	t.Parallel()
	upstream := blobstoretest.Bucket(t)
	store := blobstoretest.OpenInit(t, upstream.Config)
	file := []byte("listed once")
	testenv.Do(t, store.Put(t.Context(), skin.HashOf(file), file))

	var first []byte
	proxy := newProxy(t, upstream.Config.Endpoint)
	proxy.ModifyResponse = func(r *http.Response) error {
		if !r.Request.URL.Query().Has("list-type") {
			return nil
		}
		body, err := io.ReadAll(r.Body)
		if first == nil {
			first = body
		}
		r.Body = io.NopCloser(bytes.NewReader(first))
		r.ContentLength = int64(len(first))
		r.Header.Set("Content-Length", strconv.Itoa(len(first)))
		return err
	}
	upstream.Config.Endpoint = serve(t, proxy.ServeHTTP)
	unavailable(t, blobstoretest.LastError(t.Context(), blobstoretest.Open(t, upstream.Config)))
}

// everyCallFails makes all calls, each with a store of its own, as the breaker would reject
// later ones. want, if not nil, must be in the chain of each error.
func everyCallFails(t *testing.T, cfg blobstore.Config, want error) {
	t.Helper()
	f := func(call func(store *blobstore.Store) error) {
		t.Helper()
		err := call(blobstoretest.Open(t, cfg))
		unavailable(t, err)
		testenv.Check(t, want == nil || errors.Is(err, want), "got %v, want %v", err, want)
	}
	file := []byte("file")
	hash := skin.HashOf(file)
	f(func(store *blobstore.Store) error { return store.Init(t.Context()) })
	f(func(store *blobstore.Store) error { return store.Check(t.Context()) })
	f(func(store *blobstore.Store) error { return store.Put(t.Context(), hash, file) })
	f(func(store *blobstore.Store) error { return store.Delete(t.Context(), hash) })
	f(func(store *blobstore.Store) error { _, err := store.Get(t.Context(), hash); return err })
	f(func(store *blobstore.Store) error { return blobstoretest.LastError(t.Context(), store) })
	f(func(store *blobstore.Store) error { _, _, err := store.CleanTemp(t.Context(), true); return err })
}

// stubConfig returns a configuration for an S3 endpoint.
func stubConfig(endpoint string, timeout time.Duration) blobstore.Config {
	return blobstore.Config{
		URL: "s3://textures", Endpoint: endpoint, AccessKey: "access", SecretKey: "secret",
		Region: "us-east-1", Timeout: timeout,
	}
}
