package edge

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"github.com/veneer-skins/veneer/edge/render"
	"github.com/veneer-skins/veneer/shared/histogram"
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

// exhibit is what a picture shows, as far as that decides what it costs.
type exhibit uint8

const (
	flat exhibit = iota
	isometric
	skinPreview
	capePreview
	storedFile
	exhibitCount
)

var exhibitNames = [exhibitCount]string{
	flat: "flat", isometric: "isometric", skinPreview: "preview-skin", capePreview: "preview-cape", storedFile: "file",
}

func exhibitOf(view View) exhibit {
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

// stages is how long the stages took that succeeded. What a texture takes is counted
// for the picture that needed it first.
type stages [exhibitCount][stageCount]histogram.Histogram

// counted is what the process counts. It stands in /metrics with all the rest.
var counted = func() *stages {
	s := new(stages)
	metrics.RegisterMetricsWriter(s.write)
	return s
}()

// write writes what has been counted.
func (s *stages) write(w io.Writer) {
	for of, view := range exhibitNames {
		for on, stage := range stageNames {
			var total histogram.Total
			total.Add(&s[of][on])
			if !total.IsEmpty() {
				total.Write(w, "veneer_edge_render_seconds", fmt.Sprintf("view=%q,stage=%q", view, stage))
			}
		}
	}
}

// of returns where the stages of a view's making are counted.
func (s *stages) of(view View) *[stageCount]histogram.Histogram { return &s[exhibitOf(view)] }

// spent counts how long a stage of the view's making took.
func (v View) spent(on stage, took time.Duration) { counted.of(v)[on].Observe(took) }

// rendered counts how long a renderer took that is done just now, and has it traced.
func (v View) rendered(ctx context.Context, took render.Took) {
	v.spent(drawing, took.Drawing)
	v.spent(encoding, took.Encoding)
	ended := time.Now()
	drawn := ended.Add(-took.Encoding)
	tracing.Passed(ctx, stageNames[drawing], drawn.Add(-took.Drawing), drawn)
	tracing.Passed(ctx, stageNames[encoding], drawn, ended)
}
