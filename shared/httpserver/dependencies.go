package httpserver

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/veneer-skins/veneer/shared/config"
)

// Times of waiting for a dependency: between two probes, and between two lines that say
// that it is still not there.
const (
	probeInterval = time.Second
	relogInterval = time.Minute
)

// CheckDependencies probes what a program needs before it listens. It returns the first error that is
// a settings.WrongError, as only the operator of this program can mend that. Everything
// else may be mended by another machine, as when that starts later: it is logged at once
// and each minute, until the dependency is there or ctx ends, and nothing waits for it.
func CheckDependencies(ctx context.Context, log *slog.Logger, checks ...Check) error {
	results := make([]chan error, len(checks))
	for i, check := range checks {
		results[i] = make(chan error, 1)
		go func() { results[i] <- probe(ctx, check) }()
	}
	probeErrs := make([]error, len(checks))
	for i := range checks {
		probeErrs[i] = <-results[i]
		if _, isSettingError := errors.AsType[config.SettingError](probeErrs[i]); isSettingError {
			return probeErrs[i]
		}
	}
	for i, check := range checks {
		if probeErrs[i] != nil {
			logUnavailable(ctx, log, check, probeErrs[i])
			go logUntilAvailable(ctx, log, check)
		}
	}
	return nil
}

func logUnavailable(ctx context.Context, log *slog.Logger, check Check, probeErr error) {
	log.WarnContext(ctx, "dependency is not available", "dependency", check.Name, "error", probeErr)
}

// probe probes a dependency, for no longer than probeTimeout.
func probe(ctx context.Context, check Check) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	return check.Probe(ctx)
}

// logUntilAvailable logs what a dependency lacks, which was told just now, until it lacks nothing or
// ctx ends.
func logUntilAvailable(ctx context.Context, log *slog.Logger, check Check) {
	for loggedAt := time.Now(); ; {
		select {
		case <-ctx.Done():
			return
		case <-time.After(probeInterval):
		}
		probeErr := probe(ctx, check)
		switch now := time.Now(); {
		case ctx.Err() != nil:
			return
		case probeErr == nil:
			log.InfoContext(ctx, "dependency is available", "dependency", check.Name)
			return
		case now.Sub(loggedAt) >= relogInterval:
			logUnavailable(ctx, log, check, probeErr)
			loggedAt = now
		}
	}
}
