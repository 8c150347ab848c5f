// Package compare measures Veneer beside the usual alternatives: each scenario is one kind of work,
// done by all subjects alternately on the same machine. A new scenario is a row of scenarios and a
// function that opens its subjects.
package compare

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/veneer-skins/veneer/bench/speed/baseline"
	"github.com/veneer-skins/veneer/bench/speed/results"
)

// Options select what is measured.
type Options struct {
	testing.TB // of stack.RunWithTB

	Root   string   // of the repository
	Only   []string // names of scenarios, or of groups; none for the comparison
	Rounds int      // that count, of each scenario, if not its own number
	Quick  bool     // only checks that everything runs
	Sizes  []int    // of sites in growth, in textures and players
	Soak   time.Duration
	Out    io.Writer
}

// scenario is one kind of work.
type scenario struct {
	name, group    string
	unit           string // of the rounds; more is better if it is a rate
	warmUp, rounds int    // discarded rounds, and those that count
	measures       string
	// open opens the subjects, Veneer first. What it starts is stopped at the end of the run.
	open func(e *env) []subject
	// whole measures what has no rounds of subjects.
	whole func(e *env, result *results.Run)
}

// is reports whether a name selects the scenario: its own, or its group's.
func (s scenario) is(name string) bool {
	return s.name == name || s.group == name && name != single
}

// subject does the work of a scenario, or has a reason for not doing it, as in results.Subject.
type subject struct {
	name, version, missing, cannot string
	// measure does the work of a round, counted from the first to warm up.
	measure func(round int) outcome
}

// together returns subjects whose outcomes come from one measurement of a round.
func together(names []string, measure func(round int) []outcome) (all []subject) {
	measured, outcomes := -1, []outcome(nil)
	for i, name := range names {
		all = append(all, subject{name: name, measure: func(round int) outcome {
			if measured != round {
				measured, outcomes = round, measure(round)
			}
			return outcomes[i]
		}})
	}
	return all
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

// The groups of scenarios. Those of the comparison run if none is selected.
const (
	comparison = ""
	scale      = "scale"
	hits       = "hits"
	foreign    = "foreign"
	single     = "single" // each is run by its name
)

func scenarios() []scenario {
	all := []scenario{
		{"hot", comparison, "answers/s", 5, 20, "One picture that is in memory, requested over 32 connections.", memory(selection{pick: isHead}), nil},
		// Varnish becomes faster with each of the rounds to warm up.
		{"warm", comparison, "answers/s", 60, 20, "100,000 different pictures in Zipf order, all in memory. Caches in front may store each for a day or longer.", memory(selection{pick: isView, zipf: true}), nil},
		{"revalidation", comparison, "answers/s", 5, 20, "The same pictures for clients that have them: 304.", memory(selection{pick: isView, zipf: true, conditional: true}), nil},
		{"raw textures", comparison, "answers/s", 5, 20, "Texture files as they are stored, all in memory.", memory(selection{pick: isFile}), nil},
		// Before new pictures evict those that are a day's hits.
		{"mixed day", comparison, "ms", 0, dayRounds, "", nil, (*env).mixedDay},
		{"cold", comparison, "pictures/s", coldWarmUp, coldRounds, "Every picture is new: flat heads of 64 to 240 pixels, as PNG. The skin's file is already known.", rendering(true, (*env).cold), nil},
		{"cold, in space", comparison, "pictures/s", coldWarmUp, coldRounds, "Every picture is new: heads in space of 64 to 240 pixels, as PNG.", rendering(false, (*env).cold), nil},
		{"stampede", comparison, "ms", 10, 20, "500 clients request one new flat head of 256 pixels at the same time, until the last of them has it.", rendering(true, (*env).stampede), nil},
		{"encoding", comparison, "pictures/s", 2, 11, "Finished pictures of twelve skins are written as lossless WebP: heads of 64 and 128 pixels, heads in space of 128, figures of 400.", (*env).encoding, nil},
		{"API read", comparison, "answers/s", 3, 11, "GET /api/user of 2,000 users over 32 connections, beside the query that it makes.", (*env).reads, nil},
		{"API write", comparison, "writes/s", 3, 11, "A player's skin is changed, over 32 connections, beside the UPDATE statement alone.", (*env).writes, nil},
		{"sign-in", comparison, "log-ins/s", 3, 11, "Log-ins over 8 connections, beside the hash of the password alone.", (*env).logIns, nil},
		{"upload", comparison, "uploads/s", 3, 11, "New skins of 128 by 128 over 8 connections, beside decoding, encoding and writing a file.", (*env).uploads, nil},
		{"freshness", comparison, "ms", 3, 11, "From the request of a change until an edge shows it, beside PostgreSQL's NOTIFY alone.", (*env).freshness, nil},

		{"mixed", scale, "answers/s", 5, 20, "Two million views in Zipf order, more than fit in a cache. Heads of 8 to 256 pixels; each cache in front has an edge of its own behind it and as many bytes as that. " +
			"All start with the most popular ones in memory", (*env).mixedViews, nil},
		{"edges", scale, "1/s", 3, 11, "", nil, (*env).edges},
		{"cache", scale, "%", 0, 1, "", nil, (*env).cache},
		{"growth", scale, "", 0, 6, "", nil, (*env).growth},
		{"soak", single, "", 0, 0, "", nil, (*env).soak},

		{"API latency", single, "ms", 1, 11, "The p99 of GET /api/user at a constant rate, 60 % of what core can do, over 32 connections.", (*env).readLatency, nil},
		{"limits", single, "answers/s", 4, 60, "GET /api/user of a core with its default limits, none of which is reached, beside one without limits of requests.", (*env).limits, nil},
		{"front page", single, "answers/s", 3, 11, "The front page through an edge, beside GET /api/site there, over 32 connections, compressed as browsers ask for it: core has both in memory.", (*env).frontPage, nil},
		{"unknown accounts", single, "ms", 1, 200, "A log-in with a wrong password, beside one with an e-mail address that has no account.", (*env).unknownAccounts, nil},
		{"freshness of three edges", single, "ms", 1, 11, "The p99 of the slowest of three edges until it shows a change, at 200 changes a second that two cores take in turn; since the response and since the request.", (*env).freshnessOfThree, nil},
		{"batch", single, "ms", 0, 11, "A hundred flat heads of 32 pixels as WebP on one keep-alive connection, as a sprite and one by one. Each round has other players.", (*env).batch, nil},
		{"flood of heads", single, "ms", 1, 11, "The p99 of hits at a fifth of the rate that saturates the edge, beside five times as many new heads as it can draw.", flood(headViews), nil},
		{"flood", single, "ms", 1, 11, "The same beside new heads and previews up to 1,024 pixels.", flood(slices.Concat(headViews, previewViews)), nil},
		{"unknown names", single, "ms", 0, 5, "The p99 of 1,000 hits a second, with 300 API requests a second beside them, alone and beside names that do not exist.", (*env).unknownNames, nil},
	}
	for _, kind := range []selection{{}, {conditional: true}, {tls: true}, {tls: true, conditional: true}} {
		kind.routes = true
		name := map[bool]string{false: "200s", true: "304s"}[kind.conditional] + map[bool]string{true: ", TLS"}[kind.tls]
		all = append(all, scenario{name, hits, "answers/s", 5, 300, "100,000 addresses of all routes in random order, all in memory.", memory(kind), nil})
	}
	for i, pattern := range foreignPatterns() {
		all = append(all, scenario{pattern, foreign, "answers/s", 5, 300, "An address of another service, beside the own one of the same picture.", foreignAddresses(i), nil})
	}
	return all
}

// Run measures the selected scenarios, one after the other, into a run. The caller sets the date, the
// commit and the machine. If it fails, the run has what was measured before.
func Run(options Options, result *results.Run) {
	options.Helper()
	processors := baseline.Processors(options)
	last := processors[len(processors)-1]
	e := &env{Options: options, targets: map[string]*target{}, serverCPU: last, loadCPU: processors[0]}
	e.addSetting("processor of the servers", e.serverCPU)
	e.addSetting("processor of the load", e.loadCPU)
	// A variant is part of a folder's name, so that a partial run does not replace a full one.
	result.Variant, result.Quick = regexp.MustCompile(`[^0-9A-Za-z]+`).ReplaceAllString(strings.Join(options.Only, "-"), "-"), options.Quick
	defer func() { result.Programs, result.Settings = e.programs, e.settings }()
	only := options.Only
	if len(only) == 0 {
		only = []string{comparison}
	}
	all := scenarios()
	for _, name := range only {
		if !slices.ContainsFunc(all, func(sc scenario) bool { return sc.is(name) }) {
			e.Fatalf("there is no scenario %q", name)
		}
	}
	for _, sc := range all {
		if !slices.ContainsFunc(only, sc.is) {
			continue
		}
		if sc.whole != nil {
			sc.whole(e, result)
		} else {
			result.Scenarios = append(result.Scenarios, e.run(sc))
		}
	}
}

// Names lists the scenarios by their groups.
func Names() string {
	lines := map[string][]string{}
	for _, sc := range scenarios() {
		lines[sc.group] = append(lines[sc.group], "'"+sc.name+"'")
	}
	var text strings.Builder
	for _, group := range []struct{ label, name string }{{"the comparison", comparison}, {scale, scale}, {hits, hits}, {foreign, foreign}, {"by name", single}} {
		fmt.Fprintf(&text, "%s: %s\n", group.label, strings.Join(lines[group.name], ", "))
	}
	return text.String()
}

// run runs one scenario: its subjects alternate, in the opposite order in every other round, with
// some rounds to warm up.
func (e *env) run(sc scenario) results.Scenario {
	began := time.Now()
	fmt.Fprintf(e.Out, "==> %s … ", sc.name)
	subjects := sc.open(e)
	warmUp, rounds := sc.warmUp, e.rounds(sc.rounds)
	if e.Quick {
		warmUp = 0
	}
	measured := results.Scenario{Name: sc.name, Measures: sc.measures, Unit: sc.unit, MoreIsBetter: strings.HasSuffix(sc.unit, "/s"), WarmUp: warmUp}
	for _, subj := range subjects {
		measured.Subjects = append(measured.Subjects, results.Subject{Name: subj.name, Version: subj.version, Missing: subj.missing, Unsupported: subj.cannot})
	}
	lookups := e.site.Lookups()
	e.alternate(sc.name, warmUp+rounds, len(subjects), func(i, round int) {
		if subjects[i].measure == nil {
			return
		}
		out := subjects[i].measure(round)
		if round < warmUp {
			return
		}
		to := &measured.Subjects[i]
		to.Rounds = append(to.Rounds, out.figure)
		for n, f := range out.others {
			if n == len(to.Figures) {
				to.Figures = append(to.Figures, results.Figure{Name: f.name, Unit: f.unit})
			}
			to.Figures[n].Rounds = append(to.Figures[n].Rounds, f.value)
		}
	})
	fmt.Fprintf(e.Out, ", %.0f s\n", time.Since(began).Seconds())
	if lookups = e.site.Lookups() - lookups; lookups > 0 {
		fmt.Fprintf(e.Out, "    the edges looked up %d mappings meanwhile, so not all answers that they had were hits\n", lookups)
	}
	return measured
}

// rounds returns the number of rounds that count, of a scenario with a number of its own.
func (e *env) rounds(own int) int {
	switch {
	case e.Quick:
		return 1
	case e.Rounds > 0:
		return e.Rounds
	}
	return own
}

// alternate does the work of n subjects in every round, in the opposite order in every other one.
func (e *env) alternate(name string, rounds, n int, work func(i, round int)) {
	for round := range rounds {
		for i := range n {
			if round%2 == 1 {
				i = n - 1 - i
			}
			work(i, round)
		}
		fmt.Fprintf(e.Out, "\r==> %s … %d of %d rounds", name, round+1, rounds)
	}
}
