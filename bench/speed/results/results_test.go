package results

import (
	"math"
	"math/big"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/veneer-skins/veneer/shared/testenv"
	"github.com/veneer-skins/veneer/shared/testenv/cmptest"
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
			Figures: []Figure{{"p99", "ms", rounds(20_000/around, 0.3), 0}, {"processor", "µs an answer", rounds(900_000/around, 0.1), 0}},
		}
	}
	step := func(rate, p50, p99, p999 float64) Step {
		var rounds [][]Figure
		for _, factor := range []float64{1, 0.96, 1.05, 0.98, 1.02, 0.9, 1.1} { // 1 in the middle
			rounds = append(rounds, []Figure{
				{Name: "p50", Unit: "ms", Rounds: []float64{p50 * factor}},
				{Name: "p99", Unit: "ms", Rounds: []float64{p99 * factor}},
				{Name: "p99.9", Unit: "ms", Rounds: []float64{p999 * factor}},
			})
		}
		return NewStep(rate, rounds)
	}
	sharp := Subject{Name: "sharp behind Node", Missing: "Node is not installed: apt-get install nodejs npm"}
	return &Run{
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
		Sweeps: []Sweep{
			{"mixed day of Veneer", "Latency at rising rates", "requests a second", []Step{step(2000, 0.09, 0.5, 2.1), step(40000, 0.6, 9.1, 24), step(48000, 2, 31, 70)}},
			{"growth", "A site that grows.", "textures", []Step{
				{10_000, []Figure{{"look-up p99", "ms", rounds(1.5, 0.2), 0}, {"index", "bytes", []float64{91}, 0}, {"files", "", []float64{40}, 0}}},
				{1e6, []Figure{{"look-up p99", "ms", rounds(2.5, 0.2), 0}, {"index", "bytes", []float64{105}, 0}, {"files", "", []float64{241}, 0}}},
			}},
		},
		Costs: []Cost{{Figure{"a hit", "µs", rounds(12, 0.1), 0}, "behind haproxy"}, {Figure{"a row", "bytes", []float64{210}, 0}, "of a million"}},
	}
}

// Everything that is written can be read back, and is the same when it is written again.
func TestWrite(t *testing.T) {
	t.Parallel()
	run, results := example(), t.TempDir()
	first := testenv.Must(run.Write(results))(t)
	testenv.Equal(t, filepath.Base(first), "2026-10-02-5f3c41f", "it is written to")
	back := testenv.Must(Read(filepath.Join(first, "results.json")))(t)
	cmptest.Same(t, back, run, "what is read of what was written")
	second := testenv.Must(back.Write(t.TempDir()))(t)
	for _, name := range []string{"results.json", "table.md"} {
		if one, other := content(t, first, name), content(t, second, name); one != other {
			t.Errorf("%s differs between two writings of the same run", name)
		}
	}
	run.Sweeps = nil
	if again, err := run.Write(results); err != nil || again != first {
		t.Errorf("it is written again to %s, %v; want %s", again, err, first)
	}
	if strings.Contains(content(t, first, "table.md"), "mixed day") {
		t.Error("the table of an earlier run is still there")
	}
}

func content(t *testing.T, folder, name string) string {
	t.Helper()
	return string(testenv.Must(os.ReadFile(filepath.Join(folder, name)))(t))
}

func TestRatio(t *testing.T) {
	t.Parallel()
	f := func(moreIsBetter bool, ours, theirs []float64, want float64) {
		t.Helper()
		s := Scenario{MoreIsBetter: moreIsBetter, Subjects: []Subject{{Rounds: ours}, {Rounds: theirs}}}
		testenv.Equal(t, s.Ratio(&s.Subjects[1]).Median, want, "Ratio of %v and %v", ours, theirs)
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
		{"a commit that is a path", func(r *Run) { r.Commit = "../x" }, "no name"},
		{"a variant that is a path", func(r *Run) { r.Variant = "../x" }, "no name"},
		{"a scenario without Veneer", func(r *Run) { r.Scenarios[0].Subjects[0].Rounds = nil }, "scenario hot: there are no rounds of Veneer"},
		{"rounds without a partner", func(r *Run) { r.Scenarios[0].Subjects[1].Rounds = []float64{1} }, "bare fasthttp has 1 rounds of answers/s, not 15"},
		{"a figure of nothing", func(r *Run) { r.Scenarios[0].Subjects[1].Rounds[3] = 0 }, "a round of 0 answers/s"},
		{"a further figure that is not a number", func(r *Run) { r.Scenarios[0].Subjects[1].Figures[0].Rounds[3] = math.NaN() }, "NaN"},
		{"a further figure of some rounds", func(r *Run) { r.Scenarios[0].Subjects[1].Figures[0].Rounds = nil }, "has 0 rounds of p99, not 15"},
		{"rounds of a missing subject", func(r *Run) { r.Scenarios[0].Subjects[1].Missing = "not installed" }, "has 15 rounds of answers/s, not 0"},
		{"a sweep out of order", func(r *Run) { r.Sweeps[1].Steps[1].At = 1 }, "sweep growth: step 1 is out of order"},
		{"a step with fewer figures", func(r *Run) { r.Sweeps[1].Steps[1].Figures = r.Sweeps[1].Steps[1].Figures[:1] }, `step 1e+06 has ["look-up p99, ms"], and the first one`},
		{"a step with other figures", func(r *Run) { r.Sweeps[1].Steps[1].Figures[1].Unit = "KiB" }, `"index, KiB"`},
		{"a step without rounds", func(r *Run) { r.Sweeps[1].Steps[1].Figures[1].Rounds = nil }, "no rounds of index"},
		{"an infinite cost", func(r *Run) { r.Costs[0].Rounds[2] = math.Inf(1) }, "+Inf"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			run := example()
			test.change(run)
			folder := t.TempDir()
			testenv.ErrorHas(t, testenv.ErrOf(run.Write(folder)), test.want, "Write")
			if files, err := os.ReadDir(folder); err != nil || len(files) > 0 {
				t.Errorf("it has written %v, %v", files, err)
			}
		})
	}
}

func TestThisMachine(t *testing.T) {
	t.Parallel()
	m := testenv.Must(ThisMachine())(t)
	if m.Processor == "" || m.Processors < 1 || m.Memory < 1<<20 || !strings.HasPrefix(m.Kernel, "Linux ") || !strings.HasPrefix(m.Go, "go") {
		t.Errorf("this machine is %+v", m)
	}
}

func TestLowerRank(t *testing.T) {
	t.Parallel()
	// From tables of the sign test.
	for n, want := range map[int]int{1: 0, 5: 0, 6: 1, 8: 1, 9: 2, 20: 6, 30: 10, 50: 18} {
		testenv.Equal(t, LowerRank(n), want, "LowerRank(%d)", n)
	}
	// 40 times the number of ways in which fewer than k of n values can be low must be at most
	// the number of all ways.
	for n := range 200 {
		k, fewer := 0, new(big.Int)
		for all := new(big.Int).Lsh(big.NewInt(1), uint(n)); ; k++ {
			fewer.Add(fewer, new(big.Int).Binomial(int64(n), int64(k)))
			if new(big.Int).Mul(fewer, big.NewInt(40)).Cmp(all) > 0 {
				break
			}
		}
		if got := LowerRank(n); n > 0 && got != k {
			t.Errorf("LowerRank(%d) = %d; want %d", n, got, k)
		}
	}
}

func TestSummarize(t *testing.T) {
	t.Parallel()
	rounds := []float64{7, 1, 5, 9, 3, 8, 2, 6, 4} // the bounds are the second from either end
	if got, want := Summarize(rounds), (Summary{Median: 5, Low: 2, High: 8}); got != want || !got.Bounded() {
		t.Errorf("Summarize(%v) = %+v; want %+v", rounds, got, want)
	}
	testenv.Check(t, rounds[0] == 7, "the rounds are not in their order any more")
	testenv.Equal(t, Median([]float64{1, 2, 4, 9}), 3, "the median of four")
	if got := Summarize(rounds[:5]); got.Median != 5 || got.Bounded() || got.Low > -1e300 {
		t.Errorf("five rounds: %+v; want no bounds", got)
	}
}

// Of all permutations of n rounds, Trend finds a trend in nearly one of a hundred, and in no more.
func TestTrend(t *testing.T) {
	t.Parallel()
	for _, n := range []int{8, 11, 15, 20, 30} {
		// The number of permutations by falling pairs: permutations of one round fewer, with the
		// last round at any position.
		orders := []*big.Int{big.NewInt(1)}
		for rounds := 2; rounds <= n; rounds++ {
			more := make([]*big.Int, len(orders)+rounds-1)
			for i := range more {
				more[i] = new(big.Int)
			}
			for falling, count := range orders {
				for place := range rounds {
					more[falling+place].Add(more[falling+place], count)
				}
			}
			orders = more
		}
		all, found := new(big.Int).MulRange(1, int64(n)), new(big.Int)
		for falling, count := range orders {
			if trend := Trend(inOrder(n, falling)); trend != 0 {
				found.Add(found, count)
				if rises := falling < n*(n-1)/4; rises != (trend > 0) {
					t.Errorf("%d of %d pairs fall: %d", falling, n*(n-1)/2, trend)
				}
			}
		}
		share, _ := new(big.Rat).SetFrac(found, all).Float64()
		testenv.Check(t, share <= 0.01 && share >= 0.005, "%d rounds have a trend in %v of all orders", n, share)
	}
	if Trend(inOrder(7, 0)) != 0 || Trend(make([]float64, 20)) != 0 {
		t.Error("there is a trend in few rounds, or in equal ones")
	}
}

// inOrder returns n values with a number of falling pairs.
func inOrder(n, falling int) (values []float64) {
	for i := range n {
		place := min(falling, i) // from the end
		falling -= place
		values = slices.Insert(values, i-place, float64(i))
	}
	return values
}

// tableOf returns the table of a run, which must contain some texts.
func tableOf(t *testing.T, run *Run, wants ...string) string {
	t.Helper()
	var out strings.Builder
	testenv.Do(t, run.WriteTable(&out))
	for _, want := range wants {
		testenv.Check(t, strings.Contains(out.String(), want), "it does not say %q:\n%s", want, &out)
	}
	return out.String()
}

func TestWriteTable(t *testing.T) {
	t.Parallel()
	table := tableOf(t, example(),
		"Commit 5f3c41f, 2026-10-02 09:30 UTC, on 2 processors of an AMD EPYC-Genoa Processor, 24.0 GiB of memory, Linux 6.18.5, go1.26.8. It took 20.5 minutes.\n",
		"| hot          | Veneer                            |  79,300 | answers/s  |           |                | p99 0.268 ms, processor 11.4 µs an answer |\n",
		"|              | bare fasthttp (1.74.0)            |  76,700 | answers/s  |     1.03× | 0.99× to 1.08× | p99 0.28 ms,",
		"|              | sharp behind Node                 | missing |            |           |                | Node is not installed: apt-get install nodejs npm |\n",
		"|              | nginx, a file                     |  cannot |            |           |                | it draws nothing |\n",
		"|              | nginx with WebDAV (1.22.1)        |    6.32 | ms         |     0.73× | 0.64× to 0.88× |     |\n",
		"at least 15 rounds, after some to warm up that do not count.\nThese ratios changed from the first third of their rounds to the last, so their bounds say less:\n\n- cold, net/http and image/png: from 6.38× to 7.06×\n\nWhat is measured",
		"- revalidation: A picture that the client has, answered 304. In answers/s; more is better.\n",
		"- upload: A texture of 64 by 64, until it is stored. In ms; less is better.\n",
		"\nmixed day of Veneer: Latency at rising rates.\n\n| requests a second |",
		"| p99, ms           |    0.5 (0.45 to 0.55) |   9.1 (8.19 to 10) | 31 (27.9 to 34.1) |\n",
		"\ngrowth: A site that grows.\n\n| textures        |              10,000 |          1,000,000 |\n| --------------- | ------------------: | -----------------: |\n",
		"| look-up p99, ms | 1.46 (1.41 to 1.52) | 2.5 (2.33 to 2.68) |\n",
		"| index, bytes    |                  91 |                105 |\n",
		"| a row   |                 210 | bytes | of a million        |\n",
		"- Varnish 7.1.1\n- image/png (go1.26.8)\n",
		"- nginx's open_file_cache: max=18976\n",
	)
	for _, not := range []string{"quick check", "failed"} {
		testenv.Check(t, !strings.Contains(table, not), "it says that it is a run that is: %s:\n%s", not, table)
	}
}

// A quick check lists the subjects, but shows no figure.
func TestWriteTableOfQuickCheck(t *testing.T) {
	t.Parallel()
	run := example()
	run.Quick = true
	table := tableOf(t, run,
		"**This is a quick check: everything ran, but for too short a time to say how fast it is. It claims no figures.**",
		"| hot          | Veneer                            |     ran |      |           |             |     |\n",
		"missing",
	)
	for _, figure := range []string{"×", "79,300", "p99 0", "95 % confidence", "105", "210"} {
		testenv.Check(t, !strings.Contains(table, figure), "it says %q:\n%s", figure, table)
	}
	run.Variant = "scale"
	testenv.Equal(t, run.Folder(), "2026-10-02-5f3c41f-scale-quick", "its folder")
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
	tableOf(t, run, "\n**This run failed: upload: round 3: PUT / answers 500**\n",
		"\nNo ratio changed by a tenth from the first third of its rounds to the last.\n")
}

// Fewer than 6 rounds have no bounds, and those with rejections no upper one.
func TestWriteTableOfPartialRun(t *testing.T) {
	t.Parallel()
	run := example()
	run.Scenarios = run.Scenarios[:1]
	for i := range run.Scenarios[0].Subjects {
		subject := &run.Scenarios[0].Subjects[i]
		subject.Rounds, subject.Figures = subject.Rounds[:5], nil
	}
	run.Scenarios[0].Subjects[0].Name = "Veneer | a\nbar"
	run.Sweeps = run.Sweeps[:1]
	for i := range run.Sweeps[0].Steps[0].Figures {
		run.Sweeps[0].Steps[0].Figures[i].Rejected = 1
	}
	run.Settings = nil
	table := tableOf(t, run, `| Veneer \| a bar `, "| too few rounds |", "|   0.505 (at least 0.45) |", "- none\n")
	var widths []int
	scenarios, _, _ := strings.Cut(table, "What is measured")
	for line := range strings.Lines(scenarios) {
		if strings.HasPrefix(line, "|") {
			widths = append(widths, utf8.RuneCountInString(line))
		}
	}
	cmptest.Same(t, widths, slices.Repeat(widths[:1], 6), "the lengths of the table's lines")
}

// Usage that grows until the end is not flat; usage that had grown before is.
func TestCheckFlat(t *testing.T) {
	t.Parallel()
	for what, test := range map[string]struct {
		quarters [4][]float64
		want     string
	}{
		"level":            {[4][]float64{{400, 400}, {400, 401}, {400, 399}, {400, 400}}, ""},
		"filled at first":  {[4][]float64{{100, 300}, {400, 400}, {400, 400}, {400, 400}}, ""},
		"one high sample":  {[4][]float64{{400}, {400, 400, 400}, {400}, {400, 400, 900}}, ""},
		"hardly growing":   {[4][]float64{{400}, {400}, {400}, {408}}, ""},
		"one more":         {[4][]float64{{4}, {4}, {4}, {5}}, ""},
		"growing a little": {[4][]float64{{400}, {400}, {400}, {420}}, "soak of the edge: resident memory of 400 in the second quarter, and 420 in the last"},
		"growing":          {[4][]float64{{103, 193}, {203, 293}, {303, 393}, {403, 493}}, "soak of the edge: resident memory of 248 in the second quarter, and 448 in the last"},
	} {
		sweep := Sweep{Name: "soak of the edge", Parameter: "quarter"}
		for i, rounds := range test.quarters {
			sweep.Steps = append(sweep.Steps, Step{float64(i + 1), []Figure{{"goroutines", "", []float64{90}, 0}, {"resident memory", "MiB", rounds, 0}}})
		}
		if err := sweep.CheckFlat(); (err != nil) != (test.want != "") || err != nil && err.Error() != test.want {
			t.Errorf("%s: %v; want %q", what, err, test.want)
		}
	}
}

func TestNumber(t *testing.T) {
	t.Parallel()
	f := func(x float64, want string) {
		t.Helper()
		testenv.Equal(t, number(x), want, "number(%v)", x)
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
