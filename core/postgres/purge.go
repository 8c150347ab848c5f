package postgres

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/shared/edgeproto"
)

var _ core.PurgeStore = (*DB)(nil)

// reportStreams writes in the same order at all cores, so that they do not deadlock. A delayed
// acknowledgement does not overwrite a later one.
const reportStreams = `
	INSERT INTO edge_streams AS s (stream, epoch, revision)
	SELECT * FROM unnest($1::uuid[], $2::text[], $3::bigint[]) ORDER BY 1
	ON CONFLICT (stream) DO UPDATE SET
		epoch = coalesce(nullif(excluded.epoch, ''), s.epoch),
		revision = CASE WHEN excluded.epoch IN ('', s.epoch) THEN greatest(excluded.revision, s.revision) ELSE excluded.revision END,
		seen_at = now()`

// ReportStreams records that streams are alive and what they acknowledged.
func (db *DB) ReportStreams(ctx context.Context, streams map[uuid.UUID]edgeproto.Cursor) error {
	if len(streams) == 0 {
		return nil
	}
	var names []uuid.UUID
	var epochs []string
	var revisions []int64
	for name, at := range streams {
		names, epochs, revisions = append(names, name), append(epochs, at.Epoch), append(revisions, at.Revision)
	}
	_, err := lookUp[struct{}](ctx, db, statement{reportStreams, []any{names, epochs, revisions}})
	return failure("report streams", err)
}

const registerStream = `
	INSERT INTO edge_streams AS s (stream, epoch, revision, replaced)
	SELECT stream, '', 0, stream <> $1 FROM unnest($2::uuid[]) AS stream ORDER BY 1
	ON CONFLICT (stream) DO UPDATE SET replaced = excluded.replaced`

// RegisterStream records that a stream begins and, unless former is uuid.Nil, that it replaces
// that one. The row of the former stays: its core may not have noticed its end, and would
// insert it again.
func (db *DB) RegisterStream(ctx context.Context, stream, former uuid.UUID) error {
	names := []uuid.UUID{stream}
	if former != uuid.Nil {
		names = append(names, former)
	}
	_, err := lookUp[struct{}](ctx, db, statement{registerStream, []any{stream, names}})
	return failure("register a stream", err)
}

const deleteStreams = `DELETE FROM edge_streams WHERE seen_at < $1`

// TrimStreams deletes streams that were last seen before a time.
func (db *DB) TrimStreams(ctx context.Context, before time.Time) (int, error) {
	tag, err := db.writes.Exec(ctx, deleteStreams, before)
	return int(tag.RowsAffected()), failure("trim streams", err)
}

const acquirePurgeLease = `
	UPDATE purges p SET
		holder = $1, held_until = now() + $2::interval,
		epoch = coalesce(p.epoch, f.epoch), revision = CASE WHEN p.epoch IS NULL THEN f.revision ELSE p.revision END
	FROM feed f
	WHERE p.holder = $1 OR p.held_until <= now()
	RETURNING
		p.epoch::text AS done_epoch, p.revision AS done_revision, f.epoch::text, f.revision, f.trimmed,
		coalesce((
			SELECT min(CASE WHEN s.epoch = f.epoch::text THEN s.revision ELSE 0 END)
			FROM edge_streams s WHERE s.seen_at > now() - $3::interval AND NOT s.replaced
		), f.revision) AS acknowledged`

// AcquirePurgeLease makes a core the one that sends purges, for the time of the lease. It
// returns false if another core has the lease.
func (db *DB) AcquirePurgeLease(ctx context.Context, holder uuid.UUID, lease time.Duration) (core.PurgeState, bool, error) {
	rows, err := lookUp[struct {
		DoneEpoch                       string
		DoneRevision                    int64
		Epoch                           string
		Revision, Trimmed, Acknowledged int64
	}](ctx, db, statement{acquirePurgeLease, []any{holder, lease, core.StreamTTL}})
	if err != nil || len(rows) == 0 {
		return core.PurgeState{}, false, failure("acquire the purge lease", err)
	}
	row := rows[0]
	return core.PurgeState{
		Done:         edgeproto.Cursor{Epoch: row.DoneEpoch, Revision: row.DoneRevision},
		Head:         core.FeedHead{Cursor: edgeproto.Cursor{Epoch: row.Epoch, Revision: row.Revision}, Trimmed: row.Trimmed},
		Acknowledged: row.Acknowledged,
	}, true, nil
}

const selectChangesToPurge = `
	SELECT revision, keys, now() - numbered_at AS age FROM changes WHERE revision > $1 ORDER BY revision LIMIT $2`

// ChangesToPurge returns changes in order.
func (db *DB) ChangesToPurge(ctx context.Context, revision int64, limit int) ([]core.NumberedChange, error) {
	changes, err := lookUp[core.NumberedChange](ctx, db, statement{selectChangesToPurge, []any{revision, limit}})
	return changes, failure("read changes to purge", err)
}

const updatePurged = `UPDATE purges SET epoch = $2::uuid, revision = $3 WHERE holder = $1`

// SetPurged records up to which cursor changes are purged.
func (db *DB) SetPurged(ctx context.Context, holder uuid.UUID, done edgeproto.Cursor) error {
	_, err := lookUp[struct{}](ctx, db, statement{updatePurged, []any{holder, done.Epoch, done.Revision}})
	return failure("record purged changes", err)
}
