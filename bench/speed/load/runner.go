package load

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// runner runs streams.
type runner struct {
	server   netip.AddrPort
	epoll    int
	start    time.Time
	streams  []*streamState
	conns    []*conn // by id
	inFlight int     // number of open requests
	failures int     // failed connections since the last complete answer
}

// streamState is a running stream.
type streamState struct {
	*Stream
	answers Answers
	sent    int
	ended   bool          // there is nothing more to send
	last    time.Duration // time of the last answer, since the start
	random  *rand.Rand

	// free are the idle connections, a ring that begins with the one that has been idle for
	// longest.
	free        []*conn
	first, size int
}

// maxFailures in a row end a run, so that a server that answers nothing is not retried for ever.
const maxFailures = 1000

func newRunner(server netip.AddrPort, streams []*Stream) (r *runner, err error) {
	r = &runner{server: server}
	if r.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return nil, fmt.Errorf("make an epoll: %w", err)
	}
	for i, s := range streams {
		st := &streamState{Stream: s, free: make([]*conn, s.Connections), random: rand.New(rand.NewPCG(0, uint64(i)))}
		r.streams = append(r.streams, st)
		for range s.Connections {
			c := &conn{id: len(r.conns), stream: st, request: -1, buffer: make([]byte, initialBuffer)}
			if err := r.connect(c); err != nil {
				r.close()
				return nil, err
			}
			r.conns = append(r.conns, c)
			st.push(c)
		}
	}
	return r, nil
}

func (r *runner) connect(c *conn) error {
	if err := c.dial(r.server, c.stream.From); err != nil {
		return err
	}
	if err := unix.EpollCtl(r.epoll, unix.EPOLL_CTL_ADD, c.fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(c.id)}); err != nil {
		_ = unix.Close(c.fd)
		return fmt.Errorf("watch a connection: %w", err)
	}
	return nil
}

func (r *runner) close() {
	for _, c := range r.conns {
		_ = unix.Close(c.fd)
	}
	_ = unix.Close(r.epoll)
}

func (r *runner) run(ctx context.Context, duration time.Duration) ([]Answers, error) {
	r.start = time.Now()
	before := threadTime()
	err := r.loop(ctx, duration)
	busy := threadTime() - before
	if err != nil {
		duration = min(duration, time.Since(r.start))
	}
	var all []Answers
	for _, st := range r.streams {
		a := st.answers
		// The time of a stream that has nothing more to send ends with its last answer.
		a.Elapsed, a.Busy = st.last, busy
		if !st.ended {
			a.Elapsed = max(st.last, duration)
		}
		all = append(all, a)
	}
	return all, err
}

func (r *runner) loop(ctx context.Context, duration time.Duration) error {
	events := make([]unix.EpollEvent, 128)
	// The first requests are sent at 0, however late that is: every run has some.
	for now := time.Duration(0); ; now = time.Since(r.start) {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case now > duration+drainTimeout:
			for _, c := range r.conns {
				if c.request >= 0 {
					c.stream.addWrong(c, Unanswered, fmt.Errorf("no complete answer %v after the last request", drainTimeout))
				}
			}
			return nil
		}
		pause := drainTimeout
		for _, st := range r.streams {
			next, err := r.send(st, now, duration)
			if err != nil {
				return err
			}
			pause = min(pause, next)
		}
		if r.inFlight == 0 && pause == drainTimeout {
			return nil
		}
		n, err := wait(r.epoll, events, min(pause, 10*time.Millisecond))
		if err != nil {
			return fmt.Errorf("wait for answers: %w", err)
		}
		for _, event := range events[:n] {
			if err := r.handleReadable(r.conns[event.Fd]); err != nil {
				return err
			}
		}
	}
}

// send sends what is due and returns the time until the next request is due, or drainTimeout if
// that waits for an answer, or if there is none.
func (r *runner) send(st *streamState, now, duration time.Duration) (pause time.Duration, err error) {
	for st.size > 0 && !st.ended {
		due := now
		if st.Rate > 0 {
			due = time.Duration(float64(st.sent) * float64(time.Second) / st.Rate)
		}
		switch {
		case due >= duration:
			return drainTimeout, nil
		case due > now:
			return due - now, nil
		}
		next := st.nextRequest()
		if next < 0 {
			st.ended = true
			break
		}
		c := st.pop()
		c.due, c.request = due, next
		st.answers.Late = max(st.answers.Late, now-max(due, c.idleSince))
		if err := c.send(st.Requests[next]); err != nil {
			// The server may just have closed an idle connection.
			if err := r.replaceFailed(c); err != nil {
				return 0, err
			}
			if err := c.send(st.Requests[next]); err != nil {
				return 0, err
			}
		}
		st.sent++
		r.inFlight++
	}
	return drainTimeout, nil
}

func (r *runner) handleReadable(c *conn) error {
	if c.request < 0 {
		return r.handleIdle(c)
	}
	whole, err := c.read()
	if err == nil && !whole {
		return nil
	}
	st := c.stream
	r.inFlight--
	st.last = time.Since(r.start)
	st.answers.Bytes += c.bytes
	if err != nil {
		fault := Broken
		if f := (*faultError)(nil); errors.As(err, &f) {
			fault = f.fault
		}
		st.addWrong(c, fault, err)
		err = r.replaceFailed(c)
	} else {
		r.failures = 0
		_ = st.answers.histogram(c.header.status).RecordValue(int64(min(st.last-c.due, maxLatency))) // within its range
		st.check(c)
		if c.header.closes {
			err = r.replace(c)
		}
	}
	c.request, c.idleSince = -1, st.last
	st.push(c)
	return err
}

// handleIdle is for an idle connection: its server has closed it, or sends more than was requested.
func (r *runner) handleIdle(c *conn) error {
	switch n, err := c.receive(c.buffer); {
	case errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR):
		return nil
	case n > 0:
		c.stream.addWrong(c, WrongLength, errLong)
	}
	return r.replaceFailed(c)
}

func (r *runner) replaceFailed(c *conn) error {
	if r.failures++; r.failures == maxFailures {
		return fmt.Errorf("%d connections have failed since the last complete answer", maxFailures)
	}
	return r.replace(c)
}

func (r *runner) replace(c *conn) error {
	_ = unix.Close(c.fd)
	err := r.connect(c)
	if err != nil {
		c.fd = -1
	}
	return err
}

func (st *streamState) nextRequest() int {
	if st.Order != nil {
		return st.Order()
	}
	index := st.next
	if st.next++; st.next == len(st.Requests) {
		st.next = 0
	}
	return index
}

func (st *streamState) pop() *conn {
	c := st.free[st.first]
	if st.first++; st.first == len(st.free) {
		st.first = 0
	}
	st.size--
	return c
}

func (st *streamState) push(c *conn) {
	st.free[(st.first+st.size)%len(st.free)] = c
	st.size++
}

func (st *streamState) isRight(status int) bool {
	return len(st.Statuses) == 0 || slices.Contains(st.Statuses, status)
}

// inspects reports whether the next answer of a status is inspected.
func (st *streamState) inspects(status int) bool {
	return st.Inspect != nil && st.isRight(status) && (st.InspectShare >= 1 || st.random.Float64() < st.InspectShare)
}

// check counts a complete answer if it is wrong.
func (st *streamState) check(c *conn) {
	switch h := c.header; {
	case !st.isRight(h.status):
		st.addWrong(c, WrongStatus, fmt.Errorf("status %d; want one of %d", h.status, st.Statuses))
	case len(st.Lengths) > 0 && st.Lengths[c.request] >= 0 && h.length != st.Lengths[c.request]:
		st.addWrong(c, WrongLength, fmt.Errorf("%d bytes; want %d", h.length, st.Lengths[c.request]))
	case c.keepBody:
		if err := st.Inspect(c.request, h.status, c.buffer[c.bodyStart:c.buffered]); err != nil {
			st.addWrong(c, WrongBody, err)
		}
	}
}

func (st *streamState) addWrong(c *conn, fault Fault, err error) {
	if st.answers.Wrong == nil {
		st.answers.Wrong = map[Fault]int64{}
		st.answers.First = err
		if c.request >= 0 {
			st.answers.First = fmt.Errorf("%w to %.200q", err, st.Requests[c.request])
		}
	}
	st.answers.Wrong[fault]++
}

// wait waits for events with a timeout of nanosecond resolution.
func wait(epoll int, events []unix.EpollEvent, pause time.Duration) (int, error) {
	timeout := unix.NsecToTimespec(int64(pause))
	n, _, errno := unix.Syscall6(unix.SYS_EPOLL_PWAIT2, uintptr(epoll), uintptr(unsafe.Pointer(&events[0])), uintptr(len(events)),
		uintptr(unsafe.Pointer(&timeout)), 0, 0)
	if errno == 0 {
		return int(n), nil
	}
	if errno == unix.EINTR {
		return 0, nil
	}
	return 0, errno
}

// Pin locks the calling goroutine to its thread, and that to one processor, until unpin. A Run in
// between is on that processor only.
func Pin(cpu int) (unpin func(), err error) {
	var before, only unix.CPUSet
	runtime.LockOSThread()
	only.Set(cpu)
	if err = unix.SchedGetaffinity(0, &before); err == nil {
		err = unix.SchedSetaffinity(0, &only)
	}
	if err != nil {
		runtime.UnlockOSThread()
		return nil, fmt.Errorf("stay on processor %d: %w", cpu, err)
	}
	return func() {
		// Without success the goroutine stays locked, so that its thread ends with it.
		if unix.SchedSetaffinity(0, &before) == nil {
			runtime.UnlockOSThread()
		}
	}, nil
}

func threadTime() time.Duration {
	var taken unix.Timespec
	// It cannot fail: the clock exists, and the pointer is valid.
	_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &taken)
	return time.Duration(taken.Nano())
}

// gc is the state of the paused garbage collector.
var gc struct {
	mu      sync.Mutex
	pauses  int // number of callers that have paused it
	percent int // settings before the pause
	limit   int64
}

// gcMemoryLimit is the size from which the collector runs all the same: garbage must not take the
// machine's memory from the measured server.
const gcMemoryLimit = 8 << 30

// pauseGC pauses the garbage collector until every caller has called resume.
func pauseGC() (resume func()) {
	gc.mu.Lock()
	defer gc.mu.Unlock()
	if gc.pauses == 0 {
		gc.percent, gc.limit = debug.SetGCPercent(-1), debug.SetMemoryLimit(gcMemoryLimit)
	}
	gc.pauses++
	return func() {
		gc.mu.Lock()
		defer gc.mu.Unlock()
		if gc.pauses--; gc.pauses == 0 {
			debug.SetGCPercent(gc.percent)
			debug.SetMemoryLimit(gc.limit)
		}
	}
}
