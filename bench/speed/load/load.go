// Package load sends requests to a server over a fixed number of keep-alive
// connections and counts what comes back. A closed loop asks again as soon as it
// is answered, which shows how much the server can do; an open loop asks at a
// constant rate whatever the server does, which shows how long its users wait.
//
// Load often runs on the machine that it measures, so it is cheap: requests are
// bytes made beforehand, and one thread with few system calls does all the rest. A
// processor to itself keeps a server busy that has another one.
package load

import (
	"context"
	"fmt"
	"net/netip"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// Stream is requests of one kind, maybe among others that are sent at the same time,
// and how their right answers are told.
type Stream struct {
	// Connections is how many there are, and so how many requests are under way at
	// most.
	Connections int
	// TLS has them encrypted. Certificates are not verified.
	TLS bool
	// From is the loopback address that they come from; the zero Addr is any.
	From netip.Addr
	// Rate is how many requests fall due in a second, at even distances; each is sent
	// over the connection that has been free for longest. 0 is a closed loop.
	Rate float64
	// Phase is when the first request falls due, as a share of the distance between two:
	// so streams of several threads fall due at even distances together.
	Phase float64
	// Requests are whole, as HTTP/1.1 writes them. Their methods are those whose answers
	// have bodies.
	Requests [][]byte
	// Order returns which of Requests is sent next; a negative number if none is, ever
	// again. Without it they are sent in their order and then from the first again, and
	// a later run goes on where the last one ended.
	Order func() int

	// Connected, unless nil, is called once all connections of a run are there.
	Connected func()

	// Statuses are those of right answers. Without any, all are right.
	Statuses []int
	// Lengths are those of the right answers' bodies in bytes, one for each request.
	// Without any, or where one is negative, an answer is as long as it says itself.
	Lengths []int
	// InspectShare of the right answers, 1 for all, are looked at whole. Look returns what is
	// wrong with one, if anything. It may keep nothing of the body, and while it works
	// nothing is measured.
	InspectShare float64
	Inspect      func(request, status int, body []byte) error

	next int // of Requests
}

// drainTimeout is how long answers to the last requests are waited for.
const drainTimeout = 10 * time.Second

// Run sends all streams to a server on this machine for so long, waits for the answers
// that are due then, and returns those of each stream. Wrong answers are counted, and a
// connection that breaks is replaced; that the server is gone is an error. When there
// is one, or the context ends, what has come until then is returned beside the error.
//
// All is done by the calling thread, so that nothing of Go's scheduler comes between an
// answer and its latency.
func Run(ctx context.Context, address string, duration time.Duration, streams ...*Stream) ([]Answers, error) {
	server, err := Loopback(address)
	if err != nil {
		return nil, err
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	// Timers may come late by 50 µs, which is longer than many answers take.
	if err := unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("ask for exact timers: %w", err)
	}
	// Nor may collecting garbage, of which there is hardly any.
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

// Loopback returns a server's address, an IP address and a port, unless it is that of
// another machine, which nobody has asked to be measured.
func Loopback(address string) (netip.AddrPort, error) {
	server, err := netip.ParseAddrPort(address)
	switch {
	case err != nil:
		return netip.AddrPort{}, err
	case !server.Addr().Unmap().IsLoopback():
		return netip.AddrPort{}, fmt.Errorf("%s is not on loopback, and load is sent nowhere else", server.Addr())
	}
	return netip.AddrPortFrom(server.Addr().Unmap(), server.Port()), nil
}
