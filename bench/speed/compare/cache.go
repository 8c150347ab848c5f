package compare

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/dustin/go-humanize"
	"golang.org/x/sync/errgroup"

	"github.com/veneer-skins/veneer/bench/speed/results"
	"github.com/veneer-skins/veneer/bench/speed/workload"
)

const (
	cacheViews    = 30_000
	cacheRequests = 20 // for each view on average, of which the second half counts
)

var (
	cacheShares    = []int{2, 5, 10, 20, 50} // of all views' bytes, in per cent
	cacheExponents = []float64{0.8, 0.9, 1.0}
)

// simulateCache simulates the hit ratio of an edge's picture cache by its size, as a share of all
// views' bytes.
func (e *env) simulateCache(ctx context.Context) (*results.Sweep, error) {
	requests, exponents := cacheViews*cacheRequests, cacheExponents
	if e.Quick {
		requests, exponents = cacheViews, cacheExponents[:1]
	}
	fmt.Fprint(e.Out, "==> cache … ")
	began := time.Now()
	_, overhead, err := workload.New(1, 1, 1, 0).EdgeHitRatio(ctx, 1<<20, 0)
	if err != nil {
		return nil, err
	}
	ratios := make([][]float64, len(cacheShares))
	for i := range ratios {
		ratios[i] = make([]float64, len(exponents))
	}
	var all errgroup.Group
	all.SetLimit(runtime.GOMAXPROCS(0))
	for n, exponent := range exponents {
		w := workload.New(cacheViews, requests, exponent, 0)
		totalBytes := int64(0)
		for view := range cacheViews {
			totalBytes += int64(w.Size(view)) + overhead
		}
		for i, share := range cacheShares {
			all.Go(func() (err error) {
				ratios[i][n], _, err = w.EdgeHitRatio(ctx, totalBytes*int64(share)/100, len(w.Trace)/2)
				return err
			})
		}
	}
	if err := all.Wait(); err != nil {
		return nil, err
	}
	sweep := &results.Sweep{
		Name: "cache", Parameter: "per cent of all views' bytes that fit",
		Measures: fmt.Sprintf("The edge's picture cache alone, with requests for %s views in Zipf order of an exponent; rendering is simulated", humanize.Comma(cacheViews)),
	}
	for i, share := range cacheShares {
		step := results.Step{At: float64(share)}
		for n, exponent := range exponents {
			step.Figures = append(step.Figures, results.Figure{Name: fmt.Sprintf("hit ratio, Zipf %.1f", exponent), Unit: "%", Rounds: []float64{ratios[i][n]}})
		}
		sweep.Steps = append(sweep.Steps, step)
	}
	for _, figure := range sweep.Steps[0].Figures {
		sweep.Plotted = append(sweep.Plotted, figure.Name)
	}
	fmt.Fprintf(e.Out, "%.0f s\n", time.Since(began).Seconds())
	return sweep, nil
}
