package postgres_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/core/postgres"
	"github.com/veneer-skins/veneer/core/postgres/postgrestest"
	"github.com/veneer-skins/veneer/shared/casefold"
	"github.com/veneer-skins/veneer/shared/fault"
)

// Search keys of rows older than the columns are made in batches, once.
func TestFillKeys(t *testing.T) {
	t.Parallel()

	address := postgrestest.Empty(t)
	db, conn := postgrestest.Connect(t, address), postgrestest.Conn(t, address)
	exec := func(sql string, args ...any) {
		t.Helper()
		if _, err := conn.Exec(t.Context(), sql, args...); err != nil {
			t.Fatal(err)
		}
	}
	const users, items = 2500, 1200
	do(t, db.MigrateTo(t.Context(), 14))
	exec(`INSERT INTO users (email, email_key, nickname, password_hash) SELECT n || '@b.c', n || '@b.c', 'É ' || n, 'x' FROM generate_series(1, $1::int) n`, users)
	exec(`INSERT INTO textures (bytes, public, type, hash, pixels, name) SELECT 100, true, 'steve', sha256(n::text::bytea), sha256(n::text::bytea), 'É ' || n FROM generate_series(1, $1::int) n`, items)
	exec(`INSERT INTO closet_items (uid, tid, cape, item_name) SELECT 1 + tid % 3, tid, false, 'CAFÉ ' || tid FROM textures`)

	if _, _, err := db.Migrate(t.Context(), func(string) {}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []int{users + items, 0} {
		if got := must(db.FillKeys(t.Context()))(t); got != want {
			t.Errorf("%d keys are made; want %d", got, want)
		}
	}
	for table, of := range map[string]struct {
		name, column string
		key          func(string) string
	}{
		"users": {"nickname", "nickname_key", casefold.Key}, "closet_items": {"item_name", "item_key", casefold.Key}, "textures": {"name", "name_key", postgres.NameKey},
	} {
		rows, err := conn.Query(t.Context(), fmt.Sprintf("SELECT %s, coalesce(%s, '') FROM %s", of.name, of.column, table))
		if err != nil {
			t.Fatal(err)
		}
		for rows.Next() {
			var name, key string
			do(t, rows.Scan(&name, &key))
			if key != of.key(name) {
				t.Fatalf("%s: the key of %s is %s", table, name, key)
			}
		}
		do(t, rows.Err())
	}
}

// A search makes a bounded number of keys, and returns an Unavailable fault while more are
// missing.
func TestSearchesMakeFewKeys(t *testing.T) {
	t.Parallel()
	address := postgrestest.URL(t)
	db, conn := postgrestest.Connect(t, address), postgrestest.Conn(t, address)
	exec := func(sql string, args ...any) {
		t.Helper()
		if _, err := conn.Exec(t.Context(), sql, args...); err != nil {
			t.Fatal(err)
		}
	}
	const most = 2000
	exec(`INSERT INTO users (email, email_key, nickname, password_hash) SELECT n || '@b.c', n || '@b.c', 'É ' || n, 'x' FROM generate_series(1, $1::int) n`, 2*most+1)
	exec(`INSERT INTO textures (bytes, public, type, hash, pixels, name) SELECT 100, true, 'steve', sha256(n::text::bytea), sha256(n::text::bytea), 'T ' || n FROM generate_series(1, $1::int) n`, 2*most+1)
	exec(`INSERT INTO closet_items (uid, tid, cape, item_name) SELECT 1, tid, false, 'CAFÉ ' || tid FROM textures`)
	for table, c := range map[string]struct {
		key    string
		search func() (int, error)
	}{
		"users": {"nickname_key", func() (int, error) {
			result, err := db.FindUsers(t.Context(), core.UserQuery{Nickname: "é 4001", Page: 1, PerPage: 10})
			return result.Total, err
		}},
		"closet_items": {"item_key", func() (int, error) {
			page, err := db.ClosetOf(t.Context(), 1, core.ClosetQuery{Name: "café 4001", Page: 1, PerPage: 10})
			return page.Total, err
		}},
		"textures": {"name_key", func() (int, error) {
			result, err := db.FindTextures(t.Context(), core.User{}, core.LibraryQuery{Name: "t 4001", Page: 1, PerPage: 10})
			return result.Total, err
		}},
	} {
		for _, left := range []int{most + 1, 1} {
			_, err := c.search()
			wantKind(t, err, fault.Unavailable)
			var missing int
			do(t, conn.QueryRow(t.Context(), fmt.Sprintf("SELECT count(*) FROM %s WHERE %s IS NULL", table, c.key)).Scan(&missing))
			if missing != left {
				t.Errorf("%s: a search leaves %d keys to be made; want %d", table, missing, left)
			}
		}
		if result := must(c.search())(t); result != 1 {
			t.Errorf("%s: %d are found; want 1", table, result)
		}
	}
}

// A core of the previous release writes names without keys. Searches find the rows by their
// current names.
func TestNamesWrittenWithoutKeys(t *testing.T) {
	t.Parallel()

	address := postgrestest.URL(t)
	db, conn := postgrestest.Connect(t, address), postgrestest.Conn(t, address)
	user := must(db.CreateUser(t.Context(), core.NewUser{Email: "a@b.c", EmailKey: "a@b.c", Nickname: "Zoë", PasswordHash: "x"}))(t)
	exec := func(sql string, args ...any) {
		t.Helper()
		if _, err := conn.Exec(t.Context(), sql, args...); err != nil {
			t.Fatal(err)
		}
	}
	exec(`INSERT INTO textures (bytes, public, type, hash, pixels, name) SELECT 100, true, 'steve', sha256(n::text::bytea), sha256(n::text::bytea), 'Robe ' || n FROM generate_series(1, 2) n`)
	do(t, db.AddClosetItem(t.Context(), user.ID, 1, "Sunday best", core.Pricing{}))

	finds := func(nickname string, users int, item string, items int, name string, textures int) {
		t.Helper()
		result := must(db.FindUsers(t.Context(), core.UserQuery{Nickname: nickname, Page: 1, PerPage: 10}))(t)
		if result.Total != users {
			t.Errorf("%d users are called %s; want %d", result.Total, nickname, users)
		}
		page := must(db.ClosetOf(t.Context(), user.ID, core.ClosetQuery{Name: item, Page: 1, PerPage: 10}))(t)
		if page.Total != items || len(page.Items) != items {
			t.Errorf("%d items are called %s; want %d", page.Total, item, items)
		}
		list := must(db.FindTextures(t.Context(), core.User{}, core.LibraryQuery{Name: name, Page: 1, PerPage: 10}))(t)
		if list.Total != textures || len(list.Items) != textures {
			t.Errorf("%d textures are called %s; want %d", list.Total, name, textures)
		}
	}
	finds("ZOË", 1, "SUNDAY", 1, "ROBE", 2)

	// As the previous release inserts rows, renames them, and renames rows that this release
	// has written.
	exec(`INSERT INTO users (email, email_key, nickname, password_hash) VALUES ('b@b.c', 'b@b.c', 'Zoë 2', 'x')`)
	exec(`INSERT INTO closet_items (uid, tid, cape, item_name) VALUES ($1, 2, false, 'Sunday worst')`, user.ID)
	finds("zoë", 2, "sunday", 2, "robe", 2)
	exec(`UPDATE users SET nickname = 'Chloé' WHERE uid = $1`, user.ID)
	exec(`UPDATE closet_items SET item_name = 'Monday' WHERE uid = $1 AND tid = 1`, user.ID)
	exec(`UPDATE textures SET name = 'Frock' WHERE tid = 1`)
	finds("zoë", 1, "sunday", 1, "robe", 1)
	finds("CHLOÉ", 1, "MONDAY", 1, "FROCK", 1)

	// Renames by this release write the key, unless it stays the same.
	must(db.SetNickname(t.Context(), user.ID, "Zoë"))(t)
	do(t, db.RenameClosetItem(t.Context(), user.ID, 1, "Tuesday"))
	must(db.ChangeTexture(t.Context(), 1, core.TextureChange{Name: new("Gown")}, core.Scores{}))(t)
	if got := must(db.FillKeys(t.Context()))(t); got != 0 {
		t.Errorf("renames leave %d keys to be made", got)
	}
	must(db.SetNickname(t.Context(), user.ID, "ZOË"))(t)
	do(t, db.RenameClosetItem(t.Context(), user.ID, 1, "TUESDAY"))
	must(db.ChangeTexture(t.Context(), 1, core.TextureChange{Name: new("GOWN")}, core.Scores{}))(t)
	finds("zoë", 2, "tuesday", 1, "gown", 1)
}

// With no key missing, core migrate and searches find that out by an index, without reading the
// table.
func TestMissingKeysAreFoundByIndex(t *testing.T) {
	t.Parallel()
	conn := postgrestest.Conn(t, postgrestest.URL(t))
	for _, sql := range []string{
		`INSERT INTO users (email, email_key, nickname, nickname_key, password_hash) SELECT n || '@b.c', n || '@b.c', 'É', 'é', 'x' FROM generate_series(1, 5000) n`,
		`INSERT INTO textures (bytes, public, type, hash, pixels, name, name_key) SELECT 100, true, 'steve', sha256(n::text::bytea), sha256(n::text::bytea), 'T', 't' FROM generate_series(1, 5000) n`,
		`INSERT INTO closet_items (uid, tid, cape, item_name, item_key) SELECT uid, 1, false, 'T', 't' FROM users`,
		"ANALYZE users, closet_items, textures",
	} {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	for index, sql := range map[string]string{
		"users_nickname_key_missing": postgres.SelectUnkeyedUsers, "closet_items_item_key_missing": postgres.SelectUnkeyedItems,
		"textures_name_key_missing": postgres.SelectUnkeyedTextures,
	} {
		rows, _ := conn.Query(t.Context(), "EXPLAIN (COSTS OFF) "+sql, pgx.QueryExecModeSimpleProtocol, 0, 0, int64(math.MaxInt64), 1000) // CollectRows reports the error
		plan := strings.Join(must(pgx.CollectRows(rows, pgx.RowTo[string]))(t), "\n")
		if !strings.Contains(plan, index) {
			t.Errorf("%s is not used:\n%s", index, plan)
		}
	}
}
