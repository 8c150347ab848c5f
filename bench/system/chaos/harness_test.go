// Package chaos tests that edges never serve stale answers while the programs, the database and the
// connections between them are killed, paused and cut.
package chaos

import (
	"fmt"
	"net/http"
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

// The size of the test, and the precision of what it logs.
const (
	cores   = 2
	edges   = 3
	users   = 1500
	skins   = 48
	writers = 8
	// clientsPerEdge is the number of clients of each edge.
	clientsPerEdge = 4
	// changeRate is the maximum number of changes a second.
	changeRate   = 400
	logPrecision = 100 * time.Millisecond
)

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
