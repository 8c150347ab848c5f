package stack_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/veneer-skins/veneer/bench/system/stack"
)

func TestRunWithTBCleansUp(t *testing.T) {
	t.Parallel()
	var path, order string
	err := stack.RunWithTB(t.Context(), func(tb testing.TB) {
		tb.Helper()
		path = tb.TempDir()
		tb.Cleanup(func() { order += "second" })
		tb.Cleanup(func() {
			if tb.Context().Err() == nil {
				t.Error("the context outlives the work")
			}
			order += "first "
		})
	})
	if _, missing := os.Stat(path); err != nil || !errors.Is(missing, os.ErrNotExist) || order != "first second" {
		t.Errorf("RunWithTB: %v, the directory: %v, cleaned up: %s", err, missing, order)
	}
}

func TestRunWithTBReturnsFailures(t *testing.T) {
	t.Parallel()
	cleaned := false
	err := stack.RunWithTB(t.Context(), func(tb testing.TB) {
		tb.Helper()
		tb.Cleanup(func() { cleaned = true })
		tb.Cleanup(func() { tb.Fatal("the third") })
		tb.Errorf("the %s", "first")
		tb.Fatal("the", 2)
		t.Error("the function continues after Fatal")
	})
	if err == nil || !strings.Contains(err.Error(), "the first\nthe 2\nthe third") || !cleaned {
		t.Errorf("RunWithTB: %v, cleaned up: %t", err, cleaned)
	}

	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if err := stack.RunWithTB(cancelled, func(testing.TB) {}); !errors.Is(err, context.Canceled) {
		t.Errorf("RunWithTB: %v; want that it was stopped", err)
	}
}

func TestRunWithTBRepanics(t *testing.T) {
	t.Parallel()
	cleaned := false
	defer func() {
		// With the stack of the panic.
		if caught := fmt.Sprint(recover()); !strings.HasPrefix(caught, "oh\n") || !strings.Contains(caught, "TestRunWithTBRepanics") || !cleaned {
			t.Errorf("the panic is %s, cleaned up: %t", caught, cleaned)
		}
	}()
	_ = stack.RunWithTB(t.Context(), func(tb testing.TB) {
		tb.Helper()
		tb.Cleanup(func() { cleaned = true })
		panic("oh")
	})
}
