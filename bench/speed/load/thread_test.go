package load_test

import (
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/veneer-skins/veneer/bench/speed/load"
)

func affinity(t *testing.T) (may unix.CPUSet) {
	t.Helper()
	if err := unix.SchedGetaffinity(0, &may); err != nil {
		t.Fatal(err)
	}
	return may
}

// Afterwards the thread may run on the same processors as before.
func TestPinRestoresAffinity(t *testing.T) {
	t.Parallel()

	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before, cpu := affinity(t), 0
	for !before.IsSet(cpu) {
		cpu++
	}
	unpin, err := load.Pin(cpu)
	if err != nil {
		t.Fatal(err)
	}
	if only := affinity(t); only.Count() != 1 || !only.IsSet(cpu) {
		t.Errorf("it may run on %d processors; want only number %d", only.Count(), cpu)
	}
	unpin()
	if after := affinity(t); after != before {
		t.Errorf("it may run on %d processors, and before on %d", after.Count(), before.Count())
	}
}
