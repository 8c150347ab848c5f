package faults

import (
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/veneer-skins/veneer/bench/speed/load"
	"github.com/veneer-skins/veneer/bench/system/cluster"
	"github.com/veneer-skins/veneer/bench/system/stack"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/skin/skintest"
)

// faults returns all faults in their order.
func (h *harness) faults() []fault {
	kill := func(components func(*harness) []cluster.Component, duration time.Duration) func(*harness) {
		return func(s *harness) {
			for _, p := range components(s) {
				p.Kill(s)
			}
			s.sleep(duration)
			for _, p := range components(s) {
				p.Start(s)
			}
		}
	}
	freeze := func(components func(*harness) []cluster.Component, duration time.Duration) func(*harness) {
		return func(s *harness) {
			for _, p := range components(s) {
				p.Pause(s)
			}
			s.sleep(duration)
			for _, p := range components(s) {
				p.Resume(s)
			}
		}
	}
	edge := func(s *harness) []cluster.Component { return []cluster.Component{s.Edges[0]} }
	core := func(s *harness) []cluster.Component { return []cluster.Component{s.Cores[0]} }
	stores := func(n int) func(s *harness) []cluster.Component {
		return func(s *harness) []cluster.Component { return s.Stores[:n] }
	}
	if h.Quick {
		return []fault{
			{"edge killed", "kill -9 of one edge for a moment", expectation{}, kill(edge, time.Second)},
			{"core killed", "kill -9 of one core for a moment", expectation{}, kill(core, time.Second)},
			{"hostile bodies", "a few hostile uploads", expectation{missesFail: true}, (*harness).hostileBodies},
		}
	}
	return []fault{
		{"edge killed", "kill -9 of one of three edges; started again after 6 s", expectation{}, kill(edge, 6*time.Second)},
		{"edge frozen", "SIGSTOP of one edge for 10 s", expectation{}, freeze(edge, 10*time.Second)},
		{"core killed", "kill -9 of one of two cores; started again after 6 s", expectation{}, kill(core, 6*time.Second)},
		{"core frozen", "SIGSTOP of one core for 15 s", expectation{}, freeze(core, 15*time.Second)},
		{"object node killed", "kill -9 of one of four MinIO nodes; started again after 8 s", expectation{}, kill(stores(1), 8*time.Second)},
		{"two object nodes killed", "kill -9 of two of four MinIO nodes; started again after 10 s", expectation{writesRefused: true}, kill(stores(2), 10*time.Second)},
		{"object node frozen", "SIGSTOP of one MinIO node for 12 s", expectation{knownIssue: true}, freeze(stores(1), 12*time.Second)},
		{"all object nodes killed", "kill -9 of all four MinIO nodes; started again after 10 s", expectation{missesFail: true, writesRefused: true}, kill(stores(4), 10*time.Second)},
		{"primary killed", "kill -9 of all processes of the primary's machine, Patroni's too; started again 6 s after there is another", expectation{missesFail: true}, (*harness).primaryKilled},
		{"primary's PostgreSQL killed", "kill -9 of the primary's PostgreSQL; Patroni continues there", expectation{missesFail: true}, (*harness).postgresKilled},
		{"primary frozen", "SIGSTOP of all processes of the primary's machine, until 8 s after there is another", expectation{missesFail: true}, (*harness).primaryFrozen},
		{"primary's Patroni frozen", "SIGSTOP of Patroni on the primary's machine, until 8 s after there is another; PostgreSQL continues there", expectation{missesFail: true}, (*harness).patroniFrozen},
		{"primary's Patroni frozen after a reload", "haproxy reloads its configuration, after which the old process checks no servers any more; then as before", expectation{missesFail: true}, (*harness).reloadedFrozen},
		{"standby killed", "kill -9 of one of two standbys; started again after 8 s", expectation{}, (*harness).standbyKilled},
		{"standby frozen", "SIGSTOP of one standby for 12 s", expectation{}, (*harness).standbyFrozen},
		{"both standbys killed", "kill -9 of both standbys; started again after 14 s", expectation{writesRefused: true, minWriteGap: 13 * time.Second}, (*harness).standbysKilled},
		{"detector killed", "kill -9 of all three etcd members; started again after 25 s", expectation{}, kill(func(s *harness) []cluster.Component { return s.Etcd }, 25*time.Second)},
		{"detector frozen", "SIGSTOP of one of three etcd members for 12 s", expectation{}, freeze(func(s *harness) []cluster.Component { return s.Etcd[:1] }, 12*time.Second)},
		{"balancer frozen", "SIGSTOP of the only haproxy for 3 s", expectation{}, freeze(func(s *harness) []cluster.Component { return []cluster.Component{s.Balancer} }, 3*time.Second)},
		{"balancer reloaded", "haproxy reloads its configuration three times, while the primary is not the first node that it would try", expectation{planned: true}, (*harness).balancerReloaded},
		{"database restarted", "both standbys are stopped and started, one after the other; one of them is made the primary; then the former one is", expectation{planned: true}, (*harness).databaseRestarted},
		{"object nodes restarted", "four MinIO nodes are stopped and started, one after the other", expectation{planned: true}, (*harness).storesRestarted},
		{"etcd restarted", "three etcd members are stopped and started, one after the other", expectation{planned: true}, (*harness).etcdRestarted},
		{"hostile bodies", hostileBodiesDescription, expectation{}, (*harness).hostileBodies},
		{"clock wrong", "the clock of one of two cores is set wrong by several offsets", expectation{readsFail: true, writesFail: true}, (*harness).clockWrong},
		{"disk full", "the disk of a site with a directory of textures is filled, and emptied after 6 s", expectation{writesRefused: true}, (*harness).diskFull},
		{"hostile network", "36 connections of another client network request previews of 848 to 1,024 pixels of sheets of noise of 512 × 512 texels for 12 s", expectation{}, (*harness).hostileNetwork},
		{"restored", "the database is restored from a backup of 6 s before, under running edges", expectation{missesFail: true, readsFail: true, writesFail: true}, (*harness).restored},
	}
}

// primary returns the primary and the standbys.
func (h *harness) primary() (primary *cluster.Node, standbys []*cluster.Node) {
	h.Helper()
	name := h.Primary()
	for _, n := range h.Nodes {
		if n.Name == name {
			primary = n
		} else {
			standbys = append(standbys, n)
		}
	}
	if primary == nil {
		h.Fatal("there is no primary")
	}
	return primary, standbys
}

// awaitFailover waits until another node has the leader lock, and records the time since the fault.
func (h *harness) awaitFailover(former *cluster.Node, fault time.Time) {
	h.Helper()
	for name := former.Name; name == former.Name || name == ""; name = h.Primary() {
		if h.sleep(20 * time.Millisecond); time.Since(fault) > time.Minute {
			h.Fatal("no standby becomes the primary")
		}
	}
	h.row.Detected = time.Since(fault)
}

func (h *harness) primaryKilled() {
	primary, _ := h.primary()
	began := time.Now()
	primary.Kill(h)
	h.awaitFailover(primary, began)
	h.sleep(6 * time.Second)
	primary.Start(h)
}

func (h *harness) postgresKilled() {
	primary, _ := h.primary()
	began := time.Now()
	primary.KillPostgres(h)
	h.awaitFailover(primary, began)
	h.sleep(6 * time.Second)
}

func (h *harness) primaryFrozen() {
	primary, _ := h.primary()
	began := time.Now()
	primary.Pause(h)
	h.awaitFailover(primary, began)
	h.sleep(8 * time.Second)
	primary.Resume(h)
}

func (h *harness) patroniFrozen() {
	primary, _ := h.primary()
	began := time.Now()
	primary.PausePatroni(h)
	h.awaitFailover(primary, began)
	h.sleep(8 * time.Second)
	primary.Resume(h)
}

// oldProcessTimeout is longer than machines/haproxy.cfg gives to the old process after a reload.
const oldProcessTimeout = 47 * time.Second

// oldConnLifetime is how long a core may use an old connection: it uses each for 30 s, and works on
// a request for 10 s at most.
const oldConnLifetime = 40 * time.Second

// reloadedFrozen leaves cores with connections to a former primary that no process closes, and
// measures for how long an ended session still works.
func (h *harness) reloadedFrozen() {
	primary, _ := h.primary()
	h.Reload(h)
	reloaded := time.Now()
	h.sleep(2 * time.Second)
	began := time.Now()
	primary.PausePatroni(h)
	h.awaitFailover(primary, began)
	p := h.writeLog.take()
	p.voided.Store(true)
	for status := 0; status != http.StatusNoContent && status != http.StatusUnauthorized; { // or an earlier attempt succeeded
		status, _, _ = h.writeLog.call(http.MethodPost, "/api/auth/logout", p.Bearer, formType, nil)
		if h.sleep(100 * time.Millisecond); time.Since(began) > 2*time.Minute {
			h.Fatalf("sign-out: %d", status)
		}
	}
	ended := time.Now()
	for _, core := range h.Cores {
		for status := 0; status != http.StatusUnauthorized; {
			var err error
			if status, _, err = call(h.writeLog.client, "http://"+core.Setting("CORE_LISTEN"), http.MethodGet, "/api/user", p.Bearer, "", nil); err != nil {
				h.Fatal(err)
			}
			if h.sleep(20 * time.Millisecond); status == http.StatusOK && time.Since(reloaded) > oldConnLifetime {
				h.addProblem("a core queries the former primary after %.1f s", time.Since(reloaded).Seconds())
				break
			}
			if time.Since(ended) > time.Minute {
				h.Fatalf("an ended session: %d", status)
			}
		}
	}
	h.addNote("a session that was ended by then worked for %.1f s more", time.Since(ended).Seconds())
	h.sleep(oldProcessTimeout - time.Since(reloaded))
	primary.Resume(h)
}

func (h *harness) standbyKilled() {
	_, standbys := h.primary()
	standbys[0].Kill(h)
	h.sleep(8 * time.Second)
	standbys[0].Start(h)
}

func (h *harness) standbyFrozen() {
	_, standbys := h.primary()
	standbys[0].Pause(h)
	h.sleep(12 * time.Second)
	standbys[0].Resume(h)
}

func (h *harness) standbysKilled() {
	_, standbys := h.primary()
	for _, n := range standbys {
		n.Kill(h)
	}
	h.sleep(14 * time.Second)
	for _, n := range standbys {
		n.Start(h)
	}
}

func (h *harness) balancerReloaded() {
	if primary, standbys := h.primary(); primary == h.Nodes[0] {
		primary.Switchover(h, standbys[0])
		h.AwaitHealthy(h)
	}
	for range 3 {
		h.Reload(h)
		h.sleep(2 * time.Second)
	}
	h.sleep(oldProcessTimeout)
}

// restart restarts a component as an upgrade does, and waits until the cluster is healthy.
func (h *harness) restart(p cluster.Component) {
	if err := p.Stop(h); err != nil {
		h.Fatal(err)
	}
	p.Start(h)
	h.AwaitHealthy(h)
}

func (h *harness) databaseRestarted() {
	primary, standbys := h.primary()
	for _, n := range standbys {
		h.restart(n)
	}
	primary.Switchover(h, standbys[0])
	h.AwaitHealthy(h)
	h.restart(primary)
}

func (h *harness) storesRestarted() {
	for _, p := range h.Stores {
		h.AwaitRedundant(h, 10*time.Second)
		h.restart(p)
	}
}

func (h *harness) etcdRestarted() {
	for _, p := range h.Etcd {
		h.restart(p)
	}
	h.sleep(3 * time.Second) // by then each Patroni, which polls every two, has reconnected
}

// hostileNetwork has one client network request more than all edges can render: twelve connections
// for each edge, from another network than the load's.
func (h *harness) hostileNetwork() {
	const sheets, duration = 24, 12 * time.Second
	uploader := h.signIn(1)[0]
	hostile := &load.Stream{Connections: 12 * len(h.Edges), From: netip.MustParseAddr("127.0.1.1")}
	for n := range sheets {
		form := stack.SheetForm("noise", skin.Classic, skintest.Noise(uint64(n), 512, 512))
		status, content, err := h.writeLog.call(http.MethodPost, "/api/textures", uploader.Bearer, stack.UploadType, form)
		_, hash, ok := strings.Cut(string(content), `"hash":"`)
		if err != nil || status != http.StatusOK || !ok {
			h.Fatalf("upload of a sheet of noise: %d, %v: %s", status, err, content)
		}
		for height := 1024; height > 832; height -= 16 {
			for _, format := range []string{"", "&png"} {
				hostile.Requests = append(hostile.Requests, fmt.Appendf(nil, "GET /preview/hash/%s?height=%d%s HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", hash[:64], height, format))
			}
		}
	}
	answers, err := load.Run(h.Context(), h.Address, duration, hostile)
	if err != nil {
		h.Fatal(err)
	}
	served, refused := answers[0].Rate(http.StatusOK), answers[0].Rate(http.StatusServiceUnavailable)
	h.addNote("the hostile network had %.1f previews a second, and %.1f were rejected", served, refused)
	if served == 0 || refused == 0 {
		h.addProblem("the edges are not saturated")
	}
}

// restored restores a backup, so that later writes are lost which every edge has seen.
func (h *harness) restored() {
	h.Backup(h)
	began := time.Now()
	h.sleep(6 * time.Second)
	lost := h.writeLog.startedAfter(h.first)
	atOnce(len(lost), func(i int) {
		for _, edge := range h.Edges {
			for _, name := range lost[i].names() {
				h.fetchDigest("http://"+edge.Setting("EDGE_LISTEN"), "/skin/"+name+".png")
			}
		}
	})
	h.addNote("the backup is %.1f s old", time.Since(began).Seconds())
	began = time.Now()
	maxTIDBefore := h.queryInt("SELECT max(tid) FROM textures")
	h.Restore(h)
	h.addNote("restoring it took %.1f s", time.Since(began).Seconds())
	maxTIDRestored := h.queryInt("SELECT max(tid) FROM textures")
	h.AwaitHealthy(h)
	newUsers := h.signIn(userCount / 10)
	h.assignClosetTextures(newUsers)
	h.writeLog.markRestored(h.first, newUsers)
	h.sleep(6 * time.Second)
	// The tid of a lost texture, which caches may still have, must not be reused.
	switch first := h.queryInt("SELECT coalesce(min(tid), 0) FROM textures WHERE tid > $1", maxTIDRestored); {
	case first == 0:
		h.addProblem("nothing was uploaded since")
	case first <= maxTIDBefore:
		h.addProblem("texture %d is another one than before", first)
	}
	h.addNote("all sessions have ended: their tokens are answered 401")
}

// queryInt returns the result of a query on the primary.
func (h *harness) queryInt(sql string, args ...any) (n int64) {
	h.Helper()
	conn := h.Conn(h)
	defer func() { _ = conn.Close(h.Context()) }()
	if err := conn.QueryRow(h.Context(), sql, args...).Scan(&n); err != nil {
		h.Fatal(err)
	}
	return n
}

// addProblem records a missed goal that is specific to the fault.
func (h *harness) addProblem(format string, values ...any) {
	h.row.Problems = append(h.row.Problems, fmt.Sprintf(format, values...))
}

func (h *harness) addNote(format string, values ...any) {
	h.row.Notes = append(h.row.Notes, fmt.Sprintf(format, values...))
}
