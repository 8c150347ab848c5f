package edge

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/veneer-skins/veneer/edge/render"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// The stages of what is loaded are counted by mode, and apart for capes and files.
func TestStagesByView(t *testing.T) {
	t.Parallel()
	variant := func(mode render.Mode, kind skin.Type) Variant {
		return Variant{View: render.View{Mode: mode, Type: kind}}
	}
	for want, v := range map[string]Variant{
		"flat": variant(render.Flat, skin.Slim), "isometric": variant(render.Isometric, skin.Classic),
		"bust": variant(render.Bust, skin.Slim), "left": variant(render.Left, skin.Classic),
		"preview": variant(render.Preview, skin.Classic), "preview-cape": variant(render.Preview, skin.Cape), "file": {File: true},
	} {
		before := stageSum(t, want)
		v.observeStage(encoding, 1000*time.Hour)
		got := stageSum(t, want) - before
		testenv.Check(t, got >= 3_600_000, "1000 hours of %+v added %.0f seconds to %s", v, got, want)
	}
}

// stageSum returns the seconds of encoding that a view has been observed with.
func stageSum(t *testing.T, view string) float64 {
	t.Helper()
	families := testenv.Must(prometheus.DefaultGatherer.Gather())(t)
	for _, family := range families {
		if family.GetName() != "veneer_edge_render_seconds" {
			continue
		}
		for _, metric := range family.GetMetric() {
			if labels := metric.GetLabel(); labels[0].GetValue() == stageNames[encoding] && labels[1].GetValue() == view {
				return metric.GetHistogram().GetSampleSum()
			}
		}
	}
	t.Fatalf("there are no stages of %s", view)
	return 0
}
