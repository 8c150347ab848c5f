package core

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/veneer-skins/veneer/shared/edgeproto"
)

// PurgeState is how far the feed is purged, and how far it may be.
type PurgeState struct {
	Done         edgeproto.Cursor // changes up to here are purged
	Head         FeedHead
	Acknowledged int64 // last revision that all connected edges have acknowledged
}

// NumberedChange is a change in the feed.
type NumberedChange struct {
	Revision int64
	Keys     []edgeproto.Key
	Age      time.Duration // since it was numbered
}

// PurgeStore holds the state of purges, shared by all cores. Package cdnpurge uses it. It is
// declared here with its types, since package postgres implements it and adapters do not import
// each other.
type PurgeStore interface {
	// RegisterStream adds a stream to an edge, which has acknowledged nothing, and stops purges
	// from waiting for the edge's former stream; uuid.Nil is for none.
	RegisterStream(ctx context.Context, stream, former uuid.UUID) error

	// ReportStreams reports the streams that are alive and the cursors that they acknowledged;
	// the zero Cursor acknowledges nothing new.
	ReportStreams(ctx context.Context, streams map[uuid.UUID]edgeproto.Cursor) error

	// TrimStreams deletes streams last reported before a time and returns how many.
	TrimStreams(ctx context.Context, before time.Time) (int, error)

	// AcquirePurgeLease takes or renews the lease of the core that purges, and returns the state.
	// It returns false while another core has the lease. The first lease ever begins at the head of
	// the feed.
	AcquirePurgeLease(ctx context.Context, core uuid.UUID, lease time.Duration) (state PurgeState, held bool, err error)

	// ChangesToPurge returns changes after a revision in order, at most limit.
	ChangesToPurge(ctx context.Context, revision int64, limit int) ([]NumberedChange, error)

	// SetPurged records that all changes up to a cursor are purged, if the core still has the
	// lease.
	SetPurged(ctx context.Context, core uuid.UUID, done edgeproto.Cursor) error
}

// StreamTTL is how long a stream to an edge counts as connected without a report, as when its core
// has died: the time that its edge uses cached mappings after the last heartbeat, and an interval
// between heartbeats, rounded up to a second.
const StreamTTL = edgeproto.TrustWindow + time.Second
