package cdnpurge_test

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/core/cdnpurge"
	"github.com/veneer-skins/veneer/core/postgres"
	"github.com/veneer-skins/veneer/core/postgres/postgrestest"
	"github.com/veneer-skins/veneer/shared/edgeproto"
	"github.com/veneer-skins/veneer/shared/metrics/metricstest"
	"github.com/veneer-skins/veneer/shared/testenv"
	"github.com/veneer-skins/veneer/shared/testenv/cmptest"
)

var discardLog = slog.New(slog.DiscardHandler)

// fakeCDN records purges, and calls that fail.
type fakeCDN struct {
	mu     sync.Mutex
	err    error
	purges []cdnpurge.Purge
	calls  []time.Time
}

func (n *fakeCDN) Purge(_ context.Context, purge cdnpurge.Purge) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.calls = append(n.calls, time.Now())
	if n.err == nil {
		n.purges = append(n.purges, purge)
	}
	return n.err
}

func (n *fakeCDN) setError(err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.err = err
}

// take returns the purges since its last call.
func (n *fakeCDN) take() []cdnpurge.Purge {
	n.mu.Lock()
	defer n.mu.Unlock()
	purges := n.purges
	n.purges = nil
	return purges
}

// purgeEnv is a database and a CDN, shared by several cores.
type purgeEnv struct {
	*fakeCDN
	conn *pgx.Conn
	db   *postgres.DB
}

func newPurgeEnv(t *testing.T) purgeEnv {
	t.Helper()
	address := postgrestest.URL(t)
	s := purgeEnv{&fakeCDN{}, postgrestest.Conn(t, address), postgrestest.Connect(t, address)}
	s.change(t, "uid:0") // before the CDN was configured
	return s
}

// newPurger returns the purger of another core, which the test runs step by step. Its lease
// outlasts the test.
func (e purgeEnv) newPurger() *cdnpurge.Purger {
	return cdnpurge.NewPurger(e.db, e, core.NewFeed(e.db, discardLog), time.Minute, discardLog)
}

// change commits and numbers a change, and returns the head. However slow the test is, the change
// looks recent.
func (e purgeEnv) change(t *testing.T, keys ...edgeproto.Key) core.FeedHead {
	t.Helper()
	e.exec(t, "INSERT INTO changes (keys) VALUES ($1)", keys)
	head := testenv.Must(e.db.NumberChanges(t.Context()))(t)
	e.exec(t, "UPDATE changes SET numbered_at = now() + interval '1 hour' WHERE revision = $1", head.Revision)
	return head
}

func (e purgeEnv) exec(t *testing.T, sql string, args ...any) {
	t.Helper()
	testenv.Must(e.conn.Exec(t.Context(), sql, args...))(t)
}

// runOnce runs a purger once, which must succeed.
func runOnce(t *testing.T, p *cdnpurge.Purger) {
	t.Helper()
	testenv.Do(t, p.RunOnce(t.Context()))
}

func register(t *testing.T, p *cdnpurge.Purger) uuid.UUID {
	t.Helper()
	return reregister(t, p, uuid.Nil)
}

// reregister registers the stream of an edge that had another one before.
func reregister(t *testing.T, p *cdnpurge.Purger, former uuid.UUID) uuid.UUID {
	t.Helper()
	return testenv.Must(p.Register(t.Context(), former))(t)
}

// expect runs each purger once, and checks the purges.
func (e purgeEnv) expect(t *testing.T, what string, cores []*cdnpurge.Purger, want ...cdnpurge.Purge) {
	t.Helper()
	for _, p := range cores {
		runOnce(t, p)
	}
	cmptest.Same(t, e.take(), want, "%s: purged", what)
}

// tagged returns a purge up to a head.
func tagged(head core.FeedHead, tags ...string) cdnpurge.Purge {
	return cdnpurge.Purge{Cursor: head.Cursor, Tags: tags}
}

// A change is purged once every edge has acknowledged it, whatever cores the edges are connected to
// and send their acknowledgements to.
func TestPurgesWaitForEveryEdge(t *testing.T) {
	t.Parallel()
	s := newPurgeEnv(t)
	a, b := s.newPurger(), s.newPurger()
	runOnce(t, a)
	cores := []*cdnpurge.Purger{b, a} // the purging core is the last to report acknowledgements
	s.expect(t, "nothing has changed", cores)
	first := s.change(t, "pid:5", "name:steve", "uuid:7d444840-9dc0-11d1-b245-5ffdce74fad2")
	s.expect(t, "without edges", cores, tagged(first, "player-5", "name-steve"))

	near, far := register(t, a), register(t, b)
	second := s.change(t, "uid:7")
	s.expect(t, "no edge has acknowledged", cores)
	a.Acknowledge(near, second.Cursor)
	s.expect(t, "one has acknowledged", cores)
	b.Acknowledge(far, first.Cursor)
	s.expect(t, "the other has acknowledged something older", cores)
	b.Acknowledge(far, second.Cursor)
	s.expect(t, "both have acknowledged", cores, tagged(second, "user-7"))

	third := s.change(t, "tid:12", "hash:00")
	fourth := s.change(t, "tid:13")
	b.Acknowledge(near, fourth.Cursor) // its stream belongs to the other core
	a.Acknowledge(far, third.Cursor)
	s.expect(t, "one has acknowledged more", cores, tagged(third, "texture-12"))
	b.Acknowledge(near, third.Cursor) // delayed
	a.Acknowledge(far, fourth.Cursor)
	s.expect(t, "both have acknowledged the rest", cores, tagged(fourth, "texture-13"))
}

// An edge that acknowledges nothing delays purges by two seconds, and so does the edge of a dead
// core, since it may still use its cached mappings.
func TestPurgesWaitNoLongerThanTwoSeconds(t *testing.T) {
	t.Parallel()
	s := newPurgeEnv(t)
	a, dead := s.newPurger(), s.newPurger()
	cores := []*cdnpurge.Purger{a}
	s.expect(t, "nothing has changed", cores)
	register(t, dead)
	s.exec(t, "UPDATE edge_streams SET seen_at = now() + interval '1 hour'")
	first, second := s.change(t, "uid:1"), s.change(t, "uid:2")
	s.expect(t, "the changes are young", cores)
	s.exec(t, "UPDATE changes SET numbered_at = now() - interval '1 s'")
	s.expect(t, "the changes are a second old", cores)
	s.exec(t, "UPDATE changes SET numbered_at = now() - interval '2 s' WHERE revision = $1", first.Revision)
	s.expect(t, "one is two seconds old", cores, tagged(first, "user-1"))

	s.exec(t, "UPDATE changes SET numbered_at = now() + interval '1 hour'")
	s.exec(t, "UPDATE edge_streams SET seen_at = now() - interval '1 s'")
	s.expect(t, "the core is dead for a second", cores)
	s.exec(t, "UPDATE edge_streams SET seen_at = now() - interval '2 s'")
	s.expect(t, "the core is dead for two seconds", cores, tagged(second, "user-2"))

	testenv.Equal(t, testenv.Must(a.Trim(t.Context()))(t), 0, "the trimmed streams, so soon,")
	s.exec(t, "UPDATE edge_streams SET seen_at = now() - interval '2 hours'")
	testenv.Equal(t, testenv.Must(a.Trim(t.Context()))(t), 1, "the trimmed streams")
}

// Purges wait for an edge from before its stream begins, also when a crash of the database has
// emptied the unlogged table of streams.
func TestStreamsAreReportedAgain(t *testing.T) {
	t.Parallel()
	s := newPurgeEnv(t)
	a := s.newPurger()
	cores := []*cdnpurge.Purger{a}
	s.expect(t, "nothing has changed", cores)
	stream := register(t, a)
	head := s.change(t, "uid:1")
	s.exec(t, "TRUNCATE edge_streams") // as a crash does
	s.expect(t, "the edge has not acknowledged", cores)
	a.Acknowledge(stream, head.Cursor)
	s.expect(t, "the edge has acknowledged", cores, tagged(head, "user-1"))
	s.exec(t, "UPDATE edge_streams SET seen_at = now() - interval '3 s'")
	next := s.change(t, "uid:2")
	s.expect(t, "the edge is still there", cores)
	a.Acknowledge(stream, next.Cursor)
	s.expect(t, "the edge has acknowledged", cores, tagged(next, "user-2"))
}

// Purges wait for an edge that reconnected on its new stream only, though the former core has not
// yet noticed the end of the former stream.
func TestFormerStreamsAreNotWaitedFor(t *testing.T) {
	t.Parallel()
	s := newPurgeEnv(t)
	a, b := s.newPurger(), s.newPurger()
	cores := []*cdnpurge.Purger{b, a}
	runOnce(t, a)
	former, other := register(t, a), register(t, b)
	first := s.change(t, "uid:1")
	a.Acknowledge(former, first.Cursor)
	a.Acknowledge(other, first.Cursor)
	s.expect(t, "both have acknowledged", cores, tagged(first, "user-1"))

	stream := reregister(t, b, former)
	second := s.change(t, "uid:2")
	a.Acknowledge(former, second.Cursor) // delayed
	a.Acknowledge(other, second.Cursor)
	s.expect(t, "nothing is acknowledged on the new stream", cores)
	b.Acknowledge(stream, second.Cursor)
	s.expect(t, "the new stream has caught up", cores, tagged(second, "user-2"))
	third := s.change(t, "uid:3")
	b.Acknowledge(other, third.Cursor)
	b.Acknowledge(stream, third.Cursor)
	s.expect(t, "the former stream acknowledges nothing", cores, tagged(third, "user-3"))

	// Another reconnection, after the row of its former stream is lost.
	s.exec(t, "DELETE FROM edge_streams WHERE stream = $1", stream)
	last := reregister(t, a, stream)
	fourth := s.change(t, "uid:4")
	b.Acknowledge(other, fourth.Cursor)
	b.Acknowledge(last, fourth.Cursor)
	s.expect(t, "the row is not written anew", cores, tagged(fourth, "user-4"))
}

// failingPurgeStore is a database that cannot record what is purged.
type failingPurgeStore struct{ core.PurgeStore }

func (failingPurgeStore) SetPurged(context.Context, uuid.UUID, edgeproto.Cursor) error {
	return errors.New("gone at this moment")
}

// A purge that was sent by a core that died before it recorded that is sent again by the core that
// takes over. A purge that failed is not lost.
func TestPurgesAreSentAtLeastOnce(t *testing.T) {
	t.Parallel()
	s := newPurgeEnv(t)
	dying := cdnpurge.NewPurger(failingPurgeStore{s.db}, s, core.NewFeed(s.db, discardLog), time.Minute, discardLog)
	other := s.newPurger()
	runOnce(t, dying)
	first := s.change(t, "uid:1")
	testenv.ErrorHas(t, dying.RunOnce(t.Context()), "gone at this moment", "a purge that is not recorded")
	s.expect(t, "the other core has no lease", []*cdnpurge.Purger{other}, tagged(first, "user-1"))
	s.exec(t, "UPDATE purges SET held_until = now()")
	second := s.change(t, "uid:2")
	s.expect(t, "the other core has taken over", []*cdnpurge.Purger{other}, tagged(second, "user-1", "user-2"))

	s.setError(errors.New("the hook is down"))
	third := s.change(t, "uid:3")
	testenv.ErrorHas(t, other.RunOnce(t.Context()), "the hook is down", "a purge")
	// Another core takes over, without a backoff.
	s.exec(t, "UPDATE purges SET held_until = now()")
	s.setError(nil)
	s.expect(t, "the hook is up again", []*cdnpurge.Purger{s.newPurger()}, tagged(third, "user-3"))
}

// A core that stops releases its lease.
func TestPurgesAreHandedOver(t *testing.T) {
	t.Parallel()
	s := newPurgeEnv(t)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	stopping, other := s.newPurger(), s.newPurger()
	runOnce(t, stopping)
	head := s.change(t, "uid:1")
	s.expect(t, "the other core has no lease", []*cdnpurge.Purger{other})
	stop()
	stopping.Run(ctx)
	s.expect(t, "the other core has taken over", []*cdnpurge.Purger{other}, tagged(head, "user-1"))
}

// A purge combines changes, with each tag once, up to 256 tags.
func TestPurgesAreBounded(t *testing.T) {
	t.Parallel()
	s := newPurgeEnv(t)
	a := s.newPurger()
	runOnce(t, a)
	s.exec(t, "INSERT INTO changes (keys) SELECT ARRAY['uid:' || n / 2, 'hash:' || n] FROM generate_series(0, 599) n")
	s.exec(t, "INSERT INTO changes (keys) SELECT ARRAY['hash:' || n] FROM generate_series(1, 2000) n")
	s.exec(t, "INSERT INTO changes (keys) SELECT array_agg('tid:' || n) FROM generate_series(0, 499) n")
	head := s.change(t, "uid:0")

	number := func(kind string, from, to int) (tags []string) {
		for n := from; n < to; n++ {
			tags = append(tags, kind+strconv.Itoa(n))
		}
		return tags
	}
	up := func(changes int64) core.FeedHead { // the position after that many changes
		return core.FeedHead{Cursor: edgeproto.Cursor{Epoch: head.Epoch, Revision: 1 + changes}}
	}
	s.expect(t, "first", []*cdnpurge.Purger{a}, tagged(up(512), number("user-", 0, 256)...))
	s.expect(t, "the rest of the users, and no tags", []*cdnpurge.Purger{a}, tagged(up(512+1024), number("user-", 256, 300)...))
	s.expect(t, "no tags", []*cdnpurge.Purger{a})
	s.expect(t, "one change of many tags", []*cdnpurge.Purger{a}, tagged(up(600+2000+1), number("texture-", 0, 500)...))
	s.expect(t, "the last", []*cdnpurge.Purger{a}, tagged(head, "user-0"))
}

// If changes are lost, everything is purged, once the edges have flushed their caches.
func TestLostChangesPurgeEverything(t *testing.T) {
	t.Parallel()
	s := newPurgeEnv(t)
	a := s.newPurger()
	cores := []*cdnpurge.Purger{a}
	runOnce(t, a)
	s.change(t, "uid:1")
	head := s.change(t, "uid:2")
	s.exec(t, "UPDATE changes SET numbered_at = now() - interval '25 hours' WHERE revision = 2")
	testenv.Must(s.db.TrimChanges(t.Context(), time.Now().Add(-core.ChangeRetention)))(t)
	s.expect(t, "a change is trimmed", cores, cdnpurge.Purge{Cursor: head.Cursor, All: true})
	s.expect(t, "it is done", cores)

	edge := register(t, a)
	a.Acknowledge(edge, head.Cursor)
	s.exec(t, "UPDATE feed SET history = 'before the restore'")
	restored := s.change(t, "uid:3")
	s.expect(t, "the edge is in the epoch before", cores)
	a.Acknowledge(edge, restored.Cursor)
	s.expect(t, "the edge is in the new epoch", cores, cdnpurge.Purge{Cursor: restored.Cursor, All: true})
	s.expect(t, "it is done", cores)
}

// memoryStore is a database in memory. All its changes are numbered, and none is acknowledged.
type memoryStore struct {
	core.ChangeStore
	mu      sync.Mutex
	done    int64
	head    int64
	trimmed int64
	runs    int
	shared  time.Time // when streams were last reported
}

func (s *memoryStore) NumberChanges(context.Context) (core.FeedHead, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return core.FeedHead{Cursor: edgeproto.Cursor{Epoch: "e", Revision: s.head}, Trimmed: s.trimmed}, nil
}

func (s *memoryStore) ChangesAfter(context.Context, int64, int) ([]edgeproto.Event, error) {
	return nil, nil
}

func (s *memoryStore) RegisterStream(context.Context, uuid.UUID, uuid.UUID) error { return nil }

func (s *memoryStore) ReportStreams(_ context.Context, streams map[uuid.UUID]edgeproto.Cursor) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(streams) > 0 {
		s.shared = time.Now()
	}
	return nil
}

func (s *memoryStore) TrimStreams(context.Context, time.Time) (int, error) { return 0, nil }

func (s *memoryStore) AcquirePurgeLease(ctx context.Context, _ uuid.UUID, _ time.Duration) (core.PurgeState, bool, error) {
	head, err := s.NumberChanges(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.runs++
	return core.PurgeState{Done: edgeproto.Cursor{Epoch: "e", Revision: s.done}, Head: head}, true, err
}

func (s *memoryStore) ChangesToPurge(context.Context, int64, int) ([]core.NumberedChange, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return []core.NumberedChange{{Revision: s.done + 1, Keys: []edgeproto.Key{"uid:1"}, Age: time.Hour}}, nil
}

func (s *memoryStore) SetPurged(_ context.Context, _ uuid.UUID, done edgeproto.Cursor) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done = done.Revision
	return nil
}

func (s *memoryStore) set(do func(*memoryStore)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	do(s)
}

// run runs a purger on the store until stop is called.
func (s *memoryStore) run(n *fakeCDN) (p *cdnpurge.Purger, stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	feed := core.NewFeed(s, discardLog)
	var group sync.WaitGroup
	group.Go(func() { feed.Run(ctx) })
	p = cdnpurge.NewPurger(s, n, feed, time.Second, discardLog)
	group.Go(func() { p.Run(ctx) })
	return p, func() { cancel(); group.Wait() }
}

// A failing hook is called with a growing, jittered backoff of up to a minute.
func TestPurgesBackOff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, n := &memoryStore{head: 1}, &fakeCDN{err: errors.New("the hook is down")}
		p, stop := s.run(n)
		defer stop()
		registry := prometheus.NewRegistry()
		p.Expose(registry)
		lag := func(least, most float64) {
			t.Helper()
			got := metricstest.Value(t, metricstest.Text(t, registry), "veneer_core_purge_lag_seconds")
			testenv.Check(t, got >= least && got <= most, "the lag is %v s; want %v to %v s", got, least, most)
		}
		<-time.After(10 * time.Minute)
		lag(3600, 3699) // an hour, and up to 99 s
		n.setError(nil)
		<-time.After(time.Minute + time.Second)
		lag(0, 0)

		testenv.Equal(t, len(n.take()), 1, "the number of purges once the hook is up")
		calls := len(n.calls)
		testenv.Check(t, calls <= 30, "the hook was called %d times in ten minutes", calls)
		pause, slack := 250*time.Millisecond, 100*time.Millisecond
		for i, at := range n.calls[1:] {
			waited := at.Sub(n.calls[i])
			testenv.Check(t, waited >= pause/2 && waited <= pause+slack, "pause %d is %s, not %s", i, waited, pause)
			pause = min(2*pause, time.Minute)
		}
	})
}

// Without work, a core queries its database twice a second.
func TestIdlePurgerPollsTwiceASecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, n := &memoryStore{head: 1, done: 1}, &fakeCDN{}
		_, stop := s.run(n)
		defer stop()
		<-time.After(time.Minute)
		s.set(func(s *memoryStore) {
			testenv.Check(t, s.runs >= 100 && s.runs <= 121, "%d rounds in a minute; want two a second", s.runs)
			s.head++
		})
		<-time.After(300 * time.Millisecond) // the feed polls, then the purger ticks
		testenv.Equal(t, len(n.take()), 1, "the number of purges at once")
	})
}

// A stream that has ended is reported until its edge no longer uses its cached mappings, even if
// its last acknowledgement is long ago.
func TestEndedStreamsAreReported(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, n := &memoryStore{head: 1, done: 1}, &fakeCDN{}
		p, stop := s.run(n)
		defer stop()
		stream := register(t, p)
		<-time.After(time.Minute)
		p.Unregister(stream)
		ended := time.Now()
		<-time.After(time.Minute)
		s.set(func(s *memoryStore) {
			after := s.shared.Sub(ended)
			testenv.Check(t, after >= 500*time.Millisecond && after <= time.Second, "last reported %s after its end", after)
		})
	})
}

// When changes are lost, edges that do not acknowledge that have two seconds to flush their caches.
func TestPurgeAllWaitsForEdges(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, n := &memoryStore{head: 10, trimmed: 5, done: 1}, &fakeCDN{}
		began := time.Now()
		_, stop := s.run(n)
		defer stop()
		<-time.After(10 * time.Second)
		purges := n.take()
		if len(purges) != 1 || !purges[0].All || purges[0].Revision != 10 {
			t.Fatalf("purged %v; want everything, once", purges)
		}
		waited := n.calls[0].Sub(began)
		testenv.Check(t, waited >= 2*time.Second && waited <= 2200*time.Millisecond, "purged after %s; want 2 s", waited)
	})
}
