package postgres_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/core/postgres"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/testenv"
	"github.com/veneer-skins/veneer/shared/testenv/cmptest"
)

// Walls equal those computed from all textures, without the ones about which a report is open.
func TestWallsAgainstModel(t *testing.T) {
	t.Parallel()
	db := open(t)
	ann := addUser(t, db, "ann").ID
	all := addRandomTextures(t, db.conn(), rand.New(rand.NewPCG(1, 2)), []core.UserID{0, ann}, 2000)
	reported := map[core.TextureID]bool{}
	for _, query := range []core.LibraryQuery{{}, {ByLikes: true}} {
		for n, tid := range expectedList(all, core.User{}, query)[:60] {
			state := []string{"open", "rejected", "none"}[n%3]
			if state == "none" {
				continue
			}
			reported[tid] = reported[tid] || state == "open"
			db.exec(t, `INSERT INTO reports (tid, reporter, reason, state, settled_at) SELECT $1, $2, 'x', $3::text, CASE WHEN $3::text <> 'open' THEN now() END
				WHERE NOT EXISTS (SELECT FROM reports WHERE tid = $1 AND state = 'open')`, tid, ann, state)
		}
	}
	for _, limit := range []int{1, 12, 50} {
		got := must(db.Walls(t.Context(), limit))(t)
		for name, wall := range map[string][]core.Texture{"newest": got.Newest, "most liked": got.MostLiked} {
			want := slices.DeleteFunc(expectedList(all, core.User{}, core.LibraryQuery{ByLikes: name == "most liked", Types: []skin.Type{skin.Classic, skin.Slim}}), func(tid core.TextureID) bool { return reported[tid] })
			var tids []core.TextureID
			for _, texture := range wall {
				tids = append(tids, texture.ID)
			}
			cmptest.Same(t, tids, want[:limit], "%d skins, %s", limit, name)
		}
	}
}

// Walls are read from the front of two indexes, however many textures there are.
func TestWallsPlan(t *testing.T) {
	t.Parallel()
	db := open(t)
	db.exec(t, `INSERT INTO textures (bytes, public, type, hash, pixels, likes, name, name_key)
		SELECT 100, n % 20 > 0, CASE WHEN n % 2 = 0 THEN 'alex' ELSE 'steve' END, sha256(n::text::bytea), sha256(n::text::bytea), n % 97, 'Steve ' || n, 'steve ' || n
		FROM generate_series(1, 20000) n;
		INSERT INTO reports (tid, reason) SELECT n, 'x' FROM generate_series(1, 5000) n; ANALYZE`)
	tx := must(db.conn().Begin(t.Context()))(t)
	defer func() { _ = tx.Rollback(t.Context()) }()
	for _, name := range postgres.WallsDisabled {
		must(tx.Exec(t.Context(), "SET LOCAL "+name+" = off"))(t)
	}
	rows, _ := tx.Query(t.Context(), "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) "+strings.NewReplacer("$1", "12", "$2", "312").Replace(postgres.SelectWalls), pgx.QueryExecModeSimpleProtocol) // CollectRows reports the error
	plan := strings.Join(must(pgx.CollectRows(rows, pgx.RowTo[string]))(t), "\n")
	for _, part := range []string{"Index Only Scan using textures_newest", "Index Only Scan using texture_likes_most", "reports_tid"} {
		testenv.Contains(t, plan, part, "the plan")
	}
	for _, part := range []string{"Seq Scan", "Bitmap"} {
		testenv.Check(t, !strings.Contains(plan, part), "the plan has %s:\n%s", part, plan)
	}
}

// A player is found in any case, with what it wears.
func TestWornPlayer(t *testing.T) {
	t.Parallel()
	db := open(t)
	ann := addUser(t, db, "ann")
	addRandomTextures(t, db.conn(), rand.New(rand.NewPCG(1, 2)), []core.UserID{ann.ID}, 2)
	db.exec(t, "UPDATE textures SET type = CASE tid WHEN 1 THEN 'alex' ELSE 'cape' END, public = tid = 1")
	db.exec(t, "INSERT INTO players (uid, name, name_key) VALUES ($1, 'Bare', 'bare')", ann.ID)
	db.exec(t, "INSERT INTO players (uid, name, name_key, tid_skin, tid_cape) VALUES ($1, 'Élan', 'élan', 1, 2)", ann.ID)
	got := must(db.WornPlayer(t.Context(), "élan"))(t)
	testenv.Check(t, got.Name == "Élan" && got.ID == 2 && got.Skin.ID == 1 && got.Skin.Public && got.Cape.ID == 2 && got.Cape.Type == skin.Cape && !got.Cape.Public, "the dressed player is %+v", got)
	got = must(db.WornPlayer(t.Context(), "bare"))(t)
	testenv.Check(t, got.Name == "Bare" && got.Skin == nil && got.Cape == nil, "the bare player is %+v", got)
	_, err := db.WornPlayer(t.Context(), "nobody")
	testenv.Equal(t, fault.KindOf(err), fault.NotFound, "an unknown player")
}
