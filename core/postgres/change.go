package postgres

import (
	"context"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/shared/edgeproto"
)

var _ core.ChangeStore = (*DB)(nil)

// history identifies the server, the database, the timeline and the feed table. It differs
// after a promotion or a restore, which make all revisions handed out before meaningless.
const history = `(
		SELECT s.system_identifier || '/' || d.oid || '/' || 'feed'::regclass::oid || '/' || left(pg_walfile_name(pg_current_wal_insert_lsn()), 8)
		FROM pg_control_system() s, pg_database d WHERE d.datname = current_database()
	)`

const selectFeed = `
	SELECT epoch::text, revision, trimmed, history <> ` + history + ` OR EXISTS (SELECT FROM changes WHERE revision IS NULL) AS pending
	FROM feed`

// lockFeed serialises the numbering of all cores. The lock's key has the oid of the feed table,
// so that several schemas of one database do not block each other.
const lockFeed = `SELECT pg_advisory_xact_lock('pg_class'::regclass::int, 'feed'::regclass::int)`

// numberChanges runs after lockFeed has been acquired, and so sees what other cores have
// numbered. NOTIFY is sent here and by no business transaction: it holds a cluster-wide lock
// through its commit.
const numberChanges = `
	WITH pending AS (
		SELECT id, row_number() OVER (ORDER BY id) AS place FROM changes WHERE revision IS NULL ORDER BY id LIMIT $1
	), head AS (
		UPDATE feed SET
			revision = revision + (SELECT count(*) FROM pending),
			epoch = CASE WHEN history = ` + history + ` THEN epoch ELSE gen_random_uuid() END,
			history = ` + history + `
		RETURNING epoch::text, revision, trimmed
	), numbered AS (
		UPDATE changes c SET revision = h.revision - (SELECT count(*) FROM pending) + p.place, numbered_at = now()
		FROM pending p, head h WHERE c.id = p.id
		RETURNING c.id
	), sent_notify AS (
		SELECT pg_notify('` + notifyChannel + `', '')
	)
	SELECT epoch, revision, trimmed, (SELECT count(*) FROM numbered) = $1 AS pending FROM head, sent_notify`

// numberBatch is the maximum number of changes that one transaction numbers.
const numberBatch = 5000

// notifyChannel is the channel of the NOTIFY that tells other cores of new changes.
const notifyChannel = "veneer_changes"

type feedRow struct {
	Epoch             string
	Revision, Trimmed int64
	Pending           bool
}

// NumberChanges numbers all committed changes and returns the head.
func (db *DB) NumberChanges(ctx context.Context) (core.FeedHead, error) {
	statements := []statement{{selectFeed, nil}}
	for {
		rows, err := collect[feedRow](ctx, db.feed, statements...)
		if err == nil && len(rows) != 1 {
			err = pgx.ErrNoRows
		}
		if err != nil {
			return core.FeedHead{}, failure("number changes", err)
		}
		if row := rows[0]; !row.Pending {
			return core.FeedHead{Cursor: edgeproto.Cursor{Epoch: row.Epoch, Revision: row.Revision}, Trimmed: row.Trimmed}, nil
		}
		statements = []statement{{lockFeed, nil}, {numberChanges, []any{numberBatch}}}
	}
}

const selectChanges = `
	SELECT revision, keys FROM changes WHERE revision > $1 ORDER BY revision LIMIT $2`

// ChangesAfter returns changes in order. Their cursors lack the epoch, which the caller knows.
func (db *DB) ChangesAfter(ctx context.Context, revision int64, limit int) ([]edgeproto.Event, error) {
	rows, err := collect[struct {
		Revision int64
		Keys     []edgeproto.Key
	}](ctx, db.feed, statement{selectChanges, []any{revision, limit}})
	if err != nil {
		return nil, failure("read changes", err)
	}
	events := make([]edgeproto.Event, len(rows))
	for i, row := range rows {
		events[i] = edgeproto.Event{Cursor: edgeproto.Cursor{Revision: row.Revision}, Keys: row.Keys}
	}
	return events, nil
}

// trimBatch is the maximum number of changes that one transaction deletes: it locks the row of
// the feed.
const trimBatch = 1000

const trimChanges = `
	WITH old AS (
		SELECT id, revision FROM changes WHERE numbered_at < $1 ORDER BY revision LIMIT $2
	), deleted AS (
		DELETE FROM changes c USING old WHERE c.id = old.id
	), head AS (
		UPDATE feed SET trimmed = greatest(trimmed, coalesce((SELECT max(revision) FROM old), 0))
		WHERE EXISTS (SELECT FROM old)
	)
	SELECT count(*) AS count FROM old`

const updateEpoch = `UPDATE feed SET epoch = gen_random_uuid() WHERE epoch::text = $1 AND revision < $2`

// RenewEpoch begins a new epoch, unless another one began since, or the feed has reached the
// cursor.
func (db *DB) RenewEpoch(ctx context.Context, seen edgeproto.Cursor) error {
	_, err := db.feed.Exec(ctx, updateEpoch, seen.Epoch, seen.Revision)
	return failure("begin a new epoch", err)
}

// TrimChanges deletes changes that were numbered before a time.
func (db *DB) TrimChanges(ctx context.Context, before time.Time) (int, error) {
	total := 0
	for {
		rows, err := collect[struct{ Count int }](ctx, db.writes, statement{trimChanges, []any{before, trimBatch}})
		if err != nil {
			return total, failure("trim changes", err)
		}
		total += rows[0].Count
		if rows[0].Count < trimBatch {
			return total, nil
		}
	}
}

// listenRetryPause is the time between two attempts to listen.
const listenRetryPause = time.Second

// Listen calls wake whenever another core has numbered changes, until ctx ends. Notifications
// sent while the connection is down are lost; the feed also polls.
func (db *DB) Listen(ctx context.Context, log *slog.Logger, wake func()) {
	failing := false
	for ctx.Err() == nil {
		err := db.listenOnce(ctx, func() {
			if failing {
				failing = false
				log.InfoContext(ctx, "listening for changes again")
			}
			wake()
		})
		if ctx.Err() == nil && !failing {
			failing = true
			log.WarnContext(ctx, "cannot listen for changes, polling continues", "error", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(listenRetryPause):
		}
	}
}

// listenOnce calls wake once LISTEN has succeeded, and at every notification.
func (db *DB) listenOnce(ctx context.Context, wake func()) error {
	conn, err := pgx.ConnectConfig(ctx, db.listen.Copy())
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	if _, err := conn.Exec(ctx, "LISTEN "+notifyChannel); err != nil {
		return err
	}
	for {
		wake()
		if err := waitForNotification(ctx, conn); err != nil {
			return err
		}
	}
}

// listenPingInterval is the time without a notification after which the connection is pinged: a
// broken one is silent, too.
const listenPingInterval = 10 * time.Second

// waitForNotification waits for a notification. It returns an error if the connection is
// broken.
func waitForNotification(ctx context.Context, conn *pgx.Conn) error {
	for {
		wait, cancel := context.WithTimeout(ctx, listenPingInterval)
		_, err := conn.WaitForNotification(wait)
		cancel()
		if err == nil || ctx.Err() != nil || !pgconn.Timeout(err) {
			return err
		}
		ping, cancel := context.WithTimeout(ctx, listenPingInterval)
		err = conn.Ping(ping)
		cancel()
		if err != nil {
			return err
		}
	}
}
