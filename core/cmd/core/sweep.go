package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/core/postgres"
	"github.com/veneer-skins/veneer/shared/blobstore"
	"github.com/veneer-skins/veneer/shared/cli"
	"github.com/veneer-skins/veneer/shared/config"
	"github.com/veneer-skins/veneer/shared/skin"
)

// sweepConfig is the settings of core sweep.
type sweepConfig struct {
	postgres.Config
	Objects blobstore.Config `envPrefix:"OBJECTS_"`
}

// sweepCommand removes texture files that no texture references. It returns an error if
// textures have no file, which an operator must repair.
func sweepCommand(ctx context.Context, i cli.Invocation) error {
	flags := cli.Flags("core sweep")
	age := flags.Duration("age", 24*time.Hour, "keep files that were stored within this time")
	dry := flags.Bool("dry-run", false, "remove nothing, only report")
	progress := flags.Duration("progress", 10*time.Second, "time between two lines of progress")
	if _, err := i.ParseArg(flags, ""); err != nil {
		return err
	}
	switch {
	case *age < 0:
		return fmt.Errorf("-age is %s, but must not be negative", *age)
	case *progress <= 0:
		return fmt.Errorf("-progress is %s, but must be longer than 0", *progress)
	}
	cfg, err := config.Read[sweepConfig](prefix, i.Environ)
	if err != nil {
		return err
	}
	cfg.Objects.ReadOnly = *dry
	files, err := objectStore(cfg.Objects)
	if err != nil {
		return err
	}
	db, err := openReady(ctx, cfg.Config)
	if err != nil {
		return err
	}
	defer db.Close()
	if err := files.Ready(ctx); err != nil {
		return config.In(prefix+"OBJECTS_", err)
	}

	began := time.Now()
	missing := make(chan string)
	sweep := core.NewSweep(db, files, core.SweepOptions{
		Before: began.Add(-*age), DryRun: *dry,
		OnMissing: func(tid core.TextureID, hash skin.Hash) {
			missing <- fmt.Sprintf("texture %d has no file: %s", tid, hash)
		},
	})
	ended := make(chan error)
	go func() { ended <- sweep.Run(ctx) }()
	ticker := time.NewTicker(*progress)
	defer ticker.Stop()
	for {
		select {
		case line := <-missing:
			fmt.Fprintln(i.Stdout, line)
		case <-ticker.C:
			printSweepReport(i.Stdout, "so far", sweep.Report(), time.Since(began))
		case err := <-ended:
			printSweepReport(i.Stdout, "in all", sweep.Report(), time.Since(began))
			return err
		}
	}
}

// printSweepReport writes a line with the counts of a sweep.
func printSweepReport(out io.Writer, when string, r core.SweepReport, elapsed time.Duration) {
	const mebi = 1 << 20
	fmt.Fprintf(out, "%s: %d files seen, %d named by no texture (%.1f MiB), %d removed, %d too young, %d in use, %d leftovers of uploads, %.1f MiB freed, "+
		"%d textures without a file; %s, %.0f files a second\n",
		when, r.Files, r.Orphans, float64(r.OrphanBytes)/mebi, r.Removed, r.TooNew, r.Locked, r.TempFiles, float64(r.FreedBytes)/mebi,
		r.Missing, elapsed.Round(time.Millisecond), float64(r.Files)/elapsed.Seconds())
}
