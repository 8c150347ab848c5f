package httpserver

import (
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/veneer-skins/veneer/shared/testenv"
)

// A body that is not being read is never stalled: its client may be fast, and what it is
// passed on to slow. It is stalled once a read has waited for too long.
func TestBodyStallsOnlyWhileRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const share = 1 << 20
		g := newBudget(t.Name(), share)
		client, conn := net.Pipe()
		defer func() { _ = client.Close() }()
		var fast, other Body
		fast.open(g, conn, conn, share)
		other.open(g, nil, nil, share)
		testenv.Do(t, fast.Stream(share, time.Hour))
		part := make([]byte, smallBody)
		for range 3 {
			go func() { _, _ = client.Write(part) }()
			testenv.Must(io.ReadFull(&fast, part))(t)
			<-time.After(10 * stalledGrace)                          // in the synthetic time of synctest
			if err := other.reserve(share); err != errBodiesBudget { //nolint:errorlint // reserve wraps nothing
				t.Fatalf("reserve = %v while a body is not read; want %v", err, errBodiesBudget)
			}
		}

		ended := make(chan error, 1)
		go func() {
			_, err := fast.Read(part)
			ended <- err
		}()
		<-time.After(stalledGrace - time.Millisecond)
		if err := other.reserve(share); err != errBodiesBudget { //nolint:errorlint // reserve wraps nothing
			t.Errorf("reserve = %v while a body is read in time; want %v", err, errBodiesBudget)
		}
		<-time.After(2 * time.Millisecond)
		testenv.Is(t, other.reserve(share), nil, "reserve while a body is stalled")
		if err := <-ended; err != errStalled { //nolint:errorlint // receive wraps nothing
			t.Errorf("the stalled body ends with %v; want %v", err, errStalled)
		}
	})
}
