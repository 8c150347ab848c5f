package postgres

import (
	"context"
	"iter"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/shared/skin"
)

var _ core.SweepStore = (*DB)(nil)

const (
	// sweepTimeout bounds a query of a sweep.
	sweepTimeout = 30 * time.Second
	// hashBatch is how many hashes are read at a time.
	hashBatch = 10_000
)

const selectNewestTextures = `SELECT hash FROM textures ORDER BY tid DESC LIMIT $1`

const selectTexturesEver = `SELECT pg_sequence_last_value(pg_get_serial_sequence('textures', 'tid')::regclass) IS NOT NULL`

// NewestTextures returns the hashes of the newest textures, and whether there has ever been a
// texture.
func (db *DB) NewestTextures(ctx context.Context, limit int) (hashes []skin.Hash, ever bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, sweepTimeout)
	defer cancel()
	if hashes, err = db.hashes(ctx, selectNewestTextures, limit); err == nil {
		err = db.reads.QueryRow(ctx, selectTexturesEver).Scan(&ever)
	}
	return hashes, ever, failure("read the newest textures", err)
}

// selectTextureHashes is an index-only scan.
const selectTextureHashes = `SELECT DISTINCT hash FROM textures WHERE hash > $1 ORDER BY hash LIMIT $2`

// TextureHashes iterates over the hashes of all textures, a page at a time, so that no
// transaction is open while the caller works.
func (db *DB) TextureHashes(ctx context.Context) iter.Seq2[skin.Hash, error] {
	return func(yield func(skin.Hash, error) bool) {
		for after := []byte{}; ; {
			page, err := db.hashesAfter(ctx, after)
			if err != nil {
				yield(skin.Hash{}, failure("read the hashes of textures", err))
				return
			}
			for _, hash := range page {
				if !yield(hash, nil) {
					return
				}
			}
			if len(page) < hashBatch {
				return
			}
			after = page[len(page)-1][:]
		}
	}
}

func (db *DB) hashesAfter(ctx context.Context, after []byte) ([]skin.Hash, error) {
	ctx, cancel := context.WithTimeout(ctx, sweepTimeout)
	defer cancel()
	return db.hashes(ctx, selectTextureHashes, after, hashBatch)
}

func (db *DB) hashes(ctx context.Context, sql string, args ...any) ([]skin.Hash, error) {
	rows, _ := db.reads.Query(ctx, sql, args...) // CollectRows reports the error
	return pgx.CollectRows(rows, pgx.RowTo[skin.Hash])
}

// The transaction is READ WRITE, so that it fails on a standby, which does not have the locks
// of uploads. It is READ COMMITTED whatever the database's default, so that each statement sees
// what is committed by then.
const beginSweep = `BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE`

// disableTxTimeouts disables the timeouts after which the server would end the transaction, and
// release the locks, while a slow object store still deletes files. Not every version of
// PostgreSQL has both.
const disableTxTimeouts = `
	SELECT set_config(name, '0', true) FROM unnest(ARRAY['idle_in_transaction_session_timeout', 'transaction_timeout']) AS name
	WHERE current_setting(name, true) IS NOT NULL`

// tryLockHashes and selectTexturesByHash are two statements, since the second must see
// everything committed before the locks were acquired.
const tryLockHashes = `
	SELECT w.hash FROM unnest($1::bytea[], $2::bigint[]) AS w (hash, lock)
	WHERE pg_try_advisory_xact_lock(w.lock)`

const selectTexturesByHash = `SELECT hash, tid FROM textures WHERE hash = ANY ($1::bytea[]) ORDER BY hash, tid`

// LockHashes calls do while it holds the locks on hashes. The transaction writes nothing: its
// end only releases the locks.
func (db *DB) LockHashes(ctx context.Context, hashes []skin.Hash, do func(map[skin.Hash][]core.TextureID) error) error {
	locks := make([]int64, len(hashes))
	for i, hash := range hashes {
		locks[i] = hashLock(hash)
	}
	return db.withConn(ctx, func(conn *pgxpool.Conn) error {
		textures, err := lockHashes(ctx, conn, hashes, locks)
		if err != nil {
			return failure("lock the hashes of textures", err)
		}
		if err := do(textures); err != nil {
			return err
		}
		// If the connection was lost, so were the locks.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sweepTimeout)
		defer cancel()
		_, err = conn.Exec(ctx, "COMMIT")
		return failure("keep the locks on the hashes of textures", err)
	})
}

func lockHashes(ctx context.Context, conn *pgxpool.Conn, hashes []skin.Hash, locks []int64) (map[skin.Hash][]core.TextureID, error) {
	ctx, cancel := context.WithTimeout(ctx, sweepTimeout)
	defer cancel()
	var locked []struct{ Hash skin.Hash }
	var rows []struct {
		Hash skin.Hash
		TID  core.TextureID
	}
	var batch pgx.Batch
	batch.Queue(beginSweep)
	batch.Queue(disableTxTimeouts)
	batch.Queue(tryLockHashes, hashes, locks).Query(collectInto(&locked))
	batch.Queue(selectTexturesByHash, hashes).Query(collectInto(&rows))
	if err := conn.SendBatch(ctx, &batch).Close(); err != nil {
		return nil, err
	}
	textures := make(map[skin.Hash][]core.TextureID, len(locked))
	for _, row := range locked {
		textures[row.Hash] = nil
	}
	for _, row := range rows {
		if tids, ok := textures[row.Hash]; ok {
			textures[row.Hash] = append(tids, row.TID)
		}
	}
	return textures, nil
}
