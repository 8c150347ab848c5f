// Command bench measures Veneer beside the usual alternatives and writes the results: JSON, a table
// and plots.
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
	"testing"
	"time"

	"github.com/veneer-skins/veneer/bench/speed/baseline"
	"github.com/veneer-skins/veneer/bench/speed/compare"
	"github.com/veneer-skins/veneer/bench/speed/results"
	"github.com/veneer-skins/veneer/bench/system/stack"
)

func main() {
	if isRole, err := baseline.ServeRole(os.Args[1:]); isRole {
		exit(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	exit(err)
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func run(ctx context.Context, args []string, out io.Writer) error {
	options := compare.Options{Out: out}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.StringVar(&options.Edge, "edge", ".dev/bin/edge", "path of the edge's program")
	flags.StringVar(&options.Modules, "modules", ".dev/node/sharp", "directory of sharp's modules of Node, where deploy/dev/node installs them")
	flags.StringVar(&options.Only, "only", "", "the name of the only scenario")
	flags.BoolVar(&options.Quick, "quick", false, "only see whether everything runs; claims no figures")
	flags.StringVar(&options.Haproxy, "haproxy", "deploy/compose/haproxy.cfg", "path of haproxy's configuration")
	flags.Func("sizes", "how many textures and players sites have that grow, separated by commas (default 10000,1000000,10000000; quick 1000,2000)", func(text string) error {
		return json.Unmarshal([]byte("["+text+"]"), &options.Sizes)
	})
	flags.StringVar(&options.Encoder, "encoder", "", "the edge's EDGE_ENCODER, if not its default")
	scale := flags.Bool("scale", false, "instead of all that, measure what changes as all grows")
	soak := flags.Duration("soak", 0, "instead of all that, watch what the programs have in use for so long")
	commit := flags.String("commit", "", "the commit that is measured")
	resultsDir := flags.String("results", "bench/results", "where to write the results")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if options.Sizes == nil {
		options.Sizes = []int{10_000, 1_000_000, 10_000_000}
		if options.Quick {
			options.Sizes = []int{1000, 2000}
		}
	}
	began := time.Now()
	machine, err := results.ThisMachine()
	if err != nil {
		return err
	}
	var r *results.Run
	failed := stack.RunWithTB(ctx, func(tb testing.TB) {
		tb.Helper()
		options.TB = tb
		var err error
		switch {
		case *soak > 0:
			r, err = compare.Soak(tb.Context(), options, *soak)
		case *scale:
			r, err = compare.Scale(tb.Context(), options)
		default:
			r, err = compare.Run(tb.Context(), options)
		}
		if err != nil {
			tb.Fatal(err)
		}
	})
	if r == nil {
		return failed
	}
	r.Date, r.Commit, r.Machine, r.Seconds = began.UTC(), *commit, machine, time.Since(began).Seconds()
	if failed != nil {
		r.Failed = failed.Error()
	}
	folder, err := r.Write(*resultsDir)
	if err != nil {
		return errors.Join(failed, err)
	}
	fmt.Fprintf(out, "\n%s in %.0f s\n\n", folder, time.Since(began).Seconds())
	return errors.Join(failed, r.WriteTable(out))
}
