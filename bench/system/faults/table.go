package faults

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// traffic is the results by kind of request.
type traffic struct{ Hits, Misses, Reads, Writes *counts }

// Row is the result of a fault.
type Row struct {
	Fault, Description             string
	Skipped                        string // the reason; empty if it ran
	Duration                       time.Duration
	Detected                       time.Duration // until another primary was elected; 0 without a failover
	Acknowledged, Lost, Mismatched int
	Voided                         int // acknowledged writes that the fault loses by design
	Notes                          []string
	Problems                       []string // missed goals that are specific to this fault
	Standalone                     *traffic // traffic of a separate site; nil if the fault was in the cluster

	traffic
	expected expectation
}

// The goals. The detection time of a failover does not count.
const (
	longestGap   = 5 * time.Second
	longestWrite = 12500 * time.Millisecond // a core takes 10 s at most, and the balancer waits for 12 s
)

// reported returns the traffic that the row reports.
func (r *Row) reported() traffic {
	if r.Standalone != nil {
		return *r.Standalone
	}
	return r.traffic
}

// Missed returns the goals that were missed.
func (r *Row) Missed() []string {
	unknown, known := r.missedGoals()
	return append(unknown, known...)
}

// missedGoals returns the missed goals, the known issues apart from the others.
func (r *Row) missedGoals() (unknown, known []string) {
	t := r.reported()
	miss := func(missed bool, format string, values ...any) {
		if missed {
			unknown = append(unknown, fmt.Sprintf(format, values...))
		}
	}
	missKnown := func(missed bool, format string, values ...any) {
		if missed && r.expected.knownIssue {
			known = append(known, fmt.Sprintf(format, values...))
			return
		}
		miss(missed, format, values...)
	}
	unknown = append(unknown, r.Problems...)
	miss(r.Lost > 0, "%d users lack acknowledged writes", r.Lost)
	miss(r.Mismatched > 0, "edges differ from PostgreSQL in %d answers", r.Mismatched)
	if t.Hits == nil { // nothing was sent
		return unknown, known
	}
	miss(t.Hits.failed > 0, "pictures in memory fail")
	missKnown(t.Misses.failed > 0 && !r.expected.missesFail, "new pictures fail")
	miss(t.Reads.failed > 0 && r.expected.planned, "%d reads fail", t.Reads.failed)
	miss(t.Writes.failed > 0 && r.expected.planned, "%d writes fail", t.Writes.failed)
	miss(t.Reads.gap-r.Detected > longestGap && !r.expected.readsFail, "no reads for %.1f s besides the detection", (t.Reads.gap - r.Detected).Seconds())
	miss(t.Writes.failed == 0 && r.expected.writesRefused, "all writes were accepted")
	miss(t.Writes.failed > t.Writes.causes["503"] && r.expected.writesRefused, "writes fail other than with 503")
	miss(t.Writes.gap < r.expected.minWriteGap, "writes were accepted within %.1f s", t.Writes.gap.Seconds())
	missKnown(t.Writes.gap-r.Detected > longestGap && !r.expected.writesFail && !r.expected.writesRefused, "no writes for %.1f s besides the detection", (t.Writes.gap - r.Detected).Seconds())
	miss(t.Writes.slowest > longestWrite, "a write took %.1f s", t.Writes.slowest.Seconds())
	return unknown, known
}

// Verdict returns an error if a goal was missed that is no known issue, or a fault was skipped.
func Verdict(rows []Row) error {
	var bad []error
	for i := range rows {
		r := &rows[i]
		unknown, _ := r.missedGoals()
		switch {
		case r.Skipped != "":
			bad = append(bad, fmt.Errorf("%s: not tried: %s", r.Fault, r.Skipped))
		case len(unknown) > 0:
			bad = append(bad, fmt.Errorf("%s: %s", r.Fault, strings.Join(unknown, "; ")))
		}
	}
	return errors.Join(bad...)
}

func (r *Row) String() string {
	t := r.reported()
	lines := []string{
		fmt.Sprintf("%.0f s", r.Duration.Seconds()), fmt.Sprint("hits   ", t.Hits), fmt.Sprint("new    ", t.Misses), fmt.Sprint("reads  ", t.Reads), fmt.Sprint("writes ", t.Writes),
		fmt.Sprintf("detected %.1f s, acknowledged %d, lost %d, mismatched %d", r.Detected.Seconds(), r.Acknowledged, r.Lost, r.Mismatched),
	}
	for _, goal := range r.Missed() {
		lines = append(lines, "missed: "+goal)
	}
	return strings.Join(append(lines, r.Notes...), "\n    ")
}

func (c *counts) String() string {
	return fmt.Sprintf("%d sent, %s failed, gap %.1f s, slowest %.1f s", c.sent, c.failures(), c.gap.Seconds(), c.slowest.Seconds())
}

// cell returns the numbers of requests sent and failed, and the longest gap.
func (c *counts) cell() string {
	return fmt.Sprintf("%d / %s / %.1f s", c.sent, c.failures(), c.gap.Seconds())
}

// WriteTable writes rows as Markdown.
func WriteTable(out io.Writer, rows []Row) error {
	var b strings.Builder
	line := func(cells ...string) { fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | ")) }
	head := []string{"fault", "pictures in memory", "new pictures", "reads", "writes", "slowest write", "detection", "acknowledged", "lost", "mismatched", "goals"}
	line(head...)
	line(slices.Repeat([]string{"---"}, len(head))...)
	for _, r := range rows {
		if r.Skipped != "" {
			line(append([]string{r.Fault}, append(slices.Repeat([]string{""}, len(head)-2), "**not tried**: "+r.Skipped)...)...)
			continue
		}
		t, detected, goals := r.reported(), "", "met"
		if r.Detected > 0 {
			detected = fmt.Sprintf("%.1f s", r.Detected.Seconds())
		}
		if missed := r.Missed(); len(missed) > 0 {
			goals = "**missed**: " + strings.Join(missed, "; ")
		}
		if t.Hits == nil {
			line(r.Fault, "", "", "", "", "", "", fmt.Sprint(r.Acknowledged), fmt.Sprint(r.Lost), fmt.Sprint(r.Mismatched), goals)
			continue
		}
		line(r.Fault, t.Hits.cell(), t.Misses.cell(), t.Reads.cell(), t.Writes.cell(), fmt.Sprintf("%.1f s", t.Writes.slowest.Seconds()),
			detected, fmt.Sprint(r.Acknowledged), fmt.Sprint(r.Lost), fmt.Sprint(r.Mismatched), goals)
	}
	fmt.Fprint(&b, "\nWhat was done, and for how long there was load:\n\n")
	for _, r := range rows {
		if r.Description == "" || r.Skipped != "" {
			continue
		}
		fmt.Fprintf(&b, "- %s: %s; %.0f s.\n", r.Fault, r.Description, r.Duration.Seconds())
		if r.Voided > 0 {
			fmt.Fprintf(&b, "  %d acknowledged writes are lost by design.\n", r.Voided)
		}
		for _, note := range r.Notes {
			fmt.Fprintf(&b, "  %s.\n", strings.ToUpper(note[:1])+note[1:])
		}
	}
	_, err := io.WriteString(out, b.String())
	return err
}
