package stack

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// SignalTree sends a signal to processes and all their descendants, and returns their PIDs. A
// process is stopped until its children have the signal, so that it starts no others.
func SignalTree(tb testing.TB, signal syscall.Signal, parents ...int) (reached []int) {
	tb.Helper()
	send := func(pid int, signal syscall.Signal) {
		if err := syscall.Kill(pid, signal); err != nil && !errors.Is(err, syscall.ESRCH) {
			tb.Fatal(err)
		}
	}
	for _, parent := range parents {
		if parent <= 1 { // 0 and -1 are process groups, 1 is init
			tb.Fatalf("%d is not the PID of a child", parent)
		}
		send(parent, syscall.SIGSTOP)
		awaitState(tb, parent, "T", "Z")
		reached = append(reached, SignalTree(tb, signal, children(tb, parent)...)...)
		send(parent, signal)
		reached = append(reached, parent)
	}
	return reached
}

// AwaitGone waits until killed processes have exited.
func AwaitGone(tb testing.TB, pids ...int) {
	tb.Helper()
	for _, pid := range pids {
		awaitState(tb, pid, "Z")
	}
}

// awaitState waits until a process is in one of some states, or gone. That takes a moment, and
// longer where the process waits for a disk.
func awaitState(tb testing.TB, pid int, states ...string) {
	tb.Helper()
	for deadline := time.Now().Add(time.Minute); ; <-time.After(time.Millisecond) {
		_, state, err := status(pid)
		if err != nil || slices.Contains(states, state) {
			return
		}
		if time.Now().After(deadline) {
			tb.Fatalf("process %d is still in state %s after the signal", pid, state)
		}
	}
}

// status returns the parent and the state of a process.
func status(pid int) (parent int, state string, err error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, "", err
	}
	// The PID, the name in brackets, the state, the parent.
	_, err = fmt.Sscan(string(stat[bytes.LastIndexByte(stat, ')')+1:]), &state, &parent)
	return parent, state, err
}

// children returns the child processes of a process.
func children(tb testing.TB, parent int) []int {
	tb.Helper()
	processes, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		tb.Fatal(err)
	}
	var pids []int
	for _, path := range processes {
		pid, err := strconv.Atoi(filepath.Base(path))
		if err != nil {
			tb.Fatal(err)
		}
		started, _, err := status(pid)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			continue // it has exited meanwhile
		}
		if err != nil {
			tb.Fatal(err)
		}
		if started == parent {
			pids = append(pids, pid)
		}
	}
	return pids
}
