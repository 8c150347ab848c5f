package testenv

import (
	"testing"
	"time"
)

// Eventually waits until a condition holds, which it checks every millisecond. It fails the test only shortly before
// the test binary would be stopped: beside a busy machine an event may take a minute, so no shorter time shows that it
// never happens.
func Eventually(tb testing.TB, what string, holds func() bool) {
	tb.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	var expired <-chan time.Time // never, unless the test has a deadline
	if t, ok := tb.(interface{ Deadline() (time.Time, bool) }); ok {
		if deadline, ok := t.Deadline(); ok {
			const toReport = 5 * time.Second
			expired = time.After(time.Until(deadline) - toReport)
		}
	}
	for !holds() {
		select {
		case <-tick.C:
		case <-expired:
			tb.Fatalf("this never happened: %s", what)
		}
	}
}
