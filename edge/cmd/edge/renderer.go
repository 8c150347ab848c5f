package main

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/veneer-skins/veneer/edge/render"
	"github.com/veneer-skins/veneer/edge/render/vips"
)

// exposeRenderer registers the metrics of a Renderer and of libvips.
func exposeRenderer(registry prometheus.Registerer, renderer *render.Renderer) {
	register := promauto.With(registry)
	register.NewGauge(prometheus.GaugeOpts{
		Name: "veneer_edge_renderer_info", Help: "Constant 1, with the revision of the renderer as a label.",
		ConstLabels: prometheus.Labels{"revision": renderer.Revision()},
	}).Set(1)
	register.NewGaugeFunc(prometheus.GaugeOpts{Name: "veneer_edge_libvips_bytes", Help: "Memory that libvips uses for pixels."},
		func() float64 { bytes, _ := vips.Memory(); return float64(bytes) })
	register.NewGaugeFunc(prometheus.GaugeOpts{Name: "veneer_edge_libvips_peak_bytes", Help: "Peak of the memory that libvips used for pixels."},
		func() float64 { _, peak := vips.Memory(); return float64(peak) })
}
