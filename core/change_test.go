package core_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/core/coretest"
	"github.com/veneer-skins/veneer/core/postgres"
	"github.com/veneer-skins/veneer/core/postgres/postgrestest"
	"github.com/veneer-skins/veneer/shared/edgeproto"
	"github.com/veneer-skins/veneer/shared/testenv"
	"github.com/veneer-skins/veneer/shared/testenv/cmptest"
)

var discardLog = slog.New(slog.DiscardHandler)

// testCore is one core with a database and a feed, which its own commits and those of other cores
// notify.
type testCore struct {
	*core.Feed
	db *postgres.DB
}

func startNode(t *testing.T, address string) testCore {
	t.Helper()
	db := postgrestest.Connect(t, address)
	n := startFeed(t, db)
	n.db = db
	db.OnChange(n.Committed)
	coretest.Background(t, func(ctx context.Context) { db.Listen(ctx, discardLog, n.Notify) })
	return n
}

// startFeed runs a feed of a store until the test ends.
func startFeed(t *testing.T, store core.ChangeStore) testCore {
	t.Helper()
	n := testCore{Feed: core.NewFeed(store, discardLog)}
	coretest.Background(t, n.Run)
	return n
}

// follow returns the events that an edge at a position receives.
func (c testCore) follow(t *testing.T, from edgeproto.Cursor) <-chan edgeproto.Event {
	t.Helper()
	events := make(chan edgeproto.Event, 100)
	coretest.Background(t, func(ctx context.Context) {
		defer close(events)
		_ = c.Follow(ctx, from, time.Now(), func(heard ...edgeproto.Event) error {
			for _, e := range heard {
				select {
				case events <- e:
				case <-ctx.Done():
					return ctx.Err()
				}
			}
			return nil
		})
	})
	return events
}

const testTimeout = 2 * time.Minute

// next returns the next event for which wanted returns true.
func next(t *testing.T, events <-chan edgeproto.Event, wanted func(edgeproto.Event) bool) edgeproto.Event {
	t.Helper()
	deadline := time.After(testTimeout)
	for {
		select {
		case e, open := <-events:
			if !open {
				t.Fatal("the stream ended")
			}
			if wanted(e) {
				return e
			}
		case <-deadline:
			t.Fatal("the awaited event is not sent")
		}
	}
}

func isStart(e edgeproto.Event) bool  { return e.Start }
func isChange(e edgeproto.Event) bool { return len(e.Keys) > 0 }

func hasKey(key edgeproto.Key) func(edgeproto.Event) bool {
	return func(e edgeproto.Event) bool { return slices.Contains(e.Keys, key) }
}

func addUser(t *testing.T, db *postgres.DB, name string) core.User {
	t.Helper()
	fresh := core.NewUser{Email: name, EmailKey: name, Nickname: name, PasswordHash: "x"}
	return testenv.Must(db.CreateUser(t.Context(), core.Registrant, fresh))(t)
}

// A new stream starts at the head and sends each change once, in order, with heartbeats that never
// run ahead of the changes.
func TestFollow(t *testing.T) {
	t.Parallel()
	n := startNode(t, postgrestest.URL(t))
	events := n.follow(t, edgeproto.Cursor{})
	start := next(t, events, isStart)
	if start.Epoch == "" {
		t.Fatalf("the stream starts at %+v", start)
	}
	if heartbeat := next(t, events, func(edgeproto.Event) bool { return true }); !heartbeat.IsHeartbeat() || heartbeat.Cursor != start.Cursor {
		t.Errorf("after the start comes %+v; want a heartbeat at its position", heartbeat)
	}

	at := start.Cursor
	for range 20 {
		user := addUser(t, n.db, "user"+time.Now().String())
		e := next(t, events, isChange)
		at.Revision++
		if e.Cursor != at || !slices.Equal(e.Keys, []edgeproto.Key{edgeproto.UIDKey(int64(user.ID))}) {
			t.Fatalf("change %+v; want uid %d at %+v", e, user.ID, at)
		}
		if heartbeat := next(t, events, func(edgeproto.Event) bool { return true }); !heartbeat.IsHeartbeat() || heartbeat.Cursor != at {
			t.Errorf("after the change comes %+v; want a heartbeat at %+v", heartbeat, at)
		}
	}
}

// An edge that was disconnected gets the changes that it missed, from memory or from the database.
func TestFollowCatchesUp(t *testing.T) {
	t.Parallel()
	address := postgrestest.URL(t)
	first := startNode(t, address)
	from := next(t, first.follow(t, edgeproto.Cursor{}), isStart).Cursor
	var want []edgeproto.Key
	for i := range 3000 { // more than are read at a time
		want = append(want, edgeproto.UIDKey(int64(i)))
	}
	conn := postgrestest.Conn(t, address)
	testenv.Must(conn.Exec(t.Context(), "INSERT INTO changes (keys) SELECT ARRAY['uid:' || n] FROM generate_series(0, 2999) n"))(t)
	first.Notify()

	// The second core starts when all changes are numbered, so it has none in memory.
	next(t, first.follow(t, edgeproto.Cursor{}), func(e edgeproto.Event) bool { return e.Revision == from.Revision+3000 })
	for name, n := range map[string]testCore{"from memory": first, "from the database": startNode(t, address)} {
		events := n.follow(t, from)
		testenv.Equal(t, next(t, events, isStart).Cursor, from, "%s: where it starts", name)
		var got []edgeproto.Key
		at := from
		for len(got) < len(want) {
			e := next(t, events, func(edgeproto.Event) bool { return true })
			if e.IsHeartbeat() && e.Cursor != at {
				t.Fatalf("%s: a heartbeat at %+v while complete up to %+v", name, e.Cursor, at)
			}
			got = append(got, e.Keys...)
			at = e.Cursor
		}
		cmptest.Same(t, got, want, "%s: keys", name)
	}
}

// Changes that another core numbers reach this core's edges by notification, or by the poll if the
// notification is lost. A core that dies between its commit and its numbering leaves unnumbered rows,
// which another core's poll numbers.
func TestFollowReceivesChangesOfOtherCores(t *testing.T) {
	t.Parallel()
	address := postgrestest.URL(t)
	near, far := startNode(t, address), startNode(t, address)
	dead := postgrestest.Connect(t, address) // commits, but has no feed to notify
	events := near.follow(t, edgeproto.Cursor{})
	next(t, events, isStart)
	for name, db := range map[string]*postgres.DB{"far": far.db, "last words": dead} {
		user := addUser(t, db, name)
		next(t, events, hasKey(edgeproto.UIDKey(int64(user.ID))))
	}
}

// A transaction that wrote before another one, and commits after that was streamed, is streamed
// then.
func TestLateCommitIsStreamed(t *testing.T) {
	t.Parallel()
	address := postgrestest.URL(t)
	n := startNode(t, address)
	events := n.follow(t, edgeproto.Cursor{})
	next(t, events, isStart)

	early := testenv.Must(postgrestest.Conn(t, address).Begin(t.Context()))(t)
	testenv.Must(early.Exec(t.Context(), "INSERT INTO changes (keys) VALUES ('{name:early}')"))(t)
	user := addUser(t, n.db, "late")
	seen := next(t, events, isChange)
	testenv.Equal(t, hasKey(edgeproto.UIDKey(int64(user.ID)))(seen), true, "first comes the committed change: %+v", seen)
	testenv.Do(t, early.Commit(t.Context()))
	e := next(t, events, isChange)
	testenv.Check(t, hasKey("name:early")(e) && e.Revision == seen.Revision+1, "then comes %+v, after %+v", e, seen)
}

func TestStreamRestarts(t *testing.T) {
	t.Parallel()
	address := postgrestest.URL(t)
	n := startNode(t, address)
	addUser(t, n.db, "ann")
	addUser(t, n.db, "bob")
	events := n.follow(t, edgeproto.Cursor{})
	head := next(t, events, func(e edgeproto.Event) bool { return e.Revision == 2 }).Cursor

	startsAt := func(what string, from, want edgeproto.Cursor) {
		t.Helper()
		testenv.Equal(t, next(t, n.follow(t, from), isStart).Cursor, want, "%s: where it starts", what)
	}
	one := edgeproto.Cursor{Epoch: head.Epoch, Revision: 1}
	startsAt("all changes are stored", one, one)
	startsAt("unknown epoch", edgeproto.Cursor{Epoch: "another", Revision: 1}, head)

	testenv.Must(n.db.TrimChanges(t.Context(), time.Now().Add(time.Hour)))(t)
	startsAt("trimmed gap", one, head)
	startsAt("all trimmed changes were received", head, head)

	// A new epoch under a running stream.
	testenv.Must(postgrestest.Conn(t, address).Exec(t.Context(), "UPDATE feed SET history = 'before the restore'"))(t)
	testenv.Equal(t, next(t, events, isStart).Epoch == head.Epoch, false, "it restarts in the epoch %s", head.Epoch)
	epoch := next(t, events, edgeproto.Event.IsHeartbeat).Epoch

	// An edge has received a change that the database lost: it was restored in
	// place. Its stream ends, and all streams restart in a new epoch.
	gone := edgeproto.Cursor{Epoch: epoch, Revision: head.Revision + 1}
	for e := range n.follow(t, gone) {
		t.Errorf("an edge ahead of the database receives %+v", e)
	}
	testenv.Equal(t, next(t, events, isStart).Epoch == epoch, false, "it restarts in the epoch %s", epoch)
	reconnected := next(t, n.follow(t, gone), isStart)
	testenv.Equal(t, reconnected.Epoch == epoch, false, "the reconnected edge starts in the epoch %s", epoch)

	// So they do when a core has read changes that the database lost.
	now := n.Head()
	testenv.Must(postgrestest.Conn(t, address).Exec(t.Context(), "UPDATE feed SET revision = revision - 1, trimmed = 0"))(t)
	testenv.Equal(t, next(t, events, isStart).Epoch == now.Epoch, false, "it restarts in the epoch %s", now.Epoch)
}

// While other cores number continuously, an edge that reconnects is never told to restart.
func TestReconnectingUnderLoadLosesNothing(t *testing.T) {
	t.Parallel()
	address := postgrestest.URL(t)
	first := startNode(t, address)
	at := next(t, first.follow(t, edgeproto.Cursor{}), isStart).Cursor
	ctx, stop := context.WithCancel(t.Context())
	var writers sync.WaitGroup
	defer writers.Wait()
	defer stop()
	for range 2 {
		db, conn := postgrestest.Connect(t, address), postgrestest.Conn(t, address)
		writers.Go(func() {
			for ctx.Err() == nil {
				_, err := conn.Exec(ctx, "INSERT INTO changes (keys) VALUES ('{name:x}')")
				if err == nil {
					_, err = db.NumberChanges(ctx)
				}
				if err != nil && ctx.Err() == nil {
					t.Error(err)
					return
				}
			}
		})
	}

	for range 10 {
		n := startNode(t, address) // has nothing in memory, so streams read from the database
		events := n.follow(t, at)
		testenv.Equal(t, next(t, events, isStart).Cursor, at, "where it starts")
		for {
			e := next(t, events, func(edgeproto.Event) bool { return true })
			if e.Start {
				t.Fatalf("restarts at %+v, after %+v", e, at)
			}
			if len(e.Keys) > 0 && e.Revision != at.Revision+1 {
				t.Fatalf("%+v follows %+v", e, at)
			}
			if at = e.Cursor; e.IsHeartbeat() {
				break
			}
		}
	}
}

// Streams without heartbeats end in the core, however long its database is unavailable.
func TestStreamsEndWithoutTheDatabase(t *testing.T) {
	t.Parallel()
	store := &failingStore{ChangeStore: postgrestest.Open(t)}
	store.failing.Store(true)
	n := startFeed(t, store)

	ended := make(chan error, 20)
	for range cap(ended) {
		go func() {
			ended <- n.Follow(t.Context(), edgeproto.Cursor{}, time.Now(), func(...edgeproto.Event) error { return nil })
		}()
	}
	for range cap(ended) {
		select {
		case err := <-ended:
			testenv.Check(t, err != nil && t.Context().Err() == nil, "a stream ends with %v", err)
		case <-time.After(testTimeout):
			t.Fatal("a stream without heartbeats does not end")
		}
	}
}

// failingStore is a database that can be made to fail.
type failingStore struct {
	core.ChangeStore
	failing atomic.Bool
}

func (f *failingStore) NumberChanges(ctx context.Context) (core.FeedHead, error) {
	if f.failing.Load() {
		return core.FeedHead{}, errors.New("unavailable")
	}
	return f.ChangeStore.NumberChanges(ctx)
}

// blockingChangeStore is a database with answers that can be delayed.
type blockingChangeStore struct {
	core.ChangeStore
	block chan chan struct{} // buffers one: the next poll sends on it, and waits until it is closed
}

func (s *blockingChangeStore) NumberChanges(ctx context.Context) (core.FeedHead, error) {
	head, err := s.ChangeStore.NumberChanges(ctx)
	select {
	case held := <-s.block:
		select {
		case held <- struct{}{}:
			<-held
		case <-ctx.Done():
		}
	default:
	}
	return head, err
}

// A heartbeat holds as of the start of its poll, however long that took: a change committed since
// may be missing.
func TestHeartbeatsAreAsOfPollStart(t *testing.T) {
	t.Parallel()
	store := &blockingChangeStore{ChangeStore: postgrestest.Open(t), block: make(chan chan struct{}, 1)}
	n := startFeed(t, store)

	before := time.Now()
	events := n.follow(t, edgeproto.Cursor{})
	heartbeat := next(t, events, edgeproto.Event.IsHeartbeat)
	if least, most := time.Duration(0), time.Since(before); heartbeat.AsOf <= least || heartbeat.AsOf >= most {
		t.Errorf("the first heartbeat is as of %v after the request; want between %v and %v", heartbeat.AsOf, least, most)
	}

	held := make(chan struct{})
	store.block <- held
	<-held // the poll has read the database by then
	read := time.Since(before)
	<-time.After(200 * time.Millisecond)
	for drained := false; !drained; { // discards events of earlier polls
		select {
		case <-events:
		default:
			drained = true
		}
	}
	store.block <- make(chan struct{}) // or the next poll might send the first event
	close(held)
	if heartbeat := next(t, events, edgeproto.Event.IsHeartbeat); heartbeat.AsOf >= read {
		t.Errorf("a heartbeat is as of %v after the request, though its poll had read the database by %v", heartbeat.AsOf, read)
	}
}

// A core that cannot reach its database does not know whether its streams are complete, so it sends
// no heartbeats.
func TestNoHeartbeatsWithoutTheDatabase(t *testing.T) {
	t.Parallel()
	store := &failingStore{ChangeStore: postgrestest.Open(t)}
	n := startFeed(t, store)
	events := n.follow(t, edgeproto.Cursor{})
	next(t, events, edgeproto.Event.IsHeartbeat)

	store.failing.Store(true)
	// A running poll may still send a heartbeat; after a second none does.
	silence := time.After(time.Second)
	for quiet := false; !quiet; {
		select {
		case <-events:
		case <-silence:
			quiet = true
		}
	}
	select {
	case e := <-events:
		t.Errorf("%+v is sent although the database is unavailable", e)
	case <-time.After(500 * time.Millisecond):
	}

	store.failing.Store(false)
	next(t, n.follow(t, edgeproto.Cursor{}), edgeproto.Event.IsHeartbeat)
}
