// Package testenv skips tests that this machine cannot run, and has checks that stand in many tests.
package testenv

import (
	"os"
	"testing"
)

// RequireAll is the environment variable that turns a skipped test into a failure. Only
// .ci/run sets it, so that a test that no longer runs does not go unnoticed there.
const RequireAll = "TEST_REQUIRE_ALL"

// Skip skips a test, or fails it where RequireAll is set to 1. The cause says what is missing
// and how to install it: make test prints it at its end.
func Skip(tb testing.TB, cause any) {
	tb.Helper()
	if os.Getenv(RequireAll) == "1" {
		tb.Fatal(cause)
	}
	tb.Skip(cause)
}

// SkipShort skips a test with go test -short, which make test QUICK=1 uses.
func SkipShort(tb testing.TB) {
	tb.Helper()
	if testing.Short() {
		tb.Skip("it takes long; make test without QUICK=1 runs it")
	}
}
