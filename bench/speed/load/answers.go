package load

import (
	"errors"
	"fmt"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Fault is a way in which an answer is wrong.
type Fault string

// The faults.
const (
	// WrongStatus is a status other than the right ones.
	WrongStatus Fault = "status"
	// WrongLength is a body of another length than the right one, or than the answer's
	// Content-Length.
	WrongLength Fault = "length"
	// WrongBody is an error of Inspect.
	WrongBody Fault = "body"
	// Broken is a response that is not HTTP/1.1, or a connection that ends before a response.
	Broken Fault = "broken"
	// Unanswered is a request without a complete answer long after the end.
	Unanswered Fault = "unanswered"
)

// Answers are the results of a stream.
type Answers struct {
	// Elapsed is the time in which requests were sent and answers awaited.
	Elapsed time.Duration
	// Busy is the CPU time of the thread that ran this stream and those beside it. When it
	// comes near Elapsed, the load was the bottleneck.
	Busy time.Duration
	// Late is the longest time that a request was overdue though a connection was free: how
	// long the load generator itself was delayed, which adds to latencies.
	Late time.Duration
	// Bytes is the total length of the answers, headers included.
	Bytes int64
	// Latencies are in nanoseconds, by status, of all complete answers. They count from when a
	// request fell due; in a closed loop, from the sending. They are accurate to three digits
	// or half a microsecond.
	Latencies map[int]*hdrhistogram.Histogram
	// Wrong counts wrong answers. Complete ones are among Latencies, too.
	Wrong map[Fault]int64
	// First describes the first wrong answer.
	First error
}

// maxLatency is the longest latency in the histograms; longer ones count as that.
const maxLatency = time.Minute

func newLatencies() *hdrhistogram.Histogram {
	return hdrhistogram.New(int64(time.Microsecond), int64(maxLatency), 3)
}

// Add adds the results of another stream at the same time, sent by another thread.
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

// All returns the latencies of all statuses.
func (a *Answers) All() *hdrhistogram.Histogram {
	all := newLatencies()
	for _, latencies := range a.Latencies {
		all.Merge(latencies)
	}
	return all
}

// Rate returns the answers of a status a second.
func (a *Answers) Rate(status int) float64 {
	if histogram := a.Latencies[status]; histogram != nil {
		return float64(histogram.TotalCount()) / a.Elapsed.Seconds()
	}
	return 0
}

// Percentile returns a percentile of the latencies of a status, and 0 if there are none.
func (a *Answers) Percentile(status int, percent float64) time.Duration {
	if histogram := a.Latencies[status]; histogram != nil {
		return time.Duration(histogram.ValueAtPercentile(percent))
	}
	return 0
}

// Total returns the number of complete answers of any status.
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
		return fmt.Errorf("%d right answers, and wrong ones: %v, first: %w", a.Total(), a.Wrong, a.First)
	case a.Total() == 0:
		return errors.New("there are no answers")
	}
	return nil
}
