// Command faults starts a cluster on this machine and keeps it running until it is stopped, or
// injects faults into it and writes the results.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/veneer-skins/veneer/bench/speed/results"
	"github.com/veneer-skins/veneer/bench/system/faults"
	"github.com/veneer-skins/veneer/bench/system/stack"
)

func main() { stack.Main("faults", run) }

func run(ctx context.Context, args []string) error {
	options := faults.Options{Out: os.Stdout, ClusterOptions: stack.ClusterOptions{RepoRoot: "."}}
	flags := flag.NewFlagSet("faults", flag.ContinueOnError)
	flags.StringVar(&options.Etcd, "etcd", "", "path of etcd")
	flags.StringVar(&options.MinIO, "minio", "", "path of MinIO")
	flags.StringVar(&options.MC, "mc", "mc", "path of MinIO's client")
	flags.StringVar(&options.Prometheus, "prometheus", "", "path of Prometheus, which monitors the cluster")
	flags.StringVar(&options.NodeExporter, "node-exporter", "", "path of Prometheus's node exporter")
	flags.BoolVar(&options.Direct, "direct", false, "have cores find the primary themselves")
	flags.StringVar(&options.WrongClock, "wrong-clock", "", "path of a core with an adjustable clock")
	flags.StringVar(&options.Only, "only", "", "the name of the only fault")
	stay := flags.Bool("stay", false, "start the cluster without faults and run it until a signal")
	commit := flags.String("commit", "", "the commit under test")
	report := flags.String("report", "", "the page to end with the new table, once all faults were tried")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *stay {
		err := stack.RunWithTB(ctx, func(tb testing.TB) {
			tb.Helper()
			stack.StartCluster(tb, options.ClusterOptions).Describe(options.Out)
			<-tb.Context().Done()
		})
		if errors.Is(err, context.Canceled) {
			return nil
		}
		return err
	}
	machine, err := results.ThisMachine()
	if err != nil {
		return err
	}
	began := time.Now()
	var rows []faults.Row
	failed := stack.RunWithTB(ctx, func(tb testing.TB) {
		tb.Helper()
		faults.Run(tb, options, func(row faults.Row) { rows = append(rows, row) })
	})
	if len(rows) == 0 {
		return failed
	}
	var table strings.Builder
	fmt.Fprintf(&table, "`make faults` at commit %s, %s, on %s. It took %.0f s.\n\n", *commit, began.UTC().Format("2006-01-02 15:04 UTC"), machine, time.Since(began).Seconds())
	if err := faults.WriteTable(&table, rows); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(options.Out, "\n%s", &table); err != nil || failed != nil {
		return errors.Join(failed, err)
	}
	verdict := faults.Verdict(rows)
	if *report == "" || options.Only != "" || options.Direct {
		return verdict
	}
	return errors.Join(verdict, rewrite(*report, table.String()))
}

// rewrite puts a table at the end of a page, below the line behind which everything is generated.
func rewrite(path, table string) error {
	const marker = "<!-- make faults writes what follows -->\n"
	page, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	prefix, _, found := strings.Cut(string(page), marker)
	if !found {
		return fmt.Errorf("%s has no line %q", path, marker)
	}
	return os.WriteFile(path, []byte(prefix+marker+"\n"+table), 0o644)
}
