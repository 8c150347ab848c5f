package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/veneer-skins/veneer/core"
)

// Charge changes a user's score.
func (db *DB) Charge(ctx context.Context, user core.UserID, amount int64) error {
	return db.writes.transact(ctx, func(tx pgx.Tx) error { return charge(ctx, tx, user, amount, "administrator", "") })
}

// MigrateTo migrates the schema to a version, up or down.
func (db *DB) MigrateTo(ctx context.Context, version int32) error {
	conn, err := pgx.ConnectConfig(ctx, db.listen.Copy())
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	m, err := migrator(ctx, conn)
	if err != nil {
		return err
	}
	return m.MigrateTo(ctx, version)
}

// Lifetimes returns the timeout of making connections, and their minimum and maximum age, of each
// pool.
func (db *DB) Lifetimes() (all [][3]time.Duration) {
	for _, pool := range []*pgxpool.Pool{db.feed, db.lookups.Pool, db.reads.Pool, db.writes.Pool} {
		config := pool.Config()
		all = append(all, [3]time.Duration{config.ConnConfig.ConnectTimeout, config.MaxConnLifetime, config.MaxConnLifetime + config.MaxConnLifetimeJitter})
	}
	return all
}

// AcquireAll makes all connections of all pools, and returns how many the pool for writes has,
// which is the largest.
func (db *DB) AcquireAll(ctx context.Context) (int, error) {
	for _, pool := range []*pgxpool.Pool{db.feed, db.lookups.Pool, db.reads.Pool, db.writes.Pool} {
		for range pool.Config().MaxConns {
			conn, err := pool.Acquire(ctx)
			if err != nil {
				return 0, err
			}
			defer conn.Release()
		}
	}
	return int(db.writes.Config().MaxConns), nil
}

// MaxNetworkQueries is how many look-ups of sessions one network has under way.
const MaxNetworkQueries = maxNetworkQueries

// PendingSessions returns how many look-ups of sessions wait for a batch.
func (db *DB) PendingSessions() int {
	db.sessionBatcher.mu.Lock()
	defer db.sessionBatcher.mu.Unlock()
	return len(db.sessionBatcher.pending)
}

// ForcePermission sets a user's permission without a check or an audit entry.
func (db *DB) ForcePermission(ctx context.Context, user core.UserID, permission core.Permission) error {
	_, err := setPermission(ctx, db.writes, core.CLIActor, user, permission, core.Ban{})
	return err
}

// LimitListRows sets how many rows lists scan before they search the index of names; for an
// uploader, the second scan has twice as many.
func (db *DB) LimitListRows(rows int) {
	db.rowLimits = rowLimits{all: rows, uploader: rows, uploaderMax: 2 * rows}
}

// ListQuery is a statement of a list, with the plan types disabled for it.
type ListQuery struct {
	SQL      string
	Args     []any
	Disabled []string
}

// ListQueries returns the statements of a list.
func (db *DB) ListQueries(user core.User, query core.LibraryQuery) (all []ListQuery) {
	l := db.newList(user, query)
	for n, q := range []listQuery{l.walk(l.firstRows()), l.search()} {
		if n == 0 || l.key != "" {
			all = append(all, ListQuery{q.sql, q.args, append([]string{"jit", "enable_seqscan"}, q.disabled...)})
		}
	}
	return all
}

// Queries for tests of their plans.
var (
	SelectUnkeyedUsers    = nicknameKeys.selectUnkeyed
	SelectUnkeyedItems    = itemKeys.selectUnkeyed
	SelectUnkeyedTextures = textureKeys.selectUnkeyed
)

// The query of the front page.
var (
	SelectWalls   = selectWalls
	WallsDisabled = append([]string{"enable_seqscan"}, wallsDisabled...)
)
