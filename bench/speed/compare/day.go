package compare

import (
	"context"
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

	// At each rate there are dayRounds of dayEach, alternating between servers, of which the
	// medians count.
	dayRounds = 9
	dayEach   = 2 * time.Second
	dayLimit  = 10 * time.Millisecond
	// Hits are from so many of the cached views, few enough for hardly any of them to be
	// evicted by new pictures.
	dayViews = 20_000
	// At most this share of all requests may be rendered unexpectedly.
	dayForgotten = 0.01

	// dayConnections bounds the open requests.
	dayConnections = 256
)

// dayRates are the rates, in requests a second, up to the one at which the p99 exceeds dayLimit:
// close together near a processor's limit.
var dayRates = []float64{1000, 2000, 4000, 5000, 6000, 7000, 8000, 10_000, 12_000, 16_000, 20_000, 24_000, 32_000, 48_000, 64_000}

// newViews are the views of new pictures: flat and isometric heads of 16 to 256 pixels, and figures
// of 64 to 400.
var newViews = func() (all []string) {
	for size := 16; size <= 256; size += 8 {
		all = append(all, fmt.Sprintf("size=%d", size), fmt.Sprintf("size=%d&3d", size))
	}
	for i := range all {
		all[i] = "/avatar/hash/%s?" + all[i]
	}
	for height := 64; height <= 400; height += 16 {
		all = append(all, "/preview/hash/%s?height="+strconv.Itoa(height))
	}
	return all
}()

// measureDay measures latency by the rate of a mixed day: of the edge, and of caches in front of
// it; API requests go to core beside them.
func (e *env) measureDay(ctx context.Context) ([]results.Curve, error) {
	fmt.Fprint(e.Out, "==> mixed day … ")
	began := time.Now()
	subjects, err := e.memorySubjects(ctx, selection{pick: isView})
	if err != nil {
		return nil, err
	}
	if err := e.warmMappings(ctx); err != nil {
		return nil, err
	}
	live, err := e.openLive()
	if err != nil {
		return nil, err
	}
	var all []*dayServer
	for _, subj := range subjects {
		server := e.servers[subj.name]
		switch {
		case subj.name == "Veneer":
			server = e.fixture.Edge
		case server == nil || server.Conditional != server.Address: // it has recorded answers only
			continue
		}
		all = append(all, &dayServer{server: server, Curve: results.Curve{Name: subj.name}})
	}
	other, err := e.openOtherRequests(ctx)
	if err != nil {
		return nil, err
	}
	all = append(all, &dayServer{server: e.fixture.Edge, other: other, Curve: results.Curve{Name: "Veneer, a tenth foreign or sprites"}})
	rates := dayRates
	if e.Quick {
		rates = []float64{rates[0] / 10}
	}
	for _, c := range all { // to warm up
		if _, err := e.measureRate(ctx, live, c, rates[0], 0); err != nil {
			return nil, fmt.Errorf("%s: %w", c.Name, err)
		}
	}
	for i, rate := range rates {
		for round := range dayRounds {
			fmt.Fprintf(e.Out, "\r==> mixed day … %.0f requests a second, %d of %d rounds", rate, round+1, dayRounds)
			for position := range all {
				c := all[subjectInRound(position, len(all), round)]
				if c.excluded {
					continue
				}
				point, err := e.measureRate(ctx, live, c, rate, 1+i*dayRounds+round)
				if err != nil {
					return nil, fmt.Errorf("%s at %.0f/s: %w", c.Name, rate, err)
				}
				c.rounds = append(c.rounds, point)
			}
		}
		for _, c := range all {
			c.conclude()
		}
	}
	var curves []results.Curve
	for _, c := range all {
		curves = append(curves, c.Curve)
	}
	fmt.Fprintf(e.Out, ", %.0f s\n", time.Since(began).Seconds())
	return curves, nil
}

// dayServer is a server on a mixed day.
type dayServer struct {
	server *baseline.Server
	other  *otherRequests // nil for none
	results.Curve
	rounds   []results.Point // of the current rate
	excluded bool            // too slow, or with rejections in half of the rounds
}

// conclude adds the rounds of a rate, unless the server was excluded or had rejections in half of
// them.
func (s *dayServer) conclude() {
	if s.excluded {
		return
	}
	point := results.Point{Rate: s.rounds[0].Rate}
	for _, p := range s.rounds {
		point.P50 = append(point.P50, p.P50...)
		point.P99 = append(point.P99, p.P99...)
		point.P999 = append(point.P999, p.P999...)
		point.Busy = append(point.Busy, p.Busy...)
		point.Late = append(point.Late, p.Late...)
		point.Refused += p.Refused
	}
	p99 := point.Summarize(point.P99).Median
	s.rounds, s.excluded = nil, p99 > float64(dayLimit)/1e6
	if !math.IsInf(p99, 1) {
		s.Points = append(s.Points, point)
	}
}

// measureRate measures one round of a rate. The round decides the requests.
func (e *env) measureRate(ctx context.Context, t *liveStack, on *dayServer, rate float64, round int) (results.Point, error) {
	before, err := rendersOf(ctx, e.fixture.Operators)
	if err != nil {
		return results.Point{}, err
	}
	firstNew := e.newPictures
	all, err := e.runDay(ctx, t, on, rate, round, e.duration(dayEach))
	if err != nil {
		return results.Point{}, err
	}
	if all.Wrong[load.WrongLength]+all.Wrong[load.WrongBody] > 0 { // which no load excuses
		return results.Point{}, all.Check()
	}
	after, err := rendersOf(ctx, e.fixture.Operators)
	if err != nil {
		return results.Point{}, err
	}
	renders, newCount := after-before, float64(e.newPictures-firstNew)
	if all.Check() == nil && (renders < newCount || renders > newCount+dayForgotten*float64(all.Total())) {
		return results.Point{}, fmt.Errorf("of %d requests %.0f were for new pictures, and %.0f were rendered", all.Total(), newCount, renders)
	}
	point := results.Point{Rate: rate}
	if all.Check() == nil {
		latencies := all.All()
		of := func(percent float64) []float64 { return []float64{float64(latencies.ValueAtPercentile(percent)) / 1e6} }
		point.P50, point.P99, point.P999 = of(50), of(99), of(99.9)
		point.Busy, point.Late = []float64{loadBusy(all).value}, []float64{float64(all.Late) / 1e6}
	} else {
		point.Refused = 1
	}
	return point, nil
}

// runDay sends a mixed day at a rate: picture requests to a server, the rest to core.
func (e *env) runDay(ctx context.Context, t *liveStack, on *dayServer, rate float64, round int, duration time.Duration) (*load.Answers, error) {
	images, api := e.dayImages(on, round), e.userReads(t, round)
	images.Rate, api.Rate = rate*(1-dayAPI), rate*dayAPI
	var got [2][]load.Answers
	var both errgroup.Group
	for i, target := range []struct {
		address string
		*load.Stream
	}{{on.server.Address, images}, {t.api, api}} {
		both.Go(func() error {
			unpin, err := load.Pin(e.loadCPU)
			if err != nil {
				return err
			}
			defer unpin()
			got[i], err = load.Run(ctx, target.address, duration, target.Stream)
			return err
		})
	}
	// Known answers were compared before, so their lengths suffice now. New pictures share one
	// index, so the requested size is unknown.
	if err := decodeSample(images, func(request int) string {
		if images.Lengths[request] >= 0 {
			return ""
		}
		return "/"
	}, both.Wait); err != nil {
		return nil, err
	}
	all := got[0][0]
	all.Add(got[1][0])
	return &all, nil
}

// dayImages returns a day's picture requests: known responses, conditional requests, and uncached
// pictures. The choice of the known ones is the same for all servers in a round, and differs
// between rounds.
func (e *env) dayImages(on *dayServer, round int) *load.Stream {
	stream := &load.Stream{Connections: dayConnections, Statuses: []int{fasthttp.StatusOK, fasthttp.StatusNotModified}}
	random := rand.New(rand.NewPCG(3, uint64(round)))
	known := func(record *baseline.Record, responses []baseline.Response, tags []string) func() int {
		return appendKnown(stream, on.server, record, responses, tags, random)
	}
	n, skins := min(dayViews, len(e.record.Full)), e.unusedSkins()
	hits := known(e.record, e.record.Full[:n], nil)
	kinds := []dayKind{
		{dayCold, appendUncached(stream, func() string { return e.newPicture(skins) })},
		{dayUnmodified, known(e.record, e.record.Unmodified[:n], e.tags[on.server])},
	}
	if other := on.other; other != nil {
		kinds = append(kinds,
			dayKind{dayForeign, known(other.foreign, other.foreign.Full, nil)},
			dayKind{daySprite, known(other.sprites, other.sprites.Full, nil)},
			dayKind{dayNewSprite, appendUncached(stream, func() string { return e.newSprite(other.names, random) })},
		)
	}
	stream.Order = func() int {
		draw := random.Float64() * (1 - dayAPI)
		for _, kind := range kinds {
			if draw -= kind.share; draw < 0 {
				return kind.next()
			}
		}
		return hits()
	}
	return stream
}

// dayKind is a kind of picture requests with its share of all requests of a day.
type dayKind struct {
	share float64
	next  func() int // returns the index of a request in the stream
}

// appendKnown appends the requests for responses to a stream, with tags conditional ones, and returns a
// function that draws one in Zipf order.
func appendKnown(stream *load.Stream, server *baseline.Server, record *baseline.Record, responses []baseline.Response, tags []string, random *rand.Rand) func() int {
	first, views := len(stream.Requests), newPopular(len(responses))
	for i := range responses {
		condition, response := "", &responses[i]
		if tags != nil {
			condition = "If-None-Match: " + tags[i] + "\r\n"
		}
		stream.Requests = append(stream.Requests, fmt.Appendf(nil, "GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\n%s\r\n", server.Target(response), condition))
		stream.Lengths = append(stream.Lengths, len(record.Body(response)))
	}
	return func() int { return first + views.draw(random) }
}

// appendUncached appends a request to a stream, and returns a function that gives it another address.
func appendUncached(stream *load.Stream, address func() string) func() int {
	at := len(stream.Requests)
	stream.Requests, stream.Lengths = append(stream.Requests, nil), append(stream.Lengths, -1)
	return func() int {
		stream.Requests[at] = fmt.Appendf(nil, "GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", address()) // sent before the next one is made
		return at
	}
}

// otherRequests are requests at addresses of other services and for sprites.
type otherRequests struct {
	foreign, sprites *baseline.Record
	names            []string // of the players
}

// openOtherRequests makes the edge have the answers to those requests in memory.
func (e *env) openOtherRequests(ctx context.Context) (*otherRequests, error) {
	players := min(dayPlayers, e.usedPlayers)
	t := &otherRequests{names: e.fixture.Names()[:players]}
	var foreign, sprites []string
	for _, pattern := range e.fixture.Foreigns(players) {
		foreign = append(foreign, pattern.Addresses...)
	}
	for names := range slices.Chunk(t.names, spriteHeads) {
		sprites = append(sprites, spriteAddress(names))
	}
	var err error
	if t.foreign, err = baseline.RecordHits(ctx, e.fixture.Edge, foreign); err != nil {
		return nil, err
	}
	t.sprites, err = baseline.RecordHits(ctx, e.fixture.Edge, sprites)
	return t, err
}

func spriteAddress(names []string) string {
	return "/sprite/face.webp?size=32&players=" + strings.Join(names, ",")
}

// newSprite returns the address of a sprite of random players, of which there are too many for one to
// come twice.
func (e *env) newSprite(names []string, random *rand.Rand) string {
	e.newPictures++
	list := make([]string, spriteHeads)
	for i := range list {
		list[i] = names[random.IntN(len(names))]
	}
	return spriteAddress(list)
}

// newPicture returns the next address of an uncached picture, or of one requested so long ago that
// it was evicted: it starts again after all newViews of all skins. The order mixes sizes, so that
// they do not grow over time.
func (e *env) newPicture(skins []skin.Hash) string {
	e.newPictures++
	n := e.newPictures * viewStride % (len(skins) * len(newViews))
	return fmt.Sprintf(newViews[n/len(skins)], skins[n%len(skins)])
}
