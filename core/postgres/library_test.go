package postgres_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/core/postgres"
	"github.com/veneer-skins/veneer/core/postgres/postgrestest"
	"github.com/veneer-skins/veneer/shared/skin"
)

// readLibrary returns all textures.
func readLibrary(t *testing.T, db *postgres.DB) ([]core.Listing, core.LibraryMoment) {
	t.Helper()
	var all []core.Listing
	moment := must(db.ReadLibrary(t.Context(), func(l core.Listing) error {
		all = append(all, l)
		return nil
	}))(t)
	return all, moment
}

func listing(t core.Texture, likes int64) core.Listing {
	return core.Listing{ID: t.ID, Uploader: t.Uploader, Likes: likes, Type: t.Type, Public: t.Public, Name: t.Name}
}

// Everything that changes what the library lists is told of, whoever does it.
func TestLibraryChanges(t *testing.T) {
	t.Parallel()
	address := postgrestest.URL(t)
	db, conn := postgrestest.Connect(t, address), postgrestest.Conn(t, address)
	ann, bob := addUser(t, db, "ann"), addUser(t, db, "bob")
	first := addTexture(t, db, texture(ann.ID, skin.Steve, "first", true))
	all, moment := readLibrary(t, db)
	if diff := cmp.Diff([]core.Listing{listing(first, 1)}, all); diff != "" {
		t.Errorf("all textures (-want +got):\n%s", diff)
	}
	f := func(what string, want ...core.Listing) {
		t.Helper()
		changed, now, known, err := db.LibraryChanges(t.Context(), moment)
		if err != nil || !known {
			t.Fatalf("%s: known %t, %v", what, known, err)
		}
		if diff := cmp.Diff(want, changed); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
		moment = now
	}
	do := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}

	f("nothing")
	second := addTexture(t, db, texture(ann.ID, skin.Cape, "second", false))
	f("an upload", listing(second, 1))
	do(db.AddClosetItem(t.Context(), bob.ID, first.ID, "N", core.Terms{}))
	f("a like", listing(first, 2))
	do(db.RenameClosetItem(t.Context(), bob.ID, first.ID, "M"))
	wears(t, db, bob, "Bobs", first.ID)
	must(db.SetAvatar(t.Context(), bob.ID, first.ID))(t)
	f("what others do with it")
	first = must(db.ChangeTexture(t.Context(), first.ID, core.TextureChange{Name: new("renamed"), Type: new(skin.Alex)}, core.Scores{}))(t)
	f("a name and a type", listing(first, 2))
	do(db.RemoveClosetItem(t.Context(), bob.ID, first.ID))
	do(db.AddClosetItem(t.Context(), bob.ID, first.ID, "N", core.Terms{}))
	second = must(db.ChangeTexture(t.Context(), second.ID, core.TextureChange{Public: new(true)}, core.Scores{}))(t)
	f("several, one of them twice", listing(first, 2), listing(second, 1))
	do(db.DeleteTexture(t.Context(), second.ID))
	f("a deletion", core.Listing{ID: second.ID})
	do(db.DeleteUser(t.Context(), proofOf(ann)))
	first.Uploader = 0
	f("the end of its uploader", listing(first, 1))

	// What cannot be told is not.
	unknown := func(what string, since core.LibraryMoment) {
		t.Helper()
		if changed, _, known, err := db.LibraryChanges(t.Context(), since); err != nil || known || len(changed) > 0 {
			t.Errorf("%s: known %t, %v, %v", what, known, changed, err)
		}
	}
	another, old := moment, moment
	another.Epoch = "another"
	unknown("another epoch", another)
	old.At = old.At.Add(-31 * time.Minute)
	unknown("long ago", old)
	if _, err := conn.Exec(t.Context(), "INSERT INTO texture_changes (tid) SELECT n FROM generate_series(1, 50000) n"); err != nil {
		t.Fatal(err)
	}
	unknown("too many", moment)
	if n := must(db.TrimLibrary(t.Context(), time.Now().Add(time.Hour)))(t); n < 50_000 {
		t.Errorf("%d changes are trimmed", n)
	}
	f("what is trimmed")
}

// A change that is committed after others that began later is not missed.
func TestLibraryChangesFollowCommits(t *testing.T) {
	t.Parallel()
	db, address := named(t)
	ann := addUser(t, db, "ann")
	slow, quick := addTexture(t, db, texture(ann.ID, skin.Steve, "slow", true)), addTexture(t, db, texture(ann.ID, skin.Steve, "quick", true))
	other := hold(t, address)
	other.do(t, "UPDATE textures SET likes = 7 WHERE tid = $1", slow.ID)
	_, moment := readLibrary(t, db)
	must(db.ChangeTexture(t.Context(), quick.ID, core.TextureChange{Name: new("quicker")}, core.Scores{}))(t)
	tids := func() (tids []core.TextureID) {
		t.Helper()
		changed, now, known, err := db.LibraryChanges(t.Context(), moment)
		if err != nil || !known {
			t.Fatalf("known %t, %v", known, err)
		}
		for _, l := range changed {
			tids = append(tids, l.ID)
		}
		moment = now
		return tids
	}

	if got := tids(); !slices.Equal(got, []core.TextureID{quick.ID}) {
		t.Errorf("while it is under way %v have changed; want %d", got, quick.ID)
	}
	if err := other.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := tids(); !slices.Equal(got, []core.TextureID{slow.ID}) {
		t.Errorf("after its commit %v have changed; want %d", got, slow.ID)
	}
}

// What a list asks of the database does not depend on how much there is in it.
func TestLibraryPlans(t *testing.T) {
	t.Parallel()
	address := postgrestest.URL(t)
	db, conn := postgrestest.Connect(t, address), postgrestest.Conn(t, address)
	if _, err := conn.Exec(t.Context(), `
		INSERT INTO textures (bytes, public, type, hash, pixels, name)
		SELECT 100, true, 'cape', sha256(n::text::bytea), sha256(n::text::bytea), 'Many' FROM generate_series(1, 20000) n`); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), "ANALYZE textures, texture_changes"); err != nil {
		t.Fatal(err)
	}
	_, moment := readLibrary(t, db)
	f := func(index, sql, types, values string) {
		t.Helper()
		for _, mode := range []string{"force_custom_plan", "force_generic_plan"} {
			if _, err := conn.Exec(t.Context(), "SET plan_cache_mode = "+mode+"; PREPARE asked ("+types+") AS "+sql); err != nil {
				t.Fatal(err)
			}
			rows, _ := conn.Query(t.Context(), "EXPLAIN (COSTS OFF) EXECUTE asked ("+values+")", pgx.QueryExecModeSimpleProtocol) // CollectRows reports the error
			plan := strings.Join(must(pgx.CollectRows(rows, pgx.RowTo[string]))(t), "\n")
			for _, part := range []string{"textures_pkey", index} {
				if !strings.Contains(plan, part) {
					t.Errorf("%s: the plan is\n%s\nwant one with %s", mode, plan, part)
				}
			}
			if strings.Contains(plan, "Seq Scan on texture") {
				t.Errorf("%s: the plan is\n%s\nwant no more looked at than is needed", mode, plan)
			}
			if _, err := conn.Exec(t.Context(), "DEALLOCATE asked"); err != nil {
				t.Fatal(err)
			}
		}
	}

	f("texture_changes_xid", postgres.SelectLibraryChanges, "text, bigint", "'"+moment.Snapshot+"', 50000")
	f("textures_pkey", postgres.SelectTextures, "bigint[]", "'{5, 6, 7}'")
}
