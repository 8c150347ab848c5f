package compare

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/veneer-skins/veneer/bench/speed/baseline"
	"github.com/veneer-skins/veneer/bench/speed/results"
	"github.com/veneer-skins/veneer/bench/system/stack"
	"github.com/veneer-skins/veneer/shared/testenv"
	"github.com/veneer-skins/veneer/shared/testenv/cmptest"
)

// Some of the baselines are this program, so the test binary must be it.
func TestMain(m *testing.M) {
	baseline.ServeRole()
	m.Run()
}

// Subjects alternate, after discarded rounds; those that cannot take part have a reason.
func TestInterleaving(t *testing.T) {
	t.Parallel()
	var calls []string
	does := func(name string, figure float64) subject {
		return subject{name: name, measure: func(round int) outcome {
			calls = append(calls, fmt.Sprint(name, round))
			rising := figure + float64(round)
			return outcome{rising, []namedFigure{{"p99", "ms", 10 * rising}}}
		}}
	}
	e := &env{Options: Options{Out: new(strings.Builder)}}
	got := e.run(scenario{
		name: "work", measures: "Nothing.", unit: "ms", warmUp: 1, rounds: 3,
		open: func(*env) []subject {
			return []subject{does("a", 1), {name: "b", missing: "it is not installed"}, does("c", 2), {name: "d", cannot: "it has no such function"}}
		},
	})
	cmptest.Same(t, calls, []string{"a0", "c0", "c1", "a1", "a2", "c2", "c3", "a3"}, "the order")
	want := results.Scenario{Name: "work", Measures: "Nothing.", Unit: "ms", WarmUp: 1, Subjects: []results.Subject{
		{Name: "a", Rounds: []float64{2, 3, 4}, Figures: []results.Figure{{Name: "p99", Unit: "ms", Rounds: []float64{20, 30, 40}}}},
		{Name: "b", Missing: "it is not installed"},
		{Name: "c", Rounds: []float64{3, 4, 5}, Figures: []results.Figure{{Name: "p99", Unit: "ms", Rounds: []float64{30, 40, 50}}}},
		{Name: "d", Unsupported: "it has no such function"},
	}}
	cmptest.Same(t, got, want, "the scenario")
}

// Each scenario is selected by one name, has a way to be measured, and is in the list of names.
func TestScenarios(t *testing.T) {
	t.Parallel()
	names := map[string]bool{scale: true, hits: true, foreign: true, single: true}
	for _, sc := range scenarios() {
		testenv.Check(t, !names[sc.name], "%s is the name of two scenarios, or of a group", sc.name)
		names[sc.name] = true
		if (sc.open == nil) == (sc.whole == nil) || sc.open != nil && (sc.rounds < 1 || sc.measures == "" || sc.unit == "") {
			t.Errorf("%s: %+v", sc.name, sc)
		}
		testenv.Check(t, strings.Contains(Names(), "'"+sc.name+"'"), "%s is not among the names", sc.name)
	}
}

// All servers get the same requests in a round, and in Zipf order some far more often than others.
func TestOrders(t *testing.T) {
	t.Parallel()
	const n, draws = 1000, 100_000
	draw := func(order func() int) (counts [n]int) {
		for range draws {
			counts[order()]++
		}
		return counts
	}
	zipf, even := requestOrders(n, true), requestOrders(n, false)
	first := draw(zipf(1))
	if again, other := draw(zipf(1)), draw(zipf(2)); first != again || first == other {
		t.Error("a round's order is not the same for all, or that of another round")
	}
	most, mean := slices.Max(first[:]), draws/n
	if most < 50*mean || first[0] == most {
		t.Errorf("the most popular of %d is drawn %d times, and the first %d times", n, most, first[0])
	}
	if counts := draw(even(1)); slices.Max(counts[:]) > 2*mean {
		t.Errorf("one of %d is drawn %d times; want about %d", n, slices.Max(counts[:]), mean)
	}
}

// quickRun runs a scenario or a group of them to the end, though too short to say anything about speed.
func quickRun(t *testing.T, only string) *results.Run {
	t.Helper()
	run := new(results.Run)
	Run(Options{
		Root: "../../..", Only: []string{only}, Quick: true, Soak: 2 * time.Second, Out: new(strings.Builder), TB: t,
	}, run)
	return run
}

// Scenarios run to their end. Each kind of subject is among them.
func TestRun(t *testing.T) {
	t.Parallel()
	for _, only := range []string{"warm", "cold", "API read", "upload", "unknown accounts", "freshness of three edges", "batch", "flood of heads", "unknown names", hits, foreign} {
		t.Run(only, func(t *testing.T) {
			t.Parallel()
			run := quickRun(t, only)
			if want := map[string]int{hits: 4, foreign: len(foreignPatterns())}[only]; len(run.Scenarios) != max(1, want) {
				t.Fatalf("%d scenarios", len(run.Scenarios))
			}
			for _, sc := range run.Scenarios {
				for _, subj := range sc.Subjects {
					if rounds := subj.Rounds; subj.Missing+subj.Unsupported == "" && (len(rounds) != 1 || rounds[0] <= 0) {
						t.Errorf("%s, %s: %v", sc.Name, subj.Name, rounds)
					}
				}
			}
		})
	}
}

// The first curve of a mixed day is the edge's, and the last the edge's with other requests.
func TestMixedDay(t *testing.T) {
	t.Parallel()
	run := quickRun(t, "mixed day")
	n := len(run.Sweeps)
	if n < 2 || run.Sweeps[0].Name != "mixed day of Veneer" || len(run.Sweeps[0].Steps) != 1 || len(run.Sweeps[n-1].Steps) != 1 {
		t.Errorf("curves: %+v", run.Sweeps)
	}
}

// A soak samples both programs.
func TestSoak(t *testing.T) {
	t.Parallel()
	programs := quickRun(t, "soak").Sweeps
	if len(programs) != 2 {
		t.Fatalf("in use: %+v", programs)
	}
	for _, program := range programs {
		for _, used := range program.Steps[3].Figures[:3] {
			testenv.Check(t, used.Summary().Median > 0, "%s: %+v", program.Name, used)
		}
	}
}

// Several edges behind haproxy, though too short to say anything about how much they cache together.
func TestEdges(t *testing.T) {
	t.Parallel()
	run := quickRun(t, "edges")
	if len(run.Sweeps) == 0 {
		testenv.Skip(t, "haproxy is not installed")
	}
	sweep := &run.Sweeps[0]
	if len(sweep.Steps) != edgesMost {
		t.Fatalf("there are %d steps; want one for each number of edges up to %d", len(sweep.Steps), edgesMost)
	}
	for _, step := range sweep.Steps {
		figures := map[string]float64{}
		for _, figure := range step.Figures {
			figures[figure.Name] = figure.Rounds[0]
		}
		for _, name := range []string{rateFigure, ratioFigure, edgeCPUFigure, proxyCPUFigure, bytesFigure} {
			if figures[name] <= 0 || name == ratioFigure && figures[name] > 100 {
				t.Errorf("with %v edges, %s is %v", step.At, name, figures[name])
			}
		}
	}

	costs := map[string]float64{}
	for _, cost := range run.Costs {
		costs[cost.Name+", "+cost.Method] = results.Summarize(cost.Rounds).Median
	}
	for _, name := range []string{
		"hit: edge, direct", "hit: haproxy, behind haproxy", "304: on the wire, behind haproxy", "new picture: edge, behind haproxy",
		"texture's file: fetched from MinIO, a MinIO of one node, over TLS", "texture's file: on MinIO's disk, a MinIO of one node, over TLS",
	} {
		testenv.Check(t, costs[name] > 0, "%s is not among %v", name, costs)
	}
	if hit, newPicture := costs["hit: edge, direct"], costs["new picture: edge, direct"]; hit >= newPicture {
		t.Errorf("a hit takes %.1f µs, and a new picture %.1f; want more", hit, newPicture)
	}
	if full, short := costs["hit: on the wire, behind haproxy"], costs["304: on the wire, behind haproxy"]; full <= short {
		t.Errorf("a hit has %.0f bytes, and a 304 %.0f; want fewer", full, short)
	}
	run.Date, run.Commit = run.Date.AddDate(2026, 0, 0), "test"
	testenv.Must(run.Write(t.TempDir()))(t)
}

// An unknown scenario is an error.
func TestUnknownScenario(t *testing.T) {
	t.Parallel()
	err := stack.RunWithTB(t.Context(), func(tb testing.TB) {
		tb.Helper()
		Run(Options{Only: []string{"weather"}, Out: new(strings.Builder), TB: tb}, new(results.Run))
	})
	testenv.ErrorHas(t, err, `there is no scenario "weather"`, "a scenario of the weather")
}
