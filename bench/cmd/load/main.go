// Command load sends requests to a server on this machine, checks what it answers, and
// prints one summary in JSON. Its status is 0 if all answers were right, 1 if any was
// wrong or there was none, and 2 if it was not told properly what to do.
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

	"github.com/veneer-skins/veneer/bench/load"
	"github.com/veneer-skins/veneer/bench/sample"
)

// What a run ends with.
const (
	allRight = iota
	anyWrong
	notTold
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // the second signal ends it at once
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

func run(ctx context.Context, args []string, out, complaints io.Writer) int {
	s, err := parseSettings(args)
	if errors.Is(err, flag.ErrHelp) {
		printHelp(out)
		return allRight
	}
	var requests *list
	if err == nil {
		requests, err = s.list()
	}
	if err == nil && s.output != "" {
		var file *os.File
		if file, err = os.Create(s.output); err == nil {
			defer func() { _ = file.Close() }()
			out = file
		}
	}
	if err != nil {
		fmt.Fprintf(complaints, "load: %v\n", err)
		return notTold
	}
	if s.Revalidate {
		if err := requests.learnTags(ctx); err != nil {
			fmt.Fprintf(complaints, "load: learn tags: %v\n", err)
			return anyWrong
		}
	}
	result := measure(ctx, s, requests)
	if err := result.write(out); err != nil {
		fmt.Fprintf(complaints, "load: write the summary: %v\n", err)
		return anyWrong
	}
	if complaint := result.complaint(); complaint != "" {
		fmt.Fprintf(complaints, "load: %s\n", complaint)
		return anyWrong
	}
	return allRight
}

// measure sends what there is to be sent, and only then looks at the pictures that it
// kept.
func measure(ctx context.Context, s *settings, requests *list) *summary {
	threads, running := errgroup.WithContext(ctx)
	answers, kept := make([][]load.Answers, s.Threads), make([]*sample.Samples, s.Threads)
	for i := range s.Threads {
		kept[i] = sample.New(func(request int) string { return requests.paths[request] }, s.Threads)
		stream := s.stream(i, requests)
		stream.Share, stream.Look = s.Decode, kept[i].Look
		if s.Decode == 0 {
			stream.Look = nil
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
		result.Pictures = sample.Decode(kept, result.wrong)
	}
	return result
}
