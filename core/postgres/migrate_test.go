package postgres_test

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/shared/testenv"
	"github.com/veneer-skins/veneer/shared/testenv/cmptest"
)

// selectSchema describes everything in the schema, one line each.
const selectSchema = `
	WITH here AS (SELECT oid FROM pg_namespace WHERE nspname = current_schema)
	SELECT coalesce(array_agg(line ORDER BY line), '{}') FROM (
		SELECT concat_ws(' ', c.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attidentity, pg_get_expr(d.adbin, d.adrelid))
		FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid LEFT JOIN pg_attrdef d ON (d.adrelid, d.adnum) = (a.attrelid, a.attnum)
		WHERE c.relnamespace = (TABLE here) AND c.relkind IN ('r', 'S') AND a.attnum > 0 AND NOT a.attisdropped
		UNION ALL
		SELECT concat_ws(' ', conrelid::regclass, conname, pg_get_constraintdef(oid)) FROM pg_constraint WHERE connamespace = (TABLE here)
		UNION ALL
		SELECT pg_get_indexdef(oid) FROM pg_class WHERE relnamespace = (TABLE here) AND relkind = 'i'
		UNION ALL
		SELECT concat_ws(' ', t.tgenabled, pg_get_triggerdef(t.oid)) FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
		WHERE c.relnamespace = (TABLE here) AND NOT t.tgisinternal
		UNION ALL
		SELECT concat_ws(' ', c.relname, d.objsubid, d.description) FROM pg_description d JOIN pg_class c ON (d.classoid, d.objoid) = ('pg_class'::regclass, c.oid)
		WHERE c.relnamespace = (TABLE here)
		UNION ALL
		SELECT pg_get_functiondef(oid) FROM pg_proc WHERE pronamespace = (TABLE here)
	) lines (line)`

// Each migration can be reverted, which restores the schema before it.
func TestMigrationsAreReversible(t *testing.T) {
	t.Parallel()
	testenv.SkipShort(t)
	files, err := filepath.Glob("migrations/*.sql")
	if err != nil || len(files) == 0 {
		t.Fatalf("%v, %v", files, err)
	}
	db := openEmpty(t)
	schema := func() (lines []string) {
		t.Helper()
		do(t, db.conn().QueryRow(t.Context(), selectSchema).Scan(&lines))
		return lines
	}

	do(t, db.MigrateTo(t.Context(), 0))
	before := [][]string{schema()}
	for version := range files {
		do(t, db.MigrateTo(t.Context(), int32(version+1)))
		before = append(before, schema())
	}
	if len(before[len(files)]) <= len(before[0]) {
		t.Fatalf("all migrations make %d things of %d", len(before[len(files)]), len(before[0]))
	}
	// An action of the command line cannot be stored by earlier schemas.
	must(db.CreateUser(t.Context(), core.CLIActor, core.NewUser{Email: "a@b.c", EmailKey: "a@b.c", Nickname: "A", PasswordHash: "x"}))(t)
	for version, file := range slices.Backward(files) {
		do(t, db.MigrateTo(t.Context(), int32(version)))
		cmptest.Same(t, schema(), before[version], "%s reverted leaves", file)
	}
}

// A migration stops waiting for a table after a timeout, so that later statements can use the
// table, and is retried.
func TestMigrationLockTimeout(t *testing.T) {
	t.Parallel()
	testenv.SkipShort(t)
	db := openEmpty(t)
	do(t, db.MigrateTo(t.Context(), 14))
	tx := db.lock(t, "SELECT FROM users")

	waits, done := make(chan string, 100), make(chan error, 1)
	go func() {
		_, _, err := db.Migrate(t.Context(), func(text string) { waits <- text })
		done <- err
	}()
	for range 2 {
		select {
		case text := <-waits:
			const want = "015_search_keys.sql waits until other transactions end; trying again"
			testenv.Equal(t, text, want, "the reported message")
		case err := <-done:
			t.Fatalf("the migration ended while a transaction held its table: %v", err)
		}
	}
	do(t, tx.Commit(t.Context()))
	do(t, <-done)
	do(t, db.Check(t.Context()))
}
