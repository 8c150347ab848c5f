package core

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/veneer-skins/veneer/shared/edgeproto"
)

// FeedHead is the revision up to which changes are numbered, and from which on they are stored.
type FeedHead struct {
	edgeproto.Cursor
	Trimmed int64 // the highest deleted revision
}

// Covers reports whether every change after a cursor is stored.
func (h FeedHead) Covers(from edgeproto.Cursor) bool {
	return from.Epoch == h.Epoch && h.Trimmed <= from.Revision && from.Revision <= h.Revision
}

// ChangeStore holds the changes that transactions wrote.
type ChangeStore interface {
	// NumberChanges numbers all committed changes that have no number yet, in a transaction of its
	// own that notifies the other cores, and returns the head. It takes one query when there is
	// nothing to number. If the database was promoted or restored since, it begins a new epoch.
	NumberChanges(ctx context.Context) (FeedHead, error)

	// RenewEpoch begins a new epoch if the feed is still in the epoch of a cursor and behind its
	// revision: a core or an edge has seen changes that the database lost.
	RenewEpoch(ctx context.Context, seen edgeproto.Cursor) error

	// ChangesAfter returns changes after a revision in order, at most limit.
	ChangesAfter(ctx context.Context, revision int64, limit int) ([]edgeproto.Event, error)

	// TrimChanges deletes changes that were numbered before a time and returns how many.
	TrimChanges(ctx context.Context, before time.Time) (int, error)
}

// Feed numbers changes and streams them to edges, and to caches of this core. One runs in every
// core.
//
// A core that commits a change notifies its feed, and a core that numbers changes notifies all
// others. A poll covers for a core that dies between its commit and its notification. Each poll
// that reached the store ends with a heartbeat on every stream, so heartbeats stop when this core
// no longer knows whether its streams are complete.
type Feed struct {
	store   ChangeStore
	log     *slog.Logger
	wake    chan struct{}
	start   time.Time
	applies []func(polledChanges)

	// validAsOf is asOf since start, and committedAt when this core last committed a change.
	validAsOf, committedAt atomic.Int64

	mu           sync.Mutex
	head         FeedHead
	asOf         time.Time         // everything committed by then is numbered up to head
	recent       []edgeproto.Event // the last changes up to head, in order
	pollsStarted int
	lastPoll     int           // number of the last poll that succeeded
	polled       chan struct{} // closed and replaced when a poll succeeds
}

// polledChanges are what a poll has found.
type polledChanges struct {
	head     FeedHead
	asOf     time.Time         // everything committed by then is numbered up to head
	changes  []edgeproto.Event // since the poll before, in order
	complete bool              // no change since the poll before is missing
}

// Sizes and times of the feed.
const (
	// pollInterval is the longest time between two polls, and so between two heartbeats.
	pollInterval = 200 * time.Millisecond
	// maxRecent is how many changes are kept in memory for streams that lag.
	maxRecent = 4096
	// changesPerPage is how many changes are read from the store at a time.
	changesPerPage = 1024
	// pollTimeout bounds a poll, so that one that hangs does not stop the next. Edges no longer
	// rely on what a poll of more than a second finds.
	pollTimeout = 2 * time.Second
	// pollWait is how long a stream waits for a poll to succeed. By then its edge has closed the
	// connection, which only a write would notice.
	pollWait = 3 * time.Second
	// ChangeRetention is how long numbered changes are stored for edges that were disconnected.
	ChangeRetention = 24 * time.Hour
)

var (
	errNoPoll            = errors.New("no poll of changes has succeeded for too long")
	errGap               = errors.New("a change is missing")
	errRevisionRegressed = errors.New("the feed is behind a revision that was seen before")
)

// closedChan never blocks a receiver.
var closedChan = func() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

var (
	feedPolls    = promauto.NewCounter(prometheus.CounterOpts{Name: "veneer_core_feed_polls_total", Help: "Polls of the feed for new changes."})
	feedFailures = promauto.NewCounter(prometheus.CounterOpts{Name: "veneer_core_feed_failures_total", Help: "Failed polls of the feed for new changes."})
	feedStreams  = promauto.NewGauge(prometheus.GaugeOpts{Name: "veneer_core_feed_streams", Help: "Open streams of changes to edges."})
	feedRevision = promauto.NewGauge(prometheus.GaugeOpts{Name: "veneer_core_feed_revision", Help: "Revision of the latest change that the feed has read."})
)

// NewFeed returns a feed that does nothing until Run.
func NewFeed(store ChangeStore, log *slog.Logger) *Feed {
	return &Feed{store: store, log: log, wake: make(chan struct{}, 1), start: time.Now(), polled: make(chan struct{})}
}

// subscribe has apply called with what each poll finds, before that counts as known. It is called
// before Run, and apply by one goroutine.
func (f *Feed) subscribe(apply func(polledChanges)) { f.applies = append(f.applies, apply) }

// isCurrent reports whether subscribers have applied all changes that were committed a second ago,
// and all that this core has committed. Callers ask before they read what apply changes.
func (f *Feed) isCurrent() bool {
	asOf := f.validAsOf.Load()
	return asOf > f.committedAt.Load() && time.Since(f.start)-time.Duration(asOf) < edgeproto.TrustWindow
}

// Committed records that this core has committed a change, and makes the feed poll. It never waits
// for a poll.
func (f *Feed) Committed() {
	f.mu.Lock()
	f.committedAt.Store(int64(time.Since(f.start))) // under the lock, so that it never decreases
	f.mu.Unlock()
	f.Notify()
}

// Notify makes the feed poll for changes. It never blocks.
func (f *Feed) Notify() {
	select {
	case f.wake <- struct{}{}:
	default: // a poll is pending already
	}
}

// Run numbers and streams changes until ctx ends.
func (f *Feed) Run(ctx context.Context) {
	poll := time.NewTicker(pollInterval)
	defer poll.Stop()

	failing := false
	for {
		err := f.pollOnce(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && !failing:
			f.log.ErrorContext(ctx, "changes cannot be read, edges look up every mapping again", "error", err)
		case err == nil && failing:
			f.log.InfoContext(ctx, "changes are read again")
		}
		failing = err != nil

		select {
		case <-ctx.Done():
			return
		case <-f.wake:
		case <-poll.C:
		}
	}
}

// Trim deletes changes older than ChangeRetention and returns how many.
func (f *Feed) Trim(ctx context.Context) (int, error) {
	return f.store.TrimChanges(ctx, time.Now().Add(-ChangeRetention))
}

// pollOnce numbers changes, reads the new ones and wakes the streams.
func (f *Feed) pollOnce(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, pollTimeout)
	defer cancel()
	feedPolls.Inc()
	f.mu.Lock()
	f.pollsStarted++
	number, previous := f.pollsStarted, f.head
	f.mu.Unlock()
	began := time.Now()

	head, err := f.store.NumberChanges(ctx)
	if err == nil && head.Epoch == previous.Epoch && head.Revision < previous.Revision {
		err = f.restartEpoch(ctx, previous.Cursor)
	}
	if err != nil {
		feedFailures.Inc()
		return err
	}
	var events []edgeproto.Event
	// On the first poll, in a new epoch, and too far behind the head nothing is read
	// into memory: streams that lag read from the store or restart.
	if previous.Epoch == head.Epoch && head.Trimmed <= previous.Revision && head.Revision-previous.Revision <= maxRecent {
		for at := previous.Revision; at < head.Revision; {
			page, err := f.store.ChangesAfter(ctx, at, changesPerPage)
			if err != nil {
				feedFailures.Inc()
				return err
			}
			if len(page) == 0 {
				break
			}
			events = append(events, page...)
			at = page[len(page)-1].Revision
		}
		// More may have been numbered since the head was read.
		if n := len(events); n > 0 {
			head.Revision = events[n-1].Revision
		}
	} else if previous.Epoch != "" && previous.Epoch != head.Epoch {
		f.log.WarnContext(ctx, "a new epoch begins, edges flush their mapping caches", "epoch", head.Epoch, "revision", head.Revision)
	}

	f.publish(number, polledChanges{
		head: head, asOf: began, changes: events,
		complete: head.Cursor == previous.Cursor || (len(events) > 0 && events[0].Revision == previous.Revision+1),
	})
	return nil
}

// publish applies what a poll with a number has found, and wakes the streams.
func (f *Feed) publish(number int, polled polledChanges) {
	for _, apply := range f.applies {
		apply(polled)
	}
	f.validAsOf.Store(int64(polled.asOf.Sub(f.start)))

	f.mu.Lock()
	defer f.mu.Unlock()
	if !polled.complete {
		f.recent = nil // the new changes do not continue it
	}
	f.recent = append(f.recent, polled.changes...)
	f.recent = slices.Delete(f.recent, 0, max(0, len(f.recent)-maxRecent))
	f.head, f.asOf, f.lastPoll = polled.head, polled.asOf, number
	feedRevision.Set(float64(polled.head.Revision))
	close(f.polled)
	f.polled = make(chan struct{})
}

// restartEpoch begins a new epoch, since the store has lost changes up to a cursor that was seen:
// it was restored in place. The next poll reads the epoch.
func (f *Feed) restartEpoch(ctx context.Context, seen edgeproto.Cursor) error {
	if err := f.store.RenewEpoch(ctx, seen); err != nil {
		return err
	}
	f.Notify()
	return errRevisionRegressed
}

// Head returns the head as of the last poll: the zero value before the first one.
func (f *Feed) Head() FeedHead {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.head
}

// feedTail is the end of the feed after some revision.
type feedTail struct {
	head     FeedHead
	asOf     time.Time         // everything committed by then is numbered up to head
	changes  []edgeproto.Event // after the revision, as far as they are in memory
	complete bool              // no change between that revision and the head is missing
	next     <-chan struct{}   // closed when the next poll succeeds
}

// tailAfter returns the end of the feed after a revision.
func (f *Feed) tailAfter(revision int64) feedTail {
	f.mu.Lock()
	defer f.mu.Unlock()
	i, _ := slices.BinarySearchFunc(f.recent, revision+1, func(e edgeproto.Event, r int64) int { return int(e.Revision - r) })
	changes := slices.Clone(f.recent[i:])
	complete := revision == f.head.Revision || (len(changes) > 0 && changes[0].Revision == revision+1)
	return feedTail{head: f.head, asOf: f.asOf, changes: changes, complete: complete, next: f.polled}
}

// Follow sends the stream of an edge at a cursor, in order: where the stream starts, every change
// since, and heartbeats that say it is complete. It returns the error of ctx when ctx ends, or that
// of send. Heartbeats carry the time since the edge's request arrived.
func (f *Feed) Follow(ctx context.Context, from edgeproto.Cursor, arrived time.Time, send func(...edgeproto.Event) error) error {
	feedStreams.Inc()
	defer feedStreams.Dec()

	if err := f.waitNextPoll(ctx); err != nil {
		return err
	}
	if head := f.Head(); head.Epoch == from.Epoch && head.Revision < from.Revision {
		ctx, cancel := context.WithTimeout(ctx, pollTimeout)
		defer cancel()
		return f.restartEpoch(ctx, from) // the edge reconnects
	}
	s := stream{feed: f, arrived: arrived, position: from, send: send}
	for {
		next, err := s.advance(ctx)
		if err == nil {
			err = awaitPoll(ctx, next, time.After(pollWait))
		}
		if err != nil {
			return err
		}
	}
}

// awaitPoll waits for the end of a poll.
func awaitPoll(ctx context.Context, poll <-chan struct{}, timeout <-chan time.Time) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timeout:
		return errNoPoll
	case <-poll:
		return nil
	}
}

// waitNextPoll waits for the end of a poll that began after the call. Another core may have
// numbered more than this one has read, and an edge that was connected there must not be told that
// its cursor does not exist.
func (f *Feed) waitNextPoll(ctx context.Context) error {
	f.mu.Lock()
	started := f.pollsStarted
	f.mu.Unlock()
	f.Notify()
	for timeout := time.After(pollWait); ; {
		f.mu.Lock()
		ended, next := f.lastPoll, f.polled
		f.mu.Unlock()
		if ended > started {
			return nil
		}
		if err := awaitPoll(ctx, next, timeout); err != nil {
			return err
		}
	}
}

// stream is the stream to one edge.
type stream struct {
	feed     *Feed
	arrived  time.Time        // when the edge's request arrived
	position edgeproto.Cursor // of the last event sent
	started  bool
	send     func(...edgeproto.Event) error
}

// advance sends new changes, and returns a channel that is closed when there may be more.
func (s *stream) advance(ctx context.Context) (next <-chan struct{}, err error) {
	tail := s.feed.tailAfter(s.position.Revision)
	if !tail.head.Covers(s.position) {
		s.position, tail.changes, tail.complete, s.started = tail.head.Cursor, nil, true, false
	}
	if !s.started {
		if err := s.send(edgeproto.Event{Cursor: s.position, Start: true}); err != nil {
			return nil, err
		}
		s.started = true
	}
	if tail.complete {
		s.moveTo(tail.changes)
		return tail.next, s.send(append(tail.changes, edgeproto.Event{Cursor: s.position, AsOf: tail.asOf.Sub(s.arrived)})...)
	}
	ctx, cancel := context.WithTimeout(ctx, pollTimeout)
	defer cancel()
	changes, err := s.feed.store.ChangesAfter(ctx, s.position.Revision, changesPerPage)
	if err != nil {
		return nil, err
	}
	// Changes numbered since the head was read are sent after the next poll.
	changes = slices.DeleteFunc(changes, func(e edgeproto.Event) bool { return e.Revision > tail.head.Revision })
	if len(changes) == 0 || changes[0].Revision != s.position.Revision+1 {
		return nil, errGap // trimmed meanwhile; the edge reconnects and restarts
	}
	s.moveTo(changes)
	return closedChan, s.send(changes...) // the next page is read at once
}

// moveTo gives changes the stream's epoch, and moves the stream past them.
func (s *stream) moveTo(changes []edgeproto.Event) {
	for i := range changes {
		changes[i].Epoch = s.position.Epoch
		s.position.Revision = changes[i].Revision
	}
}
