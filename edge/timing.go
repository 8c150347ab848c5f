package edge

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/veneer-skins/veneer/edge/render"
	"github.com/veneer-skins/veneer/shared/metrics"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/tracing"
)

// stage is a part of loading a picture.
type stage uint8

const (
	fetching stage = iota // the texture's file, from the store
	decoding
	queueing // until GOMAXPROCS is raised and a worker is free, and before until a sprite may begin
	drawing
	encoding
	stageCount
)

var stageNames = [stageCount]string{fetching: "fetch", decoding: "decode", queueing: "queue", drawing: "draw", encoding: "encode"}

// stageTimes observes in seconds how long each stage took.
type stageTimes [stageCount]prometheus.Observer

// stageSeconds is how long the stages took that succeeded. Fetching and decoding a texture
// count for the picture that needed it first.
var stageSeconds = func() (all struct {
	file     stageTimes
	pictures [render.ModeCount][2]stageTimes // by mode, and by whether it is of a cape
},
) {
	seconds := promauto.NewHistogramVec(prometheus.HistogramOpts{
		Name: "veneer_edge_render_seconds", Help: "Duration of the stages of loading a picture, by kind of picture.",
		Buckets: metrics.LatencyBuckets[:],
	}, []string{"view", "stage"})
	times := func(view string) (times stageTimes) {
		for s, stage := range stageNames {
			times[s] = seconds.WithLabelValues(view, stage)
		}
		return times
	}
	all.file = times("file")
	for mode := range render.Mode(render.ModeCount) {
		all.pictures[mode][0] = times(mode.String())
		if mode.ShowsCapes() {
			all.pictures[mode][1] = times(mode.String() + "-cape")
		}
	}
	return all
}()

// observeStage records how long a stage of loading the variant took.
func (v Variant) observeStage(s stage, took time.Duration) {
	times := &stageSeconds.file
	if !v.File {
		times = &stageSeconds.pictures[v.Mode][0]
		if v.Type == skin.Cape {
			times = &stageSeconds.pictures[v.Mode][1]
		}
	}
	times[s].Observe(took.Seconds())
}

// observeRender records in metrics and in the trace how long a render took that has just
// ended.
func (v Variant) observeRender(ctx context.Context, took render.Timing) {
	v.observeStage(drawing, took.Drawing)
	v.observeStage(encoding, took.Encoding)
	ended := time.Now()
	drawn := ended.Add(-took.Encoding)
	tracing.Record(ctx, stageNames[drawing], drawn.Add(-took.Drawing), drawn)
	tracing.Record(ctx, stageNames[encoding], drawn, ended)
}
