package load

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Pin keeps the caller on one thread, and that on one processor, until what it returns
// is called. A Run between the two is then all on that processor.
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

// gc is the collector of garbage, while it is to rest for some.
var gc struct {
	mu      sync.Mutex
	pauses  int // for how many
	percent int // that it had before, and the limit
	limit   int64
}

// gcMemoryLimit is how much this program may take before the collector goes on all the same:
// garbage must not take the machine's memory from what is measured.
const gcMemoryLimit = 8 << 30

// pauseGC lets the collector of garbage rest until what it returns has been
// called, by everybody who paused it.
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
