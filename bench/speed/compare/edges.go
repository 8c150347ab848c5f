package compare

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/bench/speed/baseline"
	"github.com/veneer-skins/veneer/bench/speed/fixture"
	"github.com/veneer-skins/veneer/bench/speed/load"
	"github.com/veneer-skins/veneer/bench/speed/results"
	"github.com/veneer-skins/veneer/shared/blobstore"
)

const (
	edgesViews  = 30_000 // views that several edges share
	edgesMost   = 3
	edgesShare  = 3 // the cache of one edge holds a third of them
	edgesWarmUp = 3
	edgesRounds = 11

	costWarmUp   = 3
	costRounds   = 11
	costEach     = time.Second
	costViews    = 1000    // requested as hits
	costNewViews = 1 << 30 // more new views than a round can request
)

// startBalanced starts edges behind haproxy, each with a cache of so many bytes.
func (e *env) startBalanced(ctx context.Context, c *zipfWorkload, edges int, cache int64) (*target, error) {
	f := &target{name: fmt.Sprintf("%d behind haproxy", edges)}
	var balanced []baseline.Backend
	for range edges {
		edge, operators, err := c.StartEdge(ctx, renderTimeoutSetting, fmt.Sprint("EDGE_CACHE_BYTES=", cache), "EDGE_TRUSTED_PROXIES=127.0.0.1/32")
		if err != nil {
			return nil, err
		}
		f.edges, f.operators = append(f.edges, edge), append(f.operators, operators)
		balanced = append(balanced, baseline.Backend{Address: edge.Address, Operators: operators})
	}
	var err error
	if f.proxy, err = baseline.StartHaproxy(ctx, e.serverEnv, e.Haproxy, balanced); err != nil {
		return nil, err
	}
	e.closers = append(e.closers, f.proxy.Stop)
	e.usedPrograms[f.proxy.Version] = true
	f.address = f.proxy.Address
	return f, nil
}

// edges measures one and more edges behind haproxy, and the cost of an answer there.
func (e *env) edges(ctx context.Context) (*results.Sweep, []results.Cost, error) {
	c, err := e.openZipf(ctx)
	if err != nil {
		return nil, nil, err
	}
	n := min(edgesViews, len(c.views.permutation)/2)
	views := zipfOrder{load.NewZipf(n, popularity), c.views.permutation[:n]}
	cache := int64(c.viewBytes * float64(n) / edgesShare)
	e.addSetting("EDGE_CACHE_BYTES behind haproxy", cache)
	e.addSetting("EDGE_TRUSTED_PROXIES behind haproxy", "127.0.0.1/32")
	targets := make([]*target, edgesMost)
	measured, err := e.run(ctx, scenario{
		name: "edges", unit: "1/s", warmUp: edgesWarmUp, rounds: edgesRounds,
		measures: fmt.Sprintf("Edges behind haproxy with consistent hashing, all on one processor; each may cache a third of %s views, requested in Zipf order", humanize.Comma(int64(n))),
		open: func(s *env, ctx context.Context) (subjects []subject, err error) {
			for i := range targets {
				if targets[i], err = s.startBalanced(ctx, c, i+1, cache); err != nil {
					return nil, err
				}
				if err := s.fillCaches(ctx, c, targets[i], views, n*(i+1)/edgesShare); err != nil {
					return nil, fmt.Errorf("fill %d edges: %w", i+1, err)
				}
				subjects = append(subjects, subject{name: fmt.Sprint(i + 1), measure: s.measureZipf(c, targets[i], views)})
			}
			return subjects, nil
		},
	})
	if err != nil {
		return nil, nil, err
	}
	sweep := &results.Sweep{Name: measured.Name, Measures: measured.Measures, Parameter: "edges", Plotted: []string{ratioFigure, rateFigure, edgeCPUFigure, proxyCPUFigure}}
	for i, subject := range measured.Subjects {
		sweep.Steps = append(sweep.Steps, results.Step{
			At: float64(i + 1), Figures: append([]results.Figure{{Name: rateFigure, Unit: measured.Unit, Rounds: subject.Rounds}}, subject.Figures...),
		})
	}
	costs, err := e.answerCosts(ctx, c, targets[0], views)
	return sweep, costs, err
}

// answerCosts measures the cost of each kind of answer, behind haproxy and without it.
func (e *env) answerCosts(ctx context.Context, c *zipfWorkload, balanced *target, views zipfOrder) ([]results.Cost, error) {
	hot := zipfOrder{load.NewZipf(min(costViews, len(views.permutation)), popularity), views.permutation[:min(costViews, len(views.permutation))]}
	direct := &target{address: balanced.edges[0].Address, edges: balanced.edges, operators: balanced.operators}
	full, unmodified := &load.Stream{Connections: connections, Statuses: []int{fasthttp.StatusOK}}, &load.Stream{Connections: connections, Statuses: []int{fasthttp.StatusNotModified}}
	for _, view := range hot.permutation {
		tag, err := fetchTagAt("http://" + balanced.address + c.target(view))
		if err != nil {
			return nil, err
		}
		full.Requests = append(full.Requests, fmt.Appendf(nil, "GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", c.target(view)))
		unmodified.Requests = append(unmodified.Requests, fmt.Appendf(nil, "GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\nIf-None-Match: %s\r\n\r\n", c.target(view), tag))
	}
	order := requestOrders(len(hot.permutation), true)
	var kinds []subject
	for _, f := range []struct {
		label string
		*target
	}{{"behind haproxy", balanced}, {"direct", direct}} {
		for _, kind := range []struct {
			name   string
			stream func(round int) *load.Stream
		}{
			{"hit", func(round int) *load.Stream { full.Order = order(round); return full }},
			{"304", func(round int) *load.Stream { unmodified.Order = order(round); return unmodified }},
			{"new picture", func(int) *load.Stream { return c.newViews(costNewViews) }},
		} {
			kinds = append(kinds, subject{name: kind.name + ", " + f.label, measure: func(ctx context.Context, round int) (outcome, error) {
				return e.measureThrough(ctx, f.target, e.duration(costEach), kind.stream(round))
			}})
		}
	}
	measured, err := e.run(ctx, scenario{name: "costs", unit: "1/s", warmUp: costWarmUp, rounds: costRounds, open: func(*env, context.Context) ([]subject, error) { return kinds, nil }})
	if err != nil {
		return nil, err
	}
	var costs []results.Cost
	for _, kind := range measured.Subjects {
		name, label, _ := strings.Cut(kind.Name, ", ")
		for _, figure := range kind.Figures {
			of := map[string]string{edgeCPUFigure: "edge", proxyCPUFigure: "haproxy", bytesFigure: "on the wire"}[figure.Name]
			if of == "" || of == "haproxy" && label == "direct" {
				continue
			}
			costs = append(costs, results.Cost{Figure: results.Figure{Name: name + ": " + of, Unit: strings.TrimSuffix(figure.Unit, "/answer"), Rounds: figure.Rounds}, Method: label})
		}
	}
	return costs, nil
}

// memoryCosts returns the cost of things in memory and on disk, from the edge with its defaults.
func (e *env) memoryCosts(ctx context.Context, c *zipfWorkload) ([]results.Cost, error) {
	metrics, err := metricsOf(ctx, c.Operators)
	if err != nil {
		return nil, err
	}
	files, bytes := 0.0, 0.0
	store, err := blobstore.New(blobstore.Config{URL: "file://" + fixture.Textures(e.serverEnv), Timeout: time.Minute})
	if err != nil {
		return nil, err
	}
	for object, err := range store.List(ctx) {
		if err != nil {
			return nil, err
		}
		files, bytes = files+1, bytes+float64(object.Size)
	}
	inBytes := func(name string, value float64, label string) results.Cost {
		return results.Cost{Figure: results.Figure{Name: name, Unit: "bytes", Rounds: []float64{value}}, Method: label}
	}
	return []results.Cost{
		inBytes("picture in an edge's cache", c.viewBytes, "as the edge counts it, of heads of 8 to 256 pixels"),
		inBytes("mapping in an edge", metrics["veneer_edge_mappings_bytes"]/metrics["veneer_edge_mappings"], "as the edge counts it, of a texture by its hash"),
		inBytes("edge, with its caches at that time", metrics[residentMetric], fmt.Sprintf("resident; %.0f MiB of pictures in its cache", metrics["veneer_edge_picture_cache_bytes"]/(1<<20))),
		inBytes("texture's file", bytes/files, "of the fixture, with skins that the project paints itself"),
	}, nil
}
