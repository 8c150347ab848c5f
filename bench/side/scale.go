package side

import (
	"context"
	"fmt"

	"github.com/veneer-skins/veneer/bench/report"
)

// ScaleParts are what Scale measures, each by its name.
var ScaleParts = []string{"mixed", "edges", "cache", "growth"}

// Scale measures what becomes of the figures as all grows: more views than a cache holds,
// more edges, larger caches, more textures and players. It says what one of each thing
// takes, too, for a plan of many. The date, the commit and the machine are the caller's
// to tell.
func Scale(ctx context.Context, options Options) (*report.Run, error) {
	s, err := openStage(options)
	if err != nil {
		return nil, err
	}
	defer s.close()
	result := &report.Run{Of: "scale", Quick: options.Quick}
	if !s.wants(ScaleParts...) {
		return nil, fmt.Errorf("there is no scenario %q", options.Only)
	}
	if s.wants("mixed") {
		measured, err := s.run(ctx, mixedScenario())
		if err != nil {
			return nil, fmt.Errorf("mixed: %w", err)
		}
		result.Scenarios = append(result.Scenarios, *measured)
	}
	if s.wants("edges") {
		sweep, costs, err := s.edges(ctx)
		if err != nil {
			return nil, fmt.Errorf("edges: %w", err)
		}
		result.Sweeps, result.Costs = append(result.Sweeps, *sweep), costs
	}
	if s.crowd != nil {
		costs, err := s.memoryCosts(ctx, s.crowd)
		if err != nil {
			return nil, err
		}
		result.Costs = append(result.Costs, costs...)
	}
	if s.wants("cache") {
		sweep, err := s.caches(ctx)
		if err != nil {
			return nil, fmt.Errorf("cache: %w", err)
		}
		result.Sweeps = append(result.Sweeps, *sweep)
	}
	if s.wants("growth") {
		sweep, err := s.growth(ctx)
		if err != nil {
			return nil, fmt.Errorf("growth: %w", err)
		}
		result.Sweeps = append(result.Sweeps, *sweep)
	}
	result.Programs, err = s.programs(ctx)
	result.Settings = s.settings
	return result, err
}

// wants tells whether one of the parts is wanted.
func (s *stage) wants(parts ...string) bool {
	for _, part := range parts {
		if s.Only == "" || s.Only == part {
			return true
		}
	}
	return false
}

func mixedScenario() scenario {
	return scenario{
		name: "mixed", unit: "answers/s", moreIsBetter: true, rounds: crowdRounds, open: (*stage).mixedViews,
		measures: "Two million views, heads of 8 to 256 pixels, in Zipf order, of which the edge's cache holds a part; each cache has an edge of its own behind it and as many bytes as that. " +
			"All begin with the most popular ones",
	}
}
