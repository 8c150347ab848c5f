package side

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/bench/load"
	"github.com/veneer-skins/veneer/bench/rivals"
	"github.com/veneer-skins/veneer/bench/town"
)

// A crowd's skins and the views of each: heads from the front and in space in so many
// sizes, as WebP and as PNG. That makes two million.
const (
	crowdSkins      = 15_625
	crowdSkinsQuick = 28
	crowdSizes      = 32
	crowdViews      = 4 * crowdSizes

	crowdWarmUp = 5
	crowdRounds = 20
	crowdEach   = 4 * time.Second
	crowdSample = 2000 // views from which their size in memory is told
	// A crowd is as large as it is fast, and nobody is to be refused.
	crowdPatience = "EDGE_RENDER_WAIT=10s"
	crowdAtRest   = 10 * time.Second
	crowdRests    = 12               // at most
	crowdSteady   = 0.2              // per cent by which the hit ratio at rest may differ from the one before
	crowdFill     = 30 * time.Minute // more than filling takes
)

// crowd is a town with more views than a cache holds.
type crowd struct {
	*town.Town

	views       popular
	skins       []string // hashes
	fresh       int      // how many of the least popular views have been asked for
	viewBytes   float64  // that one takes in the cache of an edge
	pictureSize float64  // of a view's file, with its headers
}

// gather opens the crowd, and asks its edge for some views to learn how large they are.
func (s *stage) gather(ctx context.Context) (*crowd, error) {
	if s.crowd != nil {
		return s.crowd, nil
	}
	skins := crowdSkins
	if s.Quick {
		skins = crowdSkinsQuick
	}
	t, err := town.Open(ctx, s.place, s.Edge, skins, crowdPatience)
	if err != nil {
		return nil, err
	}
	s.closers = append(s.closers, t.Close)
	s.crowd = &crowd{Town: t, views: newPopular(skins * crowdViews)}
	for _, hash := range t.Skins() {
		s.crowd.skins = append(s.crowd.skins, hash.String())
	}
	s.tell("views of the crowd", skins*crowdViews)
	s.tell("of the crowd's edges", crowdPatience)
	s.tell("bytes that nginx's cache and Varnish may take before the crowd's edges", mixedBytes)
	runtime.GC() // rather than while something is measured

	c := s.crowd
	before, err := metricsOf(ctx, t.Operators)
	if err != nil {
		return nil, err
	}
	sample := min(crowdSample, skins*crowdViews/4)
	got, err := s.send(ctx, t.Edge.Address, crowdFill, c.newViews(sample))
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
		return nil, fmt.Errorf("the edge keeps none of %d views", sample)
	}
	c.viewBytes, c.pictureSize = of("veneer_edge_picture_cache_bytes")/items, float64(got.Bytes)/float64(got.Total())
	return c, nil
}

// target returns the path of a view.
func (c *crowd) target(view int) string {
	n, space := view%crowdViews, ""
	if n&2 != 0 {
		space = "&3d"
	}
	return fmt.Sprintf("/avatar/hash/%s%s?size=%d%s", c.skins[view/crowdViews], []string{".webp", ".png"}[n&1], 8*(1+n>>2), space)
}

// streamOf returns requests for views that next returns, until that is negative. Each is
// sent before the next one is made.
func (c *crowd) streamOf(next func() int) *load.Stream {
	stream := &load.Stream{Connections: connections, Statuses: []int{fasthttp.StatusOK}, Requests: make([][]byte, 1)}
	stream.Order = func() int {
		view := next()
		if view < 0 {
			return -1
		}
		stream.Requests[0] = fmt.Appendf(stream.Requests[0][:0], "GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", c.target(view))
		return 0
	}
	return stream
}

// newViews asks for so many views, the least popular ones, that nobody has asked for; all
// that are left if there are fewer.
func (c *crowd) newViews(most int) *load.Stream {
	left := most
	return c.streamOf(func() int {
		if left == 0 || c.fresh == len(c.views.places)/2 {
			return -1
		}
		left--
		c.fresh++
		return c.views.places[len(c.views.places)-c.fresh]
	})
}

// fill has a front asked for so many of the most popular of some views, each once, those
// of a skin one after the other, which takes less time; and then for all of them as they
// are asked for later, until about as many as before are in memory.
func (s *stage) fill(ctx context.Context, c *crowd, f *front, views popular, most int) error {
	defer s.doing("filling the caches of %s", f.name)()
	all := slices.Sorted(slices.Values(views.places[:min(most, len(views.places))]))
	next := once(len(all))
	if _, err := s.send(ctx, f.address, crowdFill, c.streamOf(func() int {
		if i := next(); i >= 0 {
			return all[i]
		}
		return -1
	})); err != nil {
		return err
	}
	last := math.Inf(-1)
	for rest := range crowdRests {
		out, err := s.through(ctx, f, s.each(crowdAtRest), c.streamOf(views.order(-1-rest))) // which are of no round
		if err != nil {
			return err
		}
		ratio := out.more[0].value // which is ratioFigure
		if math.Abs(ratio-last) < crowdSteady {
			break
		}
		last = ratio
	}
	return nil
}

// front is where requests of a crowd go: an edge, or what stands in front of some.
type front struct {
	name, version string
	address       string
	before        *rivals.Server // nil if nothing does
	edges         []*rivals.Server
	operators     []string // of the edges
}

// spending is what a front has taken since it was started.
type spending struct {
	edges, before time.Duration
	drawn         float64 // pictures
}

func (f *front) spent(ctx context.Context) (sum spending, err error) {
	for i, edge := range f.edges {
		took, err := edge.ProcessorTime()
		if err != nil {
			return sum, err
		}
		sum.edges += took
		drawn, err := drawnBy(ctx, f.operators[i])
		if err != nil {
			return sum, err
		}
		sum.drawn += drawn
	}
	if f.before != nil {
		sum.before, err = f.before.ProcessorTime()
	}
	return sum, err
}

// drawnBy returns for how many requests an edge has drawn a picture since it was started.
func drawnBy(ctx context.Context, operators string) (drawn float64, err error) {
	metrics, err := metricsOf(ctx, operators)
	for name, value := range metrics {
		if strings.HasPrefix(name, "veneer_requests_total{") && strings.Contains(name, `outcome="rendered"`) {
			drawn += value
		}
	}
	return drawn, err
}

// Names of figures that others than who measures them look for.
const (
	rateFigure   = "answers"
	ratioFigure  = "hit ratio"
	edgeFigure   = "processor time of edges"
	beforeFigure = "processor time before them"
	bytesFigure  = "an answer, headers included"
)

// through sends a stream through a front. The hit ratio is the share of answers for which
// nothing was drawn, whoever had them in memory.
func (s *stage) through(ctx context.Context, f *front, duration time.Duration, stream *load.Stream) (outcome, error) {
	first, err := f.spent(ctx)
	if err != nil {
		return outcome{}, err
	}
	var answers *load.Answers
	// One request after the other is in the same place, so nothing tells a picture's size.
	if err := decoded(stream, func(int) string { return "/" }, func() (err error) {
		answers, err = s.send(ctx, f.address, duration, stream)
		return err
	}); err != nil {
		return outcome{}, err
	}
	last, err := f.spent(ctx)
	if err != nil {
		return outcome{}, err
	}
	latencies, total := answers.All(), float64(answers.Total())
	return outcome{total / answers.Elapsed.Seconds(), []figureOf{
		{ratioFigure, "%", 100 * (1 - (last.drawn-first.drawn)/total)},
		{"p50", "ms", float64(latencies.ValueAtPercentile(50)) / 1e6},
		{"p99", "ms", float64(latencies.ValueAtPercentile(99)) / 1e6},
		{edgeFigure, "µs/answer", float64(last.edges-first.edges) / 1e3 / total},
		{beforeFigure, "µs/answer", float64(last.before-first.before) / 1e3 / total},
		{bytesFigure, "bytes", float64(answers.Bytes) / total},
	}}, nil
}

// mixedViews opens the edge, and the same one behind caches, each with edges of their own.
func (s *stage) mixedViews(ctx context.Context) ([]subject, error) {
	c, err := s.gather(ctx)
	if err != nil {
		return nil, err
	}
	fronts := []*front{{name: "Veneer", address: c.Edge.Address, edges: []*rivals.Server{c.Edge}, operators: []string{c.Operators}}}
	subjects := make([]subject, 1, 3)
	for _, rival := range []struct {
		name string
		open func(ctx context.Context, place rivals.Place, upstream string, bytes int64) (*rivals.Server, error)
	}{{"nginx's cache before Veneer", rivals.StartNginxCache}, {"Varnish before Veneer", rivals.StartVarnish}} {
		f := &front{name: rival.name}
		server, err := s.start("a crowd's "+rival.name, func(place rivals.Place) (*rivals.Server, error) {
			edge, operators, err := c.StartEdge(ctx, crowdPatience)
			if err != nil {
				return nil, err
			}
			f.edges, f.operators = []*rivals.Server{edge}, []string{operators}
			return rival.open(ctx, place, edge.Address, mixedBytes)
		})
		if err != nil {
			return nil, err
		}
		if server == nil {
			subjects = append(subjects, subject{name: rival.name, missing: s.absent["a crowd's "+rival.name].Error()})
			continue
		}
		f.version, f.before, f.address = server.Version, server, server.Address
		fronts = append(fronts, f)
		subjects = append(subjects, subject{name: f.name, version: f.version, measure: s.crowded(c, f, c.views)})
	}
	subjects[0] = subject{name: "Veneer", measure: s.crowded(c, fronts[0], c.views)}
	for _, f := range fronts {
		if err := s.fill(ctx, c, f, c.views, int(mixedBytes/c.viewBytes)); err != nil {
			return nil, fmt.Errorf("fill %s: %w", f.name, err)
		}
	}
	return subjects, nil
}

// mixedBytes is what caches in front of edges may take: as much as an edge's own takes by
// default.
const mixedBytes = 256 << 20

// crowded returns the measuring of a front that a crowd asks for views.
func (s *stage) crowded(c *crowd, f *front, views popular) func(context.Context, int) (outcome, error) {
	return func(ctx context.Context, round int) (outcome, error) {
		return s.through(ctx, f, s.each(crowdEach), c.streamOf(views.order(round)))
	}
}
