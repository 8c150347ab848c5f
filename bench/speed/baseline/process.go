package baseline

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// startTimeout is how long a server may take to answer.
const startTimeout = 30 * time.Second

// Process is a server's process with its children, alone on their processors.
type Process struct {
	name    string
	command *exec.Cmd
	log     string        // path of its output
	ended   chan struct{} // closed when it has exited
	stopped sync.Once
}

// Run starts a server. Its log goes to a file of its name in the working directory. It gets nothing
// of this program's environment but PATH, and does not outlive it. Its standard input is in, if
// that is not nil.
func Run(env Env, name string, in *os.File, environ []string, command ...string) (*Process, error) {
	log := filepath.Join(env.WorkDir, name+".log")
	out, err := os.Create(log)
	if err != nil {
		return nil, err
	}
	defer func() { _ = out.Close() }()
	if len(env.CPUs) > 0 {
		list := strings.Trim(strings.Join(strings.Fields(fmt.Sprint(env.CPUs)), ","), "[]")
		command = append([]string{"taskset", "-c", list}, command...)
	}
	p := &Process{name: name, command: exec.Command(command[0], command[1:]...), log: log, ended: make(chan struct{})} //nolint:noctx // Stop ends it
	p.command.Env = append([]string{"PATH=" + os.Getenv("PATH")}, environ...)
	if in != nil {
		p.command.Stdin = in
	}
	p.command.Stdout, p.command.Stderr = out, out
	// A process group is killed as a whole. Should this program be killed, SIGTERM makes a
	// server end its own children, too.
	p.command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	if err := p.command.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = p.command.Wait() // Await reports its output
		close(p.ended)
	}()
	return p, nil
}

// Stop kills the server, as it has no state worth keeping.
func (p *Process) Stop() {
	p.stopped.Do(func() {
		_ = syscall.Kill(-p.command.Process.Pid, syscall.SIGKILL) // it may have exited by itself
		<-p.ended
	})
}

// Await waits until check succeeds.
func (p *Process) Await(ctx context.Context, check func() error) error {
	deadline := time.After(startTimeout)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := check()
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-p.ended:
			return p.startError("has ended", err)
		case <-deadline:
			return p.startError("does not answer", err)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// startError describes a server that does not answer, with its output.
func (p *Process) startError(reason string, cause error) error {
	output, _ := os.ReadFile(p.log)
	return fmt.Errorf("%s %s: %w; it says:\n%s", p.name, reason, cause, output)
}

// ProcessorTime returns the CPU time of all threads of the server's processes, to the nanosecond.
// That of exited processes does not count.
func (p *Process) ProcessorTime() (time.Duration, error) {
	var sum time.Duration
	for i, pid := range processTree(p.command.Process.Pid) {
		// The clock of another process, as clock_getcpuclockid(3) makes it.
		clock := int32(^pid<<3 | 2)
		var taken unix.Timespec
		switch err := unix.ClockGettime(clock, &taken); {
		case err == nil:
			sum += time.Duration(taken.Nano())
		case i == 0 || !errors.Is(err, unix.EINVAL): // a child may have exited meanwhile
			return 0, fmt.Errorf("read the processor time of %s: %w", p.name, err)
		}
	}
	return sum, nil
}

// processTree returns a process and its descendants.
func processTree(pid int) []int {
	all := []int{pid}
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid)) // the pattern is well-formed
	for _, list := range lists {
		children, _ := os.ReadFile(list) // a thread that has exited meanwhile has none
		for child := range strings.FieldsSeq(string(children)) {
			if pid, err := strconv.Atoi(child); err == nil {
				all = append(all, processTree(pid)...)
			}
		}
	}
	return all
}

// dial returns an error if nothing listens at an address.
func dial(address string) error {
	conn, err := net.Dial("tcp", address) //nolint:noctx // to loopback, where nothing waits
	if err != nil {
		return err
	}
	return conn.Close()
}

// RaiseFileLimit raises the limit of open files for the servers to the hard limit, and returns how
// many of those nginx can keep open for itself.
func RaiseFileLimit() (files int, err error) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0, err
	}
	limit.Cur = limit.Max
	const others = 1024 // connections above all
	// Child processes inherit it.
	return int(min(limit.Max, math.MaxInt32)) - others, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit)
}

// Processors returns those that this program may use, at least two: one for servers and one for the
// load.
func Processors() (all []int, err error) {
	var may unix.CPUSet
	if err := unix.SchedGetaffinity(0, &may); err != nil {
		return nil, fmt.Errorf("get processors: %w", err)
	}
	for cpu := range 64 * len(may) {
		if may.IsSet(cpu) {
			all = append(all, cpu)
		}
	}
	if len(all) < 2 {
		return nil, errors.New("the servers and the load need a processor each, and there is only one")
	}
	return all, nil
}
