package render

import (
	"fmt"

	"github.com/VictoriaMetrics/metrics"
	"github.com/davidbyttow/govips/v2/vips"
)

// Expose adds what is known about the renderer to a set of metrics.
func (r *Renderer) Expose(set *metrics.Set) {
	set.NewGauge(fmt.Sprintf("veneer_edge_renderer_info{revision=%q,encoder=%q}", r.revision, r.encoder), func() float64 { return 1 })
	set.NewGauge("veneer_edge_libvips_bytes", func() float64 { return float64(r.libvips().Mem) })
	set.NewGauge("veneer_edge_libvips_peak_bytes", func() float64 { return float64(r.libvips().MemHigh) })
}

// libvips returns what memory libvips has for pixels. Without libvips that is none.
func (r *Renderer) libvips() (memory vips.MemoryStats) {
	if r.encoder == Libvips {
		vips.ReadVipsMemStats(&memory)
	}
	return memory
}
