package main

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/veneer-skins/veneer/bench/speed/load"
	"github.com/veneer-skins/veneer/bench/speed/picturecheck"
)

// summary is the result of a run.
type summary struct {
	Settings *settings `json:"settings"`
	// Answers counts the complete answers, right or wrong, by status.
	Answers map[int]int64 `json:"answers"`
	// Wrong counts wrong answers by fault: status, length, broken, unanswered; picture and
	// dimensions among those that were decoded.
	Wrong      map[load.Fault]int64 `json:"wrong"`
	FirstWrong string               `json:"first_wrong,omitempty"`
	// Bytes is the total length of the answers, headers included.
	Bytes   int64   `json:"bytes"`
	Elapsed float64 `json:"elapsed_s"`
	Rate    float64 `json:"rate_per_s"` // of answers
	// Busy is the CPU time of the load generator. When it comes near Elapsed for each thread,
	// the load was the bottleneck.
	Busy float64 `json:"busy_s"`
	// Latency is of all complete answers; nil if there is none.
	Latency     *latency              `json:"latency_ms,omitempty"`
	Pictures    *picturecheck.Summary `json:"pictures,omitempty"`
	Interrupted bool                  `json:"interrupted"`
	Error       string                `json:"error,omitempty"` // that ended the run
}

// latency is in milliseconds.
type latency struct {
	P50  float64 `json:"p50"`
	P90  float64 `json:"p90"`
	P99  float64 `json:"p99"`
	P999 float64 `json:"p99.9"`
	Max  float64 `json:"max"`
}

func newSummary(s *settings, answers *load.Answers) *summary {
	all := answers.All()
	result := &summary{
		Settings: s, Answers: map[int]int64{}, Wrong: map[load.Fault]int64{},
		Bytes: answers.Bytes, Elapsed: answers.Elapsed.Seconds(), Busy: answers.Busy.Seconds(),
	}
	for status, latencies := range answers.Latencies {
		result.Answers[status] = latencies.TotalCount()
	}
	for fault, n := range answers.Wrong {
		result.addWrong(fault, n, answers.First)
	}
	if all.TotalCount() > 0 {
		result.Rate = float64(all.TotalCount()) / answers.Elapsed.Seconds()
		result.Latency = newLatency(all)
	}
	return result
}

func newLatency(all *hdrhistogram.Histogram) *latency {
	at := func(percent float64) float64 {
		return float64(all.ValueAtPercentile(percent)) / float64(time.Millisecond)
	}
	return &latency{at(50), at(90), at(99), at(99.9), at(100)}
}

// addWrong counts wrong answers.
func (s *summary) addWrong(fault load.Fault, n int64, first error) {
	s.Wrong[fault] += n
	if s.FirstWrong == "" {
		s.FirstWrong = first.Error()
	}
}

func (s *summary) write(out io.Writer) error {
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	return encoder.Encode(s)
}

// failure returns why the run failed, empty if it did not.
func (s *summary) failure() string {
	switch {
	case s.Error != "":
		return s.Error
	case len(s.Wrong) > 0:
		return fmt.Sprintf("there are wrong answers, %v, first: %s", s.Wrong, s.FirstWrong)
	case len(s.Answers) == 0:
		return "there are no answers"
	}
	return ""
}
