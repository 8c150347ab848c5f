package results

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/dustin/go-humanize"
)

// WriteTable writes the run as Markdown with aligned columns.
func (r *Run) WriteTable(out io.Writer) error {
	if err := r.check(); err != nil {
		return err
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "# %s\n\nCommit %s, %s, on %s.", r.title(), r.Commit, r.Date.UTC().Format(minute), r.Machine)
	if r.Seconds > 0 { // missing in earlier runs
		fmt.Fprintf(&b, " It took %s minutes.", number(r.Seconds/60))
	}
	fmt.Fprintln(&b)
	if r.Quick {
		fmt.Fprint(&b, "\n**This is a quick check: everything ran, but for too short a time to say how fast it is. It claims no figures.**\n")
	}
	if r.Failed != "" {
		fmt.Fprintf(&b, "\n**This run failed: %s**\n", strings.Join(strings.Fields(r.Failed), " "))
	}
	r.writeScenarios(&b)
	r.writeLatency(&b)
	r.writeSoak(&b)
	r.writeSweeps(&b)
	r.writeCosts(&b)
	if len(r.Programs) > 0 {
		fmt.Fprint(&b, "\nCompared with:\n\n")
		for _, p := range r.Programs {
			fmt.Fprintf(&b, "- %s\n", nameAndVersion(p.Name, p.Version))
		}
	}
	fmt.Fprint(&b, "\nSettings that are not the defaults, raised limits among them:\n\n")
	for _, s := range r.Settings {
		fmt.Fprintf(&b, "- %s: %s\n", s.Name, s.Value)
	}
	if len(r.Settings) == 0 {
		fmt.Fprint(&b, "- none\n")
	}
	_, err := b.WriteTo(out)
	return err
}

// title returns the title of the table and of the plot of ratios.
func (r *Run) title() string {
	if r.Variant != "" {
		return "Veneer: " + r.Variant
	}
	return "Veneer side by side"
}

// minute is the format of dates.
const minute = "2006-01-02 15:04 UTC"

// writeScenarios writes one table of all scenarios, and their descriptions.
func (r *Run) writeScenarios(b *bytes.Buffer) {
	if len(r.Scenarios) == 0 {
		return
	}
	rows := [][]string{{"scenario", "subject", "median", "unit", "Veneer is", "95 % bounds", "and"}}
	fewest := math.MaxInt
	for i := range r.Scenarios {
		s := &r.Scenarios[i]
		fewest = min(fewest, len(s.Subjects[0].Rounds))
		for j := range s.Subjects {
			row := append([]string{""}, r.subjectCells(s, j)...)
			if j == 0 {
				row[0] = s.Name
			}
			rows = append(rows, row)
		}
	}
	b.WriteByte('\n')
	writeRows(b, rows, "llrlrrl")
	if !r.Quick {
		fmt.Fprint(b, "\nRounds of all subjects alternate. \"Veneer is\" the median of the ratios within rounds, inverted where less is better: above 1 Veneer is better.\nThe bounds are those of that median's 95 % confidence interval, by order statistics; ")
		fmt.Fprintf(b, "there were at least %d rounds, after some to warm up that do not count.\n", fewest)
		r.writeDrift(b)
	}
	fmt.Fprint(b, "\nWhat is measured:\n\n")
	for _, s := range r.Scenarios {
		better := "more"
		if !s.MoreIsBetter {
			better = "less"
		}
		fmt.Fprintf(b, "- %s: %s In %s; %s is better.\n", s.Name, sentence(s.Measures), s.Unit, better)
	}
}

// writeDrift lists the ratios that had not reached a steady state.
func (r *Run) writeDrift(b *bytes.Buffer) {
	var moved []string
	for i := range r.Scenarios {
		s := &r.Scenarios[i]
		for j := range s.Subjects[1:] {
			subject := &s.Subjects[j+1]
			if len(subject.Rounds) == 0 {
				continue
			}
			if first, last, is := s.Drift(subject); is {
				moved = append(moved, fmt.Sprintf("- %s, %s: from %s to %s\n", s.Name, subject.Name, times(first), times(last)))
			}
		}
	}
	if len(moved) == 0 {
		fmt.Fprint(b, "No ratio changed by a tenth from the first third of its rounds to the last.\n")
		return
	}
	fmt.Fprintf(b, "These ratios changed from the first third of their rounds to the last, so their bounds say less:\n\n%s", strings.Join(moved, ""))
}

// nameAndVersion returns a name with a version, which may begin with it, or be empty.
func nameAndVersion(name, version string) string {
	switch {
	case version == "":
		return name
	case strings.HasPrefix(version, name+" "):
		return version
	}
	return name + " (" + version + ")"
}

// subjectCells returns the table cells of a subject.
func (r *Run) subjectCells(s *Scenario, of int) []string {
	subject := &s.Subjects[of]
	name := nameAndVersion(subject.Name, subject.Version)
	switch {
	case subject.Missing != "":
		return []string{name, "missing", "", "", "", subject.Missing}
	case subject.Unsupported != "":
		return []string{name, "cannot", "", "", "", subject.Unsupported}
	case r.Quick:
		return []string{name, "ran", "", "", "", ""}
	}
	row := []string{name, number(Summarize(subject.Rounds).Median), s.Unit, "", "", ""}
	if of > 0 {
		ratio := s.Ratio(subject)
		row[3], row[4] = times(ratio.Median), "too few rounds"
		if ratio.Bounded() {
			row[4] = times(ratio.Low) + " to " + times(ratio.High)
		}
	}
	further := make([]string, len(subject.Figures))
	for i, f := range subject.Figures {
		further[i] = f.Name + " " + number(Summarize(f.Rounds).Median) + " " + f.Unit
	}
	row[5] = strings.Join(further, ", ")
	return row
}

// writeLatency summarises the plot in a sentence for each subject.
func (r *Run) writeLatency(b *bytes.Buffer) {
	if len(r.Latency) == 0 || r.Quick {
		return
	}
	fmt.Fprintf(b, "\nAt rising rates (see latency.svg), medians of alternating rounds and their 95 %% bounds, until the p99 is above %d ms:\n\n", p99Limit)
	for _, curve := range r.Latency {
		if p, ok := curve.fastest(); ok {
			fmt.Fprintf(b, "- %s: up to %s answers/s, with a p50 of %s, a p99 of %s and a p99.9 of %s.",
				curve.Name, number(p.Rate), milliseconds(p.Summarize(p.P50)), milliseconds(p.Summarize(p.P99)), milliseconds(p.Summarize(p.P999)))
			if len(p.Busy) > 0 { // missing in earlier runs
				fmt.Fprintf(b, " The load was busy for %s %% of the time then, and late by %s ms at most in the median round.",
					number(Summarize(p.Busy).Median), number(Summarize(p.Late).Median))
			}
			fmt.Fprintln(b)
		} else {
			fmt.Fprintf(b, "- %s: at none of the rates.\n", curve.Name)
		}
	}
}

// milliseconds formats a median with its bounds, if any.
func milliseconds(s Summary) string {
	text := number(s.Median) + " ms"
	switch {
	case s.Bounded():
		return text + " (" + number(s.Low) + " to " + number(s.High) + ")"
	case !math.IsInf(s.Low, -1):
		return text + " (at least " + number(s.Low) + ")"
	}
	return text
}

// p99Limit is the limit of the p99 in milliseconds.
const p99Limit = 10

// fastest returns the highest rate before the first one with a p99 above p99Limit.
func (c *Curve) fastest() (p Point, ok bool) {
	for _, next := range c.Points {
		if next.Summarize(next.P99).Median > p99Limit {
			break
		}
		p, ok = next, true
	}
	return p, ok
}

// writeRows writes a table in columns of equal width. The first row is the header. The last column
// has no fixed width if it is aligned to the left. Each column is aligned to the left (l) or right
// (r).
func writeRows(b *bytes.Buffer, rows [][]string, align string) {
	widths := make([]int, len(align))
	for _, row := range rows {
		for i, cell := range row {
			row[i] = strings.ReplaceAll(strings.Join(strings.Fields(cell), " "), "|", `\|`)
			widths[i] = max(widths[i], 3, utf8.RuneCountInString(row[i]))
		}
	}
	last := len(align) - 1
	if align[last] == 'l' {
		widths[last] = utf8.RuneCountInString(rows[0][last])
	}
	for n, row := range rows {
		for i, cell := range row {
			space := strings.Repeat(" ", max(0, widths[i]-utf8.RuneCountInString(cell)))
			if align[i] == 'r' {
				cell = space + cell
			} else {
				cell += space
			}
			fmt.Fprintf(b, "| %s ", cell)
		}
		b.WriteString("|\n")
		if n > 0 {
			continue
		}
		for i, width := range widths {
			rule := strings.Repeat("-", width+1)
			if align[i] == 'r' {
				fmt.Fprintf(b, "|%s:", rule)
			} else {
				fmt.Fprintf(b, "|%s-", rule)
			}
		}
		b.WriteString("|\n")
	}
}

// sentence adds a missing full stop.
func sentence(s string) string { return strings.TrimSuffix(s, ".") + "." }

// number formats a figure with three significant digits.
func number(x float64) string {
	digits := strconv.FormatFloat(x, 'g', 3, 64)
	if rounded, err := strconv.ParseFloat(digits, 64); err == nil {
		digits = humanize.Commaf(rounded)
	}
	return digits
}

// times formats a ratio with two decimals, and fewer for larger ones.
func times(x float64) string {
	if x < 10 {
		return strconv.FormatFloat(x, 'f', 2, 64) + "×"
	}
	return number(x) + "×"
}
