package render

import (
	"github.com/davidbyttow/govips/v2/vips"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Expose registers the metrics of the renderer.
func (r *Renderer) Expose(registry prometheus.Registerer) {
	register := promauto.With(registry)
	register.NewGauge(prometheus.GaugeOpts{
		Name: "veneer_edge_renderer_info", Help: "Constant 1, with the revision of the renderer and its encoder as labels.",
		ConstLabels: prometheus.Labels{"revision": r.revision, "encoder": r.encoder.String()},
	}).Set(1)
	register.NewGaugeFunc(prometheus.GaugeOpts{Name: "veneer_edge_libvips_bytes", Help: "Memory that libvips uses for pixels."},
		func() float64 { return float64(r.libvipsMemory().Mem) })
	register.NewGaugeFunc(prometheus.GaugeOpts{Name: "veneer_edge_libvips_peak_bytes", Help: "Peak of the memory that libvips used for pixels."},
		func() float64 { return float64(r.libvipsMemory().MemHigh) })
}

// libvipsMemory returns what memory libvips has for pixels. Without libvips that is none.
func (r *Renderer) libvipsMemory() (memory vips.MemoryStats) {
	if r.encoder == Libvips {
		vips.ReadVipsMemStats(&memory)
	}
	return memory
}
