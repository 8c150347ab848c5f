package edge

import (
	"time"

	"golang.org/x/sys/unix"
)

const (
	// background is how much nicer than the rest of the program a thread is that stands
	// back: beside another one that is always busy it gets a tenth of a processor.
	// Less would be none where the machine does something else as well, and then
	// pictures that are new to an edge would never be finished.
	background = 10
	nicest     = 19
	// slice is how long such a thread runs at a time if it can, many times longer than
	// others: the kernel (from 6.12) lets who asks for less interrupt who asks for more.
	slice = 20 * time.Millisecond
)

// standBack lets all other threads of the program run before the calling one. Where the
// kernel refuses that, it competes with them like any other.
func standBack() {
	nice := background
	if own, err := unix.Getpriority(unix.PRIO_PROCESS, 0); err == nil {
		nice = min(20-own+background, nicest) // as 20 stands for 0 there, and 1 for 19
	}
	_ = unix.SchedSetAttr(0, &unix.SchedAttr{
		Size: unix.SizeofSchedAttr, Policy: unix.SCHED_NORMAL, Nice: int32(nice), Runtime: uint64(slice),
	}, 0)
}
