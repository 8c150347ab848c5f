// Package side measures Veneer beside what people would otherwise use: each scenario is
// one kind of work, done by all subjects in turns on the same machine.
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

// Options say what is measured and with what.
type Options struct {
	Edge    string // path of the edge's program
	Haproxy string // path of a configuration of haproxy's
	Modules string // directory of the modules of Node, in which sharp may be installed
	Only    string // the name of the only scenario; empty for all
	Quick   bool   // only sees whether everything runs
	Encoder string // the edge's of pictures; empty for its default
	Sizes   []int  // of sites that grow, in textures and players
	Out     io.Writer
	TB      testing.TB // of system.Main
}

// scenario is one kind of work.
type scenario struct {
	name, measures, unit string
	moreIsBetter         bool
	warmUp, rounds       int // rounds that do not count, and those that do
	// open makes the subjects ready, Veneer first. What it starts is closed with
	// the stage.
	open func(s *env, ctx context.Context) ([]subject, error) //nolint:revive // so that methods of stage are such functions
}

// subject does the work of a scenario, or says why not, as in report.Subject.
type subject struct {
	name, version, missing, cannot string
	// measure does the work of a round, counted from the first to warm up.
	measure func(ctx context.Context, round int) (outcome, error)
}

// outcome is the figure of a round, and what else was measured in it, always the same
// things.
type outcome struct {
	figure float64
	others []namedFigure
}

// namedFigure is one figure of a round for report.Figure.
type namedFigure struct {
	name, unit string
	value      float64
}

// Run measures all scenarios. The date, the commit and the machine are the caller's to
// tell. With an error comes what was measured before it, or nil if that is nothing.
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

// folderPart returns the name of a part of a run as that of a folder may have it, so that it
// does not take the place of the whole.
func folderPart(only string) string { return nonNamePattern.ReplaceAllString(only, "-") }

var nonNamePattern = regexp.MustCompile(`[^0-9A-Za-z]+`)

// runScenarios measures the scenarios that are wanted, one after the other.
func (s *env) runScenarios(ctx context.Context, result *results.Run) error {
	const day = "mixed day"
	all := scenarios()
	if s.Only != "" && s.Only != day && !slices.ContainsFunc(all, func(sc scenario) bool { return sc.name == s.Only }) {
		return fmt.Errorf("there is no scenario %q", s.Only)
	}
	for i, next := range all {
		// Before new pictures take the place of those that a day's hits are.
		if i == len(memoryScenarios()) && s.wants(day) {
			var err error
			if result.Latency, err = s.measureDay(ctx); err != nil {
				return fmt.Errorf("%s: %w", day, err)
			}
		}
		if !s.wants(next.name) {
			continue
		}
		measured, err := s.run(ctx, next)
		if err != nil {
			return fmt.Errorf("%s: %w", next.name, err)
		}
		result.Scenarios = append(result.Scenarios, *measured)
	}
	return nil
}

// scenarios returns all in the order in which they are run, those from memory first.
func scenarios() []scenario {
	return slices.Concat(memoryScenarios(), renderScenarios(), []scenario{encodingScenario()}, liveScenarios())
}

// run runs one scenario: its subjects take turns, in every other round in the opposite
// order, to warm up first.
func (s *env) run(ctx context.Context, sc scenario) (*results.Scenario, error) {
	began := time.Now()
	fmt.Fprintf(s.Out, "==> %s … ", sc.name)
	subjects, err := sc.open(s, ctx)
	if err != nil {
		return nil, err
	}
	warmUp, rounds := sc.warmUp, sc.rounds
	if s.Quick {
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
		fmt.Fprintf(s.Out, "\r==> %s … %d of %d rounds", sc.name, round+1, warmUp+rounds)
	}
	fmt.Fprintf(s.Out, ", %.0f s\n", time.Since(began).Seconds())
	return measured, nil
}

// subjectInRound returns whose turn it is of n in a round.
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
