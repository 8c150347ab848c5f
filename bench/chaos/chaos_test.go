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
	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/bench/system"
	"github.com/veneer-skins/veneer/core/postgres/postgrestest"
	"github.com/veneer-skins/veneer/shared/objects"
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
	r := run{seed: rand.Uint64(), changes: 10_000, outage: 3 * time.Second}
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
	s := openStage(t)
	w := s.populate(t)

	var all sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	defer all.Wait()
	defer stop()
	for i, site := range s.sites {
		all.Go(func() { site.watch(ctx) })
		for j := range visitors {
			random := rand.New(rand.NewPCG(run.seed, uint64(100+10*i+j)))
			all.Go(func() { site.visit(ctx, t, random, w[0].crowd) })
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

	began := time.Now()
	d := director{stage: s, outage: run.outage, enough: func() bool { return t.Failed() || w[0].committed.Load() >= run.changes }}
	var network sync.WaitGroup
	network.Go(func() { d.network(rand.New(rand.NewPCG(run.seed, 1000))) })
	d.processes(t, rand.New(rand.NewPCG(run.seed, 1001)))
	network.Wait()
	stopWriting()
	hands.Wait()
	s.awaitConnected(t)
	unknown := 0
	for _, writer := range w {
		unknown += writer.unknown
	}
	t.Logf("%d changes are committed, of %d nobody knows, in %s", w[0].committed.Load(), unknown, time.Since(began).Round(time.Second))
	for _, site := range s.sites {
		t.Logf("%s: %d looks, %d answers that may be old, %d errors", site.name, site.looks.Load(), site.stale.Load(), site.other.Load())
	}
	if t.Failed() {
		return
	}
	s.compare(t, w[0].tags, w[0].tids)
}

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

	client := &http.Client{Timeout: time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: writers}}
	var tids []int64
	var tags []string
	for i := range skins {
		contentType, body := uploadBody(t, paint.Noise(uint64(i), 64, 64).Pix)
		tid, status, err := call(t.Context(), client, "POST", s.apis[0]+"/api/textures", all[0].Bearer, contentType, body)
		if err != nil || status != http.StatusOK {
			t.Fatalf("upload: %d, %v", status, err)
		}
		tag, _, ok := s.sites[0].look(fmt.Sprint("/avatar/", tid))
		if !ok || tag == missing {
			t.Fatalf("the edge shows %q for texture %d", tag, tid)
		}
		tids, tags = append(tids, tid), append(tags, tag)
	}
	nobody, _, _ := s.sites[0].look("/avatar/user/0")

	shared := writer{
		t: t, client: client, cores: s.apis, bearer: all[0].Bearer, tids: tids, tags: tags,
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

// awaitConnected waits until all edges are.
func (s *stage) awaitConnected(t *testing.T) {
	t.Helper()
	for _, site := range s.sites {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		for began := time.Now(); !site.connected(ctx, began, began); began = time.Now() {
			if ctx.Err() != nil {
				t.Fatalf("%s is not connected again", site.name)
			}
		}
		cancel()
	}
}

// compare holds what every edge shows against the database: all names that players
// have or had, all users, all textures and some that never were.
func (s *stage) compare(t *testing.T, tags []string, tids []int64) {
	t.Helper()
	tagOf := map[int64]string{0: missing}
	for i, tid := range tids {
		tagOf[tid] = tags[i]
	}
	conn := postgrestest.Conn(t, s.database.URL(s.database.Address))
	read := func(sql string) map[string]int64 {
		rows, _ := conn.Query(t.Context(), sql) // CollectRows reports the error
		found, err := pgx.CollectRows(rows, pgx.RowToStructByName[struct {
			Path string
			TID  int64
		}])
		if err != nil {
			t.Fatal(err)
		}
		byPath := make(map[string]int64, len(found))
		for _, row := range found {
			byPath[row.Path] = row.TID
		}
		return byPath
	}
	want := map[string]string{}
	for path, tid := range read(selectNames) {
		want[path] = tagOf[tid]
	}
	nobody, _, _ := s.sites[0].look("/avatar/user/0")
	for path, tid := range read(selectUsers) {
		if want[path] = tagOf[tid]; tid == 0 {
			want[path] = nobody
		}
	}
	wrong := 0
	for path, tid := range read(selectTextures) {
		if want[path] = tagOf[tid]; tid < 0 {
			want[path] = missing
		} else if tagOf[tid] == "" { // uploaded on the way: known by its hash, which nobody asked for before
			shows, _, _ := s.sites[0].look(fmt.Sprint("/avatar/hash/", hashOf(t, conn, tid)))
			want[path] = shows
		}
	}
	for _, site := range s.sites {
		for path, want := range want {
			shows, _, ok := site.look(path)
			for range 10 { // it may not know what it was not asked for while it was cut off
				if ok {
					break
				}
				shows, _, ok = site.look(path)
			}
			if shows != want {
				wrong++
				if wrong < 20 {
					t.Errorf("in the end %s shows %q at %s; want %q", site.name, shows, path, want)
				}
			}
		}
		// Once it began, and never again.
		operators := &fasthttp.HostClient{Addr: site.operators}
		if forgot := metric(operators, "veneer_edge_forgot_all_total"); forgot != "1" {
			t.Errorf("%s forgot everything %s times; want 1", site.name, forgot)
		}
	}
	t.Logf("%d addresses on each edge, %d wrong", len(want), wrong)
}

func hashOf(t *testing.T, conn *pgx.Conn, tid int64) (hash string) {
	t.Helper()
	if err := conn.QueryRow(t.Context(), "SELECT encode(hash, 'hex') FROM textures WHERE tid = $1", tid).Scan(&hash); err != nil {
		t.Fatal(err)
	}
	return hash
}

const (
	selectNames = `
	SELECT '/avatar/player/' || name AS path, coalesce(tid_skin, 0) AS tid FROM players
	UNION ALL
	SELECT '/avatar/player/p' || uid || CASE WHEN name LIKE '%a' THEN 'b' ELSE 'a' END, 0 FROM players`

	selectUsers = `SELECT '/avatar/user/' || uid AS path, avatar AS tid FROM users`

	selectTextures = `
	SELECT '/avatar/' || tid AS path, tid FROM textures
	UNION ALL
	SELECT '/avatar/' || max(tid) + n, -1 FROM textures, generate_series(1, 20) n GROUP BY n`
)
