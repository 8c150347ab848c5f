package postgres

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/tern/v2/migrate"
)

// libraryIndexes is the number of the migration with indexes that take minutes to build on a
// large table.
const libraryIndexes = 21

// prepareIndexes migrates to the version before libraryIndexes and then builds its indexes
// CONCURRENTLY, so that writes continue. With an empty table it leaves them to the migration.
//
// It holds no migration lock meanwhile: CREATE INDEX CONCURRENTLY waits for every running
// statement, also of another core migrate, which would wait for that lock.
func (db *DB) prepareIndexes(ctx context.Context, conn *pgx.Conn, m *migrate.Migrator, report func(string)) error {
	all := m.Migrations
	m.Migrations = all[:libraryIndexes-1]
	err := migrateAll(ctx, conn, m, report)
	m.Migrations = all
	if _, ok := errors.AsType[migrate.BadVersionError](err); ok {
		return nil // another core migrate has migrated further
	}
	if err != nil {
		return err
	}
	if err := lockIndexBuild(ctx, conn); err != nil {
		return err
	}
	migration := all[libraryIndexes-1].UpSQL
	hasTextures, err := db.HasTextures(ctx)
	if err != nil {
		return err
	}
	if !hasTextures {
		return dropInvalidIndexes(ctx, conn, migration)
	}
	report("making search keys of textures, and then indexes; it takes some minutes for each million")
	if _, err := db.fillKeys(ctx, textureKeys, textureKeys.selectUnkeyed, 0, noLimit, noLimit); err != nil {
		return err
	}
	return buildIndexes(ctx, conn, migration, report)
}

// One process at a time builds the indexes and runs the migration. It has the lock until its
// connection closes. The others poll, since CREATE INDEX CONCURRENTLY would wait for a
// statement that waits for the lock.
const (
	tryLockIndexes = `SELECT pg_try_advisory_lock('textures'::regclass::int, 0)`
	indexesPause   = time.Second
)

// selectInvalid reports whether an interrupted build has left an invalid index.
const selectInvalid = `SELECT EXISTS (SELECT FROM pg_index WHERE indexrelid = to_regclass($1) AND NOT indisvalid)`

var createIndex = regexp.MustCompile(`CREATE INDEX IF NOT EXISTS (\w+)`)

// buildIndexes builds the missing indexes of a migration, one after another.
func buildIndexes(ctx context.Context, conn *pgx.Conn, migration string, report func(string)) error {
	defer func() { _, _ = conn.Exec(context.WithoutCancel(ctx), "RESET ALL") }()
	for statement := range strings.SplitSeq(migration, ";\n") {
		index := createIndex.FindStringSubmatch(statement)
		switch {
		case index != nil:
			report("building the index " + index[1])
			if err := buildIndex(ctx, conn, index[1], statement); err != nil {
				return fmt.Errorf("build the index %s: %w", index[1], err)
			}
		case strings.Contains(statement, "set_config"):
			if _, err := conn.Exec(ctx, statement); err != nil {
				return err
			}
		}
	}
	// Index-only scans need the visibility map, which making the keys has cleared. The planner
	// needs statistics of the expressions in the new indexes.
	report("vacuuming textures")
	_, err := conn.Exec(ctx, "VACUUM (ANALYZE) textures, texture_likes")
	return err
}

// lockIndexBuild waits until no other process builds indexes, and takes the lock.
func lockIndexBuild(ctx context.Context, conn *pgx.Conn) error {
	for {
		var locked bool
		if err := conn.QueryRow(ctx, tryLockIndexes).Scan(&locked); err != nil || locked {
			return err
		}
		select {
		case <-time.After(indexesPause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// dropInvalidIndexes drops the invalid ones among the indexes of a migration: CREATE INDEX IF
// NOT EXISTS would keep them.
func dropInvalidIndexes(ctx context.Context, conn *pgx.Conn, migration string) error {
	for _, index := range createIndex.FindAllStringSubmatch(migration, -1) {
		if err := dropInvalid(ctx, conn, index[1]); err != nil {
			return err
		}
	}
	return nil
}

// dropInvalid drops an index if it is invalid.
func dropInvalid(ctx context.Context, conn *pgx.Conn, index string) error {
	var invalid bool
	if err := conn.QueryRow(ctx, selectInvalid, index).Scan(&invalid); err != nil || !invalid {
		return err
	}
	_, err := conn.Exec(ctx, "DROP INDEX CONCURRENTLY "+index)
	return err
}

// buildIndex builds the index that a statement creates, unless it exists.
func buildIndex(ctx context.Context, conn *pgx.Conn, index, create string) error {
	if err := dropInvalid(ctx, conn, index); err != nil {
		return err
	}
	_, err := conn.Exec(ctx, strings.Replace(create, "CREATE INDEX", "CREATE INDEX CONCURRENTLY", 1))
	return err
}
