package load_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/bench/load"
)

// stream returns a stream of requests for paths.
func stream(connections int, rate float64, paths ...string) *load.Stream {
	s := &load.Stream{Connections: connections, Rate: rate}
	for _, path := range paths {
		s.Requests = append(s.Requests, get(path, "").Bytes)
	}
	return s
}

func TestRunSendsAllThatFallsDue(t *testing.T) {
	t.Parallel()

	var mu sync.Mutex
	seen := map[string]int{}
	large := strings.Repeat("x", 1<<20) // which comes in many pieces
	address := serve(t, func(rc *fasthttp.RequestCtx) {
		mu.Lock()
		defer mu.Unlock()
		seen[string(rc.Path())]++
		switch string(rc.Path()) {
		case "/large":
			rc.SetBodyString(large)
		case "/same":
			rc.SetStatusCode(fasthttp.StatusNotModified)
		case "/no":
			rc.SetStatusCode(fasthttp.StatusServiceUnavailable)
		}
	})
	first, second := stream(3, 1000, "/large", "/empty", "/same"), stream(1, 500, "/no")
	for run := 1; run <= 2; run++ {
		answers, err := load.Run(t.Context(), address, 100*time.Millisecond, first, second)
		if err != nil {
			t.Fatal(err)
		}
		// At every whole millisecond before the end, the first at 0.
		if n := answers[0].Total(); n != 100 || answers[1].Rate(503) != 500 || answers[1].Total() != 50 {
			t.Errorf("%d and %d answers came, %.0f/s of them refusals; want 100 and 50 and 500/s", n, answers[1].Total(), answers[1].Rate(503))
		}
	}
	// The second run went on where the first ended, with /empty.
	if diff := cmp.Diff(map[string]int{"/large": 67, "/empty": 67, "/same": 66, "/no": 100}, seen); diff != "" {
		t.Errorf("requests by path (-want +got):\n%s", diff)
	}
}

func TestRunClosesALoop(t *testing.T) {
	t.Parallel()

	var mu sync.Mutex
	seen := map[uint64]bool{}
	address := serve(t, func(rc *fasthttp.RequestCtx) {
		mu.Lock()
		defer mu.Unlock()
		seen[rc.ConnID()] = true
	})
	answers, err := load.Run(t.Context(), address, 50*time.Millisecond, stream(4, 0, "/"))
	if err != nil {
		t.Fatal(err)
	}
	if len(seen) != 4 || answers[0].Rate(200) == 0 || answers[0].Percentile(200, 50) == 0 {
		t.Errorf("%.0f answers a second came over %d connections, the median after %v; want some over 4", answers[0].Rate(200), len(seen), answers[0].Percentile(200, 50))
	}
}

func TestRunCountsTheWait(t *testing.T) {
	t.Parallel()

	// As in TestOpenLoopCountsTheWait.
	const stall = 100 * time.Millisecond
	var once sync.Once
	address := serve(t, func(*fasthttp.RequestCtx) {
		once.Do(func() { <-time.After(stall) })
	})
	answers, err := load.Run(t.Context(), address, stall, stream(1, 1000, "/"))
	if err != nil {
		t.Fatal(err)
	}
	if p50 := answers[0].Percentile(200, 50); p50 < stall*2/5 {
		t.Errorf("the median of the waits is %v, though a stall of %v held all up", p50, stall)
	}
}

func TestRunEndsWith(t *testing.T) {
	t.Parallel()

	t.Run("the caller", func(t *testing.T) {
		t.Parallel()

		ctx, cancel := context.WithCancel(t.Context())
		asked, answer := make(chan struct{}, 1), make(chan struct{})
		defer close(answer)
		address := serve(t, func(*fasthttp.RequestCtx) { asked <- struct{}{}; <-answer })
		go func() { <-asked; cancel() }()
		if _, err := load.Run(ctx, address, time.Hour, stream(1, 0, "/")); !errors.Is(err, context.Canceled) {
			t.Errorf("Run: %v; want that it was cancelled", err)
		}
	})
	t.Run("a connection that breaks", func(t *testing.T) {
		t.Parallel()

		address := serve(t, func(rc *fasthttp.RequestCtx) { rc.HijackSetNoResponse(true); rc.Hijack(func(net.Conn) {}) })
		if _, err := load.Run(t.Context(), address, time.Hour, stream(1, 0, "/")); err == nil {
			t.Error("Run: no error")
		}
	})
	t.Run("what is no address", func(t *testing.T) {
		t.Parallel()

		if _, err := load.Run(t.Context(), "localhost", time.Hour, stream(1, 0, "/")); err == nil {
			t.Error("Run: no error")
		}
	})
}
