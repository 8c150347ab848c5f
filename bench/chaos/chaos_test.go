// Package chaos tries whether edges show what is true while everything between
// them and the database is killed, stopped and cut off.
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

	"github.com/veneer-skins/veneer/bench/system"
	"github.com/veneer-skins/veneer/core/postgres/postgrestest"
	"github.com/veneer-skins/veneer/shared/objects"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/skin/paint"
)

// The size of the stage.
const (
	cores   = 2
	edges   = 3
	people  = 1500
	skins   = 48
	writers = 8
	// visitors is how many look at each edge.
	visitors = 4
	// rate is the most changes a second.
	rate = 400
)

// run is what the environment says about a run.
type run struct {
	seed    uint64
	changes int64
	outage  time.Duration
}

// readRun reads TEST_CHAOS_SEED, TEST_CHAOS_CHANGES and TEST_CHAOS_OUTAGE.
func readRun(t *testing.T) run {
	t.Helper()
	r := run{seed: rand.Uint64(), changes: 2_000, outage: 3 * time.Second}
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

// stage is two cores over a database and three edges, with a network between them
// that can fail.
type stage struct {
	database *system.Postgres
	cores    [cores]*system.Process
	edges    [edges]*system.Process
	toData   [cores]*system.Proxy // from each core to the database
	toCore   [edges]*system.Proxy // from each edge to the cores
	apis     []string             // base URLs of the cores
	sites    [edges]*site
}

func openStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{database: system.NewPostgres(t)}
	files := objects.Config{URL: "file://" + t.TempDir()}
	var listeners []string
	for i := range s.cores {
		s.toData[i] = system.NewProxy(t, s.database.Address)
		core := system.NewCoreOn(t, files, s.database.URL(s.toData[i].Address))
		public, forEdges := system.FreeAddress(t), system.FreeAddress(t)
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
		s.toCore[i] = system.NewProxy(t, listeners...)
		edge := system.NewEdge(t, files, s.cores[0])
		public, operators := system.FreeAddress(t), system.FreeAddress(t)
		edge.Set("EDGE_CORE_URL", "http://"+s.toCore[i].Address)
		edge.Set("EDGE_LISTEN", public)
		edge.Set("EDGE_OPS_LISTEN", operators)
		edge.Start(t)
		edge.AwaitReady(t)
		s.edges[i], s.sites[i] = edge, newSite(fmt.Sprint("edge ", i), public, operators)
	}
	return s
}

// Through crashes, pauses and cuts of everything, whatever edges show without
// saying that it may be old was true at most a second before, and so is all that
// an edge shows that has been connected for a second. In the end every edge shows
// what the database holds, and none had to forget everything to get there.
func TestEdgesShowTheTruthThroughChaos(t *testing.T) {
	t.Parallel()
	run := readRun(t)
	t.Logf("TEST_CHAOS_SEED=%d TEST_CHAOS_CHANGES=%d TEST_CHAOS_OUTAGE=%s", run.seed, run.changes, run.outage)
	began := time.Now()
	s := openStage(t)
	opened := time.Now()
	w := s.populate(t)
	t.Logf("the programs run after %s, and people and skins are in %s later", opened.Sub(began).Round(phase), time.Since(opened).Round(phase))

	var watches, visits sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	defer watches.Wait()
	defer visits.Wait()
	defer stop()
	visiting, stopVisiting := context.WithCancel(ctx)
	defer stopVisiting()
	for i, site := range s.sites {
		watches.Go(func() { site.watch(ctx) })
		for j := range visitors {
			random := rand.New(rand.NewPCG(run.seed, uint64(100+10*i+j)))
			visits.Go(func() { site.visit(visiting, t, random, w[0].crowd) })
		}
	}
	writing, stopWriting := context.WithCancel(ctx)
	var hands sync.WaitGroup
	tick := make(chan time.Time)
	hands.Go(func() { pace(writing, tick) })
	for i, writer := range w {
		writer.Rand = rand.New(rand.NewPCG(run.seed, uint64(i)))
		hands.Go(func() { writer.run(writing, tick) })
	}

	began = time.Now()
	d := director{stage: s, outage: run.outage, enough: func() bool { return t.Failed() || w[0].committed.Load() >= run.changes }}
	var network sync.WaitGroup
	network.Go(func() { d.network(rand.New(rand.NewPCG(run.seed, 1000))) })
	d.processes(t, rand.New(rand.NewPCG(run.seed, 1001)))
	network.Wait()
	stopWriting()
	hands.Wait()
	ended := time.Now()
	s.awaitConnected(t)
	stopVisiting()
	visits.Wait()
	unknown := 0
	for _, writer := range w {
		unknown += writer.unknown
	}
	t.Logf("%d changes are committed, of %d nobody knows, in %s; all are connected %s later",
		w[0].committed.Load(), unknown, ended.Sub(began).Round(phase), time.Since(ended).Round(phase))
	for _, site := range s.sites {
		t.Logf("%s: %d looks, %d answers that may be old, %d errors", site.name, site.looks.Load(), site.stale.Load(), site.other.Load())
	}
	if t.Failed() {
		return
	}
	s.compare(t, w[0])
}

// phase is how precisely it is told how long a part of the test took.
const phase = 100 * time.Millisecond

// pace sends moments at the rate of changes until ctx ends.
func pace(ctx context.Context, tick chan<- time.Time) {
	for clock := time.NewTicker(time.Second / rate); ; {
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

// populate puts people and skins in, and returns who will change them.
func (s *stage) populate(t *testing.T) []*writer {
	t.Helper()
	all := s.cores[0].SignIn(t, people)
	conn := postgrestest.Conn(t, s.database.URL(s.database.Address))
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
	patient := &http.Client{Timeout: patience, Transport: transport}
	upload := func(sheet skin.Sheet, model skin.Type) int64 {
		form := system.SheetForm("chaos", model, sheet)
		tid, status, err := call(t.Context(), patient, "POST", s.apis[0]+"/api/textures", all[0].Bearer, system.UploadType, form)
		if err != nil || status != http.StatusOK {
			t.Errorf("upload: %d, %v", status, err)
		}
		return tid
	}
	var tids, capes [skins]int64
	var tags [skins]string
	atOnce(skins, func(i int) {
		tids[i] = upload(paint.Noise(uint64(i), 64, 64), skin.Classic)
		capes[i] = upload(paint.Noise(uint64(i), 64, 32), skin.Cape)
		var ok bool
		if tags[i], _, ok = s.sites[0].look(fmt.Sprint("/avatar/", tids[i])); !ok || tags[i] == missing {
			t.Errorf("the edge shows %q for texture %d", tags[i], tids[i])
		}
	})
	if t.Failed() {
		t.FailNow()
	}
	nobody, _, _ := s.sites[0].look("/avatar/user/0")

	shared := writer{
		t: t, client: &http.Client{Timeout: time.Second, Transport: transport}, cores: s.apis, bearer: all[0].Bearer,
		tids: tids[:], tags: tags[:], capes: capes[:],
		crowd: &crowd{}, noise: &atomic.Uint64{}, committed: &atomic.Int64{},
	}
	shared.noise.Store(skins)
	hands := make([]*writer, writers)
	for i := range hands {
		copied := shared
		copied.core = i
		hands[i] = &copied
	}
	for i, someone := range all[1:] {
		uid := int64(someone.User)
		p := &person{bearer: someone.Bearer, pid: playerOf[uid], worn: -1, user: newSubject(fmt.Sprint("/avatar/user/", uid), nobody)}
		for j, letter := range "ab" {
			p.names[j] = newSubject(fmt.Sprintf("%sp%d%c", playerPath, uid, letter), missing)
		}
		hand := hands[i%writers]
		hand.idle = append(hand.idle, p)
	}
	return hands
}

const insertPlayers = `
	INSERT INTO players (uid, name, name_key)
	SELECT uid, 'p' || uid || 'a', 'p' || uid || 'a' FROM users
	RETURNING uid, pid`
