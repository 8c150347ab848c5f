// Package faults injects faults into a cluster under load, one after another, and reports failed
// requests and lost writes.
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

	"github.com/veneer-skins/veneer/bench/system/cluster"
)

// Options select the faults.
type Options struct {
	cluster.Options

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
	// which an edge can cache, and hits are of those of hotUsers.
	seededUsers = 192
	hotUsers    = 64
	userCount   = 6000
	// margin is the time under load before and after a fault.
	margin = 2 * time.Second
)

// harness is a cluster with its users, under load or not.
type harness struct {
	Options
	*cluster.Cluster
	testing.TB

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
	options.Settings = map[string]string{"EDGE_SHEET_BYTES": "1048576"} // the minimum
	s := &harness{Options: options, TB: tb}
	s.Cluster = cluster.Start(tb, options.Options)
	s.logf("the cluster runs after %.0f s", time.Since(began).Seconds())
	if s.Prometheus != nil {
		s.CheckMonitored(tb)
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
	s.AwaitHealthy(s)
	s.row = &Row{Fault: "all users, at the end"}
	s.compare(s.writeLog.startedAfter(0))
	s.logf("at the end: acknowledged %d, lost %d, unlike %d", s.row.Acknowledged, s.row.Lost, s.row.Mismatched)
	s.logf("the run took %.0f s", time.Since(began).Seconds())
	report(*s.row)
}

func (s *harness) logf(format string, values ...any) {
	fmt.Fprintf(s.Out, "==> "+format+"\n", values...)
}

// runFault injects one fault under load, and compares.
func (s *harness) runFault(f fault) *Row {
	s.Helper()
	s.warmCaches()
	s.row = &Row{Fault: f.name, Description: f.description, expected: f.expected}
	s.writeLog.mu.Lock()
	s.first = len(s.writeLog.active)
	s.writeLog.mu.Unlock()
	began := time.Now()
	l := s.startLoad()
	s.sleep(margin)
	f.run(s)
	s.AwaitHealthy(s)
	s.sleep(margin)
	l.end(s)
	s.row.Took = time.Since(began)
	s.compare(slices.Concat(s.writeLog.startedAfter(s.first), s.writeLog.startedAfter(0)[:hotUsers]))
	s.logf("%s: %s", f.name, s.row)
	return s.row
}

// sleep waits.
func (s *harness) sleep(duration time.Duration) {
	select {
	case <-time.After(duration):
	case <-s.Context().Done():
		s.FailNow()
	}
}

// runningLoad is load that continues until end.
type runningLoad struct {
	hits, misses, reads *stream
	writes              *counts
	done                chan struct{}
	stopWriting         context.CancelFunc
	all                 sync.WaitGroup
	err                 error
}

func (s *harness) startLoad() *runningLoad {
	done := make(chan struct{})
	r := &runningLoad{
		done:   done,
		hits:   newStream(done, hitRate, 600, s.hits, s.hitBodies),
		misses: newStream(done, missRate, 40, s.misses, nil),
		reads:  newStream(done, readRate, 240, s.reads, nil),
		writes: newCounts(),
	}
	r.misses.nextRequest = s.nextMiss
	ctx, cancel := context.WithCancel(s.Context())
	r.stopWriting = cancel
	r.all.Go(func() { r.err = send(s.Context(), s.Address, done, r.hits, r.misses, r.reads) })
	tick := make(chan time.Time)
	r.all.Go(func() { pace(ctx, tick) })
	for range writers {
		r.all.Go(func() { s.writeLog.writeLoop(ctx, tick, r.writes) })
	}
	return r
}

// pace sends ticks at writeRate until ctx ends.
func pace(ctx context.Context, tick chan<- time.Time) {
	clock := time.NewTicker(time.Second / writeRate)
	defer clock.Stop()
	for {
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

// end ends the load and records the results.
func (r *runningLoad) end(s *harness) {
	s.Helper()
	r.stopWriting()
	r.writes.end()
	close(r.done)
	r.all.Wait()
	if r.err != nil {
		s.Fatal(r.err)
	}
	s.nextMiss = r.misses.nextRequest
	s.row.traffic = traffic{r.hits.counts, r.misses.counts, r.reads.counts, r.writes}
}

// populate creates users and skins through the API.
func (s *harness) populate() {
	s.Helper()
	began := time.Now()
	transport := &http.Transport{MaxIdleConnsPerHost: writers, MaxConnsPerHost: 0}
	s.writeLog = &writeLog{client: &http.Client{Timeout: 30 * time.Second, Transport: transport}, base: "http://" + s.Address}
	s.writeLog.idle = s.signIn(userCount)
	t := newCounts()
	n := seededUsers
	if s.Quick {
		n = hotUsers
	}
	atOnce(n, func(int) {
		for p := s.writeLog.take(); p.acked < skinSet && !p.uncertain; {
			s.writeLog.writeOnce(p, t)
		}
	})
	if t.failed > 0 {
		s.Fatalf("in a cluster that is whole writes fail: %s", t)
	}
	s.assignClosetTextures(s.writeLog.idle)
	get := func(path, bearer string) []byte {
		header := ""
		if bearer != "" {
			header = "Authorization: Bearer " + bearer + "\r\n"
		}
		return fmt.Appendf(nil, "GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\n%s\r\n", path, header)
	}
	for _, p := range s.writeLog.active[:hotUsers] {
		name := p.names()[0]
		for _, path := range []string{
			"/avatar/player/" + name, "/avatar/player/" + name + "?size=64&3d", fmt.Sprint("/preview/", p.tid), "/skin/" + name + ".png", "/avatar/hash/" + p.hash + "?png",
		} {
			s.hits = append(s.hits, get(path, ""))
			s.paths = append(s.paths, path)
		}
		for _, path := range []string{"/api/user", "/api/players", "/api/closet"} {
			s.reads = append(s.reads, get(path, p.Bearer))
		}
	}
	for size := 8; size <= 512; size += 8 {
		for _, variant := range []string{"", "&3d", "&png", "&3d&png"} {
			for _, p := range s.writeLog.active { // all textures at one size, one after another
				s.misses = append(s.misses, get(fmt.Sprintf("/avatar/%d?size=%d%s", p.tid, size, variant), ""))
			}
		}
	}
	s.logf("users and skins exist after %.0f s more", time.Since(began).Seconds())
}

// signIn returns users without writes.
func (s *harness) signIn(n int) (all []*testUser) {
	s.Helper()
	for _, user := range s.Cores[0].SignIn(s, n) {
		all = append(all, &testUser{Person: user})
	}
	return all
}

// assignClosetTextures gives each user a texture of the first users for the closet, with a lower
// tid than any of their own.
func (s *harness) assignClosetTextures(all []*testUser) {
	owners := s.writeLog.startedAfter(0)[:hotUsers]
	for i, p := range all {
		p.closetTID = owners[i%hotUsers].tid
	}
}

// warmCaches makes every edge cache all hits, and records the bodies.
func (s *harness) warmCaches() {
	s.Helper()
	recordBodies := s.hitBodies == nil
	if recordBodies {
		s.hitBodies = make([][]byte, len(s.paths))
	}
	for _, edge := range s.Edges {
		atOnce(len(s.paths), func(i int) {
			status, body, err := 0, []byte(nil), error(nil)
			for range 10 { // a picture may time out in the render queue, among so many
				if status, body, err = call(s.writeLog.client, "http://"+edge.Setting("EDGE_LISTEN"), http.MethodGet, s.paths[i], "", "", nil); status == http.StatusOK {
					break
				}
				s.sleep(time.Second)
			}
			if status != http.StatusOK {
				s.Errorf("an edge of a cluster that is whole answers %d, %v for %s", status, err, s.paths[i])
				return
			}
			if recordBodies && s.hitBodies[i] == nil {
				s.hitBodies[i] = body
			} else if string(body) != string(s.hitBodies[i]) {
				s.Errorf("edges show different pictures at %s", s.paths[i])
			}
		})
	}
	if s.Failed() {
		s.FailNow()
	}
}

// atOnce calls do with the numbers below n from eight goroutines.
func atOnce(n int, do func(int)) {
	const workers = 8
	var all sync.WaitGroup
	for first := range workers {
		all.Go(func() {
			for i := first; i < n; i += workers {
				do(i)
			}
		})
	}
	all.Wait()
}
