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
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/veneer-skins/veneer/bench/load"
	"github.com/veneer-skins/veneer/bench/report"
)

// connections is how many keep-alive connections the load has.
const connections = 32

// bareRole, as the first argument, has this program be the bare server.
const bareRole = "bare"

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "hits:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	if len(args) == 3 && args[0] == bareRole {
		return serveBare(os.Stdin, args[1], args[2])
	}
	flags := flag.NewFlagSet("hits", flag.ExitOnError)
	binary := flags.String("edge", ".dev/bin/edge", "path of the edge's program")
	rounds := flags.Int("rounds", 30, "how many rounds there are, each with every server")
	seconds := flags.Float64("seconds", 1, "how long a server is measured in a round")
	urls := flags.Int("urls", 100_000, "how many addresses are asked for")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if report.LowerRank(*rounds) < 1 || *seconds <= 0 || *urls < 1 {
		return fmt.Errorf("there is nothing to learn from %d rounds of %v s with %d addresses; at least 6 rounds are needed", *rounds, *seconds, *urls)
	}
	serverCPU, loadCPU, err := processors()
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
	b := bench{work: work, serverCPU: serverCPU, loadCPU: loadCPU, rounds: *rounds, each: time.Duration(*seconds * float64(time.Second)), out: out}
	defer b.close()
	if err := b.open(ctx, *binary, *urls); err != nil {
		return err
	}
	return b.run(ctx)
}

// processors returns the one for servers and the one for the load.
func processors() (server, load int, err error) {
	var may unix.CPUSet
	if err := unix.SchedGetaffinity(0, &may); err != nil {
		return 0, 0, fmt.Errorf("ask for processors: %w", err)
	}
	var all []int
	for cpu := range 64 * len(may) {
		if may.IsSet(cpu) {
			all = append(all, cpu)
		}
	}
	if len(all) < 2 {
		return 0, 0, errors.New("a server and its load need a processor each, and there is only one")
	}
	return all[len(all)-1], all[0], nil
}

// bench is the servers that are measured, and what they are asked for.
type bench struct {
	work               string
	serverCPU, loadCPU int
	rounds             int
	each               time.Duration
	out                io.Writer

	core    core
	closers []func()
	record  *record
	rivals  []*rival // the edge first
	tags    [][]string
}

func (b *bench) close() {
	for _, closer := range slices.Backward(b.closers) {
		closer()
	}
}

// add adds a server, also one that has failed to start: it is to be stopped.
func (b *bench) add(s *rival, err error) error {
	if s != nil {
		b.closers = append(b.closers, s.stop)
		b.rivals = append(b.rivals, s)
	}
	return err
}

// open starts everything, and makes sure that all servers say the same.
func (b *bench) open(ctx context.Context, binary string, urls int) error {
	textures := filepath.Join(b.work, "textures")
	residents, leads, err := settle(ctx, textures, (urls+patterns()-1)/patterns())
	if err != nil {
		return err
	}
	b.core.leads = leads
	url, server, err := b.core.serve()
	if err != nil {
		return err
	}
	b.closers = append(b.closers, func() { _ = server.Close() })
	if err := b.add(startEdge(ctx, b.serverCPU, binary, b.work, textures, url)); err != nil {
		return err
	}
	if b.record, err = recordEdge(ctx, b.rivals[0], addresses(urls, residents)); err != nil {
		return err
	}
	total, different := b.record.sizes()
	fmt.Fprintf(b.out, "%d addresses of %d patterns and %d residents, all of them hits; %d different bodies of %.1f MiB, %.0f bytes an answer on average.\n",
		urls, patterns(), len(residents), len(b.record.Bodies), different/(1<<20), total/float64(urls))

	if err := b.add(startBare(ctx, b.serverCPU, b.work, b.record)); err != nil {
		return err
	}
	if err := b.openNginx(ctx); err != nil {
		return err
	}
	b.tags = [][]string{b.record.tags()}
	for _, s := range b.rivals[1:] {
		tags, err := s.check(ctx, b.record)
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
	if _, err := exec.LookPath("nginx"); errors.Is(err, exec.ErrNotFound) {
		fmt.Fprintln(b.out, "nginx is not installed, so it is left out.")
		return nil
	}
	open, err := mayOpen()
	if err != nil {
		return err
	}
	fmt.Fprintf(b.out, "nginx may keep %d files open.\n", open)
	if err := writeFiles(b.work, b.record); err != nil {
		return err
	}
	if err := b.add(startNginx(ctx, b.serverCPU, b.work, byAddress, open, addressFile, b.record)); err != nil {
		return err
	}
	return b.add(startNginx(ctx, b.serverCPU, b.work, byBody, open, bodyFile, b.record))
}

// run measures full answers and then those that say not modified.
func (b *bench) run(ctx context.Context) error {
	asked := b.core.asked.Load()
	for _, unmodified := range []bool{false, true} {
		loads := make([]load.Replay, len(b.rivals))
		for i, s := range b.rivals {
			answers, address, tags := b.record.Full, s.full, []string(nil)
			if unmodified {
				answers, address, tags = b.record.Unmodified, s.unmodified, b.tags[i]
			}
			var err error
			if loads[i], err = s.replay(address, b.loadCPU, b.record, answers, tags); err != nil {
				return err
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
	if asked = b.core.asked.Load() - asked; asked > 0 {
		fmt.Fprintf(b.out, "\nThe edge asked core for %d mappings meanwhile, as it had not heard of it for a second, so not all answers were hits.\n", asked)
	}
	return nil
}

// measure runs all rounds of one kind of answer and prints what they come to.
func (b *bench) measure(ctx context.Context, title string, loads []load.Replay) error {
	t := newTable(title, b.rivals, b.out)
	runtime.GC() // rather than while something is measured
	for round := range b.rounds {
		row := make([]sample, len(b.rivals))
		for turn := range b.rivals {
			// In every other round they go in the opposite order.
			i := turn
			if round%2 == 1 {
				i = len(b.rivals) - 1 - turn
			}
			before, err := b.rivals[i].processorTime()
			if err != nil {
				return err
			}
			loads[i].Seed = uint64(round)
			result, err := loads[i].Run(ctx, b.each)
			if err != nil {
				return fmt.Errorf("measure %s: %w", b.rivals[i].name, err)
			}
			after, err := b.rivals[i].processorTime()
			if err != nil {
				return err
			}
			row[i] = sample{Replayed: result, taken: after - before}
		}
		t.add(row)
	}
	t.conclude()
	return nil
}

// sizes returns how many bytes all bodies have together, and all different ones.
func (r *record) sizes() (all, different float64) {
	for i := range r.Full {
		all += float64(len(r.body(&r.Full[i])))
	}
	for _, body := range r.Bodies {
		different += float64(len(body))
	}
	return all, different
}
