// Package postgres implements core's stores in PostgreSQL: everything except the texture files.
//
// Each query stands above the function that runs it. A write is a single statement, or a batch
// that is one transaction, so it takes one round trip; an upload takes one before its file is
// stored and one after. A connection that was idle for a second is pinged first, which adds a
// round trip on a quiet server.
//
// Transactions lock rows in one order, which prevents deadlocks: users, textures, players, each
// by id. Advisory locks on addresses and names come last.
package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"github.com/exaring/otelpgx"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/puddle/v2"
	"go.opentelemetry.io/otel/trace"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/shared/config"
	"github.com/veneer-skins/veneer/shared/fault"
)

// Config has the addresses of the database, and how many connections are made.
// Its settings are CORE_DATABASE_URL, CORE_OWNER_DATABASE_URL, CORE_LISTEN_DATABASE_URL,
// CORE_LIBRARY_DATABASE_URL, CORE_DATABASE_CONNECTIONS.
type Config struct {
	URL         string `env:"DATABASE_URL,required,notEmpty" example:"postgres://veneer:password@127.0.0.1:5432/veneer" help:"PostgreSQL, as postgres://user:password@host:port/database"`
	OwnerURL    string `env:"OWNER_DATABASE_URL" example:"postgres://veneer_owner:password@127.0.0.1:5432/veneer" help:"connection of core migrate, as the owner of the tables, which must not pass a transaction pooler; the roles of the other URLs then get the rights that core serve needs, and no others; empty: the others"`
	ListenURL   string `env:"LISTEN_DATABASE_URL" example:"postgres://veneer:password@127.0.0.1:5432/veneer" help:"connection for LISTEN, which must not pass a transaction pooler; empty for the one above"`
	LibraryURL  string `env:"LIBRARY_DATABASE_URL" example:"postgres://veneer:password@10.0.0.22,10.0.0.21/veneer?target_session_attrs=prefer-standby" help:"hot standby to read lists of textures from, which are then as old as its data; empty for DATABASE_URL"`
	Connections int32  `env:"DATABASE_CONNECTIONS" envDefault:"12" min:"2" help:"maximum number of connections to PostgreSQL for writes; reads have half as many besides, lists from a standby too, look-ups of edges a quarter, and the change feed 3"`

	setting string // of URL, if it is not DATABASE_URL

	// Tracer makes spans of the statements of traced requests; nil makes none.
	Tracer trace.TracerProvider
}

// DB is the database. Its zero value is not usable: Open makes one.
//
// Writes, reads, look-ups of edges and the feed have separate pools. However many writes wait
// for locks, or for a synchronous standby that is down, reads, look-ups and the feed have
// connections.
type DB struct {
	writes         writePool
	reads, lookups readPool
	library        readPool // for lists of textures: a standby, or the same as reads
	feed           *pgxpool.Pool

	sessionBatcher *batcher[sessionQuery, core.User]
	profileBatcher *batcher[statement, profileRow]
	lists          listLimits
	rowLimits      rowLimits

	listen        *pgx.ConnConfig
	listenSetting string // of its URL
	onChange      func()
}

// readPool has connections for reads only, and writePool those for all other statements of
// requests.
type (
	readPool struct {
		*pgxpool.Pool
		clientLimits
	}
	writePool struct {
		*pgxpool.Pool
		clientLimits
	}
)

// Timeouts of connections. A server that is cut off without a TCP reset looks like a slow one,
// so each is also the delay until that is noticed.
const (
	// connectTimeout bounds making a connection.
	connectTimeout = 2 * time.Second
	// connCheckTimeout bounds the ping before a connection is reused, and closing one that
	// failed: it keeps its place in the pool meanwhile.
	connCheckTimeout = time.Second
	// shortConnCheckTimeout is for latency-sensitive pools: several dead connections may
	// have to be pinged and closed before a new one is made.
	shortConnCheckTimeout = 300 * time.Millisecond
	// connLifetime is the maximum age of a connection, if the URL does not set one. The jitter
	// spreads the end of those made together. A load balancer may keep connections to a former
	// primary open, as haproxy does after a reload.
	connLifetime       = 30 * time.Second
	connLifetimeJitter = 5 * time.Second
	// lookupTimeout bounds a look-up: an edge waits for two seconds.
	lookupTimeout = 1500 * time.Millisecond
	// readRetryWindow and writeRetryWindow bound the retries after a lost connection: of reads
	// from their beginning, since balancers try another core after three seconds; of writes
	// from the loss. A fail-over of the database takes about two seconds.
	readRetryWindow  = 2500 * time.Millisecond
	writeRetryWindow = 5 * time.Second
	retryPause       = 100 * time.Millisecond
)

const listenSetting = "LISTEN_DATABASE_URL"

// Open returns a database. It does not wait for a connection, so that a program can start
// before its database; Check reports whether there is one.
func Open(ctx context.Context, cfg Config) (*DB, error) {
	setting := cmp.Or(cfg.setting, "DATABASE_URL")
	poolConfig, err := cfg.pool(setting, cfg.URL)
	if err != nil {
		return nil, err
	}
	listen := poolConfig.ConnConfig
	if cfg.ListenURL != "" {
		setting = listenSetting
		if listen, err = pgx.ParseConfig(cfg.ListenURL); err != nil {
			return nil, config.Errorf(setting, "must look like postgres://user:password@host:port/database")
		}
		listen.ConnectTimeout = poolConfig.ConnConfig.ConnectTimeout
	}
	db := &DB{listen: listen, listenSetting: setting, onChange: func() {}, rowLimits: defaultRowLimits}
	forReads := max(2, cfg.Connections/2)
	for _, p := range []struct {
		pool         **pgxpool.Pool
		connections  int32
		checkTimeout time.Duration
	}{
		{&db.writes.Pool, cfg.Connections, connCheckTimeout},
		{&db.reads.Pool, forReads, connCheckTimeout},
		{&db.lookups.Pool, max(2, cfg.Connections/4), shortConnCheckTimeout},
		{&db.feed, 2, shortConnCheckTimeout}, // one to number changes, one to read them
	} {
		if *p.pool, err = newPool(ctx, poolConfig, p.connections, p.checkTimeout); err != nil {
			return nil, err
		}
	}
	db.writes.clientLimits = newClientLimits(db.writes.Pool, userWrites)
	db.reads.clientLimits, db.lookups.clientLimits = newClientLimits(db.reads.Pool, 0), newClientLimits(db.lookups.Pool, 0)
	db.library, db.lists = db.reads, newListLimits(int(forReads)/2)
	if cfg.LibraryURL != "" {
		library, err := cfg.pool("LIBRARY_DATABASE_URL", cfg.LibraryURL)
		if err != nil {
			return nil, err
		}
		if db.library.Pool, err = newPool(ctx, library, forReads, connCheckTimeout); err != nil {
			return nil, err
		}
		db.library.clientLimits, db.lists = newClientLimits(db.library.Pool, 0), newListLimits(int(forReads)-1) // one is for CheckLibrary
	}
	db.sessionBatcher, db.profileBatcher = newBatcher(db.reads, queueSessions), newBatcher(db.reads, queueEach[profileRow])
	return db, nil
}

// newPool makes a pool of at most connections. The timeout bounds pinging and closing each.
func newPool(ctx context.Context, cfg *pgxpool.Config, connections int32, timeout time.Duration) (*pgxpool.Pool, error) {
	sized := cfg.Copy()
	sized.MaxConns = connections
	sized.PingTimeout = cmp.Or(cfg.PingTimeout, timeout)
	setCloseTimeout(sized, timeout)
	pool, err := pgxpool.NewWithConfig(ctx, sized)
	if err != nil {
		return nil, fmt.Errorf("make a connection pool: %w", err)
	}
	return pool, nil
}

// pool returns the configuration of connections to the URL of a setting.
func (c Config) pool(setting, url string) (*pgxpool.Config, error) {
	poolConfig, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, config.Errorf(setting, "must look like postgres://user:password@host:port/database") // the URL itself has a password
	}
	if !strings.Contains(url, "connect_timeout=") {
		poolConfig.ConnConfig.ConnectTimeout = connectTimeout
	}
	if !strings.Contains(url, "pool_max_conn_lifetime=") {
		poolConfig.MaxConnLifetime, poolConfig.MaxConnLifetimeJitter = connLifetime-connLifetimeJitter, connLifetimeJitter
	}
	if c.Tracer != nil {
		poolConfig.ConnConfig.Tracer = otelpgx.NewTracer(otelpgx.WithTracerProvider(c.Tracer), otelpgx.WithDisableConnectionDetailsInAttributes())
	}
	return poolConfig, nil
}

// setCloseTimeout bounds how long a failed connection keeps its place in the pool. When the
// context of a statement ends, pgx closes its connection in the background: it sends a cancel
// request over a new connection, and waits up to 15 seconds for the server to close the old
// one. After a network cut all connections of the pool would be blocked for that long, though
// the server may be back.
func setCloseTimeout(cfg *pgxpool.Config, timeout time.Duration) {
	cfg.BeforeConnect = func(_ context.Context, conn *pgx.ConnConfig) error {
		var connected atomic.Bool
		conn.AfterConnect = func(context.Context, *pgconn.PgConn) error {
			connected.Store(true)
			return nil
		}
		dial := conn.DialFunc
		conn.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
			if !connected.Load() {
				return dial(ctx, network, address)
			}
			// A connection that was established dials again only for a cancel request.
			deadline := time.Now().Add(timeout)
			ctx, cancel := context.WithDeadline(ctx, deadline)
			defer cancel()
			conn, err := dial(ctx, network, address)
			if err != nil {
				return nil, err
			}
			return conn, conn.SetDeadline(deadline)
		}
		return nil
	}
	cfg.BeforeClose = func(conn *pgx.Conn) {
		time.AfterFunc(timeout, func() { _ = conn.PgConn().Conn().Close() })
	}
}

// Close closes all connections.
func (db *DB) Close() {
	db.writes.Close()
	db.reads.Close()
	db.lookups.Close()
	db.library.Close() // a second time, where it is reads
	db.feed.Close()
}

// OnChange sets the function that is called after every commit that wrote changes. It must not
// block, and is set before the database is used.
func (db *DB) OnChange(f func()) { db.onChange = f }

const selectVersion = `SELECT version FROM ` + versionTable

// Check returns nil if the database answers and has the schema that this program needs, or a
// later one: migrations run before the programs that need them. The error begins with the name
// of a setting, and is a final config.Error if only another value can mend it.
func (db *DB) Check(ctx context.Context) error {
	return checkSchema(ctx, db.reads, "DATABASE_URL")
}

// checkSchema is Check for one pool; setting names it in errors.
func checkSchema(ctx context.Context, pool readPool, setting string) error {
	var version int32
	err := pool.QueryRow(ctx, selectVersion).Scan(&version)
	var missing *pgconn.PgError
	switch {
	case errors.As(err, &missing) && missing.Code == "42P01": // undefined_table
		return config.Errorf(setting, "leads to a database without a schema; run core migrate")
	case err != nil:
		return describeConnError(setting, err)
	case version < requiredVersion:
		return config.Errorf(setting, "leads to a database whose schema has version %d, but %d is needed; run core migrate", version, requiredVersion)
	default:
		return nil
	}
}

// CheckListen checks the connection for LISTEN, if it has a URL of its own. Errors are as
// from Check.
func (db *DB) CheckListen(ctx context.Context) error {
	if db.listenSetting != listenSetting {
		return nil
	}
	conn, err := pgx.ConnectConfig(ctx, db.listen.Copy())
	if err != nil {
		return describeConnError(listenSetting, err)
	}
	return conn.Close(ctx)
}

// HasLibrary reports whether lists of textures come from a database of their own.
func (db *DB) HasLibrary() bool { return db.library.Pool != db.reads.Pool }

// CheckLibrary is Check for the database of lists of textures. A standby may not have replayed
// the migration yet.
func (db *DB) CheckLibrary(ctx context.Context) error {
	return checkSchema(ctx, db.library, "LIBRARY_DATABASE_URL")
}

// describeConnError prefixes an error with the name of the connection's setting, and says what
// to do.
func describeConnError(setting string, err error) error {
	pgErr, ok := errors.AsType[*pgconn.PgError](err)
	switch {
	case ok && pgErr.Code[:2] == "28":
		return config.Finalf(setting, "has a user or a password that the server refuses: %w", err)
	case ok && pgErr.Code == "3D000":
		return config.Finalf(setting, "names a database that does not exist; create it, or name another: %w", err)
	case ok && pgErr.Code == "42501": // insufficient_privilege
		return config.Errorf(setting, "has a role that lacks rights; run core migrate with CORE_OWNER_DATABASE_URL: %w", err)
	case strings.Contains(err.Error(), "server refused TLS connection"): // pgx 5.12 has no value for it
		return config.Finalf(setting, "has an sslmode that asks for TLS, but the server offers none; leave sslmode out, or set sslmode=disable: %w", err)
	default:
		return config.Errorf(setting, "%w", &fault.Error{Kind: fault.Unavailable, Message: "leads to a server that does not answer; start PostgreSQL, or correct the URL", Cause: err})
	}
}

// failure turns an error of pgx into one for the caller: an Unavailable fault if the database
// cannot be reached or cannot write at the moment, else the error with the operation that
// failed. A nil error stays nil.
func failure(operation string, err error) error {
	if err == nil {
		return nil
	}
	err = fmt.Errorf("%s: %w", operation, err)
	if _, ok := errors.AsType[*fault.Error](err); ok || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if isOutage(err) {
		return fault.NewUnavailable("database", err)
	}
	if pgErr, ok := errors.AsType[*pgconn.PgError](err); ok {
		switch {
		case pgErr.Code[:2] == "53", // insufficient resources: too many connections, disk full
			pgErr.Code[:2] == "28", // invalid authorization
			pgErr.Code == "3D000",  // no such database
			pgErr.Code == "25006",  // read-only: a standby, during a fail-over
			pgErr.Code == "40P01",  // deadlock, after retries
			pgErr.Code == "40001":  // serialisation, after retries
			return fault.NewUnavailable("database", err)
		}
	}
	return err
}

// isOutage reports whether the connection failed, or the server as a whole.
func isOutage(err error) bool {
	if pgErr, ok := errors.AsType[*pgconn.PgError](err); ok {
		return pgErr.Code[:2] == "08" || pgErr.Code[:3] == "57P" || // connection exception; shutting down, starting up
			pgErr.Code == "53300" // too many connections, after all reconnect
	}
	var network net.Error
	_, unconnected := errors.AsType[*pgconn.ConnectError](err)
	return unconnected || errors.As(err, &network) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, pgconn.ErrConnClosed) || errors.Is(err, puddle.ErrClosedPool) || pgconn.SafeToRetry(err)
}

// violatedConstraint returns the name of the constraint that a statement violated; empty for
// any other error, or none.
func violatedConstraint(err error) (constraint string) {
	if pgErr, ok := errors.AsType[*pgconn.PgError](err); ok && pgErr.Code[:2] == "23" {
		return pgErr.ConstraintName
	}
	return ""
}

// uniqueFault returns the fault of a violated unique key, else err unchanged. Writes check the
// key before, under lockEmail or lockName, but cores of the previous release do not lock, and
// so may write the key in between. name is the fault of a player's name.
func uniqueFault(err, name error) error {
	switch violatedConstraint(err) {
	case "users_email_key":
		return errEmailTaken
	case "players_name_key":
		return name
	default:
		return err
	}
}

// PostgreSQL logs the key of a violated unique constraint, an address or a player's name. So
// writes first lock the key, and check for it. These locks come after all others.
const (
	lockEmail = `SELECT pg_advisory_xact_lock('users_email_key'::regclass::int, hashtext($1))`
	lockName  = `SELECT pg_advisory_xact_lock('players_name_key'::regclass::int, hashtext($1))`
)

// maxTries is how often a transaction is tried that loses a conflict with another one.
const maxTries = 4

// retryConflicts calls work again after a deadlock, a serialisation failure, or
// errConcurrentChange.
func retryConflicts(work func() error) error {
	var err error
	for range maxTries {
		err = work()
		pgErr, ok := errors.AsType[*pgconn.PgError](err)
		if lost := ok && (pgErr.Code == "40P01" || pgErr.Code == "40001"); !lost && !errors.Is(err, errConcurrentChange) {
			return err
		}
	}
	return err
}

// run runs work that only reads, within the limits of the client, and again if its connection
// is lost.
func (r readPool) run(ctx context.Context, work func() error) error {
	return r.do(ctx, func() error { return retryRead(ctx, work) })
}

// run runs work that is one transaction, within the limits of the client, with the retries of
// retryWrite.
func (w writePool) run(ctx context.Context, work func() error) error {
	return w.do(ctx, func() error { return retryWrite(ctx, work) })
}

// retryRead runs work that only reads, and again if its connection is lost.
func retryRead(ctx context.Context, work func() error) error {
	return retryUntil(ctx, time.Now().Add(readRetryWindow), isOutage, work)
}

// retryWrite runs work that is one transaction, and again if its connection is lost and it has
// certainly not been committed.
func retryWrite(ctx context.Context, work func() error) error {
	if err := retryConflicts(work); !notCommitted(err) {
		return err
	}
	return retryUntil(ctx, time.Now().Add(writeRetryWindow), notCommitted, work)
}

// notCommitted reports whether a failed transaction was never sent, or ended by the server
// before its commit. A session that is terminated (57P01), as all are when a server stops,
// reports that during a statement or at the next one. After a commit has been written to disk
// it only closes the connection, so the outcome is unknown (SyncRepWaitForLSN in PostgreSQL's
// syncrep.c).
func notCommitted(err error) bool {
	if pgErr, ok := errors.AsType[*pgconn.PgError](err); ok && pgErr.Code == "57P01" {
		return true
	}
	_, unconnected := errors.AsType[*pgconn.ConnectError](err)
	_, uncommitted := errors.AsType[uncommittedError](err)
	// If a connection is lost in the middle of a response, pgx 5.12 says that it had been
	// closed before, and that this is safe to retry (NextResult in pgconn.go reads on after an
	// error).
	return uncommitted || unconnected && isOutage(err) || pgconn.SafeToRetry(err) && !errors.Is(err, pgconn.ErrConnClosed)
}

// uncommittedError is the loss of a connection before a transaction's commit was sent.
type uncommittedError struct{ error }

func (e uncommittedError) Unwrap() error { return e.error }

// retryUntil calls work again until the deadline, as long as its error is retryable.
func retryUntil(ctx context.Context, deadline time.Time, retryable func(error) bool, work func() error) error {
	for {
		err := retryConflicts(work)
		if err == nil || ctx.Err() != nil || !retryable(err) || errors.Is(err, puddle.ErrClosedPool) || time.Now().After(deadline) {
			return err
		}
		select {
		case <-time.After(retryPause):
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", ctx.Err(), err)
		}
	}
}

// statement is a query with its arguments.
type statement struct {
	sql  string
	args []any
}

func (s statement) queue(batch *pgx.Batch) *pgx.QueuedQuery { return batch.Queue(s.sql, s.args...) }

// collectInto returns a function that collects the rows of a query.
func collectInto[T any](rows *[]T) func(pgx.Rows) error {
	return func(result pgx.Rows) (err error) {
		*rows, err = pgx.CollectRows(result, pgx.RowToStructByName[T])
		return err
	}
}

// querier runs statements: a pool, or a transaction.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	SendBatch(ctx context.Context, batch *pgx.Batch) pgx.BatchResults
}

// collect runs statements as one transaction in one round trip, and returns the rows of the
// last one. In a transaction they are a part of it, and retries are up to its owner.
func collect[T any](ctx context.Context, q querier, statements ...statement) ([]T, error) {
	var rows []T
	run := func() (err error) {
		if len(statements) == 1 { // faster than a pipeline of one
			result, _ := q.Query(ctx, statements[0].sql, statements[0].args...) // CollectRows reports the error
			rows, err = pgx.CollectRows(result, pgx.RowToStructByName[T])
			return err
		}
		var batch pgx.Batch
		for i, s := range statements {
			if queued := s.queue(&batch); i == len(statements)-1 {
				queued.Query(collectInto(&rows))
			}
		}
		return q.SendBatch(ctx, &batch).Close()
	}
	var err error
	switch q := q.(type) {
	case pgx.Tx:
		err = run()
	case readPool:
		err = q.run(ctx, run)
	case writePool:
		err = q.run(ctx, run)
	default:
		err = retryConflicts(run)
	}
	return rows, err
}

// Exec runs a statement as a transaction of its own.
func (w writePool) Exec(ctx context.Context, sql string, args ...any) (tag pgconn.CommandTag, err error) {
	err = w.run(ctx, func() (err error) {
		tag, err = w.Pool.Exec(ctx, sql, args...)
		return err
	})
	return tag, err
}

// transact runs work as a transaction.
func (w writePool) transact(ctx context.Context, work func(pgx.Tx) error) error {
	return w.run(ctx, func() error {
		committing := false
		err := pgx.BeginFunc(ctx, w.Pool, func(tx pgx.Tx) error {
			err := work(tx)
			committing = err == nil
			return err
		})
		if !committing && isOutage(err) {
			return uncommittedError{err}
		}
		return err
	})
}

// lookUp runs a statement on the pool for look-ups, bounded by lookupTimeout.
func lookUp[T any](ctx context.Context, db *DB, s statement) ([]T, error) {
	bounded, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	rows, err := collect[T](bounded, db.lookups, s)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		err = fault.NewUnavailable("database", err)
	}
	return rows, err
}

// lockUser serialises changes of what is counted for a user, against quotas and the score.
const lockUser = `SELECT score FROM users WHERE uid = $1 FOR NO KEY UPDATE`

// withUserLock runs statements; the last one adds something to a locked user. It returns
// the rows of that one and the user's score before it; no score if there is no such user.
func withUserLock[T any](ctx context.Context, db *DB, user core.UserID, statements ...statement) (scores []int64, rows []T, err error) {
	err = db.writes.run(ctx, func() error {
		var batch pgx.Batch
		batch.Queue(lockUser, user).Query(func(result pgx.Rows) (err error) {
			scores, err = pgx.CollectRows(result, pgx.RowTo[int64])
			return err
		})
		for i, s := range statements {
			if queued := s.queue(&batch); i == len(statements)-1 {
				queued.Query(collectInto(&rows))
			}
		}
		return db.writes.SendBatch(ctx, &batch).Close()
	})
	return scores, rows, err
}
