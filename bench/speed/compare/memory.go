package compare

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/bench/speed/baseline"
	"github.com/veneer-skins/veneer/bench/speed/fixture"
	"github.com/veneer-skins/veneer/bench/speed/load"
	"github.com/veneer-skins/veneer/shared/testenv"
	"github.com/veneer-skins/veneer/shared/tlsreload/tlsreloadtest"
)

const (
	// connections is the number of keep-alive connections for cached answers.
	connections = 32
	answersEach = 400 * time.Millisecond
	// hitsEach is short, so that all servers get the same share of the machine's other load.
	hitsEach = 100 * time.Millisecond
)

// selection selects the requests of a scenario with known answers.
type selection struct {
	pick        func(target string) bool // selects the record's addresses; nil for all
	zipf        bool                     // else uniform
	conditional bool
	routes      bool // addresses of all routes, else views
	tls         bool
}

// memory opens the servers that answer from memory, with the same answers.
func memory(sel selection) func(e *env) []subject {
	return func(e *env) []subject {
		record, targets, each := e.knownAnswers, e.memoryTargets, answersEach
		if sel.routes {
			record, each = e.routeAnswers, hitsEach
			targets = func() []*target { return e.routeTargets(sel.tls) }
		}
		known := record()
		return subjects(targets(), func(t *target) func(int) outcome {
			stream, address := e.knownStream(t, known, sel)
			order, on := requestOrders(len(stream.Requests), sel.zipf), *t
			on.address = address
			return func(round int) outcome {
				stream.Order = order(round)
				return e.measure(&on, e.duration(each), stream).outcome(&on)
			}
		})
	}
}

// memoryTargets returns the edge and the servers that have its answers to views.
func (e *env) memoryTargets() []*target {
	record, edge := e.knownAnswers(), e.site.Edge
	own := edgeTarget("Veneer", edge)
	own.tags = record.Tags()
	start := func(name string, program baseline.Program, start func() *baseline.Server) *target {
		return e.openChecked(name, "views, ", program, record, start)
	}
	return []*target{
		own,
		start("bare fasthttp", baseline.Fasthttp, func() *baseline.Server { return baseline.Fasthttp.StartRecorded(e, record, "", "") }),
		start("goroutines alone", baseline.Loop, func() *baseline.Server { return baseline.Loop.StartRecorded(e, record, "", "") }),
		start("epoll alone", baseline.Epoll, func() *baseline.Server { return baseline.Epoll.StartRecorded(e, record, "", "") }),
		start("nginx, files", baseline.Nginx, func() *baseline.Server { return e.startNginx(baseline.ByAddress, record) }),
		start("nginx's cache before Veneer", baseline.Nginx, func() *baseline.Server {
			e.addSetting("maximum bytes of nginx's cache", cacheBytes)
			return baseline.StartNginxCache(e, edge.Address, cacheBytes)
		}),
		start("Varnish before Veneer", baseline.Varnish, func() *baseline.Server {
			e.addSetting("maximum bytes of Varnish", cacheBytes)
			return baseline.StartVarnish(e, edge.Address, cacheBytes)
		}),
	}
}

// routeTargets returns the edge, and the servers that have its answers to addresses of all routes:
// among them an edge without its fast path, and nginx with a file for every address, as a site would
// have it, and with a file for every different body: it can keep all of them open.
func (e *env) routeTargets(tls bool) []*target {
	record, use, chain, key := e.routeAnswers(), "routes, ", "", ""
	if tls {
		use = "routes, TLS, "
		if e.targets[use+"Veneer"] == nil {
			chain, key = tlsreloadtest.NewAuthority(e).Issue(e)
		}
	}
	var targets []string
	for i := range record.Full {
		targets = append(targets, record.Full[i].Target)
	}
	edge := func(name string, fastPath bool) *target {
		return e.openChecked(name, use, veneer, record, func() *baseline.Server {
			edge := e.site.StartEdge(e, "EDGE_TLS_CERT="+chain, "EDGE_TLS_KEY="+key, fmt.Sprintf("EDGE_FAST_PATH=%t", fastPath))
			baseline.RecordHits(e, edge, targets)
			return edge
		})
	}
	all := []*target{
		edge("Veneer", true),
		e.openChecked("bare fasthttp", use, baseline.Fasthttp, record, func() *baseline.Server {
			return baseline.Fasthttp.StartRecorded(e, record, chain, key)
		}),
		e.openChecked("goroutines alone", use, baseline.Loop, record, func() *baseline.Server {
			return baseline.Loop.StartRecorded(e, record, chain, key)
		}),
		edge("Veneer without its fast path", false),
	}
	for _, layout := range []baseline.Layout{baseline.ByAddress, baseline.ByBody} {
		if !tls {
			all = append(all, e.openChecked("nginx, "+string(layout), use, baseline.Nginx, record, func() *baseline.Server { return e.startNginx(layout, record) }))
		}
	}
	return all
}

func (e *env) startNginx(layout baseline.Layout, record *baseline.Record) *baseline.Server {
	open := baseline.RaiseFileLimit(e)
	e.addSetting("files that nginx may have open", open)
	return baseline.StartNginx(e, layout, open, record)
}

// openChecked opens a server, which must answer everything as the edge does. A cache is filled then.
func (e *env) openChecked(name, use string, program baseline.Program, record *baseline.Record, start func() *baseline.Server) *target {
	t := e.open(name, use, program, start)
	if t.server != nil && t.tags == nil {
		t.tags = testenv.Must(t.server.Check(e.Context(), record))(e)
	}
	return t
}

// knownStream returns the selected requests to a target, and the address for them.
func (e *env) knownStream(t *target, record *baseline.Record, sel selection) (stream *load.Stream, address string) {
	address, responses := t.server.Address, record.Full
	if sel.conditional {
		address, responses = t.server.Conditional, record.Unmodified
	}
	stream = streamOf(connections, responses[0].Status)
	stream.TLS = t.server.TLS
	var bodies [][]byte
	for i := range responses {
		r := &responses[i]
		if sel.pick != nil && !sel.pick(r.Target) {
			continue
		}
		var condition []string
		if sel.conditional {
			condition = []string{ifNoneMatch(t.tags[i])}
		}
		stream.Requests = append(stream.Requests, load.Get(t.server.Target(r), condition...))
		stream.Lengths = append(stream.Lengths, len(record.Body(r)))
		bodies = append(bodies, record.Body(r))
	}
	stream.InspectShare, stream.Inspect = e.compareShare(), func(request, _ int, body []byte) error {
		if !bytes.Equal(body, bodies[request]) {
			return fmt.Errorf("answer %d is another one", request)
		}
		return nil
	}
	return stream, address
}

func foreignPatterns() (patterns []string) {
	for _, pattern := range new(fixture.Site).Foreigns(0) {
		patterns = append(patterns, pattern.Pattern)
	}
	return patterns
}

// foreignAddresses opens the edge twice: addresses of another service by their number, and the own
// addresses of the same pictures, which must have the same answers.
func foreignAddresses(number int) func(e *env) []subject {
	return func(e *env) []subject {
		players := fixture.PlayersFor(e.quick(knownRoutes, fixture.Patterns()+1))
		pattern := e.fixture().Foreigns(players)[number]
		record := baseline.RecordHits(e, e.site.Edge, slices.Concat(pattern.Addresses, pattern.Own))
		for n := range players {
			other, own := &record.Full[n], &record.Full[players+n]
			if !slices.Equal(other.Headers, own.Headers) || other.Body != own.Body {
				e.Fatalf("%s answers %q, and %s %q", other.Target, other.Headers, own.Target, own.Headers)
			}
		}
		var all []subject
		for i, name := range []string{"Veneer", "own address"} {
			part := *record
			part.Full = record.Full[i*players : (i+1)*players]
			t := edgeTarget(name, e.site.Edge)
			stream, _ := e.knownStream(t, &part, selection{})
			all = append(all, t.subject(func(t *target) func(int) outcome {
				return func(round int) outcome {
					stream.Order = load.Random(players, uint64(round))
					return e.measure(t, e.duration(hitsEach), stream).outcome(t)
				}
			}))
		}
		return all
	}
}

// batchHeads is the most that a sprite may have. batchRepeats is how often a round requests what does
// not change then: a single sprite takes less than a tick of the kernel.
const batchHeads, batchRepeats = 100, 20

// batch opens the ways to a hundred heads: as a sprite, as a hundred pictures, and as a look-up in one
// request with a hundred pictures by hash. Only the first two requests for a sprite draw it, before
// all else in a round.
func (e *env) batch() []subject {
	site := e.fixture()
	edge := edgeTarget("Veneer", site.Edge)
	send := func(requests [][]byte, times, status int) outcome {
		stream := streamOf(1, status, requests...)
		stream.Order = load.Repeat(len(requests), times)
		s := e.measure(edge, time.Minute, stream)
		sent := len(slices.Concat(requests...))
		each := func(total float64) float64 { return total / float64(times) }
		return outcome{each(s.Elapsed.Seconds() * 1000), []namedFigure{
			{cpuFigure, "ms", each(s.cpu[0].Seconds() * 1000)}, {"received", "bytes", each(float64(s.Bytes))}, {"sent", "bytes", float64(sent)},
		}}
	}
	ways := []string{"a sprite, first request", "second request", "cached", "304", "a hundred pictures by name, cached", "heads.json and a hundred pictures by hash, cached"}
	return together(ways, func(round int) (all []outcome) {
		names := site.Names[round*batchHeads : (round+1)*batchHeads]
		list := strings.Join(names, ",")
		sprite, single, hashed := []string{"/sprite/face.webp?size=32&players=" + list}, []string{}, []string{"/heads.json?players=" + list}
		for i, name := range names {
			single = append(single, "/face/player/"+name+".webp?size=32")
			hashed = append(hashed, fmt.Sprintf("/face/hash/%s.webp?size=32", site.Skins[round*batchHeads+i]))
		}
		for range 2 {
			all = append(all, send(gets(sprite), 1, fasthttp.StatusOK))
		}
		baseline.RecordHits(e, site.Edge, slices.Concat(sprite, single, hashed))
		tag := testenv.Must(fetchTag("http://" + site.Edge.Address + sprite[0]))(e)
		return append(all,
			send(gets(sprite), batchRepeats, fasthttp.StatusOK),
			send([][]byte{load.Get(sprite[0], ifNoneMatch(tag))}, batchRepeats, fasthttp.StatusNotModified),
			send(gets(single), batchRepeats, fasthttp.StatusOK),
			send(gets(hashed), batchRepeats, fasthttp.StatusOK))
	})
}
