package core_test

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/core/postgres"
	"github.com/veneer-skins/veneer/core/postgres/postgrestest"
	"github.com/veneer-skins/veneer/shared/mapping"
	"github.com/veneer-skins/veneer/shared/metrics/metricstest"
)

// networks are content delivery networks: they note what they are told to
// forget, unless they fail.
type networks struct {
	mu     sync.Mutex
	fail   error
	told   []core.Purge
	called []time.Time
}

func (n *networks) Purge(_ context.Context, purge core.Purge) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.called = append(n.called, time.Now())
	if n.fail == nil {
		n.told = append(n.told, purge)
	}
	return n.fail
}

func (n *networks) setFailing(err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.fail = err
}

// take returns what the networks were told since it was last called.
func (n *networks) take() []core.Purge {
	n.mu.Lock()
	defer n.mu.Unlock()
	told := n.told
	n.told = nil
	return told
}

// site is a database and networks, which several cores share.
type site struct {
	*networks
	conn *pgx.Conn
	db   *postgres.DB
}

func newSite(t *testing.T) site {
	t.Helper()
	address := postgrestest.URL(t)
	s := site{&networks{}, postgrestest.Conn(t, address), postgrestest.Connect(t, address)}
	s.change(t, "uid:0") // before there was a hook
	return s
}

// core returns the purges of one more core, whose rounds the test runs. It holds
// purges for longer than the test takes.
func (s site) core() *core.Purges {
	return core.NewPurges(s.db, s, core.NewFeed(s.db, quiet), time.Minute, quiet)
}

// change commits and numbers a change, and returns the head then. However slow the
// test is, the change is young.
func (s site) change(t *testing.T, keys ...mapping.Key) core.FeedHead {
	t.Helper()
	s.exec(t, "INSERT INTO changes (keys) VALUES ($1)", keys)
	head, err := s.db.NumberChanges(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s.exec(t, "UPDATE changes SET numbered_at = now() + interval '1 hour' WHERE revision = $1", head.Revision)
	return head
}

func (s site) exec(t *testing.T, sql string, args ...any) {
	t.Helper()
	if _, err := s.conn.Exec(t.Context(), sql, args...); err != nil {
		t.Fatal(err)
	}
}

// round has a core do a round that must end well.
func round(t *testing.T, p *core.Purges) {
	t.Helper()
	if err := p.Round(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func join(t *testing.T, p *core.Purges) uuid.UUID {
	t.Helper()
	return joinAgain(t, p, uuid.Nil)
}

// joinAgain is for an edge that had another stream before.
func joinAgain(t *testing.T, p *core.Purges, former uuid.UUID) uuid.UUID {
	t.Helper()
	stream, err := p.Join(t.Context(), former)
	if err != nil {
		t.Fatal(err)
	}
	return stream
}

// expect has the cores do a round each, and checks what the networks are told.
func (s site) expect(t *testing.T, what string, cores []*core.Purges, want ...core.Purge) {
	t.Helper()
	for _, p := range cores {
		round(t, p)
	}
	if diff := cmp.Diff(want, s.take()); diff != "" {
		t.Errorf("%s: purged (-want +got):\n%s", what, diff)
	}
}

// tagged is a purge up to a head.
func tagged(head core.FeedHead, tags ...string) core.Purge {
	return core.Purge{Position: head.Position, Tags: tags}
}

// A change is purged once every edge has acknowledged it, whichever core the edge
// has its stream from, and whichever core hears the acknowledgement.
func TestPurgesWaitForEveryEdge(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	a, b := s.core(), s.core()
	round(t, a)
	cores := []*core.Purges{b, a} // the one that purges is the last to share what it has heard
	s.expect(t, "nothing has changed", cores)
	first := s.change(t, "pid:5", "name:steve", "uuid:7d444840-9dc0-11d1-b245-5ffdce74fad2")
	s.expect(t, "without edges", cores, tagged(first, "player-5", "name-steve"))

	near, far := join(t, a), join(t, b)
	second := s.change(t, "uid:7")
	s.expect(t, "nobody has acknowledged", cores)
	a.Acknowledge(near, second.Position)
	s.expect(t, "one has acknowledged", cores)
	b.Acknowledge(far, first.Position)
	s.expect(t, "the other has acknowledged something older", cores)
	b.Acknowledge(far, second.Position)
	s.expect(t, "both have acknowledged", cores, tagged(second, "user-7"))

	third := s.change(t, "tid:12", "hash:00")
	fourth := s.change(t, "tid:13")
	b.Acknowledge(near, fourth.Position) // it has its stream from the other core
	a.Acknowledge(far, third.Position)
	s.expect(t, "one has acknowledged more", cores, tagged(third, "texture-12"))
	b.Acknowledge(near, third.Position) // held up on its way
	a.Acknowledge(far, fourth.Position)
	s.expect(t, "both have acknowledged the rest", cores, tagged(fourth, "texture-13"))
}

// An edge that acknowledges nothing holds purges up for two seconds, and so does
// one whose core has died, since it still believes its memories.
func TestPurgesWaitNoLongerThanTwoSeconds(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	a, dead := s.core(), s.core()
	cores := []*core.Purges{a}
	s.expect(t, "nothing has changed", cores)
	join(t, dead)
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

	if n, err := a.Trim(t.Context()); n != 0 || err != nil {
		t.Errorf("%d streams trimmed, %v; want none so soon", n, err)
	}
	s.exec(t, "UPDATE edge_streams SET seen_at = now() - interval '2 hours'")
	if n, err := a.Trim(t.Context()); n != 1 || err != nil {
		t.Errorf("%d streams trimmed, %v; want 1", n, err)
	}
}

// An edge that comes again is waited for from before its stream begins, and
// whoever is on a stream is on it after a crash of the database as before.
func TestStreamsAreSharedAgain(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	a := s.core()
	cores := []*core.Purges{a}
	s.expect(t, "nothing has changed", cores)
	stream := join(t, a)
	head := s.change(t, "uid:1")
	s.exec(t, "TRUNCATE edge_streams") // which is what a crash does to it
	s.expect(t, "the edge has not acknowledged", cores)
	a.Acknowledge(stream, head.Position)
	s.expect(t, "the edge has acknowledged", cores, tagged(head, "user-1"))
	s.exec(t, "UPDATE edge_streams SET seen_at = now() - interval '3 s'")
	next := s.change(t, "uid:2")
	s.expect(t, "the edge is still there", cores)
	a.Acknowledge(stream, next.Position)
	s.expect(t, "the edge has acknowledged", cores, tagged(next, "user-2"))
}

// An edge that comes back is waited for on its new stream only, though the core of
// its former one still thinks that it is connected there.
func TestFormerStreamsAreNotWaitedFor(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	a, b := s.core(), s.core()
	cores := []*core.Purges{b, a}
	round(t, a)
	former, other := join(t, a), join(t, b)
	first := s.change(t, "uid:1")
	a.Acknowledge(former, first.Position)
	a.Acknowledge(other, first.Position)
	s.expect(t, "both have acknowledged", cores, tagged(first, "user-1"))

	stream := joinAgain(t, b, former)
	second := s.change(t, "uid:2")
	a.Acknowledge(former, second.Position) // held up on its way
	a.Acknowledge(other, second.Position)
	s.expect(t, "nothing is acknowledged on the new stream", cores)
	b.Acknowledge(stream, second.Position)
	s.expect(t, "the new stream has caught up", cores, tagged(second, "user-2"))
	third := s.change(t, "uid:3")
	b.Acknowledge(other, third.Position)
	b.Acknowledge(stream, third.Position)
	s.expect(t, "the former stream hears no more", cores, tagged(third, "user-3"))

	// Back once more, after its former stream's row is lost.
	s.exec(t, "DELETE FROM edge_streams WHERE stream = $1", stream)
	last := joinAgain(t, a, stream)
	fourth := s.change(t, "uid:4")
	b.Acknowledge(other, fourth.Position)
	b.Acknowledge(last, fourth.Position)
	s.expect(t, "the row is not written anew", cores, tagged(fourth, "user-4"))
}

// forgetful is a database that cannot note what is purged.
type forgetful struct{ core.PurgeStore }

func (forgetful) SetPurged(context.Context, uuid.UUID, mapping.Position) error {
	return errors.New("gone at this moment")
}

// What was posted by a core that died before it could say so is posted again by
// the one that takes over, and what the hook did not take is not lost.
func TestPurgesComeAtLeastOnce(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	dying := core.NewPurges(forgetful{s.db}, s, core.NewFeed(s.db, quiet), time.Minute, quiet)
	other := s.core()
	round(t, dying)
	first := s.change(t, "uid:1")
	if err := dying.Round(t.Context()); err == nil {
		t.Fatal("the database forgets what is purged, but nobody minds")
	}
	s.expect(t, "the other core waits for its turn", []*core.Purges{other}, tagged(first, "user-1"))
	s.exec(t, "UPDATE purges SET held_until = now()")
	second := s.change(t, "uid:2")
	s.expect(t, "the other core has taken over", []*core.Purges{other}, tagged(second, "user-1", "user-2"))

	s.setFailing(errors.New("the hook is down"))
	third := s.change(t, "uid:3")
	if err := other.Round(t.Context()); err == nil {
		t.Error("the hook is down, but nobody minds")
	}
	// Another takes over, and does not have to wait before it tries again.
	s.exec(t, "UPDATE purges SET held_until = now()")
	s.setFailing(nil)
	s.expect(t, "the hook is up again", []*core.Purges{s.core()}, tagged(third, "user-3"))
}

// A core that stops hands purges over at once.
func TestPurgesAreHandedOver(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	stopping, other := s.core(), s.core()
	round(t, stopping)
	head := s.change(t, "uid:1")
	s.expect(t, "the other core waits for its turn", []*core.Purges{other})
	stop()
	stopping.Run(ctx)
	s.expect(t, "the other core has taken over", []*core.Purges{other}, tagged(head, "user-1"))
}

// Changes travel together, each tag once, but not more than some hundred at a
// time.
func TestPurgesAreBounded(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	a := s.core()
	round(t, a)
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
	up := func(changes int64) core.FeedHead { // after those before
		return core.FeedHead{Position: mapping.Position{Epoch: head.Epoch, Revision: 1 + changes}}
	}
	s.expect(t, "first", []*core.Purges{a}, tagged(up(512), number("user-", 0, 256)...))
	s.expect(t, "the rest of the users, and no tags", []*core.Purges{a}, tagged(up(512+1024), number("user-", 256, 300)...))
	s.expect(t, "no tags", []*core.Purges{a})
	s.expect(t, "one change of many tags", []*core.Purges{a}, tagged(up(600+2000+1), number("texture-", 0, 500)...))
	s.expect(t, "the last", []*core.Purges{a}, tagged(head, "user-0"))
}

// What nobody can know any more makes everything be purged, once the edges have
// forgotten everything.
func TestLostChangesPurgeEverything(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	a := s.core()
	cores := []*core.Purges{a}
	round(t, a)
	s.change(t, "uid:1")
	head := s.change(t, "uid:2")
	s.exec(t, "UPDATE changes SET numbered_at = now() - interval '25 hours' WHERE revision = 2")
	if _, err := s.db.TrimChanges(t.Context(), time.Now().Add(-core.KeepChanges)); err != nil {
		t.Fatal(err)
	}
	s.expect(t, "a change is trimmed", cores, core.Purge{Position: head.Position, All: true})
	s.expect(t, "it is done", cores)

	edge := join(t, a)
	a.Acknowledge(edge, head.Position)
	s.exec(t, "UPDATE feed SET history = 'before the restore'")
	restored := s.change(t, "uid:3")
	s.expect(t, "the edge is in the epoch before", cores)
	a.Acknowledge(edge, restored.Position)
	s.expect(t, "the edge is in the new epoch", cores, core.Purge{Position: restored.Position, All: true})
	s.expect(t, "it is done", cores)
}

// shelf is a database in memory: of changes that are all numbered, and none is
// acknowledged.
type shelf struct {
	core.ChangeStore
	mu     sync.Mutex
	done   int64
	head   int64
	trims  int64
	rounds int
	shared time.Time // when streams were shared last
}

func (s *shelf) NumberChanges(context.Context) (core.FeedHead, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return core.FeedHead{Position: mapping.Position{Epoch: "e", Revision: s.head}, Trimmed: s.trims}, nil
}

func (s *shelf) ChangesAfter(context.Context, int64, int) ([]mapping.Event, error) { return nil, nil }

func (s *shelf) JoinStream(context.Context, uuid.UUID, uuid.UUID) error { return nil }

func (s *shelf) ShareStreams(_ context.Context, streams map[uuid.UUID]mapping.Position) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(streams) > 0 {
		s.shared = time.Now()
	}
	return nil
}

func (s *shelf) TrimStreams(context.Context, time.Time) (int, error) { return 0, nil }

func (s *shelf) HoldPurges(ctx context.Context, _ uuid.UUID, _ time.Duration) (core.PurgeState, bool, error) {
	head, err := s.NumberChanges(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rounds++
	return core.PurgeState{Done: mapping.Position{Epoch: "e", Revision: s.done}, Head: head}, true, err
}

func (s *shelf) ChangesToPurge(context.Context, int64, int) ([]core.NumberedChange, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return []core.NumberedChange{{Revision: s.done + 1, Keys: []mapping.Key{"uid:1"}, Age: time.Hour}}, nil
}

func (s *shelf) SetPurged(_ context.Context, _ uuid.UUID, done mapping.Position) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done = done.Revision
	return nil
}

func (s *shelf) set(do func(*shelf)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	do(s)
}

// run runs the purges of a shelf until the function it returns is called.
func (s *shelf) run(n *networks) (p *core.Purges, stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	feed := core.NewFeed(s, quiet)
	var group sync.WaitGroup
	group.Go(func() { feed.Run(ctx) })
	p = core.NewPurges(s, n, feed, time.Second, quiet)
	group.Go(func() { p.Run(ctx) })
	return p, func() { cancel(); group.Wait() }
}

// A hook that is down is asked ever more seldom, up to a minute apart, and never
// at times that follow from each other.
func TestPurgesBackOff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, n := &shelf{head: 1}, &networks{fail: errors.New("the hook is down")}
		p, stop := s.run(n)
		defer stop()
		registry := prometheus.NewRegistry()
		p.Expose(registry)
		lag := func(least, most float64) {
			t.Helper()
			if got := metricstest.Value(t, metricstest.Text(t, registry), "veneer_core_purge_lag_seconds"); got < least || got > most {
				t.Errorf("the lag is %v s; want %v to %v s", got, least, most)
			}
		}
		<-time.After(10 * time.Minute)
		lag(3600, 3699) // an hour and seconds
		n.setFailing(nil)
		<-time.After(time.Minute + time.Second)
		lag(0, 0)

		if told := n.take(); len(told) != 1 {
			t.Errorf("purged %v once the hook is up; want one purge", told)
		}
		if calls := len(n.called); calls > 30 {
			t.Errorf("the hook was called %d times in ten minutes", calls)
		}
		pause, slack := 250*time.Millisecond, 100*time.Millisecond
		for i, at := range n.called[1:] {
			if waited := at.Sub(n.called[i]); waited < pause/2 || waited > pause+slack {
				t.Errorf("after call %d came %s of silence; want %s to %s", i, waited, pause/2, pause)
			}
			pause = min(2*pause, time.Minute)
		}
	})
}

// With nothing to do, a core asks its database twice a second.
func TestIdlePurgesAskSeldom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, n := &shelf{head: 1, done: 1}, &networks{}
		_, stop := s.run(n)
		defer stop()
		<-time.After(time.Minute)
		s.set(func(s *shelf) {
			if s.rounds < 100 || s.rounds > 121 {
				t.Errorf("%d rounds in a minute; want two a second", s.rounds)
			}
			s.head++
		})
		<-time.After(300 * time.Millisecond) // the feed reads the head, then comes a tick
		if told := n.take(); len(told) != 1 {
			t.Errorf("purged %v; want the change at once", told)
		}
	})
}

// A stream that has ended is shared until its edge believes its memories no more,
// even if the last thing heard of the stream is long ago.
func TestEndedStreamsAreShared(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, n := &shelf{head: 1, done: 1}, &networks{}
		p, stop := s.run(n)
		defer stop()
		stream := join(t, p)
		<-time.After(time.Minute)
		p.Leave(stream)
		ended := time.Now()
		<-time.After(time.Minute)
		s.set(func(s *shelf) {
			if after := s.shared.Sub(ended); after < 500*time.Millisecond || after > time.Second {
				t.Errorf("the stream was shared for the last time %s after its end; want close to 1 s", after)
			}
		})
	})
}

// When changes are lost, edges that do not say that they know it have two seconds
// to forget everything.
func TestPurgingEverythingWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, n := &shelf{head: 10, trims: 5, done: 1}, &networks{}
		began := time.Now()
		_, stop := s.run(n)
		defer stop()
		<-time.After(10 * time.Second)
		told := n.take()
		if len(told) != 1 || !told[0].All || told[0].Revision != 10 {
			t.Fatalf("purged %v; want everything, once", told)
		}
		if waited := n.called[0].Sub(began); waited < 2*time.Second || waited > 2200*time.Millisecond {
			t.Errorf("purged after %s; want 2 s", waited)
		}
	})
}
