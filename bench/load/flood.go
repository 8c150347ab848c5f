package load

import (
	"bufio"
	"context"
	"math/rand/v2"
	"net"
	"time"

	"github.com/valyala/fasthttp"
	"golang.org/x/sync/errgroup"
)

// Flood is requests that do not wait for each other's answers: many are sent at
// once over each connection, which costs the sender a small part of what it costs
// to send them one by one. Nobody waits for the answers, so how long they take is
// not told.
type Flood struct {
	// Address is the server's host and port.
	Address string
	// Connections is how many there are. A server answers the requests of each one
	// after the other, so there must be many for those to be refused that come while
	// others wait.
	Connections int
	// Append appends request n to a buffer.
	Append func(buffer []byte, n int64) []byte
}

// breath is how often each connection sends what has fallen due.
const breath = 50 * time.Millisecond

// Run sends so many requests a second until ctx ends, or as many as the server
// takes, beginning with number first, and counts the answers by status.
func (f Flood) Run(ctx context.Context, rate float64, first int64) (statuses map[int]int64, err error) {
	var connections []net.Conn
	defer func() {
		for _, conn := range connections {
			_ = conn.Close()
		}
	}()
	for range f.Connections {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", f.Address)
		if err != nil {
			return nil, err
		}
		connections = append(connections, conn)
	}

	flows, flowing := errgroup.WithContext(ctx)
	counts := make([]map[int]int64, len(connections))
	start := time.Now()
	for i, conn := range connections {
		counts[i] = map[int]int64{}
		end := context.AfterFunc(flowing, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
		defer end()
		flows.Go(func() error { return ends(ctx, count(conn, counts[i])) })
		flows.Go(func() error { return ends(ctx, f.send(flowing, conn, first+int64(i), start, rate)) })
	}
	err = flows.Wait()
	statuses = map[int]int64{}
	for _, count := range counts {
		for status, n := range count {
			statuses[status] += n
		}
	}
	return statuses, err
}

// send sends one connection's part of the requests: the first and, from there on,
// one for each connection that there is.
func (f Flood) send(ctx context.Context, conn net.Conn, first int64, start time.Time, rate float64) error {
	select { // not all connections at the same moments
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(rand.N(breath)):
	}
	ticker := time.NewTicker(breath)
	defer ticker.Stop()
	var buffer []byte
	for sent := int64(0); ; {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
		due := int64(rate * time.Since(start).Seconds() / float64(f.Connections))
		buffer = buffer[:0]
		for ; sent < due; sent++ {
			buffer = f.Append(buffer, first+sent*int64(f.Connections))
		}
		if _, err := conn.Write(buffer); err != nil {
			return err
		}
	}
}

// count reads answers.
func count(conn net.Conn, statuses map[int]int64) error {
	var answer fasthttp.Response
	reader := bufio.NewReaderSize(conn, 64<<10)
	for {
		if err := answer.Read(reader); err != nil {
			return err
		}
		statuses[answer.StatusCode()]++
	}
}

// ends returns an error unless it comes from the end of ctx.
func ends(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	return nil
}
