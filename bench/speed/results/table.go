package results

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/dustin/go-humanize"
)

// WriteTable writes the run as Markdown.
func (r *Run) WriteTable(out io.Writer) error {
	if err := r.check(); err != nil {
		return err
	}
	title := " side by side"
	if r.Variant != "" {
		title = ": " + r.Variant
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# Veneer%s\n\nCommit %s, %s, on %s.", title, r.Commit, r.Date.UTC().Format("2006-01-02 15:04 UTC"), r.Machine)
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
	r.writeSweeps(&b)
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
	_, err := io.WriteString(out, b.String())
	return err
}

// writeScenarios writes one table of all scenarios, and their descriptions.
func (r *Run) writeScenarios(out io.Writer) {
	if len(r.Scenarios) == 0 {
		return
	}
	rows := [][]string{{"scenario", "subject", "median", "unit", "Veneer is", "95 % bounds", "and"}}
	var moved, descriptions strings.Builder
	fewest := math.MaxInt
	for _, s := range r.Scenarios {
		fewest = min(fewest, len(s.Subjects[0].Rounds))
		better, name := "less", s.Name
		if s.MoreIsBetter {
			better = "more"
		}
		fmt.Fprintf(&descriptions, "- %s: %s. In %s; %s is better.\n", s.Name, strings.TrimSuffix(s.Measures, "."), s.Unit, better)
		for i := range s.Subjects {
			subject := &s.Subjects[i]
			rows, name = append(rows, append([]string{name, nameAndVersion(subject.Name, subject.Version)}, r.cells(&s, subject)...)), ""
			if first, last, is := s.Drift(subject); is {
				fmt.Fprintf(&moved, "- %s, %s: from %s to %s\n", s.Name, subject.Name, times(first), times(last))
			}
		}
	}
	Markdown(out, "llrlrrl", rows)
	if !r.Quick {
		fmt.Fprintf(out, "\nRounds of all subjects alternate. \"Veneer is\" the median of the ratios within rounds, inverted where less is better: above 1 Veneer is better.\nThe bounds are those of that median's 95 %% confidence interval, by order statistics; there were at least %d rounds, after some to warm up that do not count.\n", fewest)
		if moved.Len() == 0 {
			fmt.Fprint(out, "No ratio changed by a tenth from the first third of its rounds to the last.\n")
		} else {
			fmt.Fprintf(out, "These ratios changed from the first third of their rounds to the last, so their bounds say less:\n\n%s", &moved)
		}
	}
	fmt.Fprintf(out, "\nWhat is measured:\n\n%s", &descriptions)
}

// cells returns the cells of a subject, from its median on.
func (r *Run) cells(s *Scenario, subject *Subject) []string {
	switch {
	case subject.Missing != "":
		return []string{"missing", "", "", "", subject.Missing}
	case subject.Unsupported != "":
		return []string{"cannot", "", "", "", subject.Unsupported}
	case r.Quick:
		return []string{"ran", "", "", "", ""}
	}
	ratio, bounds := "", ""
	if subject != &s.Subjects[0] {
		summary := s.Ratio(subject)
		ratio, bounds = times(summary.Median), "too few rounds"
		if summary.Bounded() {
			bounds = times(summary.Low) + " to " + times(summary.High)
		}
	}
	var further []string
	for _, f := range subject.Figures {
		further = append(further, f.Name+" "+number(f.Summary().Median)+" "+f.Unit)
	}
	return []string{number(Summarize(subject.Rounds).Median), s.Unit, ratio, bounds, strings.Join(further, ", ")}
}

// nameAndVersion returns a name with a version, which may begin with it, or be empty.
func nameAndVersion(name, version string) string {
	if version == "" || strings.HasPrefix(version, name+" ") {
		return cmp.Or(version, name)
	}
	return name + " (" + version + ")"
}

// writeSweeps writes a table for each sweep, with a row for a figure and a column for a step, and
// one of costs. A quick check has none.
func (r *Run) writeSweeps(out io.Writer) {
	if len(r.Sweeps)+len(r.Costs) == 0 || r.Quick {
		return
	}
	for _, s := range r.Sweeps {
		fmt.Fprintf(out, "\n%s: %s.\n", s.Name, strings.TrimSuffix(s.Measures, "."))
		rows := [][]string{{s.Parameter}}
		for i, step := range s.Steps {
			rows[0] = append(rows[0], number(step.At))
			for n, name := range step.names() {
				if i == 0 {
					rows = append(rows, []string{name})
				}
				rows[n+1] = append(rows[n+1], interval(step.Figures[n].Summary()))
			}
		}
		Markdown(out, "l"+strings.Repeat("r", len(s.Steps)), rows)
	}
	rows := [][]string{{"cost of", "median", "unit", "how it was measured"}}
	for _, cost := range r.Costs {
		rows = append(rows, []string{cost.Name, interval(cost.Summary()), cost.Unit, cost.Method})
	}
	if len(r.Costs) > 0 {
		Markdown(out, "lrll", rows)
	}
	fmt.Fprint(out, "\nThese are medians and, where there were six rounds or more, the bounds of their 95 % confidence intervals.\n")
}

// Markdown writes a table in columns of equal width after an empty line. The first row is the
// header. Each column is aligned to the left (l) or right (r); a last one to the left has no fixed
// width.
func Markdown(out io.Writer, align string, rows [][]string) {
	widths := make([]int, len(align))
	for _, row := range rows {
		for i, cell := range row {
			row[i] = strings.ReplaceAll(strings.Join(strings.Fields(cell), " "), "|", `\|`)
			widths[i] = max(widths[i], 3, utf8.RuneCountInString(row[i]))
		}
	}
	if last := len(align) - 1; align[last] == 'l' {
		widths[last] = utf8.RuneCountInString(rows[0][last])
	}
	rule := make([]string, len(align))
	for i, width := range widths {
		rule[i] = strings.Repeat("-", width)
		if align[i] == 'r' {
			rule[i] = rule[i][1:] + ":"
		}
	}
	fmt.Fprintln(out)
	for _, row := range slices.Insert(rows, 1, rule) {
		for i, cell := range row {
			space := strings.Repeat(" ", max(0, widths[i]-utf8.RuneCountInString(cell)))
			if align[i] == 'r' {
				cell = space + cell
			} else {
				cell += space
			}
			fmt.Fprintf(out, "| %s ", cell)
		}
		fmt.Fprintln(out, "|")
	}
}

// interval formats a median and its bounds, if any.
func interval(s Summary) string {
	switch {
	case s.Bounded():
		return number(s.Median) + " (" + number(s.Low) + " to " + number(s.High) + ")"
	case !math.IsInf(s.Low, -1):
		return number(s.Median) + " (at least " + number(s.Low) + ")"
	}
	return number(s.Median)
}

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
