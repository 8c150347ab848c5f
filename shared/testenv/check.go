package testenv

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// Do fails the test on an error.
func Do(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// Must returns a value, and fails the test on an error: Must(os.ReadFile(name))(t).
func Must[T any](value T, err error) func(testing.TB) T {
	return func(tb testing.TB) T {
		tb.Helper()
		Do(tb, err)
		return value
	}
}

// ErrOf returns the error of a call that also returns a value.
func ErrOf[T any](_ T, err error) error { return err }

// Equal checks that a value is the wanted one. The format and its arguments name the value.
func Equal[T comparable](tb testing.TB, got, want T, format string, args ...any) {
	tb.Helper()
	if got != want {
		tb.Errorf("%s: %+v; want %+v", fmt.Sprintf(format, args...), got, want)
	}
}

// Contains checks that a text has a part. The format and its arguments name the text.
func Contains(tb testing.TB, text, part, format string, args ...any) {
	tb.Helper()
	if !strings.Contains(text, part) {
		tb.Errorf("%s: %q; want %q in it", fmt.Sprintf(format, args...), text, part)
	}
}

// Is checks that an error is the wanted one, or that there is none if that is nil. The format and its arguments name
// what returned it.
func Is(tb testing.TB, err, want error, format string, args ...any) {
	tb.Helper()
	if !errors.Is(err, want) {
		tb.Errorf("%s: %v; want %v", fmt.Sprintf(format, args...), err, want)
	}
}

// ErrorHas checks that there is an error with a text. The format and its arguments name what returned it.
func ErrorHas(tb testing.TB, err error, text, format string, args ...any) {
	tb.Helper()
	if err == nil || !strings.Contains(err.Error(), text) {
		tb.Errorf("%s: %v; want an error with %q", fmt.Sprintf(format, args...), err, text)
	}
}

// Check fails the test unless a condition holds. The format and its arguments tell what is wrong then.
func Check(tb testing.TB, holds bool, format string, args ...any) {
	tb.Helper()
	if !holds {
		tb.Errorf(format, args...)
	}
}
