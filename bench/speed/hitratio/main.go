// Command hitratio simulates the hit ratio of the edge's picture cache, beside ristretto and otter
// with their own policies, an exact LRU, all of the same bytes, and the best static choice: the
// pictures most requested for each byte, known in hindsight. The trace is synthetic, and rendering
// is simulated.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/veneer-skins/veneer/bench/speed/workload"
)

func main() {
	if err := run(context.Background(), os.Stdout, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "ratio:", err)
		os.Exit(1)
	}
}

// kind is a kind of trace and the goals for the cache, in percentage points.
type kind struct {
	name           string
	exponent       float64
	shifts         int     // how often other views become popular
	minOverLRU     float64 // at least so many above it
	maxUnderStatic float64 // at most so many below it
	checkStatic    bool
}

var kinds = []kind{
	{name: "Zipf 0.8", exponent: 0.8, maxUnderStatic: 3, checkStatic: true},
	{name: "Zipf 0.9", exponent: 0.9, maxUnderStatic: 3, checkStatic: true},
	{name: "Zipf 1.0", exponent: 1.0, maxUnderStatic: 3, checkStatic: true},
	{name: "Zipf 0.9, shifting", exponent: 0.9, shifts: 10, minOverLRU: -1},
}

func run(ctx context.Context, out io.Writer, args []string) error {
	flags := flag.NewFlagSet("ratio", flag.ContinueOnError)
	views := flags.Int("views", 2_000_000, "how many different views there are")
	each := flags.Int("each", 30, "how often each is requested on average")
	bytes := flags.Int64("bytes", 256<<20, "the budget, in bytes")
	only := flags.String("only", "", "the name of the only trace to run")
	if err := flags.Parse(args); err != nil {
		return err
	}

	fmt.Fprintln(out, "| trace | requests | views seen | edge | ristretto | otter | LRU | best static | edge − ristretto | edge − LRU | edge − static |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
	var failures []error
	for _, k := range kinds {
		if *only != "" && *only != k.name {
			continue
		}
		w := workload.New(*views, *views**each, k.exponent, k.shifts)
		edge, overhead, err := w.EdgeHitRatio(ctx, *bytes, 0)
		if err != nil {
			return fmt.Errorf("%s: %w", k.name, err)
		}
		cost := func(view int) int64 { return int64(w.Size(view)) + overhead }
		lru, static := percent(simulateLRU(w.Trace, *views, cost, *bytes), w.Trace), percent(simulateStatic(w.Trace, *views, cost, *bytes), w.Trace)
		total := int64(0)
		for view := range *views {
			total += cost(view)
		}
		ristrettoHits, err := simulateBestRistretto(w.Trace, cost, *bytes, *bytes*int64(*views)/total)
		if err != nil {
			return fmt.Errorf("%s: ristretto: %w", k.name, err)
		}
		otterHits, err := simulateOtter(w.Trace, cost, *bytes)
		if err != nil {
			return fmt.Errorf("%s: otter: %w", k.name, err)
		}
		ristretto, otter := percent(ristrettoHits, w.Trace), percent(otterHits, w.Trace)
		overLRU, overStatic := edge-lru, edge-static
		fmt.Fprintf(out, "| %s | %d | %d | %.1f %% | %.1f %% | %.1f %% | %.1f %% | %.1f %% | %+.1f | %+.1f | %+.1f |\n",
			k.name, len(w.Trace), w.Seen(), edge, ristretto, otter, lru, static, edge-ristretto, overLRU, overStatic)
		if overLRU < k.minOverLRU || k.checkStatic && overStatic < -k.maxUnderStatic {
			failures = append(failures, fmt.Errorf("%s: the edge is %+.1f points beside LRU and %+.1f beside the best static choice", k.name, overLRU, overStatic))
		}
	}
	return errors.Join(failures...)
}

func percent(hits int, trace []uint32) float64 { return 100 * float64(hits) / float64(len(trace)) }
