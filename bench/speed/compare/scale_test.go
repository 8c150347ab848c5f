//go:build !race

package compare

import (
	"errors"
	"strings"
	"testing"

	"github.com/veneer-skins/veneer/bench/speed/baseline"
	"github.com/veneer-skins/veneer/bench/speed/results"
	"github.com/veneer-skins/veneer/bench/system/stack"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// Several edges behind haproxy, though too short to say anything about speed, or about how much
// they cache together.
func TestEdges(t *testing.T) {
	t.Parallel()
	run, err := Scale(t.Context(), Options{
		Edge: stack.Binary(t, "edge"), Haproxy: "../../../deploy/compose/haproxy.cfg", Modules: t.TempDir(), Only: "edges", Quick: true, Out: new(strings.Builder), TB: t,
	})
	if missing, ok := errors.AsType[*baseline.MissingError](err); ok {
		testenv.Skip(t, missing)
	}
	if err != nil {
		t.Fatal(err)
	}
	sweep := &run.Sweeps[0]
	if len(sweep.Steps) != edgesMost {
		t.Fatalf("there are %d steps; want one for each number of edges up to %d", len(sweep.Steps), edgesMost)
	}
	figure := func(step int, name string) float64 {
		for _, figure := range sweep.Steps[step].Figures {
			if figure.Name == name {
				return figure.Rounds[0]
			}
		}
		t.Fatalf("step %d has no %s", step, name)
		return 0
	}
	for step := range edgesMost {
		for _, name := range []string{rateFigure, ratioFigure, edgeCPUFigure, proxyCPUFigure, bytesFigure} {
			if figure(step, name) <= 0 {
				t.Errorf("with %d edges, %s is %v", step+1, name, figure(step, name))
			}
		}
	}
	for step := range edgesMost {
		if ratio := figure(step, ratioFigure); ratio > 100 {
			t.Errorf("%d edges have %.1f %% in memory", step+1, ratio)
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
		if costs[name] <= 0 {
			t.Errorf("%s is not among %v", name, costs)
		}
	}
	if hit, newPicture := costs["hit: edge, direct"], costs["new picture: edge, direct"]; hit >= newPicture {
		t.Errorf("a hit takes %.1f µs, and a new picture %.1f; want more", hit, newPicture)
	}
	if full, short := costs["hit: on the wire, behind haproxy"], costs["304: on the wire, behind haproxy"]; full <= short {
		t.Errorf("a hit has %.0f bytes, and a 304 %.0f; want fewer", full, short)
	}
	run.Date, run.Commit = run.Date.AddDate(2026, 0, 0), "test"
	if _, err := run.Write(t.TempDir()); err != nil {
		t.Error(err)
	}
}

// An unknown part is an error.
func TestScaleRejectsUnknownPart(t *testing.T) {
	t.Parallel()
	if _, err := Scale(t.Context(), Options{Only: "weather", Out: new(strings.Builder), TB: t}); err == nil {
		t.Error("a scenario of the weather: no error")
	}
}
