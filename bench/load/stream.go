package load

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"runtime/debug"
	"syscall"
	"time"
	"unsafe"

	"github.com/HdrHistogram/hdrhistogram-go"
	"golang.org/x/sys/unix"
)

// Stream is requests of one kind among others that are sent at the same time.
type Stream struct {
	// Connections is how many there are, and so how many requests are under way at
	// most.
	Connections int
	// Rate is how many requests fall due in a second, at even distances; each is sent
	// over the connection that has been free for longest. 0 is a closed loop.
	Rate float64
	// Requests are sent in their order and then from the first again. A later run goes
	// on where the last one ended.
	Requests [][]byte

	next int // of Requests
}

// Answers are what came back on a stream.
type Answers struct {
	// Elapsed is how long the stream was asked.
	Elapsed time.Duration
	// Latencies are in nanoseconds, by status. They count from when a request fell due;
	// in a closed loop, from the sending.
	Latencies map[int]*hdrhistogram.Histogram
}

// Rate returns how many answers of a status there were a second.
func (a Answers) Rate(status int) float64 {
	if known := a.Latencies[status]; known != nil {
		return float64(known.TotalCount()) / a.Elapsed.Seconds()
	}
	return 0
}

// Percentile returns the latency that so many per cent of the answers of a status did
// not exceed, and 0 if there was none.
func (a Answers) Percentile(status int, percent float64) time.Duration {
	if known := a.Latencies[status]; known != nil {
		return time.Duration(known.ValueAtPercentile(percent))
	}
	return 0
}

// Total returns how many answers there were of whatever status.
func (a Answers) Total() (n int64) {
	for _, known := range a.Latencies {
		n += known.TotalCount()
	}
	return n
}

// late is how long answers to the last requests are waited for.
const late = 10 * time.Second

// Run sends all streams to a server for so long, waits for the answers that are due
// then, and returns those of each stream. One thread does all of that with few system
// calls: it takes half of the processor time of a Load and lets nothing of Go's
// scheduler come between an answer and its latency.
func Run(ctx context.Context, address string, duration time.Duration, streams ...*Stream) ([]Answers, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	// Timers may come late by 50 µs, which is longer than many answers take.
	if err := unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("ask for exact timers: %w", err)
	}
	// Nor may collecting garbage, of which there is hardly any.
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	r, err := newRunner(address, streams)
	if err != nil {
		return nil, err
	}
	defer r.close()
	if err := r.run(ctx, duration); err != nil {
		return nil, err
	}
	var all []Answers
	for _, l := range r.lanes {
		all = append(all, Answers{Elapsed: duration, Latencies: l.latencies})
	}
	return all, nil
}

// runner runs streams.
type runner struct {
	epoll int
	start time.Time
	lanes []*lane
	wires []*wire // by the number that the kernel reports them under
	under int     // how many requests are under way
	read  []byte
}

// lane is a stream while it runs.
type lane struct {
	*Stream
	due       time.Duration // when the next request is, since the start
	free      []*wire       // the one that has been free for longest first
	latencies map[int]*hdrhistogram.Histogram
}

func newRunner(address string, streams []*Stream) (*runner, error) {
	server, err := netip.ParseAddrPort(address)
	if err != nil {
		return nil, err
	}
	r := &runner{read: make([]byte, 64<<10)}
	if r.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return nil, fmt.Errorf("make an epoll: %w", err)
	}
	for _, s := range streams {
		l := &lane{Stream: s, latencies: map[int]*hdrhistogram.Histogram{}}
		r.lanes = append(r.lanes, l)
		for range s.Connections {
			w, err := dialWire(server, l)
			if err == nil {
				r.wires = append(r.wires, w)
				l.free = append(l.free, w)
				err = unix.EpollCtl(r.epoll, unix.EPOLL_CTL_ADD, w.fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(len(r.wires) - 1)})
			}
			if err != nil {
				r.close()
				return nil, err
			}
		}
	}
	return r, nil
}

func (r *runner) close() {
	for _, w := range r.wires {
		_ = unix.Close(w.fd)
	}
	_ = unix.Close(r.epoll)
}

func (r *runner) run(ctx context.Context, duration time.Duration) error {
	r.start = time.Now()
	events := make([]unix.EpollEvent, 128)
	for {
		now := time.Since(r.start)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case now > duration+late:
			return fmt.Errorf("%d requests are not answered %v after the last was sent", r.under, late)
		}
		pause := late
		for _, l := range r.lanes {
			next, err := r.send(l, now, duration)
			if err != nil {
				return err
			}
			pause = min(pause, next)
		}
		if r.under == 0 && pause == late {
			return nil
		}
		n, err := wait(r.epoll, events, min(pause, 10*time.Millisecond))
		if err != nil {
			return fmt.Errorf("wait for answers: %w", err)
		}
		for _, event := range events[:n] {
			if err := r.take(r.wires[event.Fd]); err != nil {
				return err
			}
		}
	}
}

// send sends what is due and returns in how long the next request is, or late if it is
// sent only when another has been answered, or not at all.
func (r *runner) send(l *lane, now, duration time.Duration) (pause time.Duration, err error) {
	for len(l.free) > 0 {
		due := now
		if l.Rate > 0 {
			due = l.due
		}
		switch {
		case due >= duration:
			return late, nil
		case due > now:
			return due - now, nil
		}
		w := l.free[0]
		l.free = l.free[1:]
		w.due = due
		request := l.Requests[l.next]
		if n, err := syscall.Write(w.fd, request); err != nil || n < len(request) {
			return 0, fmt.Errorf("send a request: %d of %d bytes: %w", n, len(request), err)
		}
		r.under++
		if l.next++; l.next == len(l.Requests) {
			l.next = 0
		}
		if l.Rate > 0 {
			l.due += time.Duration(float64(time.Second) / l.Rate)
		}
	}
	return late, nil
}

// take reads what has come on a connection.
func (r *runner) take(w *wire) error {
	n, err := syscall.Read(w.fd, r.read)
	switch {
	case errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR):
		return nil
	case err != nil:
		return fmt.Errorf("read an answer: %w", err)
	case n == 0:
		return errors.New("read an answer: the server has closed the connection")
	}
	status, err := w.answer.add(r.read[:n])
	if err != nil || status == 0 {
		return err
	}
	l := w.lane
	known := l.latencies[status]
	if known == nil {
		known = newLatencies()
		l.latencies[status] = known
	}
	_ = known.RecordValue(int64(min(time.Since(r.start)-w.due, longest))) // which it can hold
	l.free = append(l.free, w)
	r.under--
	return nil
}

// wait waits for events, at most for so long, and to the nanosecond.
func wait(epoll int, events []unix.EpollEvent, pause time.Duration) (int, error) {
	timeout := unix.NsecToTimespec(int64(pause))
	n, _, errno := unix.Syscall6(unix.SYS_EPOLL_PWAIT2, uintptr(epoll), uintptr(unsafe.Pointer(&events[0])), uintptr(len(events)),
		uintptr(unsafe.Pointer(&timeout)), 0, 0)
	switch errno {
	case 0:
		return int(n), nil
	case unix.EINTR:
		return 0, nil
	default:
		return 0, errno
	}
}
