package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/core/backup"
	"github.com/veneer-skins/veneer/core/postgres"
	"github.com/veneer-skins/veneer/shared/blobstore"
	"github.com/veneer-skins/veneer/shared/cli"
	"github.com/veneer-skins/veneer/shared/config"
)

// backupRetry is the time after which a scheduled backup that failed is tried again.
const backupRetry = 10 * time.Minute

// backupCommand makes a backup, or one at each interval until ctx ends.
func backupCommand(ctx context.Context, i cli.Invocation) error {
	flags := cli.Flags("core backup")
	keep := flags.Int("keep", 30, "keep this many backups, and the texture files that they have; 0: all")
	every := flags.Duration("every", 0, "back up at this interval until SIGTERM; 0s: once")
	sweepAge := flags.Duration("sweep", 0, "after each backup remove files that no texture references and that were stored before this time, as core sweep does; 0s: none")
	path, err := i.ParseArg(flags, "DIR")
	if err != nil {
		return err
	}
	switch {
	case *keep < 0:
		return fmt.Errorf("-keep is %d, but must not be negative", *keep)
	case *every < 0:
		return fmt.Errorf("-every is %s, but must not be negative", *every)
	case *sweepAge < 0 || *sweepAge > 0 && *sweepAge <= *every:
		return fmt.Errorf("-sweep is %s, but must be longer than -every, %s", *sweepAge, *every)
	}
	cfg, err := config.Read[sweepConfig](prefix, i.Environ)
	if err != nil {
		return err
	}
	cfg.Objects.ReadOnly = *sweepAge == 0
	job := backupJob{cfg: cfg, keep: *keep, sweepAge: *sweepAge, out: i.Stdout}
	if job.files, err = objectStore(cfg.Objects); err != nil {
		return err
	}
	if job.directory, err = backup.Open(path); err != nil {
		return err
	}
	if *every == 0 {
		_, err := job.run(ctx)
		return err
	}
	job.repeat(ctx, *every)
	return nil
}

// backupJob makes backups, and sweeps after each unless sweepAge is 0.
type backupJob struct {
	cfg       sweepConfig
	files     *blobstore.Store
	directory *backup.Directory
	keep      int
	sweepAge  time.Duration
	out       io.Writer
}

// repeat makes a backup at each interval until ctx ends. After a start it takes the last one into account.
func (j *backupJob) repeat(ctx context.Context, every time.Duration) {
	for pause := firstPause(time.Now(), j.directory.Newest(), every); ; {
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		isMade, err := j.run(ctx)
		pause = nextPause(isMade, every)
		if err != nil && ctx.Err() == nil {
			fmt.Fprintf(j.out, "failed: %v\n", err)
		}
	}
}

// firstPause returns the time until a backup after a start, 0 or less for at once. A newest one of the future counts as of
// now.
func firstPause(now, newest time.Time, every time.Duration) time.Duration {
	return min(every, newest.Add(every).Sub(now))
}

// nextPause returns the time until the next backup. One that was made is not made again soon, whatever the sweep says: it
// would replace an older one.
func nextPause(isMade bool, every time.Duration) time.Duration {
	if isMade {
		return every
	}
	return min(every, backupRetry)
}

// run makes a backup, and reports whether there is one: an error may be about files that the site had lost, or
// about the sweep.
func (j *backupJob) run(ctx context.Context) (isMade bool, err error) {
	db, err := openReady(ctx, j.cfg.Config)
	if err != nil {
		return false, err
	}
	defer db.Close()
	if err := j.files.Ready(ctx); err != nil {
		return false, config.In(prefix+"OBJECTS_", err)
	}
	began := time.Now()
	report, err := j.directory.Create(ctx, cmp.Or(j.cfg.ListenURL, j.cfg.URL), db, j.files, j.keep)
	if err != nil {
		return report.IsMade, config.In(prefix, err)
	}
	printBackupReport(j.out, report)
	fmt.Fprintf(j.out, "%d files were new, %d dropped; %s\n", report.Copied, report.Dropped, time.Since(began).Round(time.Millisecond))
	if j.sweepAge == 0 || report.Files == 0 { // a sweep takes a database without textures for a wrong one
		return true, nil
	}
	opts := core.SweepOptions{Before: began.Add(-j.sweepAge)}
	return true, db.WithoutBackup(ctx, func() error { return sweep(ctx, j.out, db, j.files, opts, sweepProgress) })
}

// printBackupReport writes a line about a backup.
func printBackupReport(out io.Writer, r backup.Report) {
	fmt.Fprintf(out, "backup %s is whole: a dump and %d texture files, %d bytes\n", r.Name, r.Files, r.Bytes)
}

// backupVerifyCommand checks a backup.
func backupVerifyCommand(ctx context.Context, i cli.Invocation) error {
	flags := cli.Flags("core backup verify")
	name := flags.String("name", "", "name of the backup, as 2026-11-30T02-00-00.000Z (default: the newest)")
	path, err := i.ParseArg(flags, "DIR")
	if err != nil {
		return err
	}
	directory, err := backup.Open(path)
	if err != nil {
		return err
	}
	report, err := directory.Verify(ctx, *name)
	if err != nil {
		return err
	}
	printBackupReport(i.Stdout, report)
	return nil
}

// restoreCommand restores a backup and migrates its schema.
func restoreCommand(ctx context.Context, i cli.Invocation) error {
	flags := cli.Flags("core restore")
	name := flags.String("name", "", "name of the backup, as 2026-11-30T02-00-00.000Z (default: the newest)")
	replace := flags.Bool("replace", false, "drop what the database has, once the backup is restored")
	path, err := i.ParseArg(flags, "DIR")
	if err != nil {
		return err
	}
	cfg, err := config.Read[migrateConfig](prefix, i.Environ)
	if err != nil {
		return err
	}
	files, err := objectStore(cfg.Objects)
	if err != nil {
		return err
	}
	directory, err := backup.Open(path)
	if err != nil {
		return err
	}
	owner := cfg.AsOwner()
	db, err := postgres.Open(ctx, owner)
	if err != nil {
		return config.In(prefix, err)
	}
	defer db.Close()
	report, err := directory.Restore(ctx, owner.URL, db, files, *name, *replace)
	if err != nil {
		return config.In(prefix, err)
	}
	fmt.Fprintf(i.Stdout, "restored the backup %s: all rows and %d texture files, of which %d were missing; all sessions and sign-ins have ended\n",
		report.Name, report.Files, report.Copied)
	return config.In(prefix, migrateSchema(ctx, db, cfg.Config, i.Stdout))
}
