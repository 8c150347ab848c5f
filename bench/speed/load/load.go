// Package load sends requests to a server over a fixed number of keep-alive connections and
// measures the answers. A closed loop sends the next request as soon as one is answered, which
// shows the server's throughput; an open loop sends at a constant rate, which shows the latency
// that users have (without coordinated omission).
//
// Load often runs on the machine that it measures, so it is cheap: requests are bytes made
// beforehand, and one thread with few system calls does the rest. With a processor to itself it
// saturates a server that has another one.
package load

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"net/netip"
	"runtime"
	"sort"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Stream is requests of one kind, possibly sent beside others, and how their right answers are
// recognised.
type Stream struct {
	// Connections is the number of connections, and so the maximum of open requests.
	Connections int
	// TLS encrypts the connections. Certificates are not verified.
	TLS bool
	// From is the loopback address of the client; the zero Addr is any.
	From netip.Addr
	// Rate is how many requests fall due in a second, at even intervals; each is sent over the
	// connection that has been idle for longest. 0 is a closed loop.
	Rate float64
	// Requests are complete HTTP/1.1 requests with methods that have response bodies (not
	// HEAD).
	Requests [][]byte
	// Order returns the index in Requests of the next request; a negative number ends the
	// stream. Without it they are sent in their order, repeatedly, and a later run continues
	// where the last one ended.
	Order func() int

	// Connected, unless nil, is called once all connections of a run are open.
	Connected func()

	// Statuses are those of right answers. Without any, all are right.
	Statuses []int
	// Lengths are those of the right answers' bodies in bytes, one for each request. Without
	// any, or where one is negative, Content-Length is right.
	Lengths []int
	// InspectShare of the right answers, 1 for all, are passed to Inspect with their body. It
	// returns an error for a wrong one. It must not retain the body, and while it runs nothing
	// is measured.
	InspectShare float64
	Inspect      func(request, status int, body []byte) error

	next int // index in Requests
}

// Get returns a GET request to this machine, with further header lines.
func Get(path string, lines ...string) []byte {
	return []byte("GET " + path + " HTTP/1.1\r\nHost: 127.0.0.1\r\n" + strings.Join(lines, "") + "\r\n")
}

// drainTimeout is how long answers to the last requests are awaited.
const drainTimeout = 10 * time.Second

// Run sends all streams to a server on this machine for a duration, waits for the answers that are
// due then, and returns those of each stream. Wrong answers are counted, and a broken connection is
// replaced; a server that is gone is an error. With an error, or when the context ends, it returns
// the answers so far.
//
// All is done by the calling thread, so that Go's scheduler adds nothing to latencies.
func Run(ctx context.Context, address string, duration time.Duration, streams ...*Stream) ([]Answers, error) {
	server, err := Loopback(address)
	if err != nil {
		return nil, err
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	// Timers may fire 50 µs late, which is longer than many answers take.
	if err := unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("set the timer slack: %w", err)
	}
	// Garbage collection would pause the load, too; there is hardly any garbage.
	defer pauseGC()()
	r, err := newRunner(server, streams)
	if err != nil {
		return nil, err
	}
	defer r.close()
	for _, s := range streams {
		if s.Connected != nil {
			s.Connected()
		}
	}
	return r.run(ctx, duration)
}

// Loopback parses a server's address, an IP address and a port. An address of another machine is an
// error: load is never sent to others by mistake.
func Loopback(address string) (netip.AddrPort, error) {
	server, err := netip.ParseAddrPort(address)
	switch {
	case err != nil:
		return netip.AddrPort{}, err
	case !server.Addr().Unmap().IsLoopback():
		return netip.AddrPort{}, fmt.Errorf("%s is not a loopback address: load is only sent there", server.Addr())
	}
	return netip.AddrPortFrom(server.Addr().Unmap(), server.Port()), nil
}

// Random returns an order that draws each of n requests at random, the same for the same seed.
func Random(n int, seed uint64) (order func() int) {
	random := rand.New(rand.NewPCG(seed, 0))
	return func() int { return random.IntN(n) }
}

// Once returns the order in which each of n requests is sent once.
func Once(n int) (order func() int) { return Repeat(n, 1) }

// Repeat returns the order in which n requests are sent some times, one after the other.
func Repeat(n, times int) (order func() int) {
	next := -1
	return func() int {
		if next++; next >= n*times {
			return -1
		}
		return next % n
	}
}

// Zipf draws numbers by Zipf's law: 0 is the most popular one, and number k is drawn
// (k+1)^exponent times less often.
type Zipf struct{ sums []float64 }

// NewZipf returns a Zipf of the numbers below n. The exponent is 0, which is uniform, or more.
func NewZipf(n int, exponent float64) Zipf {
	sums, sum := make([]float64, n), 0.0
	for rank := range sums {
		sum += math.Pow(float64(rank+1), -exponent)
		sums[rank] = sum
	}
	return Zipf{sums}
}

// Draw returns a number. It costs a binary search in n sums.
func (z Zipf) Draw(random *rand.Rand) int {
	last := len(z.sums) - 1
	return min(sort.SearchFloat64s(z.sums, random.Float64()*z.sums[last]), last)
}
