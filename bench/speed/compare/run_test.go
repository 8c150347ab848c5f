//go:build !race

package compare

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/veneer-skins/veneer/bench/speed/baseline"
	"github.com/veneer-skins/veneer/bench/speed/results"
	"github.com/veneer-skins/veneer/bench/system/stack"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// Scenarios run to their end, though too short to say anything about speed.
func TestRun(t *testing.T) {
	t.Parallel()
	const day = "mixed day"
	for _, only := range []string{"warm", "cold", "upload", day} {
		t.Run(only, func(t *testing.T) {
			t.Parallel()
			run, err := Run(t.Context(), Options{Edge: stack.Binary(t, "edge"), Modules: t.TempDir(), Only: only, Quick: true, Out: new(strings.Builder), TB: t})
			if err != nil {
				t.Fatal(err)
			}
			if only == day {
				// The first curve is the edge's, and the last the edge's with other requests.
				n := len(run.Latency)
				if n < 2 || run.Latency[0].Name != "Veneer" || len(run.Latency[0].Points) != 1 || len(run.Latency[n-1].Points) != 1 {
					t.Errorf("curves: %+v", run.Latency)
				}
				return
			}
			if len(run.Scenarios) != 1 {
				t.Fatalf("%d scenarios", len(run.Scenarios))
			}
			for _, subj := range run.Scenarios[0].Subjects {
				if rounds := subj.Rounds; subj.Missing+subj.Unsupported == "" && (len(rounds) != 1 || rounds[0] <= 0) {
					t.Errorf("%s: %v", subj.Name, rounds)
				}
			}
		})
	}
}

// A soak samples both programs, with either encoder.
func TestSoak(t *testing.T) {
	t.Parallel()
	run, err := Soak(t.Context(), Options{Edge: stack.Binary(t, "edge"), Encoder: "libvips", Quick: true, Out: new(strings.Builder), TB: t}, 2*time.Second)
	if missing, ok := errors.AsType[*baseline.MissingError](err); ok {
		testenv.Skip(t, missing)
	}
	if err != nil {
		t.Fatal(err)
	}
	used := map[string]results.Usage{}
	for _, series := range run.Soak {
		used[series.Program] = series.Samples[len(series.Samples)-1]
	}
	if edge, core := used["edge"], used["core"]; edge.Goroutines <= 0 || edge.Resident <= 0 || core.Resident <= 0 || core.Goroutines <= 0 {
		t.Errorf("in use: %+v", used)
	}
}
