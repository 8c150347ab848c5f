// Package faults lets everything in a cluster fail in turn while people look at pictures
// and write, and tells what they noticed and whether anything was lost.
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

	"github.com/veneer-skins/veneer/bench/cluster"
)

// Options say which faults there are.
type Options struct {
	cluster.Options

	Only       string // the name of the only fault; empty for all
	WrongClock string // path of a core whose clock the setting WRONG_CLOCK makes wrong
	Quick      bool   // tries in seconds whether it runs, and only what takes no Patroni and no MinIO
	Out        io.Writer
}

// The constant load, in requests a second.
const (
	hitRate   = 200 // pictures that every edge has in memory
	drawnRate = 8   // pictures that nobody has asked for, most of skins that an edge must fetch
	readRate  = 60  // reads of the API
	writeRate = 20
	// writers is how many writes can be under way.
	writers = 60
	// residents have written before: new pictures are of their skins, of which an edge
	// has memory for a third, and those of the well-known among them are hits.
	residents = 192
	wellKnown = 64
	people    = 6000
	// around is how long there is load before a fault, and after it.
	around = 2 * time.Second
)

// stage is a cluster with its people, under load or not.
type stage struct {
	Options
	*cluster.Cluster
	testing.TB

	ledger         *ledger
	paths          []string // of hits
	hits, pictures [][]byte // requests for them, and what they show
	drawn, reads   [][]byte
	drawnNext      int

	first int  // how many people had begun to write before the fault that is under way
	row   *Row // of that fault
}

// fault is something that fails.
type fault struct {
	name string
	// means says what is done.
	means    string
	expected expectation
	// play lets it fail and puts it right.
	play func(s *stage)
}

// expectation is what a fault may cost.
type expectation struct {
	drawn  bool // new pictures may fail
	writes bool // writes may fail all the time
	reads  bool // and reads
	// refused is that some writes must fail, all of them with 503, and with all of them that
	// there is no success for so long.
	refused bool
	silence time.Duration
	known   bool // new pictures may fail, and writes stand still for longer, as docs/operations/faults.md says
	// planned is what operators do on purpose, by which no read or write may fail.
	planned bool
}

// Run starts a cluster and lets everything in it fail, and tells what came of each fault
// when that is over.
func Run(tb testing.TB, options Options, tell func(Row)) {
	tb.Helper()
	began := time.Now()
	options.Settings = map[string]string{"EDGE_SHEET_BYTES": "1048576"} // the least
	s := &stage{Options: options, TB: tb}
	s.Cluster = cluster.Start(tb, options.Options)
	s.say("the cluster runs after %.0f s", time.Since(began).Seconds())
	if s.Prometheus != nil {
		s.CheckWatched(tb)
		s.Prometheus.Kill(tb) // it would take of the processors that faults are measured with
		s.say("Prometheus can watch all of it")
	}
	s.populate()
	tried := 0
	for _, f := range s.faults() {
		if options.Only != "" && options.Only != f.name {
			continue
		}
		tell(*s.try(f))
		tried++
	}
	if tried == 0 {
		tb.Fatalf("there is no fault %q", options.Only)
	}
	// What a later fault took of an earlier one's is found now, and files are fetched from the
	// store, by edges that have nothing in memory.
	for _, edge := range s.Edges {
		edge.Kill(s)
		edge.Start(s)
	}
	s.AwaitWhole(s)
	s.row = &Row{Fault: "everybody, in the end"}
	s.compare(s.ledger.since(0))
	s.say("in the end: acknowledged %d, lost %d, unlike %d", s.row.Acknowledged, s.row.Lost, s.row.Unlike)
	s.say("all of it took %.0f s", time.Since(began).Seconds())
	tell(*s.row)
}

func (s *stage) say(format string, values ...any) {
	fmt.Fprintf(s.Out, "==> "+format+"\n", values...)
}

// try lets one thing fail under load, and compares.
func (s *stage) try(f fault) *Row {
	s.Helper()
	s.warm()
	s.row = &Row{Fault: f.name, Means: f.means, expected: f.expected}
	s.ledger.mu.Lock()
	s.first = len(s.ledger.active)
	s.ledger.mu.Unlock()
	began := time.Now()
	l := s.begin()
	s.pass(around)
	f.play(s)
	s.AwaitWhole(s)
	s.pass(around)
	l.end(s)
	s.row.Took = time.Since(began)
	s.compare(slices.Concat(s.ledger.since(s.first), s.ledger.since(0)[:wellKnown]))
	s.say("%s: %s", f.name, s.row)
	return s.row
}

// pass lets time pass.
func (s *stage) pass(long time.Duration) {
	select {
	case <-time.After(long):
	case <-s.Context().Done():
		s.FailNow()
	}
}

// running is load that goes on until it is ended.
type running struct {
	hits, drawn, reads *stream
	writes             *tally
	over               chan struct{}
	stopWriting        context.CancelFunc
	all                sync.WaitGroup
	err                error
}

func (s *stage) begin() *running {
	over := make(chan struct{})
	r := &running{
		over:   over,
		hits:   newStream(over, hitRate, 600, s.hits, s.pictures),
		drawn:  newStream(over, drawnRate, 40, s.drawn, nil),
		reads:  newStream(over, readRate, 240, s.reads, nil),
		writes: newTally(),
	}
	r.drawn.from = s.drawnNext
	ctx, cancel := context.WithCancel(s.Context())
	r.stopWriting = cancel
	r.all.Go(func() { r.err = send(s.Context(), s.Address, over, r.hits, r.drawn, r.reads) })
	tick := make(chan time.Time)
	r.all.Go(func() { pace(ctx, tick) })
	for range writers {
		r.all.Go(func() { s.ledger.write(ctx, tick, r.writes) })
	}
	return r
}

// pace sends moments at the rate of writes until ctx ends.
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

// end ends the load and notes what came of it.
func (r *running) end(s *stage) {
	s.Helper()
	r.stopWriting()
	r.writes.end()
	close(r.over)
	r.all.Wait()
	if r.err != nil {
		s.Fatal(r.err)
	}
	s.drawnNext = r.drawn.from
	s.row.traffic = traffic{r.hits.tally, r.drawn.tally, r.reads.tally, r.writes}
}

// populate puts people and skins in, by the API.
func (s *stage) populate() {
	s.Helper()
	began := time.Now()
	transport := &http.Transport{MaxIdleConnsPerHost: writers, MaxConnsPerHost: 0}
	s.ledger = &ledger{client: &http.Client{Timeout: 30 * time.Second, Transport: transport}, base: "http://" + s.Address}
	s.ledger.idle = s.signIn(people)
	t := newTally()
	n := residents
	if s.Quick {
		n = wellKnown
	}
	atOnce(n, func(int) {
		for p := s.ledger.take(); p.done < dressed && !p.loose; {
			s.ledger.step(p, t)
		}
	})
	if t.failed > 0 {
		s.Fatalf("in a cluster that is whole writes fail: %s", t)
	}
	s.lend(s.ledger.idle)
	ask := func(path, bearer string) []byte {
		header := ""
		if bearer != "" {
			header = "Authorization: Bearer " + bearer + "\r\n"
		}
		return fmt.Appendf(nil, "GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\n%s\r\n", path, header)
	}
	for _, p := range s.ledger.active[:wellKnown] {
		name := p.names()[0]
		for _, path := range []string{
			"/avatar/player/" + name, "/avatar/player/" + name + "?size=64&3d", fmt.Sprint("/preview/", p.tid), "/skin/" + name + ".png", "/avatar/hash/" + p.hash + "?png",
		} {
			s.hits = append(s.hits, ask(path, ""))
			s.paths = append(s.paths, path)
		}
		for _, path := range []string{"/api/user", "/api/players", "/api/closet"} {
			s.reads = append(s.reads, ask(path, p.Bearer))
		}
	}
	for size := 8; size <= 512; size += 8 {
		for _, how := range []string{"", "&3d", "&png", "&3d&png"} {
			for _, p := range s.ledger.active { // all of a size one after another
				s.drawn = append(s.drawn, ask(fmt.Sprintf("/avatar/%d?size=%d%s", p.tid, size, how), ""))
			}
		}
	}
	s.say("people and skins are in after %.0f s more", time.Since(began).Seconds())
}

// signIn returns people who have written nothing yet.
func (s *stage) signIn(n int) (all []*person) {
	s.Helper()
	for _, someone := range s.Cores[0].SignIn(s, n) {
		all = append(all, &person{Person: someone})
	}
	return all
}

// lend gives each a texture for the closet of those who wrote before everything, whose
// number is lower than any of theirs.
func (s *stage) lend(all []*person) {
	lenders := s.ledger.since(0)[:wellKnown]
	for i, p := range all {
		p.lent = lenders[i%wellKnown].tid
	}
}

// warm has every edge have all hits in memory, and learns what they show.
func (s *stage) warm() {
	s.Helper()
	learn := s.pictures == nil
	if learn {
		s.pictures = make([][]byte, len(s.paths))
	}
	for _, edge := range s.Edges {
		atOnce(len(s.paths), func(i int) {
			status, body, err := 0, []byte(nil), error(nil)
			for range 10 { // a picture may have waited too long to be drawn, among so many
				if status, body, err = call(s.ledger.client, "http://"+edge.Setting("EDGE_LISTEN"), http.MethodGet, s.paths[i], "", "", nil); status == http.StatusOK {
					break
				}
				s.pass(time.Second)
			}
			if status != http.StatusOK {
				s.Errorf("an edge of a cluster that is whole answers %d, %v for %s", status, err, s.paths[i])
				return
			}
			if learn && s.pictures[i] == nil {
				s.pictures[i] = body
			} else if string(body) != string(s.pictures[i]) {
				s.Errorf("edges show different pictures at %s", s.paths[i])
			}
		})
	}
	if s.Failed() {
		s.FailNow()
	}
}

// atOnce calls do with the numbers below n, eight at a time.
func atOnce(n int, do func(int)) {
	const hands = 8
	var all sync.WaitGroup
	for first := range hands {
		all.Go(func() {
			for i := first; i < n; i += hands {
				do(i)
			}
		})
	}
	all.Wait()
}
