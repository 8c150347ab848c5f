package edge

import (
	"time"

	"golang.org/x/sys/unix"
)

const (
	// niceOffset is added to the nice value of a worker's thread. With 10, it gets a tenth of
	// a processor beside a thread that is always busy. With more, it would get nearly nothing
	// on a machine that does something else as well, and renders would never finish.
	niceOffset = 10
	maxNice    = 19
	// timeSlice is the slice that a worker's thread requests, many times the default: from
	// 6.12 the kernel lets threads with a shorter slice preempt those with a longer one.
	timeSlice = 20 * time.Millisecond
)

// lowerThreadPriority makes the kernel prefer all other threads of the program to the
// calling one. If the kernel does not allow that, the priority stays as it is.
func lowerThreadPriority() {
	nice := niceOffset
	if own, err := unix.Getpriority(unix.PRIO_PROCESS, 0); err == nil {
		nice = min(20-own+niceOffset, maxNice) // the system call returns 20 for nice 0, and 1 for 19
	}
	_ = unix.SchedSetAttr(0, &unix.SchedAttr{
		Size: unix.SizeofSchedAttr, Policy: unix.SCHED_NORMAL, Nice: int32(nice), Runtime: uint64(timeSlice),
	}, 0)
}
