// Command hits measures how fast the edge answers what it has in memory, beside a
// fasthttp server that does nothing but send the same bytes, and beside nginx with
// the same files. Each has a processor to itself, the load comes from another one,
// and they take turns: what is printed at the end are medians of the ratios within
// the rounds, and what is sure of them.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"syscall"
	"time"

	"github.com/veneer-skins/veneer/bench/load"
	"github.com/veneer-skins/veneer/bench/report"
	"github.com/veneer-skins/veneer/bench/rivals"
	"github.com/veneer-skins/veneer/bench/town"
)

// connections is how many keep-alive connections the load has.
const connections = 32

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "hits:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	if asked, err := rivals.Serve(args); asked {
		return err
	}
	flags := flag.NewFlagSet("hits", flag.ExitOnError)
	binary := flags.String("edge", ".dev/bin/edge", "path of the edge's program")
	rounds := flags.Int("rounds", 300, "how many rounds there are, each with every server")
	seconds := flags.Float64("seconds", 0.1, "how long a server is measured in a round; in a short one all have the same share of what else the machine does")
	urls := flags.Int("urls", 100_000, "how many addresses are asked for")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if report.LowerRank(*rounds) < 1 || *seconds <= 0 || *urls < 1 {
		return fmt.Errorf("there is nothing to learn from %d rounds of %v s with %d addresses; at least 6 rounds are needed", *rounds, *seconds, *urls)
	}
	processors, err := rivals.Processors()
	if err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "hits")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(work) }()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	b := bench{
		place: rivals.Place{CPUs: processors[len(processors)-1:], Work: work}, loadCPU: processors[0],
		rounds: *rounds, each: time.Duration(*seconds * float64(time.Second)), out: out,
	}
	defer b.close()
	if err := b.open(ctx, *binary, *urls); err != nil {
		return err
	}
	return b.run(ctx)
}

// bench is the servers that are measured, and what they are asked for.
type bench struct {
	place   rivals.Place // of the servers
	loadCPU int
	rounds  int
	each    time.Duration
	out     io.Writer

	town    *town.Town
	closers []func()
	record  *rivals.Record
	servers []*rivals.Server // the edge first
	tags    [][]string
}

func (b *bench) close() {
	for _, closer := range slices.Backward(b.closers) {
		closer()
	}
}

// add adds a server, unless it has failed to start.
func (b *bench) add(s *rivals.Server, err error) error {
	if err == nil {
		b.closers = append(b.closers, s.Stop)
		b.servers = append(b.servers, s)
	}
	return err
}

// open starts everything, and makes sure that all servers say the same.
func (b *bench) open(ctx context.Context, binary string, urls int) error {
	residents := town.ResidentsOf(urls)
	var err error
	if b.town, err = town.Open(ctx, b.place, binary, residents); err != nil {
		return err
	}
	b.closers = append(b.closers, b.town.Close)
	b.servers = append(b.servers, b.town.Edge)
	if b.record, err = rivals.RecordHits(ctx, b.town.Edge, b.town.Addresses(urls)); err != nil {
		return err
	}
	total, different := sizes(b.record)
	fmt.Fprintf(b.out, "%d addresses of %d patterns and %d residents, all of them hits; %d different bodies of %.1f MiB, %.0f bytes an answer on average.\n",
		urls, town.Patterns(), residents, len(b.record.Bodies), different/(1<<20), total/float64(urls))

	if err := b.add(rivals.StartBare(ctx, b.place, b.record)); err != nil {
		return err
	}
	if err := b.openNginx(ctx); err != nil {
		return err
	}
	b.tags = [][]string{b.record.Tags()}
	for _, s := range b.servers[1:] {
		tags, err := s.Check(ctx, b.record)
		if err != nil {
			return err
		}
		b.tags = append(b.tags, tags)
	}
	return nil
}

// openNginx starts nginx twice: with a file for every address, as a site would have
// it, and with a file for every different body. Those are so few that it can keep
// all of them open.
func (b *bench) openNginx(ctx context.Context) error {
	open, err := rivals.MayOpen()
	if err != nil {
		return err
	}
	if err := rivals.WriteFiles(b.place.Work, b.record); err != nil {
		return err
	}
	for _, layout := range []rivals.Layout{rivals.ByAddress, rivals.ByBody} {
		err := b.add(rivals.StartNginx(ctx, b.place, b.place.Work, layout, open, b.record))
		if missing, ok := errors.AsType[*rivals.MissingError](err); ok {
			fmt.Fprintf(b.out, "Left out: %v.\n", missing)
			return nil
		}
		if err != nil {
			return err
		}
	}
	fmt.Fprintf(b.out, "nginx may keep %d files open.\n", open)
	return nil
}

// run measures full answers and then those that say not modified.
func (b *bench) run(ctx context.Context) error {
	asked := b.town.Asked()
	for _, unmodified := range []bool{false, true} {
		loads := make([]target, len(b.servers))
		for i, s := range b.servers {
			loads[i] = target{s.Address, stream(s, b.record, b.record.Full, nil)}
			if unmodified {
				loads[i] = target{s.Conditional, stream(s, b.record, b.record.Unmodified, b.tags[i])}
			}
		}
		title := "Full answers"
		if unmodified {
			title = "Not modified"
		}
		if err := b.measure(ctx, title, loads); err != nil {
			return err
		}
	}
	if asked = b.town.Asked() - asked; asked > 0 {
		fmt.Fprintf(b.out, "\nThe edge asked core for %d mappings meanwhile, as it had not heard of it for a second, so not all answers were hits.\n", asked)
	}
	return nil
}

// target is what a server is asked for, and where.
type target struct {
	address string
	*load.Stream
}

// measure runs all rounds of one kind of answer and prints what they come to.
func (b *bench) measure(ctx context.Context, title string, loads []target) error {
	unpin, err := load.Pin(b.loadCPU)
	if err != nil {
		return err
	}
	defer unpin()
	t := newTable(title, b.servers, b.out)
	runtime.GC() // rather than while something is measured
	for round := range b.rounds {
		row := make([]sample, len(b.servers))
		for turn := range b.servers {
			// In every other round they go in the opposite order.
			i := turn
			if round%2 == 1 {
				i = len(b.servers) - 1 - turn
			}
			before, err := b.servers[i].ProcessorTime()
			if err != nil {
				return err
			}
			loads[i].Order = load.Random(len(loads[i].Requests), uint64(round))
			answers, err := load.Run(ctx, loads[i].address, b.each, loads[i].Stream)
			if err == nil {
				err = answers[0].Check()
			}
			if err != nil {
				return fmt.Errorf("measure %s: %w", b.servers[i].Name, err)
			}
			after, err := b.servers[i].ProcessorTime()
			if err != nil {
				return err
			}
			row[i] = sample{Answers: answers[0], taken: after - before}
		}
		t.add(row)
	}
	t.conclude()
	return nil
}

// sizes returns how many bytes all bodies have together, and all different ones.
func sizes(r *rivals.Record) (all, different float64) {
	for i := range r.Full {
		all += float64(len(r.Body(&r.Full[i])))
	}
	for _, body := range r.Bodies {
		different += float64(len(body))
	}
	return all, different
}
