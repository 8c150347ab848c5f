package postgres

import (
	"context"
	_ "embed" // for restored.sql
	"errors"
	"net/url"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/shared/skin"
)

// Restored are the statements of a database that was restored from a backup. They run before cores
// use it.
//
//go:embed restored.sql
var Restored string

// Backups and sweeps exclude each other: a sweep would remove files of textures that are in a dump
// and deleted since. The lock belongs to the session.
const (
	tryLockBackups       = `SELECT pg_try_advisory_lock('backups'::regclass::int, 0)`
	tryLockBackupsShared = `SELECT pg_try_advisory_lock_shared('backups'::regclass::int, 0)`
)

const (
	beginSnapshot = `BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY`
	// disableStatementTimeout is for the next statement, which reads all rows.
	disableStatementTimeout = `SET LOCAL statement_timeout = 0`
	exportSnapshot          = `SELECT pg_export_snapshot()`
	selectAllHashes         = `SELECT DISTINCT hash FROM textures ORDER BY hash`
)

var (
	errBackupRuns = errors.New("a backup or a sweep is running; try again when it has ended")
	errSweepWaits = errors.New("a backup is running; sweep when it has ended")
)

// WithSnapshot calls dump with the name of a snapshot, as pg_dump takes it, and the hashes of its
// textures in order. The snapshot ends with dump. Then it calls files, during which no sweep can
// begin. No sweep may run when it is called.
func (db *DB) WithSnapshot(ctx context.Context, dump func(snapshot string, hashes []skin.Hash) error, files func() error) error {
	return db.withBackupLock(ctx, tryLockBackups, errBackupRuns, func(conn *pgx.Conn) error {
		for _, sql := range []string{beginSnapshot, disableTxTimeouts, disableStatementTimeout} {
			if _, err := conn.Exec(ctx, sql); err != nil {
				return failure("begin a snapshot", err)
			}
		}
		var snapshot string
		if err := conn.QueryRow(ctx, exportSnapshot).Scan(&snapshot); err != nil {
			return failure("export a snapshot", err)
		}
		rows, _ := conn.Query(ctx, selectAllHashes) // CollectRows reports the error
		hashes, err := pgx.CollectRows(rows, pgx.RowTo[skin.Hash])
		if err != nil {
			return failure("read the hashes of textures", err)
		}
		if err := dump(snapshot, hashes); err != nil {
			return err
		}
		if _, err := conn.Exec(ctx, "COMMIT"); err != nil {
			return failure("end a snapshot", err)
		}
		return files()
	})
}

// WithoutBackup calls sweep, during which no backup can begin. No backup may run when it is called.
func (db *DB) WithoutBackup(ctx context.Context, sweep func() error) error {
	return db.withBackupLock(ctx, tryLockBackupsShared, errSweepWaits, func(*pgx.Conn) error { return sweep() })
}

// withBackupLock calls do with a connection that has a lock. It returns isTaken if another has it.
func (db *DB) withBackupLock(ctx context.Context, lock string, isTaken error, do func(*pgx.Conn) error) error {
	conn, err := pgx.ConnectConfig(ctx, db.listen.Copy()) // a session, which no pooler shares
	if err != nil {
		return describeConnError(db.listenSetting, err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	var isLocked bool
	if err := conn.QueryRow(ctx, lock).Scan(&isLocked); err != nil {
		return failure("lock backups", err)
	}
	if !isLocked {
		return isTaken
	}
	return do(conn)
}

const setBackup = `UPDATE backups SET began_at = $1`

// SetBackup stores when the last whole backup began.
func (db *DB) SetBackup(ctx context.Context, began time.Time) error {
	_, err := db.writes.Exec(ctx, setBackup, began)
	return failure("store the time of the backup", err)
}

const selectSite = `SELECT site FROM backups`

// Site returns what tells the site from others. A site keeps it when a backup is restored.
func (db *DB) Site(ctx context.Context) (site uuid.UUID, err error) {
	err = db.reads.QueryRow(ctx, selectSite).Scan(&site)
	return site, failure("read the id of the site", err)
}

const selectBackup = `SELECT began_at FROM backups`

var _ core.BackupStore = (*DB)(nil)

// LastBackup returns when the last whole backup began, the zero time if there was none.
func (db *DB) LastBackup(ctx context.Context) (time.Time, error) {
	var began *time.Time
	if err := db.reads.QueryRow(ctx, selectBackup).Scan(&began); err != nil || began == nil {
		return time.Time{}, failure("read the time of the last backup", err)
	}
	return *began, nil
}

// IsEmpty reports whether the database has no schema of Veneer.
func (db *DB) IsEmpty(ctx context.Context) (bool, error) {
	var isEmpty bool
	err := db.reads.QueryRow(ctx, `SELECT to_regclass('`+versionTable+`') IS NULL`).Scan(&isEmpty)
	if err != nil {
		err = describeConnError(db.listenSetting, err)
	}
	return isEmpty, err
}

// ClientAddress returns the address for PostgreSQL's client of a URL that pgx reads, and what belongs in the
// environment: the password, which other users must not see in the list of processes, and parameters
// of the session, which the client does not take in a URL.
func ClientAddress(database string) (address string, environ []string, err error) {
	pool, err := pgxpool.ParseConfig(database)
	if err != nil {
		return "", nil, errors.New("the database's URL cannot be parsed") // its error has the password
	}
	parsed := pool.ConnConfig
	location, err := url.Parse(database)
	if err != nil || !strings.HasPrefix(location.Scheme, "postgres") {
		return "", nil, errors.New("the database's address must be a URL as in postgres://user:password@host:port/database: the password in another form would be in the list of processes")
	}
	query := location.Query()
	if query.Has("sslpassword") {
		return "", nil, errors.New("the database's URL has an sslpassword, which would be in the list of processes; use a key without one")
	}
	for name := range query {
		if strings.HasPrefix(name, "pool_") || strings.HasSuffix(name, "_cache_capacity") || name == "default_query_exec_mode" || name == "password" {
			query.Del(name)
		}
	}
	var options []string
	for name, value := range parsed.RuntimeParams {
		if name != "application_name" && name != "options" {
			query.Del(name)
			options = append(options, "-c "+name+"="+strings.ReplaceAll(value, " ", `\ `))
		}
	}
	if options != nil {
		environ = append(environ, "PGOPTIONS="+strings.Join(options, " "))
	}
	if parsed.Password != "" {
		environ = append(environ, "PGPASSWORD="+parsed.Password)
	}
	if location.User != nil {
		location.User = url.User(location.User.Username())
	}
	location.RawQuery = strings.ReplaceAll(query.Encode(), "+", "%20") // the client takes a plus sign as it is
	return location.String(), environ, nil
}
