// Package cmptest compares values in tests with go-cmp.
package cmptest

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Same checks that a value is the wanted one. The format and its arguments name the value.
func Same(tb testing.TB, got, want any, format string, args ...any) {
	tb.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		tb.Errorf("%s (-want +got):\n%s", fmt.Sprintf(format, args...), diff)
	}
}
