package core

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/veneer-skins/veneer/shared/edgeproto"
)

// FeedHead is how far changes are numbered, and from where on they are kept.
type FeedHead struct {
	edgeproto.Cursor
	Trimmed int64 // the highest revision whose change is no longer kept
}

// covers reports whether every change after a position is kept.
func (h FeedHead) covers(from edgeproto.Cursor) bool {
	return from.Epoch == h.Epoch && h.Trimmed <= from.Revision && from.Revision <= h.Revision
}

// ChangeStore keeps the changes that transactions wrote.
type ChangeStore interface {
	// NumberChanges numbers all changes that are committed and have no number yet, in
	// a transaction of its own that wakes the other cores, and returns the head. It
	// costs one query when there is nothing to number. When the database was
	// promoted or restored since, it begins a new epoch.
	NumberChanges(ctx context.Context) (FeedHead, error)

	// RenewEpoch begins a new epoch if the feed is in the position's and has not
	// come as far: somebody has heard of changes that are gone.
	RenewEpoch(ctx context.Context, seen edgeproto.Cursor) error

	// ChangesAfter returns changes after a revision in order, at most limit.
	ChangesAfter(ctx context.Context, revision int64, limit int) ([]edgeproto.Event, error)

	// TrimChanges deletes changes that were numbered before a time and returns how
	// many.
	TrimChanges(ctx context.Context, before time.Time) (int, error)
}

// Feed numbers changes and streams them to edges. One runs in every core.
//
// Whoever commits a change rings; so does every other core when it has numbered
// changes. A poll is the backstop when a core dies between its commit and its
// ring. Each round that reached the store ends with a beat on every stream, so
// the beats stop when this core no longer knows whether its streams are
// complete.
type Feed struct {
	store ChangeStore
	log   *slog.Logger
	wake  chan struct{}

	mu           sync.Mutex
	head         FeedHead
	asOf         time.Time         // all that was committed by then is numbered up to head
	recent       []edgeproto.Event // the last changes up to head, in order
	pollsStarted int               // rounds
	lastPoll     int               // the number of the last round that ended well
	polled       chan struct{}     // closed, and replaced, when a round has ended well
}

// Sizes and times of the feed.
const (
	// pollInterval is the longest time between two rounds, and so between two
	// beats.
	pollInterval = 200 * time.Millisecond
	// maxRecent is how many changes are kept in memory for streams that lag.
	maxRecent = 4096
	// changesPerPage is how many changes are read from the store at a time.
	changesPerPage = 1024
	// pollTimeout bounds a round: one that hangs must not stop the next. What a
	// round of more than a second finds is too old for edges to rely on.
	pollTimeout = 2 * time.Second
	// pollWait is how long a stream waits for a round. Its reader has given it up by
	// then, and only by writing to it would that be noticed.
	pollWait = 3 * time.Second
	// ChangeRetention is how long numbered changes are kept for edges that were away.
	ChangeRetention = 24 * time.Hour
)

var (
	errNoPoll            = errors.New("there was nothing to be said for too long")
	errGap               = errors.New("a change is missing")
	errRevisionRegressed = errors.New("the feed went back to an earlier revision")
)

// closedChan is a channel that never blocks a receiver.
var closedChan = func() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

var (
	feedPolls    = promauto.NewCounter(prometheus.CounterOpts{Name: "veneer_core_feed_polls_total", Help: "Looks of the feed for new changes."})
	feedFailures = promauto.NewCounter(prometheus.CounterOpts{Name: "veneer_core_feed_failures_total", Help: "Looks of the feed for new changes that failed."})
	feedStreams  = promauto.NewGauge(prometheus.GaugeOpts{Name: "veneer_core_feed_streams", Help: "Streams of changes to edges that are open."})
	feedRevision = promauto.NewGauge(prometheus.GaugeOpts{Name: "veneer_core_feed_revision", Help: "Revision of the latest change that the feed has read."})
)

// NewFeed returns a feed that has not begun: Run does.
func NewFeed(store ChangeStore, log *slog.Logger) *Feed {
	return &Feed{store: store, log: log, wake: make(chan struct{}, 1), polled: make(chan struct{})}
}

// Notify tells the feed that there may be something to number. It never blocks.
func (f *Feed) Notify() {
	select {
	case f.wake <- struct{}{}:
	default: // it rings already
	}
}

// Run numbers and distributes changes until ctx ends.
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
			f.log.ErrorContext(ctx, "changes cannot be read, edges ask again for every mapping", "error", err)
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

// Trim deletes the changes that are no longer kept and returns how many.
func (f *Feed) Trim(ctx context.Context) (int, error) {
	return f.store.TrimChanges(ctx, time.Now().Add(-ChangeRetention))
}

// pollOnce numbers what is to be numbered, reads what is new, and tells the
// streams.
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
	// At the beginning, in a new epoch, and after a long absence there is nothing
	// to go on from: streams that lag read from the store or start anew.
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
		f.log.WarnContext(ctx, "a new epoch begins, edges forget all mappings", "epoch", head.Epoch, "revision", head.Revision)
	}

	f.mu.Lock()
	defer f.mu.Unlock()
	if head.Cursor != f.head.Cursor && (len(events) == 0 || events[0].Revision != f.head.Revision+1) {
		f.recent = nil // what follows does not follow on it
	}
	f.recent = append(f.recent, events...)
	f.recent = slices.Delete(f.recent, 0, max(0, len(f.recent)-maxRecent))
	f.head, f.asOf, f.lastPoll = head, began, number
	feedRevision.Set(float64(head.Revision))
	close(f.polled)
	f.polled = make(chan struct{})
	return nil
}

// restartEpoch begins a new epoch, since changes up to a position are known that the
// store no longer has: it was restored in place. The next round reads it.
func (f *Feed) restartEpoch(ctx context.Context, seen edgeproto.Cursor) error {
	if err := f.store.RenewEpoch(ctx, seen); err != nil {
		return err
	}
	f.Notify()
	return errRevisionRegressed
}

// Head returns how far the feed has come: its zero value before the first
// round.
func (f *Feed) Head() FeedHead {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.head
}

// feedTail is what a stream goes on from.
type feedTail struct {
	head     FeedHead
	asOf     time.Time         // all that was committed by then is numbered up to head
	changes  []edgeproto.Event // after a revision, as far as they are in memory
	complete bool              // no change between that revision and the head is missing
	next     <-chan struct{}   // closed at the end of the next round
}

// tailAfter returns what happened after a revision.
func (f *Feed) tailAfter(revision int64) feedTail {
	f.mu.Lock()
	defer f.mu.Unlock()
	i, _ := slices.BinarySearchFunc(f.recent, revision+1, func(e edgeproto.Event, r int64) int { return int(e.Revision - r) })
	changes := slices.Clone(f.recent[i:])
	complete := revision == f.head.Revision || (len(changes) > 0 && changes[0].Revision == revision+1)
	return feedTail{head: f.head, asOf: f.asOf, changes: changes, complete: complete, next: f.polled}
}

// Follow sends what an edge at a position must hear, in order: where its stream
// starts, every change since, and beats that say it is complete. It returns
// when ctx ends, with ctx's error, or when send fails. Beats count from when the
// edge's request arrived.
func (f *Feed) Follow(ctx context.Context, from edgeproto.Cursor, arrived time.Time, send func(...edgeproto.Event) error) error {
	feedStreams.Inc()
	defer feedStreams.Dec()

	if err := f.waitNextPoll(ctx); err != nil {
		return err
	}
	if head := f.Head(); head.Epoch == from.Epoch && head.Revision < from.Revision {
		ctx, cancel := context.WithTimeout(ctx, pollTimeout)
		defer cancel()
		return f.restartEpoch(ctx, from) // the edge comes again
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

// awaitPoll waits for the end of a round.
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

// waitNextPoll waits for the end of a round that began after the call. Another
// core may have numbered more than this one has read, and an edge that comes
// from there must not be told that its position does not exist.
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

// stream is one reader of the feed.
type stream struct {
	feed     *Feed
	arrived  time.Time        // when its request did
	position edgeproto.Cursor // of what was sent last
	started  bool
	send     func(...edgeproto.Event) error
}

// advance sends what is new, and returns what is closed when there may be more.
func (s *stream) advance(ctx context.Context) (next <-chan struct{}, err error) {
	tail := s.feed.tailAfter(s.position.Revision)
	if !tail.head.covers(s.position) {
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
	// What was numbered since the head was read comes with the next round.
	changes = slices.DeleteFunc(changes, func(e edgeproto.Event) bool { return e.Revision > tail.head.Revision })
	if len(changes) == 0 || changes[0].Revision != s.position.Revision+1 {
		return nil, errGap // trimmed at this moment; the edge comes again and starts anew
	}
	s.moveTo(changes)
	return closedChan, s.send(changes...) // straight on to the next page
}

// moveTo gives changes the stream's epoch, and moves the stream behind them.
func (s *stream) moveTo(changes []edgeproto.Event) {
	for i := range changes {
		changes[i].Epoch = s.position.Epoch
		s.position.Revision = changes[i].Revision
	}
}
