package main

import (
	"fmt"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/veneer-skins/veneer/edge/render"
	"github.com/veneer-skins/veneer/edge/render/vips"
)

// encoder is the value of EDGE_ENCODER.
type encoder uint8

// The encoders.
const (
	native  encoder = iota // render.NativeEncoder
	libvips                // vips.Encoder
)

// String returns native or libvips.
func (e encoder) String() string {
	switch e {
	case native:
		return "native"
	case libvips:
		return "libvips"
	default:
		return "unknown"
	}
}

// UnmarshalText parses what String returns.
func (e *encoder) UnmarshalText(text []byte) error {
	switch string(text) {
	case "native":
		*e = native
	case "libvips":
		*e = libvips
	default:
		return fmt.Errorf("is %.100q, but must be native or libvips", text)
	}
	return nil
}

// configuredRenderer is a Renderer with the encoder that the settings name.
type configuredRenderer struct {
	*render.Renderer

	encoder encoder
	reducer *vips.Reducer
	libvips *vips.Encoder // nil unless it is the encoder
}

// startRenderer returns the Renderer with an encoder. libvips starts in any case: it reduces pictures to
// exact sizes.
func startRenderer(e encoder, log *slog.Logger) (*configuredRenderer, error) {
	reducer, err := vips.StartReducer(log)
	if err != nil {
		return nil, err
	}
	if e == native {
		return &configuredRenderer{Renderer: render.New(new(render.NativeEncoder), reducer), encoder: e, reducer: reducer}, nil
	}
	v, err := vips.Start(log)
	if err != nil {
		reducer.Close()
		return nil, err
	}
	return &configuredRenderer{Renderer: render.New(v, reducer), encoder: e, reducer: reducer, libvips: v}, nil
}

// Close stops libvips. The Renderer must not be used any more.
func (r *configuredRenderer) Close() {
	if r.libvips != nil {
		r.libvips.Close()
	}
	r.reducer.Close()
}

// Expose registers the metrics of the Renderer.
func (r *configuredRenderer) Expose(registry prometheus.Registerer) {
	register := promauto.With(registry)
	register.NewGauge(prometheus.GaugeOpts{
		Name: "veneer_edge_renderer_info", Help: "Constant 1, with the revision of the renderer and its encoder as labels.",
		ConstLabels: prometheus.Labels{"revision": r.Revision(), "encoder": r.encoder.String()},
	}).Set(1)
	register.NewGaugeFunc(prometheus.GaugeOpts{Name: "veneer_edge_libvips_bytes", Help: "Memory that libvips uses for pixels."},
		func() float64 { bytes, _ := vips.Memory(); return float64(bytes) })
	register.NewGaugeFunc(prometheus.GaugeOpts{Name: "veneer_edge_libvips_peak_bytes", Help: "Peak of the memory that libvips used for pixels."},
		func() float64 { _, peak := vips.Memory(); return float64(peak) })
}
