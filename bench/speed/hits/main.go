// Command hits measures how fast the edge answers cache hits, beside a fasthttp server that does
// nothing but send the same bytes, beside nginx with the same files, and without its fast path; in
// plain HTTP and with TLS. Then it compares addresses of other services with the edge's own ones of
// the same pictures. The servers share one processor and alternate, and the load has another one. It
// prints medians of the ratios within rounds, and their confidence intervals.
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

	"github.com/veneer-skins/veneer/bench/speed/baseline"
	"github.com/veneer-skins/veneer/bench/speed/fixture"
	"github.com/veneer-skins/veneer/bench/speed/load"
	"github.com/veneer-skins/veneer/bench/speed/results"
)

// connections is the number of keep-alive connections of the load.
const connections = 32

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "hits:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	if isRole, err := baseline.ServeRole(args); isRole {
		return err
	}
	flags := flag.NewFlagSet("hits", flag.ExitOnError)
	binary := flags.String("edge", ".dev/bin/edge", "path of the edge's program")
	rounds := flags.Int("rounds", 300, "number of rounds; each measures every server")
	seconds := flags.Float64("seconds", 0.1, "duration of a server's measurement in a round; in short rounds all get the same share of the machine's other load")
	urls := flags.Int("urls", 100_000, "number of addresses to request")
	onlyForeign := flags.Bool("foreign", false, "only compare addresses of other services with own ones")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if results.LowerRank(*rounds) < 1 || *seconds <= 0 || *urls < 1 {
		return fmt.Errorf("%d rounds of %v s with %d addresses give no confidence interval; at least 6 rounds are needed", *rounds, *seconds, *urls)
	}
	processors, err := baseline.Processors()
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
		env: baseline.Env{CPUs: processors[len(processors)-1:], WorkDir: work}, loadCPU: processors[0],
		rounds: *rounds, duration: time.Duration(*seconds * float64(time.Second)), out: out,
	}
	defer b.close()
	if err := b.openFixture(ctx, *binary, fixture.PlayersFor(*urls)); err != nil {
		return err
	}
	if !*onlyForeign {
		if err := b.open(ctx, *urls); err != nil {
			return err
		}
		if err := b.run(ctx); err != nil {
			return err
		}
	}
	return b.compareForeign(ctx)
}

// bench is the servers under test, and the requests to them.
type bench struct {
	env      baseline.Env // of the servers
	loadCPU  int
	rounds   int
	duration time.Duration
	out      io.Writer

	fixture *fixture.Site
	players int // of the fixture
	closers []func()
	record  *baseline.Record
	servers []*baseline.Server // plain HTTP, then TLS; the edge first in each
	tags    map[*baseline.Server][]string
}

func (b *bench) close() {
	for _, closer := range slices.Backward(b.closers) {
		closer()
	}
}

// add adds a server, unless it has failed to start.
func (b *bench) add(s *baseline.Server, err error) error {
	if err == nil {
		b.closers = append(b.closers, s.Stop)
		b.servers = append(b.servers, s)
	}
	return err
}

// openFixture starts the fixture with its edge.
func (b *bench) openFixture(ctx context.Context, binary string, players int) (err error) {
	if b.fixture, err = fixture.Open(ctx, b.env, binary, players); err == nil {
		b.players = players
		b.closers = append(b.closers, b.fixture.Close)
	}
	return err
}

// open starts the other servers, and checks that all give the same answers.
func (b *bench) open(ctx context.Context, urls int) error {
	var err error
	if b.record, err = baseline.RecordHits(ctx, b.fixture.Edge, b.fixture.Addresses(urls)); err != nil {
		return err
	}
	total, different := sizes(b.record)
	fmt.Fprintf(b.out, "%d addresses of %d patterns and %d players, all of them hits; %d different bodies of %.1f MiB, %.0f bytes an answer on average.\n",
		urls, fixture.Patterns(), b.players, len(b.record.Bodies), different/(1<<20), total/float64(urls))

	b.servers = append(b.servers, b.fixture.Edge)
	if err := b.add(baseline.StartFasthttp(ctx, b.env, b.record, baseline.Certificate{})); err != nil {
		return err
	}
	if err := b.addEdge(ctx, "edge without fast path", baseline.Certificate{}, false); err != nil {
		return err
	}
	if err := b.openNginx(ctx); err != nil {
		return err
	}
	if err := b.openTLS(ctx); err != nil {
		return err
	}
	b.tags = map[*baseline.Server][]string{}
	for _, s := range b.servers {
		if b.tags[s], err = s.Check(ctx, b.record); err != nil {
			return err
		}
	}
	return nil
}

// addEdge starts another edge and fills its cache.
func (b *bench) addEdge(ctx context.Context, name string, certificate baseline.Certificate, fastPath bool) error {
	edge, _, err := b.fixture.StartEdge(ctx,
		"EDGE_TLS_CERT="+certificate.Chain, "EDGE_TLS_KEY="+certificate.Key, fmt.Sprintf("EDGE_FAST_PATH=%t", fastPath))
	if err != nil {
		return err
	}
	edge.Name, edge.TLS = name, certificate.Chain != ""
	b.servers = append(b.servers, edge)
	targets := make([]string, len(b.record.Full))
	for i := range targets {
		targets[i] = b.record.Full[i].Target
	}
	_, err = baseline.RecordHits(ctx, edge, targets)
	return err
}

// openTLS starts the servers with TLS.
func (b *bench) openTLS(ctx context.Context) error {
	certificate, err := b.env.Certify()
	if err != nil {
		return err
	}
	if err := b.addEdge(ctx, "edge, TLS", certificate, true); err != nil {
		return err
	}
	if err := b.add(baseline.StartFasthttp(ctx, b.env, b.record, certificate)); err != nil {
		return err
	}
	return b.addEdge(ctx, "edge without fast path, TLS", certificate, false)
}

// openNginx starts nginx twice: with a file for every address, as a site would have it, and with a
// file for every distinct body. Those are so few that it can keep all of them open.
func (b *bench) openNginx(ctx context.Context) error {
	open, err := baseline.RaiseFileLimit()
	if err != nil {
		return err
	}
	if err := baseline.WriteFiles(b.env.WorkDir, b.record); err != nil {
		return err
	}
	for _, layout := range []baseline.Layout{baseline.ByAddress, baseline.ByBody} {
		err := b.add(baseline.StartNginx(ctx, b.env, b.env.WorkDir, layout, open, b.record))
		if missing, ok := errors.AsType[*baseline.MissingError](err); ok {
			fmt.Fprintf(b.out, "Skipped: %v.\n", missing)
			return nil
		}
		if err != nil {
			return err
		}
	}
	fmt.Fprintf(b.out, "nginx may have %d files open.\n", open)
	return nil
}

// run measures full answers, then those of status 304.
func (b *bench) run(ctx context.Context) error {
	defer b.reportLookups(b.fixture.Lookups())
	secure := slices.IndexFunc(b.servers, func(s *baseline.Server) bool { return s.TLS })
	for i, servers := range [][]*baseline.Server{b.servers[:secure], b.servers[secure:]} {
		suffix := []string{"", ", TLS"}[i]
		full, unmodified := make([]target, len(servers)), make([]target, len(servers))
		for i, s := range servers {
			full[i] = target{s.Address, stream(s, b.record, b.record.Full, nil)}
			unmodified[i] = target{s.Conditional, stream(s, b.record, b.record.Unmodified, b.tags[s])}
		}
		if err := b.measure(ctx, "Full answers"+suffix, servers, full); err != nil {
			return err
		}
		if err := b.measure(ctx, "Not modified"+suffix, servers, unmodified); err != nil {
			return err
		}
	}
	return nil
}

// reportLookups prints how many mappings the edges have looked up since a number of them.
func (b *bench) reportLookups(before int64) {
	if lookups := b.fixture.Lookups() - before; lookups > 0 {
		fmt.Fprintf(b.out, "\nThe edge looked up %d mappings meanwhile, after a second without a heartbeat, so not all answers were hits.\n", lookups)
	}
}

// compareForeign measures the addresses of other services beside the own ones of the same pictures.
func (b *bench) compareForeign(ctx context.Context) error {
	patterns := b.fixture.Foreigns(b.players)
	records := make([]*baseline.Record, len(patterns))
	for i, pattern := range patterns {
		var err error
		if records[i], err = baseline.RecordHits(ctx, b.fixture.Edge, slices.Concat(pattern.Addresses, pattern.Own)); err != nil {
			return err
		}
		for n := range pattern.Own {
			foreign, own := &records[i].Full[n], &records[i].Full[b.players+n]
			if !slices.Equal(foreign.Headers, own.Headers) || foreign.Body != own.Body {
				return fmt.Errorf("%s answers %q, and %s %q", foreign.Target, foreign.Headers, own.Target, own.Headers)
			}
		}
	}
	defer b.reportLookups(b.fixture.Lookups())
	for i, pattern := range patterns {
		foreign, own := *b.fixture.Edge, *b.fixture.Edge
		foreign.Name, own.Name = "foreign", "own"
		if err := b.measure(ctx, pattern.Pattern, []*baseline.Server{&foreign, &own}, []target{
			{foreign.Address, stream(&foreign, records[i], records[i].Full[:b.players], nil)},
			{own.Address, stream(&own, records[i], records[i].Full[b.players:], nil)},
		}); err != nil {
			return err
		}
	}
	return nil
}

// target is an address and the requests to it.
type target struct {
	address string
	*load.Stream
}

// measure runs all rounds of one kind of answer and prints the results.
func (b *bench) measure(ctx context.Context, title string, servers []*baseline.Server, loads []target) error {
	unpin, err := load.Pin(b.loadCPU)
	if err != nil {
		return err
	}
	defer unpin()
	t := newTable(title, servers, b.out)
	runtime.GC() // rather than during a measurement
	for round := range b.rounds {
		row := make([]measurement, len(servers))
		for position := range servers {
			// The order is reversed in every other round.
			i := position
			if round%2 == 1 {
				i = len(servers) - 1 - position
			}
			var before, after time.Duration
			var clockErr error
			loads[i].Connected = func() { before, clockErr = servers[i].ProcessorTime() } // not measured: CDNs keep their connections
			loads[i].Order = load.Random(len(loads[i].Requests), uint64(round))
			answers, err := load.Run(ctx, loads[i].address, b.duration, loads[i].Stream)
			if err == nil {
				err = answers[0].Check()
			}
			if err == nil {
				after, err = servers[i].ProcessorTime()
			}
			if err = errors.Join(err, clockErr); err != nil {
				return fmt.Errorf("measure %s: %w", servers[i].Name, err)
			}
			row[i] = measurement{Answers: answers[0], cpuTime: after - before}
		}
		t.add(row)
	}
	t.printSummary()
	return nil
}

// sizes returns the total size of all bodies, and of all distinct ones.
func sizes(r *baseline.Record) (all, different float64) {
	for i := range r.Full {
		all += float64(len(r.Body(&r.Full[i])))
	}
	for _, body := range r.Bodies {
		different += float64(len(body))
	}
	return all, different
}
