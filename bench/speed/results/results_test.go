//go:build !race

package results

import (
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// example returns a run with every kind of content.
func example() *Run {
	random := rand.New(rand.NewPCG(1, 2))
	rounds := func(around, spread float64) []float64 {
		figures := make([]float64, 15)
		for i := range figures {
			figures[i] = around * (1 + spread*(random.Float64()-0.5))
		}
		return figures
	}
	rate := func(name, version string, around float64) Subject {
		return Subject{
			Name: name, Version: version, Rounds: rounds(around, 0.2),
			Figures: []Figure{{"p99", "ms", rounds(20_000/around, 0.3)}, {"processor", "µs an answer", rounds(900_000/around, 0.1)}},
		}
	}
	point := func(rate, p50, p99, p999 float64) Point {
		p := Point{Rate: rate}
		for _, factor := range []float64{1, 0.96, 1.05, 0.98, 1.02, 0.9, 1.1} { // 1 in the middle
			p.P50, p.P99, p.P999 = append(p.P50, p50*factor), append(p.P99, p99*factor), append(p.P999, p999*factor)
		}
		return p
	}
	sharp := Subject{Name: "sharp behind Node", Missing: "Node is not installed: apt-get install nodejs npm"}
	r := &Run{
		Date: time.Date(2026, 10, 2, 9, 30, 0, 0, time.UTC), Commit: "5f3c41f", Seconds: 1230,
		Machine:  Machine{Processor: "AMD EPYC-Genoa Processor", Processors: 2, Memory: 24 << 30, Kernel: "Linux 6.18.5", Go: "go1.26.8"},
		Programs: []Program{{"nginx", "nginx 1.22.1"}, {"Varnish", "Varnish 7.1.1"}, {"image/png", "go1.26.8"}},
		Settings: []Setting{{"CORE_LIMIT_REQUESTS", "0 in the scenario API read, else the default"}, {"nginx's open_file_cache", "max=18976"}},
		Scenarios: []Scenario{
			{"hot", "One picture that is in memory, requested over 32 connections", "answers/s", true, 5, []Subject{
				rate("Veneer", "", 77_700), rate("bare fasthttp", "1.74.0", 76_000), rate("nginx, a file", "1.22.1", 56_200), rate("Varnish before Veneer", "7.1.1", 41_000),
			}},
			{"revalidation", "A picture that the client has, answered 304.", "answers/s", true, 5, []Subject{
				rate("Veneer", "", 82_800), rate("bare fasthttp", "1.74.0", 85_600), rate("nginx, a file", "1.22.1", 103_600), {Name: "Varnish before Veneer", Missing: "it is not installed: apt-get install varnish"},
			}},
			{"cold", "Every view is new: fetched, decoded, drawn and encoded", "pictures/s", true, 5, []Subject{
				rate("Veneer", "", 640), rate("net/http and image/png", "go1.26.8", 96), sharp,
				{Name: "nginx, a file", Unsupported: "it draws nothing"},
			}},
			{"upload", "A texture of 64 by 64, until it is stored", "ms", false, 5, []Subject{
				rate("Veneer", "", 9), {Name: "nginx with WebDAV", Version: "1.22.1", Rounds: rounds(6.5, 0.5)},
			}},
		},
		Latency: []Curve{
			{"Veneer", []Point{
				point(2000, 0.09, 0.5, 2.1),
				point(4000, 0.09, 0.6, 2.6),
				point(8000, 0.1, 0.8, 3.1),
				point(12000, 0.12, 1.1, 4),
				point(16000, 0.14, 1.7, 5.2),
				point(24000, 0.2, 2.9, 8),
				point(32000, 0.31, 5.4, 13),
				point(40000, 0.6, 9.1, 24),
				point(48000, 2, 31, 70),
			}},
			{"nginx's cache before Veneer", []Point{
				point(2000, 0.15, 0.9, 3), point(4000, 0.16, 1.1, 3.6), point(8000, 0.19, 1.8, 5.5), point(12000, 0.26, 3.2, 9), point(16000, 0.5, 7, 18), point(24000, 3, 40, 95),
			}},
		},
		Soak: []Series{{Program: "core"}, {Program: "edge"}},
		Sweeps: []Sweep{{Name: "growth", Measures: "A site that grows.", Parameter: "textures", Plotted: []string{"look-up p99", "index", "list"}, Steps: []Step{
			{10_000, []Figure{{"look-up p99", "ms", rounds(1.5, 0.2)}, {"index", "bytes", []float64{91}}, {"list", "ms", []float64{3}}, {"core", "MiB", []float64{40}}}},
			{1e6, []Figure{{"look-up p99", "ms", rounds(2.5, 0.2)}, {"index", "bytes", []float64{105}}, {"list", "ms", []float64{0}}, {"core", "MiB", []float64{241}}}},
		}}},
		Costs: []Cost{{Figure{"a hit", "µs", rounds(12, 0.1)}, "behind haproxy"}, {Figure{"a row", "bytes", []float64{210}}, "of a million"}},
	}
	for i := range 241 {
		minutes := float64(i) / 12
		wave := random.Float64()
		r.Soak[0].Samples = append(r.Soak[0].Samples, Usage{minutes, int64(110e6 + 6e6*wave), 48 + int(6*wave), 71, 0})
		grown := min(1, minutes/1.5)
		r.Soak[1].Samples = append(r.Soak[1].Samples, Usage{minutes, int64(120e6 + 260e6*grown + 14e6*wave), 92 + int(9*wave), 143, int64(2.2e6 + 1.5e6*wave)})
	}
	return r
}

// Everything that is written can be read back, and is the same when it is written again.
func TestWrite(t *testing.T) {
	t.Parallel()

	run, results := example(), t.TempDir()
	first, err := run.Write(results)
	if err != nil {
		t.Fatal(err)
	}
	if name := filepath.Base(first); name != "2026-10-02-5f3c41f" {
		t.Errorf("it is written to %s", name)
	}
	back, err := Read(filepath.Join(first, "results.json"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(run, back); diff != "" {
		t.Errorf("what is read is not what was written (-want +got):\n%s", diff)
	}
	second, err := back.Write(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	names := []string{"results.json", "table.md", "ratios.svg", "ratios.png", "latency.svg", "latency.png", "soak.svg", "soak.png", "growth.svg", "growth.png"}
	for _, name := range names {
		one, other := content(t, first, name), content(t, second, name)
		if one != other {
			t.Errorf("%s differs between two writings of the same run", name)
		}
		if strings.HasSuffix(name, ".png") && len(one) > 300_000 {
			t.Errorf("%s has %d bytes, too many for a README", name, len(one))
		}
	}
	if files, err := os.ReadDir(first); err != nil || len(files) != len(names) {
		t.Errorf("there are %d files, %v; want %d", len(files), err, len(names))
	}
	run.Sweeps = nil
	if again, err := run.Write(results); err != nil || again != first {
		t.Errorf("it is written again to %s, %v; want %s", again, err, first)
	}
	if files, err := os.ReadDir(first); err != nil || len(files) != len(names)-2 {
		t.Errorf("without a sweep there are %d files, %v; want %d", len(files), err, len(names)-2)
	}
	for _, name := range []string{"ratios.svg", "latency.svg", "soak.svg"} {
		if svg := content(t, first, name); strings.Contains(svg, "NaN") || strings.Contains(svg, "Inf") {
			t.Errorf("%s has places that are no numbers", name)
		}
	}
	for _, want := range []string{">Veneer is better<", ">net/http and image/png<", ">cannot do this<", ">missing<", ">1.41×<"} {
		if !strings.Contains(content(t, first, "ratios.svg"), want) {
			t.Errorf("the plot of ratios does not say %s", want)
		}
	}
}

func content(t *testing.T, folder, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(folder, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestRatio(t *testing.T) {
	t.Parallel()

	f := func(moreIsBetter bool, ours, theirs []float64, want float64) {
		t.Helper()
		s := Scenario{MoreIsBetter: moreIsBetter, Subjects: []Subject{{Rounds: ours}, {Rounds: theirs}}}
		if got := s.Ratio(&s.Subjects[1]).Median; got != want {
			t.Errorf("Ratio of %v and %v = %v; want %v", ours, theirs, got, want)
		}
	}

	f(true, []float64{8, 80, 800}, []float64{2, 10, 50}, 8) // the ratio of the medians would be the same
	f(true, []float64{10, 1, 100}, []float64{5, 4, 1000}, 0.25)
	f(false, []float64{8, 80, 800}, []float64{2, 10, 50}, 0.125)
}

func TestWriteRejects(t *testing.T) {
	t.Parallel()

	for _, test := range []struct {
		name   string
		change func(*Run)
		want   string
	}{
		{"a run without a date", func(r *Run) { r.Date = time.Time{} }, "no date"},
		{"a commit that is a path", func(r *Run) { r.Commit = "../x" }, "no commit"},
		{"a scenario without Veneer", func(r *Run) { r.Scenarios[0].Subjects[0].Rounds = nil }, "scenario hot: there are no rounds of Veneer"},
		{"rounds without a partner", func(r *Run) { r.Scenarios[0].Subjects[1].Rounds = []float64{1} }, "bare fasthttp has 1 rounds and Veneer 15"},
		{"a figure of nothing", func(r *Run) { r.Scenarios[0].Subjects[1].Rounds[3] = 0 }, "a round of 0 answers/s"},
		{"a further figure that is not a number", func(r *Run) { r.Scenarios[0].Subjects[1].Figures[0].Rounds[3] = math.NaN() }, "p99 of NaN ms"},
		{"a further figure of some rounds", func(r *Run) { r.Scenarios[0].Subjects[1].Figures[0].Rounds = nil }, "but 0 of p99"},
		{"rounds of a missing subject", func(r *Run) { r.Scenarios[0].Subjects[1].Missing = "not installed" }, "both rounds and a reason"},
		{"a latency of 0", func(r *Run) { r.Latency[0].Points[0].P50[2] = 0 }, "latency of Veneer"},
		{"a latency of a round too few", func(r *Run) { r.Latency[0].Points[0].P50 = nil }, "not of some rounds"},
		{"a curve with mostly rejected requests", func(r *Run) { r.Latency[0].Points[0].Refused = 8 }, "not all above 0"},
		{"a curve out of order", func(r *Run) { r.Latency[0].Points[1].Rate = 1 }, "out of order"},
		{"a run with no name for a folder", func(r *Run) { r.Variant = "../x" }, "no name"},
		{"a sweep out of order", func(r *Run) { r.Sweeps[0].Steps[1].At = 1 }, "sweep growth: step 1 is out of order"},
		{"a sweep with no name for a file", func(r *Run) { r.Sweeps[0].Name = "../x" }, "no name"},
		{"a step with fewer figures", func(r *Run) { r.Sweeps[0].Steps[1].Figures = r.Sweeps[0].Steps[1].Figures[:1] }, "has 1 figures"},
		{"a step with other figures", func(r *Run) { r.Sweeps[0].Steps[1].Figures[1].Unit = "KiB" }, "has index in KiB"},
		{"a step without rounds", func(r *Run) { r.Sweeps[0].Steps[1].Figures[1].Rounds = nil }, "index has no rounds"},
		{"a plot of nothing", func(r *Run) { r.Sweeps[0].Plotted[0] = "weather" }, "no weather to plot"},
		{"an infinite cost", func(r *Run) { r.Costs[0].Rounds[2] = math.Inf(1) }, "a hit is +Inf"},
		{"a soak out of order", func(r *Run) { r.Soak[1].Samples[9].Minutes = 0 }, "soak of edge"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()

			run := example()
			test.change(run)
			folder := t.TempDir()
			if _, err := run.Write(folder); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("Write: %v; want an error with %q", err, test.want)
			}
			if files, err := os.ReadDir(folder); err != nil || len(files) > 0 {
				t.Errorf("it has written %v, %v", files, err)
			}
		})
	}
}

// A run with a few results can be written, too.
func TestWritePartialRun(t *testing.T) {
	t.Parallel()

	run := example()
	run.Scenarios, run.Latency, run.Soak, run.Sweeps, run.Costs = run.Scenarios[:1], nil, nil, nil, nil
	run.Scenarios[0].Subjects = run.Scenarios[0].Subjects[:1]
	folder, err := run.Write(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if files, err := os.ReadDir(folder); err != nil || len(files) != 2 {
		t.Errorf("there are %v, %v; want results.json and table.md: there is nothing to plot", files, err)
	}
}

func TestThisMachine(t *testing.T) {
	t.Parallel()

	m, err := ThisMachine()
	if err != nil {
		t.Fatal(err)
	}
	if m.Processor == "" || m.Processors < 1 || m.Memory < 1<<20 || !strings.HasPrefix(m.Kernel, "Linux ") || !strings.HasPrefix(m.Go, "go") {
		t.Errorf("this machine is %+v", m)
	}
}
