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

	"github.com/google/go-cmp/cmp"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/core/postgres"
	"github.com/veneer-skins/veneer/core/postgres/postgrestest"
	"github.com/veneer-skins/veneer/shared/edgeproto"
)

var discardLog = slog.New(slog.DiscardHandler)

// testCore is one core's share of the feed: its connections, its numbering and its
// ear for the other cores.
type testCore struct {
	*core.Feed
	db *postgres.DB
}

func startNode(t *testing.T, address string) testCore {
	t.Helper()
	db := postgrestest.Connect(t, address)
	n := testCore{Feed: core.NewFeed(db, discardLog), db: db}
	db.OnChange(n.Notify)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{}, 2)
	go func() { n.Run(ctx); done <- struct{}{} }()
	go func() { db.Listen(ctx, discardLog, n.Notify); done <- struct{}{} }()
	t.Cleanup(func() { stop(); <-done; <-done })
	return n
}

// follow returns what an edge at a position hears.
func (n testCore) follow(t *testing.T, from edgeproto.Cursor) <-chan edgeproto.Event {
	t.Helper()
	events := make(chan edgeproto.Event, 100)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer close(events)
		_ = n.Follow(ctx, from, time.Now(), func(heard ...edgeproto.Event) error {
			for _, e := range heard {
				select {
				case events <- e:
				case <-ctx.Done():
					return ctx.Err()
				}
			}
			return nil
		})
	}()
	t.Cleanup(func() { stop(); <-done })
	return events
}

const testTimeout = 10 * time.Second

// next returns the next event that wanted accepts.
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
			t.Fatal("the awaited event does not come")
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
	user, err := db.CreateUser(t.Context(), core.NewUser{Email: name, EmailKey: name, Nickname: name, PasswordHash: "x"})
	if err != nil {
		t.Fatal(err)
	}
	return user
}

// A stream that begins where the feed is starts there and goes on in order, each
// change once, with beats that never run ahead of the changes.
func TestFollow(t *testing.T) {
	t.Parallel()
	n := startNode(t, postgrestest.URL(t))
	events := n.follow(t, edgeproto.Cursor{})
	start := next(t, events, isStart)
	if start.Epoch == "" {
		t.Fatalf("the stream starts at %+v", start)
	}
	if beat := next(t, events, func(edgeproto.Event) bool { return true }); !beat.IsHeartbeat() || beat.Cursor != start.Cursor {
		t.Errorf("after the start comes %+v; want a beat at its position", beat)
	}

	at := start.Cursor
	for range 20 {
		user := addUser(t, n.db, "user"+time.Now().String())
		e := next(t, events, isChange)
		at.Revision++
		if e.Cursor != at || !slices.Equal(e.Keys, []edgeproto.Key{edgeproto.UIDKey(int64(user.ID))}) {
			t.Fatalf("change %+v; want uid %d at %+v", e, user.ID, at)
		}
		if beat := next(t, events, func(edgeproto.Event) bool { return true }); !beat.IsHeartbeat() || beat.Cursor != at {
			t.Errorf("after the change comes %+v; want a beat at %+v", beat, at)
		}
	}
}

// An edge that was away gets what it missed, from memory or from the database.
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
	if _, err := conn.Exec(t.Context(), "INSERT INTO changes (keys) SELECT ARRAY['uid:' || n] FROM generate_series(0, 2999) n"); err != nil {
		t.Fatal(err)
	}
	first.Notify()

	// The second node begins when all is numbered, and so has nothing in memory.
	next(t, first.follow(t, edgeproto.Cursor{}), func(e edgeproto.Event) bool { return e.Revision == from.Revision+3000 })
	for name, n := range map[string]testCore{"from memory": first, "from the database": startNode(t, address)} {
		events := n.follow(t, from)
		if start := next(t, events, isStart); start.Cursor != from {
			t.Fatalf("%s: starts at %+v; want %+v", name, start, from)
		}
		var got []edgeproto.Key
		at := from
		for len(got) < len(want) {
			e := next(t, events, func(edgeproto.Event) bool { return true })
			if e.IsHeartbeat() && e.Cursor != at {
				t.Fatalf("%s: a beat at %+v while complete up to %+v", name, e.Cursor, at)
			}
			got = append(got, e.Keys...)
			at = e.Cursor
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: keys (-want +got):\n%s", name, diff)
		}
	}
}

// A change that another core numbers reaches this core's edges through the bell,
// or through the poll when the bell is not heard.
func TestFollowReceivesChangesOfOtherCores(t *testing.T) {
	t.Parallel()
	address := postgrestest.URL(t)
	near, far := startNode(t, address), startNode(t, address)
	events := near.follow(t, edgeproto.Cursor{})
	next(t, events, isStart)
	user := addUser(t, far.db, "far")
	next(t, events, hasKey(edgeproto.UIDKey(int64(user.ID))))
}

// A core that dies between its commit and its numbering leaves unnumbered rows.
// Whichever core runs numbers them, without a bell.
func TestCoreDiesBeforeNumbering(t *testing.T) {
	t.Parallel()
	address := postgrestest.URL(t)
	n := startNode(t, address)
	events := n.follow(t, edgeproto.Cursor{})
	next(t, events, isStart)

	dead := postgrestest.Connect(t, address) // commits, but has no feed that could ring
	user := addUser(t, dead, "last words")
	next(t, events, hasKey(edgeproto.UIDKey(int64(user.ID))))
}

// A transaction that wrote before another one, and commits after it was
// streamed, is streamed then.
func TestLateCommitIsStreamed(t *testing.T) {
	t.Parallel()
	address := postgrestest.URL(t)
	n := startNode(t, address)
	events := n.follow(t, edgeproto.Cursor{})
	next(t, events, isStart)

	early, err := postgrestest.Conn(t, address).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := early.Exec(t.Context(), "INSERT INTO changes (keys) VALUES ('{name:early}')"); err != nil {
		t.Fatal(err)
	}
	user := addUser(t, n.db, "late")
	seen := next(t, events, isChange)
	if !hasKey(edgeproto.UIDKey(int64(user.ID)))(seen) {
		t.Fatalf("first comes %+v; want the change that was committed", seen)
	}
	if err := early.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if e := next(t, events, isChange); !hasKey("name:early")(e) || e.Revision != seen.Revision+1 {
		t.Errorf("then comes %+v; want name:early right after %+v", e, seen)
	}
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
		if start := next(t, n.follow(t, from), isStart); start.Cursor != want {
			t.Errorf("%s: starts at %+v; want %+v", what, start, want)
		}
	}
	one := edgeproto.Cursor{Epoch: head.Epoch, Revision: 1}
	startsAt("all is kept", one, one)
	startsAt("unknown epoch", edgeproto.Cursor{Epoch: "another", Revision: 1}, head)

	if _, err := n.db.TrimChanges(t.Context(), time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	startsAt("trimmed gap", one, head)
	startsAt("all that was trimmed was heard", head, head)

	// A new epoch under a running stream.
	if _, err := postgrestest.Conn(t, address).Exec(t.Context(), "UPDATE feed SET history = 'before the restore'"); err != nil {
		t.Fatal(err)
	}
	if start := next(t, events, isStart); start.Epoch == head.Epoch {
		t.Errorf("starts anew at %+v; want another epoch than %+v", start, head)
	}
	epoch := next(t, events, edgeproto.Event.IsHeartbeat).Epoch

	// An edge has heard of a change that is gone: the database was restored in
	// place. The edge is sent away, and everybody begins anew.
	gone := edgeproto.Cursor{Epoch: epoch, Revision: head.Revision + 1}
	for e := range n.follow(t, gone) {
		t.Errorf("an edge from the future hears %+v", e)
	}
	if start := next(t, events, isStart); start.Epoch == epoch {
		t.Errorf("starts anew at %+v; want another epoch than %s", start, epoch)
	}
	if start := next(t, n.follow(t, gone), isStart); start.Epoch == epoch {
		t.Errorf("the edge that came again starts at %+v; want another epoch than %s", start, epoch)
	}

	// So does a core that remembers more than the database holds.
	now := n.Head()
	if _, err := postgrestest.Conn(t, address).Exec(t.Context(), "UPDATE feed SET revision = revision - 1, trimmed = 0"); err != nil {
		t.Fatal(err)
	}
	if start := next(t, events, isStart); start.Epoch == now.Epoch {
		t.Errorf("starts anew at %+v; want another epoch than %s", start, now.Epoch)
	}
}

// While other cores number without a pause, an edge that comes again is never
// told that history was lost.
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
		if start := next(t, events, isStart); start.Cursor != at {
			t.Fatalf("starts at %+v; want %+v", start, at)
		}
		for {
			e := next(t, events, func(edgeproto.Event) bool { return true })
			if e.Start {
				t.Fatalf("starts anew at %+v, after %+v", e, at)
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

// Edges that give a silent core up leave nothing behind in it, however long its
// database is away.
func TestStreamsEndWithoutTheDatabase(t *testing.T) {
	t.Parallel()
	store := &failingStore{ChangeStore: postgrestest.Open(t)}
	store.failing.Store(true)
	n := core.NewFeed(store, discardLog)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { n.Run(ctx); close(done) }()
	defer func() { stop(); <-done }()

	ended := make(chan error, 20)
	for range cap(ended) {
		go func() {
			ended <- n.Follow(ctx, edgeproto.Cursor{}, time.Now(), func(...edgeproto.Event) error { return nil })
		}()
	}
	for range cap(ended) {
		select {
		case err := <-ended:
			if err == nil || ctx.Err() != nil {
				t.Errorf("a stream ends with %v", err)
			}
		case <-time.After(testTimeout):
			t.Fatal("a stream that has nothing to say does not end")
		}
	}
}

// failingStore is a database that can be cut off.
type failingStore struct {
	core.ChangeStore
	failing atomic.Bool
}

func (f *failingStore) NumberChanges(ctx context.Context) (core.FeedHead, error) {
	if f.failing.Load() {
		return core.FeedHead{}, errors.New("cut off")
	}
	return f.ChangeStore.NumberChanges(ctx)
}

// blockingChangeStore is a database whose answers can be held back.
type blockingChangeStore struct {
	core.ChangeStore
	block chan chan struct{} // of one: the next round sends on it, and waits until it is closed
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

// A beat is true as of when its round began, however long that took: a change
// committed since may be missing.
func TestHeartbeatsAreAsOfPollStart(t *testing.T) {
	t.Parallel()
	store := &blockingChangeStore{ChangeStore: postgrestest.Open(t), block: make(chan chan struct{}, 1)}
	n := testCore{Feed: core.NewFeed(store, discardLog)}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { n.Run(ctx); close(done) }()
	defer func() { stop(); <-done }()

	before := time.Now()
	events := n.follow(t, edgeproto.Cursor{})
	beat := next(t, events, edgeproto.Event.IsHeartbeat)
	if least, most := time.Duration(0), time.Since(before); beat.AsOf <= least || beat.AsOf >= most {
		t.Errorf("the first beat is as of %v after the request; want between %v and %v", beat.AsOf, least, most)
	}

	held := make(chan struct{})
	store.block <- held
	<-held // the round has read the database by then
	read := time.Since(before)
	<-time.After(200 * time.Millisecond)
	for drained := false; !drained; { // what earlier rounds had to say
		select {
		case <-events:
		default:
			drained = true
		}
	}
	store.block <- make(chan struct{}) // or the next round might be the first to be heard of
	close(held)
	if beat := next(t, events, edgeproto.Event.IsHeartbeat); beat.AsOf >= read {
		t.Errorf("a beat is as of %v after the request, though its round had read the database by %v", beat.AsOf, read)
	}
}

// A core that cannot reach its database does not know whether its streams are
// complete, so it must not say so.
func TestNoHeartbeatsWithoutTheDatabase(t *testing.T) {
	t.Parallel()
	store := &failingStore{ChangeStore: postgrestest.Open(t)}
	n := testCore{Feed: core.NewFeed(store, discardLog)}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { n.Run(ctx); close(done) }()
	defer func() { stop(); <-done }()
	events := n.follow(t, edgeproto.Cursor{})
	next(t, events, edgeproto.Event.IsHeartbeat)

	store.failing.Store(true)
	// A round that was under way may still beat; after a second none does.
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
		t.Errorf("%+v comes although the database is cut off", e)
	case <-time.After(500 * time.Millisecond):
	}

	store.failing.Store(false)
	next(t, n.follow(t, edgeproto.Cursor{}), edgeproto.Event.IsHeartbeat)
}
