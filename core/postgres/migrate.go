package postgres

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/tern/v2/migrate"

	"github.com/veneer-skins/veneer/shared/config"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Migrations returns the files of the migrations, each named by its number.
func Migrations() fs.FS {
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		panic("BUG: the folder of migrations is malformed")
	}
	return files
}

// versionTable holds the number of the last applied migration. The search path finds it like
// all tables.
const versionTable = "schema_version"

func migrator(ctx context.Context, conn *pgx.Conn) (*migrate.Migrator, error) {
	m, err := migrate.NewMigrator(ctx, conn, versionTable)
	if err != nil {
		return nil, fmt.Errorf("read the schema's version: %w", err)
	}
	if err := m.LoadMigrations(Migrations()); err != nil {
		return nil, fmt.Errorf("load migrations: %w", err)
	}
	return m, nil
}

const (
	// migrationLockTimeout bounds how long a migration waits for the lock of a table: all later
	// statements on the table queue behind it.
	migrationLockTimeout = 2 * time.Second
	// migrationPause is the time that those statements have before the next try.
	migrationPause = 2 * time.Second
	// migrationTimeout bounds the retries.
	migrationTimeout = 10 * time.Minute
)

// Migrate brings the schema up to date, under a lock, and returns the versions before and
// after. It calls report before what takes long: building indexes of large tables, and waiting
// for transactions that hold a table, for at most ten minutes. Connection errors are as
// from Check.
func (db *DB) Migrate(ctx context.Context, report func(string)) (before, after int32, err error) {
	// The lock belongs to the session, so the connection must not pass a transaction pooler.
	conn, err := pgx.ConnectConfig(ctx, db.listen.Copy())
	if err != nil {
		return 0, 0, describeConnError(db.listenSetting, err)
	}
	defer func() {
		_ = conn.Close(context.WithoutCancel(ctx))
		if pgErr, ok := errors.AsType[*pgconn.PgError](err); ok && pgErr.Code == "42501" { // insufficient_privilege
			err = config.Errorf(db.listenSetting, "has a role that may not change the schema; set CORE_OWNER_DATABASE_URL: %w", err)
		}
	}()
	m, err := migrator(ctx, conn)
	if err != nil {
		return 0, 0, failure("migrate the schema", err)
	}
	if before, err = m.GetCurrentVersion(ctx); err != nil {
		return 0, 0, failure("read the schema's version", err)
	}
	if after = max(before, int32(len(m.Migrations))); after == before {
		return before, after, nil
	}
	if before < libraryIndexes {
		err = db.prepareIndexes(ctx, conn, m, report)
	}
	if err == nil {
		err = migrateAll(ctx, conn, m, report)
	}
	return before, after, failure("migrate the schema", err)
}

// migrateAll runs the pending migrations.
func migrateAll(ctx context.Context, conn *pgx.Conn, m *migrate.Migrator, report func(string)) error {
	// OnStart is called in the migration's transaction, which fails if this statement fails.
	m.OnStart = func(int32, string, string, string) {
		_, _ = conn.Exec(ctx, fmt.Sprintf("SET LOCAL lock_timeout = %d", migrationLockTimeout.Milliseconds()))
	}
	deadline := time.Now().Add(migrationTimeout)
	for {
		err := m.Migrate(ctx)
		migrationErr, ok := errors.AsType[migrate.MigrationPgError](err)
		if !ok || migrationErr.Code != "55P03" || time.Now().After(deadline) { // lock_not_available
			return err
		}
		report(migrationErr.MigrationName + " waits until other transactions end; trying again")
		select {
		case <-time.After(migrationPause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// requiredVersion is the schema version that this program needs.
var requiredVersion = func() int32 {
	files, err := fs.Glob(Migrations(), "*.sql")
	if err != nil {
		panic("BUG: the pattern of migrations is malformed")
	}
	return int32(len(files))
}()
