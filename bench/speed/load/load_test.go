package load_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"net/http/httptest"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
	"golang.org/x/sys/unix"

	"github.com/veneer-skins/veneer/bench/speed/load"
	"github.com/veneer-skins/veneer/shared/testenv"
	"github.com/veneer-skins/veneer/shared/testenv/cmptest"
)

func serve(t *testing.T, handler fasthttp.RequestHandler) string {
	t.Helper()
	return serveOn(t, testenv.Must(net.Listen("tcp", "127.0.0.1:0"))(t), handler)
}

func serveOn(t *testing.T, listener net.Listener, handler fasthttp.RequestHandler) string {
	t.Helper()
	server := &fasthttp.Server{Handler: handler, CloseOnShutdown: true}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() { testenv.Do(t, errors.Join(server.Shutdown(), <-served)) })
	return listener.Addr().String()
}

func stream(connections int, rate float64, paths ...string) *load.Stream {
	s := &load.Stream{Connections: connections, Rate: rate}
	for _, path := range paths {
		s.Requests = append(s.Requests, []byte("GET "+path+" HTTP/1.1\r\nHost: test\r\n\r\n"))
	}
	return s
}

// runRight runs a stream to its end. All answers must be right.
func runRight(t *testing.T, address string, s *load.Stream) *load.Answers {
	t.Helper()
	answers := testenv.Must(load.Run(t.Context(), address, time.Hour, s))(t)
	testenv.Do(t, answers[0].Check())
	return &answers[0]
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
	config := &tls.Config{Certificates: certified.TLS.Certificates, MinVersion: tls.VersionTLS12}
	listener := testenv.Must(tls.Listen("tcp", "127.0.0.1:0", config))(t)
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
	s.TLS, s.InspectShare, s.Order = true, 1, load.Repeat(len(s.Requests), 100)
	s.Inspect = func(request, _ int, got []byte) error {
		if !bytes.Equal(got, body[:s.Lengths[request]]) {
			return errors.New("the body is another one")
		}
		return nil
	}
	s.Connected = func() { requestedBefore.Store(requested.Load() + 1) }
	if n := runRight(t, address, s).Total(); n != 500 || requestedBefore.Load() != 1 {
		t.Errorf("%d answers, %d requests before all connections were open; want 500, and none", n, requestedBefore.Load()-1)
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
		answers := testenv.Must(load.Run(t.Context(), address, 100*time.Millisecond, first, second))(t)
		// At every whole millisecond before the end, the first at 0.
		if n, no := answers[0].Total(), answers[1].Latencies[503].TotalCount(); n != 100 || no != 50 || answers[1].Total() != no {
			t.Errorf("%d and %d answers, %d of them 503s; want 100 and 50 and 50", n, answers[1].Total(), no)
		}
		if rate := 50 / answers[1].Elapsed.Seconds(); answers[1].Rate(503) != rate || answers[1].Elapsed < 100*time.Millisecond {
			t.Errorf("%.0f 503s per second in %v; want %.0f", answers[1].Rate(503), answers[1].Elapsed, rate)
		}
		testenv.Check(t, answers[0].Bytes >= 33<<20, "%d bytes; want those of 33 large answers", answers[0].Bytes)
	}
	mu.Lock() // Run uses raw system calls, which the race detector does not order
	defer mu.Unlock()
	// The second run continued where the first ended, with /empty.
	cmptest.Same(t, seen, map[string]int{"/large": 67, "/empty": 67, "/same": 66, "/no": 100}, "requests by path")
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
	a := testenv.Must(load.Run(t.Context(), address, 50*time.Millisecond, stream(4, 0, "/")))(t)[0]
	testenv.Do(t, a.Check())
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
	answers := testenv.Must(load.Run(t.Context(), address, stall, stream(1, 1000, "/")))(t)
	if p50 := answers[0].Percentile(200, 50); p50 < stall*2/5 {
		t.Errorf("the median latency is %v after a stall of %v", p50, stall)
	}
}

// A body is inspected as a whole, however large and in however many pieces, and does not disturb
// the others.
func TestInspectSeesShareOfBodies(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("0123456789", 50_000)
	address := serve(t, func(rc *fasthttp.RequestCtx) { rc.SetBodyString(large) })
	s := stream(2, 0, "/")
	s.Order, s.InspectShare = load.Repeat(1, 200), 0.25
	inspected := 0
	s.Inspect = func(_, _ int, body []byte) error {
		if inspected++; string(body) != large {
			return errors.New("another body")
		}
		return nil
	}
	if n := runRight(t, address, s).Total(); n != 200 || inspected < 30 || inspected > 70 {
		t.Errorf("of %d answers %d were looked at; want about 50 of 200", n, inspected)
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
	t.Run("a wrong address", func(t *testing.T) {
		t.Parallel()
		listener := testenv.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
		testenv.Do(t, listener.Close())
		const elsewhere = "not a loopback address"
		for address, want := range map[string]string{
			"localhost": "", listener.Addr().String(): "", "192.0.2.1:80": elsewhere, "[2001:db8::1]:80": elsewhere,
			"0.0.0.0:80": elsewhere, "[::ffff:192.0.2.1]:80": elsewhere,
		} {
			_, err := load.Run(t.Context(), address, time.Hour, stream(2, 0, "/"))
			testenv.ErrorHas(t, err, want, "Run to %s", address)
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
	s.Order = load.Repeat(1, 2000) // more than maxFailures
	n := runRight(t, address, s).Total()
	mu.Lock()
	defer mu.Unlock()
	testenv.Check(t, n == 2000 && len(seen) == 2000, "%d answers over %d connections; want 2000", n, len(seen))
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
		return testenv.Must(load.Run(t.Context(), address, 2*pause, s))(t)[0].Late
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
		s.Statuses, s.Order = []int{200}, load.Repeat(1, 3)
		sum.Add(testenv.Must(load.Run(t.Context(), address, time.Hour, s))(t)[0])
	}
	if sum.Total() != 9 || sum.All().TotalCount() != 9 || sum.Latencies[200].TotalCount() != 6 || sum.Wrong[load.WrongStatus] != 3 || sum.Check() == nil {
		t.Errorf("%d answers, %d of them 200, wrong ones %v; want 9, 6 and 3", sum.Total(), sum.Latencies[200].TotalCount(), sum.Wrong)
	}
}

func affinity(t *testing.T) (may unix.CPUSet) {
	t.Helper()
	testenv.Do(t, unix.SchedGetaffinity(0, &may))
	return may
}

// Afterwards the thread may run on the same processors as before.
func TestPinRestoresAffinity(t *testing.T) {
	t.Parallel()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before, cpu := affinity(t), 0
	for !before.IsSet(cpu) {
		cpu++
	}
	unpin := testenv.Must(load.Pin(cpu))(t)
	if only := affinity(t); only.Count() != 1 || !only.IsSet(cpu) {
		t.Errorf("it may run on %d processors; want only number %d", only.Count(), cpu)
	}
	unpin()
	testenv.Check(t, affinity(t) == before, "it may not run on the processors as before")
}

func TestZipfShape(t *testing.T) {
	t.Parallel()
	const n, draws = 1000, 1_000_000
	for _, exponent := range []float64{0, 0.9, 1.2} {
		z, random := load.NewZipf(n, exponent), rand.New(rand.NewPCG(1, 2))
		counts := make([]float64, n)
		for range draws {
			counts[z.Draw(random)]++
		}
		sum := 0.0
		for k := range n {
			sum += math.Pow(float64(k+1), -exponent)
		}
		// Six standard deviations of each count: by chance, none of 1,000 counts is further off.
		for k, count := range counts {
			want := draws * math.Pow(float64(k+1), -exponent) / sum
			if math.Abs(count-want) > 6*math.Sqrt(want) {
				t.Errorf("of exponent %v, number %d was drawn %.0f times; want about %.0f", exponent, k, count, want)
			}
		}
	}
}
