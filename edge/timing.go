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
	queueing // until GOMAXPROCS is raised and a worker is free
	drawing
	encoding
	stageCount
)

var stageNames = [stageCount]string{fetching: "fetch", decoding: "decode", queueing: "queue", drawing: "draw", encoding: "encode"}

// viewKind classifies views by what rendering them costs.
type viewKind uint8

const (
	flat viewKind = iota
	isometric
	skinPreview
	capePreview
	storedFile
	viewKindCount
)

var viewKindNames = [viewKindCount]string{
	flat: "flat", isometric: "isometric", skinPreview: "preview-skin", capePreview: "preview-cape", storedFile: "file",
}

func viewKindOf(view View) viewKind {
	switch {
	case view.File:
		return storedFile
	case view.Pose == render.Flat:
		return flat
	case view.Pose == render.Isometric:
		return isometric
	case view.Type == skin.Cape:
		return capePreview
	default:
		return skinPreview
	}
}

// stageSeconds is how long the stages took that succeeded. Fetching and decoding a texture
// count for the picture that needed it first.
var stageSeconds = func() (all [viewKindCount][stageCount]prometheus.Observer) {
	seconds := promauto.NewHistogramVec(prometheus.HistogramOpts{
		Name: "veneer_edge_render_seconds", Help: "Duration of the stages of loading a picture, by kind of picture.",
		Buckets: metrics.LatencyBuckets[:],
	}, []string{"view", "stage"})
	for kind, view := range viewKindNames {
		for s, stage := range stageNames {
			all[kind][s] = seconds.WithLabelValues(view, stage)
		}
	}
	return all
}()

// observeStage records how long a stage of loading the view took.
func (v View) observeStage(s stage, took time.Duration) {
	stageSeconds[viewKindOf(v)][s].Observe(took.Seconds())
}

// observeRender records in metrics and in the trace how long a render took that has just
// ended.
func (v View) observeRender(ctx context.Context, took render.Timing) {
	v.observeStage(drawing, took.Drawing)
	v.observeStage(encoding, took.Encoding)
	ended := time.Now()
	drawn := ended.Add(-took.Encoding)
	tracing.Record(ctx, stageNames[drawing], drawn.Add(-took.Drawing), drawn)
	tracing.Record(ctx, stageNames[encoding], drawn, ended)
}
