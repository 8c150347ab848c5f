package load_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/valyala/fasthttp"
	"golang.org/x/sys/unix"

	"github.com/veneer-skins/veneer/bench/load"
)

// ask returns a question for a path, the right answer to which is 200 with so long
// a body.
func ask(path string, length int) load.Question {
	return load.Question{Bytes: get(path, "").Bytes, Status: fasthttp.StatusOK, Length: length}
}

// processor returns one on which this test may run.
func processor(t *testing.T) int {
	t.Helper()
	may := affinity(t)
	cpu := 0
	for !may.IsSet(cpu) {
		cpu++
	}
	return cpu
}

func affinity(t *testing.T) (may unix.CPUSet) {
	t.Helper()
	if err := unix.SchedGetaffinity(0, &may); err != nil {
		t.Fatal(err)
	}
	return may
}

func TestReplayCounts(t *testing.T) {
	t.Parallel()

	var given, bytes atomic.Int64
	address := serve(t, func(rc *fasthttp.RequestCtx) {
		given.Add(1)
		bytes.Add(int64(len(rc.Path())))
		rc.SetBodyString(strings.Repeat("x", len(rc.Path())))
	})
	r := load.Replay{
		Address: netip.MustParseAddrPort(address), Connections: 1, CPU: processor(t),
		Questions: []load.Question{ask("/a", 2), ask("/bb", 3), ask("/ccc", 4)},
	}
	result, err := r.Run(t.Context(), 50*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	// The last request may have been sent when time was up.
	if n := int(given.Load()); n != result.Answers && n != result.Answers+1 {
		t.Errorf("%d answers were counted; the server gave %d", result.Answers, n)
	}
	if least := bytes.Load() - 4 + int64(result.Answers)*int64(len("HTTP/1.1 200 OK\r\n\r\n")); result.Bytes < least {
		t.Errorf("%d answers have %d bytes; want more than %d", result.Answers, result.Bytes, least)
	}
	if result.Elapsed < 50*time.Millisecond || result.Busy <= 0 || result.Busy > result.Elapsed {
		t.Errorf("it took %v, of which it was busy for %v", result.Elapsed, result.Busy)
	}
}

// The seed decides the order, and nothing else.
func TestReplayOrder(t *testing.T) {
	t.Parallel()

	const enough = 20
	order := func(seed uint64) []string {
		ctx, cancel := context.WithCancel(t.Context())
		var mu sync.Mutex
		var asked []string
		address := serve(t, func(rc *fasthttp.RequestCtx) {
			mu.Lock()
			defer mu.Unlock()
			if asked = append(asked, string(rc.Path())); len(asked) == enough {
				cancel()
			}
		})
		r := load.Replay{Address: netip.MustParseAddrPort(address), Connections: 1, CPU: processor(t), Seed: seed}
		for i := range 100 {
			r.Questions = append(r.Questions, ask(fmt.Sprintf("/%d", i), 0))
		}
		if _, err := r.Run(ctx, time.Hour); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(asked[:enough])
	}
	first := order(1)
	if diff := cmp.Diff(first, order(1)); diff != "" {
		t.Errorf("the order with the same seed (-first +second):\n%s", diff)
	}
	if cmp.Equal(first, order(2)) {
		t.Errorf("the order with another seed is the same: %q", first)
	}
}

func TestReplayUsesAllConnections(t *testing.T) {
	t.Parallel()

	// Nobody is answered before all have asked.
	var asked sync.WaitGroup
	asked.Add(5)
	seen := map[uint64]bool{}
	var mu sync.Mutex
	address := serve(t, func(rc *fasthttp.RequestCtx) {
		mu.Lock()
		known := seen[rc.ConnID()]
		seen[rc.ConnID()] = true
		mu.Unlock()
		if !known {
			asked.Done()
		}
		asked.Wait()
	})
	r := load.Replay{Address: netip.MustParseAddrPort(address), Connections: 5, CPU: processor(t), Questions: []load.Question{ask("/", 0)}}
	if _, err := r.Run(t.Context(), time.Millisecond); err != nil {
		t.Error(err)
	}
}

// The caller's thread may run everywhere afterwards, as before.
func TestReplayLeavesTheThreadAsItWas(t *testing.T) {
	t.Parallel()

	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before, cpu := affinity(t), processor(t)
	address := serve(t, func(*fasthttp.RequestCtx) {})
	r := load.Replay{Address: netip.MustParseAddrPort(address), Connections: 1, CPU: cpu, Questions: []load.Question{ask("/", 0)}}
	if _, err := r.Run(t.Context(), time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if after := affinity(t); after != before {
		t.Errorf("it may run on %d processors, and before on %d", after.Count(), before.Count())
	}
}

// raw serves one connection at a time with bytes that are sent as they are, once
// for every request.
func raw(t *testing.T, pieces ...string) netip.AddrPort {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			reader := bufio.NewReader(conn)
			for {
				if line, err := reader.ReadString('\n'); err != nil {
					break
				} else if line != "\r\n" {
					continue
				}
				for _, piece := range pieces {
					_, _ = io.WriteString(conn, piece)
				}
				if len(pieces) == 0 {
					break
				}
			}
			_ = conn.Close()
		}
	}()
	return netip.MustParseAddrPort(listener.Addr().String())
}

func TestReplayReadsPieces(t *testing.T) {
	t.Parallel()

	f := func(length int, pieces ...string) {
		t.Helper()
		question := ask("/", length)
		r := load.Replay{Address: raw(t, pieces...), Connections: 1, CPU: processor(t), Questions: []load.Question{question}}
		result, err := r.Run(t.Context(), 100*time.Millisecond)
		if err != nil {
			t.Fatal(err)
		}
		whole := int64(len(strings.Join(pieces, "")))
		if result.Answers == 0 || result.Bytes != int64(result.Answers)*whole {
			t.Errorf("%d answers of %d bytes have %d", result.Answers, whole, result.Bytes)
		}
	}

	f(3, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc")
	f(3, "HTTP/1", ".1 200 OK\r\nContent-Le", "ngth: 3\r\n\r", "\na", "bc")
	f(0, "HTTP/1.1 200 OK\r\n\r\n")
	f(100_000, "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n", strings.Repeat("x", 99_999), "x")
}

func TestReplayRefuses(t *testing.T) {
	t.Parallel()

	for _, test := range []struct{ name, answer, want string }{
		{"another status", "HTTP/1.1 404 Not Found\r\nContent-Length: 3\r\n\r\nabc", "not status 200"},
		{"another length", "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nabcd", "4 bytes, and not 3"},
		{"no length", "HTTP/1.1 200 OK\r\n\r\n", "0 bytes, and not 3"},
		{"a length that is none", "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\nabc", "length"},
		{"more than it says", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabcd", "more than an answer"},
		{"no HTTP", "hello\r\n\r\n", `"hello" is the answer`},
		{"an endless header", strings.Repeat("x", 20_000), "no end to the header"},
		{"nothing", "", "closed before the end"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()

			var pieces []string
			if test.answer != "" {
				pieces = []string{test.answer}
			}
			r := load.Replay{Address: raw(t, pieces...), Connections: 1, CPU: processor(t), Questions: []load.Question{ask("/path", 3)}}
			_, err := r.Run(t.Context(), time.Minute)
			if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), "/path") {
				t.Errorf("Run: %v; want an error about /path with %q", err, test.want)
			}
		})
	}
}

func TestReplayEndsWithItsCaller(t *testing.T) {
	t.Parallel()

	ctx, cancel := context.WithCancel(t.Context())
	address := serve(t, func(*fasthttp.RequestCtx) { cancel() })
	r := load.Replay{Address: netip.MustParseAddrPort(address), Connections: 2, CPU: processor(t), Questions: []load.Question{ask("/", 0)}}
	if _, err := r.Run(ctx, time.Hour); !errors.Is(err, context.Canceled) {
		t.Errorf("Run: %v; want that it was cancelled", err)
	}
}
