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

// collector is the collector of garbage, while it is to rest for some.
var collector struct {
	mu      sync.Mutex
	resting int // for how many
	percent int // that it had before, and the limit
	limit   int64
}

// mostMemory is how much this program may take before the collector goes on all the same:
// garbage must not take the machine's memory from what is measured.
const mostMemory = 8 << 30

// pauseCollector lets the collector of garbage rest until what it returns has been
// called, by everybody who paused it.
func pauseCollector() (resume func()) {
	collector.mu.Lock()
	defer collector.mu.Unlock()
	if collector.resting == 0 {
		collector.percent, collector.limit = debug.SetGCPercent(-1), debug.SetMemoryLimit(mostMemory)
	}
	collector.resting++
	return func() {
		collector.mu.Lock()
		defer collector.mu.Unlock()
		if collector.resting--; collector.resting == 0 {
			debug.SetGCPercent(collector.percent)
			debug.SetMemoryLimit(collector.limit)
		}
	}
}
