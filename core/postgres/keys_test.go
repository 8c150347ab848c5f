package postgres_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/core/postgres"
	"github.com/veneer-skins/veneer/shared/casefold"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/testenv"
	"github.com/veneer-skins/veneer/shared/testenv/cmptest"
)

// Search keys of rows older than the columns are made in batches, once.
func TestFillKeys(t *testing.T) {
	t.Parallel()

	db := openEmpty(t)
	const users, items = 2500, 1200
	do(t, db.MigrateTo(t.Context(), 14))
	db.addUsers(t, users)
	db.addTextures(t, items)
	db.exec(t, `INSERT INTO closet_items (uid, tid, cape, item_name)
		SELECT 1 + tid % 3, tid, false, 'CAFÉ ' || tid FROM textures`)

	db.migrate(t)
	for _, want := range []int{users + items, 0} {
		testenv.Equal(t, must(db.FillKeys(t.Context()))(t), want, "keys are made")
	}
	for table, of := range map[string]struct {
		name, column string
		key          func(string) string
	}{
		"users": {"nickname", "nickname_key", casefold.SearchKey}, "closet_items": {"item_name", "item_key", casefold.SearchKey}, "textures": {"name", "name_key", postgres.NameKey},
	} {
		rows := must(db.conn().Query(t.Context(), fmt.Sprintf("SELECT %s, coalesce(%s, '') FROM %s", of.name, of.column, table)))(t)
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

// Of two accounts whose addresses are equal since domains are mapped, the older takes the key unless the
// newer has it, and the other keeps its own and is returned. Names in compatibility characters get new search keys.
func TestKeysAreMadeAnew(t *testing.T) {
	t.Parallel()
	db := open(t)
	db.exec(t, `INSERT INTO users (email, email_key, nickname, nickname_key, password_hash) VALUES
		('a@XN--BCHER-KVA.example', 'a@xn--bcher-kva.example', 'ＡＬＥＸ', 'ａｌｅｘ', ''), ('a@bücher.example', 'a@bücher.example', 'alex', 'alex', ''),
		('b@ＥＸＡＭＰＬＥ.com', 'b@ｅｘａｍｐｌｅ.com', 'b', 'b', ''), ('c@example.com', 'c@example.com', 'c', 'c', ''),
		('b@example。com', 'b@example。com', 'd', 'd', ''), ('e@f.g', 'e@f.g', 'Große  Straße', 'große  straße', '')`)
	for _, want := range []int{2, 0} { // a core of the release before may write them again
		testenv.Equal(t, must(db.FillKeys(t.Context()))(t), want, "search keys are made")
	}
	for range 2 {
		_, equal, err := db.RekeyEmails(t.Context())
		do(t, err)
		cmptest.Same(t, equal, []core.User{{ID: 1, Email: "a@XN--BCHER-KVA.example"}, {ID: 5, Email: "b@example。com"}}, "the accounts whose key is taken")
	}
	keys := must(db.conn().Query(t.Context(), `SELECT email_key || ' ' || nickname_key FROM users ORDER BY uid`))(t)
	cmptest.Same(t, must(pgx.CollectRows(keys, pgx.RowTo[string]))(t),
		[]string{"a@xn--bcher-kva.example alex", "a@bücher.example alex", "b@example.com b", "c@example.com c", "b@example。com d", "e@f.g grosse strasse"}, "the keys")
}

// A search makes a bounded number of keys, and returns an Unavailable fault while more are
// missing.
func TestSearchesMakeFewKeys(t *testing.T) {
	t.Parallel()
	db := open(t)
	const most = 2000
	db.addUsers(t, 2*most+1)
	db.addTextures(t, 2*most+1)
	db.exec(t, `INSERT INTO closet_items (uid, tid, cape, item_name) SELECT 1, tid, false, 'CAFÉ ' || tid FROM textures`)
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
			result, err := db.FindTextures(t.Context(), core.User{}, core.LibraryQuery{Name: "é 4001", Page: 1, PerPage: 10})
			return result.Total, err
		}},
	} {
		for _, left := range []int{most + 1, 1} {
			wantKind(t, errOf(c.search()), fault.Unavailable)
			db.hasCount(t, left, fmt.Sprintf("SELECT count(*) FROM %s WHERE %s IS NULL", table, c.key))
		}
		testenv.Equal(t, must(c.search())(t), 1, "%s that are found", table)
	}
}

// A core of the previous release writes names without keys. Searches find the rows by their
// current names.
func TestNamesWrittenWithoutKeys(t *testing.T) {
	t.Parallel()

	db := open(t)
	user := must(db.CreateUser(t.Context(), core.Registrant, core.NewUser{Email: "a@b.c", EmailKey: "a@b.c", Nickname: "Zoë", PasswordHash: "x"}))(t)
	db.addTextures(t, 2)
	db.exec(t, `UPDATE textures SET name = 'Robe ' || tid`)
	do(t, db.AddClosetItem(t.Context(), as(user.ID), user.ID, 1, "Sunday best", core.Pricing{}))

	finds := func(nickname string, users int, item string, items int, name string, textures int) {
		t.Helper()
		result := must(db.FindUsers(t.Context(), core.UserQuery{Nickname: nickname, Page: 1, PerPage: 10}))(t)
		testenv.Equal(t, result.Total, users, "users that are called %s", nickname)
		page := must(db.ClosetOf(t.Context(), user.ID, core.ClosetQuery{Name: item, Page: 1, PerPage: 10}))(t)
		testenv.Equal(t, [2]int{page.Total, len(page.Items)}, [2]int{items, items}, "items that are called %s", item)
		list := must(db.FindTextures(t.Context(), core.User{}, core.LibraryQuery{Name: name, Page: 1, PerPage: 10}))(t)
		testenv.Equal(t, [2]int{list.Total, len(list.Items)}, [2]int{textures, textures}, "textures that are called %s", name)
	}
	finds("ZOË", 1, "SUNDAY", 1, "ROBE", 2)

	// As the previous release inserts rows, renames them, and renames rows that this release
	// has written.
	db.exec(t, `INSERT INTO users (email, email_key, nickname, password_hash) VALUES ('b@b.c', 'b@b.c', 'Zoë 2', 'x')`)
	db.exec(t, `INSERT INTO closet_items (uid, tid, cape, item_name) VALUES ($1, 2, false, 'Sunday worst')`, user.ID)
	finds("zoë", 2, "sunday", 2, "robe", 2)
	db.exec(t, `UPDATE users SET nickname = 'Chloé' WHERE uid = $1`, user.ID)
	db.exec(t, `UPDATE closet_items SET item_name = 'Monday' WHERE uid = $1 AND tid = 1`, user.ID)
	db.exec(t, `UPDATE textures SET name = 'Frock' WHERE tid = 1`)
	finds("zoë", 1, "sunday", 1, "robe", 1)
	finds("CHLOÉ", 1, "MONDAY", 1, "FROCK", 1)

	// Renames by this release write the key, unless it stays the same.
	must(db.SetNickname(t.Context(), as(user.ID), user.ID, "Zoë"))(t)
	do(t, db.RenameClosetItem(t.Context(), user.ID, 1, "Tuesday"))
	must(db.change(t.Context(), 1, core.TextureChange{Name: new("Gown")}))(t)
	testenv.Equal(t, must(db.FillKeys(t.Context()))(t), 0, "keys that renames leave to be made")
	must(db.SetNickname(t.Context(), as(user.ID), user.ID, "ZOË"))(t)
	do(t, db.RenameClosetItem(t.Context(), user.ID, 1, "TUESDAY"))
	must(db.change(t.Context(), 1, core.TextureChange{Name: new("GOWN")}))(t)
	finds("zoë", 2, "tuesday", 1, "gown", 1)
}

// With no key missing, core migrate and searches find that out by an index, without reading the
// table.
func TestMissingKeysAreFoundByIndex(t *testing.T) {
	t.Parallel()
	db := open(t)
	db.exec(t, `
		INSERT INTO users (email, email_key, nickname, nickname_key, password_hash)
			SELECT n || '@b.c', n || '@b.c', 'É', 'é', 'x' FROM generate_series(1, 5000) n;
		INSERT INTO textures (bytes, public, type, hash, pixels, name, name_key)
			SELECT 100, true, 'steve', sha256(n::text::bytea), sha256(n::text::bytea), 'T', 't' FROM generate_series(1, 5000) n;
		INSERT INTO closet_items (uid, tid, cape, item_name, item_key) SELECT uid, 1, false, 'T', 't' FROM users;
		ANALYZE users, closet_items, textures`)
	for index, sql := range map[string]string{
		"users_nickname_key_missing": postgres.SelectUnkeyedUsers, "closet_items_item_key_missing": postgres.SelectUnkeyedItems,
		"textures_name_key_missing": postgres.SelectUnkeyedTextures,
	} {
		rows, _ := db.conn().Query(t.Context(), "EXPLAIN (COSTS OFF) "+sql, pgx.QueryExecModeSimpleProtocol, 0, 0, int64(math.MaxInt64), 1000) // CollectRows reports the error
		plan := strings.Join(must(pgx.CollectRows(rows, pgx.RowTo[string]))(t), "\n")
		testenv.Equal(t, strings.Contains(plan, index), true, "%s is used:\n%s\n", index, plan)
	}
}
