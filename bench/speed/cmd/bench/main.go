// Command bench measures Veneer beside the usual alternatives and writes the results: JSON and
// tables.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/veneer-skins/veneer/bench/speed/baseline"
	"github.com/veneer-skins/veneer/bench/speed/compare"
	"github.com/veneer-skins/veneer/bench/speed/results"
	"github.com/veneer-skins/veneer/bench/system/stack"
)

func main() {
	baseline.ServeRole()
	stack.Main("bench", run)
}

func run(ctx context.Context, args []string) error {
	options := compare.Options{Out: os.Stdout}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.Func("only", "a scenario, or group of scenarios, instead of the comparison; may be given several times:\n"+compare.Names(), func(name string) error {
		options.Only = append(options.Only, name)
		return nil
	})
	flags.IntVar(&options.Rounds, "rounds", 0, "how many rounds of each scenario count, if not its own number")
	flags.BoolVar(&options.Quick, "quick", false, "only see whether everything runs; claims no figures")
	flags.DurationVar(&options.Soak, "soak", 20*time.Minute, "duration of the scenario soak")
	flags.Func("sizes", "how many textures and players sites have that grow, separated by commas (default 10000,1000000,10000000; quick 1000,2000)", func(text string) error {
		return json.Unmarshal([]byte("["+text+"]"), &options.Sizes)
	})
	commit := flags.String("commit", "", "the commit that is measured")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if options.Sizes == nil {
		options.Sizes = []int{10_000, 1_000_000, 10_000_000}
		if options.Quick {
			options.Sizes = []int{1000, 2000}
		}
	}
	machine, err := results.ThisMachine()
	if err != nil {
		return err
	}
	began := time.Now()
	r := &results.Run{Date: began.UTC(), Commit: *commit, Machine: machine}
	failed := stack.RunWithTB(ctx, func(tb testing.TB) {
		tb.Helper()
		options.TB = tb
		compare.Run(options, r)
	})
	if len(r.Scenarios)+len(r.Sweeps) == 0 {
		return cmp.Or(failed, errors.New("nothing was measured"))
	}
	r.Seconds = time.Since(began).Seconds()
	if failed != nil {
		r.Failed, _, _ = strings.Cut(strings.TrimSpace(failed.Error()), "\n") // logs of programs follow
	}
	folder, err := r.Write("bench/results")
	if err != nil {
		return errors.Join(failed, err)
	}
	fmt.Fprintf(options.Out, "\n%s in %.0f s\n\n", folder, r.Seconds)
	return errors.Join(failed, r.WriteTable(options.Out))
}
