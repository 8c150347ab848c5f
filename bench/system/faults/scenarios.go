package faults

import (
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/veneer-skins/veneer/bench/speed/load"
	"github.com/veneer-skins/veneer/bench/system/bodies"
	"github.com/veneer-skins/veneer/bench/system/site"
	"github.com/veneer-skins/veneer/bench/system/stack"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/skin/skintest"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// outage is a failure and its repair.
type outage struct{ begin, end func() }

// failure is how components fail, and how they are repaired.
type failure struct {
	begin, end func(stack.Component, testing.TB)
}

var (
	killing  = failure{stack.Component.Kill, stack.Component.Start}
	freezing = failure{stack.Component.Pause, stack.Component.Resume}
)

// outage returns the failure of some components.
func (f failure) outage(tb testing.TB, all ...stack.Component) outage {
	tb.Helper()
	each := func(do func(stack.Component, testing.TB)) func() {
		return func() {
			for _, c := range all {
				do(c, tb)
			}
		}
	}
	return outage{each(f.begin), each(f.end)}
}

// faults returns all faults in their order.
func (h *harness) faults() []fault {
	during := func(f failure, duration time.Duration, components ...stack.Component) func(*harness) {
		return func(h *harness) {
			o := f.outage(h, components...)
			o.begin()
			h.sleep(duration)
			o.end()
		}
	}
	// One of the standbys fails, or both.
	standby := func(f failure, duration time.Duration) func(*harness) {
		return func(h *harness) { _, all := h.Roles(); during(f, duration, all[0])(h) }
	}
	standbys := func(f failure, duration time.Duration) func(*harness) {
		return func(h *harness) { _, all := h.Roles(); during(f, duration, all[0], all[1])(h) }
	}
	if h.Quick {
		return []fault{
			{"edge killed", "kill -9 of one edge for a moment", expectation{}, during(killing, time.Second, h.Edges[0])},
			{"core killed", "kill -9 of one core for a moment", expectation{}, during(killing, time.Second, h.Cores[0])},
			{"programs restarted", "each core and edge is stopped and started, one after another", expectation{planned: true}, (*harness).programsRestarted},
			{"hostile bodies", "a few hostile uploads", expectation{missesFail: true}, (*harness).hostileBodies},
		}
	}
	return []fault{
		{"edge killed", "kill -9 of one of three edges; started again after 6 s", expectation{}, during(killing, 6*time.Second, h.Edges[0])},
		{"edge frozen", "SIGSTOP of one edge for 10 s", expectation{}, during(freezing, 10*time.Second, h.Edges[0])},
		{"core killed", "kill -9 of one of two cores; started again after 6 s", expectation{}, during(killing, 6*time.Second, h.Cores[0])},
		{"core frozen", "SIGSTOP of one core for 15 s", expectation{}, during(freezing, 15*time.Second, h.Cores[0])},
		{"object node killed", "kill -9 of one of four MinIO nodes; started again after 8 s", expectation{}, during(killing, 8*time.Second, h.Stores[:1]...)},
		{"two object nodes killed", "kill -9 of two of four MinIO nodes; started again after 10 s", expectation{writesRefused: true}, during(killing, 10*time.Second, h.Stores[:2]...)},
		{"object node frozen", "SIGSTOP of one MinIO node for 12 s", expectation{knownIssue: true}, during(freezing, 12*time.Second, h.Stores[:1]...)},
		{"all object nodes killed", "kill -9 of all four MinIO nodes; started again after 10 s", expectation{missesFail: true, writesRefused: true}, during(killing, 10*time.Second, h.Stores[:4]...)},
		{"primary killed", "kill -9 of all processes of the primary's machine, Patroni's too; started again 6 s after there is another", expectation{missesFail: true}, failover((*stack.Node).Kill, (*stack.Node).Start, 6*time.Second)},
		{"primary's PostgreSQL killed", "kill -9 of the primary's PostgreSQL; Patroni continues there", expectation{missesFail: true}, failover((*stack.Node).KillPostgres, nil, 6*time.Second)},
		{"primary frozen", "SIGSTOP of all processes of the primary's machine, until 8 s after there is another", expectation{missesFail: true}, failover((*stack.Node).Pause, (*stack.Node).Resume, 8*time.Second)},
		{"primary's Patroni frozen", "SIGSTOP of Patroni on the primary's machine, until 8 s after there is another; PostgreSQL continues there", expectation{missesFail: true}, failover((*stack.Node).PausePatroni, (*stack.Node).Resume, 8*time.Second)},
		{"primary's Patroni frozen after a reload", "haproxy reloads its configuration, after which the old process checks no servers any more; then as before", expectation{missesFail: true}, (*harness).reloadedFrozen},
		{"standby killed", "kill -9 of one of two standbys; started again after 8 s", expectation{}, standby(killing, 8*time.Second)},
		{"standby frozen", "SIGSTOP of one standby for 12 s", expectation{}, standby(freezing, 12*time.Second)},
		{"both standbys killed", "kill -9 of both standbys; started again after 14 s", expectation{writesRefused: true, minWriteGap: 13 * time.Second}, standbys(killing, 14*time.Second)},
		{"detector killed", "kill -9 of all three etcd members; started again after 25 s", expectation{}, during(killing, 25*time.Second, h.Etcd[:3]...)},
		{"detector frozen", "SIGSTOP of one of three etcd members for 12 s", expectation{}, during(freezing, 12*time.Second, h.Etcd[:1]...)},
		{"balancer frozen", "SIGSTOP of the only haproxy for 3 s", expectation{}, during(freezing, 3*time.Second, h.Balancer)},
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

// awaitFailover waits until another node has the leader lock, and records the time since the fault.
func (h *harness) awaitFailover(former *stack.Node, fault time.Time) {
	for name := former.Name; name == former.Name || name == ""; name = h.Primary() {
		if h.sleep(20 * time.Millisecond); time.Since(fault) > time.Minute {
			h.Fatal("no standby becomes the primary")
		}
	}
	h.row.Detected = time.Since(fault)
}

// failover has the primary fail until another node has the leader lock, and for some time more.
func failover(begin, end func(*stack.Node, testing.TB), rest time.Duration) func(*harness) {
	return func(h *harness) {
		primary, _ := h.Roles()
		began := time.Now()
		begin(primary, h)
		h.awaitFailover(primary, began)
		h.sleep(rest)
		if end != nil { // else Patroni starts it
			end(primary, h)
		}
	}
}

// oldProcessTimeout is longer than machines/haproxy.cfg gives to the old process after a reload.
const oldProcessTimeout = 47 * time.Second

// reloadedFrozen leaves cores with connections to a former primary that no process closes, and
// measures for how long an ended session still works.
func (h *harness) reloadedFrozen() {
	primary, _ := h.Roles()
	p := h.signIn(1)[0]
	h.Reload()
	reloaded := time.Now()
	h.sleep(2 * time.Second)
	began := time.Now()
	primary.PausePatroni(h)
	h.awaitFailover(primary, began)
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
			// A core uses a connection for 30 s, and works on a request for 10 s at most.
			if h.sleep(20 * time.Millisecond); status == http.StatusOK && time.Since(reloaded) > 40*time.Second {
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

func (h *harness) balancerReloaded() {
	if primary, standbys := h.Roles(); primary == h.Nodes[0] {
		primary.Switchover(h, standbys[0])
		h.AwaitHealthy()
	}
	for range 3 {
		h.Reload()
		h.sleep(2 * time.Second)
	}
	h.sleep(oldProcessTimeout)
}

// restart restarts a component as an upgrade does, and waits until the cluster is healthy.
func (h *harness) restart(p stack.Component) {
	testenv.Do(h, p.Stop(h))
	p.Start(h)
	h.AwaitHealthy()
}

func (h *harness) databaseRestarted() {
	primary, standbys := h.Roles()
	for _, n := range standbys {
		h.restart(n)
	}
	primary.Switchover(h, standbys[0])
	h.AwaitHealthy()
	h.restart(primary)
}

// programsRestarted restarts cores and edges as docs/operations/upgrades.md does.
func (h *harness) programsRestarted() {
	for _, p := range slices.Concat(h.Cores[:], h.Edges[:]) {
		h.restart(p)
	}
}

func (h *harness) storesRestarted() {
	for _, p := range h.Stores {
		h.AwaitRedundant(10 * time.Second)
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
	uploader := site.Client{Base: h.writeLog.base, Token: h.signIn(1)[0].Bearer, HTTP: h.writeLog.client}
	hostile := &load.Stream{Connections: 12 * len(h.Edges), From: netip.MustParseAddr("127.0.1.1")}
	for n := range sheets {
		hash := uploader.Upload(h, "noise", skin.Classic, skintest.Noise(uint64(n), 512, 512)).Hash
		for height := 1024; height > 832; height -= 16 {
			for _, format := range []string{"", "&png"} {
				hostile.Requests = append(hostile.Requests, load.Get(fmt.Sprintf("/preview/hash/%s?height=%d%s", hash, height, format)))
			}
		}
	}
	answers := testenv.Must(load.Run(h.Context(), h.Address, duration, hostile))(h)
	served, refused := answers[0].Rate(http.StatusOK), answers[0].Rate(http.StatusServiceUnavailable)
	h.addNote("the hostile network had %.1f previews a second, and %.1f were rejected", served, refused)
	if served == 0 || refused == 0 {
		h.addProblem("the edges are not saturated")
	}
}

// restored restores a backup, so that later writes are lost which every edge has seen.
func (h *harness) restored() {
	h.Backup()
	began := time.Now()
	h.sleep(6 * time.Second)
	lost := h.writeLog.startedAfter(h.first)
	atOnce(len(lost), func(i int) {
		for _, edge := range h.edgeURLs() {
			for _, name := range lost[i].names() {
				fetch(h.writeLog.client, edge, "/skin/"+name+".png")
			}
		}
	})
	h.addNote("the backup is %.1f s old", time.Since(began).Seconds())
	began = time.Now()
	maxTIDBefore := h.queryInt("SELECT max(tid) FROM textures")
	h.Restore()
	h.addNote("restoring it took %.1f s", time.Since(began).Seconds())
	maxTIDRestored := h.queryInt("SELECT max(tid) FROM textures")
	h.AwaitHealthy()
	newUsers := h.signIn(idleUsers)
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
	conn := h.Conn()
	defer func() { _ = conn.Close(h.Context()) }()
	testenv.Do(h, conn.QueryRow(h.Context(), sql, args...).Scan(&n))
	return n
}

// addProblem records a missed goal that is specific to the fault.
func (h *harness) addProblem(format string, values ...any) {
	h.row.Problems = append(h.row.Problems, fmt.Sprintf(format, values...))
}

func (h *harness) addNote(format string, values ...any) {
	h.row.Notes = append(h.row.Notes, fmt.Sprintf(format, values...))
}

const hostileBodiesDescription = "3,100 clients of 13 addresses hold uploads: 1,000 send a header and nothing else, 1,000 send 9,000 bytes and then one a second, " +
	"1,000 send 128,000 bytes of 1 MiB and stop, 100 announce 1 TiB; 400 clients of one address more send a header; " +
	"10 s each at haproxy before cores, and before edges that pass the API on, with HTTP/1.1 and HTTP/2; an upload that is ended begins again 3 s later"

const (
	// memoryLimit is less than the mem_limit of core and of the edges in docker-compose.yml.
	memoryLimit = 768 << 20
	// hostileAddresses share the clients, so that each has fewer than the 256 connections that
	// haproxy grants to an address.
	hostileAddresses = 13
)

// hostileBodies runs slow-body attacks, over one route after another.
func (h *harness) hostileBodies() {
	share, duration := 1, 10*time.Second
	if h.Quick {
		share, duration = 10, time.Second
	}
	address := func(n int) netip.Addr { return netip.AddrFrom4([4]byte{127, 0, byte(n), 1}) } // each in a network of its own
	var many []netip.Addr
	for n := range hostileAddresses {
		many = append(many, address(1+n))
	}
	one := []netip.Addr{address(100)}
	clients := h.signIn(3500 / share)
	upload := func(n int, announced int64, part int, each time.Duration) (all []bodies.Upload) {
		for i := range n / share {
			u := bodies.Upload{Path: "/api/textures", Bearer: clients[0].Bearer, ContentLength: announced, InitialBytes: part, Interval: each}
			if i%10 == 0 {
				u.Path = "/avatar/1" // where no body is expected
			}
			clients = clients[1:]
			all = append(all, u)
		}
		return all
	}
	hostile := upload(1000, bodies.MaxUploadLength, 0, 0)
	hostile = append(hostile, upload(1000, bodies.MaxUploadLength, 9000, time.Second)...)
	hostile = append(hostile, upload(1000, bodies.MaxUploadLength, 128_000, 0)...)
	hostile = append(hostile, upload(100, 1<<40, 1<<20, 0)...)
	more := upload(400, bodies.MaxUploadLength, 0, 0)

	for _, p := range append(h.Cores[:], h.Edges[:]...) {
		p.ResetPeak(h)
	}
	for _, route := range []struct {
		name, address string
		http2         bool
	}{
		{"cores, HTTP/1.1", h.Address, false},
		{"cores, HTTP/2", h.Address, true},
		{"edges, HTTP/1.1", h.EdgesAddress, false},
		{"edges, HTTP/2", h.EdgesAddress, true},
	} {
		refused := h.RejectedConnections()
		base := "http://" + route.address
		attack := bodies.Start(h.Context(), bodies.Target{Base: base, HTTP2: route.http2, From: many}, hostile)
		h.Cleanup(attack.Stop)
		others := bodies.Start(h.Context(), bodies.Target{Base: base, HTTP2: route.http2, From: one}, more)
		h.Cleanup(others.Stop)
		h.sleep(duration)
		attack.Stop()
		others.Stop()
		h.addNote("%s: %s; haproxy refused %d connections", route.name, attack, h.RejectedConnections()-refused)
	}
	core, edge := h.peakMemory(h.Cores[:]), h.peakMemory(h.Edges[:])
	h.addNote("a core uses at most %d MiB of memory, an edge %d MiB", core>>20, edge>>20)
	if core >= memoryLimit || edge >= memoryLimit {
		h.addProblem("a program uses more memory than the %d MiB of docker-compose.yml", memoryLimit>>20)
	}
}

func (h *harness) peakMemory(programs []*stack.Process) (bytes int64) {
	for _, p := range programs {
		_, most := p.Memory(h)
		bytes = max(bytes, most)
	}
	return bytes
}
