package compare

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/veneer-skins/veneer/bench/speed/baseline"
	"github.com/veneer-skins/veneer/bench/speed/load"
	"github.com/veneer-skins/veneer/bench/system/site"
	"github.com/veneer-skins/veneer/bench/system/stack"
	"github.com/veneer-skins/veneer/shared/testenv"
)

const (
	floodHits  = 1000
	floodViews = 100_000 // a sample of all views
	floodEach  = 4 * time.Second
	hitsShare  = 0.2 // of the rate at which hits saturate the edge
	floodTimes = 5   // the rate at which the edge can draw

	hitRate      = 1000
	apiRate      = 300
	unknownEach  = 10 * time.Second
	unknownConns = 512
)

// headViews and previewViews are patterns of all avatars and previews of a texture.
var (
	headViews = sized(8, 512, 8,
		"/avatar/hash/%s?size={size}", "/avatar/hash/%s?size={size}&png", "/avatar/hash/%s?size={size}&3d", "/avatar/hash/%s?size={size}&3d&png")
	previewViews = sized(64, 1024, 16, "/preview/hash/%s?height={size}", "/preview/hash/%s?height={size}&png")
)

// flood opens an edge for hits at a share of the rate that saturates it, alone and beside new pictures
// at several times the rate at which it can draw them. There are many more skins than fit into its
// memory, so that most pictures fetch and decode one.
func flood(patterns []string) func(e *env) []subject {
	return func(e *env) []subject {
		e.fixture()
		var server *baseline.Server
		e.pinned(func() { server = e.site.StartEdge(e) })
		edge, each := edgeTarget("edge", server), e.duration(floodEach)
		hit, views := streamOf(connections, fasthttp.StatusOK), &load.Stream{Connections: coldConnections}
		for _, name := range e.site.Names[:min(floodHits, len(e.site.Names))] {
			path := "/avatar/player/" + name
			for range 2 { // the second one is a hit
				testenv.Must(fetchTag("http://" + edge.address + path))(e)
			}
			hit.Requests = append(hit.Requests, load.Get(path))
		}
		random, skins := rand.New(rand.NewPCG(1, 2)), e.site.Skins
		for range floodViews {
			views.Requests = append(views.Requests, load.Get(fmt.Sprintf(patterns[random.IntN(len(patterns))], skins[random.IntN(len(skins))])))
		}
		for range 2 { // twice, as the edge must first cache the mappings and sample maps
			hit.Rate, views.Rate = 0, 0
			hit.Rate = hitsShare * e.send(edge, each, hit)[0].Rate(fasthttp.StatusOK)
			views.Rate = floodTimes * e.send(edge, each, views)[0].Rate(fasthttp.StatusOK)
		}
		views.Connections = 1024 // more than the render queue holds
		e.addSetting("hits a second beside a flood", int(hit.Rate))
		e.addSetting("new pictures a second that the edge can draw", int(views.Rate/floodTimes))
		measure := func(streams ...*load.Stream) outcome {
			answers := e.send(edge, each, streams...)
			out := latencies(answers[0])
			for _, flood := range answers[1:] {
				out.others = append(out.others,
					namedFigure{"drawn", "pictures/s", flood.Rate(fasthttp.StatusOK)},
					namedFigure{"refused", "%", 100 * flood.Rate(fasthttp.StatusServiceUnavailable) * flood.Elapsed.Seconds() / float64(flood.Total())},
					namedFigure{"p99 of the drawn", "ms", milliseconds(flood.Percentile(fasthttp.StatusOK, 99))})
			}
			out.others = append(out.others, namedFigure{"the edge, resident", "MiB", e.metricsOf(server.Operators)[residentMetric] / (1 << 20)})
			return out
		}
		return []subject{
			{name: "alone", measure: func(int) outcome { return measure(hit) }},
			{name: "beside the flood", measure: func(int) outcome { return measure(hit, views) }},
		}
	}
}

// latencies returns the p99 of answers, beside other percentiles, and the longest delay by the load.
func latencies(answers *load.Answers) outcome {
	return outcome{latency(answers, 99), []namedFigure{
		{"p50", "ms", latency(answers, 50)}, {"p99.9", "ms", latency(answers, 99.9)}, {"late", "ms", milliseconds(answers.Late)},
	}}
}

// unknownNames opens the stack for hits and API requests at modest rates, alone and beside pictures of
// names that do not exist. Edge, core and PostgreSQL share the processor of the servers.
func (e *env) unknownNames() []subject {
	s := e.openLive()
	edge := s.edges[0]
	operators := edge.Address(e, "operators")
	hit, reads := streamOf(16, fasthttp.StatusOK), e.userReads(s.users, 0)
	hit.Rate, reads.Connections, reads.Rate, reads.InspectShare = hitRate, 16, apiRate, 0
	for player := range 100 {
		testenv.Must(fetchTag(s.avatar(0, player)))(e)
		hit.Requests = append(hit.Requests, load.Get(fmt.Sprintf("/avatar/player/p%d", player+1)))
	}
	e.api(s.target, e.userReads(s.users, 0))(0) // opens core's connections
	backends := slices.Collect(maps.Keys(site.BackendCPU(e, s.conn(e))))
	for _, pid := range backends {
		e.pin(pid)
	}
	programs := &target{clocks: []clock{{"edge", edge.CPU}, {"core", s.core.CPU}, {"PostgreSQL", func(tb testing.TB) (sum time.Duration) {
		tb.Helper()
		for _, pid := range backends {
			sum += stack.CPU(tb, pid)
		}
		return sum
	}}}}
	each, used := e.duration(unknownEach), 0 // no two names are the same
	measure := func(rate float64) outcome {
		streams := []*load.Stream{hit}
		if rate > 0 {
			unknown := &load.Stream{Connections: unknownConns, Rate: rate}
			for range int(rate * each.Seconds()) {
				unknown.Requests = append(unknown.Requests, load.Get(fmt.Sprint("/avatar/player/n", used)))
				used++
			}
			streams = append(streams, unknown)
		}
		began, counters, before := time.Now(), e.metricsOf(operators), e.usage(programs)
		all := e.sendBoth(-15, s.images[0], s.address, each, streams, reads)
		for i := range all {
			testenv.Do(e, all[i].Check())
		}
		after, counted, seconds := e.usage(programs), e.metricsOf(operators), time.Since(began).Seconds()
		out, api := latencies(&all[0]), &all[len(streams)]
		out.others = append(out.others, namedFigure{"API p50", "ms", latency(api, 50)}, namedFigure{"API p99", "ms", latency(api, 99)})
		for i, c := range programs.clocks {
			out.others = append(out.others, namedFigure{c.figure, "%", 100 * (after.cpu[i] - before.cpu[i]).Seconds() / seconds})
		}
		for _, of := range []string{"keys", "requests"} {
			name := "veneer_edge_core_" + of + "_total"
			out.others = append(out.others, namedFigure{of + " to core", "/s", (counted[name] - counters[name]) / seconds})
		}
		if rate > 0 { // delayed requests are sent, and answered, later
			out.others = append(out.others, namedFigure{"answered", "/s", float64(all[1].Total()) / all[1].Elapsed.Seconds()})
		}
		return out
	}
	var all []subject
	for _, rate := range []float64{0, 5_000, 25_000, 50_000} { // unknown names a second; 0 is idle
		if e.Quick {
			rate /= 100
		}
		name := fmt.Sprintf("beside %.0f names/s", rate)
		if rate == 0 {
			name = "alone"
		}
		all = append(all, subject{name: name, measure: func(int) outcome { return measure(rate) }})
	}
	return all
}

// sendBoth sends streams to an edge and beside them one to core, from threads of a priority, if that is
// allowed. The answers of core are the last.
func (e *env) sendBoth(priority int, edge, core string, duration time.Duration, pictures []*load.Stream, api *load.Stream) []load.Answers {
	var got [2][]load.Answers
	var both errgroup.Group
	send := func(i int, address string, streams ...*load.Stream) {
		both.Go(func() error {
			unpin, err := load.Pin(e.loadCPU)
			if err != nil {
				return err
			}
			defer unpin()
			_ = unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), priority)
			defer func() { _ = unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), 0) }()
			got[i], err = load.Run(e.Context(), address, duration, streams...)
			return err
		})
	}
	send(0, edge, pictures...)
	send(1, core, api)
	testenv.Do(e, both.Wait())
	return slices.Concat(got[0], got[1])
}

// pin sets the affinity of all threads of a process to the processor of the servers. A process of
// another user is left as it is.
func (e *env) pin(pid int) {
	var set unix.CPUSet
	set.Set(e.serverCPU)
	for _, thread := range testenv.Must(os.ReadDir(fmt.Sprintf("/proc/%d/task", pid)))(e) {
		tid := testenv.Must(strconv.Atoi(thread.Name()))(e)
		if err := unix.SchedSetaffinity(tid, &set); err != nil {
			fmt.Fprintf(e.Out, "process %d stays on any processor: %v\n", pid, err)
			return
		}
	}
}
