package faults

import (
	"cmp"
	"context"
	"encoding/json"
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

	"github.com/veneer-skins/veneer/bench/system/site"
	"github.com/veneer-skins/veneer/bench/system/stack"
	"github.com/veneer-skins/veneer/core/postgres/postgrestest"
	"github.com/veneer-skins/veneer/shared/blobstore"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/skin/skintest"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// While all programs crash, pause and lose their connections, an answer that is not marked as stale
// was true at most a second before the request, and so is every answer of an edge that has been
// connected for a second. At the end every edge serves what the database holds, and none had to
// flush its cache to get there. TEST_CHAOS_SEED, TEST_CHAOS_CHANGES and TEST_CHAOS_OUTAGE set another
// order, number of changes and length of outages.
func TestNoStaleAnswersUnderChaos(t *testing.T) {
	t.Parallel()
	setting := func(name, usual string) string { return cmp.Or(os.Getenv("TEST_CHAOS_"+name), usual) }
	seed := testenv.Must(strconv.ParseUint(setting("SEED", fmt.Sprint(rand.Uint64())), 10, 64))(t)
	changes := testenv.Must(strconv.ParseInt(setting("CHANGES", "500"), 10, 64))(t)
	length := testenv.Must(time.ParseDuration(setting("OUTAGE", "3s")))(t)
	t.Logf("TEST_CHAOS_SEED=%d TEST_CHAOS_CHANGES=%d TEST_CHAOS_OUTAGE=%s", seed, changes, length)
	began := time.Now()
	s := startChaos(t)
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
			random := rand.New(rand.NewPCG(seed, uint64(100+10*i+j)))
			clients.Go(func() { client.verify(clientCtx, t, random, w[0].recent) })
		}
	}
	writerCtx, stopWriters := context.WithCancel(ctx)
	var workers sync.WaitGroup
	clock := time.NewTicker(time.Second / changeRate)
	defer clock.Stop()
	for i, writer := range w {
		writer.Rand = rand.New(rand.NewPCG(seed, uint64(i)))
		workers.Go(func() { writer.run(writerCtx, clock.C) })
	}

	began = time.Now()
	d := director{chaos: s, length: length, isDone: func() bool { return t.Failed() || w[0].committed.Load() >= changes }}
	var network sync.WaitGroup
	network.Go(func() { d.network(rand.New(rand.NewPCG(seed, 1000))) })
	d.processes(t, rand.New(rand.NewPCG(seed, 1001)))
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

// The size of the test, and the precision of what it logs.
const (
	cores    = 2
	edges    = 3
	users    = 1500
	skins    = 48
	changers = 8
	// clientsPerEdge is the number of clients of each edge.
	clientsPerEdge = 4
	// changeRate is the maximum number of changes a second.
	changeRate   = 100
	logPrecision = 100 * time.Millisecond
)

// chaos is two cores over a database and three edges, connected through proxies that can fail.
type chaos struct {
	database        *stack.Postgres
	cores           [cores]*stack.Process
	edges           [edges]*stack.Process
	databaseProxies [cores]*proxy // from each core to the database
	coreProxies     [edges]*proxy // from each edge to the cores
	apis            []string      // base URLs of the cores
	clients         [edges]*edgeClient
}

func startChaos(t *testing.T) *chaos {
	t.Helper()
	s := &chaos{database: stack.NewPostgres(t)}
	files := blobstore.Config{URL: "file://" + t.TempDir()}
	var listeners []string
	for i := range s.cores {
		s.databaseProxies[i] = newProxy(t, s.database.Address)
		core := site.NewCoreAt(t, files, s.database.URL(s.databaseProxies[i].Address))
		core.Set("CORE_LIMIT_REQUESTS=0", "CORE_LIMIT_CHANGES=0", "CORE_LIMIT_UPLOADS=0")
		core.StartReady(t)
		s.cores[i], s.apis, listeners = core, append(s.apis, core.BaseURL(t, "public")), append(listeners, core.Address(t, "edges"))
	}
	for i := range s.edges {
		s.coreProxies[i] = newProxy(t, listeners...)
		edge := site.NewEdge(t, files, s.cores[0])
		edge.Set("EDGE_CORE_URL=http://" + s.coreProxies[i].Address)
		edge.StartReady(t)
		s.edges[i], s.clients[i] = edge, newEdgeClient(fmt.Sprint("edge ", i), edge)
	}
	return s
}

// populate creates users and skins, and returns the writers that will change them.
func (c *chaos) populate(t *testing.T) []*writer {
	t.Helper()
	all := site.SignIn(t, c.cores[0], users)
	conn := postgrestest.Conn(t, c.database.URL(c.database.Address))
	playerOf := map[int64]int64{}
	for _, row := range site.Rows(t, conn, pgx.RowToStructByName[struct{ UID, PID int64 }], insertPlayers) {
		playerOf[row.UID] = row.PID
	}

	transport := &http.Transport{MaxIdleConnsPerHost: changers}
	slowClient := &http.Client{Timeout: responseTimeout, Transport: transport}
	upload := func(sheet skin.Sheet, model skin.Type) int64 {
		form := site.SheetForm("chaos", model, sheet)
		status, content, err := call(slowClient, c.apis[0], http.MethodPost, "/api/textures", all[0].Bearer, site.UploadType, form)
		if err != nil || status != http.StatusOK {
			t.Errorf("upload: %d, %v", status, err)
			return 0
		}
		var answer site.Answer
		testenv.Is(t, json.Unmarshal(content, &answer), nil, "an upload's answer")
		return int64(answer.Data.TID)
	}
	var tids, capes [skins]int64
	var avatars [skins]string
	atOnce(skins, func(i int) {
		tids[i] = upload(skintest.Noise(uint64(i), 64, 64), skin.Classic)
		capes[i] = upload(skintest.Noise(uint64(i), 64, 32), skin.Cape)
		if avatars[i], _ = fetch(slowClient, c.clients[0].base, fmt.Sprint("/avatar/", tids[i])); !isDigest(avatars[i]) {
			t.Errorf("the edge shows %q for texture %d", avatars[i], tids[i])
		}
	})
	if t.Failed() {
		t.FailNow()
	}
	defaultAvatar, _ := fetch(slowClient, c.clients[0].base, "/avatar/user/0")

	unchanged := make(chan *changingUser, len(all))
	shared := writer{
		t: t, client: &http.Client{Timeout: time.Second, Transport: transport}, cores: c.apis, bearer: all[0].Bearer,
		tids: tids[:], avatars: avatars[:], capes: capes[:],
		recent: &recentChanges{}, noiseSeed: &atomic.Uint64{}, users: unchanged, committed: &atomic.Int64{},
	}
	shared.noiseSeed.Store(skins)
	workers := make([]*writer, changers)
	for i := range workers {
		copied := shared
		copied.coreIndex = i
		workers[i] = &copied
	}
	for _, user := range all[1:] {
		uid := int64(user.User)
		p := &changingUser{bearer: user.Bearer, uid: uid, pid: playerOf[uid], skinIndex: -1, user: newResource(fmt.Sprint("/avatar/user/", uid), defaultAvatar)}
		for j, letter := range "ab" {
			p.names[j] = newResource(fmt.Sprintf("%sp%d%c", playerPath, uid, letter), notFound)
		}
		unchanged <- p
	}
	close(unchanged)
	return workers
}

const insertPlayers = `
	INSERT INTO players (uid, name, name_key)
	SELECT uid, 'p' || uid || 'a', 'p' || uid || 'a' FROM users
	RETURNING uid, pid`

// director injects faults in a random order, until each has occurred once and there were enough
// changes.
type director struct {
	*chaos
	length time.Duration
	isDone func() bool
}

// timedOutage is an outage of a duration.
type timedOutage struct {
	outage
	duration time.Duration
}

// inject runs faults one after another, with pauses.
func (d director) inject(random *rand.Rand, outages func() []timedOutage) {
	for first := true; first || !d.isDone(); first = false {
		all := outages()
		random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		for _, f := range all {
			if !first && d.isDone() {
				return
			}
			f.begin()
			<-time.After(f.duration)
			f.end()
			<-time.After(time.Duration(random.Int64N(int64(1500 * time.Millisecond))))
		}
	}
}

// network breaks connections of an edge to the cores, and of a core to the database,
// in each mode for the length of an outage and for a moment.
func (d director) network(random *rand.Rand) {
	d.inject(random, func() (all []timedOutage) {
		for _, mode := range []mode{cut, hold, blackhole} {
			for _, proxy := range []*proxy{d.coreProxies[random.IntN(edges)], d.databaseProxies[random.IntN(cores)]} {
				broken := outage{func() { proxy.Set(mode) }, func() { proxy.Set(pass) }}
				moment := time.Duration(random.Int64N(int64(1500 * time.Millisecond)))
				all = append(all, timedOutage{broken, d.length}, timedOutage{broken, moment})
			}
		}
		return all
	})
}

// processes kills and pauses programs.
func (d director) processes(t *testing.T, random *rand.Rand) {
	t.Helper()
	d.inject(random, func() []timedOutage {
		moment := func() time.Duration { return time.Duration(random.Int64N(int64(1500 * time.Millisecond))) }
		// The order in which random is used makes a seed repeat a run.
		crash := func(programs ...stack.Component) timedOutage {
			return timedOutage{killing.outage(t, programs...), moment()}
		}
		one := func(all []*stack.Process) stack.Component { return all[random.IntN(len(all))] }
		pause := func(of stack.Component, length time.Duration) timedOutage {
			return timedOutage{freezing.outage(t, of), length}
		}
		return []timedOutage{
			crash(one(d.cores[:])),
			crash(d.cores[0], d.cores[1]),
			crash(one(d.edges[:])),
			pause(one(d.cores[:]), d.length),
			pause(one(d.cores[:]), moment()),
			pause(one(d.edges[:]), d.length),
			pause(one(d.edges[:]), moment()),
			crash(d.database),
			pause(d.database, d.length),
			pause(d.database, moment()),
		}
	})
}
