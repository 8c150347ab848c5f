package cdnpurge

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/shared/edgeproto"
)

// Purge is what a CDN must drop: all responses with one of the tags or, if changes were lost, all
// responses.
type Purge struct {
	edgeproto.Cursor // of the last change in it
	All              bool
	Tags             []string
}

// CDN is a content delivery network in front of the edges.
type CDN interface {
	// Purge returns nil once the purge is accepted. The same purge may come again, also from two
	// cores at once.
	Purge(ctx context.Context, purge Purge) error
}

// Purger purges changed responses from CDNs. One runs in every core of a site with a purge hook.
// A lease in the database elects the one that purges, and another takes over when it dies.
//
// A purge must not overtake the edges: an edge that still has the old mapping would fill the CDN
// with the old picture again. So edges acknowledge the changes they have applied, to any core, and
// a change is purged when all connected edges have acknowledged it, or after ackTimeout. A broken
// stream counts as connected for edgeproto.TrustWindow, since its edge goes on using its cached
// mappings that long, unless the edge has reconnected.
//
// The feed itself is the outbox: a row holds the cursor up to which it is purged, and advances
// only when the CDN has accepted a purge. If changes were lost, because they were trimmed or the
// database was restored, everything is purged.
type Purger struct {
	store   core.PurgeStore
	cdn     CDN
	feed    *core.Feed
	timeout time.Duration // of a call of the CDN
	log     *slog.Logger
	core    uuid.UUID

	mu           sync.Mutex
	streams      map[uuid.UUID]time.Time        // to edges of this core, and when they ended; zero while open
	acknowledged map[uuid.UUID]edgeproto.Cursor // since the last run, of streams of any core

	// Only Run uses the rest, except for oldest.
	leading   bool             // this core has the lease
	done      edgeproto.Cursor // purged up to here, while it has the lease
	lastRun   time.Time        // when the last run began
	lostSince time.Time        // when changes were found to be lost; zero if none are
	retryAt   time.Time        // when to try again after a failure
	backoff   time.Duration
	oldest    atomic.Int64 // when the oldest change to be purged was numbered, in Unix nanoseconds; 0 if none
}

// Sizes and times of purges.
const (
	// ackTimeout is how long a change waits for edges to acknowledge it.
	ackTimeout = 2 * time.Second
	// purgeTick is how often the purger looks for work.
	purgeTick = 50 * time.Millisecond
	// purgeInterval is the time between two runs when there is no work. Streams count as connected
	// for core.StreamTTL after a run.
	purgeInterval = 500 * time.Millisecond
	// streamRetention is how long streams that have ended are stored.
	streamRetention = time.Hour
	// changesPerPage is how many changes are read from the store at a time.
	changesPerPage = 1024
	// storeTimeout bounds the queries of a run.
	storeTimeout = 2 * time.Second
	// maxPurgeTags is the most tags in a purge, unless one change has more.
	maxPurgeTags = 256
	// leaseMargin is how much longer than a call of the CDN the lease is.
	leaseMargin = 2 * time.Second

	minPurgeBackoff = 250 * time.Millisecond
	maxPurgeBackoff = time.Minute
)

var (
	purgesDone           = promauto.NewCounter(prometheus.CounterOpts{Name: "veneer_core_purges_total", Help: "Purges that the CDN hook has accepted."})
	purgesFailed         = promauto.NewCounter(prometheus.CounterOpts{Name: "veneer_core_purge_failures_total", Help: "Failed attempts to purge."})
	purgesUnacknowledged = promauto.NewCounter(prometheus.CounterOpts{Name: "veneer_core_purges_unacknowledged_total", Help: "Purges sent before all edges had acknowledged the change."})
	purgesAll            = promauto.NewCounter(prometheus.CounterOpts{Name: "veneer_core_purges_of_everything_total", Help: "Purges of everything in the CDN."})
)

var errGap = errors.New("a change is missing")

// NewPurger returns a purger of a feed's changes that does nothing until Run. The timeout bounds
// a call of the CDN.
func NewPurger(store core.PurgeStore, cdn CDN, feed *core.Feed, timeout time.Duration, log *slog.Logger) *Purger {
	return &Purger{
		store: store, cdn: cdn, feed: feed, timeout: timeout, log: log, core: uuid.New(),
		streams: map[uuid.UUID]time.Time{}, acknowledged: map[uuid.UUID]edgeproto.Cursor{}, backoff: minPurgeBackoff,
	}
}

// Register adds a stream to an edge before anything is sent on it, and returns the id under which
// the edge acknowledges. From then on purges wait for this stream, and no longer for the edge's
// former one, whose end another core may notice only seconds later; uuid.Nil is for none.
func (p *Purger) Register(ctx context.Context, former uuid.UUID) (uuid.UUID, error) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
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

// Unregister records that a stream has ended.
func (p *Purger) Unregister(stream uuid.UUID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.streams[stream] = time.Now()
}

// Acknowledge records that an edge has applied all changes up to a cursor. The stream may belong
// to another core, since a load balancer may send the request to any.
func (p *Purger) Acknowledge(stream uuid.UUID, applied edgeproto.Cursor) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.acknowledged[stream] = applied
}

// Run reports the state of edges, and purges while this core has the lease, until ctx ends.
func (p *Purger) Run(ctx context.Context) {
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
			continue // ctx has ended, or the last failure is not yet retried
		case err != nil && !failing:
			p.log.ErrorContext(ctx, "changes cannot be purged, CDNs keep old responses", "error", err)
		case err == nil && failing && p.leading:
			p.log.InfoContext(ctx, "changes are purged again")
		}
		failing = err != nil
	}
}

// due reports whether there is work.
func (p *Purger) due() bool {
	now, head := time.Now(), p.feed.Head()
	if head.Epoch == "" {
		return false // the feed has not polled yet
	}
	if now.Sub(p.lastRun) >= purgeInterval {
		return true
	}
	p.mu.Lock()
	acknowledged := len(p.acknowledged) > 0
	p.mu.Unlock()
	return acknowledged || p.leading && head.Cursor != p.done && !now.Before(p.retryAt)
}

// runOnce reports the state of edges and, if this core has the lease, purges what may be purged.
func (p *Purger) runOnce(ctx context.Context) error {
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
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
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

// acquireLease reports the state of edges, and tries to get the lease.
func (p *Purger) acquireLease(ctx context.Context) (core.PurgeState, bool, error) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	p.mu.Lock()
	streams := p.acknowledged
	p.acknowledged = map[uuid.UUID]edgeproto.Cursor{}
	for stream, ended := range p.streams {
		if !ended.IsZero() && p.lastRun.Sub(ended) > edgeproto.TrustWindow {
			delete(p.streams, stream)
		} else if _, ok := streams[stream]; !ok {
			streams[stream] = edgeproto.Cursor{} // alive, but nothing new acknowledged
		}
	}
	p.mu.Unlock()
	// Acknowledgements that are lost with an error delay purges by ackTimeout at most.
	if err := p.store.ReportStreams(ctx, streams); err != nil {
		return core.PurgeState{}, false, err
	}
	return p.store.AcquirePurgeLease(ctx, p.core, p.timeout+leaseMargin)
}

// nextPurge returns the next purge; one at the cursor of state.Done stands for none.
func (p *Purger) nextPurge(ctx context.Context, state core.PurgeState) (Purge, error) {
	purge := Purge{Cursor: state.Done}
	if state.Done == state.Head.Cursor {
		p.oldest.Store(0)
		return purge, nil
	}
	if !state.Head.Covers(state.Done) {
		return p.nextFullPurge(ctx, state), nil
	}
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	changes, err := p.store.ChangesToPurge(ctx, state.Done.Revision, changesPerPage)
	if err != nil {
		return purge, err
	}
	if len(changes) == 0 || changes[0].Revision != state.Done.Revision+1 {
		return purge, errGap // trimmed meanwhile; the next run notices
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

// nextFullPurge returns a purge of everything, since changes were lost. It waits for edges to flush
// their caches and acknowledge the new head.
func (p *Purger) nextFullPurge(ctx context.Context, state core.PurgeState) Purge {
	if p.lostSince.IsZero() {
		p.lostSince = p.lastRun
		p.oldest.Store(p.lostSince.UnixNano())
		p.log.ErrorContext(ctx, "changes were lost before they were purged, purging everything", "purged", state.Done, "head", state.Head)
	}
	if state.Acknowledged < state.Head.Revision && p.lastRun.Sub(p.lostSince) < ackTimeout {
		return Purge{Cursor: state.Done}
	}
	return Purge{Cursor: state.Head.Cursor, All: true}
}

// send passes a purge to the CDN.
func (p *Purger) send(ctx context.Context, purge Purge) error {
	if !purge.All && len(purge.Tags) == 0 {
		return nil // no response depends on the changes
	}
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	if err := p.cdn.Purge(ctx, purge); err != nil {
		return fmt.Errorf("purge up to revision %d: %w", purge.Revision, err)
	}
	purgesDone.Inc()
	if purge.All {
		purgesAll.Inc()
	}
	return nil
}

// releaseLease lets another core take over at once.
func (p *Purger) releaseLease(ctx context.Context) {
	if !p.leading {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if _, _, err := p.store.AcquirePurgeLease(ctx, p.core, 0); err != nil {
		p.log.WarnContext(ctx, "lease of purges not released, another core takes over when it expires", "error", err)
	}
}

// Trim deletes streams that have ended and returns how many.
func (p *Purger) Trim(ctx context.Context) (int, error) {
	return p.store.TrimStreams(ctx, time.Now().Add(-streamRetention))
}

// Expose registers metrics of purges. The lag is 0 at cores without the lease.
func (p *Purger) Expose(registry prometheus.Registerer) {
	promauto.With(registry).NewGaugeFunc(prometheus.GaugeOpts{
		Name: "veneer_core_purge_lag_seconds", Help: "Age of the oldest change that is not purged.",
	}, func() float64 {
		oldest := p.oldest.Load()
		if oldest == 0 {
			return 0
		}
		return time.Since(time.Unix(0, oldest)).Seconds()
	})
}
