package load

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

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
