// Package results stores the measurements of a run: it computes medians and confidence intervals,
// and writes them as JSON, as a table and as plots.
package results

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"time"
)

// Run is all measurements of one run, with the machine and settings.
type Run struct {
	Date      time.Time  `json:"date"`              // start, in UTC
	Commit    string     `json:"commit"`            // of Veneer, abbreviated
	Variant   string     `json:"of,omitempty"`      // a word for what is measured, if not the default comparison
	Quick     bool       `json:"quick"`             // only a check that everything runs: its figures say nothing
	Seconds   float64    `json:"seconds,omitempty"` // duration
	Failed    string     `json:"failed,omitempty"`  // the error, if it failed
	Machine   Machine    `json:"machine"`
	Programs  []Program  `json:"programs"` // all that took part
	Settings  []Setting  `json:"settings"` // all that differ from a program's defaults, raised limits too
	Scenarios []Scenario `json:"scenarios"`
	Latency   []Curve    `json:"latency,omitempty"` // of the mixed day, Veneer's first
	Soak      []Series   `json:"soak,omitempty"`    // one for each program
	Sweeps    []Sweep    `json:"sweeps,omitempty"`
	Costs     []Cost     `json:"costs,omitempty"`
}

// Program is a program that took part in a run.
type Program struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// Setting is a setting of one of the programs.
type Setting struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Scenario is one kind of work, done by several subjects alternately.
type Scenario struct {
	Name         string    `json:"name"`     // a word or two, as "hot"
	Measures     string    `json:"measures"` // what is measured, in a sentence or more, of which plots show the first
	Unit         string    `json:"unit"`     // of the rounds, as "answers/s" or "ms"
	MoreIsBetter bool      `json:"more_is_better"`
	WarmUp       int       `json:"warm_up_rounds"` // discarded rounds at the beginning
	Subjects     []Subject `json:"subjects"`       // Veneer first
}

// Subject is a server or library that does the work of a scenario. It either has rounds or a reason
// for having none.
type Subject struct {
	Name        string    `json:"name"`
	Version     string    `json:"version,omitempty"`
	Rounds      []float64 `json:"rounds,omitempty"`  // one figure of each, above 0; round i is of the same time for all subjects
	Figures     []Figure  `json:"figures,omitempty"` // other measurements of the same rounds
	Missing     string    `json:"missing,omitempty"` // why it did not take part, and how to install it
	Unsupported string    `json:"cannot,omitempty"`  // why it cannot do this work
}

// Figure is a further figure of every round, such as the p99 or the CPU time of an answer.
type Figure struct {
	Name   string    `json:"name"`
	Unit   string    `json:"unit"`
	Rounds []float64 `json:"rounds"`
}

// Curve is a subject's latency by request rate.
type Curve struct {
	Name   string  `json:"name"`
	Points []Point `json:"points"` // by rising rate
}

// Point is the latency at a rate. Latencies are in milliseconds, one of each round, and count from
// when a request was due.
type Point struct {
	Rate float64   `json:"rate"` // requests a second
	P50  []float64 `json:"p50_ms"`
	P99  []float64 `json:"p99_ms"`
	P999 []float64 `json:"p99_9_ms"`
	// Busy is the CPU use of the load generator in percent, and Late the longest delay of a due
	// request by it in milliseconds: of each round, too.
	Busy []float64 `json:"load_busy_percent,omitempty"`
	Late []float64 `json:"load_late_ms,omitempty"`
	// Refused is the number of further rounds in which a request was rejected. Their latencies
	// count as infinite.
	Refused int `json:"refused_rounds,omitempty"`
}

// Summarize returns the median of some of the point's latencies, and its bounds. With refused
// rounds there may be no upper one.
func (p *Point) Summarize(latencies []float64) Summary {
	return Summarize(slices.Concat(latencies, slices.Repeat([]float64{math.Inf(1)}, p.Refused)))
}

// Series is a program's resource usage over time.
type Series struct {
	Program string  `json:"program"`
	Samples []Usage `json:"samples"` // in their order
}

// Usage is a program's resource usage at a moment.
type Usage struct {
	Minutes    float64 `json:"minutes"` // since the load began
	Resident   int64   `json:"resident_bytes"`
	Goroutines int     `json:"goroutines"`
	Files      int     `json:"open_files"`
	Libvips    int64   `json:"libvips_bytes"` // always 0 for a program without it
}

// Ratio returns how many times as good as the subject Veneer was, from the ratios within the
// rounds: above 1 Veneer is better, whether more or less is.
func (s *Scenario) Ratio(subject *Subject) Summary { return Summarize(s.ratios(subject)) }

// Drift returns the ratio in the first third of the rounds and in the last, and whether it moved
// steadily by a tenth or more: then its median describes no steady state.
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
		name += "-quick" // must not replace figures
	}
	if r.Failed != "" {
		name += "-failed" // likewise
	}
	return name
}

// A commit is part of a file's name.
var commitPattern = regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z.+-]*$`)

// check returns an error if the run is invalid.
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
		return errors.New("there are no rounds of Veneer, which must be the first subject")
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
