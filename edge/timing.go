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

// stage is a part of the making of a picture.
type stage uint8

const (
	fetching stage = iota // the texture's file, from the store
	decoding
	queueing // until there is room, and a slot
	drawing
	encoding
	stageCount
)

var stageNames = [stageCount]string{fetching: "fetch", decoding: "decode", queueing: "queue", drawing: "draw", encoding: "encode"}

// viewKind is what a picture shows, as far as that decides what it costs.
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

// stageSeconds is how long the stages took that succeeded. What a texture takes is counted
// for the picture that needed it first.
var stageSeconds = func() (all [viewKindCount][stageCount]prometheus.Observer) {
	seconds := promauto.NewHistogramVec(prometheus.HistogramOpts{
		Name: "veneer_edge_render_seconds", Help: "Time that the stages of making a picture took, by what it shows.",
		Buckets: metrics.LatencyBuckets[:],
	}, []string{"view", "stage"})
	for of, view := range viewKindNames {
		for on, stage := range stageNames {
			all[of][on] = seconds.WithLabelValues(view, stage)
		}
	}
	return all
}()

// observeStage counts how long a stage of the view's making took.
func (v View) observeStage(on stage, took time.Duration) {
	stageSeconds[viewKindOf(v)][on].Observe(took.Seconds())
}

// observeRender counts how long a renderer took that is done just now, and has it traced.
func (v View) observeRender(ctx context.Context, took render.Timing) {
	v.observeStage(drawing, took.Drawing)
	v.observeStage(encoding, took.Encoding)
	ended := time.Now()
	drawn := ended.Add(-took.Encoding)
	tracing.Record(ctx, stageNames[drawing], drawn.Add(-took.Drawing), drawn)
	tracing.Record(ctx, stageNames[encoding], drawn, ended)
}
