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

// sweepProgress is the time between two lines of progress, if it is not given.
const sweepProgress = 10 * time.Second

// sweepCommand removes texture files that no texture references. It returns an error if
// textures have no file, which an operator must repair.
func sweepCommand(ctx context.Context, i cli.Invocation) error {
	flags := cli.Flags("core sweep")
	age := flags.Duration("age", 24*time.Hour, "keep files that were stored within this time")
	dry := flags.Bool("dry-run", false, "remove nothing, only report")
	progress := flags.Duration("progress", sweepProgress, "time between two lines of progress")
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

	opts := core.SweepOptions{Before: time.Now().Add(-*age), DryRun: *dry}
	if *dry {
		return sweep(ctx, i.Stdout, db, files, opts, *progress)
	}
	return db.WithoutBackup(ctx, func() error { return sweep(ctx, i.Stdout, db, files, opts, *progress) })
}

// sweep runs a sweep and writes its findings, and a line at each interval of progress.
func sweep(ctx context.Context, out io.Writer, db *postgres.DB, files *blobstore.Store, opts core.SweepOptions, progress time.Duration) error {
	began := time.Now()
	missing := make(chan string)
	opts.OnMissing = func(tid core.TextureID, hash skin.Hash) {
		missing <- fmt.Sprintf("texture %d has no file: %s", tid, hash)
	}
	sweep := core.NewSweep(db, files, opts)
	ended := make(chan error)
	go func() { ended <- sweep.Run(ctx) }()
	ticker := time.NewTicker(progress)
	defer ticker.Stop()
	for {
		select {
		case line := <-missing:
			fmt.Fprintln(out, line)
		case <-ticker.C:
			printSweepReport(out, "so far", sweep.Report(), time.Since(began))
		case err := <-ended:
			printSweepReport(out, "in all", sweep.Report(), time.Since(began))
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
