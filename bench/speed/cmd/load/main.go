// Command load sends requests to a server on this machine, checks the answers, and prints one
// summary in JSON. It exits with 0 if all answers were right, 1 if any was wrong or there was none,
// and 2 on bad arguments.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sync/errgroup"

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
	s, err := parseSettings(args)
	if errors.Is(err, flag.ErrHelp) {
		printHelp(out)
		return exitOK
	}
	var requests *requestList
	if err == nil {
		requests, err = s.requestList()
	}
	if err == nil && s.output != "" {
		var file *os.File
		if file, err = os.Create(s.output); err == nil {
			defer func() { _ = file.Close() }()
			out = file
		}
	}
	if err != nil {
		fmt.Fprintf(stderr, "load: %v\n", err)
		return exitUsage
	}
	if s.Revalidate {
		if err := requests.fetchTags(ctx); err != nil {
			fmt.Fprintf(stderr, "load: fetch entity tags: %v\n", err)
			return exitFailure
		}
	}
	result := measure(ctx, s, requests)
	if err := result.write(out); err != nil {
		fmt.Fprintf(stderr, "load: write the summary: %v\n", err)
		return exitFailure
	}
	if failure := result.failure(); failure != "" {
		fmt.Fprintf(stderr, "load: %s\n", failure)
		return exitFailure
	}
	return exitOK
}

// measure sends the requests, and only afterwards decodes the sampled pictures.
func measure(ctx context.Context, s *settings, requests *requestList) *summary {
	threads, running := errgroup.WithContext(ctx)
	answers, samplers := make([][]load.Answers, s.Threads), make([]*picturecheck.Sampler, s.Threads)
	for i := range s.Threads {
		samplers[i] = picturecheck.New(func(request int) string { return requests.paths[request] }, s.Threads)
		stream := s.stream(i, requests)
		stream.InspectShare, stream.Inspect = s.Decode, samplers[i].Inspect
		if s.Decode == 0 {
			stream.Inspect = nil
		}
		threads.Go(func() (err error) {
			answers[i], err = load.Run(running, s.server.String(), s.duration, stream)
			return err
		})
	}
	err := threads.Wait()

	var all load.Answers
	for _, of := range answers {
		for i := range of {
			all.Add(of[i])
		}
	}
	result := newSummary(s, &all)
	switch {
	case ctx.Err() != nil:
		result.Interrupted = true
	case err != nil:
		result.Error = err.Error()
	}
	if s.Decode > 0 {
		result.Pictures = picturecheck.Decode(samplers, result.addWrong)
	}
	return result
}
