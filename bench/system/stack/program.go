// Package stack starts all programs of a site, as processes on loopback: PostgreSQL,
// MinIO, core and edges, and for a site of many machines haproxy, Patroni with etcd, and Prometheus.
// "make run", "make cluster", the services of tests and the tests and benchmarks themselves use it.
// Of other projects it imports pgx and minio-go only, which core needs too: "make run" builds it
// first.
package stack

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/veneer-skins/veneer/shared/testenv"
)

const (
	// stopTimeout is how long a program may take to stop.
	stopTimeout = 30 * time.Second
	// awaitTimeout is how long a program may take until it does what is awaited.
	awaitTimeout = 2 * time.Minute
)

// Component is a process of a site, or several that fail together.
type Component interface {
	Start(tb testing.TB)
	Kill(tb testing.TB)
	Stop(tb testing.TB) error
	Pause(tb testing.TB)
	Resume(tb testing.TB)
}

// Program is a process that ends with the test, in a session of its own: Ctrl-C does not reach it.
// It can be started again after it has ended.
type Program struct {
	name       string
	command    []string // its path and arguments
	environ    []string
	directory  string // its working directory
	log        string // path of the file with its output
	attributes syscall.SysProcAttr
	stopSignal syscall.Signal // SIGKILL for a program without data to keep
	inherited  []*os.File     // files that it holds open
	others     func() []int   // processes that belong to it and are no children of it
	keepsLog   bool           // the log outlives the test

	running *exec.Cmd
	ended   chan struct{} // closed when the process has ended
	exit    error         // result, once ended is closed
}

// Start starts the program.
func (p *Program) Start(tb testing.TB) {
	tb.Helper()
	log := testenv.Must(os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644))(tb)
	defer func() { _ = log.Close() }()
	command := exec.Command(p.command[0], p.command[1:]...) //nolint:noctx // ends in the clean-up, which waits for it
	command.Dir, command.Env, command.ExtraFiles = p.directory, p.environ, p.inherited
	command.Stdout, command.Stderr = log, log
	attributes := p.attributes
	attributes.Setsid = true
	attributes.Pdeathsig = p.stopSignal // should this process be killed, the program must not outlive it
	command.SysProcAttr = &attributes
	testenv.Do(tb, command.Start())
	ended := make(chan struct{})
	p.running, p.ended = command, ended
	go func() { p.exit = command.Wait(); close(ended) }()
	tb.Cleanup(func() {
		p.end(tb)
		testenv.Check(tb, !strings.Contains(read(tb, p.log), "WARNING: DATA RACE"), "%s has a data race", p.name)
		if tb.Failed() && !p.keepsLog {
			tb.Logf("log of %s:\n%s", p.name, p.logEnd(500))
		}
	})
}

// Environ is the complete environment of the program.
func (p *Program) Environ() []string { return slices.Clone(p.environ) }

// end stops the program, unless it has ended, and kills it if that takes too long.
func (p *Program) end(tb testing.TB) {
	tb.Helper()
	if p.hasEnded() {
		return
	}
	if p.stopSignal != syscall.SIGKILL {
		_ = syscall.Kill(-p.PID(), syscall.SIGCONT) // should it be paused
		if p.Stop(tb) == nil || p.hasEnded() {
			return
		}
		tb.Errorf("%s does not stop", p.name)
	}
	p.Kill(tb)
}

// Stop sends the signal to stop, SIGTERM for most programs, and returns how the program exited.
func (p *Program) Stop(tb testing.TB) error {
	tb.Helper()
	signal := p.stopSignal
	if signal == syscall.SIGKILL {
		signal = syscall.SIGTERM
	}
	if err := syscall.Kill(-p.PID(), signal); err != nil && !errors.Is(err, syscall.ESRCH) {
		tb.Fatal(err)
	}
	select {
	case <-p.ended:
		return p.exit
	case <-time.After(stopTimeout):
		return fmt.Errorf("%s does not stop", p.name)
	}
}

// Kill kills the program and its children, as a crash of the machine would, and waits until they are
// gone: they could hold what the next start needs.
func (p *Program) Kill(tb testing.TB) {
	tb.Helper()
	killed := p.signal(tb, syscall.SIGKILL)
	<-p.ended
	for _, pid := range killed {
		awaitState(tb, pid, "Z")
	}
}

// Pause stops the program and its children with SIGSTOP; clocks continue.
func (p *Program) Pause(tb testing.TB) {
	tb.Helper()
	p.signal(tb, syscall.SIGSTOP)
}

// Resume continues a paused program.
func (p *Program) Resume(tb testing.TB) {
	tb.Helper()
	p.signal(tb, syscall.SIGCONT)
}

// signal sends a signal to the program's processes and all their descendants, and returns their PIDs.
func (p *Program) signal(tb testing.TB, signal syscall.Signal) []int {
	tb.Helper()
	var parents []int
	if !p.hasEnded() { // else its PID may be reused
		parents = append(parents, p.PID())
	}
	if p.others != nil {
		parents = append(parents, p.others()...)
	}
	return signalTree(tb, signal, parents...)
}

func (p *Program) hasEnded() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// PID returns the process ID.
func (p *Program) PID() int { return p.running.Process.Pid }

// logEnd returns the last lines of the log, indented.
func (p *Program) logEnd(lines int) string {
	content, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimSuffix(string(content), "\n"), "\n")
	return "    " + strings.Join(all[max(0, len(all)-lines):], "\n    ")
}

// fail fails the test for what the program does, after the end of its log.
func (p *Program) fail(tb testing.TB, does string) {
	tb.Helper()
	tb.Fatalf("\n%s\n%s %s (the end of its log is above; all of it: %s)", p.logEnd(20), p.name, does, p.log)
}

// await waits until the program does something.
func (p *Program) await(tb testing.TB, does string, condition func() bool) {
	tb.Helper()
	poll(tb, 20*time.Millisecond, func() bool {
		ended := p.hasEnded()
		isMet := condition()
		if ended && !isMet {
			p.fail(tb, fmt.Sprintf("ended, with %s, before this: it %s", p.running.ProcessState, does))
		}
		return isMet
	}, func() { p.fail(tb, fmt.Sprintf("has not done this within %s: it %s", awaitTimeout, does)) })
}

// AwaitListens waits until the program listens at an address.
func (p *Program) AwaitListens(tb testing.TB, address string) {
	tb.Helper()
	p.await(tb, "listens", func() bool {
		conn, err := new(net.Dialer).DialContext(tb.Context(), "tcp", address)
		return err == nil && conn.Close() == nil
	})
}

// reserved holds a socket for each port that was returned, which the kernel closes when the process
// ends. A port is free until its server listens, which for PostgreSQL takes seconds, and tests of
// other packages, each a process, look for ports at the same time.
var reserved sync.Map

// FreeAddress returns a loopback address at which nothing listens, for a server that listens later.
// Its port is below the kernel's ephemeral range: a client of another test could take it otherwise.
// No two processes get the same one.
func FreeAddress(tb testing.TB) string {
	tb.Helper()
	return freeAddressNear(tb, rand.Int())
}

// freeAddressNear returns a free address, the same for equal hints unless that is taken.
func freeAddressNear(tb testing.TB, hint int) string {
	tb.Helper()
	for ; ; hint = rand.Int() {
		port := strconv.Itoa(20000 + hint%12000)
		name, err := net.Listen("unix", "@veneer-port-"+port) // an abstract socket of Linux, so without a file
		if err == nil {
			reserved.Store(port, name)
			var listener net.Listener
			if listener, err = net.Listen("tcp", "127.0.0.1:"+port); err == nil {
				testenv.Do(tb, listener.Close())
				return listener.Addr().String()
			}
		}
		if !errors.Is(err, syscall.EADDRINUSE) {
			tb.Fatal(err)
		}
	}
}

// HostPort splits an address of a program, which FreeAddress has made: it always has both.
func HostPort(address string) (host, port string) {
	host, port, _ = net.SplitHostPort(address)
	return host, port
}

// RunServer runs a server until the test ends, and waits until it listens at an address. Of this
// process's environment it gets PATH only.
func RunServer(tb testing.TB, address string, environ []string, command ...string) *Program {
	tb.Helper()
	p := &Program{
		name: command[0], command: command, environ: append([]string{"PATH=" + os.Getenv("PATH")}, environ...), log: filepath.Join(tb.TempDir(), "log"),
		stopSignal: syscall.SIGTERM,
	}
	p.Start(tb)
	p.AwaitListens(tb, address)
	return p
}

// await waits for a condition of several programs, checking it ten times a second.
func await(tb testing.TB, what string, condition func() bool) {
	tb.Helper()
	poll(tb, 100*time.Millisecond, condition, func() { tb.Fatalf("%s have passed without this: %s", awaitTimeout, what) })
}

// poll checks a condition at intervals until it holds. expired ends the test if that takes too long.
func poll(tb testing.TB, interval time.Duration, condition func() bool, expired func()) {
	tb.Helper()
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for deadline := time.After(awaitTimeout); !condition(); {
		select {
		case <-tick.C:
		case <-tb.Context().Done():
			tb.FailNow()
		case <-deadline:
			expired()
		}
	}
}

// Resident returns the program's resident memory in bytes.
func (p *Program) Resident(tb testing.TB) int64 {
	tb.Helper()
	resident, _ := p.Memory(tb)
	return resident
}

// Memory returns the program's resident memory in bytes, and its peak since the start or ResetPeak.
func (p *Program) Memory(tb testing.TB) (resident, peak int64) {
	tb.Helper()
	status := read(tb, p.procFile("status"))
	figure := func(name string) (n int64) {
		_, rest, _ := strings.Cut(status, "\n"+name+":")
		if _, err := fmt.Sscan(rest, &n); err != nil {
			tb.Fatalf("read %s: %v", name, err)
		}
		return n << 10
	}
	return figure("VmRSS"), figure("VmHWM")
}

// ResetPeak resets the peak that Memory returns.
func (p *Program) ResetPeak(tb testing.TB) {
	tb.Helper()
	const resetPeak = "5" // clear_refs in proc(5)
	testenv.Do(tb, os.WriteFile(p.procFile("clear_refs"), []byte(resetPeak), 0))
}

func (p *Program) procFile(name string) string { return fmt.Sprintf("/proc/%d/%s", p.PID(), name) }

// CPU returns the program's CPU time since it was started. Unlike its speed, that hardly depends on
// other load.
func (p *Program) CPU(tb testing.TB) time.Duration {
	tb.Helper()
	return CPU(tb, p.PID())
}

// CPU returns the CPU time of any process.
func CPU(tb testing.TB, pid int) time.Duration {
	tb.Helper()
	user, system := CPUTimes(tb, pid)
	return user + system
}

// CPUTimes returns the CPU time of any process in the program and in the kernel, in steps of 10 ms.
func CPUTimes(tb testing.TB, pid int) (user, system time.Duration) {
	tb.Helper()
	stat := []byte(read(tb, fmt.Sprintf("/proc/%d/stat", pid)))
	// The 14th and 15th fields; the second is the program's name in brackets.
	var inUser, inSystem int64
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')'):]))
	testenv.Must(fmt.Sscan(fields[12]+" "+fields[13], &inUser, &inSystem))(tb)
	const tick = time.Second / 100
	return time.Duration(inUser) * tick, time.Duration(inSystem) * tick
}

// startCleaner starts a shell script that continues when its standard input ends, with this process
// at the latest, and returns that. Ctrl-C does not reach it. The test ends after it.
func startCleaner(tb testing.TB, script string, arguments ...string) io.Writer {
	tb.Helper()
	cleaner := exec.Command("sh", append([]string{"-c", script}, arguments...)...) //nolint:noctx // ends after this process
	cleaner.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	stdin := testenv.Must(cleaner.StdinPipe())(tb)
	testenv.Do(tb, cleaner.Start())
	tb.Cleanup(func() {
		_ = stdin.Close()
		_ = cleaner.Wait() // what it cannot remove was never there
	})
	return stdin
}

func read(tb testing.TB, path ...string) string {
	tb.Helper()
	return string(testenv.Must(os.ReadFile(filepath.Join(path...)))(tb))
}

// WriteFile writes a file into a directory and returns its path.
func WriteFile(tb testing.TB, directory, name, content string) string {
	tb.Helper()
	path := filepath.Join(directory, name)
	testenv.Do(tb, os.WriteFile(path, []byte(content), 0o600))
	return path
}

// makeDirectory creates a directory below others and returns its path.
func makeDirectory(tb testing.TB, mode os.FileMode, path ...string) string {
	tb.Helper()
	directory := filepath.Join(path...)
	testenv.Do(tb, os.MkdirAll(directory, mode))
	return directory
}

// MustRun runs a command to its end, and returns its output. The test fails, with that, if the command does.
func MustRun(tb testing.TB, command *exec.Cmd) string {
	tb.Helper()
	printed, err := command.CombinedOutput()
	if err != nil {
		tb.Fatalf("\n%s%s: %v", printed, command, err)
	}
	return string(printed)
}

// signalTree sends a signal to processes and all their descendants, and returns their PIDs. A
// process is stopped until its children have the signal, so that it starts no others.
func signalTree(tb testing.TB, signal syscall.Signal, parents ...int) (reached []int) {
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
		reached = append(reached, signalTree(tb, signal, Children(tb, parent)...)...)
		send(parent, signal)
		reached = append(reached, parent)
	}
	return reached
}

// awaitState waits until a process is in one of some states, or gone. That takes a moment, and
// longer where the process waits for a disk.
func awaitState(tb testing.TB, pid int, states ...string) {
	tb.Helper()
	for deadline := time.Now().Add(time.Minute); ; <-time.After(time.Millisecond) {
		state, err := processState(pid)
		if err != nil || slices.Contains(states, state) {
			return
		}
		if time.Now().After(deadline) {
			tb.Fatalf("process %d is still in state %s after the signal", pid, state)
		}
	}
}

func processState(pid int) (state string, err error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", err
	}
	// The PID, the name in brackets, the state.
	_, err = fmt.Sscan(string(stat[bytes.LastIndexByte(stat, ')')+1:]), &state)
	return state, err
}

// Children returns the child processes of a process, which are listed by the thread that started
// them: none if the process has ended. A kernel without CONFIG_PROC_CHILDREN fails the test.
func Children(tb testing.TB, parent int) (pids []int) {
	tb.Helper()
	lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", parent))
	if _, gone := processState(parent); len(lists) == 0 && gone == nil || err != nil {
		tb.Fatalf("the kernel lists no children of process %d: %v", parent, err)
	}
	for _, list := range lists {
		content, _ := os.ReadFile(list) // a thread that has ended meanwhile has none
		for field := range strings.FieldsSeq(string(content)) {
			pids = append(pids, testenv.Must(strconv.Atoi(field))(tb))
		}
	}
	return pids
}
