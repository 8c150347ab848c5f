//go:build !race

package results

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestWriteTable(t *testing.T) {
	t.Parallel()

	var out strings.Builder
	if err := example().WriteTable(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"Commit 5f3c41f, 2026-10-02 09:30 UTC, on 2 processors of an AMD EPYC-Genoa Processor, 24.0 GiB of memory, Linux 6.18.5, go1.26.8. It took 20.5 minutes.\n",
		"| hot          | Veneer                            |  79,300 | answers/s  |           |                | p99 0.268 ms, processor 11.4 µs an answer |\n",
		"|              | bare fasthttp (1.74.0)            |  76,700 | answers/s  |     1.03× | 0.99× to 1.08× | p99 0.28 ms,",
		"|              | sharp behind Node                 | missing |            |           |                | Node is not installed: apt-get install nodejs npm |\n",
		"|              | nginx, a file                     |  cannot |            |           |                | it draws nothing |\n",
		"|              | nginx with WebDAV (1.22.1)        |    6.32 | ms         |     0.73× | 0.64× to 0.88× |     |\n",
		"at least 15 rounds, after some to warm up that do not count.\nThese ratios changed from the first third of their rounds to the last, so their bounds say less:\n\n- cold, net/http and image/png: from 6.38× to 7.06×\n\nWhat is measured",
		"- revalidation: A picture that the client has, answered 304. In answers/s; more is better.\n",
		"- upload: A texture of 64 by 64, until it is stored. In ms; less is better.\n",
		"- Veneer: up to 40,000 answers/s, with a p50 of 0.6 ms (0.54 to 0.66), a p99 of 9.1 ms (8.19 to 10) and a p99.9 of 24 ms (21.6 to 26.4).\n",
		"\ngrowth: A site that grows.\n\n| textures        |              10,000 |          1,000,000 |\n|-----------------|--------------------:|-------------------:|\n",
		"| look-up p99, ms | 1.46 (1.41 to 1.52) | 2.5 (2.33 to 2.68) |\n",
		"| index, bytes    |                  91 |                105 |\n",
		"\nOver 20 minutes, medians of the quarters (see soak.svg):\n",
		"| a row   |    210 | bytes |",
		"| of a million        |\n",
		"- Varnish 7.1.1\n- image/png (go1.26.8)\n",
		"- nginx's open_file_cache: max=18976\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("it does not say %q", want)
		}
	}
	for _, not := range []string{"quick check", "failed"} {
		if strings.Contains(out.String(), not) {
			t.Errorf("it says that it is a run that is: %s", not)
		}
	}
	if t.Failed() {
		t.Log(out.String())
	}
}

// A quick check lists the subjects, but shows no figure.
func TestWriteTableOfQuickCheck(t *testing.T) {
	t.Parallel()

	run := example()
	run.Quick = true
	var out strings.Builder
	if err := run.WriteTable(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"**This is a quick check: everything ran, but for too short a time to say how fast it is. It claims no figures.**",
		"| hot          | Veneer                            |     ran |      |           |             |     |\n",
		"missing",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("it does not say %q", want)
		}
	}
	for _, figure := range []string{"×", "79,300", "p99 0", "95 % confidence", "105", "210"} {
		if strings.Contains(out.String(), figure) {
			t.Errorf("it says %q", figure)
		}
	}
	if t.Failed() {
		t.Log(out.String())
	}
	run.Variant = "scale"
	if got, want := run.Folder(), "2026-10-02-5f3c41f-scale-quick"; got != want {
		t.Errorf("its folder is %s; want %s", got, want)
	}
}

// A failed run says so and why. A ratio that moved by less than a tenth is steady.
func TestWriteTableOfFailed(t *testing.T) {
	t.Parallel()

	run := example()
	run.Failed = "upload: round 3:\nPUT / answers 500"
	run.Scenarios = run.Scenarios[:1]
	nginx := &run.Scenarios[0].Subjects[2]
	for i, veneer := range run.Scenarios[0].Subjects[0].Rounds {
		nginx.Rounds[i] = veneer / (4 - 0.02*float64(i))
	}
	var out strings.Builder
	if err := run.WriteTable(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"\n**This run failed: upload: round 3: PUT / answers 500**\n",
		"\nNo ratio changed by a tenth from the first third of its rounds to the last.\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("it does not say %q:\n%s", want, &out)
		}
	}
}

// Fewer than 6 rounds have no bounds, and a curve may be too slow from the start.
func TestWriteTableOfPartialRun(t *testing.T) {
	t.Parallel()

	run := example()
	run.Scenarios = run.Scenarios[:1]
	for i := range run.Scenarios[0].Subjects {
		subject := &run.Scenarios[0].Subjects[i]
		subject.Rounds, subject.Figures = subject.Rounds[:5], nil
	}
	run.Scenarios[0].Subjects[0].Name = "Veneer | a\nbar"
	run.Latency[0].Points = run.Latency[0].Points[:1]
	run.Latency[0].Points[0].Refused = 1
	run.Latency[1].Points = run.Latency[1].Points[5:]
	run.Settings = nil
	var out strings.Builder
	if err := run.WriteTable(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`| Veneer \| a bar `, "| too few rounds |", "a p99 of 0.505 ms (at least 0.45)", "- nginx's cache before Veneer: at none of the rates.", "- none\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("it does not say %q:\n%s", want, &out)
		}
	}
	var widths []int
	scenarios, _, _ := strings.Cut(out.String(), "What is measured")
	for line := range strings.Lines(scenarios) {
		if strings.HasPrefix(line, "|") {
			widths = append(widths, utf8.RuneCountInString(line))
		}
	}
	if want := []int{widths[0], widths[0], widths[0], widths[0], widths[0], widths[0]}; !cmp.Equal(widths, want) {
		t.Errorf("the lines of the table are %v characters long", widths)
	}
}

// Usage that grows until the end is not flat; usage that had grown before is.
func TestIsFlat(t *testing.T) {
	t.Parallel()

	const mib = 1 << 20
	soak := func(resident func(sample int) int64) *Run {
		series := Series{Program: "edge"}
		for sample := range 40 {
			series.Samples = append(series.Samples, Usage{Minutes: float64(sample), Resident: resident(sample), Goroutines: 90, Files: 140})
		}
		return &Run{Soak: []Series{series}}
	}
	f := func(what, want string, resident func(sample int) int64) {
		t.Helper()
		if err := soak(resident).CheckFlat(); (err != nil) != (want != "") || err != nil && err.Error() != want {
			t.Errorf("%s: %v; want %q", what, err, want)
		}
	}
	f("level", "", func(int) int64 { return 400 * mib })
	f("filled at first", "", func(sample int) int64 { return int64(min(100+40*sample, 400)) * mib })
	f("one high sample", "", func(sample int) int64 { return int64(400+500*(sample/39)) * mib })
	f("hardly growing", "", func(sample int) int64 { return int64(400+8*(sample/30)) * mib })
	f("one more", "", func(sample int) int64 { return int64(4+sample/30) * mib })
	f("growing a little", "resident memory, MiB of the edge: 400 in the second quarter, and 420 in the last", func(sample int) int64 { return int64(400+20*(sample/30)) * mib })
	f("growing", "resident memory, MiB of the edge: 248 in the second quarter, and 448 in the last", func(sample int) int64 { return int64(103+10*sample) * mib })

	run := soak(func(int) int64 { return 1 })
	run.Soak[0].Samples = run.Soak[0].Samples[:7]
	if run.CheckFlat() == nil {
		t.Error("seven samples are flat")
	}
}

func TestNumber(t *testing.T) {
	t.Parallel()

	f := func(x float64, want string) {
		t.Helper()
		if got := number(x); got != want {
			t.Errorf("number(%v) = %s; want %s", x, got, want)
		}
	}

	f(0, "0")
	f(0.00012345, "0.000123")
	f(0.5, "0.5")
	f(9.999, "10")
	f(12.34, "12.3")
	f(999.9, "1,000")
	f(77_712, "77,700")
	f(1_234_567, "1,230,000")
}
