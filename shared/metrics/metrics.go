// Package metrics writes metrics in the text format of Prometheus, and adds two of the
// process that the Prometheus library lacks.
package metrics

import (
	"fmt"
	"io"
	runtimemetrics "runtime/metrics"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/procfs"
)

// LatencyBuckets are the upper bounds of latency histograms, in seconds: from a cache hit to
// a store that hangs.
var LatencyBuckets = [...]float64{
	10e-6, 25e-6, 50e-6, 100e-6, 250e-6, 500e-6, 1e-3, 2.5e-3, 5e-3, 10e-3, 25e-3, 50e-3, 100e-3, 250e-3, 500e-3, 1, 2.5, 5, 10,
}

// The collectors of the Prometheus library lack these two.
var (
	_ = promauto.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "process_resident_memory_anon_bytes",
		Help: "Resident memory of the process without mapped files, which counts against a memory limit.",
	}, residentAnon)
	_ = promauto.NewCounterFunc(prometheus.CounterOpts{
		Name: "go_gc_cpu_seconds_total", Help: "Estimated processor time of the garbage collector.",
	}, gcCPUSeconds)
)

// residentAnon returns the anonymous resident memory of the process; 0 without /proc.
func residentAnon() float64 {
	process, err := procfs.Self()
	if err != nil {
		return 0
	}
	status, err := process.NewStatus()
	if err != nil {
		return 0
	}
	return float64(status.RssAnon)
}

func gcCPUSeconds() float64 {
	sample := []runtimemetrics.Sample{{Name: "/cpu/classes/gc/total:cpu-seconds"}}
	runtimemetrics.Read(sample)
	return sample[0].Value.Float64()
}

// ContentType is the type of what Write writes.
const ContentType = string(expfmt.FmtText)

// Write writes all metrics of a gatherer.
func Write(w io.Writer, gatherer prometheus.Gatherer) error {
	families, gatherErr := gatherer.Gather() // with an error it returns all that did not fail
	for _, family := range families {
		if _, err := expfmt.MetricFamilyToText(w, family); err != nil {
			return fmt.Errorf("write metrics: %w", err)
		}
	}
	if gatherErr != nil && len(families) == 0 {
		return fmt.Errorf("gather metrics: %w", gatherErr)
	}
	return nil
}
