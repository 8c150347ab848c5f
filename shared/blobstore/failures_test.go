package blobstore_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/veneer-skins/veneer/shared/blobstore"
	"github.com/veneer-skins/veneer/shared/blobstore/blobstoretest"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// newFakeS3 returns a store over a server that can answer GET requests of S3.
func newFakeS3(t *testing.T, answer http.HandlerFunc) *blobstore.Store {
	t.Helper()
	return blobstoretest.Open(t, stubConfig(serve(t, answer), time.Minute))
}

// serve serves until the test ends, and returns the URL.
func serve(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}

func writeFile(w http.ResponseWriter, file []byte) {
	w.Header().Set("Last-Modified", time.Unix(0, 0).UTC().Format(http.TimeFormat))
	_, _ = w.Write(file)
}

// A store that always fails gets few requests, and is used again once it works.
func TestBreakerOpensForBrokenStore(t *testing.T) {
	t.Parallel()
	file := []byte("file")
	var requests atomic.Int64
	var works atomic.Bool
	store := newFakeS3(t, func(w http.ResponseWriter, _ *http.Request) {
		requests.Add(1)
		if !works.Load() {
			w.WriteHeader(http.StatusForbidden) // which the client does not retry
			return
		}
		writeFile(w, file)
	})
	get := func() error {
		_, err := store.Get(t.Context(), skin.HashOf(file))
		return err
	}

	const calls = 1000
	for range calls {
		unavailable(t, get())
	}
	n := requests.Load()
	testenv.Check(t, n >= 5 && n <= calls/2, "%d calls made %d requests; want 5, and then a few", calls, n)
	works.Store(true)
	testenv.Eventually(t, "the store, which works, gets requests", func() bool { return get() == nil })
}

// Missing files do not open the breaker.
func TestMissingFilesAreNoFailures(t *testing.T) {
	t.Parallel()
	store := blobstoretest.NewStore(t)
	hash := skin.HashOf([]byte("file"))
	for range 20 {
		if _, err := store.Get(t.Context(), hash); err == nil {
			t.Fatal("a file that was never put is returned")
		}
	}
	testenv.Do(t, store.Put(t.Context(), hash, []byte("file")))
	testenv.Is(t, testenv.ErrOf(store.Get(t.Context(), hash)), nil, "get of a file that was missing")
}

// There are more callers than tokens and places in the queue.
func TestCallLimit(t *testing.T) {
	t.Parallel()
	const maxCalls, maxQueued, more = 64, 256, 20
	file := []byte("file")
	release, entered := make(chan struct{}), make(chan struct{}, maxCalls+maxQueued+more)
	var inFlight, most atomic.Int64
	store := newFakeS3(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		n := inFlight.Add(1)
		for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
		}
		entered <- struct{}{}
		<-release
		inFlight.Add(-1)
		writeFile(w, file)
	})

	var callers sync.WaitGroup
	outcomes := make(chan error, maxCalls+maxQueued+more)
	for range maxCalls + maxQueued + more {
		callers.Go(func() {
			_, err := store.Get(t.Context(), skin.HashOf(file))
			outcomes <- err
		})
	}
	for range maxCalls {
		<-entered
	}
	// None is answered yet, so those that fail had no place in the queue.
	for range more {
		err := <-outcomes
		unavailable(t, err)
		testenv.Check(t, err == nil || strings.Contains(err.Error(), "queue is full"),
			"got %v, want the error of a full queue", err)
	}
	close(release)
	callers.Wait()
	if n := most.Load(); n > maxCalls {
		t.Errorf("%d concurrent requests; want at most %d", n, maxCalls)
	}
	// The others succeed, unless the machine takes longer than queueTimeout.
	close(outcomes)
	served := 0
	for err := range outcomes {
		if err == nil {
			served++
		}
	}
	testenv.Check(t, served >= maxCalls, "%d callers succeeded; want at least %d", served, maxCalls)
}
