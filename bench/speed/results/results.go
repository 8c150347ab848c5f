// Package results stores the measurements of a run: it computes medians and confidence intervals,
// and writes them as JSON and as tables.
package results

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
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
	Measures     string    `json:"measures"` // what is measured, in a sentence or more
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
	// Rejected is the number of further rounds in which a request was rejected. They count as
	// infinite.
	Rejected int `json:"rejected_rounds,omitempty"`
}

// Summary returns the median of the rounds, and its bounds. With rejections there may be no upper one.
func (f *Figure) Summary() Summary {
	return Summarize(slices.Concat(f.Rounds, slices.Repeat([]float64{math.Inf(1)}, f.Rejected)))
}

// Sweep is figures as a parameter grows.
type Sweep struct {
	Name      string `json:"name"`     // a word
	Measures  string `json:"measures"` // one sentence: what is measured
	Parameter string `json:"grows"`    // what does, as "edges"
	Steps     []Step `json:"steps"`    // by rising parameter; all have the same figures in the same order
}

// Step is one step of a sweep.
type Step struct {
	At      float64  `json:"at"` // value of the parameter
	Figures []Figure `json:"figures"`
}

// NewStep returns the step of rounds that have the same figures.
func NewStep(at float64, rounds [][]Figure) Step {
	step := Step{At: at, Figures: slices.Clone(rounds[0])}
	for _, round := range rounds[1:] {
		for i, figure := range round {
			to := &step.Figures[i]
			to.Rounds, to.Rejected = append(to.Rounds, figure.Rounds...), to.Rejected+figure.Rejected
		}
	}
	return step
}

// CheckFlat returns an error if some figure's median is higher in the last step of four than in the
// second: by more than 3 %, and by more than one.
func (s *Sweep) CheckFlat() error {
	for i, figure := range s.Steps[1].Figures {
		before, after := figure.Summary().Median, s.Steps[3].Figures[i].Summary().Median
		if after > max(1.03*before, before+1) {
			return fmt.Errorf("%s: %s of %s in the second %s, and %s in the last", s.Name, figure.Name, number(before), s.Parameter, number(after))
		}
	}
	return nil
}

// Cost is the cost of one thing, for capacity planning.
type Cost struct {
	Figure

	Method string `json:"how"` // how it was measured: a part of a sentence
}

// Ratio returns how many times as good as the subject Veneer was, from the ratios within the
// rounds: above 1 Veneer is better, whether more or less is.
func (s *Scenario) Ratio(subject *Subject) Summary { return Summarize(s.ratios(subject)) }

// Drift returns the ratio in the first third of the rounds and in the last, and whether it moved
// steadily by a tenth or more: then its median describes no steady state.
func (s *Scenario) Drift(subject *Subject) (first, last float64, moved bool) {
	ratios := s.ratios(subject)
	if Trend(ratios) == 0 {
		return 0, 0, false
	}
	third := len(ratios) / 3
	first, last = Summarize(ratios[:third]).Median, Summarize(ratios[len(ratios)-third:]).Median
	const much = 1.1
	return first, last, max(first/last, last/first) >= much
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

// Write writes the run into a folder of its own below a directory, replacing an earlier run of the
// same day, commit and name, and returns its path: results.json with everything, and table.md.
func (r *Run) Write(results string) (string, error) {
	var table bytes.Buffer
	if err := r.WriteTable(&table); err != nil {
		return "", err
	}
	encoded, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return "", err
	}
	folder := filepath.Join(results, r.Folder())
	return folder, errors.Join(
		os.MkdirAll(folder, 0o755),
		os.WriteFile(filepath.Join(folder, "results.json"), append(encoded, '\n'), 0o644),
		os.WriteFile(filepath.Join(folder, "table.md"), table.Bytes(), 0o644),
	)
}

// Read reads the results.json of a run.
func Read(path string) (*Run, error) {
	encoded, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	r := new(Run)
	return r, errors.Join(json.Unmarshal(encoded, r), r.check())
}

// A commit and a variant are parts of names of files.
var namePattern = regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z.+-]*$`)

// check returns an error if the run is invalid: tables and ratios need figures of the same rounds.
// That they are finite is checked by encoding/json.
func (r *Run) check() error {
	if r.Date.IsZero() || !namePattern.MatchString(r.Commit) || r.Variant != "" && !namePattern.MatchString(r.Variant) {
		return fmt.Errorf("a run of %q at %v and commit %q has no date, or no name that a folder could have", r.Variant, r.Date, r.Commit)
	}
	for _, s := range r.Scenarios {
		if err := s.check(); err != nil {
			return fmt.Errorf("scenario %s: %w", s.Name, err)
		}
	}
	for _, s := range r.Sweeps {
		for i, step := range s.Steps {
			if n := slices.IndexFunc(step.Figures, func(f Figure) bool { return len(f.Rounds) == 0 }); n >= 0 {
				return fmt.Errorf("sweep %s: step %v has no rounds of %s", s.Name, step.At, step.Figures[n].Name)
			}
			if got, want := step.names(), s.Steps[0].names(); !slices.Equal(got, want) {
				return fmt.Errorf("sweep %s: step %v has %q, and the first one %q", s.Name, step.At, got, want)
			}
			if i > 0 && step.At <= s.Steps[i-1].At {
				return fmt.Errorf("sweep %s: step %v is out of order", s.Name, step.At)
			}
		}
	}
	return nil
}

func (s *Scenario) check() error {
	if len(s.Subjects) == 0 || len(s.Subjects[0].Rounds) == 0 {
		return errors.New("there are no rounds of Veneer, which must be the first subject")
	}
	for _, subject := range s.Subjects {
		want := len(s.Subjects[0].Rounds)
		if subject.Missing != "" || subject.Unsupported != "" {
			want = 0
		}
		for _, figure := range append([]Figure{{Name: s.Unit, Rounds: subject.Rounds}}, subject.Figures...) {
			if len(figure.Rounds) != want {
				return fmt.Errorf("%s has %d rounds of %s, not %d", subject.Name, len(figure.Rounds), figure.Name, want)
			}
		}
		if want > 0 && slices.Min(subject.Rounds) <= 0 {
			return fmt.Errorf("%s has a round of %v %s", subject.Name, slices.Min(subject.Rounds), s.Unit)
		}
	}
	return nil
}

// names returns the names and units of the step's figures.
func (s *Step) names() (all []string) {
	for _, figure := range s.Figures {
		all = append(all, strings.TrimSuffix(figure.Name+", "+figure.Unit, ", "))
	}
	return all
}

// Machine describes the machine of a run.
type Machine struct {
	Processor  string `json:"processor"`  // model
	Processors int    `json:"processors"` // that programs may use
	Memory     int64  `json:"memory_bytes"`
	Kernel     string `json:"kernel"` // as "Linux 6.18.5"
	Go         string `json:"go"`     // the version, as "go1.26.8"
}

// ThisMachine describes the machine that this program runs on. It supports Linux only.
func ThisMachine() (Machine, error) {
	m := Machine{Processor: runtime.GOARCH, Processors: runtime.NumCPU(), Go: runtime.Version()}
	var memory unix.Sysinfo_t
	if err := unix.Sysinfo(&memory); err != nil {
		return Machine{}, err
	}
	m.Memory = int64(memory.Totalram) * int64(memory.Unit)
	var kernel unix.Utsname
	if err := unix.Uname(&kernel); err != nil {
		return Machine{}, err
	}
	m.Kernel = "Linux " + unix.ByteSliceToString(kernel.Release[:])
	processors, err := os.ReadFile("/proc/cpuinfo")
	model := regexp.MustCompile(`(?m)^model name\s*: (.*)$`)
	if found := model.FindSubmatch(processors); found != nil { // ARM kernels do not report it
		m.Processor = string(found[1])
	}
	return m, err
}

func (m Machine) String() string {
	return fmt.Sprintf("%d processors of an %s, %.1f GiB of memory, %s, %s", m.Processors, m.Processor, float64(m.Memory)/(1<<30), m.Kernel, m.Go)
}

// Summary is the median of rounds with its bounds.
type Summary struct {
	Median float64
	// The bounds of the median's 95 % confidence interval. They are infinite for fewer than 6
	// rounds, which are too few for it.
	Low, High float64
}

// Bounded reports whether there were enough rounds for bounds.
func (s Summary) Bounded() bool { return !math.IsInf(s.High, 1) }

// Summarize returns the median of at least one round, and its bounds by order statistics: of the
// sorted rounds, the one of LowerRank, counted from either end.
func Summarize(rounds []float64) Summary {
	sorted := slices.Sorted(slices.Values(rounds))
	s := Summary{Median: Median(sorted), Low: math.Inf(-1), High: math.Inf(1)}
	if rank := LowerRank(len(sorted)); rank > 0 {
		s.Low, s.High = sorted[rank-1], sorted[len(sorted)-rank]
	}
	return s
}

// Median returns the median of sorted values.
func Median(sorted []float64) float64 {
	middle := len(sorted) / 2
	if len(sorted)%2 == 0 {
		return (sorted[middle-1] + sorted[middle]) / 2
	}
	return sorted[middle]
}

// Trend reports whether rounds rise (above 0) or fall (below 0) from the first to the last, by the
// Mann-Kendall test with a false positive rate of one in a hundred. It is 0 for fewer than 8
// rounds.
//
// Source: M. G. Kendall, Rank Correlation Methods, chapter 4.
func Trend(rounds []float64) int {
	n := len(rounds)
	if n < 8 {
		return 0
	}
	rising := 0
	for i := range rounds {
		for _, later := range rounds[i+1:] {
			rising += cmp.Compare(later, rounds[i])
		}
	}
	const sure = 2.576 // standard deviations
	if math.Abs(float64(rising)) < 1+sure*math.Sqrt(float64(n*(n-1)*(2*n+5))/18) {
		return 0
	}
	return cmp.Compare(rising, 0)
}

// LowerRank returns which of n sorted values, counted from 1, is the lower bound of the 95 %
// confidence interval of the median: the highest that is above the true median in at most 2.5 % of
// all cases, whatever the values' distribution. It is 0 for fewer than 6 values, which are too few
// for it. Counted from the other end it is the upper bound.
func LowerRank(n int) int {
	// Each value is below the true median with a chance of one half. The bound at rank k is too
	// high if fewer than k of them are.
	chance, fewer := math.Pow(0.5, float64(n)), 0.0
	for k := range n {
		if fewer += chance; fewer > 0.025 {
			return k
		}
		chance *= float64(n-k) / float64(k+1)
	}
	return n
}
