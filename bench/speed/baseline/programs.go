package baseline

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os/exec"
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/veneer-skins/veneer/bench/system/site"
	"github.com/veneer-skins/veneer/bench/system/stack"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// Program is a program or library that Veneer is compared with.
type Program struct {
	Name    string // as tables call it
	install string // how to install it; empty if it is part of this program
	version func(ctx context.Context) (string, error)
}

// Version returns the name and the version that the program reports itself, or an error with how to
// install it.
func (p Program) Version(ctx context.Context) (string, error) {
	version, err := p.version(ctx)
	if err != nil {
		return "", fmt.Errorf("%s is missing (%w); to install it: %s", p.Name, err, p.install)
	}
	return p.Name + " " + version, nil
}

// The programs, but for sharp.
var (
	Fasthttp = Program{"bare", "", moduleVersion("github.com/valyala/fasthttp")}
	Loop     = Program{"loop", "", goVersion}
	Epoll    = Program{"epoll", "", goVersion}
	ImagePNG = Program{"image/png", "", moduleVersion("golang.org/x/image")}
	Argon2   = Program{"argon2id", "", moduleVersion("golang.org/x/crypto")}
	Reencode = Program{"image/png and a file", "", goVersion}
	Nginx    = Program{"nginx", "apt-get install nginx-light, and have /usr/sbin in PATH", commandVersion(`nginx/(\S+)`, "nginx", "-v")}
	Varnish  = Program{"Varnish", "apt-get install varnish, and have /usr/sbin in PATH", commandVersion(`\(varnish-(\S+)`, "varnishd", "-V")}
	Haproxy  = Program{"haproxy", "apt-get install haproxy, and have /usr/sbin in PATH", commandVersion(`HAProxy version (\S+)`, "haproxy", "-v")}
	Pgbench  = Program{"pgbench", "apt-get install postgresql", commandVersion(`PostgreSQL\) (\S+)`, site.PgbenchPath(), "--version")}
	Libwebp  = Program{"libwebp", "apt-get install libwebp-dev pkg-config", commandVersion(`(?m)^([\d.]+)$`, "pkg-config", "--modversion", "libwebp")}
)

// commandVersion returns a version function that runs a command: the version is what the pattern's
// group matches in its output.
func commandVersion(pattern string, command ...string) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		out, err := exec.CommandContext(ctx, command[0], command[1:]...).CombinedOutput()
		if err != nil {
			return "", fmt.Errorf("%s: %w", strings.TrimSpace(command[0]+" "+string(out)), err)
		}
		match := regexp.MustCompile(pattern).FindSubmatch(out)
		if match == nil {
			return "", fmt.Errorf("%s names no version: %s", command[0], out)
		}
		return string(match[1]), nil
	}
}

func goVersion(context.Context) (string, error) { return runtime.Version(), nil }

// moduleVersion returns the version of a linked module, and of Go.
func moduleVersion(module string) func(context.Context) (string, error) {
	return func(context.Context) (string, error) {
		version := "of an unknown version"
		if build, ok := debug.ReadBuildInfo(); ok {
			for _, m := range build.Deps {
				if m.Path == module {
					version = m.Version
				}
			}
		}
		return module + " " + version + ", " + runtime.Version(), nil
	}
}

// ProcessorTime returns the CPU time of all threads of the server's processes, to the nanosecond.
// That of exited processes does not count.
func (s *Server) ProcessorTime(tb testing.TB) (sum time.Duration) {
	tb.Helper()
	for i, pid := range s.processes(tb) {
		// The clock of another process, as clock_getcpuclockid(3) makes it.
		clock := int32(^pid<<3 | 2)
		var taken unix.Timespec
		switch err := unix.ClockGettime(clock, &taken); {
		case err == nil:
			sum += time.Duration(taken.Nano())
		case i == 0 || !errors.Is(err, unix.EINVAL): // a child may have exited meanwhile
			tb.Fatalf("read the processor time of %s: %v", s.Name, err)
		}
	}
	return sum
}

// UserTime returns the part of ProcessorTime that is not in the kernel, in steps of 10 ms.
func (s *Server) UserTime(tb testing.TB) (sum time.Duration) {
	tb.Helper()
	for _, pid := range s.processes(tb) {
		user, _ := stack.CPUTimes(tb, pid)
		sum += user
	}
	return sum
}

// processes returns the server's process and its descendants.
func (s *Server) processes(tb testing.TB) []int {
	tb.Helper()
	pids := []int{s.PID()}
	for i := 0; i < len(pids); i++ {
		pids = append(pids, stack.Children(tb, pids[i])...)
	}
	return pids
}

// RaiseFileLimit raises the limit of open files for the servers to the hard limit, and returns how
// many of those nginx can keep open for itself.
func RaiseFileLimit(tb testing.TB) (files int) {
	tb.Helper()
	var limit syscall.Rlimit
	testenv.Do(tb, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit))
	limit.Cur = limit.Max
	testenv.Do(tb, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit)) // child processes inherit it
	const others = 1024                                              // connections above all
	return int(min(limit.Max, math.MaxInt32)) - others
}

// Processors returns those that this program may use, at least two: one for servers and one for the
// load.
func Processors(tb testing.TB) (all []int) {
	tb.Helper()
	var may unix.CPUSet
	testenv.Do(tb, unix.SchedGetaffinity(0, &may))
	for cpu := range 64 * len(may) {
		if may.IsSet(cpu) {
			all = append(all, cpu)
		}
	}
	if len(all) < 2 {
		tb.Fatal("the servers and the load need a processor each, and there is only one")
	}
	return all
}
