// Package compare measures Veneer beside the usual alternatives: each scenario is one kind of work,
// done by all subjects alternately on the same machine.
package compare

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/veneer-skins/veneer/bench/speed/results"
)

// Options select what is measured.
type Options struct {
	Edge    string // path of the edge's program
	Haproxy string // path of haproxy's configuration
	Modules string // directory of Node modules, in which sharp may be installed
	Only    string // the name of the only scenario; empty for all
	Quick   bool   // only checks that everything runs
	Encoder string // the edge's picture encoder; empty for its default
	Sizes   []int  // of sites in growth, in textures and players
	Out     io.Writer
	TB      testing.TB // of stack.RunWithTB
}

// scenario is one kind of work.
type scenario struct {
	name, measures, unit string
	moreIsBetter         bool
	warmUp, rounds       int // discarded rounds, and those that count
	// open opens the subjects, Veneer first. What it starts is closed with env.
	open func(s *env, ctx context.Context) ([]subject, error) //nolint:revive // so that methods of stage are such functions
}

// subject does the work of a scenario, or has a reason for not doing it, as in results.Subject.
type subject struct {
	name, version, missing, cannot string
	// measure does the work of a round, counted from the first to warm up.
	measure func(ctx context.Context, round int) (outcome, error)
}

// outcome is the figure of a round with its other figures, always the same ones.
type outcome struct {
	figure float64
	others []namedFigure
}

// namedFigure is one round of a results.Figure.
type namedFigure struct {
	name, unit string
	value      float64
}

// Run measures all scenarios. The caller sets the date, the commit and the machine. With an error
// it returns what was measured before, or nil if that is nothing.
func Run(ctx context.Context, options Options) (*results.Run, error) {
	s, err := newEnv(options)
	if err != nil {
		return nil, err
	}
	defer s.close()
	result := &results.Run{Variant: folderPart(options.Only), Quick: options.Quick}
	err = s.runScenarios(ctx, result)
	if len(result.Scenarios)+len(result.Latency) == 0 {
		return nil, err
	}
	var more error
	result.Programs, more = s.programs(ctx)
	result.Settings = s.settings
	return result, errors.Join(err, more)
}

// folderPart returns the name of a scenario in a form for a folder's name, so that a partial run
// does not replace a full one.
func folderPart(only string) string { return nonNamePattern.ReplaceAllString(only, "-") }

var nonNamePattern = regexp.MustCompile(`[^0-9A-Za-z]+`)

// runScenarios measures the selected scenarios, one after the other.
func (e *env) runScenarios(ctx context.Context, result *results.Run) error {
	const day = "mixed day"
	all := scenarios()
	if e.Only != "" && e.Only != day && !slices.ContainsFunc(all, func(sc scenario) bool { return sc.name == e.Only }) {
		return fmt.Errorf("there is no scenario %q", e.Only)
	}
	for i, next := range all {
		// Before new pictures evict those that are a day's hits.
		if i == len(memoryScenarios()) && e.wants(day) {
			var err error
			if result.Latency, err = e.measureDay(ctx); err != nil {
				return fmt.Errorf("%s: %w", day, err)
			}
		}
		if !e.wants(next.name) {
			continue
		}
		measured, err := e.run(ctx, next)
		if err != nil {
			return fmt.Errorf("%s: %w", next.name, err)
		}
		result.Scenarios = append(result.Scenarios, *measured)
	}
	return nil
}

// scenarios returns all scenarios in their order, those from memory first.
func scenarios() []scenario {
	return slices.Concat(memoryScenarios(), renderScenarios(), []scenario{encodingScenario()}, liveScenarios())
}

// run runs one scenario: its subjects alternate, in the opposite order in every other round, with
// some rounds to warm up.
func (e *env) run(ctx context.Context, sc scenario) (*results.Scenario, error) {
	began := time.Now()
	fmt.Fprintf(e.Out, "==> %s … ", sc.name)
	subjects, err := sc.open(e, ctx)
	if err != nil {
		return nil, err
	}
	warmUp, rounds := sc.warmUp, sc.rounds
	if e.Quick {
		warmUp, rounds = 0, 1
	}
	measured := &results.Scenario{Name: sc.name, Measures: sc.measures, Unit: sc.unit, MoreIsBetter: sc.moreIsBetter, WarmUp: warmUp}
	for _, subj := range subjects {
		measured.Subjects = append(measured.Subjects, results.Subject{Name: subj.name, Version: subj.version, Missing: subj.missing, Unsupported: subj.cannot})
	}
	for round := range warmUp + rounds {
		for position := range subjects {
			i := subjectInRound(position, len(subjects), round)
			if subjects[i].measure == nil {
				continue
			}
			out, err := subjects[i].measure(ctx, round)
			if err != nil {
				return nil, fmt.Errorf("%s, round %d: %w", subjects[i].name, round+1, err)
			}
			if round >= warmUp {
				appendRound(&measured.Subjects[i], out)
			}
		}
		fmt.Fprintf(e.Out, "\r==> %s … %d of %d rounds", sc.name, round+1, warmUp+rounds)
	}
	fmt.Fprintf(e.Out, ", %.0f s\n", time.Since(began).Seconds())
	return measured, nil
}

// subjectInRound returns the index of the subject at a position of a round.
func subjectInRound(position, n, round int) int {
	if round%2 == 1 {
		return n - 1 - position
	}
	return position
}

func appendRound(to *results.Subject, out outcome) {
	to.Rounds = append(to.Rounds, out.figure)
	for i, f := range out.others {
		if i == len(to.Figures) {
			to.Figures = append(to.Figures, results.Figure{Name: f.name, Unit: f.unit})
		}
		to.Figures[i].Rounds = append(to.Figures[i].Rounds, f.value)
	}
}
