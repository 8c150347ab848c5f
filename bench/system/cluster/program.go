package cluster

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/veneer-skins/veneer/bench/system/stack"
)

// Component is a process of the cluster, or several that fail together.
type Component interface {
	Start(tb testing.TB)
	Kill(tb testing.TB)
	Stop(tb testing.TB) error
	Pause(tb testing.TB)
	Resume(tb testing.TB)
}

// program is a component from another project. It can be started again after it was killed.
type program struct {
	name      string
	arguments []string
	environ   []string
	directory string // its working directory; the log is beside it
	owner     *syscall.SysProcAttr

	command *exec.Cmd
	ended   chan struct{}
}

// Start starts the program, which ends with the test.
func (p *program) Start(tb testing.TB) {
	tb.Helper()
	log, err := os.OpenFile(p.log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = log.Close() }()
	p.command = exec.Command(p.arguments[0], p.arguments[1:]...) //nolint:noctx // ends in the clean-up
	p.command.Dir, p.command.Stdout, p.command.Stderr = p.directory, log, log
	p.command.Env = append([]string{"LC_ALL=C.UTF-8", "HOME=" + p.directory, "PATH=" + os.Getenv("PATH")}, p.environ...)
	p.command.SysProcAttr = p.owner
	if err := p.command.Start(); err != nil {
		tb.Fatal(err)
	}
	command, ended := p.command, make(chan struct{})
	p.ended = ended
	go func() { _ = command.Wait(); close(ended) }()
	tb.Cleanup(func() {
		_ = command.Process.Kill()
		<-ended
	})
}

// Kill kills the program, as a crash would.
func (p *program) Kill(tb testing.TB) {
	tb.Helper()
	p.signal(tb, syscall.SIGKILL)
	<-p.ended
}

// Stop sends SIGTERM and waits for the program to exit.
func (p *program) Stop(tb testing.TB) error {
	tb.Helper()
	if err := p.command.Process.Signal(syscall.SIGTERM); err != nil {
		tb.Fatal(err)
	}
	select {
	case <-p.ended:
		return nil // exit codes differ between programs
	case <-time.After(awaitTimeout):
		return fmt.Errorf("%s does not stop", p.name)
	}
}

// Pause stops the program with SIGSTOP.
func (p *program) Pause(tb testing.TB) {
	tb.Helper()
	p.signal(tb, syscall.SIGSTOP)
}

// Resume continues it.
func (p *program) Resume(tb testing.TB) {
	tb.Helper()
	p.signal(tb, syscall.SIGCONT)
}

func (p *program) signal(tb testing.TB, signal syscall.Signal) {
	tb.Helper()
	select {
	case <-p.ended: // its PID may be reused
	default:
		stack.SignalTree(tb, signal, p.command.Process.Pid)
	}
}

func (p *program) log() string { return filepath.Join(filepath.Dir(p.directory), p.name+".log") }

// awaitTimeout is how long a component may take until it does what is awaited.
const awaitTimeout = 2 * time.Minute

// await waits for a condition, checking it ten times a second.
func (p *program) await(tb testing.TB, what string, condition func() bool) {
	tb.Helper()
	await(tb, p.name+" "+what, func() bool {
		select {
		case <-p.ended:
			tb.Fatalf("%s ended", p.name)
		default:
		}
		return condition()
	})
}

func await(tb testing.TB, what string, condition func() bool) {
	tb.Helper()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.After(awaitTimeout); !condition(); {
		select {
		case <-tick.C:
		case <-tb.Context().Done():
			tb.FailNow()
		case <-deadline:
			tb.Fatalf("%s have passed without this: %s", awaitTimeout, what)
		}
	}
}
