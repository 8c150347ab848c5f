package load

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// Question is one request of a Replay and what is looked at in its answer.
type Question struct {
	// Bytes is the whole request, as HTTP/1.1 writes it.
	Bytes []byte
	// Status and Length are the right answer's: its status and the length of its
	// body.
	Status, Length int
}

// Replay is a closed loop for servers that answer in microseconds. It asks from one
// thread that stays on one processor, and looks at no more of an answer than its
// status and its length. So one processor can keep a server busy that has another
// one to itself.
type Replay struct {
	// Address is the server's, of IPv4.
	Address netip.AddrPort
	// Connections is how many there are, each with one request under way.
	Connections int
	// CPU is the processor to run on.
	CPU int
	// Questions are drawn at random, in an order that Seed decides.
	Questions []Question
	Seed      uint64
}

// Replayed is what a Replay came to.
type Replayed struct {
	// Answers is how many there were, all of them right.
	Answers int
	// Bytes is how long they were together, headers included.
	Bytes int64
	// Elapsed is how long it took, Busy how much of the processor's time the replay
	// itself used meanwhile. When the two are close, the replay was the bottleneck.
	Elapsed, Busy time.Duration
}

// silence is how long a server may take for an answer.
const silence = 5 * time.Second

// Run replays for a while. The first answer that is not the right one is an error.
func (r Replay) Run(ctx context.Context, duration time.Duration) (Replayed, error) {
	unpin, err := pin(r.CPU)
	if err != nil {
		return Replayed{}, err
	}
	defer unpin()
	poll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return Replayed{}, fmt.Errorf("make a poll: %w", err)
	}
	defer func() { _ = unix.Close(poll) }()
	lines := make([]line, r.Connections)
	for i := range lines {
		if err := lines[i].dial(r.Address); err != nil {
			return Replayed{}, err
		}
		defer lines[i].hangUp()
		// The poll gives back the index in the place of the descriptor.
		event := unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(i)}
		if err := unix.EpollCtl(poll, unix.EPOLL_CTL_ADD, lines[i].fd, &event); err != nil {
			return Replayed{}, fmt.Errorf("watch a connection: %w", err)
		}
	}
	return r.run(ctx, poll, lines, duration)
}

func (r Replay) run(ctx context.Context, poll int, lines []line, duration time.Duration) (Replayed, error) {
	var result Replayed
	random := rand.New(rand.NewPCG(r.Seed, 0))
	ask := func(l *line) error {
		l.asked = &r.Questions[random.IntN(len(r.Questions))]
		return l.ask()
	}
	start, before := time.Now(), threadTime()
	for i := range lines {
		if err := ask(&lines[i]); err != nil {
			return Replayed{}, err
		}
	}
	events := make([]unix.EpollEvent, len(lines))
	for {
		n, err := unix.EpollWait(poll, events, int(silence/time.Millisecond))
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return Replayed{}, fmt.Errorf("await answers: %w", err)
		case n == 0:
			return Replayed{}, fmt.Errorf("there is no answer within %v", silence)
		}
		for _, event := range events[:n] {
			l := &lines[event.Fd]
			whole, err := l.read()
			if err != nil {
				return Replayed{}, fmt.Errorf("%w to %.200q", err, l.asked.Bytes)
			}
			if !whole {
				continue
			}
			result.Answers++
			result.Bytes += l.bytes
			if err := ask(l); err != nil {
				return Replayed{}, err
			}
		}
		if ctx.Err() != nil {
			return Replayed{}, ctx.Err()
		}
		if result.Elapsed = time.Since(start); result.Elapsed >= duration {
			result.Busy = threadTime() - before
			return result, nil
		}
	}
}

// pin keeps the caller on one thread, and that on one processor, until what it
// returns is called.
func pin(cpu int) (unpin func(), err error) {
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
		// Without success the thread is not used again: it ends with its goroutine.
		if unix.SchedSetaffinity(0, &before) == nil {
			runtime.UnlockOSThread()
		}
	}, nil
}

// threadTime returns how much of a processor's time the calling thread has taken.
func threadTime() time.Duration {
	var taken unix.Timespec
	// It cannot fail: the clock exists, and so does the place for its time.
	_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &taken)
	return time.Duration(taken.Nano())
}
