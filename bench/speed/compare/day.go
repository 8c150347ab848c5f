package compare

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"
	"golang.org/x/sync/errgroup"

	"github.com/veneer-skins/veneer/bench/speed/baseline"
	"github.com/veneer-skins/veneer/bench/speed/load"
	"github.com/veneer-skins/veneer/bench/speed/results"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// The mixed day, in shares of its requests; the rest are hits.
const (
	dayUnmodified = 0.05
	dayCold       = 0.04
	dayAPI        = 0.01

	// In the edge's second curve these take the place of hits, a tenth of all: hits at addresses of
	// other services, sprites in memory, and new sprites.
	dayForeign   = 0.08
	daySprite    = 0.01
	dayNewSprite = 0.01
	// They are of the first dayPlayers players, in sprites of spriteHeads flat heads, which a web map
	// or a list of players has.
	dayPlayers  = 1000
	spriteHeads = 20

	// At each rate there are dayRounds of dayEach, alternating between servers. The medians count.
	dayRounds = 9
	dayEach   = 2 * time.Second
	dayLimit  = 10 * time.Millisecond
	// Hits are of this number of cached views, few enough for hardly any of them to be evicted by new
	// pictures.
	dayViews = 20_000
	// At most this share of all requests may be rendered unexpectedly.
	dayForgotten = 0.01

	// dayConnections bounds the open requests.
	dayConnections = 256

	// soakSamples is the number of samples of the programs, soakRate the rate of a soak's mixed day, in
	// requests a second: easy for one processor.
	soakRate    = 4000
	soakSamples = 240
)

// dayRates are the rates, in requests a second, up to the one at which the p99 exceeds dayLimit:
// close together near a processor's limit.
var dayRates = []float64{1000, 2000, 4000, 5000, 6000, 7000, 8000, 10_000, 12_000, 16_000, 20_000, 24_000, 32_000, 48_000, 64_000}

// newViews are the views of new pictures: flat and isometric heads of 16 to 256 pixels, and figures
// of 64 to 400.
var newViews = slices.Concat(
	sized(16, 256, 8, "/avatar/hash/%s?size={size}", "/avatar/hash/%s?size={size}&3d"), sized(64, 400, 16, "/preview/hash/%s?height={size}"),
)

// sized returns patterns with sizes from the least to the most.
func sized(least, most, step int, patterns ...string) (all []string) {
	for size := least; size <= most; size += step {
		for _, pattern := range patterns {
			all = append(all, strings.ReplaceAll(pattern, "{size}", strconv.Itoa(size)))
		}
	}
	return all
}

// mixedDay measures latency by the rate of a mixed day: of the edge, and of caches in front of it; API
// requests go to core beside them.
func (e *env) mixedDay(result *results.Run) {
	const name = "mixed day"
	fmt.Fprintf(e.Out, "==> %s … ", name)
	began := time.Now()
	var all []*dayServer
	for _, t := range e.memoryTargets() {
		if t.server != nil && t.server.Conditional == t.server.Address { // the others have recorded answers only
			all = append(all, &dayServer{target: t, Sweep: daySweep(t.name)})
		}
	}
	e.warmMappings()
	e.openLive()
	all = append(all, &dayServer{target: all[0].target, other: e.openOtherRequests(), Sweep: daySweep("Veneer, a tenth foreign or sprites")})
	rates, rounds := dayRates, e.rounds(dayRounds)
	if e.Quick {
		rates = []float64{rates[0] / 10}
	}
	for _, s := range all { // to warm up
		e.measureRate(s, rates[0], 0)
	}
	for i, rate := range rates {
		e.alternate(fmt.Sprintf("%s at %.0f requests a second", name, rate), rounds, len(all), func(at, round int) {
			if s := all[at]; !s.excluded {
				s.rounds = append(s.rounds, e.measureRate(s, rate, 1+i*rounds+round))
			}
		})
		for _, s := range all {
			s.conclude(rate)
		}
	}
	for _, s := range all {
		result.Sweeps = append(result.Sweeps, s.Sweep)
	}
	fmt.Fprintf(e.Out, ", %.0f s\n", time.Since(began).Seconds())
}

// dayServer is a server on a mixed day.
type dayServer struct {
	*target
	results.Sweep

	other    *otherRequests     // nil for none
	rounds   [][]results.Figure // of the current rate
	excluded bool               // too slow, or with rejections in half of the rounds
}

func daySweep(subject string) results.Sweep {
	return results.Sweep{
		Name: "mixed day of " + subject, Parameter: "requests a second",
		Measures: "Latency at rising rates, which counts from the time at which a request was due, until the p99 is above " + dayLimit.String(),
	}
}

// conclude adds the rounds of a rate, unless the server was excluded or had rejections in half of
// them.
func (s *dayServer) conclude(rate float64) {
	if s.excluded {
		return
	}
	step := results.NewStep(rate, s.rounds)
	p99 := step.Figures[1].Summary().Median
	s.rounds, s.excluded = nil, p99 > float64(dayLimit)/1e6
	if !math.IsInf(p99, 1) {
		s.Steps = append(s.Steps, step)
	}
}

// measureRate measures one round of a rate. The round decides the requests.
func (e *env) measureRate(on *dayServer, rate float64, round int) []results.Figure {
	before, firstNew := e.rendersOf(e.site.Edge.Operators), e.newPictures
	all := e.runDay(on, rate, round, e.duration(dayEach))
	err := all.Check()
	if all.Wrong[load.WrongLength]+all.Wrong[load.WrongBody] > 0 { // which no load excuses
		testenv.Do(e, err)
	}
	renders, newCount := e.rendersOf(e.site.Edge.Operators)-before, float64(e.newPictures-firstNew)
	if err == nil && (renders < newCount || renders > newCount+dayForgotten*float64(all.Total())) {
		e.Fatalf("%s at %.0f/s: of %d requests %.0f were for new pictures, and %.0f were rendered", on.Name, rate, all.Total(), newCount, renders)
	}
	var figures []results.Figure
	for _, percent := range []float64{50, 99, 99.9} {
		figure := results.Figure{Name: fmt.Sprint("p", percent), Unit: "ms", Rejected: 1}
		if err == nil {
			figure.Rounds, figure.Rejected = []float64{latency(all, percent)}, 0
		}
		figures = append(figures, figure)
	}
	return append(figures,
		results.Figure{Name: "CPU time of the load", Unit: "%", Rounds: []float64{loadBusy(all).value}},
		results.Figure{Name: "longest delay by the load", Unit: "ms", Rounds: []float64{float64(all.Late) / 1e6}})
}

// runDay sends a mixed day at a rate: picture requests to a server, the rest to core.
func (e *env) runDay(on *dayServer, rate float64, round int, duration time.Duration) *load.Answers {
	images, api := e.dayImages(on, round), e.userReads(e.live.users, round)
	images.Rate, api.Rate = rate*(1-dayAPI), rate*dayAPI
	var all []load.Answers
	// Known answers were compared before, so their lengths suffice now. New pictures share one
	// index, so the requested size is unknown.
	e.decodeSample(images, func(request int) string {
		if images.Lengths[request] >= 0 {
			return ""
		}
		return "/"
	}, func() { all = e.sendBoth(0, on.address, e.live.address, duration, []*load.Stream{images}, api) })
	all[0].Add(all[1])
	return &all[0]
}

// dayImages returns a day's picture requests: known responses, conditional requests, and uncached
// pictures. The choice of the known ones is the same for all servers in a round, and differs
// between rounds.
func (e *env) dayImages(on *dayServer, round int) *load.Stream {
	stream := &load.Stream{Connections: dayConnections, Statuses: []int{fasthttp.StatusOK, fasthttp.StatusNotModified}}
	random := rand.New(rand.NewPCG(3, uint64(round)))
	// known appends the requests for responses, with tags conditional ones, and returns a function that
	// draws one in Zipf order.
	known := func(record *baseline.Record, responses []baseline.Response, tags []string) func() int {
		first, views := len(stream.Requests), newPopular(len(responses))
		for i := range responses {
			var condition []string
			if tags != nil {
				condition = []string{ifNoneMatch(tags[i])}
			}
			stream.Requests = append(stream.Requests, load.Get(on.server.Target(&responses[i]), condition...))
			stream.Lengths = append(stream.Lengths, len(record.Body(&responses[i])))
		}
		return func() int { return first + views.draw(random) }
	}
	// uncached appends a request, and returns a function that gives it another address: it is sent before
	// the next one is made.
	uncached := func(address func() string) func() int {
		at := len(stream.Requests)
		stream.Requests, stream.Lengths = append(stream.Requests, nil), append(stream.Lengths, -1)
		return func() int {
			stream.Requests[at] = load.Get(address())
			return at
		}
	}
	n, skins := min(dayViews, len(e.views.Full)), e.unusedSkins()
	type kind struct {
		share float64
		next  func() int // returns the index of a request in the stream
	}
	hit := known(e.views, e.views.Full[:n], nil)
	kinds := []kind{
		{dayCold, uncached(func() string { return e.newPicture(skins) })},
		{dayUnmodified, known(e.views, e.views.Unmodified[:n], on.tags)},
	}
	if other := on.other; other != nil {
		kinds = append(kinds,
			kind{dayForeign, known(other.foreign, other.foreign.Full, nil)},
			kind{daySprite, known(other.sprites, other.sprites.Full, nil)},
			kind{dayNewSprite, uncached(func() string { // of random players, which hardly comes twice
				e.newPictures++
				list := make([]string, spriteHeads)
				for i := range list {
					list[i] = other.names[random.IntN(len(other.names))]
				}
				return spriteAddress(list)
			})},
		)
	}
	stream.Order = func() int {
		draw := random.Float64() * (1 - dayAPI)
		for _, kind := range kinds {
			if draw -= kind.share; draw < 0 {
				return kind.next()
			}
		}
		return hit()
	}
	return stream
}

// otherRequests are requests at addresses of other services and for sprites.
type otherRequests struct {
	foreign, sprites *baseline.Record
	names            []string // of the players
}

// openOtherRequests makes the edge have the answers to those requests in memory.
func (e *env) openOtherRequests() *otherRequests {
	players := min(dayPlayers, e.usedPlayers)
	r := &otherRequests{names: e.site.Names[:players]}
	var addresses, sprites []string
	for _, pattern := range e.site.Foreigns(players) {
		addresses = append(addresses, pattern.Addresses...)
	}
	for names := range slices.Chunk(r.names, spriteHeads) {
		sprites = append(sprites, spriteAddress(names))
	}
	r.foreign = baseline.RecordHits(e, e.site.Edge, addresses)
	r.sprites = baseline.RecordHits(e, e.site.Edge, sprites)
	return r
}

func spriteAddress(names []string) string {
	return "/sprite/face.webp?size=32&players=" + strings.Join(names, ",")
}

// newPicture returns the next address of an uncached picture, or of one requested so long ago that
// it was evicted: it starts again after all newViews of all skins. The order mixes sizes, so that
// they do not grow over time.
func (e *env) newPicture(skins []skin.Hash) string {
	e.newPictures++
	n := e.newPictures * viewStride % (len(skins) * len(newViews))
	return fmt.Sprintf(newViews[n/len(skins)], skins[n%len(skins)])
}

// soak runs a mixed day at a constant rate, and samples the resource usage of core and the edge
// meanwhile. It begins when the edge's picture cache is full, as usage grows until then. All answers
// must be right, and no usage may grow in the second half.
func (e *env) soak(result *results.Run) {
	duration := e.Soak
	edge := edgeTarget("edge", e.fixture().Edge)
	edge.tags = e.knownAnswers().Tags()
	e.openLive()
	rate := float64(e.quick(soakRate, soakRate/10))
	e.addSetting("requests a second", rate)
	e.warmMappings()
	if !e.Quick { // it would take minutes
		e.fillEdge(edge)
	}
	programs := []struct{ name, operators string }{{"edge", e.site.Edge.Operators}, {"core", e.live.core.Address(e, "operators")}}
	samples := make([][][]results.Figure, len(programs))
	ended := make(chan struct{})
	var sampler errgroup.Group
	sampler.Go(func() error {
		ticker := time.NewTicker(duration / soakSamples)
		defer ticker.Stop()
		for began := time.Now(); ; {
			select {
			case <-ended:
				return nil
			case <-ticker.C:
			}
			minutes := time.Since(began).Minutes()
			for i, p := range programs {
				samples[i] = append(samples[i], e.usageOf(p.operators))
			}
			fmt.Fprintf(e.Out, "\r==> soak … %.1f of %.0f minutes", minutes, duration.Minutes())
		}
	})
	got := e.runDay(&dayServer{target: edge}, rate, 0, duration)
	close(ended)
	testenv.Do(e, sampler.Wait())
	fmt.Fprintln(e.Out)
	for i, p := range programs {
		if n := len(samples[i]); n < 8 {
			e.Fatalf("%d samples of the %s are too few", n, p.name)
		}
		sweep := results.Sweep{Name: "soak of the " + p.name, Measures: fmt.Sprintf("What it has in use in %v under a mixed day", duration), Parameter: "quarter"}
		for n := range 4 {
			quarter := samples[i][len(samples[i])*n/4 : len(samples[i])*(n+1)/4]
			sweep.Steps = append(sweep.Steps, results.NewStep(float64(n+1), quarter))
		}
		result.Sweeps = append(result.Sweeps, sweep)
	}
	testenv.Do(e, got.Check())
	if !e.Quick {
		for i := range programs {
			testenv.Do(e, result.Sweeps[len(result.Sweeps)-1-i].CheckFlat())
		}
	}
}

// fillEdge makes the edge render pictures that will not be requested again, the largest first,
// until it has to evict some.
func (e *env) fillEdge(edge *target) {
	skins, renders := e.site.Skins, 0
	stream := streamOf(coldConnections, fasthttp.StatusOK, nil)
	stream.Order = func() int {
		size := 512 - coldStep*(renders/len(skins))
		if size < coldStep {
			return -1
		}
		stream.Requests[0] = load.Get(fmt.Sprintf("/avatar/hash/%s?png&size=%d", skins[renders%len(skins)], size))
		renders++
		return 0
	}
	for {
		metrics := e.metricsOf(e.site.Edge.Operators)
		fmt.Fprintf(e.Out, "\r==> filling the edge's memory … %.0f of %.0f MiB",
			metrics["veneer_edge_picture_cache_bytes"]/(1<<20), metrics["veneer_edge_picture_cache_budget_bytes"]/(1<<20))
		if metrics["veneer_edge_picture_cache_evicted_total"] > 0 {
			fmt.Fprintln(e.Out)
			return
		}
		if e.send(edge, time.Second, stream)[0].Total() == 0 {
			e.Fatal("there are not enough pictures to fill the edge's memory")
		}
	}
}

func (e *env) usageOf(operators string) (usage []results.Figure) {
	metrics := e.metricsOf(operators)
	const libvips = "veneer_edge_libvips_bytes"
	for _, resource := range []struct {
		name, unit, metric string
		divisor            float64
	}{
		{"resident memory", "MiB", residentMetric, 1 << 20},
		{"goroutines", "", "go_goroutines", 1},
		{"open files", "", "process_open_fds", 1},
		{"memory of libvips", "MiB", libvips, 1 << 20},
	} {
		value, ok := metrics[resource.metric]
		if _, edge := metrics["veneer_edge_picture_cache_bytes"]; !edge && resource.metric == libvips {
			continue // core has no libvips
		}
		if !ok {
			e.Fatalf("the metrics lack %s", resource.metric)
		}
		usage = append(usage, results.Figure{Name: resource.name, Unit: resource.unit, Rounds: []float64{value / resource.divisor}})
	}
	return usage
}
