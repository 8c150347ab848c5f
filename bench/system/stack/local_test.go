package stack

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/veneer-skins/veneer/shared/testenv"
)

// errorOf returns the messages with which work fails; empty if it succeeds.
func errorOf(t *testing.T, work func(tb testing.TB)) string {
	t.Helper()
	if err := RunWithTB(t.Context(), work); err != nil {
		return err.Error()
	}
	return ""
}

func TestChoosePorts(t *testing.T) {
	t.Parallel()
	listener := testenv.Must(new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { _ = listener.Close() })
	taken := listener.Addr().(*net.TCPAddr).Port //nolint:errcheck,forcetypeassert // it is TCP
	const wrong = " is not the first of 7 ports up to 65535; a right value is DEV_PORTS=21000"
	for _, c := range []struct{ first, objects, want string }{
		{"0", "file", "DEV_PORTS=0" + wrong},
		{"02000", "file", "DEV_PORTS=02000" + wrong},
		{"2e3", "file", "DEV_PORTS=2e3" + wrong},
		{"65530", "file", "DEV_PORTS=65530" + wrong},
		{"70000", "file", "DEV_PORTS=70000" + wrong},
		{fmt.Sprint(taken), "file", fmt.Sprintf("ports are taken: %d (edge)", taken)},
		{fmt.Sprint(taken - 2), "file", fmt.Sprintf("%d (edge, operators)", taken)},
		{fmt.Sprint(taken - 6), "minio", fmt.Sprintf("%d (minio)", taken)},
	} {
		got := errorOf(t, func(tb testing.TB) { tb.Helper(); choosePorts(tb, c.first, c.objects) })
		testenv.Contains(t, got, c.want, "DEV_PORTS=%s OBJECTS=%s", c.first, c.objects)
	}
	if got := errorOf(t, func(tb testing.TB) { tb.Helper(); choosePorts(tb, fmt.Sprint(taken-6), "file") }); strings.Contains(got, "(minio)") {
		t.Errorf("without MinIO, its port is taken: %s", got)
	}
}

func TestSecretsAreMadeOnce(t *testing.T) {
	t.Parallel()
	keys := secrets(filepath.Join(t.TempDir(), "secrets"))
	first := keys.hex(t, "key", 24)
	if len(first) != 48 || keys.hex(t, "key", 24) != first || keys.hex(t, "other", 24) == first {
		t.Errorf("the secret is %q, then %q", first, keys.hex(t, "key", 24))
	}
	if about, err := os.Stat(keys.path("key")); err != nil || about.Mode() != 0o600 {
		t.Errorf("the file: %v, %v; want one that others cannot read", about, err)
	}
	// As an editor leaves it.
	testenv.Do(t, os.WriteFile(keys.path("key"), []byte("mine\n"), 0o600))
	testenv.Equal(t, keys.hex(t, "key", 24), "mine", "a changed secret")
}

// A second run names the first one. After that was killed, it waits for the programs that hold the
// lock.
func TestLockOfRun(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	dev := makeDirectory(t, 0o755, root, ".dev")
	lock := func(tb testing.TB) { tb.Helper(); NewLocal(tb, root, io.Discard).lockRun() }
	testenv.Do(t, RunWithTB(t.Context(), func(tb testing.TB) {
		tb.Helper()
		NewLocal(tb, root, io.Discard).lockRun()
		want := fmt.Sprintf("it is already running here, as process %d", os.Getpid())
		testenv.Equal(tb, errorOf(t, lock), want, "a second run")
	}))
	program := exec.CommandContext(t.Context(), "sleep", "0.3")
	testenv.Do(t, RunWithTB(t.Context(), func(tb testing.TB) {
		tb.Helper()
		killed := NewLocal(tb, root, io.Discard)
		killed.lockRun()
		program.ExtraFiles = []*os.File{killed.lock}
		testenv.Do(tb, program.Start())
	}))
	gone := exec.CommandContext(t.Context(), "true")
	testenv.Do(t, gone.Run())
	testenv.Do(t, os.WriteFile(filepath.Join(dev, "run.lock"), fmt.Append(nil, gone.Process.Pid), 0o600))
	testenv.Equal(t, errorOf(t, lock), "", "after a run that was killed")
	if err := program.Process.Signal(syscall.Signal(0)); err == nil {
		if state, _ := processState(program.Process.Pid); state != "Z" {
			t.Errorf("the lock is taken while a program in state %s holds it", state)
		}
	}
	_ = program.Wait()
}

// What a killed process has left is removed, and what a running one uses is not.
func TestRemoveStages(t *testing.T) {
	t.Parallel()
	stages := t.TempDir()
	left := rand.Text() // the name of no other process's
	memory := memoryOf(left)
	t.Cleanup(func() { _ = os.RemoveAll(memory) })
	for _, path := range []string{left + "/logs", left + "/postgres/data", "used/postgres"} {
		makeDirectory(t, 0o755, stages, path)
	}
	makeDirectory(t, 0o755, memory)
	if !tryLock(openLock(t, filepath.Join(stages, "used/lock"))) {
		t.Fatal("the lock is taken")
	}
	removeStages(t, stages)
	for path, want := range map[string]bool{left: false, "used/postgres": true, memory: false} {
		if !filepath.IsAbs(path) {
			path = filepath.Join(stages, path)
		}
		if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) == want {
			t.Errorf("%s: %v; want it there: %t", path, err, want)
		}
	}
}

// A command is stopped with its children, and so it is if the process that runs it is killed.
func TestRunCommandStopsChildren(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"stopped", "killed"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			directory := t.TempDir()
			file := filepath.Join(directory, "pid")
			script := "sleep 300 & echo $! >" + file + ".new; mv " + file + ".new " + file + "; wait"
			var child int
			awaitChild := func() {
				await(t, "the command has a child", func() bool {
					content, err := os.ReadFile(file)
					_, _ = fmt.Sscan(string(content), &child)
					return err == nil && child > 0
				})
			}
			if name == "stopped" {
				ctx, cancel := context.WithCancel(t.Context())
				go func() { awaitChild(); cancel() }()
				status := 0
				_ = RunWithTB(ctx, func(tb testing.TB) {
					tb.Helper()
					local := NewLocal(tb, directory, io.Discard)
					local.state = directory
					status = local.runCommand(os.Environ(), []string{"sh", "-c", script})
				})
				testenv.Check(t, status != 0, "the command succeeds")
			} else {
				command := exec.CommandContext(t.Context(), "sh", "-c", script)
				command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
				testenv.Do(t, command.Start())
				awaitChild()
				state := makeDirectory(t, 0o755, directory, "state")
				// Closing the input has the effect of the end of the process.
				testenv.Do(t, RunWithTB(t.Context(), func(tb testing.TB) {
					tb.Helper()
					startCleaner(tb, afterKill, fmt.Sprint(command.Process.Pid), state)
				}))
				if _, err := os.Stat(state); !errors.Is(err, os.ErrNotExist) {
					t.Errorf("the state is still there: %v", err)
				}
				_ = command.Wait()
			}
			await(t, "the child has ended", func() bool {
				state, err := processState(child)
				return err != nil || state == "Z"
			})
		})
	}
}

// A program that ignores the signal to stop is reported and killed.
func TestProgramThatDoesNotStop(t *testing.T) {
	t.Parallel()
	p := &Program{
		name: "sleeper", log: filepath.Join(t.TempDir(), "log"), directory: t.TempDir(), stopSignal: syscall.SIGCHLD, // which it ignores
		command: []string{"/bin/sleep", "300"},
	}
	began := time.Now()
	got := errorOf(t, func(tb testing.TB) { tb.Helper(); p.Start(tb) })
	if !strings.Contains(got, "sleeper does not stop") || !p.hasEnded() || time.Since(began) < stopTimeout {
		t.Errorf("after %v: %q, ended: %t", time.Since(began), got, p.hasEnded())
	}
}

// A server can listen at each address, and no other process gets it.
func TestFreeAddress(t *testing.T) {
	t.Parallel()
	given, taken := map[string]bool{}, 0
	for range 100 {
		address := FreeAddress(t)
		testenv.Check(t, !given[address], "%s is given twice", address)
		given[address] = true
		switch listener, err := net.Listen("tcp", address); {
		case err == nil:
			_ = listener.Close()
		case errors.Is(err, syscall.EADDRINUSE): // by a program that reserves no port
			taken++
		default:
			t.Error(err)
		}
		_, port := HostPort(address)
		if reserved, err := net.Listen("unix", "@veneer-port-"+port); err == nil {
			_ = reserved.Close()
			t.Errorf("%s is not reserved", address)
		}
	}
	testenv.Check(t, taken < 5, "%d of 100 free addresses are taken", taken)
}
