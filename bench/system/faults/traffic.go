package faults

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/veneer-skins/veneer/bench/speed/load"
)

// counts is the results of requests of one kind.
type counts struct {
	mu           sync.Mutex
	sent, failed int64
	causes       map[string]int64 // of failures
	last         time.Time        // time of the last success, or of the start
	gap          time.Duration    // longest time without a success
	slowest      time.Duration    // of all responses
}

func newCounts() *counts { return &counts{causes: map[string]int64{}, last: time.Now()} }

// count counts a response, and reports whether it was a success.
func (c *counts) count(status int, err error, took time.Duration) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sent++
	c.slowest = max(c.slowest, took)
	if err == nil && status < http.StatusBadRequest {
		c.gap = max(c.gap, time.Since(c.last))
		c.last = time.Now()
		return true
	}
	cause := "no answer"
	if err == nil {
		cause = fmt.Sprint(status)
	}
	c.failed++
	c.causes[cause]++
	return false
}

// end is called once no more requests are sent.
func (c *counts) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gap = max(c.gap, time.Since(c.last))
}

// failures describes the number and the causes of the failures.
func (c *counts) failures() string {
	if c.failed == 0 {
		return "0"
	}
	var kinds []string
	for cause, n := range c.causes {
		kinds = append(kinds, fmt.Sprintf("%s: %d", cause, n))
	}
	sort.Strings(kinds)
	return fmt.Sprintf("%d (%s)", c.failed, strings.Join(kinds, ", "))
}

// stream is read-only requests, sent by package load.
type stream struct {
	*counts
	load.Stream

	nextRequest int // index into Requests, for sequential order
	done        <-chan struct{}
	bodies      [][]byte // the right ones; nil if any is right
}

// newStream returns a stream of requests at a rate. All successful answers are inspected.
func newStream(done <-chan struct{}, rate float64, connections int, requests, bodies [][]byte) *stream {
	s := &stream{counts: newCounts(), done: done, bodies: bodies}
	s.Stream = load.Stream{Rate: rate, Connections: connections, Requests: requests, Statuses: []int{200}, InspectShare: 1, Inspect: s.check, Order: s.order}
	return s
}

func (s *stream) order() int {
	select {
	case <-s.done:
		return -1
	default:
	}
	s.sent++
	if s.bodies != nil {
		return rand.IntN(len(s.Requests))
	}
	s.nextRequest++
	return (s.nextRequest - 1) % len(s.Requests)
}

// check counts a successful answer. It is called by the stream's only thread.
func (s *stream) check(request, _ int, body []byte) error {
	if s.bodies != nil && !bytes.Equal(body, s.bodies[request]) {
		return errors.New("another picture is shown")
	}
	s.sent--
	s.counts.count(http.StatusOK, nil, 0)
	return nil
}

// count counts the failures that package load has found.
func (s *stream) count(a load.Answers) {
	answered, right := int64(0), int64(0)
	for status, latencies := range a.Latencies {
		if status == http.StatusRequestTimeout { // on a connection on which nothing was sent for seconds: the sender had no processor
			s.sent -= latencies.TotalCount()
			continue
		}
		answered += latencies.TotalCount()
		s.slowest = max(s.slowest, time.Duration(latencies.Max()))
		if status == 200 {
			right = latencies.TotalCount() - a.Wrong[load.WrongBody]
		} else {
			s.causes[fmt.Sprint(status)] += latencies.TotalCount()
		}
	}
	if n := a.Wrong[load.WrongBody]; n > 0 {
		s.causes["another picture"] = n
	}
	if broken := s.sent - answered; broken > 0 {
		s.causes["no answer"] += broken
	}
	s.failed = s.sent - right
}

// send sends streams to the balancer until they are done, and waits a while for open requests.
func send(ctx context.Context, address string, done <-chan struct{}, streams ...*stream) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-done:
		case <-ctx.Done():
		}
		time.AfterFunc(15*time.Second, cancel) // longer than any program works on a request
	}()
	loads := make([]*load.Stream, len(streams))
	for i, s := range streams {
		loads[i] = &s.Stream
	}
	const duration = time.Hour
	answers, err := load.Run(ctx, address, duration, loads...)
	if err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	for i, s := range streams {
		s.end()
		s.count(answers[i])
	}
	return nil
}
