package compare

import (
	"fmt"
	"os/exec"
	"runtime"
	"time"

	"github.com/dustin/go-humanize"
	"golang.org/x/sync/errgroup"

	"github.com/veneer-skins/veneer/bench/speed/results"
	"github.com/veneer-skins/veneer/bench/speed/workload"
	"github.com/veneer-skins/veneer/bench/system/site"
	"github.com/veneer-skins/veneer/bench/system/stack"
	"github.com/veneer-skins/veneer/shared/blobstore"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/testenv"
	"github.com/veneer-skins/veneer/shared/tlsreload/tlsreloadtest"
)

const (
	cacheViews    = 30_000
	cacheRequests = 20 // for each view on average; the second half of them counts

	storedFiles      = 2000
	storeConcurrency = 16 // concurrent requests for files
	storeDuration    = 2 * time.Second
	storeRounds      = 6
)

var (
	cacheShares    = []int{2, 5, 10, 20, 50} // of all views' bytes, in per cent
	cacheExponents = []float64{0.8, 0.9, 1.0}
)

// cache simulates the hit ratio of an edge's picture cache by its size, as a share of all views'
// bytes.
func (e *env) cache(result *results.Run) {
	ctx, requests, exponents := e.Context(), cacheViews*cacheRequests, cacheExponents
	if e.Quick {
		requests, exponents = cacheViews, cacheExponents[:1]
	}
	defer e.progress("simulating the cache")()
	_, overhead, err := workload.New(1, 1, 1, 0).EdgeHitRatio(ctx, 1<<20, 0)
	testenv.Do(e, err)
	sweep := results.Sweep{
		Name: "cache", Parameter: "per cent of all views' bytes that fit", Steps: make([]results.Step, len(cacheShares)),
		Measures: fmt.Sprintf("The edge's picture cache alone, with requests for %s views in Zipf order of an exponent; rendering is simulated", humanize.Comma(cacheViews)),
	}
	var all errgroup.Group
	all.SetLimit(runtime.GOMAXPROCS(0))
	for n, exponent := range exponents {
		w := workload.New(cacheViews, requests, exponent, 0)
		totalBytes := int64(0)
		for view := range cacheViews {
			totalBytes += int64(w.Size(view)) + overhead
		}
		name := fmt.Sprintf("hit ratio, Zipf %.1f", exponent)
		for i, share := range cacheShares {
			step := &sweep.Steps[i]
			step.At, step.Figures = float64(share), append(step.Figures, results.Figure{Name: name, Unit: "%", Rounds: make([]float64, 1)})
		}
		for i, share := range cacheShares {
			all.Go(func() (err error) {
				sweep.Steps[i].Figures[n].Rounds[0], _, err = w.EdgeHitRatio(ctx, totalBytes*int64(share)/100, len(w.Trace)/2)
				return err
			})
		}
		testenv.Do(e, all.Wait())
	}
	result.Sweeps = append(result.Sweeps, sweep)
}

// memoryCosts returns the cost of things in memory and on disk, from the edge with its defaults.
func (e *env) memoryCosts() []results.Cost {
	w := e.zipf
	metrics, files, bytes := e.metricsOf(w.Edge.Operators), 0.0, 0.0
	for object, err := range e.textureStore().List(e.Context()) {
		testenv.Do(e, err)
		files, bytes = files+1, bytes+float64(object.Size)
	}
	inBytes := func(name string, value float64, label string) results.Cost {
		return results.Cost{Figure: results.Figure{Name: name, Unit: "bytes", Rounds: []float64{value}}, Method: label}
	}
	return []results.Cost{
		inBytes("picture in an edge's cache", w.viewBytes, "as the edge counts it, of heads of 8 to 256 pixels"),
		inBytes("mapping in an edge", metrics["veneer_edge_mappings_bytes"]/metrics["veneer_edge_mappings"], "as the edge counts it, of a texture by its hash"),
		inBytes("edge, with its caches at that time", metrics[residentMetric], fmt.Sprintf("resident; %.0f MiB of pictures in its cache", metrics["veneer_edge_picture_cache_bytes"]/(1<<20))),
		inBytes("texture's file", bytes/files, "of the fixture, with skins that the project paints itself"),
	}
}

func (e *env) textureStore() *blobstore.Store {
	return testenv.Must(blobstore.New(blobstore.Config{URL: "file://" + e.zipf.Textures, Timeout: time.Minute}))(e)
}

// storeCosts measures the cost of the workload's texture files in a MinIO of one node, which shares
// all processors with its client.
func (e *env) storeCosts() []results.Cost {
	ctx := e.Context()
	server, bucket := site.NewMinIO(e, tlsreloadtest.NewAuthority(e))
	e.addSetting("program of MinIO", server.Binary)
	from, to := e.textureStore(), testenv.Must(blobstore.New(bucket))(e)
	testenv.Do(e, to.Init(ctx))
	hashes := e.zipf.Skins
	hashes = hashes[:min(len(hashes), storedFiles)]
	forEach := func(do func(skin.Hash) error) {
		testenv.Do(e, parallel(len(hashes), storeConcurrency, func(i int) error { return do(hashes[i]) }))
	}
	before := e.diskUsage(server.Data)
	forEach(func(hash skin.Hash) error {
		file, err := from.Get(ctx, hash)
		if err != nil {
			return err
		}
		return to.Put(ctx, hash, file)
	})
	stored := (e.diskUsage(server.Data) - before) / float64(len(hashes))
	var took []float64
	for range e.rounds(storeRounds) {
		files, cpu := 0, stack.CPU(e, server.PID())
		for began := time.Now(); time.Since(began) < e.duration(storeDuration); files += len(hashes) {
			forEach(func(hash skin.Hash) error {
				_, err := to.Get(ctx, hash)
				return err
			})
		}
		took = append(took, float64((stack.CPU(e, server.PID())-cpu).Microseconds())/float64(files))
	}
	const method = "a MinIO of one node, over TLS"
	return []results.Cost{
		{Figure: results.Figure{Name: "texture's file: fetched from MinIO", Unit: "µs", Rounds: took}, Method: method},
		{Figure: results.Figure{Name: "texture's file: on MinIO's disk", Unit: "bytes", Rounds: []float64{stored}}, Method: method},
	}
}

// diskUsage returns the disk usage of a directory in bytes, in whole blocks.
func (e *env) diskUsage(directory string) (bytes float64) {
	out := testenv.Must(exec.CommandContext(e.Context(), "du", "--summarize", "--block-size=1", directory).Output())(e)
	testenv.Must(fmt.Sscan(string(out), &bytes))(e)
	return bytes
}
