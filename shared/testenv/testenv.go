// Package testenv skips tests for which this machine lacks a program.
package testenv

import (
	"os"
	"testing"
)

// RequireAll names the variable of the environment that makes a skipped test a failure.
// Only .ci/run sets it: elsewhere a test that stops running would go unnoticed.
const RequireAll = "TEST_REQUIRE_ALL"

// Skip skips a test, or fails it where RequireAll is set to 1. The cause says what is
// missing and how to install it: it is the line that make test prints at its end.
func Skip(tb testing.TB, cause any) {
	tb.Helper()
	if os.Getenv(RequireAll) == "1" {
		tb.Fatal(cause)
	}
	tb.Skip(cause)
}

// SkipShort skips a test where go test runs with -short, as in make test QUICK=1.
func SkipShort(tb testing.TB) {
	tb.Helper()
	if testing.Short() {
		tb.Skip("it takes long; make test without QUICK=1 runs it")
	}
}
