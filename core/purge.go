package core

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/veneer-skins/veneer/shared/edgeproto"
)

// Purge is what content delivery networks must forget: all answers with one of
// the tags or, when nobody knows what has changed, all answers.
type Purge struct {
	edgeproto.Cursor // of the last change in it
	All              bool
	Tags             []string
}

// Purger tells content delivery networks.
type Purger interface {
	// Purge returns nil once a purge is in good hands. It may be called again with
	// the same, and by two cores at once.
	Purge(ctx context.Context, purge Purge) error
}

// PurgeState is how far purges have come and how far they may go.
type PurgeState struct {
	Done         edgeproto.Cursor // everything up to here is purged
	Head         FeedHead
	Acknowledged int64 // the last revision that all connected edges have acknowledged
}

// NumberedChange is a change in the feed.
type NumberedChange struct {
	Revision int64
	Keys     []edgeproto.Key
	Age      time.Duration // since it was numbered
}

// PurgeStore keeps what the cores share about purges.
type PurgeStore interface {
	// RegisterStream says that a stream to an edge begins, of which nothing is
	// acknowledged, and that from this moment on nobody waits for the edge's former
	// stream; uuid.Nil is for none.
	RegisterStream(ctx context.Context, stream, former uuid.UUID) error

	// ReportStreams says that streams to edges are alive and what they acknowledged;
	// those with the zero Position nothing that would be news.
	ReportStreams(ctx context.Context, streams map[uuid.UUID]edgeproto.Cursor) error

	// TrimStreams deletes the streams that were last alive before a time and returns
	// how many.
	TrimStreams(ctx context.Context, before time.Time) (int, error)

	// AcquirePurgeLease makes a core the one that purges, for a while from now on, and
	// returns the state, unless another core is: then it is not held. The first to
	// hold them ever begins at the head of the feed.
	AcquirePurgeLease(ctx context.Context, core uuid.UUID, lease time.Duration) (state PurgeState, held bool, err error)

	// ChangesToPurge returns changes after a revision in order, at most limit.
	ChangesToPurge(ctx context.Context, revision int64, limit int) ([]NumberedChange, error)

	// SetPurged notes that everything up to a position is purged, if the core still
	// is the one that purges.
	SetPurged(ctx context.Context, core uuid.UUID, done edgeproto.Cursor) error
}

// CDNPurger has content delivery networks forget what has changed. One runs in
// every core of a site that has a hook; of all, one at a time purges, and another
// takes over when it dies.
//
// A purge must not run ahead of the edges: the first visitor after it would have
// an edge that has not heard of the change fill the network with the old picture
// again. So edges acknowledge what they have applied, to any core, and a change
// is purged when all connected ones have, or after ackTimeout. A stream that broke
// off counts as connected for a while, since its edge believes its memories a
// second longer, unless the edge has come back on another one.
//
// The feed itself is the outbox: a row says up to where it is purged, and moves on
// only when the hook has taken a purge. What the feed no longer tells, because it
// was trimmed or history was rewritten, makes everything be purged.
type CDNPurger struct {
	store   PurgeStore
	purger  Purger
	feed    *Feed
	timeout time.Duration // of the hook
	log     *slog.Logger
	core    uuid.UUID

	mu           sync.Mutex
	streams      map[uuid.UUID]time.Time        // to edges of this core, and when they ended; zero: they go on
	acknowledged map[uuid.UUID]edgeproto.Cursor // acknowledged since the last round, of streams of any core

	// The rest belongs to Run, but for oldest.
	leading   bool             // this core purges
	done      edgeproto.Cursor // up to here, while it does
	lastRun   time.Time        // when the last round began
	lostSince time.Time        // when changes were found to be lost; zero: none are
	retryAt   time.Time        // when the hook is tried again after it failed
	backoff   time.Duration
	oldest    atomic.Int64 // when the oldest change to be purged was numbered, in Unix nanoseconds; 0: none is
}

// Sizes and times of purges.
const (
	// ackTimeout is how long a change waits for edges to acknowledge it.
	ackTimeout = 2 * time.Second
	// purgeTick is the time between two looks at what there is to be done.
	purgeTick = 50 * time.Millisecond
	// purgeInterval is the time between two rounds when there is nothing to be done.
	// Streams count as connected for StreamTTL after them.
	purgeInterval = 500 * time.Millisecond
	// edgeTrustWindow is how long an edge believes its memories without a beat.
	edgeTrustWindow = time.Second
	// StreamTTL is how long a stream to an edge counts as connected without being
	// shared, as when its core has died. The last beat may have come an interval
	// later, and is believed in.
	StreamTTL = 2 * time.Second
	// streamRetention is how long streams are kept for nothing.
	streamRetention = time.Hour
	// maxPurgeTags is the most tags in a purge, unless one change has more.
	maxPurgeTags = 256
	// leaseMargin is how much longer than a post a core holds purges.
	leaseMargin = 2 * time.Second

	minPurgeBackoff = 250 * time.Millisecond
	maxPurgeBackoff = time.Minute
)

var (
	purgesDone           = promauto.NewCounter(prometheus.CounterOpts{Name: "veneer_core_purges_total", Help: "Purges that the delivery network has taken."})
	purgesFailed         = promauto.NewCounter(prometheus.CounterOpts{Name: "veneer_core_purge_failures_total", Help: "Attempts to purge that failed."})
	purgesUnacknowledged = promauto.NewCounter(prometheus.CounterOpts{Name: "veneer_core_purges_unacknowledged_total", Help: "Purges that did not wait for all edges to acknowledge the change."})
	purgesAll            = promauto.NewCounter(prometheus.CounterOpts{Name: "veneer_core_purges_of_everything_total", Help: "Purges of all that the delivery network has."})
)

// NewCDNPurger returns the purges of a feed's changes that have not begun: Run does.
// A call of the hook may take as long as the timeout.
func NewCDNPurger(store PurgeStore, purger Purger, feed *Feed, timeout time.Duration, log *slog.Logger) *CDNPurger {
	return &CDNPurger{
		store: store, purger: purger, feed: feed, timeout: timeout, log: log, core: uuid.New(),
		streams: map[uuid.UUID]time.Time{}, acknowledged: map[uuid.UUID]edgeproto.Cursor{}, backoff: minPurgeBackoff,
	}
}

// Register notes a stream to an edge before anything is sent on it, and returns the
// name under which the edge acknowledges. From then on purges wait for it, and no
// longer for the edge's former stream, on which nothing is acknowledged any more,
// though its core may take seconds to notice; uuid.Nil is for none.
func (p *CDNPurger) Register(ctx context.Context, former uuid.UUID) (uuid.UUID, error) {
	ctx, cancel := context.WithTimeout(ctx, pollTimeout)
	defer cancel()
	stream := uuid.New()
	if err := p.store.RegisterStream(ctx, stream, former); err != nil {
		return uuid.Nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.streams[stream] = time.Time{}
	return stream, nil
}

// Unregister notes that a stream is over.
func (p *CDNPurger) Unregister(stream uuid.UUID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.streams[stream] = time.Now()
}

// Acknowledge notes that an edge has applied all changes up to a position. The
// stream may be another core's: a balancer sends requests where it likes.
func (p *CDNPurger) Acknowledge(stream uuid.UUID, applied edgeproto.Cursor) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.acknowledged[stream] = applied
}

// Run shares what is known of edges, and purges when it is this core's turn,
// until ctx ends.
func (p *CDNPurger) Run(ctx context.Context) {
	tick := time.NewTicker(purgeTick)
	defer tick.Stop()
	failing := false
	for {
		select {
		case <-ctx.Done():
			p.releaseLease(ctx)
			return
		case <-tick.C:
		}
		if !p.due() {
			continue
		}
		err := p.runOnce(ctx)
		switch {
		case ctx.Err() != nil || err == nil && time.Now().Before(p.retryAt):
			continue // it is over, or not known to be well
		case err != nil && !failing:
			p.log.ErrorContext(ctx, "changes cannot be purged, content delivery networks keep old answers", "error", err)
		case err == nil && failing && p.leading:
			p.log.InfoContext(ctx, "changes are purged again")
		}
		failing = err != nil
	}
}

// due reports whether there is something to be done.
func (p *CDNPurger) due() bool {
	now, head := time.Now(), p.feed.Head()
	if head.Epoch == "" {
		return false // the feed decides first whether its epoch goes on
	}
	if now.Sub(p.lastRun) >= purgeInterval {
		return true
	}
	p.mu.Lock()
	acknowledged := len(p.acknowledged) > 0
	p.mu.Unlock()
	return acknowledged || p.leading && head.Cursor != p.done && !now.Before(p.retryAt)
}

// runOnce shares what was heard of edges and, if this core is the one that purges,
// purges what may be.
func (p *CDNPurger) runOnce(ctx context.Context) error {
	p.lastRun = time.Now()
	state, held, err := p.acquireLease(ctx)
	p.leading, p.done = held, state.Done
	if err != nil {
		return err
	}
	if !held {
		p.oldest.Store(0)
		p.lostSince, p.retryAt, p.backoff = time.Time{}, time.Time{}, minPurgeBackoff
		return nil
	}
	if p.lastRun.Before(p.retryAt) {
		return nil
	}
	purge, err := p.nextPurge(ctx, state)
	if err != nil || purge.Cursor == state.Done {
		return err
	}
	if err := p.send(ctx, purge); err != nil {
		purgesFailed.Inc()
		p.retryAt = time.Now().Add(p.backoff/2 + rand.N(p.backoff/2)) //nolint:gosec // not a secret
		p.backoff = min(2*p.backoff, maxPurgeBackoff)
		return err
	}
	p.lostSince, p.backoff = time.Time{}, minPurgeBackoff
	if purge.Revision > state.Acknowledged {
		purgesUnacknowledged.Inc()
	}
	ctx, cancel := context.WithTimeout(ctx, pollTimeout)
	defer cancel()
	if err := p.store.SetPurged(ctx, p.core, purge.Cursor); err != nil {
		return err
	}
	p.done = purge.Cursor
	if p.done == state.Head.Cursor {
		p.oldest.Store(0)
	}
	return nil
}

// acquireLease shares what was heard of edges, and tries to be the one that purges.
func (p *CDNPurger) acquireLease(ctx context.Context) (PurgeState, bool, error) {
	ctx, cancel := context.WithTimeout(ctx, pollTimeout)
	defer cancel()
	p.mu.Lock()
	streams := p.acknowledged
	p.acknowledged = map[uuid.UUID]edgeproto.Cursor{}
	for stream, ended := range p.streams {
		if !ended.IsZero() && p.lastRun.Sub(ended) > edgeTrustWindow {
			delete(p.streams, stream)
		} else if _, ok := streams[stream]; !ok {
			streams[stream] = edgeproto.Cursor{} // alive, but nothing was heard
		}
	}
	p.mu.Unlock()
	// Whoever waits for what is lost with an error waits for ackTimeout, no longer.
	if err := p.store.ReportStreams(ctx, streams); err != nil {
		return PurgeState{}, false, err
	}
	return p.store.AcquirePurgeLease(ctx, p.core, p.timeout+leaseMargin)
}

// nextPurge returns what may be purged: nothing if its position is that of what is
// done.
func (p *CDNPurger) nextPurge(ctx context.Context, state PurgeState) (Purge, error) {
	purge := Purge{Cursor: state.Done}
	if state.Done == state.Head.Cursor {
		p.oldest.Store(0)
		return purge, nil
	}
	if !state.Head.covers(state.Done) {
		return p.purgeAll(ctx, state), nil
	}
	ctx, cancel := context.WithTimeout(ctx, pollTimeout)
	defer cancel()
	changes, err := p.store.ChangesToPurge(ctx, state.Done.Revision, changesPerPage)
	if err != nil {
		return purge, err
	}
	if len(changes) == 0 || changes[0].Revision != state.Done.Revision+1 {
		return purge, errGap // trimmed at this moment; the next round finds out
	}
	p.oldest.Store(time.Now().Add(-changes[0].Age).UnixNano())
	seen := map[string]bool{}
	for _, change := range changes {
		if change.Revision > state.Acknowledged && change.Age < ackTimeout {
			break
		}
		tags := purge.Tags
		for _, key := range change.Keys {
			if tag := key.Tag(); tag != "" && !seen[tag] {
				seen[tag] = true
				tags = append(tags, tag)
			}
		}
		if len(purge.Tags) > 0 && len(tags) > maxPurgeTags {
			break
		}
		purge.Revision, purge.Tags = change.Revision, tags
	}
	return purge, nil
}

// purgeAll returns a purge of everything, since it is not known what has
// changed. Edges that know it forget everything, too, and are waited for.
func (p *CDNPurger) purgeAll(ctx context.Context, state PurgeState) Purge {
	if p.lostSince.IsZero() {
		p.lostSince = p.lastRun
		p.oldest.Store(p.lostSince.UnixNano())
		p.log.ErrorContext(ctx, "changes are lost that were not purged, everything is", "purged", state.Done, "head", state.Head)
	}
	if state.Acknowledged < state.Head.Revision && p.lastRun.Sub(p.lostSince) < ackTimeout {
		return Purge{Cursor: state.Done}
	}
	return Purge{Cursor: state.Head.Cursor, All: true}
}

// send has the hook take a purge.
func (p *CDNPurger) send(ctx context.Context, purge Purge) error {
	if !purge.All && len(purge.Tags) == 0 {
		return nil // no answer depends on what has changed
	}
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	if err := p.purger.Purge(ctx, purge); err != nil {
		return fmt.Errorf("purge up to revision %d: %w", purge.Revision, err)
	}
	purgesDone.Inc()
	if purge.All {
		purgesAll.Inc()
	}
	return nil
}

// releaseLease lets another core take over at once.
func (p *CDNPurger) releaseLease(ctx context.Context) {
	if !p.leading {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if _, _, err := p.store.AcquirePurgeLease(ctx, p.core, 0); err != nil {
		p.log.WarnContext(ctx, "purges are not handed over, another core takes them later", "error", err)
	}
}

// Trim deletes the streams that are over and returns how many.
func (p *CDNPurger) Trim(ctx context.Context) (int, error) {
	return p.store.TrimStreams(ctx, time.Now().Add(-streamRetention))
}

// Expose registers metrics of the purges. The lag is the purging core's; it is 0 at the
// others.
func (p *CDNPurger) Expose(registry prometheus.Registerer) {
	promauto.With(registry).NewGaugeFunc(prometheus.GaugeOpts{
		Name: "veneer_core_purge_lag_seconds", Help: "Time that the oldest change has been waiting to be purged.",
	}, func() float64 {
		oldest := p.oldest.Load()
		if oldest == 0 {
			return 0
		}
		return time.Since(time.Unix(0, oldest)).Seconds()
	})
}
