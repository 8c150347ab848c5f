package compare

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/bench/speed/baseline"
	"github.com/veneer-skins/veneer/bench/speed/fixture"
	"github.com/veneer-skins/veneer/bench/speed/load"
)

// The skins of the Zipf workload and the views of each: flat and isometric heads in so many sizes,
// as WebP and as PNG. That makes two million.
const (
	zipfSkins      = 15_625
	zipfSkinsQuick = 28
	zipfSizes      = 32
	zipfViews      = 4 * zipfSizes

	zipfWarmUp   = 5
	zipfRounds   = 20
	zipfDuration = 4 * time.Second
	zipfSample   = 2000 // views from which their size in memory is estimated
	// With a longer timeout in the render queue no request is rejected, so that throughput is
	// measured.
	renderTimeoutSetting = "EDGE_RENDER_QUEUE_TIMEOUT=10s"
	steadyDuration       = 10 * time.Second
	steadyRounds         = 12               // at most
	steadyTolerance      = 0.2              // maximum difference of the hit ratio between two steady rounds, in per cent
	fillTimeout          = 30 * time.Minute // more than filling takes
)

// zipfWorkload is a fixture with more views than a cache holds.
type zipfWorkload struct {
	*fixture.Site

	views        zipfOrder
	skins        []string // hashes
	newViewCount int      // number of the least popular views already requested
	viewBytes    float64  // of a view in the cache of an edge
	pictureSize  float64  // of a view's file, with its headers
}

// openZipf opens the workload, and samples views from its edge to estimate their size.
func (e *env) openZipf(ctx context.Context) (*zipfWorkload, error) {
	if e.zipf != nil {
		return e.zipf, nil
	}
	skins := zipfSkins
	if e.Quick {
		skins = zipfSkinsQuick
	}
	t, err := fixture.Open(ctx, e.serverEnv, e.Edge, skins, renderTimeoutSetting)
	if err != nil {
		return nil, err
	}
	e.closers = append(e.closers, t.Close)
	e.zipf = &zipfWorkload{Site: t, views: newPopular(skins * zipfViews)}
	for _, hash := range t.Skins() {
		e.zipf.skins = append(e.zipf.skins, hash.String())
	}
	e.addSetting("views in Zipf order", skins*zipfViews)
	e.addSetting("of the edges with Zipf views", renderTimeoutSetting)
	e.addSetting("maximum bytes of nginx's cache and Varnish before the edges with Zipf views", mixedCacheBytes)
	runtime.GC() // rather than during a measurement

	c := e.zipf
	before, err := metricsOf(ctx, t.Operators)
	if err != nil {
		return nil, err
	}
	sample := min(zipfSample, skins*zipfViews/4)
	got, err := e.send(ctx, t.Edge.Address, fillTimeout, c.newViews(sample))
	if err != nil {
		return nil, err
	}
	after, err := metricsOf(ctx, t.Operators)
	if err != nil {
		return nil, err
	}
	of := func(name string) float64 { return after[name] - before[name] }
	items := of("veneer_edge_picture_cache_items")
	if items == 0 {
		return nil, fmt.Errorf("the edge caches none of %d views", sample)
	}
	c.viewBytes, c.pictureSize = of("veneer_edge_picture_cache_bytes")/items, float64(got.Bytes)/float64(got.Total())
	return c, nil
}

// target returns the path of a view.
func (w *zipfWorkload) target(view int) string {
	n, space := view%zipfViews, ""
	if n&2 != 0 {
		space = "&3d"
	}
	return fmt.Sprintf("/avatar/hash/%s%s?size=%d%s", w.skins[view/zipfViews], []string{".webp", ".png"}[n&1], 8*(1+n>>2), space)
}

// streamOf returns requests for views that next returns, until that is negative. Each is sent
// before the next one is made.
func (w *zipfWorkload) streamOf(next func() int) *load.Stream {
	stream := &load.Stream{Connections: connections, Statuses: []int{fasthttp.StatusOK}, Requests: make([][]byte, 1)}
	stream.Order = func() int {
		view := next()
		if view < 0 {
			return -1
		}
		stream.Requests[0] = fmt.Appendf(stream.Requests[0][:0], "GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", w.target(view))
		return 0
	}
	return stream
}

// newViews requests so many of the least popular views that were not requested before; all that are
// left if there are fewer.
func (w *zipfWorkload) newViews(most int) *load.Stream {
	left := most
	return w.streamOf(func() int {
		if left == 0 || w.newViewCount == len(w.views.permutation)/2 {
			return -1
		}
		left--
		w.newViewCount++
		return w.views.permutation[len(w.views.permutation)-w.newViewCount]
	})
}

// fillCaches requests so many of the most popular views from a target, each once, grouped by skin,
// which takes less time; and then all of them as in a measurement, until the hit ratio is steady.
func (e *env) fillCaches(ctx context.Context, c *zipfWorkload, f *target, views zipfOrder, most int) error {
	defer e.progress("filling the caches of %s", f.name)()
	all := slices.Sorted(slices.Values(views.permutation[:min(most, len(views.permutation))]))
	next := once(len(all))
	if _, err := e.send(ctx, f.address, fillTimeout, c.streamOf(func() int {
		if i := next(); i >= 0 {
			return all[i]
		}
		return -1
	})); err != nil {
		return err
	}
	last := math.Inf(-1)
	for attempt := range steadyRounds {
		out, err := e.measureThrough(ctx, f, e.duration(steadyDuration), c.streamOf(views.order(-1-attempt))) // orders of no measured round
		if err != nil {
			return err
		}
		ratio := out.others[0].value // which is ratioFigure
		if math.Abs(ratio-last) < steadyTolerance {
			break
		}
		last = ratio
	}
	return nil
}

// target is an edge, or a proxy in front of edges, that the Zipf workload is sent to.
type target struct {
	name, version string
	address       string
	proxy         *baseline.Server // nil without one
	edges         []*baseline.Server
	operators     []string // of the edges
}

// cpuUsage is the CPU time and the renders of a target since its start.
type cpuUsage struct {
	edges, proxy time.Duration
	renders      float64 // pictures
}

func (t *target) usage(ctx context.Context) (sum cpuUsage, err error) {
	for i, edge := range t.edges {
		took, err := edge.ProcessorTime()
		if err != nil {
			return sum, err
		}
		sum.edges += took
		renders, err := rendersOf(ctx, t.operators[i])
		if err != nil {
			return sum, err
		}
		sum.renders += renders
	}
	if t.proxy != nil {
		sum.proxy, err = t.proxy.ProcessorTime()
	}
	return sum, err
}

// rendersOf returns the number of requests for which an edge has rendered a picture since its
// start.
func rendersOf(ctx context.Context, operators string) (renders float64, err error) {
	metrics, err := metricsOf(ctx, operators)
	for name, value := range metrics {
		if strings.HasPrefix(name, "veneer_requests_total{") && strings.Contains(name, `outcome="miss"`) {
			renders += value
		}
	}
	return renders, err
}

// Names of figures that other code looks up.
const (
	rateFigure     = "answers"
	ratioFigure    = "hit ratio"
	edgeCPUFigure  = "processor time of edges"
	proxyCPUFigure = "processor time before them"
	bytesFigure    = "an answer, headers included"
)

// measureThrough sends a stream to a target. The hit ratio is the share of answers without a
// render, from whatever cache.
func (e *env) measureThrough(ctx context.Context, f *target, duration time.Duration, stream *load.Stream) (outcome, error) {
	first, err := f.usage(ctx)
	if err != nil {
		return outcome{}, err
	}
	var answers *load.Answers
	// All requests share one index, so the requested size is unknown.
	if err := decodeSample(stream, func(int) string { return "/" }, func() (err error) {
		answers, err = e.send(ctx, f.address, duration, stream)
		return err
	}); err != nil {
		return outcome{}, err
	}
	last, err := f.usage(ctx)
	if err != nil {
		return outcome{}, err
	}
	latencies, total := answers.All(), float64(answers.Total())
	return outcome{total / answers.Elapsed.Seconds(), []namedFigure{
		{ratioFigure, "%", 100 * (1 - (last.renders-first.renders)/total)},
		{"p50", "ms", float64(latencies.ValueAtPercentile(50)) / 1e6},
		{"p99", "ms", float64(latencies.ValueAtPercentile(99)) / 1e6},
		{edgeCPUFigure, "µs/answer", float64(last.edges-first.edges) / 1e3 / total},
		{proxyCPUFigure, "µs/answer", float64(last.proxy-first.proxy) / 1e3 / total},
		{bytesFigure, "bytes", float64(answers.Bytes) / total},
	}}, nil
}

// mixedViews opens the edge, and caches in front of further edges, one each.
func (e *env) mixedViews(ctx context.Context) ([]subject, error) {
	c, err := e.openZipf(ctx)
	if err != nil {
		return nil, err
	}
	targets := []*target{{name: "Veneer", address: c.Edge.Address, edges: []*baseline.Server{c.Edge}, operators: []string{c.Operators}}}
	subjects := make([]subject, 1, 3)
	for _, other := range []struct {
		name string
		open func(ctx context.Context, at baseline.Env, upstream string, bytes int64) (*baseline.Server, error)
	}{{"nginx's cache before Veneer", baseline.StartNginxCache}, {"Varnish before Veneer", baseline.StartVarnish}} {
		f := &target{name: other.name}
		server, err := e.startServer("Zipf views, "+other.name, func(at baseline.Env) (*baseline.Server, error) {
			edge, operators, err := c.StartEdge(ctx, renderTimeoutSetting)
			if err != nil {
				return nil, err
			}
			f.edges, f.operators = []*baseline.Server{edge}, []string{operators}
			return other.open(ctx, at, edge.Address, mixedCacheBytes)
		})
		if err != nil {
			return nil, err
		}
		if server == nil {
			subjects = append(subjects, subject{name: other.name, missing: e.missing["Zipf views, "+other.name].Error()})
			continue
		}
		f.version, f.proxy, f.address = server.Version, server, server.Address
		targets = append(targets, f)
		subjects = append(subjects, subject{name: f.name, version: f.version, measure: e.measureZipf(c, f, c.views)})
	}
	subjects[0] = subject{name: "Veneer", measure: e.measureZipf(c, targets[0], c.views)}
	for _, f := range targets {
		if err := e.fillCaches(ctx, c, f, c.views, int(mixedCacheBytes/c.viewBytes)); err != nil {
			return nil, fmt.Errorf("fill %s: %w", f.name, err)
		}
	}
	return subjects, nil
}

// mixedCacheBytes is the size of caches in front of edges: the default of an edge's own.
const mixedCacheBytes = 256 << 20

// measureZipf returns the measurement of a target under the Zipf workload.
func (e *env) measureZipf(c *zipfWorkload, f *target, views zipfOrder) func(context.Context, int) (outcome, error) {
	return func(ctx context.Context, round int) (outcome, error) {
		return e.measureThrough(ctx, f, e.duration(zipfDuration), c.streamOf(views.order(round)))
	}
}
