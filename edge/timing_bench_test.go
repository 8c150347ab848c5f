package edge

import (
	"testing"
	"time"

	"github.com/veneer-skins/veneer/edge/render"
)

// BenchmarkStages measures the cost of timing all stages of a picture: less than half a
// microsecond, while the smallest pictures take about fifty.
func BenchmarkStages(b *testing.B) {
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		variant := Variant{View: render.View{Mode: render.Flat}}
		for pb.Next() {
			for _, on := range []stage{fetching, decoding, queueing} {
				began := time.Now()
				variant.observeStage(on, time.Since(began))
			}
			began := time.Now()
			drawn := time.Now()
			variant.observeRender(b.Context(), render.Timing{Drawing: drawn.Sub(began), Encoding: time.Since(drawn)})
		}
	})
}
