package faults

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/veneer-skins/veneer/bench/load"
)

// tally counts what came of requests of one kind.
type tally struct {
	mu           sync.Mutex
	sent, failed int64
	how          map[string]int64 // the failures
	last         time.Time        // when there was an answer of success, or it all began
	gap          time.Duration    // the longest time without one
	slowest      time.Duration    // of all answers
}

func newTally() *tally { return &tally{how: map[string]int64{}, last: time.Now()} }

func (t *tally) right(took time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sent++
	t.slowest = max(t.slowest, took)
	t.gap = max(t.gap, time.Since(t.last))
	t.last = time.Now()
}

func (t *tally) wrong(how string, took time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sent++
	t.failed++
	t.how[how]++
	t.slowest = max(t.slowest, took)
}

// end is when no more requests are sent.
func (t *tally) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.gap = max(t.gap, time.Since(t.last))
}

// failures tells how many requests failed and how.
func (t *tally) failures() string {
	if t.failed == 0 {
		return "0"
	}
	var kinds []string
	for how, n := range t.how {
		kinds = append(kinds, fmt.Sprintf("%s: %d", how, n))
	}
	sort.Strings(kinds)
	return fmt.Sprintf("%d (%s)", t.failed, strings.Join(kinds, ", "))
}

// stream is requests that change nothing, sent by package load.
type stream struct {
	*tally
	load.Stream

	from   int // of Requests, the first that is sent in turn
	over   <-chan struct{}
	bodies [][]byte // the right ones; none if any is right
}

// newStream returns a stream of requests at a rate. All answers of success are looked at.
func newStream(over <-chan struct{}, rate float64, connections int, requests, bodies [][]byte) *stream {
	s := &stream{tally: newTally(), over: over, bodies: bodies}
	s.Stream = load.Stream{Rate: rate, Connections: connections, Requests: requests, Statuses: []int{200}, Share: 1, Look: s.look, Order: s.order}
	return s
}

func (s *stream) order() int {
	select {
	case <-s.over:
		return -1
	default:
	}
	s.sent++
	if s.bodies != nil {
		return rand.IntN(len(s.Requests))
	}
	s.from++
	return (s.from - 1) % len(s.Requests)
}

var errOther = errors.New("another picture is shown")

// look notes an answer of success, and is called by the stream's only thread.
func (s *stream) look(request, _ int, body []byte) error {
	if s.bodies != nil && !bytes.Equal(body, s.bodies[request]) {
		return errOther
	}
	s.sent--
	s.right(0)
	return nil
}

// count counts what the load says of the requests that failed.
func (s *stream) count(a load.Answers) {
	answered, right := int64(0), int64(0)
	for status, latencies := range a.Latencies {
		answered += latencies.TotalCount()
		s.slowest = max(s.slowest, time.Duration(latencies.Max()))
		if status == 200 {
			right = latencies.TotalCount() - a.Wrong[load.WrongBody]
		} else {
			s.how[fmt.Sprint(status)] += latencies.TotalCount()
		}
	}
	if n := a.Wrong[load.WrongBody]; n > 0 {
		s.how["another picture"] = n
	}
	if broken := s.sent - answered; broken > 0 {
		s.how["no answer"] += broken
	}
	s.failed = s.sent - right
}

// lateness is how long answers are waited for after the last request: longer than any
// program works on one.
const lateness = 15 * time.Second

// send sends streams to the balancer until they are over, and what is under way is
// answered or late.
func send(ctx context.Context, address string, over <-chan struct{}, streams ...*stream) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-over:
		case <-ctx.Done():
		}
		time.AfterFunc(lateness, cancel)
	}()
	loads := make([]*load.Stream, len(streams))
	for i, s := range streams {
		loads[i] = &s.Stream
	}
	const long = time.Hour
	answers, err := load.Run(ctx, address, long, loads...)
	if err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	for i, s := range streams {
		s.end()
		s.count(answers[i])
	}
	return nil
}
