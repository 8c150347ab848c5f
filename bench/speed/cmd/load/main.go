// Command load sends requests to a server on this machine, checks the answers, and prints one
// summary in JSON. It exits with 0 if all answers were right, 1 if any was wrong or there was none,
// and 2 on bad arguments.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/bench/speed/load"
	"github.com/veneer-skins/veneer/bench/speed/picturecheck"
)

// Exit codes.
const (
	exitOK = iota
	exitFailure
	exitUsage
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // the second signal ends the process at once
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

func run(ctx context.Context, args []string, out, stderr io.Writer) int {
	s, err := parseSettings(args, out)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return exitOK
	case err != nil:
		fmt.Fprintf(stderr, "load: %v\n", err)
		return exitUsage
	}
	result, err := s.measure(ctx)
	if err == nil {
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		err = errors.Join(encoder.Encode(result), result.failure())
	}
	if err != nil {
		fmt.Fprintf(stderr, "load: %v\n", err)
		return exitFailure
	}
	return exitOK
}

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
	// Busy is the CPU time of the load generator. When it comes near Elapsed, the load was the
	// bottleneck.
	Busy float64 `json:"busy_s"`
	// Latency is of all complete answers, in milliseconds, by percentile; nil if there is none.
	Latency     map[string]float64    `json:"latency_ms,omitempty"`
	Pictures    *picturecheck.Summary `json:"pictures,omitempty"`
	Interrupted bool                  `json:"interrupted"`
	Error       string                `json:"error,omitempty"` // that ended the run
}

// measure sends the requests, and only afterwards decodes the sampled pictures.
func (s *settings) measure(ctx context.Context) (*summary, error) {
	stream, err := s.stream(ctx)
	if err != nil {
		return nil, err
	}
	sampler := picturecheck.New(func(request int) string { return s.paths[request] })
	if s.Decode > 0 {
		stream.InspectShare, stream.Inspect = s.Decode, sampler.Inspect
	}
	all, err := load.Run(ctx, s.server.String(), s.duration, stream)
	result := &summary{Settings: s, Answers: map[int]int64{}, Wrong: map[load.Fault]int64{}}
	for i := range all {
		result.add(&all[i])
	}
	switch {
	case ctx.Err() != nil:
		result.Interrupted = true
	case err != nil:
		result.Error = err.Error()
	}
	if s.Decode > 0 {
		result.Pictures = sampler.Decode(result.addWrong)
	}
	return result, nil
}

// add adds the answers to the only stream.
func (s *summary) add(answers *load.Answers) {
	s.Bytes, s.Elapsed, s.Busy = answers.Bytes, answers.Elapsed.Seconds(), answers.Busy.Seconds()
	for status, latencies := range answers.Latencies {
		s.Answers[status] = latencies.TotalCount()
	}
	for fault, n := range answers.Wrong {
		s.addWrong(fault, n, answers.First)
	}
	if answers.Total() > 0 {
		s.Rate, s.Latency = float64(answers.Total())/answers.Elapsed.Seconds(), map[string]float64{}
		for name, percent := range map[string]float64{"p50": 50, "p90": 90, "p99": 99, "p99.9": 99.9, "max": 100} {
			s.Latency[name] = float64(answers.All().ValueAtPercentile(percent)) / float64(time.Millisecond)
		}
	}
}

func (s *summary) addWrong(fault load.Fault, n int64, first error) {
	s.Wrong[fault] += n
	if s.FirstWrong == "" {
		s.FirstWrong = first.Error()
	}
}

func (s *summary) failure() error {
	switch {
	case s.Error != "":
		return errors.New(s.Error)
	case len(s.Wrong) > 0:
		return fmt.Errorf("there are wrong answers, %v, first: %s", s.Wrong, s.FirstWrong)
	case len(s.Answers) == 0:
		return errors.New("there are no answers")
	}
	return nil
}

// fetchTags requests every path once and returns the entity tags.
func (s *settings) fetchTags(ctx context.Context) (tags []string, err error) {
	const timeout = 10 * time.Second // of a response
	client := &fasthttp.HostClient{
		Addr: s.server.String(), ReadTimeout: timeout, WriteTimeout: timeout,
		DisablePathNormalizing: true, // the path must be the same later
	}
	defer client.CloseIdleConnections()
	var request fasthttp.Request
	var response fasthttp.Response
	for _, path := range s.paths {
		request.SetRequestURI("http://" + s.host + path)
		if err := errors.Join(ctx.Err(), client.Do(&request, &response)); err != nil {
			return nil, fmt.Errorf("request %s: %w", path, err)
		}
		tag := string(response.Header.Peek(fasthttp.HeaderETag))
		if status := response.StatusCode(); status != fasthttp.StatusOK || tag == "" {
			return nil, fmt.Errorf("the answer to %s has status %d and tag %q", path, status, tag)
		}
		tags = append(tags, tag)
	}
	return tags, nil
}
