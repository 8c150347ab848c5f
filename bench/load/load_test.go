package load_test

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/bench/load"
)

// serve serves a handler on loopback and returns its address.
func serve(t *testing.T, handler fasthttp.RequestHandler) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &fasthttp.Server{Handler: handler, CloseOnShutdown: true}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		if err := server.Shutdown(); err != nil {
			t.Error(err)
		}
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return listener.Addr().String()
}

// get returns a request for a path, the right answer to which begins with want.
func get(path, want string) load.Request {
	return load.Request{Bytes: []byte("GET " + path + " HTTP/1.1\r\nHost: test\r\n\r\n"), Want: []byte(want)}
}

func TestClosedLoopKeepsItsConnections(t *testing.T) {
	t.Parallel()

	var mu sync.Mutex
	seen := map[uint64]int64{} // requests by connection
	address := serve(t, func(rc *fasthttp.RequestCtx) {
		mu.Lock()
		seen[rc.ConnID()]++
		mu.Unlock()
		rc.SetBodyString("yes " + string(rc.Path()))
	})
	l := load.Load{Address: address, Connections: 4, Requests: []load.Request{get("/a", "yes /a"), get("/b", "yes /b")}}
	result, err := l.Closed(t.Context(), 50*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	if err := result.Check(); err != nil {
		t.Error(err)
	}
	if len(seen) != 4 {
		t.Errorf("%d connections were used; want 4", len(seen))
	}
	var sent int64
	for _, n := range seen {
		sent += n
	}
	if got := result.Latencies.TotalCount(); got != sent || result.Elapsed < 50*time.Millisecond {
		t.Errorf("%d answers were counted in %v; the server gave %d", got, result.Elapsed, sent)
	}
}

func TestAnswersAreToldApart(t *testing.T) {
	t.Parallel()

	var n atomic.Int64
	address := serve(t, func(rc *fasthttp.RequestCtx) {
		switch n.Add(1) {
		case 2:
			rc.SetStatusCode(fasthttp.StatusTooManyRequests)
		case 3:
			rc.SetBodyString("yes, but another's")
		default:
			rc.SetBodyString("yes")
		}
	})
	l := load.Load{Address: address, Connections: 1, Requests: []load.Request{get("/", "yes")}}
	result, err := l.Open(t.Context(), 1000, 3*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[int]int64{200: 2, 429: 1}, result.Statuses); diff != "" {
		t.Errorf("answers by status (-want +got):\n%s", diff)
	}
	if result.Wrong != 1 {
		t.Errorf("%d answers were wrong; want the one without a body", result.Wrong)
	}
	if result.Check() == nil {
		t.Error("Check says that all is well")
	}
}

func TestOpenLoopSendsAllThatFallsDue(t *testing.T) {
	t.Parallel()

	var served atomic.Int64
	address := serve(t, func(*fasthttp.RequestCtx) { served.Add(1) })
	l := load.Load{Address: address, Connections: 3, Requests: []load.Request{get("/", "")}}
	result, err := l.Open(t.Context(), 2000, 100*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	if err := result.Check(); err != nil {
		t.Error(err)
	}
	// The last of 200 falls due when 100 ms are over, never before.
	if n := result.Latencies.TotalCount(); n != 200 || served.Load() != 200 || result.Elapsed < 100*time.Millisecond {
		t.Errorf("%d requests of 200 were answered in %v", n, result.Elapsed)
	}
}

func TestOpenLoopCountsTheWait(t *testing.T) {
	t.Parallel()

	// The first of 100 requests over one connection is answered after all of them
	// fell due, within 100 ms. So half of them wait for at least half of that.
	const stall = 100 * time.Millisecond
	var once sync.Once
	address := serve(t, func(*fasthttp.RequestCtx) {
		once.Do(func() { <-time.After(stall) })
	})
	l := load.Load{Address: address, Connections: 1, Requests: []load.Request{get("/", "")}}
	result, err := l.Open(t.Context(), 1000, stall)
	if err != nil {
		t.Fatal(err)
	}
	if p50 := result.Percentile(50); p50 < stall*2/5 {
		t.Errorf("the median of the waits is %v, though a stall of %v held all up", p50, stall)
	}
}

func TestLoadEndsWith(t *testing.T) {
	t.Parallel()

	requests := []load.Request{get("/", "")}
	t.Run("the caller", func(t *testing.T) {
		t.Parallel()

		ctx, cancel := context.WithCancel(t.Context())
		asked, answer := make(chan struct{}, 2), make(chan struct{})
		defer close(answer)
		address := serve(t, func(*fasthttp.RequestCtx) { asked <- struct{}{}; <-answer })
		go func() { <-asked; cancel() }()
		l := load.Load{Address: address, Connections: 2, Requests: requests}
		if _, err := l.Open(ctx, 1000, time.Hour); !errors.Is(err, context.Canceled) {
			t.Errorf("Open: %v; want that it was cancelled", err)
		}
	})
	t.Run("a connection that breaks", func(t *testing.T) {
		t.Parallel()

		address := serve(t, func(rc *fasthttp.RequestCtx) { rc.HijackSetNoResponse(true); rc.Hijack(func(net.Conn) {}) })
		l := load.Load{Address: address, Connections: 2, Requests: requests}
		if result, err := l.Closed(t.Context(), time.Hour); err == nil {
			t.Errorf("Closed: %d answers; want an error", result.Latencies.TotalCount())
		}
	})
	t.Run("a server that is not there", func(t *testing.T) {
		t.Parallel()

		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		if err := listener.Close(); err != nil {
			t.Fatal(err)
		}
		l := load.Load{Address: listener.Addr().String(), Connections: 2, Requests: requests}
		if _, err := l.Closed(t.Context(), time.Hour); err == nil {
			t.Error("Closed: no error")
		}
	})
}
