package compare

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/veneer-skins/veneer/bench/speed/baseline"
	"github.com/veneer-skins/veneer/bench/speed/results"
	"github.com/veneer-skins/veneer/bench/system/stack"
)

// ScaleParts are the names of what Scale measures.
var ScaleParts = []string{"mixed", "edges", "cache", "growth"}

// Scale measures how the figures change with size: more views than a cache holds, more edges,
// larger caches, more textures and players. It also returns the cost of one thing of each kind, for
// capacity planning. The caller sets the date, the commit and the machine. With an error it returns
// what was measured before, which may have taken hours, or nil if that is nothing.
func Scale(ctx context.Context, options Options) (*results.Run, error) {
	s, err := newEnv(options)
	if err != nil {
		return nil, err
	}
	defer s.close()
	if !s.wants(ScaleParts...) {
		return nil, fmt.Errorf("there is no scenario %q", options.Only)
	}
	result := &results.Run{Variant: "scale", Quick: options.Quick}
	if options.Only != "" {
		result.Variant += "-" + folderPart(options.Only)
	}
	err = s.scale(ctx, result)
	if len(result.Scenarios)+len(result.Sweeps) == 0 {
		return nil, err
	}
	var more error
	result.Programs, more = s.programs(ctx)
	result.Settings = s.settings
	return result, errors.Join(err, more)
}

// scale measures the selected parts, one after the other.
func (s *env) scale(ctx context.Context, result *results.Run) error {
	if s.wants("mixed") {
		measured, err := s.run(ctx, mixedScenario())
		if err != nil {
			return fmt.Errorf("mixed: %w", err)
		}
		result.Scenarios = append(result.Scenarios, *measured)
	}
	if s.wants("edges") {
		sweep, costs, err := s.edges(ctx)
		missing, ok := errors.AsType[*baseline.MissingError](err)
		switch {
		case ok:
			s.missing["haproxy"] = missing // reported by programs
			fmt.Fprintf(s.Out, "==> edges: skipped: %v\n", missing)
		case err != nil:
			return fmt.Errorf("edges: %w", err)
		default:
			result.Sweeps, result.Costs = append(result.Sweeps, *sweep), costs
		}
	}
	if s.zipf != nil {
		costs, err := s.memoryCosts(ctx, s.zipf)
		if err != nil {
			return err
		}
		result.Costs = append(result.Costs, costs...)
		if err := stack.RunWithTB(ctx, func(tb testing.TB) {
			tb.Helper()
			result.Costs = append(result.Costs, s.storeCosts(tb, s.zipf)...)
		}); err != nil {
			return fmt.Errorf("costs of files: %w", err)
		}
	}
	if s.wants("cache") {
		sweep, err := s.simulateCache(ctx)
		if err != nil {
			return fmt.Errorf("cache: %w", err)
		}
		result.Sweeps = append(result.Sweeps, *sweep)
	}
	if s.wants("growth") {
		sweep, err := s.growth(ctx)
		if err != nil {
			return fmt.Errorf("growth: %w", err)
		}
		result.Sweeps = append(result.Sweeps, *sweep)
	}
	return nil
}

// wants reports whether one of the parts is selected.
func (s *env) wants(parts ...string) bool {
	for _, part := range parts {
		if s.Only == "" || s.Only == part {
			return true
		}
	}
	return false
}

func mixedScenario() scenario {
	return scenario{
		name: "mixed", unit: "answers/s", moreIsBetter: true, warmUp: zipfWarmUp, rounds: zipfRounds, open: (*env).mixedViews,
		measures: "Two million views in Zipf order, more than fit in a cache. Heads of 8 to 256 pixels; each cache in front has an edge of its own behind it and as many bytes as that. " +
			"All start with the most popular ones in memory",
	}
}
