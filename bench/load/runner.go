package load

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// runner runs streams.
type runner struct {
	server netip.AddrPort
	epoll  int
	start  time.Time
	lanes  []*lane
	wires  []*wire // by number
	under  int     // how many requests are under way
	failed int     // how many connections did, since an answer came whole
}

// lane is a stream while it runs.
type lane struct {
	*Stream
	answers Answers
	sent    int
	ended   bool          // there is nothing more to send
	last    time.Duration // when the last answer came, since the start
	random  *rand.Rand

	// free are the wires without a request, a ring that begins with the one that has
	// been free for longest.
	free        []*wire
	first, size int
}

// mostFailures in a row end a run: a server that answers nothing is not to be
// connected to for ever.
const mostFailures = 1000

func newRunner(server netip.AddrPort, streams []*Stream) (r *runner, err error) {
	r = &runner{server: server}
	if r.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return nil, fmt.Errorf("make an epoll: %w", err)
	}
	for i, s := range streams {
		l := &lane{Stream: s, free: make([]*wire, s.Connections), random: rand.New(rand.NewPCG(0, uint64(i)))}
		r.lanes = append(r.lanes, l)
		for range s.Connections {
			w := &wire{number: len(r.wires), lane: l, request: -1, buffer: make([]byte, firstBuffer)}
			if err := r.connect(w); err != nil {
				r.close()
				return nil, err
			}
			r.wires = append(r.wires, w)
			l.push(w)
		}
	}
	return r, nil
}

func (r *runner) connect(w *wire) error {
	if err := w.dial(r.server, w.lane.From); err != nil {
		return err
	}
	if err := unix.EpollCtl(r.epoll, unix.EPOLL_CTL_ADD, w.fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(w.number)}); err != nil {
		_ = unix.Close(w.fd)
		return fmt.Errorf("watch a connection: %w", err)
	}
	return nil
}

func (r *runner) close() {
	for _, w := range r.wires {
		_ = unix.Close(w.fd)
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
	for _, l := range r.lanes {
		a := l.answers
		// The time of whoever has nothing more to send ends with the last answer.
		a.Elapsed, a.Busy = l.last, busy
		if !l.ended {
			a.Elapsed = max(l.last, duration)
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
		case now > duration+late:
			r.giveUp()
			return nil
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

// giveUp counts what is under way as not answered.
func (r *runner) giveUp() {
	for _, w := range r.wires {
		if w.request >= 0 {
			w.lane.wrong(w, Unanswered, fmt.Errorf("%v after the last was sent there is no whole answer", late))
		}
	}
}

// send sends what is due and returns in how long the next request is, or late if it is
// sent only when another has been answered, or not at all.
func (r *runner) send(l *lane, now, duration time.Duration) (pause time.Duration, err error) {
	for l.size > 0 && !l.ended {
		due := now
		if l.Rate > 0 {
			due = time.Duration((float64(l.sent) + l.Phase) * float64(time.Second) / l.Rate)
		}
		switch {
		case due >= duration:
			return late, nil
		case due > now:
			return due - now, nil
		}
		next := l.draw()
		if next < 0 {
			l.ended = true
			break
		}
		w := l.pop()
		w.due, w.request = due, next
		l.answers.Late = max(l.answers.Late, now-max(due, w.freed))
		if err := w.ask(l.Requests[next]); err != nil {
			// The server may just have closed a connection that was idle.
			if err := r.renew(w); err != nil {
				return 0, err
			}
			if err := w.ask(l.Requests[next]); err != nil {
				return 0, err
			}
		}
		l.sent++
		r.under++
	}
	return late, nil
}

// take takes in what has come on a connection.
func (r *runner) take(w *wire) error {
	if w.request < 0 {
		return r.takeIdle(w)
	}
	whole, err := w.read()
	if err == nil && !whole {
		return nil
	}
	l := w.lane
	r.under--
	l.last = time.Since(r.start)
	l.answers.Bytes += w.bytes
	if err != nil {
		fault := Broken
		if f := (*faultError)(nil); errors.As(err, &f) {
			fault = f.fault
		}
		l.wrong(w, fault, err)
		err = r.renew(w)
	} else {
		r.failed = 0
		_ = l.answers.of(w.head.status).RecordValue(int64(min(l.last-w.due, longest))) // which it can hold
		l.check(w)
		if w.head.closes {
			err = r.replace(w)
		}
	}
	w.request, w.freed = -1, l.last
	l.push(w)
	return err
}

// takeIdle is for a connection that nothing was asked on: its server has closed it, or
// says more than it was asked for.
func (r *runner) takeIdle(w *wire) error {
	switch n, err := w.receive(w.buffer); {
	case errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR):
		return nil
	case n > 0:
		w.lane.wrong(w, WrongLength, errLong)
	}
	return r.renew(w)
}

// renew replaces a connection that has failed.
func (r *runner) renew(w *wire) error {
	if r.failed++; r.failed == mostFailures {
		return fmt.Errorf("%d connections have failed since the last whole answer", mostFailures)
	}
	return r.replace(w)
}

func (r *runner) replace(w *wire) error {
	_ = unix.Close(w.fd)
	err := r.connect(w)
	if err != nil {
		w.fd = -1
	}
	return err
}

// draw returns which request is next.
func (l *lane) draw() int {
	if l.Order != nil {
		return l.Order()
	}
	drawn := l.next
	if l.next++; l.next == len(l.Requests) {
		l.next = 0
	}
	return drawn
}

func (l *lane) pop() *wire {
	w := l.free[l.first]
	if l.first++; l.first == len(l.free) {
		l.first = 0
	}
	l.size--
	return w
}

func (l *lane) push(w *wire) {
	l.free[(l.first+l.size)%len(l.free)] = w
	l.size++
}

// right reports whether a status is.
func (l *lane) right(status int) bool {
	return len(l.Statuses) == 0 || slices.Contains(l.Statuses, status)
}

// looks reports whether the next answer of a status is looked at whole.
func (l *lane) looks(status int) bool {
	return l.Look != nil && l.right(status) && (l.Share >= 1 || l.random.Float64() < l.Share)
}

// check counts an answer that has come whole if it is wrong.
func (l *lane) check(w *wire) {
	switch h := w.head; {
	case !l.right(h.status):
		l.wrong(w, WrongStatus, fmt.Errorf("%d, and not one of %d, is the answer", h.status, l.Statuses))
	case len(l.Lengths) > 0 && l.Lengths[w.request] >= 0 && h.length != l.Lengths[w.request]:
		l.wrong(w, WrongLength, fmt.Errorf("%d bytes, and not %d, are the answer", h.length, l.Lengths[w.request]))
	case w.keep:
		if err := l.Look(w.request, h.status, w.buffer[w.body:w.have]); err != nil {
			l.wrong(w, WrongBody, err)
		}
	}
}

func (l *lane) wrong(w *wire, fault Fault, err error) {
	if l.answers.Wrong == nil {
		l.answers.Wrong = map[Fault]int64{}
		l.answers.First = err
		if w.request >= 0 {
			l.answers.First = fmt.Errorf("%w to %.200q", err, l.Requests[w.request])
		}
	}
	l.answers.Wrong[fault]++
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
