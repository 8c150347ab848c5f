// Package chaos tests that edges never serve stale answers while the programs, the database and the
// connections between them are killed, paused and cut.
package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/veneer-skins/veneer/bench/system/stack"
	"github.com/veneer-skins/veneer/core/postgres/postgrestest"
	"github.com/veneer-skins/veneer/shared/blobstore"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/skin/skintest"
)

// The size of the test.
const (
	cores   = 2
	edges   = 3
	users   = 1500
	skins   = 48
	writers = 8
	// clientsPerEdge is the number of clients of each edge.
	clientsPerEdge = 4
	// changeRate is the maximum number of changes a second.
	changeRate = 400
)

// runConfig is the configuration of a run, from the environment.
type runConfig struct {
	seed    uint64
	changes int64
	outage  time.Duration
}

// readRunConfig reads TEST_CHAOS_SEED, TEST_CHAOS_CHANGES and TEST_CHAOS_OUTAGE.
func readRunConfig(t *testing.T) runConfig {
	t.Helper()
	r := runConfig{seed: rand.Uint64(), changes: 2_000, outage: 3 * time.Second}
	var err error
	for name, set := range map[string]func(string){
		"TEST_CHAOS_SEED":    func(value string) { r.seed, err = strconv.ParseUint(value, 10, 64) },
		"TEST_CHAOS_CHANGES": func(value string) { r.changes, err = strconv.ParseInt(value, 10, 64) },
		"TEST_CHAOS_OUTAGE":  func(value string) { r.outage, err = time.ParseDuration(value) },
	} {
		if value := os.Getenv(name); value != "" {
			if set(value); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
	}
	return r
}

// harness is two cores over a database and three edges, connected through proxies that can fail.
type harness struct {
	database        *stack.Postgres
	cores           [cores]*stack.Process
	edges           [edges]*stack.Process
	databaseProxies [cores]*stack.Proxy // from each core to the database
	coreProxies     [edges]*stack.Proxy // from each edge to the cores
	apis            []string            // base URLs of the cores
	clients         [edges]*edgeClient
}

func startHarness(t *testing.T) *harness {
	t.Helper()
	s := &harness{database: stack.NewPostgres(t)}
	files := blobstore.Config{URL: "file://" + t.TempDir()}
	var listeners []string
	for i := range s.cores {
		s.databaseProxies[i] = stack.NewProxy(t, s.database.Address)
		core := stack.NewCoreAt(t, files, s.database.URL(s.databaseProxies[i].Address))
		public, forEdges := stack.FreeAddress(t), stack.FreeAddress(t)
		core.Set("CORE_LISTEN", public)
		core.Set("CORE_EDGES_LISTEN", forEdges)
		core.Set("CORE_LIMIT_REQUESTS", "0")
		core.Set("CORE_LIMIT_CHANGES", "0")
		core.Set("CORE_LIMIT_UPLOADS", "0")
		core.Start(t)
		core.AwaitReady(t)
		s.cores[i], s.apis, listeners = core, append(s.apis, "http://"+public), append(listeners, forEdges)
	}
	for i := range s.edges {
		s.coreProxies[i] = stack.NewProxy(t, listeners...)
		edge := stack.NewEdge(t, files, s.cores[0])
		public, operators := stack.FreeAddress(t), stack.FreeAddress(t)
		edge.Set("EDGE_CORE_URL", "http://"+s.coreProxies[i].Address)
		edge.Set("EDGE_LISTEN", public)
		edge.Set("EDGE_OPS_LISTEN", operators)
		edge.Start(t)
		edge.AwaitReady(t)
		s.edges[i], s.clients[i] = edge, newEdgeClient(fmt.Sprint("edge ", i), public, operators)
	}
	return s
}

// While all programs crash, pause and lose their connections, an answer that is not marked as stale
// was true at most a second before the request, and so is every answer of an edge that has been
// connected for a second. At the end every edge serves what the database holds, and none had to
// flush its cache to get there.
func TestNoStaleAnswersUnderChaos(t *testing.T) {
	t.Parallel()
	run := readRunConfig(t)
	t.Logf("TEST_CHAOS_SEED=%d TEST_CHAOS_CHANGES=%d TEST_CHAOS_OUTAGE=%s", run.seed, run.changes, run.outage)
	began := time.Now()
	s := startHarness(t)
	opened := time.Now()
	w := s.populate(t)
	t.Logf("the programs run after %s, and users and skins exist %s later", opened.Sub(began).Round(logPrecision), time.Since(opened).Round(logPrecision))

	var pollers, clients sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	defer pollers.Wait()
	defer clients.Wait()
	defer stop()
	clientCtx, stopClients := context.WithCancel(ctx)
	defer stopClients()
	for i, client := range s.clients {
		pollers.Go(func() { client.pollMetrics(ctx) })
		for j := range clientsPerEdge {
			random := rand.New(rand.NewPCG(run.seed, uint64(100+10*i+j)))
			clients.Go(func() { client.verify(clientCtx, t, random, w[0].recent) })
		}
	}
	writerCtx, stopWriters := context.WithCancel(ctx)
	var workers sync.WaitGroup
	tick := make(chan time.Time)
	workers.Go(func() { pace(writerCtx, tick) })
	for i, writer := range w {
		writer.Rand = rand.New(rand.NewPCG(run.seed, uint64(i)))
		workers.Go(func() { writer.run(writerCtx, tick) })
	}

	began = time.Now()
	d := director{harness: s, outage: run.outage, isDone: func() bool { return t.Failed() || w[0].committed.Load() >= run.changes }}
	var network sync.WaitGroup
	network.Go(func() { d.network(rand.New(rand.NewPCG(run.seed, 1000))) })
	d.processes(t, rand.New(rand.NewPCG(run.seed, 1001)))
	network.Wait()
	stopWriters()
	workers.Wait()
	ended := time.Now()
	s.awaitConnected(t)
	stopClients()
	clients.Wait()
	unknown := 0
	for _, writer := range w {
		unknown += writer.unknown
	}
	t.Logf("%d changes committed and %d uncertain in %s; all edges connected %s later",
		w[0].committed.Load(), unknown, ended.Sub(began).Round(logPrecision), time.Since(ended).Round(logPrecision))
	for _, client := range s.clients {
		t.Logf("%s: %d requests, %d answers marked as stale, %d errors", client.name, client.requests.Load(), client.stale.Load(), client.errors.Load())
	}
	if t.Failed() {
		return
	}
	s.compare(t, w[0])
}

// logPrecision is the precision of logged durations.
const logPrecision = 100 * time.Millisecond

// pace sends ticks at changeRate until ctx ends.
func pace(ctx context.Context, tick chan<- time.Time) {
	for clock := time.NewTicker(time.Second / changeRate); ; {
		select {
		case now := <-clock.C:
			select {
			case tick <- now:
			case <-ctx.Done():
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// populate creates users and skins, and returns the writers that will change them.
func (h *harness) populate(t *testing.T) []*writer {
	t.Helper()
	all := h.cores[0].SignIn(t, users)
	conn := postgrestest.Conn(t, h.database.URL(h.database.Address))
	rows, _ := conn.Query(t.Context(), insertPlayers) // CollectRows reports the error
	pids, err := pgx.CollectRows(rows, pgx.RowToStructByName[struct{ UID, PID int64 }])
	if err != nil {
		t.Fatal(err)
	}
	playerOf := map[int64]int64{}
	for _, row := range pids {
		playerOf[row.UID] = row.PID
	}

	transport := &http.Transport{MaxIdleConnsPerHost: writers}
	slowClient := &http.Client{Timeout: responseTimeout, Transport: transport}
	upload := func(sheet skin.Sheet, model skin.Type) int64 {
		form := stack.SheetForm("chaos", model, sheet)
		tid, status, err := call(t.Context(), slowClient, "POST", h.apis[0]+"/api/textures", all[0].Bearer, stack.UploadType, form)
		if err != nil || status != http.StatusOK {
			t.Errorf("upload: %d, %v", status, err)
		}
		return tid
	}
	var tids, capes [skins]int64
	var tags [skins]string
	atOnce(skins, func(i int) {
		tids[i] = upload(skintest.Noise(uint64(i), 64, 64), skin.Classic)
		capes[i] = upload(skintest.Noise(uint64(i), 64, 32), skin.Cape)
		var ok bool
		if tags[i], _, ok = h.clients[0].fetchTag(fmt.Sprint("/avatar/", tids[i])); !ok || tags[i] == missing {
			t.Errorf("the edge shows %q for texture %d", tags[i], tids[i])
		}
	})
	if t.Failed() {
		t.FailNow()
	}
	defaultTag, _, _ := h.clients[0].fetchTag("/avatar/user/0")

	shared := writer{
		t: t, client: &http.Client{Timeout: time.Second, Transport: transport}, cores: h.apis, bearer: all[0].Bearer,
		tids: tids[:], tags: tags[:], capes: capes[:],
		recent: &recentChanges{}, noiseSeed: &atomic.Uint64{}, committed: &atomic.Int64{},
	}
	shared.noiseSeed.Store(skins)
	workers := make([]*writer, writers)
	for i := range workers {
		copied := shared
		copied.coreIndex = i
		workers[i] = &copied
	}
	for i, user := range all[1:] {
		uid := int64(user.User)
		p := &testUser{bearer: user.Bearer, pid: playerOf[uid], skinIndex: -1, user: newResource(fmt.Sprint("/avatar/user/", uid), defaultTag)}
		for j, letter := range "ab" {
			p.names[j] = newResource(fmt.Sprintf("%sp%d%c", playerPath, uid, letter), missing)
		}
		worker := workers[i%writers]
		worker.idle = append(worker.idle, p)
	}
	return workers
}

const insertPlayers = `
	INSERT INTO players (uid, name, name_key)
	SELECT uid, 'p' || uid || 'a', 'p' || uid || 'a' FROM users
	RETURNING uid, pid`
