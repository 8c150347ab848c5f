package compare

import (
	"cmp"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/bench/speed/baseline"
	"github.com/veneer-skins/veneer/bench/speed/fixture"
	"github.com/veneer-skins/veneer/bench/speed/load"
	"github.com/veneer-skins/veneer/bench/speed/results"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// The skins of the Zipf workload and the views of each: flat and isometric heads in zipfSizes sizes,
// as WebP and as PNG. That makes two million.
const (
	zipfSkins      = 15_625
	zipfSkinsQuick = 28
	zipfSizes      = 32
	zipfViews      = 4 * zipfSizes

	zipfDuration = 4 * time.Second
	zipfSample   = 2000 // views from which their size in memory is estimated
	// With a longer timeout in the render queue no request is rejected, so that throughput is
	// measured.
	renderTimeoutSetting = "EDGE_RENDER_QUEUE_TIMEOUT=10s"
	steadyDuration       = 10 * time.Second
	steadyRounds         = 12               // at most
	steadyTolerance      = 0.2              // maximum difference of the hit ratio between two steady rounds, in per cent
	fillTimeout          = 30 * time.Minute // more than filling takes
	mixedCacheBytes      = 256 << 20        // of caches in front of edges: the default of an edge's own

	edgesViews = 30_000 // views that several edges share
	edgesMost  = 3
	edgesShare = 3 // the cache of one edge holds a third of them

	costEach     = time.Second
	costViews    = 1000    // requested as hits
	costNewViews = 1 << 30 // more new views than a round can request
)

// zipfWorkload is a fixture with more views than a cache holds.
type zipfWorkload struct {
	*fixture.Site

	views        zipfOrder
	skins        []string // hashes
	newViewCount int      // number of the least popular views already requested
	viewBytes    float64  // of a view in the cache of an edge
}

// openZipf opens the workload, and samples views from its edge to estimate their size.
func (e *env) openZipf() *zipfWorkload {
	if e.zipf != nil {
		return e.zipf
	}
	skins := e.quick(zipfSkins, zipfSkinsQuick)
	w := &zipfWorkload{views: newPopular(skins * zipfViews)}
	e.pinned(func() { w.Site = fixture.Open(e, skins, renderTimeoutSetting) })
	for _, hash := range w.Skins {
		w.skins = append(w.skins, hash.String())
	}
	e.addSetting("views in Zipf order", skins*zipfViews)
	e.addSetting("of the edges with Zipf views", renderTimeoutSetting)
	e.addSetting("maximum bytes of nginx's cache and Varnish before the edges with Zipf views", mixedCacheBytes)
	runtime.GC() // rather than during a measurement

	before := e.metricsOf(w.Edge.Operators)
	sample := min(zipfSample, skins*zipfViews/4)
	e.send(edgeTarget("edge", w.Edge), fillTimeout, w.newViews(sample))
	after := e.metricsOf(w.Edge.Operators)
	of := func(name string) float64 { return after[name] - before[name] }
	items := of("veneer_edge_picture_cache_items")
	if items == 0 {
		e.Fatalf("the edge caches none of %d views", sample)
	}
	w.viewBytes, e.zipf = of("veneer_edge_picture_cache_bytes")/items, w
	return w
}

func (w *zipfWorkload) path(view int) string {
	n, space := view%zipfViews, ""
	if n&2 != 0 {
		space = "&3d"
	}
	return fmt.Sprintf("/avatar/hash/%s%s?size=%d%s", w.skins[view/zipfViews], []string{".webp", ".png"}[n&1], 8*(1+n>>2), space)
}

// streamOf returns requests for views that next returns, until that is negative. Each is sent
// before the next one is made.
func (w *zipfWorkload) streamOf(next func() int) *load.Stream {
	stream := streamOf(connections, fasthttp.StatusOK, nil)
	stream.Order = func() int {
		view := next()
		if view < 0 {
			return -1
		}
		stream.Requests[0] = fmt.Appendf(stream.Requests[0][:0], "GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", w.path(view))
		return 0
	}
	return stream
}

// newViews requests some of the least popular views that were not requested before; all that are left
// if there are fewer.
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

// fillCaches requests some of the most popular views from a target, each once, grouped by skin,
// which takes less time; and then all of them as in a measurement, until the hit ratio is steady.
func (e *env) fillCaches(t *target, views zipfOrder, most int) {
	defer e.progress("filling the caches of %s", t.name)()
	all := slices.Sorted(slices.Values(views.permutation[:min(most, len(views.permutation))]))
	next := load.Once(len(all))
	e.send(t, fillTimeout, e.zipf.streamOf(func() int {
		if i := next(); i >= 0 {
			return all[i]
		}
		return -1
	}))
	last := math.Inf(-1)
	for attempt := range steadyRounds {
		out := e.measureThrough(t, e.duration(steadyDuration), e.zipf.streamOf(views.order(-1-attempt))) // orders of no measured round
		ratio := out.others[0].value                                                                     // which is ratioFigure
		if math.Abs(ratio-last) < steadyTolerance {
			break
		}
		last = ratio
	}
}

// measureThrough sends a stream to a target. The hit ratio is the share of answers without a
// render, from whatever cache.
func (e *env) measureThrough(t *target, duration time.Duration, stream *load.Stream) outcome {
	var s sample
	// All requests share one index, so the requested size is unknown.
	e.decodeSample(stream, func(int) string { return "/" }, func() { s = e.measure(t, duration, stream) })
	out := s.outcome(t)
	out.others = slices.Insert(out.others, 0, namedFigure{ratioFigure, "%", 100 * (1 - s.renders/s.total())})
	return out
}

// zipfRounds returns the measurement of a target under the Zipf workload.
func (e *env) zipfRounds(views zipfOrder) func(t *target) func(round int) outcome {
	return func(t *target) func(int) outcome {
		return func(round int) outcome {
			return e.measureThrough(t, e.duration(zipfDuration), e.zipf.streamOf(views.order(round)))
		}
	}
}

func (e *env) startEdge(settings ...string) *baseline.Server {
	return e.zipf.StartEdge(e, append(settings, renderTimeoutSetting)...)
}

// mixedViews opens the edge, and caches in front of further edges, one each.
func (e *env) mixedViews() []subject {
	w := e.openZipf()
	all := []*target{edgeTarget("Veneer", w.Edge)}
	open := func(name string, program baseline.Program, start func(tb testing.TB, upstream string, bytes int64) *baseline.Server) {
		var edge *baseline.Server
		t := e.open(name, "Zipf views, ", program, func() *baseline.Server {
			edge = e.startEdge()
			return start(e, edge.Address, mixedCacheBytes)
		})
		all = append(all, t.before(edge))
	}
	open("nginx's cache before Veneer", baseline.Nginx, baseline.StartNginxCache)
	open("Varnish before Veneer", baseline.Varnish, baseline.StartVarnish)
	for _, t := range all {
		if t.server != nil {
			e.fillCaches(t, w.views, int(mixedCacheBytes/w.viewBytes))
		}
	}
	return subjects(all, e.zipfRounds(w.views))
}

// before puts a target that takes part before edges.
func (t *target) before(edges ...*baseline.Server) *target {
	if t.missing != nil {
		return t
	}
	t.clocks = []clock{{edgeCPUFigure, func(tb testing.TB) (sum time.Duration) {
		tb.Helper()
		for _, edge := range edges {
			sum += edge.ProcessorTime(tb)
		}
		return sum
	}}, {proxyCPUFigure, t.server.ProcessorTime}}
	for _, edge := range edges {
		t.operators = append(t.operators, edge.Operators)
	}
	return t
}

// edges measures one and more edges behind haproxy, and the costs of answers, memory and files there.
func (e *env) edges(result *results.Run) {
	w := e.openZipf()
	n := min(edgesViews, len(w.views.permutation)/2)
	views, cache := w.views.first(n), int64(w.viewBytes*float64(n)/edgesShare)
	const trusted = "EDGE_TRUSTED_PROXIES=127.0.0.1/32"
	e.addSetting("EDGE_CACHE_BYTES behind haproxy", cache)
	e.addSetting("behind haproxy", trusted)
	var all []*target
	var first *baseline.Server
	for i := range edgesMost {
		var balanced []*baseline.Server
		t := e.open(fmt.Sprintf("%d behind haproxy", i+1), "", baseline.Haproxy, func() *baseline.Server {
			for range i + 1 {
				balanced = append(balanced, e.startEdge(fmt.Sprint("EDGE_CACHE_BYTES=", cache), trusted))
			}
			first = cmp.Or(first, balanced[0])
			return baseline.StartHaproxy(e, e.Root, balanced)
		})
		if t.missing != nil {
			fmt.Fprintf(e.Out, "==> edges: skipped: %v\n", t.missing)
			return
		}
		all = append(all, t.before(balanced...))
	}
	measured := e.run(scenario{
		name: "edges", unit: "1/s", warmUp: 3, rounds: 11,
		open: func(e *env) []subject {
			for i, t := range all {
				e.fillCaches(t, views, n*(i+1)/edgesShare)
			}
			return subjects(all, e.zipfRounds(views))
		},
	})
	sweep := results.Sweep{
		Name: measured.Name, Parameter: "edges",
		Measures: fmt.Sprintf("Edges behind haproxy with consistent hashing, all on one processor; each may cache a third of %s views, requested in Zipf order", humanize.Comma(int64(n))),
	}
	for i, subject := range measured.Subjects {
		sweep.Steps = append(sweep.Steps, results.Step{
			At: float64(i + 1), Figures: append([]results.Figure{{Name: rateFigure, Unit: measured.Unit, Rounds: subject.Rounds}}, subject.Figures...),
		})
	}
	result.Sweeps = append(result.Sweeps, sweep)
	direct := edgeTarget("direct", first)
	direct.clocks[0].figure = edgeCPUFigure
	result.Costs = slices.Concat(e.answerCosts(all[0], direct, views), e.memoryCosts(), e.storeCosts())
}

// answerCosts measures the cost of each kind of answer, behind haproxy and without it.
func (e *env) answerCosts(balanced, direct *target, views zipfOrder) (costs []results.Cost) {
	hot := views.permutation[:min(costViews, len(views.permutation))]
	full, unmodified := streamOf(connections, fasthttp.StatusOK), streamOf(connections, fasthttp.StatusNotModified)
	for _, view := range hot {
		path := e.zipf.path(view)
		full.Requests = append(full.Requests, load.Get(path))
		unmodified.Requests = append(unmodified.Requests, load.Get(path, ifNoneMatch(testenv.Must(fetchTag("http://"+balanced.address+path))(e))))
	}
	order := requestOrders(len(hot), true)
	ordered := func(stream *load.Stream) func(round int) *load.Stream {
		return func(round int) *load.Stream {
			stream.Order = order(round)
			return stream
		}
	}
	var kinds []subject
	for _, t := range []*target{balanced, direct} {
		label := map[*target]string{balanced: "behind haproxy", direct: "direct"}[t]
		for _, kind := range []struct {
			name   string
			stream func(round int) *load.Stream
		}{
			{"hit", ordered(full)}, {"304", ordered(unmodified)}, {"new picture", func(int) *load.Stream { return e.zipf.newViews(costNewViews) }},
		} {
			kinds = append(kinds, subject{name: kind.name + ", " + label, measure: func(round int) outcome {
				return e.measureThrough(t, e.duration(costEach), kind.stream(round))
			}})
		}
	}
	measured := e.run(scenario{name: "costs", unit: "1/s", warmUp: 3, rounds: 11, open: func(*env) []subject { return kinds }})
	for _, kind := range measured.Subjects {
		name, label, _ := strings.Cut(kind.Name, ", ")
		for _, figure := range kind.Figures {
			if of := map[string]string{edgeCPUFigure: "edge", proxyCPUFigure: "haproxy", bytesFigure: "on the wire"}[figure.Name]; of != "" {
				costs = append(costs, results.Cost{
					Figure: results.Figure{Name: name + ": " + of, Unit: strings.TrimSuffix(figure.Unit, "/answer"), Rounds: figure.Rounds}, Method: label,
				})
			}
		}
	}
	return costs
}
