package faults

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// traffic is what came of all kinds of requests.
type traffic struct{ Hits, Drawn, Reads, Writes *tally }

// Row is what came of a fault.
type Row struct {
	Fault, Means               string
	Untried                    string // why it could not be tried; empty if it was
	Took                       time.Duration
	Detected                   time.Duration // until another primary was chosen; 0 without a fail-over
	Acknowledged, Lost, Unlike int
	Voided                     int // acknowledged writes that the fault is to lose
	Notes                      []string
	Own                        []string // goals of this fault's own that were missed
	Instead                    *traffic // of a site beside the cluster; nil if it is the cluster that has failed

	traffic
	expected expectation
}

// The goals, in what is noticed besides the detection.
const (
	longestGap   = 5 * time.Second
	longestWrite = 12500 * time.Millisecond // a core takes 10 s at most, and the balancer waits for 12 s
)

// shown returns the traffic that the row tells of.
func (r *Row) shown() traffic {
	if r.Instead != nil {
		return *r.Instead
	}
	return r.traffic
}

// Missed returns the goals that were missed.
func (r *Row) Missed() []string {
	unknown, known := r.missed()
	return append(unknown, known...)
}

// missed returns the goals that were missed, apart from those of which that is known.
func (r *Row) missed() (unknown, known []string) {
	t := r.shown()
	miss := func(missed bool, format string, values ...any) {
		if missed {
			unknown = append(unknown, fmt.Sprintf(format, values...))
		}
	}
	missKnown := func(missed bool, format string, values ...any) {
		if missed && r.expected.known {
			known = append(known, fmt.Sprintf(format, values...))
			return
		}
		miss(missed, format, values...)
	}
	unknown = append(unknown, r.Own...)
	miss(r.Lost > 0, "%d people lack what was acknowledged", r.Lost)
	miss(r.Unlike > 0, "edges show %d other things than PostgreSQL has", r.Unlike)
	if t.Hits == nil { // nothing was sent
		return unknown, known
	}
	miss(t.Hits.failed > 0, "pictures in memory fail")
	missKnown(t.Drawn.failed > 0 && !r.expected.drawn, "new pictures fail")
	miss(t.Reads.failed > 0 && r.expected.planned, "%d reads fail", t.Reads.failed)
	miss(t.Writes.failed > 0 && r.expected.planned, "%d writes fail", t.Writes.failed)
	miss(t.Reads.gap-r.Detected > longestGap && !r.expected.reads, "no reads for %.1f s besides the detection", (t.Reads.gap - r.Detected).Seconds())
	miss(t.Writes.failed == 0 && r.expected.refused, "all writes were taken")
	miss(t.Writes.failed > t.Writes.how["503"] && r.expected.refused, "writes are refused other than with 503")
	miss(t.Writes.gap < r.expected.silence, "writes were taken within %.1f s", t.Writes.gap.Seconds())
	missKnown(t.Writes.gap-r.Detected > longestGap && !r.expected.writes && !r.expected.refused, "no writes for %.1f s besides the detection", (t.Writes.gap - r.Detected).Seconds())
	miss(t.Writes.slowest > longestWrite, "a write took %.1f s", t.Writes.slowest.Seconds())
	return unknown, known
}

// Verdict returns an error if a goal was missed of which that is not known, or something
// could not be tried.
func Verdict(rows []Row) error {
	var bad []error
	for i := range rows {
		r := &rows[i]
		unknown, _ := r.missed()
		switch {
		case r.Untried != "":
			bad = append(bad, fmt.Errorf("%s: not tried: %s", r.Fault, r.Untried))
		case len(unknown) > 0:
			bad = append(bad, fmt.Errorf("%s: %s", r.Fault, strings.Join(unknown, "; ")))
		}
	}
	return errors.Join(bad...)
}

func (r *Row) String() string {
	t := r.shown()
	said := []string{
		fmt.Sprintf("%.0f s", r.Took.Seconds()), fmt.Sprint("hits   ", t.Hits), fmt.Sprint("new    ", t.Drawn), fmt.Sprint("reads  ", t.Reads), fmt.Sprint("writes ", t.Writes),
		fmt.Sprintf("detected %.1f s, acknowledged %d, lost %d, unlike %d", r.Detected.Seconds(), r.Acknowledged, r.Lost, r.Unlike),
	}
	for _, goal := range r.Missed() {
		said = append(said, "missed: "+goal)
	}
	return strings.Join(append(said, r.Notes...), "\n    ")
}

func (t *tally) String() string {
	return fmt.Sprintf("%d sent, %s failed, gap %.1f s, slowest %.1f s", t.sent, t.failures(), t.gap.Seconds(), t.slowest.Seconds())
}

// cell returns requests sent, failed, and the longest gap.
func (t *tally) cell() string {
	return fmt.Sprintf("%d / %s / %.1f s", t.sent, t.failures(), t.gap.Seconds())
}

// WriteTable writes rows as Markdown.
func WriteTable(out io.Writer, rows []Row) error {
	var b strings.Builder
	line := func(cells ...string) { fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | ")) }
	head := []string{"fault", "pictures in memory", "new pictures", "reads", "writes", "slowest write", "detection", "acknowledged", "lost", "unlike", "goals"}
	line(head...)
	line(slices.Repeat([]string{"---"}, len(head))...)
	for _, r := range rows {
		if r.Untried != "" {
			line(append([]string{r.Fault}, append(slices.Repeat([]string{""}, len(head)-2), "**not tried**: "+r.Untried)...)...)
			continue
		}
		t, detected, goals := r.shown(), "", "met"
		if r.Detected > 0 {
			detected = fmt.Sprintf("%.1f s", r.Detected.Seconds())
		}
		if missed := r.Missed(); len(missed) > 0 {
			goals = "**missed**: " + strings.Join(missed, "; ")
		}
		if t.Hits == nil {
			line(r.Fault, "", "", "", "", "", "", fmt.Sprint(r.Acknowledged), fmt.Sprint(r.Lost), fmt.Sprint(r.Unlike), goals)
			continue
		}
		line(r.Fault, t.Hits.cell(), t.Drawn.cell(), t.Reads.cell(), t.Writes.cell(), fmt.Sprintf("%.1f s", t.Writes.slowest.Seconds()),
			detected, fmt.Sprint(r.Acknowledged), fmt.Sprint(r.Lost), fmt.Sprint(r.Unlike), goals)
	}
	fmt.Fprint(&b, "\nWhat was done, and for how long there was load:\n\n")
	for _, r := range rows {
		if r.Means == "" || r.Untried != "" {
			continue
		}
		fmt.Fprintf(&b, "- %s: %s; %.0f s.\n", r.Fault, r.Means, r.Took.Seconds())
		if r.Voided > 0 {
			fmt.Fprintf(&b, "  %d writes were acknowledged that it is to lose.\n", r.Voided)
		}
		for _, note := range r.Notes {
			fmt.Fprintf(&b, "  %s.\n", strings.ToUpper(note[:1])+note[1:])
		}
	}
	_, err := io.WriteString(out, b.String())
	return err
}
