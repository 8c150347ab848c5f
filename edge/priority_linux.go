package edge

import (
	"time"

	"golang.org/x/sys/unix"
)

const (
	// niceOffset is how much nicer than the rest of the program a thread is that stands
	// back: beside another one that is always busy it gets a tenth of a processor.
	// Less would be none where the machine does something else as well, and then
	// pictures that are new to an edge would never be finished.
	niceOffset = 10
	maxNice    = 19
	// timeSlice is how long such a thread runs at a time if it can, many times longer than
	// others: the kernel (from 6.12) lets who asks for less interrupt who asks for more.
	timeSlice = 20 * time.Millisecond
)

// lowerThreadPriority lets all other threads of the program run before the calling one. Where the
// kernel refuses that, it competes with them like any other.
func lowerThreadPriority() {
	nice := niceOffset
	if own, err := unix.Getpriority(unix.PRIO_PROCESS, 0); err == nil {
		nice = min(20-own+niceOffset, maxNice) // as 20 stands for 0 there, and 1 for 19
	}
	_ = unix.SchedSetAttr(0, &unix.SchedAttr{
		Size: unix.SizeofSchedAttr, Policy: unix.SCHED_NORMAL, Nice: int32(nice), Runtime: uint64(timeSlice),
	}, 0)
}
