package serve

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/veneer-skins/veneer/shared/settings"
)

// Times of waiting for a dependency: between two probes, and between two lines that say
// that it is still not there.
const (
	awaitPause = time.Second
	awaitTell  = time.Minute
)

// Await probes what a program needs before it listens. It returns the first error that is
// a settings.WrongError, as only the operator of this program can mend that. Everything
// else may be mended by another machine, as when that starts later: it is logged at once
// and each minute, until the dependency is there or ctx ends, and nothing waits for it.
func Await(ctx context.Context, log *slog.Logger, checks ...Check) error {
	probed := make([]chan error, len(checks))
	for i, check := range checks {
		probed[i] = make(chan error, 1)
		go func() { probed[i] <- probe(ctx, check) }()
	}
	flaws := make([]error, len(checks))
	for i := range checks {
		flaws[i] = <-probed[i]
		if _, wrong := errors.AsType[settings.WrongError](flaws[i]); wrong {
			return flaws[i]
		}
	}
	for i, check := range checks {
		if flaws[i] != nil {
			tell(ctx, log, check, flaws[i])
			go await(ctx, log, check)
		}
	}
	return nil
}

func tell(ctx context.Context, log *slog.Logger, check Check, flaw error) {
	log.WarnContext(ctx, "dependency is not available", "dependency", check.Name, "error", flaw)
}

// probe probes a dependency, for no longer than probeTimeout.
func probe(ctx context.Context, check Check) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	return check.Probe(ctx)
}

// await logs what a dependency lacks, which was told just now, until it lacks nothing or
// ctx ends.
func await(ctx context.Context, log *slog.Logger, check Check) {
	for told := time.Now(); ; {
		select {
		case <-ctx.Done():
			return
		case <-time.After(awaitPause):
		}
		flaw := probe(ctx, check)
		switch now := time.Now(); {
		case ctx.Err() != nil:
			return
		case flaw == nil:
			log.InfoContext(ctx, "dependency is available", "dependency", check.Name)
			return
		case now.Sub(told) >= awaitTell:
			tell(ctx, log, check, flaw)
			told = now
		}
	}
}
