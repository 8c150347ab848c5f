// Package load sends requests to a server over a fixed number of keep-alive
// connections and counts what comes back. A closed loop asks again as soon as it
// is answered, which shows how much the server can do; an open loop asks at a
// constant rate whatever the server does, which shows how long its users wait.
//
// Load often runs on the machine that it measures, so it is cheap: requests are
// bytes made beforehand, and all that a connection does is write, read and count.
package load

import (
	"context"
	"fmt"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/valyala/fasthttp"
	"golang.org/x/sync/errgroup"
)

// Request is one request and how its right answer is told.
type Request struct {
	// Bytes is the whole request, as HTTP/1.1 writes it.
	Bytes []byte
	// Want begins the body of the right answer.
	Want []byte
}

// Load is what is sent where.
type Load struct {
	// Address is the server's host and port.
	Address string
	// Connections is how many there are, and so how many requests are under way at
	// most.
	Connections int
	// Requests are sent in a random order, which is the same each time.
	Requests []Request
}

// Closed runs a closed loop: for that long every connection sends its next
// request as soon as the last one is answered. Latencies count from the sending.
func (l Load) Closed(ctx context.Context, duration time.Duration) (Result, error) {
	connections, err := l.dial(ctx)
	if err != nil {
		return Result{}, err
	}
	defer hangUp(connections)

	workers, working := errgroup.WithContext(ctx)
	start := time.Now()
	end := start.Add(duration)
	for _, c := range connections {
		workers.Go(func() error {
			defer c.endWith(working)()
			for asked := start; asked.Before(end); {
				if err := c.ask(); err != nil {
					return err
				}
				answered := time.Now()
				c.note(answered.Sub(asked))
				asked = answered
			}
			return nil
		})
	}
	return total(ctx, workers.Wait(), connections, start)
}

// Open runs an open loop: for that long so many requests a second fall due at
// even distances, and each is sent over the first connection that is free.
// Latencies count from when a request fell due, so that one that had to wait for
// the slow answer to another shows it.
func (l Load) Open(ctx context.Context, rate float64, duration time.Duration) (Result, error) {
	connections, err := l.dial(ctx)
	if err != nil {
		return Result{}, err
	}
	defer hangUp(connections)

	workers, working := errgroup.WithContext(ctx)
	due := make(chan time.Time, l.Connections)
	start := time.Now()
	workers.Go(func() error {
		defer close(due)
		return pace(working, due, rate, int(rate*duration.Seconds()))
	})
	for _, c := range connections {
		workers.Go(func() error {
			defer c.endWith(working)()
			for moment := range due {
				if err := c.ask(); err != nil {
					return err
				}
				c.note(time.Since(moment))
			}
			return nil
		})
	}
	return total(ctx, workers.Wait(), connections, start)
}

// Result is what came back.
type Result struct {
	Elapsed time.Duration
	// Latencies are in nanoseconds, true to three digits or half a microsecond.
	Latencies *hdrhistogram.Histogram
	// Statuses counts the answers by status.
	Statuses map[int]int64
	// Wrong counts the answers whose body does not begin as wanted, whatever their
	// status.
	Wrong int64
}

// longest is the longest latency that is told from longer ones.
const longest = time.Minute

func newLatencies() *hdrhistogram.Histogram {
	return hdrhistogram.New(int64(time.Microsecond), int64(longest), 3)
}

// total adds up what the connections noted, unless their work failed.
func total(ctx context.Context, err error, connections []*connection, start time.Time) (Result, error) {
	switch {
	case ctx.Err() != nil:
		return Result{}, ctx.Err()
	case err != nil:
		return Result{}, err
	}
	r := Result{Elapsed: time.Since(start), Latencies: newLatencies(), Statuses: map[int]int64{}}
	for _, c := range connections {
		r.Latencies.Merge(c.latencies)
		for status, n := range c.statuses {
			r.Statuses[status] += n
		}
		r.Wrong += c.wrong
	}
	return r, nil
}

// Rate returns how many answers there were a second.
func (r Result) Rate() float64 { return float64(r.Latencies.TotalCount()) / r.Elapsed.Seconds() }

// Percentile returns the latency that so many per cent of the answers did not
// exceed.
func (r Result) Percentile(percent float64) time.Duration {
	return time.Duration(r.Latencies.ValueAtPercentile(percent))
}

// Check returns an error unless there were answers, and all were 200 with the
// body that was wanted.
func (r Result) Check() error {
	n := r.Latencies.TotalCount()
	if n == 0 || r.Wrong > 0 || r.Statuses[fasthttp.StatusOK] != n {
		return fmt.Errorf("of %d answers %d have another body than is wanted; how many by status: %v", n, r.Wrong, r.Statuses)
	}
	return nil
}
