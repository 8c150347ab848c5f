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

// startTimeout is how long a server may take until it answers.
const startTimeout = 30 * time.Second

// Process is a server's process with those that it starts itself, alone on their
// processors.
type Process struct {
	name    string
	command *exec.Cmd
	log     string        // path of what it says
	ended   chan struct{} // closed when it has
	stopped sync.Once
}

// Run starts a server, whose log goes to a file of its name in the place's directory.
// It gets nothing of this program's environment but the path, and does not outlive it.
// What it reads is in, if that is not nil.
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
	// A group of its own is stopped as a whole. Should this program be killed, the
	// signal is one after which a server ends its own processes, too.
	p.command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	if err := p.command.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = p.command.Wait() // Await tells what it said
		close(p.ended)
	}()
	return p, nil
}

// Stop ends the server at once, as nothing that it knows is worth keeping.
func (p *Process) Stop() {
	p.stopped.Do(func() {
		_ = syscall.Kill(-p.command.Process.Pid, syscall.SIGKILL) // it may have ended by itself
		<-p.ended
	})
}

// Await waits until what is asked answers.
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

// startError says what a server says that does not answer.
func (p *Process) startError(reason string, cause error) error {
	output, _ := os.ReadFile(p.log)
	return fmt.Errorf("%s %s: %w; it says:\n%s", p.name, reason, cause, output)
}

// ProcessorTime returns what all threads of the server's processes have taken, to the
// nanosecond. What an ended one took no longer counts.
func (p *Process) ProcessorTime() (time.Duration, error) {
	var sum time.Duration
	for i, pid := range processTree(p.command.Process.Pid) {
		// The clock of another process, as clock_getcpuclockid(3) makes it.
		clock := int32(^pid<<3 | 2)
		var taken unix.Timespec
		switch err := unix.ClockGettime(clock, &taken); {
		case err == nil:
			sum += time.Duration(taken.Nano())
		case i == 0 || !errors.Is(err, unix.EINVAL): // a child may have ended meanwhile
			return 0, fmt.Errorf("read the processor time of %s: %w", p.name, err)
		}
	}
	return sum, nil
}

// processTree returns a process and those that it has started, and they.
func processTree(pid int) []int {
	all := []int{pid}
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid)) // the pattern is well-formed
	for _, list := range lists {
		children, _ := os.ReadFile(list) // a thread that has ended meanwhile has none
		for child := range strings.FieldsSeq(string(children)) {
			if pid, err := strconv.Atoi(child); err == nil {
				all = append(all, processTree(pid)...)
			}
		}
	}
	return all
}

// dial returns why nothing does at an address.
func dial(address string) error {
	conn, err := net.Dial("tcp", address) //nolint:noctx // to loopback, where nothing waits
	if err != nil {
		return err
	}
	return conn.Close()
}

// RaiseFileLimit lets the servers that are started open as many files as the machine
// allows, and returns how many of those nginx can keep open for itself.
func RaiseFileLimit() (files int, err error) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0, err
	}
	limit.Cur = limit.Max
	const others = 1024 // connections first of all
	// Once it is set here it holds for those who are started, too.
	return int(min(limit.Max, math.MaxInt32)) - others, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit)
}

// Processors returns those that this program may use, of which there are two at least:
// one for servers and one for the load.
func Processors() (all []int, err error) {
	var may unix.CPUSet
	if err := unix.SchedGetaffinity(0, &may); err != nil {
		return nil, fmt.Errorf("ask for processors: %w", err)
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
