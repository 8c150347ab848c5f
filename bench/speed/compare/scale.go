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
func (e *env) scale(ctx context.Context, result *results.Run) error {
	if e.wants("mixed") {
		measured, err := e.run(ctx, mixedScenario())
		if err != nil {
			return fmt.Errorf("mixed: %w", err)
		}
		result.Scenarios = append(result.Scenarios, *measured)
	}
	if e.wants("edges") {
		sweep, costs, err := e.edges(ctx)
		missing, ok := errors.AsType[*baseline.MissingError](err)
		switch {
		case ok:
			e.missing["haproxy"] = missing // reported by programs
			fmt.Fprintf(e.Out, "==> edges: skipped: %v\n", missing)
		case err != nil:
			return fmt.Errorf("edges: %w", err)
		default:
			result.Sweeps, result.Costs = append(result.Sweeps, *sweep), costs
		}
	}
	if e.zipf != nil {
		costs, err := e.memoryCosts(ctx, e.zipf)
		if err != nil {
			return err
		}
		result.Costs = append(result.Costs, costs...)
		if err := stack.RunWithTB(ctx, func(tb testing.TB) {
			tb.Helper()
			result.Costs = append(result.Costs, e.storeCosts(tb, e.zipf)...)
		}); err != nil {
			return fmt.Errorf("costs of files: %w", err)
		}
	}
	if e.wants("cache") {
		sweep, err := e.simulateCache(ctx)
		if err != nil {
			return fmt.Errorf("cache: %w", err)
		}
		result.Sweeps = append(result.Sweeps, *sweep)
	}
	if e.wants("growth") {
		sweep, err := e.growth(ctx)
		if err != nil {
			return fmt.Errorf("growth: %w", err)
		}
		result.Sweeps = append(result.Sweeps, *sweep)
	}
	return nil
}

// wants reports whether one of the parts is selected.
func (e *env) wants(parts ...string) bool {
	for _, part := range parts {
		if e.Only == "" || e.Only == part {
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
