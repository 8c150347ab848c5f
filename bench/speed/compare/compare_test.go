package compare

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/veneer-skins/veneer/bench/speed/baseline"
	"github.com/veneer-skins/veneer/bench/speed/results"
)

// Some of the baselines are this program, so the test binary must be it.
func TestMain(m *testing.M) {
	if isRole, err := baseline.ServeRole(os.Args[1:]); isRole {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	m.Run()
}

// Subjects alternate, after discarded rounds; those that cannot take part have a reason.
func TestInterleaving(t *testing.T) {
	t.Parallel()
	var calls []string
	does := func(name string, figure float64) subject {
		return subject{name: name, measure: func(_ context.Context, round int) (outcome, error) {
			calls = append(calls, fmt.Sprint(name, round))
			rising := figure + float64(round)
			return outcome{rising, []namedFigure{{"p99", "ms", 10 * rising}}}, nil
		}}
	}
	s := &env{Options: Options{Out: new(strings.Builder)}}
	got, err := s.run(t.Context(), scenario{
		name: "work", measures: "Nothing.", unit: "ms", warmUp: 1, rounds: 3,
		open: func(*env, context.Context) ([]subject, error) {
			return []subject{does("a", 1), {name: "b", missing: "it is not installed"}, does("c", 2), {name: "d", cannot: "it has no such function"}}, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"a0", "c0", "c1", "a1", "a2", "c2", "c3", "a3"}; !slices.Equal(calls, want) {
		t.Errorf("order: %v; want %v", calls, want)
	}
	want := &results.Scenario{Name: "work", Measures: "Nothing.", Unit: "ms", WarmUp: 1, Subjects: []results.Subject{
		{Name: "a", Rounds: []float64{2, 3, 4}, Figures: []results.Figure{{Name: "p99", Unit: "ms", Rounds: []float64{20, 30, 40}}}},
		{Name: "b", Missing: "it is not installed"},
		{Name: "c", Rounds: []float64{3, 4, 5}, Figures: []results.Figure{{Name: "p99", Unit: "ms", Rounds: []float64{30, 40, 50}}}},
		{Name: "d", Unsupported: "it has no such function"},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the scenario (-want +got):\n%s", diff)
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
