// Package faults injects faults into a cluster under load, one after another, and reports failed
// requests and lost writes. Its test of chaos injects them in a random order, several at a time, into
// programs that fail and connections that break, and compares every answer of the edges with what was
// true then.
package faults

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/veneer-skins/veneer/bench/speed/load"
	"github.com/veneer-skins/veneer/bench/system/site"
	"github.com/veneer-skins/veneer/bench/system/stack"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// Options select the faults.
type Options struct {
	stack.ClusterOptions

	Only       string // the name of the only fault; empty for all
	WrongClock string // path of a core with an offset clock, set by WRONG_CLOCK
	Quick      bool   // a test in seconds, without Patroni and MinIO
	Out        io.Writer
}

// The constant load, in requests a second.
const (
	hitRate   = 200 // pictures that every edge has cached
	missRate  = 8   // uncached pictures, most of skins that an edge must fetch
	readRate  = 60  // reads of the API
	writeRate = 20
	// writers is the maximum number of concurrent writes.
	writers = 60
	// seededUsers have made their writes before: cache misses are of their skins, a third of
	// which an edge can cache, and hits are of the skins of hotUsers.
	seededUsers = 192
	hotUsers    = 64
	// idleUsers is the number of users without writes at the start of a fault: one for each
	// write of five minutes, because a user that has no response is not used again.
	idleUsers = 300 * writeRate
	// margin is the time under load before and after a fault.
	margin = 2 * time.Second
)

// harness is a cluster with its users, under load or not.
type harness struct {
	Options
	*stack.Cluster

	writeLog        *writeLog
	paths           []string // of hits
	hits, hitBodies [][]byte // requests for them, and the right bodies
	misses, reads   [][]byte
	nextMiss        int

	first int  // number of users with writes before the current fault
	row   *Row // of that fault
}

// fault is a failure to inject.
type fault struct {
	name string
	// description says what is done.
	description string
	expected    expectation
	// run injects the fault and repairs it.
	run func(s *harness)
}

// expectation is what a fault may cost.
type expectation struct {
	missesFail bool // cache misses may fail
	writesFail bool // writes may fail all the time
	readsFail  bool // and reads
	// writesRefused: some writes must fail, all of them with 503, and for minWriteGap none may
	// succeed.
	writesRefused bool
	minWriteGap   time.Duration
	knownIssue    bool // misses may fail, and writes pause for longer, as docs/operations/faults.md says
	// planned: maintenance by operators, in which no read or write may fail.
	planned bool
}

// Run starts a cluster, injects every fault, and passes each result to report.
func Run(tb testing.TB, options Options, report func(Row)) {
	tb.Helper()
	began := time.Now()
	options.Settings = []string{"EDGE_TEXTURE_CACHE_BYTES=1048576"} // the minimum
	if options.Quick {
		options.Settings = append(options.Settings, "CORE_DRAIN_WAIT=4s", "EDGE_DRAIN_WAIT=4s", // as docker compose sets them
			"EDGE_RENDER_QUEUE_TIMEOUT=10s") // beside other tests a picture may wait for seconds
	}
	s := &harness{Options: options, Cluster: stack.StartCluster(tb, options.ClusterOptions)}
	s.logf("the cluster runs after %.0f s", time.Since(began).Seconds())
	if s.Prometheus != nil {
		s.CheckMonitored()
		s.Prometheus.Kill(tb) // its CPU use would disturb the measurements
		s.logf("Prometheus can watch all of it")
	}
	s.populate()
	runs := 0
	for _, f := range s.faults() {
		if options.Only != "" && options.Only != f.name {
			continue
		}
		report(*s.runFault(f))
		runs++
	}
	if runs == 0 {
		tb.Fatalf("there is no fault %q", options.Only)
	}
	// Now losses caused by a later fault are found, and edges without cached files fetch all of
	// them from the store.
	for _, edge := range s.Edges {
		edge.Kill(s)
		edge.Start(s)
	}
	s.AwaitHealthy()
	s.row = &Row{Fault: "all users, at the end"}
	s.compare(s.writeLog.startedAfter(0))
	s.logf("at the end: acknowledged %d, lost %d, mismatched %d", s.row.Acknowledged, s.row.Lost, s.row.Mismatched)
	s.logf("the run took %.0f s", time.Since(began).Seconds())
	report(*s.row)
	for _, p := range slices.Concat(s.Cores[:], s.Edges[:]) {
		p.Kill(s) // there are no clients left to drain for
	}
}

func (h *harness) logf(format string, values ...any) {
	fmt.Fprintf(h.Out, "==> "+format+"\n", values...)
}

// runFault injects one fault under load, and compares.
func (h *harness) runFault(f fault) *Row {
	h.warmCaches()
	h.addIdleUsers()
	h.row = &Row{Fault: f.name, Description: f.description, expected: f.expected}
	h.writeLog.mu.Lock()
	h.first = len(h.writeLog.active)
	h.writeLog.mu.Unlock()
	began := time.Now()
	endLoad := h.startLoad()
	h.sleep(margin)
	f.run(h)
	h.AwaitHealthy()
	h.sleep(margin)
	endLoad()
	h.row.Duration = time.Since(began)
	h.compare(slices.Concat(h.writeLog.startedAfter(h.first), h.writeLog.startedAfter(0)[:hotUsers]))
	h.logf("%s: %s", f.name, h.row)
	return h.row
}

func (h *harness) sleep(duration time.Duration) {
	select {
	case <-time.After(duration):
	case <-h.Context().Done():
		h.FailNow()
	}
}

// startLoad starts the load. The returned function ends it, and records the results.
func (h *harness) startLoad() (end func()) {
	done := make(chan struct{})
	share := 1
	if h.Quick { // other tests need the processors
		share = 4
	}
	hits := newStream(done, float64(hitRate/share), 600/share, h.hits, h.hitBodies)
	misses := newStream(done, missRate, 40, h.misses, nil)
	reads := newStream(done, float64(readRate/share), 240/share, h.reads, nil)
	writes := newCounts()
	misses.nextRequest = h.nextMiss
	var all sync.WaitGroup
	var failed error
	all.Go(func() { failed = send(h.Context(), h.Address, done, hits, misses, reads) })
	ctx, stopWriting := context.WithCancel(h.Context())
	clock := time.NewTicker(time.Second / writeRate)
	for range writers {
		all.Go(func() { h.writeLog.writeLoop(ctx, clock.C, writes) })
	}
	return func() {
		stopWriting()
		clock.Stop()
		writes.end()
		close(done)
		all.Wait()
		testenv.Do(h, failed)
		if h.writeLog.exhausted.Load() {
			h.Fatalf("%d users were too few for the writes of one fault", idleUsers)
		}
		h.nextMiss = misses.nextRequest
		h.row.traffic = traffic{hits.counts, misses.counts, reads.counts, writes}
	}
}

// populate creates users and skins through the API.
func (h *harness) populate() {
	began := time.Now()
	transport := &http.Transport{MaxIdleConnsPerHost: writers, MaxConnsPerHost: 0}
	h.writeLog = &writeLog{client: &http.Client{Timeout: 30 * time.Second, Transport: transport}, base: "http://" + h.Address}
	n := seededUsers
	if h.Quick {
		n = hotUsers
	}
	h.writeLog.addIdle(h.signIn(n))
	t := newCounts()
	atOnce(n, func(int) {
		for p := h.writeLog.take(); p.acked < skinSet && !p.uncertain; {
			h.writeLog.writeOnce(p, t)
		}
	})
	if t.failed > 0 {
		h.Fatalf("in a cluster that is whole writes fail: %s", t)
	}
	for _, p := range h.writeLog.active[:hotUsers] {
		name := p.names()[0]
		for _, path := range []string{
			"/avatar/player/" + name, "/avatar/player/" + name + "?size=64&3d", fmt.Sprint("/preview/", p.tid), "/skin/" + name + ".png", "/avatar/hash/" + p.hash + "?png",
		} {
			h.hits = append(h.hits, load.Get(path))
			h.paths = append(h.paths, path)
		}
		for _, path := range []string{"/api/user", "/api/players", "/api/closet"} {
			h.reads = append(h.reads, load.Get(path, "Authorization: Bearer "+p.Bearer+"\r\n"))
		}
	}
	for size := 8; size <= 512; size += 8 {
		for _, variant := range []string{"", "&3d", "&png", "&3d&png"} {
			for _, p := range h.writeLog.active { // all textures at one size, one after another
				h.misses = append(h.misses, load.Get(fmt.Sprintf("/avatar/%d?size=%d%s", p.tid, size, variant)))
			}
		}
	}
	h.logf("users and skins exist after %.0f s more", time.Since(began).Seconds())
}

// signIn returns users without writes.
func (h *harness) signIn(n int) (all []*testUser) {
	for _, user := range site.SignIn(h, h.Cores[0], n) {
		all = append(all, &testUser{SignedInUser: user})
	}
	return all
}

// addIdleUsers ensures that there are users enough for the writes of a fault.
func (h *harness) addIdleUsers() {
	h.writeLog.mu.Lock()
	missing := idleUsers - len(h.writeLog.idle)
	h.writeLog.mu.Unlock()
	if missing > 0 {
		users := h.signIn(missing)
		h.assignClosetTextures(users)
		h.writeLog.addIdle(users)
	}
}

// assignClosetTextures gives each user a texture of the first users for the closet, with a lower
// tid than any of their own.
func (h *harness) assignClosetTextures(all []*testUser) {
	owners := h.writeLog.startedAfter(0)[:hotUsers]
	for i, p := range all {
		p.closetTID = owners[i%hotUsers].tid
	}
}

// warmCaches makes every edge cache all hits, and records the bodies.
func (h *harness) warmCaches() {
	recordBodies := h.hitBodies == nil
	if recordBodies {
		h.hitBodies = make([][]byte, len(h.paths))
	}
	for _, edge := range h.Edges {
		atOnce(len(h.paths), func(i int) {
			status, body, err := 0, []byte(nil), error(nil)
			// On a busy machine a picture may time out in the render queue, or its look-up.
			for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); {
				if status, body, err = call(h.writeLog.client, "http://"+edge.Setting("EDGE_LISTEN"), http.MethodGet, h.paths[i], "", "", nil); status == http.StatusOK {
					break
				}
				h.sleep(time.Second)
			}
			if status != http.StatusOK {
				h.Errorf("an edge of a cluster that is whole answers %d, %v for %s", status, err, h.paths[i])
				return
			}
			if recordBodies && h.hitBodies[i] == nil {
				h.hitBodies[i] = body
			} else if string(body) != string(h.hitBodies[i]) {
				h.Errorf("edges show different pictures at %s", h.paths[i])
			}
		})
	}
	if h.Failed() {
		h.FailNow()
	}
}
