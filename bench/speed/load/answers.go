package load

import (
	"errors"
	"fmt"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Fault is a way in which an answer is wrong.
type Fault string

// The faults that there are.
const (
	// WrongStatus is another status than the right ones.
	WrongStatus Fault = "status"
	// WrongLength is a body of another length than the right one, or one that is shorter
	// or longer than the answer says.
	WrongLength Fault = "length"
	// WrongBody is what Look says is wrong.
	WrongBody Fault = "body"
	// Broken is no answer as HTTP/1.1 has it, or a connection that ends before there is
	// one.
	Broken Fault = "broken"
	// Unanswered is what was not answered whole long after the end.
	Unanswered Fault = "unanswered"
)

// Answers are what came back on a stream.
type Answers struct {
	// Elapsed is how long requests were sent and answers to them awaited.
	Elapsed time.Duration
	// Busy is how much of a processor's time the thread took that ran this stream and
	// those beside it. When it comes near Elapsed, the load was the bottleneck.
	Busy time.Duration
	// Late is the longest time that a request which had fallen due was not sent though a
	// connection was free: how long the load itself stood still, and so the server seemed to.
	Late time.Duration
	// Bytes is how long all answers were together, headers included.
	Bytes int64
	// Latencies are in nanoseconds, by status, those of all answers that came whole. They
	// count from when a request fell due; in a closed loop, from the sending. They are
	// true to three digits or half a microsecond.
	Latencies map[int]*hdrhistogram.Histogram
	// Wrong counts wrong answers. Those that came whole are among Latencies all the same.
	Wrong map[Fault]int64
	// First describes the first wrong answer.
	First error
}

// maxLatency is the longest latency that is told from longer ones.
const maxLatency = time.Minute

func newLatencies() *hdrhistogram.Histogram {
	return hdrhistogram.New(int64(time.Microsecond), int64(maxLatency), 3)
}

// Add adds what came back on another stream at the same time, sent by another thread.
func (a *Answers) Add(other Answers) {
	a.Elapsed = max(a.Elapsed, other.Elapsed)
	a.Busy += other.Busy
	a.Late = max(a.Late, other.Late)
	a.Bytes += other.Bytes
	for status, latencies := range other.Latencies {
		a.histogram(status).Merge(latencies)
	}
	for fault, n := range other.Wrong {
		if a.Wrong == nil {
			a.Wrong = map[Fault]int64{}
		}
		a.Wrong[fault] += n
	}
	if a.First == nil {
		a.First = other.First
	}
}

// histogram returns the latencies of a status.
func (a *Answers) histogram(status int) *hdrhistogram.Histogram {
	histogram := a.Latencies[status]
	if histogram == nil {
		if a.Latencies == nil {
			a.Latencies = map[int]*hdrhistogram.Histogram{}
		}
		histogram = newLatencies()
		a.Latencies[status] = histogram
	}
	return histogram
}

// All returns the latencies of whatever status.
func (a *Answers) All() *hdrhistogram.Histogram {
	all := newLatencies()
	for _, latencies := range a.Latencies {
		all.Merge(latencies)
	}
	return all
}

// Rate returns how many answers of a status there were a second.
func (a *Answers) Rate(status int) float64 {
	if histogram := a.Latencies[status]; histogram != nil {
		return float64(histogram.TotalCount()) / a.Elapsed.Seconds()
	}
	return 0
}

// Percentile returns the latency that so many per cent of the answers of a status did
// not exceed, and 0 if there was none.
func (a *Answers) Percentile(status int, percent float64) time.Duration {
	if histogram := a.Latencies[status]; histogram != nil {
		return time.Duration(histogram.ValueAtPercentile(percent))
	}
	return 0
}

// Total returns how many answers came whole, of whatever status.
func (a *Answers) Total() (n int64) {
	for _, histogram := range a.Latencies {
		n += histogram.TotalCount()
	}
	return n
}

// Check returns an error unless there were answers, and all were right.
func (a *Answers) Check() error {
	switch {
	case a.First != nil:
		return fmt.Errorf("beside %d whole answers there are wrong ones, %v, first: %w", a.Total(), a.Wrong, a.First)
	case a.Total() == 0:
		return errors.New("there are no answers")
	}
	return nil
}
