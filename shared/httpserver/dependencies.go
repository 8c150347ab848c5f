package httpserver

import (
	"context"
	"log/slog"
	"time"

	"github.com/veneer-skins/veneer/shared/config"
)

// Intervals between probes of an unavailable dependency, and between log lines about it.
const (
	probeInterval = time.Second
	relogInterval = time.Minute
)

// CheckDependencies probes a program's dependencies before it listens. It returns the first
// final config.Error, as only the operator of this program can fix that. Any other error may
// be fixed elsewhere, by starting another machine for instance: it is logged at once and each
// minute in the background, until the dependency is available or ctx ends.
func CheckDependencies(ctx context.Context, log *slog.Logger, checks ...Check) error {
	results := make([]chan error, len(checks))
	for i, check := range checks {
		results[i] = make(chan error, 1)
		go func() { results[i] <- probe(ctx, check) }()
	}
	probeErrs := make([]error, len(checks))
	for i := range checks {
		probeErrs[i] = <-results[i]
		if config.IsFinal(probeErrs[i]) {
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

// probe probes a dependency, for at most probeTimeout.
func probe(ctx context.Context, check Check) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	return check.Probe(ctx)
}

// logUntilAvailable logs a dependency that was just logged as unavailable, until it is
// available or ctx ends.
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
