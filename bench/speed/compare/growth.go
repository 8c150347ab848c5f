package compare

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/bench/speed/load"
	"github.com/veneer-skins/veneer/bench/speed/results"
	"github.com/veneer-skins/veneer/bench/system/stack"
	"github.com/veneer-skins/veneer/core/postgres/postgrestest"
	"github.com/veneer-skins/veneer/shared/blobstore"
	"github.com/veneer-skins/veneer/shared/edgeproto"
)

const (
	growthUsers       = 1000 // signed-in users; their players' skins change
	texturesPerUser   = 10   // textures and players for every other user
	growthRate        = 200  // changes a second
	growthRounds      = 6
	growthDuration    = 2 * time.Second  // of each measurement in a round
	growthListAnswers = 200              // answers of each list in a round, of which the p99 counts
	growthListTimeout = time.Minute      // longer than that takes
	growthWarmUp      = 10 * time.Second // of lookups after the start, before the rounds
	growthBatch       = 64               // keys of a large lookup
	growthLifetime    = time.Hour        // of cores' connections, longer than the whole run
	growthUploads     = 3000             // prepared for a round, more than it can send
)

// growthLists are the queries of the lists, of a hundred textures each.
var growthLists = []string{
	"sort=newest", "sort=likes", "sort=newest&page=100", "sort=likes&page=100", "sort=newest&q=dragon", "sort=likes&q=dragon",
	"sort=newest&q=steve", "sort=likes&q=steve&page=100",
}

// growth measures what becomes slower as a site grows, with so many textures and as many players in
// PostgreSQL as Sizes says: lookups of edges, lists, reads, writes, log-ins and uploads, and the
// delay until an edge receives and serves a change; and the sizes of tables and indexes. The rows
// are inserted by COPY, with the indexes created afterwards. All sites run beside each other and
// are measured alternately.
func (e *env) growth(ctx context.Context) (*results.Sweep, error) {
	for _, limit := range liftedLimits {
		e.addSetting("CORE_LIMIT_"+limit, 0)
	}
	e.addSetting("of growth's cores: pool_max_conn_lifetime", growthLifetime)
	rounds := growthRounds
	if e.Quick {
		rounds = 1
	}
	var sites []*grownStack
	if err := stack.RunWithTB(ctx, func(tb testing.TB) {
		tb.Helper()
		e.addDatabaseSettings(tb)
		for _, n := range e.Sizes {
			began := time.Now()
			fmt.Fprintf(e.Out, "==> growth, %d textures and players … ", n)
			sites = append(sites, e.newGrownStack(tb, n))
			fmt.Fprintf(e.Out, "%.0f s\n", time.Since(began).Seconds())
		}
		interleaved := func(what string, measure func(*grownStack, testing.TB, int)) {
			for round := range rounds {
				fmt.Fprintf(e.Out, "\r==> growth, %s … %d of %d rounds", what, round+1, rounds)
				for _, g := range sites {
					measure(g, tb, round)
				}
			}
			fmt.Fprintln(e.Out)
		}
		interleaved("operations that leave the size unchanged", (*grownStack).measureSteady)
		interleaved("operations that add to it", (*grownStack).measureGrowing)
		for _, g := range sites {
			g.addFigure("core, resident", "MiB", float64(g.core.Resident(tb))/(1<<20))
		}
		// An edge's CPU use would disturb the measurements above.
		for _, g := range sites {
			g.startEdge(tb)
		}
		interleaved("changes that edges show", (*grownStack).measureFreshness)
	}); err != nil {
		return nil, err
	}
	sweep := &results.Sweep{
		Name: "growth", Parameter: "textures and players",
		Measures: "Cores and PostgreSQL on all processors, beside the load, as textures, players and a tenth as many users grow. Rounds of the sites alternate",
		Plotted:  []string{"look-up p99", "worst list p99", "change received p99", "PostgreSQL for a name of 64", "indexes of a texture", "indexes of a player"},
	}
	for _, g := range sites {
		sweep.Steps = append(sweep.Steps, results.Step{At: float64(g.players), Figures: g.figures})
	}
	return sweep, nil
}

const selectSettings = `
	SELECT name, current_setting(name) AS value FROM pg_settings
	WHERE name IN ('server_version', 'fsync', 'synchronous_commit', 'full_page_writes', 'shared_buffers', 'max_connections') ORDER BY name`

// addDatabaseSettings records the settings of PostgreSQL that its figures depend on most.
func (e *env) addDatabaseSettings(tb testing.TB) {
	tb.Helper()
	rows, _ := postgrestest.Conn(tb, postgrestest.Empty(tb)).Query(tb.Context(), selectSettings) // CollectRows reports the error
	settings, err := pgx.CollectRows(rows, pgx.RowToStructByName[results.Setting])
	if err != nil {
		tb.Fatal(err)
	}
	for _, setting := range settings {
		e.addSetting("PostgreSQL's "+setting.Name, setting.Value)
	}
}

// grownStack is a site with many textures and players in its database, and its measurements.
type grownStack struct {
	*liveStack

	env      *env
	files    blobstore.Config
	conn     *pgx.Conn
	players  int
	textures []int64 // a few that all players may have
	figures  []results.Figure

	singles, batches, reads, writes, logIns, uploads *load.Stream

	changes int // made and received
	tries   int // changes served by the edge
}

// newGrownStack opens a site of a size.
func (e *env) newGrownStack(tb testing.TB, n int) *grownStack {
	tb.Helper()
	if n < growthUsers {
		tb.Fatalf("a site of %d is too small for %d signed-in players", n, growthUsers)
	}
	g := &grownStack{liveStack: &liveStack{}, env: e, players: n, files: blobstore.Config{URL: "file://" + tb.TempDir()}}
	g.core = stack.NewCore(tb, g.files)
	g.core.NameConnections(tb)
	for _, limit := range liftedLimits {
		g.core.Set("CORE_LIMIT_"+limit, "0")
	}
	g.users = g.core.SignIn(tb, growthUsers)
	g.fill(tb)
	g.sizes(tb, func(table string, row, indexes float64) {
		one := strings.TrimSuffix(table, "s")
		g.addFigure("row of a "+one, "bytes", row)
		g.addFigure("indexes of a "+one, "bytes", indexes)
	})

	// The CPU time of a backend process is lost when its connection ends.
	database := g.core.Setting("CORE_DATABASE_URL")
	g.core.Set("CORE_DATABASE_URL", fmt.Sprint(database, "&pool_max_conn_lifetime=", growthLifetime))
	g.core.Start(tb)
	g.core.Set("CORE_DATABASE_URL", database)
	g.api = g.core.Address(tb, "public")
	began := time.Now()
	if status, body, err := fasthttp.Get(nil, "http://"+g.api+"/api/textures"); err != nil || status != fasthttp.StatusOK {
		tb.Fatalf("the first list: %d %s, %v", status, body, err)
	}
	g.addFigure("first list after the start", "s", time.Since(began).Seconds())

	g.singles, g.batches = g.lookups(tb, 1, 500), g.lookups(tb, growthBatch, 0)
	warmUp := g.runStream(tb, g.core.Address(tb, "edges"), e.duration(growthWarmUp), g.singles)
	g.addFigure("look-up p99 in the first 10 s", "ms", milliseconds(warmUp.answers.Percentile(fasthttp.StatusOK, 99)))

	g.reads = &load.Stream{Connections: connections, Statuses: []int{fasthttp.StatusOK}, Order: load.Random(len(g.users), 0)}
	g.writes = &load.Stream{Connections: connections, Statuses: []int{fasthttp.StatusOK}}
	for _, p := range g.users {
		g.reads.Requests = append(g.reads.Requests, authorizedRequest(p, "GET", "/api/user", "", nil))
	}
	for texture := range 2 {
		for i := range g.users {
			g.writes.Requests = append(g.writes.Requests, g.setSkinRequest(i, texture))
		}
	}
	var err error
	if g.logIns, err = g.allLogIn(tb); err != nil {
		tb.Fatal(err)
	}
	g.uploads = &load.Stream{Connections: logInConnections, Statuses: []int{fasthttp.StatusOK}}
	return g
}

// addFigure adds one round of a figure.
func (g *grownStack) addFigure(name, unit string, value float64) {
	index := slices.IndexFunc(g.figures, func(f results.Figure) bool { return f.Name == name })
	if index < 0 {
		index = len(g.figures)
		g.figures = append(g.figures, results.Figure{Name: name, Unit: unit})
	}
	g.figures[index].Rounds = append(g.figures[index].Rounds, value)
}

// addCosts adds the CPU time of each of so many things in an answer.
func (g *grownStack) addCosts(of string, c streamCPU, things float64) {
	g.addFigure("core for "+of, "µs", float64(c.core.Nanoseconds())/1e3/float64(c.answers.Total())/things)
	g.addFigure("PostgreSQL for "+of, "µs", float64(c.postgres.Nanoseconds())/1e3/float64(c.answers.Total())/things)
}

func milliseconds(d time.Duration) float64 { return d.Seconds() * 1000 }

// measureSteady measures operations that leave the site's size unchanged.
func (g *grownStack) measureSteady(tb testing.TB, _ int) {
	tb.Helper()
	edges, duration := g.core.Address(tb, "edges"), g.env.duration(growthDuration)
	single := g.runStream(tb, edges, duration, g.singles)
	g.addFigure("look-up p50", "ms", milliseconds(single.answers.Percentile(fasthttp.StatusOK, 50)))
	g.addFigure("look-up p99", "ms", milliseconds(single.answers.Percentile(fasthttp.StatusOK, 99)))
	g.addCosts("a look-up", single, 1)
	batch := g.runStream(tb, edges, duration, g.batches)
	g.addFigure("names looked up by 64, one question after the other", "1/s", growthBatch*batch.answers.Rate(fasthttp.StatusOK))
	g.addCosts("a name of 64", batch, growthBatch)

	worst := time.Duration(0)
	for _, query := range growthLists {
		listed := g.runStream(tb, g.api, growthListTimeout, listStream(query, growthListAnswers))
		worst = max(worst, listed.answers.Percentile(fasthttp.StatusOK, 99))
	}
	g.addFigure("worst list p99", "ms", milliseconds(worst))

	lags := g.measureLag(tb, duration)
	g.addFigure("change received p50", "ms", milliseconds(lags[len(lags)/2]))
	g.addFigure("change received p99", "ms", milliseconds(lags[len(lags)*99/100]))

	read := g.runStream(tb, g.api, duration, g.reads)
	g.addFigure("API reads", "1/s", read.answers.Rate(fasthttp.StatusOK))
	g.addCosts("an API read", read, 1)
	write := g.runStream(tb, g.api, duration, g.writes)
	g.addFigure("API writes", "1/s", write.answers.Rate(fasthttp.StatusOK))
	g.addCosts("an API write", write, 1)
}

// measureGrowing measures operations that add to the site.
func (g *grownStack) measureGrowing(tb testing.TB, round int) {
	tb.Helper()
	duration := g.env.duration(growthDuration)
	logIn := g.runStream(tb, g.api, duration, g.logIns)
	g.addFigure("log-ins", "1/s", logIn.answers.Rate(fasthttp.StatusOK))
	g.uploads.Requests, g.uploads.Order = g.newUploads(round*growthUploads, growthUploads), once(growthUploads)
	upload := g.runStream(tb, g.api, duration, g.uploads)
	g.addFigure("uploads", "1/s", upload.answers.Rate(fasthttp.StatusOK))
	g.addCosts("an upload", upload, 1)
}

// startEdge starts an edge.
func (g *grownStack) startEdge(tb testing.TB) {
	tb.Helper()
	g.edge = stack.NewEdge(tb, g.files, g.core)
	g.edge.Start(tb)
	g.images = g.edge.Address(tb, "public")
	g.edge.AwaitReady(tb)
	if err := g.uploadTextures(); err != nil {
		tb.Fatal(err)
	}
	// Their skins until then have no file.
	if _, err := g.conn.Exec(tb.Context(), "UPDATE players SET tid_skin = $1 WHERE pid = ANY ($2)", g.tids[0], g.pids); err != nil {
		tb.Fatal(err)
	}
}

// measureFreshness measures the delay until the edge serves a change.
func (g *grownStack) measureFreshness(tb testing.TB, _ int) {
	tb.Helper()
	took, err := median(func() (time.Duration, error) {
		g.tries++
		return g.awaitChange(g.tries%len(g.pids), g.tries%len(g.tids))
	})(tb.Context(), 0)
	if err != nil {
		tb.Fatal(err)
	}
	g.addFigure("change shown by an edge p50", "ms", took.figure)
}

// streamCPU is a stream's answers, and the CPU time of core and the database for them.
type streamCPU struct {
	answers        load.Answers
	core, postgres time.Duration
}

// runStream sends a stream to core, which must answer all of it right.
func (g *grownStack) runStream(tb testing.TB, address string, duration time.Duration, stream *load.Stream) streamCPU {
	tb.Helper()
	core, backends := g.core.CPU(tb), stack.BackendCPU(tb, g.conn)
	answers, err := load.Run(tb.Context(), address, duration, stream)
	if err == nil {
		err = answers[0].Check()
	}
	if err != nil {
		tb.Fatal(err)
	}
	took := streamCPU{answers: answers[0], core: g.core.CPU(tb) - core}
	for pid, after := range stack.BackendCPU(tb, g.conn) {
		took.postgres += after - backends[pid]
	}
	return took
}

// lookups sends lookups of so many names as edges do: at a rate a second over 16 connections, or
// in a closed loop over one if the rate is 0.
func (g *grownStack) lookups(tb testing.TB, names int, rate float64) *load.Stream {
	tb.Helper()
	random := rand.New(rand.NewPCG(uint64(names), 7))
	stream := &load.Stream{Connections: 16, Rate: rate, Statuses: []int{fasthttp.StatusOK}}
	if rate == 0 {
		stream.Connections = 1
	}
	for range 2000 {
		request := edgeproto.LookupRequest{}
		for range names {
			request.Keys = append(request.Keys, edgeproto.NameKey(fmt.Sprint("p", 1+random.IntN(g.players))))
		}
		body, err := json.Marshal(request)
		if err != nil {
			tb.Fatal(err)
		}
		stream.Requests = append(stream.Requests, fmt.Appendf(nil, "POST %s HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n%s",
			edgeproto.LookupPath, g.core.Setting("CORE_EDGE_SECRETS"), len(body), body))
	}
	return stream
}

// listStream requests a list so many times.
func listStream(query string, times int) *load.Stream {
	next := once(times)
	return &load.Stream{
		Connections: 1, Statuses: []int{fasthttp.StatusOK}, Order: func() int { return min(next(), 0) },
		Requests: [][]byte{fmt.Appendf(nil, "GET /api/textures?%s&perPage=100 HTTP/1.1\r\nHost: bench\r\n\r\n", query)},
	}
}

// setSkinRequest returns the request that sets one of the textures as a player's skin.
func (g *grownStack) setSkinRequest(player, texture int) []byte {
	return authorizedRequest(g.users[player], "PUT", fmt.Sprintf("/api/players/%d/textures", g.pids[player]), urlEncoded, fmt.Appendf(nil, "skin=%d", g.textures[texture]))
}

// measureLag changes skins at a constant rate, and returns the sorted delays from core's response
// to each change's event on the stream for edges. The skins are others than those of setSkinRequest
// with 0 or 1.
func (g *grownStack) measureLag(tb testing.TB, duration time.Duration) []time.Duration {
	tb.Helper()
	ctx, stop := context.WithCancel(tb.Context())
	defer stop()
	events := g.followStream(ctx, tb)
	client := &fasthttp.HostClient{Addr: g.api, MaxConns: 256}
	var all sync.WaitGroup
	var mu sync.Mutex
	var lags []time.Duration
	clock := time.NewTicker(time.Second / growthRate)
	defer clock.Stop()
	for n := g.changes; n < g.changes+int(growthRate*duration.Seconds()); n++ {
		<-clock.C
		all.Go(func() {
			// Each player changes once or twice, seconds apart.
			player := n % len(g.users)
			request, response := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
			defer fasthttp.ReleaseRequest(request)
			defer fasthttp.ReleaseResponse(response)
			request.SetRequestURI(fmt.Sprintf("http://%s/api/players/%d/textures", client.Addr, g.pids[player]))
			request.Header.SetMethod(fasthttp.MethodPut)
			request.Header.SetContentType("application/x-www-form-urlencoded")
			request.Header.Set(fasthttp.HeaderAuthorization, "Bearer "+g.users[player].Bearer)
			request.SetBodyString(fmt.Sprintf("skin=%d", g.textures[2+n/len(g.users)%2]))
			if err := client.Do(request, response); err != nil || response.StatusCode() != fasthttp.StatusOK {
				tb.Errorf("change %d: %d %s, %v", n, response.StatusCode(), response.Body(), err)
				return
			}
			answered := time.Now()
			key := edgeproto.PIDKey(g.pids[player])
			select {
			case at := <-events.of(key):
				mu.Lock()
				defer mu.Unlock()
				lags = append(lags, max(0, at.Sub(answered)))
			case <-time.After(10 * time.Second):
				tb.Errorf("change %d is not on the stream", n)
			}
		})
	}
	all.Wait()
	if len(lags) == 0 {
		tb.Fatal("no change was received")
	}
	g.changes += len(lags)
	slices.Sort(lags)
	return lags
}

// streamEvents is the times at which keys were named on a stream.
type streamEvents struct {
	mu   sync.Mutex
	keys map[edgeproto.Key]chan time.Time
}

func (s *streamEvents) of(key edgeproto.Key) chan time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.keys[key] == nil {
		s.keys[key] = make(chan time.Time, 16)
	}
	return s.keys[key]
}

// followStream follows the stream of changes from now on until ctx ends.
func (g *grownStack) followStream(ctx context.Context, tb testing.TB) *streamEvents {
	tb.Helper()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+g.core.Address(tb, "edges")+edgeproto.ChangesPath, http.NoBody)
	if err != nil {
		tb.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+g.core.Setting("CORE_EDGE_SECRETS"))
	response, err := http.DefaultClient.Do(request) //nolint:bodyclose // by the reader of the stream
	if err != nil || response.StatusCode != http.StatusOK {
		tb.Fatalf("follow the stream of changes: %v, %v", response, err)
	}
	h := &streamEvents{keys: map[edgeproto.Key]chan time.Time{}}
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 16<<20)
	if !lines.Scan() {
		tb.Fatalf("the stream of changes ends: %v", lines.Err())
	}
	go func() {
		defer func() { _ = response.Body.Close() }()
		for lines.Scan() {
			var event edgeproto.Event
			if json.Unmarshal(lines.Bytes(), &event) != nil {
				return // missing events are an error in the end
			}
			at := time.Now()
			for _, key := range event.Keys {
				if strings.HasPrefix(string(key), edgeproto.PIDPrefix) {
					h.of(key) <- at
				}
			}
		}
	}()
	return h
}
