package postgres_test

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/core/postgres"
	"github.com/veneer-skins/veneer/shared/casefold"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/testenv"
	"github.com/veneer-skins/veneer/shared/testenv/cmptest"
)

// expectedList computes the TIDs of a list from all textures.
func expectedList(all []core.Texture, user core.User, query core.LibraryQuery) []core.TextureID {
	result := slices.DeleteFunc(slices.Clone(all), func(x core.Texture) bool {
		visible := x.Public || user.ID != 0 && x.Uploader == user.ID || user.Permission >= core.Administrator
		return !visible || query.Uploader != nil && *query.Uploader != x.Uploader ||
			len(query.Types) > 0 && !slices.Contains(query.Types, x.Type) || !strings.Contains(casefold.SearchKey(x.Name), casefold.SearchKey(query.Name))
	})
	slices.SortFunc(result, func(a, b core.Texture) int {
		if query.ByLikes && a.Likes != b.Likes {
			return cmp.Compare(b.Likes, a.Likes)
		}
		return cmp.Compare(b.ID, a.ID)
	})
	tids := []core.TextureID{}
	for _, x := range result {
		tids = append(tids, x.ID)
	}
	return tids
}

func tidsOf(textures []core.LibraryTexture) []core.TextureID {
	tids := []core.TextureID{}
	for _, x := range textures {
		tids = append(tids, x.ID)
	}
	return tids
}

// addRandomTextures adds textures of three users and of a deleted one.
func addRandomTextures(t *testing.T, conn *pgx.Conn, random *rand.Rand, users []core.UserID, number int) (all []core.Texture) {
	t.Helper()
	words := []string{"Steve", "STEVES", "kÖnig", "狐狸", "红狐", "a", "%_\\", "___", "es", "★☆★", " ", "Slim 2.0", "Աա", "þ"}
	columns := []string{"tid", "uploader", "likes", "bytes", "public", "type", "hash", "pixels", "name", "name_key"}
	rows := [][]any{}
	for n := range number {
		x := core.Texture{
			ID: core.TextureID(n + 1), Uploader: users[random.IntN(len(users))], Likes: int64(random.IntN(4)), Public: random.IntN(4) > 0,
			Type: []skin.Type{skin.Classic, skin.Slim, skin.Cape}[random.IntN(3)],
			Name: "x" + words[random.IntN(len(words))] + words[random.IntN(len(words))] + words[random.IntN(len(words))],
		}
		if random.IntN(50) == 0 {
			x.Likes += int64(random.IntN(100_000))
		}
		var uploader *core.UserID
		if x.Uploader != 0 {
			uploader = &x.Uploader
		}
		digest := skin.HashOf(fmt.Append(nil, n))
		rows = append(rows, []any{x.ID, uploader, x.Likes, 100, x.Public, x.Type.String(), digest[:], digest[:], x.Name, postgres.NameKey(x.Name)})
		all = append(all, x)
	}
	must(conn.CopyFrom(t.Context(), pgx.Identifier{"textures"}, columns, pgx.CopyFromRows(rows)))(t)
	return all
}

// Lists equal those computed from all textures, whatever the number of rows after which they
// search the index of names.
func TestListsAgainstModel(t *testing.T) {
	t.Parallel()
	db := open(t)
	random := rand.New(rand.NewPCG(1, 2)) // reproducible
	users := []core.UserID{0, addUser(t, db, "ann").ID, addUser(t, db, "bob").ID, addUser(t, db, "cid").ID}
	all := addRandomTextures(t, db.conn(), random, users, 4000)
	db.exec(t, "ANALYZE textures") // without statistics there is no second scan
	names := []string{"", "", "steve", "esk", "Eve", "könig", "KÖNIG", "狐狸", "狐", "%_\\", "___", "★☆★", "2.0", "nothing", "evea", "xst", "   ", "ա狐", "狐ա", "eա", "þþþ", "★狐"}

	for n := range 400 {
		query := core.LibraryQuery{
			ByLikes: random.IntN(2) == 0, Name: names[random.IntN(len(names))],
			Types: [][]skin.Type{nil, {skin.Cape}, {skin.Classic, skin.Slim}}[random.IntN(3)], PerPage: 1 + random.IntN(100),
		}
		if random.IntN(3) == 0 {
			query.Uploader = &users[random.IntN(len(users))]
		}
		user := []core.User{{}, {ID: users[1]}, {ID: users[2], Permission: core.Administrator}}[random.IntN(3)]
		want := expectedList(all, user, query)
		query.Page = 1 + random.IntN(2+len(want)/query.PerPage)
		rows := []int{1, 30, 1000, 100_000}[random.IntN(4)]
		db.LimitListRows(rows)

		what := fmt.Sprintf("list %d, %+v as %+v, after %d rows", n, query, user, rows)
		result := must(db.FindTextures(t.Context(), user, query))(t)
		from, to := min((query.Page-1)*query.PerPage, len(want)), min(query.Page*query.PerPage, len(want))
		if diff := gocmp.Diff(want[from:to], tidsOf(result.Items)); diff != "" {
			t.Fatalf("%s (-want +got):\n%s", what, diff)
		}
		counted := max(1000, query.Page*query.PerPage)
		if result.Total != min(len(want), counted) || result.More != (len(want) > counted) {
			t.Fatalf("%s: total %d, more: %t; of %d matches", what, result.Total, result.More, len(want))
		}
	}
}

// texture_likes follows every change of a texture, by any statement.
func TestLikesAreCopied(t *testing.T) {
	t.Parallel()
	db, ann, bob := openForTwo(t)
	x := addTexture(t, db, texture(ann.ID, skin.Classic, "first", true))
	f := func(what string, textures int) {
		t.Helper()
		var copied, all int
		do(t, db.conn().QueryRow(t.Context(), `
			SELECT count(*) FILTER (WHERE (l.likes, l.public, l.type, l.uploader, l.name_key) IS NOT DISTINCT FROM (t.likes, t.public, t.type, coalesce(t.uploader, 0), t.name_key)), count(*)
			FROM texture_likes l FULL JOIN textures t USING (tid)`).Scan(&copied, &all))
		testenv.Equal(t, [2]int{copied, all}, [2]int{textures, textures}, "%s: the copied textures, and all", what)
	}
	f("an upload", 1)
	do(t, db.AddClosetItem(t.Context(), as(bob.ID), bob.ID, x.ID, "N", core.Pricing{}))
	f("a like", 1)
	must(db.change(t.Context(), x.ID, core.TextureChange{Name: new("renamed"), Type: new(skin.Slim)}))(t)
	f("a name and a type", 1)
	db.exec(t, "UPDATE textures SET name = 'as the release before renames'")
	f("a name without its key", 1)
	must(db.change(t.Context(), x.ID, core.TextureChange{Public: new(false)}))(t)
	f("one that becomes private", 1)
	must(db.change(t.Context(), x.ID, core.TextureChange{Public: new(true)}))(t)
	do(t, db.DeleteUser(t.Context(), as(ann.ID), credentialsOf(ann)))
	f("the end of its uploader", 1)
	do(t, db.DeleteTexture(t.Context(), anyOwner, x.ID, false))
	f("a deletion", 0)
}

// A list returns the current rows, not only the columns of the index.
func TestFindTextures(t *testing.T) {
	t.Parallel()
	db, ann := openForOne(t)
	added := addTexture(t, db, texture(ann.ID, skin.Slim, "Ann's", true))
	want := core.Page[core.LibraryTexture]{Items: []core.LibraryTexture{{Texture: added}}, Total: 1}
	got := must(db.FindTextures(t.Context(), core.User{}, core.LibraryQuery{Page: 1, PerPage: 10}))(t)
	cmptest.Same(t, got, want, "the list")
}

// Slow lists leave connections to other reads, even if each comes from another network.
func TestListsLeaveConnections(t *testing.T) {
	t.Parallel()
	db := open(t)
	x := addTexture(t, db, texture(addUser(t, db, "ann").ID, skin.Classic, "first", true))
	tx := db.begin(t)
	tx.exec(t, "LOCK TABLE texture_likes")
	var lists sync.WaitGroup
	for n := range 16 {
		lists.Go(func() {
			ctx := core.WithClient(t.Context(), core.Client{Network: netip.PrefixFrom(netip.AddrFrom4([4]byte{203, 0, byte(n), 0}), 24)})
			result := must(db.FindTextures(ctx, core.User{}, core.LibraryQuery{ByLikes: true, Page: 1, PerPage: 10}))(t)
			testenv.Equal(t, result.Total, 1, "list %d: the textures", n)
		})
	}
	tx.waitBlocked(t, 2)
	bounded, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for range 20 {
		testenv.Is(t, errOf(db.Texture(bounded, x.ID)), nil, "a read while lists wait")
	}
	do(t, tx.Commit(t.Context()))
	lists.Wait()
}

// Each statement of a list has one plan, whatever its arguments and the planner's statistics.
func TestListPlans(t *testing.T) {
	t.Parallel()
	testenv.SkipShort(t)
	db, ann := openForOne(t)
	db.exec(t, `
		SET synchronous_commit = off;
		DROP INDEX textures_name_steve, textures_name_alex, textures_name_cape;
		INSERT INTO textures (uploader, bytes, public, type, hash, pixels, likes, name, name_key)
		SELECT CASE WHEN n % 3 = 0 THEN (SELECT uid FROM users) END, 100, n % 20 > 0,
			CASE WHEN n % 1000 = 0 THEN 'cape' WHEN n % 2 = 0 THEN 'alex' ELSE 'steve' END,
			sha256(n::text::bytea), sha256(n::text::bytea), n % 97, 'Steve ' || n, 'steve ' || n
		FROM generate_series(1, 100000) n;
		CREATE INDEX textures_name_steve ON textures USING gin (name_key public.gin_trgm_ops) WHERE type = 'steve';
		CREATE INDEX textures_name_alex ON textures USING gin (name_key public.gin_trgm_ops) WHERE type = 'alex';
		CREATE INDEX textures_name_cape ON textures USING gin (name_key public.gin_trgm_ops) WHERE type = 'cape';
		ANALYZE textures, texture_likes`)
	plan := func(mode string, attempt postgres.ListQuery) string {
		t.Helper()
		tx := lockTx{must(db.conn().Begin(t.Context()))(t), db}
		defer func() { _ = tx.Rollback(t.Context()) }()
		for _, name := range attempt.Disabled {
			tx.exec(t, "SET LOCAL "+name+" = off")
		}
		tx.exec(t, "SET LOCAL max_parallel_workers_per_gather = 0; SET LOCAL plan_cache_mode = "+mode)
		tx.exec(t, "PREPARE list AS "+attempt.SQL)
		defer func() { _, _ = db.conn().Exec(t.Context(), "DEALLOCATE list") }()
		var values []string
		for _, arg := range attempt.Args {
			values = append(values, fmt.Sprintf("'%v'", arg))
		}
		rows, _ := tx.Query(t.Context(), "EXPLAIN (COSTS OFF) EXECUTE list ("+strings.Join(values, ", ")+")", pgx.QueryExecModeSimpleProtocol) // CollectRows reports the error
		return strings.Join(must(pgx.CollectRows(rows, pgx.RowTo[string]))(t), "\n")
	}

	for _, user := range []core.User{{}, ann, {ID: 1 << 40, Permission: core.Administrator}} {
		for _, types := range [][]skin.Type{nil, {skin.Cape}} {
			for _, liked := range []bool{false, true} {
				for _, uploader := range []*core.UserID{nil, &ann.ID, new(core.UserID(0))} {
					for _, name := range []string{"", "steve"} {
						for _, page := range []int{1, 100} {
							query := core.LibraryQuery{Types: types, ByLikes: liked, Uploader: uploader, Name: name, Page: page, PerPage: 100}
							for n, attempt := range db.ListQueries(user, query) {
								want, others := listIndexes(query, user, n == 1)
								for _, mode := range []string{"force_custom_plan", "force_generic_plan"} {
									got := plan(mode, attempt)
									if slices.ContainsFunc(want, func(index string) bool { return !strings.Contains(got, index) }) ||
										slices.ContainsFunc(others, func(part string) bool { return strings.Contains(got, part) }) {
										t.Fatalf("%+v as %+v, %s, attempt %d: the plan is\n%s\nwant one with %s, and none of %s", query, user, mode, n, got, want, others)
									}
								}
							}
						}
					}
				}
			}
		}
	}
}

// listIndexes returns parts of the plan of a walk or a search that must occur, and others that
// must not.
func listIndexes(query core.LibraryQuery, user core.User, search bool) (want, others []string) {
	const walks = "Index Only Scan using "
	if search {
		return []string{"Bitmap Index Scan on textures_name"}, []string{"Seq Scan", "Parallel", "Index Scan using texture", walks}
	}
	all, own := walks+"textures_newest", walks+"textures_uploader_newest"
	if query.ByLikes {
		all, own = walks+"texture_likes_most", walks+"texture_likes_uploader_most"
	}
	others = []string{"Seq Scan", "Parallel", "Bitmap", "Index Scan using texture"}
	switch {
	case query.Uploader != nil:
		return []string{own}, append(others, all+" ")
	case user.ID != 0 && user.Permission < core.Administrator:
		return []string{all, own}, others
	default:
		return []string{all}, append(others, own)
	}
}

// core migrate makes the missing keys and then builds the indexes concurrently with writes,
// also after an interrupted attempt.
func TestMigrateBuildsIndexes(t *testing.T) {
	t.Parallel()
	testenv.SkipShort(t)
	db := openWithInvalidIndex(t, 1500)
	messages := db.migrate(t)
	testenv.Check(t, len(messages) == 10 && messages[1] == "building the index textures_newest",
		"the reported messages are %q", messages)
	wantAllIndexes(t, db)
	testenv.Equal(t, must(db.FillKeys(t.Context()))(t), 0, "keys were missing")
	db.hasCount(t, 1, `
		SELECT (bool_and(pg_stat_get_last_vacuum_time(oid) IS NOT NULL) AND EXISTS (SELECT FROM pg_stats WHERE tablename = 'textures_uploader_newest'))::int
		FROM pg_class WHERE oid IN ('textures'::regclass, 'texture_likes'::regclass)`) // they are vacuumed and analyzed
	db.hasCount(t, 1500, `SELECT count(*) FROM texture_likes JOIN textures USING (tid, likes, public, type, name_key)`)
}

// openWithInvalidIndex returns a database of an earlier schema with a number of textures, and with an index that was
// left invalid by an interrupted migration.
func openWithInvalidIndex(t *testing.T, textures int) store {
	t.Helper()
	db := openEmpty(t)
	do(t, db.MigrateTo(t.Context(), 20))
	db.addTextures(t, textures)
	err := errOf(db.conn().Exec(t.Context(), "CREATE UNIQUE INDEX CONCURRENTLY textures_newest ON textures (public)"))
	testenv.Equal(t, err == nil, false, "an index is unique that cannot be")
	return db
}

// wantAllIndexes checks that the tables of lists have the indexes of a new schema.
func wantAllIndexes(t *testing.T, db store) {
	t.Helper()
	built := func(db store) (indexes []string) {
		t.Helper()
		do(t, db.conn().QueryRow(t.Context(), `
			SELECT array_agg(regexp_replace(pg_get_indexdef(indexrelid), 'test_\w+', '') ORDER BY indexrelid::regclass::text)
			FROM pg_index WHERE indrelid IN ('textures'::regclass, 'texture_likes'::regclass) AND indisvalid`).Scan(&indexes))
		return indexes
	}
	empty := open(t) // where the migration itself builds them
	cmptest.Same(t, built(db), built(empty), "the indexes")
}

// Two programs that migrate concurrently build each index once. An invalid index of an
// interrupted attempt is rebuilt, even if all textures have been deleted since.
func TestMigrationsBuildIndexesTogether(t *testing.T) {
	t.Parallel()
	testenv.SkipShort(t)
	for _, texture := range []string{"kept", "gone"} {
		t.Run(texture, func(t *testing.T) {
			t.Parallel()
			db := openWithInvalidIndex(t, 2)
			if texture == "gone" {
				db.exec(t, "DELETE FROM textures")
			}
			atOnce(t, 2, 2, 0, func(int) error {
				_, _, err := db.Migrate(t.Context(), func(string) {})
				return err
			})
			wantAllIndexes(t, db)
		})
	}
}
