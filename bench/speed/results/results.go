// Package report keeps what a run side by side has measured: it makes medians and
// their bounds of the rounds, and writes them as a table, as plots, and whole.
package results

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"time"
)

// Run is everything that one run has measured, and on what.
type Run struct {
	Date      time.Time  `json:"date"`              // when it began, in UTC
	Commit    string     `json:"commit"`            // of Veneer, abbreviated
	Variant   string     `json:"of,omitempty"`      // a word for what is measured, if not Veneer side by side
	Quick     bool       `json:"quick"`             // only a check that everything runs: its figures say nothing
	Seconds   float64    `json:"seconds,omitempty"` // that it took
	Failed    string     `json:"failed,omitempty"`  // why, if it did
	Machine   Machine    `json:"machine"`
	Programs  []Program  `json:"programs"` // all that took part
	Settings  []Setting  `json:"settings"` // all that differ from a program's defaults, raised limits too
	Scenarios []Scenario `json:"scenarios"`
	Latency   []Curve    `json:"latency,omitempty"` // of the mixed day, Veneer's first
	Soak      []Series   `json:"soak,omitempty"`    // one for each program that was watched
	Sweeps    []Sweep    `json:"sweeps,omitempty"`
	Costs     []Cost     `json:"costs,omitempty"`
}

// Program is one that took part in a run.
type Program struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// Setting is a setting of one of the programs.
type Setting struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Scenario is one kind of work, done by several subjects in turns.
type Scenario struct {
	Name         string    `json:"name"`     // a word or two, as "hot"
	Measures     string    `json:"measures"` // what is measured, in a sentence of which plots show the first, if there are more
	Unit         string    `json:"unit"`     // of the rounds, as "answers/s" or "ms"
	MoreIsBetter bool      `json:"more_is_better"`
	WarmUp       int       `json:"warm_up_rounds"` // that went before and do not count
	Subjects     []Subject `json:"subjects"`       // Veneer first
}

// Subject is who does the work of a scenario. It either has rounds or says why not.
type Subject struct {
	Name        string    `json:"name"`
	Version     string    `json:"version,omitempty"`
	Rounds      []float64 `json:"rounds,omitempty"`  // one figure of each, above 0; round i is of the same time for all subjects
	Figures     []Figure  `json:"figures,omitempty"` // what else was measured in the same rounds
	Missing     string    `json:"missing,omitempty"` // why it did not take part, and how to install it
	Unsupported string    `json:"cannot,omitempty"`  // why it cannot do this work
}

// Figure is a further figure of every round, as the p99 of answers or the processor
// time of one.
type Figure struct {
	Name   string    `json:"name"`
	Unit   string    `json:"unit"`
	Rounds []float64 `json:"rounds"`
}

// Curve is how a subject's latency grows with the rate at which it is asked.
type Curve struct {
	Name   string  `json:"name"`
	Points []Point `json:"points"` // by rising rate
}

// Point is what a rate comes to. Latencies are in milliseconds, one of each round, and
// count from when a request was due.
type Point struct {
	Rate float64   `json:"rate"` // requests a second
	P50  []float64 `json:"p50_ms"`
	P99  []float64 `json:"p99_ms"`
	P999 []float64 `json:"p99_9_ms"`
	// Busy is how much of its processor's time the load took, in percent, and Late for how
	// many milliseconds at most it did not send what was due: of each round, too.
	Busy []float64 `json:"load_busy_percent,omitempty"`
	Late []float64 `json:"load_late_ms,omitempty"`
	// Refused is how many rounds there were besides, in which something was refused. They
	// count as endless.
	Refused int `json:"refused_rounds,omitempty"`
}

// Summarize returns the median of some of the point's latencies, and its bounds. With
// rounds in which something was refused there may be no upper one.
func (p *Point) Summarize(latencies []float64) Summary {
	return Summarize(slices.Concat(latencies, slices.Repeat([]float64{math.Inf(1)}, p.Refused)))
}

// Series is what a program had in use while it ran for long.
type Series struct {
	Program string  `json:"program"`
	Samples []Usage `json:"samples"` // in their order
}

// Usage is what a program has in use at a moment.
type Usage struct {
	Minutes    float64 `json:"minutes"` // since the load began
	Resident   int64   `json:"resident_bytes"`
	Goroutines int     `json:"goroutines"`
	Files      int     `json:"open_files"`
	Libvips    int64   `json:"libvips_bytes"` // 0 all along for a program without it
}

// Ratio returns how many times as good as the subject Veneer was, from the ratios
// within the rounds: above 1 Veneer is better, whether more or less is.
func (s *Scenario) Ratio(subject *Subject) Summary { return Summarize(s.ratios(subject)) }

// Drift returns what the ratio was in the first third of the rounds and in the last, and
// whether it moved all the while, by a tenth or more: its median is of no steady state
// then.
func (s *Scenario) Drift(subject *Subject) (first, last float64, moved bool) {
	ratios := s.ratios(subject)
	third := max(1, len(ratios)/3)
	first, last = Summarize(ratios[:third]).Median, Summarize(ratios[len(ratios)-third:]).Median
	const much = 1.1
	return first, last, Trend(ratios) != 0 && max(first/last, last/first) >= much
}

// ratios returns how many times as good as the subject Veneer was in each round.
func (s *Scenario) ratios(subject *Subject) []float64 {
	ratios := make([]float64, len(subject.Rounds))
	for i, theirs := range subject.Rounds {
		ratios[i] = s.Subjects[0].Rounds[i] / theirs
		if !s.MoreIsBetter {
			ratios[i] = 1 / ratios[i]
		}
	}
	return ratios
}

// Folder returns the name of the folder for the run's files.
func (r *Run) Folder() string {
	name := r.Date.UTC().Format(time.DateOnly) + "-" + r.Commit
	if r.Variant != "" {
		name += "-" + r.Variant
	}
	if r.Quick {
		name += "-quick" // which must not take the place of figures
	}
	if r.Failed != "" {
		name += "-failed" // nor must that
	}
	return name
}

// A commit is part of a file's name.
var commitPattern = regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z.+-]*$`)

// check tells what makes a run one that cannot be shown.
func (r *Run) check() error {
	if r.Date.IsZero() || !commitPattern.MatchString(r.Commit) {
		return fmt.Errorf("a run of %v and commit %q has no date or no commit", r.Date, r.Commit)
	}
	if r.Variant != "" && !commitPattern.MatchString(r.Variant) {
		return fmt.Errorf("a run of %q has no name that a folder could have", r.Variant)
	}
	for i := range r.Scenarios {
		if err := r.Scenarios[i].check(); err != nil {
			return fmt.Errorf("scenario %s: %w", r.Scenarios[i].Name, err)
		}
	}
	for _, curve := range r.Latency {
		if err := curve.check(); err != nil {
			return fmt.Errorf("latency of %s: %w", curve.Name, err)
		}
	}
	for _, series := range r.Soak {
		for i, usage := range series.Samples {
			if !finite(usage.Minutes) || i > 0 && usage.Minutes <= series.Samples[i-1].Minutes {
				return fmt.Errorf("soak of %s: minute %v is out of order", series.Program, usage.Minutes)
			}
		}
	}
	for i := range r.Sweeps {
		if err := r.Sweeps[i].check(); err != nil {
			return fmt.Errorf("sweep %s: %w", r.Sweeps[i].Name, err)
		}
	}
	for i := range r.Costs {
		if err := r.Costs[i].check(); err != nil {
			return fmt.Errorf("costs: %w", err)
		}
	}
	return nil
}

func (s *Scenario) check() error {
	if len(s.Subjects) == 0 || len(s.Subjects[0].Rounds) == 0 {
		return errors.New("there are no rounds of Veneer's, which come first")
	}
	for i := range s.Subjects {
		subject := &s.Subjects[i]
		if subject.Missing != "" || subject.Unsupported != "" {
			if len(subject.Rounds) > 0 {
				return fmt.Errorf("%s has both rounds and a reason for having none", subject.Name)
			}
			continue
		}
		if len(subject.Rounds) != len(s.Subjects[0].Rounds) {
			return fmt.Errorf("%s has %d rounds and Veneer %d", subject.Name, len(subject.Rounds), len(s.Subjects[0].Rounds))
		}
		for _, figure := range subject.Rounds {
			if !positive(figure) {
				return fmt.Errorf("%s has a round of %v %s", subject.Name, figure, s.Unit)
			}
		}
		for _, further := range subject.Figures {
			if len(further.Rounds) != len(subject.Rounds) {
				return fmt.Errorf("%s has %d rounds, but %d of %s", subject.Name, len(subject.Rounds), len(further.Rounds), further.Name)
			}
			for _, figure := range further.Rounds {
				if !finite(figure) {
					return fmt.Errorf("%s has %s of %v %s", subject.Name, further.Name, figure, further.Unit)
				}
			}
		}
	}
	return nil
}

func (c *Curve) check() error {
	for i, p := range c.Points {
		if len(p.P50) == 0 || len(p.P50) != len(p.P99) || len(p.P50) != len(p.P999) {
			return fmt.Errorf("%+v is not of some rounds", p)
		}
		for _, figure := range slices.Concat([]float64{p.Rate, p.Summarize(p.P99).Median}, p.P50, p.P99, p.P999) {
			if !positive(figure) {
				return fmt.Errorf("%+v is not all above 0", p)
			}
		}
		if i > 0 && p.Rate <= c.Points[i-1].Rate {
			return fmt.Errorf("the rate of %v is out of order", p.Rate)
		}
	}
	return nil
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

func positive(x float64) bool { return x > 0 && !math.IsInf(x, 1) }
