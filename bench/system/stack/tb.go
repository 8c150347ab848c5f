package stack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
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
		clean()
	}
	if panicked != "" {
		panic(panicked)
	}
	if p.Failed() {
		return errors.New(strings.Join(p.messages, "\n"))
	}
	return ctx.Err()
}

// mainTB is a testing.TB without a test.
type mainTB struct {
	testing.TB // nil: further methods are for tests only

	ctx      context.Context //nolint:containedctx // as a test's
	mu       sync.Mutex
	cleanups []func()
	failed   bool
	messages []string
}

func (p *mainTB) Context() context.Context { return p.ctx }

func (p *mainTB) Helper() {}

func (p *mainTB) Cleanup(clean func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cleanups = append(p.cleanups, clean)
}

func (p *mainTB) TempDir() string {
	path, err := os.MkdirTemp("", "veneer-bench-")
	if err != nil {
		p.Fatal(err)
	}
	p.Cleanup(func() { _ = os.RemoveAll(path) })
	return path
}

func (p *mainTB) Failed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.failed
}

func (p *mainTB) Fail() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failed = true
}

func (p *mainTB) FailNow() {
	p.Fail()
	runtime.Goexit()
}

func (p *mainTB) Log(values ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.messages = append(p.messages, strings.TrimSuffix(fmt.Sprintln(values...), "\n"))
}

func (p *mainTB) Logf(format string, values ...any) { p.Log(fmt.Sprintf(format, values...)) }

func (p *mainTB) Error(values ...any) { p.Log(values...); p.Fail() }

func (p *mainTB) Errorf(format string, values ...any) { p.Logf(format, values...); p.Fail() }

func (p *mainTB) Fatal(values ...any) { p.Log(values...); p.FailNow() }

func (p *mainTB) Fatalf(format string, values ...any) { p.Logf(format, values...); p.FailNow() }

// Skip fails: a program cannot skip its work.
func (p *mainTB) Skip(values ...any) { p.Fatal(values...) }

func (p *mainTB) Skipf(format string, values ...any) { p.Fatalf(format, values...) }
