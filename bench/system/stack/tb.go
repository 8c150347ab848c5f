package stack

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/veneer-skins/veneer/shared/testenv"
)

// RunWithTB runs a program's work like a test, with everything that this package starts, and cleans
// up afterwards. It returns the error messages of failed work.
func RunWithTB(ctx context.Context, work func(tb testing.TB)) error {
	p := &mainTB{}
	var cancel context.CancelFunc
	p.ctx, cancel = context.WithCancel(ctx)
	ended := make(chan string)
	go func() {
		// A failure ends the goroutine, as in a test; a panic is raised again.
		defer func() {
			panicked := ""
			if caught := recover(); caught != nil {
				panicked = fmt.Sprintf("%v\n\n%s", caught, debug.Stack())
			}
			ended <- panicked
		}()
		work(p)
	}()
	panicked := <-ended
	cancel()
	for _, clean := range slices.Backward(p.cleanups) {
		var cleaning sync.WaitGroup
		cleaning.Go(clean) // a failure ends its goroutine, too, and the next one follows
		cleaning.Wait()
	}
	if panicked != "" {
		panic(panicked)
	}
	if p.Failed() {
		return errors.New(strings.Join(p.messages, "\n"))
	}
	return ctx.Err()
}

// Main runs a program with its arguments until it ends, or is signalled to stop.
func Main(name string, run func(ctx context.Context, args []string) error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, name+":", err)
		os.Exit(1)
	}
}

// mainTB is a testing.TB without a test.
type mainTB struct {
	testing.TB // nil: further methods are for tests only

	ctx      context.Context //nolint:containedctx // as a test's
	mu       sync.Mutex
	cleanups []func()
	messages []string
	failed   atomic.Bool
}

func (m *mainTB) Context() context.Context { return m.ctx }

func (m *mainTB) Helper() {}

func (m *mainTB) Cleanup(clean func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.cleanups = append(m.cleanups, clean)
}

func (m *mainTB) TempDir() string {
	path := testenv.Must(os.MkdirTemp("", "veneer-bench-"))(m)
	m.mu.Lock()
	defer m.mu.Unlock()
	// It is removed last, as a test's is: programs that were started again have their logs there.
	m.cleanups = slices.Insert(m.cleanups, 0, func() { _ = os.RemoveAll(path) })
	return path
}

func (m *mainTB) Failed() bool { return m.failed.Load() }

func (m *mainTB) Fail() { m.failed.Store(true) }

func (m *mainTB) FailNow() {
	m.Fail()
	runtime.Goexit()
}

func (m *mainTB) Log(values ...any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.messages = append(m.messages, strings.TrimSuffix(fmt.Sprintln(values...), "\n"))
}

func (m *mainTB) Logf(format string, values ...any) { m.Log(fmt.Sprintf(format, values...)) }

func (m *mainTB) Error(values ...any) { m.Log(values...); m.Fail() }

func (m *mainTB) Errorf(format string, values ...any) { m.Logf(format, values...); m.Fail() }

func (m *mainTB) Fatal(values ...any) { m.Log(values...); m.FailNow() }

func (m *mainTB) Fatalf(format string, values ...any) { m.Logf(format, values...); m.FailNow() }

// Skip fails: a program cannot skip its work.
func (m *mainTB) Skip(values ...any) { m.Fatal(values...) }
