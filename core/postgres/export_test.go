package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/veneer-skins/veneer/core"
)

// Charge is what other parts of the package change scores with.
var Charge = charge

// MigrateTo brings the schema to a version, up or down.
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

// Lifetimes returns how long connections of each pool are used, at least and at most.
func (db *DB) Lifetimes() (all [][2]time.Duration) {
	for _, pool := range []*pgxpool.Pool{db.feed, db.lookups.Pool, db.reads.Pool, db.writes.Pool} {
		config := pool.Config()
		all = append(all, [2]time.Duration{config.MaxConnLifetime, config.MaxConnLifetime + config.MaxConnLifetimeJitter})
	}
	return all
}

// AcquireAll uses all connections that there may be at once, and returns how many
// writes have: no pool has more.
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

// SetPermission changes what a user may do on nobody's authority, and no log tells.
func (db *DB) SetPermission(ctx context.Context, user core.UserID, permission core.Permission) error {
	_, err := setPermission(ctx, db.writes, user, permission)
	return err
}

// LimitListRows has lists look at so many rows, and of an uploader in the end at twice as
// many, before they ask the index of names.
func (db *DB) LimitListRows(rows int) {
	db.rowLimits = rowLimits{all: rows, uploader: rows, uploaderMax: 2 * rows}
}

// ListQuery is a statement that may find a page, with what the planner may not use for it.
type ListQuery struct {
	SQL      string
	Args     []any
	Disabled []string
}

// ListQueries returns what is tried for a list.
func (db *DB) ListQueries(user core.User, query core.LibraryQuery) (all []ListQuery) {
	l := db.newList(user, query)
	for n, q := range []listQuery{l.walk(l.firstRows()), l.search()} {
		if n == 0 || l.key != "" {
			all = append(all, ListQuery{q.sql, q.args, append([]string{"jit", "enable_seqscan"}, q.disabled...)})
		}
	}
	return all
}

// Queries whose plans tests look at.
const (
	SelectUnkeyedUsers    = selectUnkeyedUsers
	SelectUnkeyedItems    = selectUnkeyedItems
	SelectUnkeyedTextures = selectUnkeyedTextures
)
