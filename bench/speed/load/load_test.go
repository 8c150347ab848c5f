package load_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/bench/speed/load"
)

// serve serves a handler on loopback and returns its address.
func serve(t *testing.T, handler fasthttp.RequestHandler) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return serveOn(t, listener, handler)
}

// serveOn serves a handler and returns the listener's address.
func serveOn(t *testing.T, listener net.Listener, handler fasthttp.RequestHandler) string {
	t.Helper()
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

// stream returns a stream of requests for paths.
func stream(connections int, rate float64, paths ...string) *load.Stream {
	s := &load.Stream{Connections: connections, Rate: rate}
	for _, path := range paths {
		s.Requests = append(s.Requests, []byte("GET "+path+" HTTP/1.1\r\nHost: test\r\n\r\n"))
	}
	return s
}

// A stream's connections come from its address.
func TestFrom(t *testing.T) {
	t.Parallel()

	var otherAddresses atomic.Int64
	from := netip.MustParseAddr("127.0.7.1")
	address := serve(t, func(rc *fasthttp.RequestCtx) {
		if rc.RemoteIP().String() != from.String() {
			otherAddresses.Add(1)
		}
	})
	s := stream(3, 1000, "/")
	s.From = from
	answers, err := load.Run(t.Context(), address, 50*time.Millisecond, s)
	if err != nil || answers[0].Total() == 0 || otherAddresses.Load() > 0 {
		t.Errorf("%d requests, %v, and %d from other addresses; want all from %s", answers[0].Total(), err, otherAddresses.Load(), from)
	}
}

// Answers over TLS are complete, also those of several records, and connections are open before a
// run begins.
func TestTLS(t *testing.T) {
	t.Parallel()

	certified := httptest.NewTLSServer(nil) // for its certificate
	t.Cleanup(certified.Close)
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: certified.TLS.Certificates, MinVersion: tls.VersionTLS12})
	if err != nil {
		t.Fatal(err)
	}
	body := bytes.Repeat([]byte("0123456789"), 10_000)
	var requested, requestedBefore atomic.Int64
	address := serveOn(t, listener, func(rc *fasthttp.RequestCtx) {
		requested.Add(1)
		rc.SetBody(body[:rc.QueryArgs().GetUintOrZero("size")])
	})
	s := stream(3, 0)
	for _, size := range []int{0, 1, 16_384, 16_500, 100_000} {
		s.Requests = append(s.Requests, fmt.Appendf(nil, "GET /?size=%d HTTP/1.1\r\nHost: test\r\n\r\n", size))
		s.Lengths = append(s.Lengths, size)
	}
	s.TLS, s.InspectShare, s.Order = true, 1, first(500, load.Random(len(s.Requests), 1))
	s.Inspect = func(request, _ int, got []byte) error {
		if !bytes.Equal(got, body[:s.Lengths[request]]) {
			return errors.New("the body is another one")
		}
		return nil
	}
	s.Connected = func() { requestedBefore.Store(requested.Load() + 1) }
	answers, err := load.Run(t.Context(), address, time.Hour, s)
	if err == nil {
		err = answers[0].Check()
	}
	if err != nil || answers[0].Total() != 500 || requestedBefore.Load() != 1 {
		t.Errorf("%d answers, %v, %d requests before all connections were open; want 500, and none", answers[0].Total(), err, requestedBefore.Load()-1)
	}
}

func TestOpenLoopSendsAllThatFallsDue(t *testing.T) {
	t.Parallel()

	var mu sync.Mutex
	seen := map[string]int{}
	large := strings.Repeat("x", 1<<20) // comes in many pieces
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
	for range 2 {
		answers, err := load.Run(t.Context(), address, 100*time.Millisecond, first, second)
		if err != nil {
			t.Fatal(err)
		}
		// At every whole millisecond before the end, the first at 0.
		if n, no := answers[0].Total(), answers[1].Latencies[503].TotalCount(); n != 100 || no != 50 || answers[1].Total() != no {
			t.Errorf("%d and %d answers, %d of them 503s; want 100 and 50 and 50", n, answers[1].Total(), no)
		}
		if rate := 50 / answers[1].Elapsed.Seconds(); answers[1].Rate(503) != rate || answers[1].Elapsed < 100*time.Millisecond {
			t.Errorf("%.0f 503s per second in %v; want %.0f", answers[1].Rate(503), answers[1].Elapsed, rate)
		}
		if answers[0].Bytes < 33<<20 {
			t.Errorf("%d bytes; want those of 33 large answers", answers[0].Bytes)
		}
	}
	mu.Lock() // Run uses raw system calls, which the race detector does not order
	defer mu.Unlock()
	// The second run continued where the first ended, with /empty.
	if diff := cmp.Diff(map[string]int{"/large": 67, "/empty": 67, "/same": 66, "/no": 100}, seen); diff != "" {
		t.Errorf("requests by path (-want +got):\n%s", diff)
	}
}

// The phases of two threads interleave their streams.
func TestPhase(t *testing.T) {
	t.Parallel()
	address := serve(t, func(*fasthttp.RequestCtx) {})
	for phase, want := range map[float64]int64{0: 4, 0.5: 4, 0.9: 3} { // the last of the fourth would be due after the end
		s := stream(1, 100, "/")
		s.Phase = phase
		answers, err := load.Run(t.Context(), address, 36*time.Millisecond, s)
		if err != nil || answers[0].Total() != want {
			t.Errorf("phase %v of 10 ms: %d answers in 36 ms, %v; want %d", phase, answers[0].Total(), err, want)
		}
	}
}

func TestClosedLoopKeepsItsConnections(t *testing.T) {
	t.Parallel()

	var mu sync.Mutex
	seen := map[uint64]int64{} // requests by connection
	address := serve(t, func(rc *fasthttp.RequestCtx) {
		mu.Lock()
		defer mu.Unlock()
		seen[rc.ConnID()]++
	})
	answers, err := load.Run(t.Context(), address, 50*time.Millisecond, stream(4, 0, "/"))
	if err != nil {
		t.Fatal(err)
	}
	a := answers[0]
	if err := a.Check(); err != nil {
		t.Error(err)
	}
	mu.Lock()
	defer mu.Unlock()
	var sent int64
	for _, n := range seen {
		sent += n
	}
	if len(seen) != 4 || a.Total() != sent || a.Rate(200) != float64(sent)/a.Elapsed.Seconds() {
		t.Errorf("%d answers were counted over %d connections; the server gave %d, over 4", a.Total(), len(seen), sent)
	}
	if a.Elapsed < 50*time.Millisecond || a.Busy <= 0 || a.Busy > a.Elapsed || a.Percentile(200, 50) == 0 {
		t.Errorf("elapsed %v, busy %v; the median latency is %v", a.Elapsed, a.Busy, a.Percentile(200, 50))
	}
}

// Each connection sends one request at least.
func TestShortestRun(t *testing.T) {
	t.Parallel()

	address := serve(t, func(*fasthttp.RequestCtx) {})
	answers, err := load.Run(t.Context(), address, time.Nanosecond, stream(3, 0, "/"))
	if err != nil || answers[0].Total() != 3 {
		t.Errorf("%d answers, %v; want 3", answers[0].Total(), err)
	}
}

func TestOpenLoopCountsQueueing(t *testing.T) {
	t.Parallel()

	// The first of 100 requests over one connection is answered after all of them
	// fell due, within 100 ms. So half of them wait for at least half of that.
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
		t.Errorf("the median latency is %v after a stall of %v", p50, stall)
	}
}

// The order depends on the seed only.
func TestRandomOrder(t *testing.T) {
	t.Parallel()

	order := func(seed uint64) []string {
		var mu sync.Mutex
		var requested []string
		address := serve(t, func(rc *fasthttp.RequestCtx) {
			mu.Lock()
			defer mu.Unlock()
			requested = append(requested, string(rc.Path()))
		})
		var paths []string
		for i := range 100 {
			paths = append(paths, fmt.Sprintf("/%d", i))
		}
		s := stream(1, 0, paths...)
		s.Order = first(20, load.Random(100, seed))
		// An hour, but the order ends after twenty.
		answers, err := load.Run(t.Context(), address, time.Hour, s)
		if err != nil || answers[0].Total() != 20 || answers[0].Elapsed > time.Minute {
			t.Errorf("%d answers in %v, %v; want 20", answers[0].Total(), answers[0].Elapsed, err)
		}
		mu.Lock()
		defer mu.Unlock()
		return requested
	}
	once := order(1)
	if diff := cmp.Diff(once, order(1)); diff != "" {
		t.Errorf("the order with the same seed (-first +second):\n%s", diff)
	}
	if cmp.Equal(once, order(2)) {
		t.Errorf("the order with another seed is the same: %q", once)
	}
}

// first returns the first n of an order.
func first(n int, order func() int) func() int {
	return func() int {
		if n--; n < 0 {
			return -1
		}
		return order()
	}
}

func TestWrongAnswersAreClassified(t *testing.T) {
	t.Parallel()

	var n atomic.Int64
	address := serve(t, func(rc *fasthttp.RequestCtx) {
		switch n.Add(1) {
		case 2:
			rc.SetStatusCode(fasthttp.StatusTooManyRequests)
		case 3:
			rc.SetBodyString("no!")
		case 4:
			rc.SetBodyString("yes, and more")
		default:
			rc.SetBodyString("yes")
		}
	})
	s := stream(1, 0, "/path")
	s.Statuses, s.Lengths, s.Order = []int{200}, []int{3}, first(5, load.Random(1, 0))
	s.InspectShare, s.Inspect = 1, func(request, status int, body []byte) error {
		if request != 0 || status != 200 || string(body) != "yes" {
			return fmt.Errorf("%q is wrong", body)
		}
		return nil
	}
	answers, err := load.Run(t.Context(), address, time.Hour, s)
	if err != nil {
		t.Fatal(err)
	}
	if answers[0].Latencies[200].TotalCount() != 4 || answers[0].Latencies[429].TotalCount() != 1 {
		t.Errorf("%d answers of 5 are 200, and %d of 1 are 429", answers[0].Latencies[200].TotalCount(), answers[0].Latencies[429].TotalCount())
	}
	if diff := cmp.Diff(map[load.Fault]int64{load.WrongStatus: 1, load.WrongBody: 1, load.WrongLength: 1}, answers[0].Wrong); diff != "" {
		t.Errorf("wrong answers (-want +got):\n%s", diff)
	}
	if err := answers[0].Check(); err == nil || !strings.Contains(err.Error(), "status 429; want one of [200]") || !strings.Contains(err.Error(), "/path") {
		t.Errorf("Check: %v; want what the first wrong answer was and to what", err)
	}
}

// A body is inspected as a whole, however large and in however many pieces, and does not disturb
// the others.
func TestInspectSeesShareOfBodies(t *testing.T) {
	t.Parallel()

	large := strings.Repeat("0123456789", 50_000)
	address := serve(t, func(rc *fasthttp.RequestCtx) { rc.SetBodyString(large) })
	s := stream(2, 0, "/")
	s.Order, s.InspectShare = first(200, load.Random(1, 0)), 0.25
	inspected := 0
	s.Inspect = func(_, _ int, body []byte) error {
		if inspected++; string(body) != large {
			return errors.New("another body")
		}
		return nil
	}
	answers, err := load.Run(t.Context(), address, time.Hour, s)
	if err == nil {
		err = answers[0].Check()
	}
	if err != nil {
		t.Error(err)
	}
	if answers[0].Total() != 200 || inspected < 30 || inspected > 70 {
		t.Errorf("of %d answers %d were looked at; want about 50 of 200", answers[0].Total(), inspected)
	}
}

func TestRunEndsWith(t *testing.T) {
	t.Parallel()

	t.Run("the caller", func(t *testing.T) {
		t.Parallel()

		ctx, cancel := context.WithCancel(t.Context())
		answer := make(chan struct{})
		defer close(answer)
		var requested atomic.Int64
		address := serve(t, func(*fasthttp.RequestCtx) {
			if requested.Add(1) == 3 {
				cancel()
				<-answer
			}
		})
		answers, err := load.Run(ctx, address, time.Hour, stream(1, 0, "/"))
		if !errors.Is(err, context.Canceled) || answers[0].Total() != 2 || answers[0].Elapsed > time.Minute {
			t.Errorf("Run: %d answers in %v, %v; want the two until it was cancelled", answers[0].Total(), answers[0].Elapsed, err)
		}
	})
	t.Run("connections that always break", func(t *testing.T) {
		t.Parallel()

		address := serve(t, func(rc *fasthttp.RequestCtx) { rc.HijackSetNoResponse(true); rc.Hijack(func(net.Conn) {}) })
		answers, err := load.Run(t.Context(), address, time.Hour, stream(1, 0, "/"))
		if err == nil || answers[0].Wrong[load.Broken] == 0 {
			t.Errorf("Run: %v, %v; want an error, and broken answers", answers, err)
		}
	})
	t.Run("an invalid address", func(t *testing.T) {
		t.Parallel()

		if _, err := load.Run(t.Context(), "localhost", time.Hour, stream(1, 0, "/")); err == nil {
			t.Error("Run: no error")
		}
	})
	t.Run("another machine", func(t *testing.T) {
		t.Parallel()

		for _, address := range []string{"192.0.2.1:80", "[2001:db8::1]:80", "0.0.0.0:80", "[::ffff:192.0.2.1]:80"} {
			if _, err := load.Run(t.Context(), address, time.Hour, stream(1, 0, "/")); err == nil || !strings.Contains(err.Error(), "not a loopback address") {
				t.Errorf("Run to %s: %v; want that it is not a loopback address", address, err)
			}
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
		if _, err := load.Run(t.Context(), listener.Addr().String(), time.Hour, stream(2, 0, "/")); err == nil {
			t.Error("Run: no error")
		}
	})
}

// A server may close connections at any time, as nginx does after so many requests.
func TestClosedConnectionsAreReplaced(t *testing.T) {
	t.Parallel()

	var mu sync.Mutex
	var seen []uint64
	address := serve(t, func(rc *fasthttp.RequestCtx) {
		mu.Lock()
		defer mu.Unlock()
		if !slices.Contains(seen, rc.ConnID()) {
			seen = append(seen, rc.ConnID())
		}
		rc.SetConnectionClose()
	})
	s := stream(2, 0, "/")
	s.Order = first(2000, load.Random(1, 0)) // more than maxFailures
	answers, err := load.Run(t.Context(), address, time.Hour, s)
	if err == nil {
		err = answers[0].Check()
	}
	mu.Lock()
	defer mu.Unlock()
	if err != nil || answers[0].Total() != 2000 || len(seen) != 2000 {
		t.Errorf("%d answers over %d connections, %v; want 2000", answers[0].Total(), len(seen), err)
	}
}

// Late includes delays of the load generator, and not those of the server.
func TestLate(t *testing.T) {
	t.Parallel()

	const pause = 20 * time.Millisecond
	address := serve(t, func(rc *fasthttp.RequestCtx) {
		if string(rc.Path()) == "/slow" {
			<-time.After(10 * pause)
		}
	})
	f := func(path string, inspect func(request, status int, body []byte) error) time.Duration {
		t.Helper()
		s := stream(1, 100, path)
		s.InspectShare, s.Inspect = 1, inspect
		answers, err := load.Run(t.Context(), address, 2*pause, s)
		if err != nil {
			t.Fatal(err)
		}
		return answers[0].Late
	}
	inspected := false
	if late := f("/", func(int, int, []byte) error {
		if !inspected {
			inspected = true
			<-time.After(pause)
		}
		return nil
	}); late < pause/2 {
		t.Errorf("after an inspection of %v the load was late by %v", pause, late)
	}
	if late := f("/slow", nil); late > 5*pause {
		t.Errorf("with a server that takes %v the load was late by %v", 10*pause, late)
	}
}

func TestAnswersAdd(t *testing.T) {
	t.Parallel()

	address := serve(t, func(rc *fasthttp.RequestCtx) { rc.SetStatusCode(int(rc.Path()[1]-'0') * 100) })
	var sum load.Answers
	for _, path := range []string{"/2", "/4", "/2"} {
		s := stream(1, 0, path)
		s.Statuses, s.Order = []int{200}, first(3, load.Random(1, 0))
		answers, err := load.Run(t.Context(), address, time.Hour, s)
		if err != nil {
			t.Fatal(err)
		}
		sum.Add(answers[0])
	}
	if sum.Total() != 9 || sum.All().TotalCount() != 9 || sum.Latencies[200].TotalCount() != 6 || sum.Wrong[load.WrongStatus] != 3 || sum.Check() == nil {
		t.Errorf("%d answers, %d of them 200, wrong ones %v; want 9, 6 and 3", sum.Total(), sum.Latencies[200].TotalCount(), sum.Wrong)
	}
}
