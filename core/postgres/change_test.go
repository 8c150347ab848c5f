package postgres_test

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/jackc/pgx/v5"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/core/postgres"
	"github.com/veneer-skins/veneer/core/postgres/postgrestest"
	"github.com/veneer-skins/veneer/shared/edgeproto"
	"github.com/veneer-skins/veneer/shared/skin"
)

// keysAfter returns the keys of every change after a revision, sorted within
// each change.
func keysAfter(t *testing.T, db *postgres.DB, revision int64) [][]edgeproto.Key {
	t.Helper()
	events := must(db.ChangesAfter(t.Context(), revision, 1000))(t)
	keys := [][]edgeproto.Key{}
	for i, e := range events {
		if want := revision + int64(i) + 1; e.Revision != want {
			t.Errorf("change %d has revision %d; want %d", i, e.Revision, want)
		}
		keys = append(keys, slices.Sorted(slices.Values(e.Keys)))
	}
	return keys
}

// Each write names the keys of the mappings that it changes, in the format of the wire
// protocol. A write that changes nothing names none.
func TestWritesNameTheirKeys(t *testing.T) {
	t.Parallel()
	db := postgrestest.Open(t)
	calls := 0
	db.OnChange(func() { calls++ })
	var at int64
	expect := func(what string, want ...edgeproto.Key) {
		t.Helper()
		head := must(db.NumberChanges(t.Context()))(t).Revision
		wantChanges := [][]edgeproto.Key{}
		if len(want) > 0 {
			wantChanges = append(wantChanges, slices.Sorted(slices.Values(want)))
			if calls == 0 {
				t.Errorf("%s: onChange was not called", what)
			}
		}
		if diff := cmp.Diff(wantChanges, keysAfter(t, db, at)); diff != "" {
			t.Errorf("%s names (-want +got):\n%s", what, diff)
		}
		at, calls = head, 0
	}

	ann := addUser(t, db, "ann")
	expect("a registration", edgeproto.UIDKey(int64(ann.ID)))
	bob := must(db.CreateUser(t.Context(), core.NewUser{Email: "b@x.org", EmailKey: "b@x.org", Nickname: "b", PasswordHash: "x", Player: player("Bob")}))(t)
	bobs := playersOf(t, db, bob.ID)[0]
	expect("a registration with a player", append(playerKeys(bobs), edgeproto.UIDKey(int64(bob.ID)))...)

	steve := addPlayer(t, db, ann.ID, "Steve")
	pid, uuid := edgeproto.PIDKey(int64(steve.ID)), edgeproto.UUIDKey(steve.UUID.String())
	expect("an added player", pid, edgeproto.NameKey("Steve"), uuid)
	must(db.RenamePlayer(t.Context(), ann.ID, steve.ID, player("Alex")))(t)
	expect("a renamed player", pid, edgeproto.NameKey("Steve"), edgeproto.NameKey("Alex"), uuid)
	must(db.RenamePlayer(t.Context(), ann.ID, steve.ID, player("Alex")))(t)
	expect("a player renamed to the same")

	a := addTexture(t, db, texture(ann.ID, skin.Classic, "a", true))
	expect("an upload", edgeproto.TIDKey(int64(a.ID)), edgeproto.HashKey(a.Hash))
	must(db.SetPlayerTextures(t.Context(), ann.ID, steve.ID, core.TextureSelection{Skin: &a.ID}))(t)
	expect("applied textures", pid, edgeproto.NameKey("Alex"), uuid)
	must(db.SetPlayerTextures(t.Context(), ann.ID, steve.ID, core.TextureSelection{Skin: &a.ID}))(t)
	expect("the same textures again")
	if _, err := db.ClearPlayerTextures(t.Context(), bob.ID, steve.ID, true, true); err == nil {
		t.Fatal("another user's player is changed")
	}
	expect("a refusal")
	must(db.ClearPlayerTextures(t.Context(), ann.ID, steve.ID, true, true))(t)
	expect("cleared textures", pid, edgeproto.NameKey("Alex"), uuid)
	if err := db.DeletePlayer(t.Context(), ann.ID, steve.ID); err != nil {
		t.Fatal(err)
	}
	expect("a deleted player", pid, edgeproto.NameKey("Alex"), uuid)
}

// write inserts a change with a key.
func write(t *testing.T, tx pgx.Tx, key edgeproto.Key) {
	t.Helper()
	if _, err := tx.Exec(t.Context(), "INSERT INTO changes (keys) VALUES ($1)", []edgeproto.Key{key}); err != nil {
		t.Fatal(err)
	}
}

// A transaction that inserts its change first, but commits after the change of another one was
// numbered, gets the later number, so that no reader of the feed misses it.
func TestRevisionsFollowCommits(t *testing.T) {
	t.Parallel()
	address := postgrestest.URL(t)
	db := postgrestest.Connect(t, address)
	early := must(postgrestest.Conn(t, address).Begin(t.Context()))(t)
	late := must(postgrestest.Conn(t, address).Begin(t.Context()))(t)

	write(t, early, "name:early")
	write(t, late, "name:late")
	if err := late.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if head := must(db.NumberChanges(t.Context()))(t); head.Revision != 1 {
		t.Fatalf("head %v; want revision 1", head)
	}
	if err := early.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if head := must(db.NumberChanges(t.Context()))(t); head.Revision != 2 {
		t.Fatalf("head %v; want revision 2", head)
	}
	if diff := cmp.Diff([][]edgeproto.Key{{"name:late"}, {"name:early"}}, keysAfter(t, db, 0)); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
}

// With several cores that number concurrently, each change gets one number, without gaps.
func TestNumberingInParallel(t *testing.T) {
	t.Parallel()
	address := postgrestest.URL(t)
	ann := addUser(t, postgrestest.Connect(t, address), "ann")

	var group sync.WaitGroup
	for n := range 4 {
		db := postgrestest.Connect(t, address)
		group.Go(func() {
			for i := range 25 {
				if _, err := db.CreatePlayer(t.Context(), ann.ID, player("p"+string(rune('a'+n))+string(rune('a'+i))), core.Pricing{}); err != nil {
					t.Error(err)
				}
				if _, err := db.NumberChanges(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()

	db := postgrestest.Connect(t, address)
	if head := must(db.NumberChanges(t.Context()))(t); head.Revision != 101 {
		t.Errorf("head %v after 101 changes", head)
	}
	counts := map[edgeproto.Key]int{}
	for _, keys := range keysAfter(t, db, 0) {
		for _, key := range keys {
			counts[key]++
		}
	}
	if len(counts) != 301 { // a uid, and a pid, a name and a uuid for each player
		t.Errorf("%d keys were named; want 301", len(counts))
	}
}

// On another server, database or timeline the numbers handed out before are meaningless.
func TestOtherHistoryBeginsAnEpoch(t *testing.T) {
	t.Parallel()
	address := postgrestest.URL(t)
	db := postgrestest.Connect(t, address)
	addUser(t, db, "ann")
	before := must(db.NumberChanges(t.Context()))(t)
	if again := must(db.NumberChanges(t.Context()))(t); again != before {
		t.Errorf("head %v without a change; want %v", again, before)
	}

	if _, err := postgrestest.Conn(t, address).Exec(t.Context(), "UPDATE feed SET history = 'before the restore'"); err != nil {
		t.Fatal(err)
	}
	after := must(db.NumberChanges(t.Context()))(t)
	if after.Epoch == before.Epoch || after.Revision != before.Revision {
		t.Errorf("head %v after a restore; want %v in another epoch", after, before)
	}
	if again := must(db.NumberChanges(t.Context()))(t); again != after {
		t.Errorf("head %v after a restore, then %v", after, again)
	}
}

// A table that was restored in place has an old revision, but another oid.
func TestRestoredTableBeginsAnEpoch(t *testing.T) {
	t.Parallel()
	address := postgrestest.URL(t)
	db := postgrestest.Connect(t, address)
	addUser(t, db, "ann")
	before := must(db.NumberChanges(t.Context()))(t)

	// This is what pg_restore --clean does.
	if _, err := postgrestest.Conn(t, address).Exec(t.Context(),
		"CREATE TABLE restored (LIKE feed INCLUDING ALL); INSERT INTO restored SELECT * FROM feed; DROP TABLE feed; ALTER TABLE restored RENAME TO feed",
	); err != nil {
		t.Fatal(err)
	}
	if after := must(db.NumberChanges(t.Context()))(t); after.Epoch == before.Epoch || after.Revision != before.Revision {
		t.Errorf("head %v after a restore; want %v in another epoch", after, before)
	}
}

func TestTrimChanges(t *testing.T) {
	t.Parallel()
	address := postgrestest.URL(t)
	db := postgrestest.Connect(t, address)
	addUser(t, db, "ann")
	addUser(t, db, "bob")
	must(db.NumberChanges(t.Context()))(t)
	if _, err := postgrestest.Conn(t, address).Exec(t.Context(), "UPDATE changes SET numbered_at = now() - interval '25 hours' WHERE revision = 1"); err != nil {
		t.Fatal(err)
	}
	addUser(t, db, "cid") // not numbered yet, so it must stay

	if n := must(db.TrimChanges(t.Context(), time.Now().Add(-core.ChangeRetention)))(t); n != 1 {
		t.Errorf("%d changes trimmed; want 1", n)
	}
	head := must(db.NumberChanges(t.Context()))(t)
	if head.Trimmed != 1 || head.Revision != 3 {
		t.Errorf("head %+v; want revision 3, trimmed through 1", head)
	}
	if got := keysAfter(t, db, 1); len(got) != 2 {
		t.Errorf("changes left: %v; want 2", got)
	}
}

func TestMappings(t *testing.T) {
	t.Parallel()
	address := postgrestest.URL(t)
	db := postgrestest.Connect(t, address)
	ann, bob := addUser(t, db, "ann"), addUser(t, db, "bob")
	first := texture(ann.ID, skin.Classic, "a", true)
	a := addTexture(t, db, first)
	again := texture(bob.ID, skin.Slim, "b", false) // the same file as another type
	again.Hash = first.Hash
	b := addTexture(t, db, again)
	cape := addTexture(t, db, texture(ann.ID, skin.Cape, "c", true))
	steve := addPlayer(t, db, ann.ID, "Steve")
	bare := addPlayer(t, db, ann.ID, "Bare")
	must(db.SetPlayerTextures(t.Context(), ann.ID, steve.ID, core.TextureSelection{Skin: &a.ID, Cape: &cape.ID}))(t)
	conn := postgrestest.Conn(t, address)
	if _, err := conn.Exec(t.Context(), "UPDATE users SET avatar = CASE uid WHEN $1 THEN $2 ELSE 12345 END", ann.ID, b.ID); err != nil {
		t.Fatal(err)
	}

	mapped := func(x core.Texture) *edgeproto.Texture {
		return &edgeproto.Texture{TID: int64(x.ID), Hash: x.Hash, Type: x.Type}
	}
	steveMapping := edgeproto.Mapping{Player: &edgeproto.Player{PID: int64(steve.ID), UUID: steve.UUID.String(), Name: "Steve", Skin: mapped(a), Cape: mapped(cape)}}
	lookups := []struct {
		key  edgeproto.Key
		want edgeproto.Mapping
	}{
		{edgeproto.NameKey("sTEVE"), steveMapping},
		{edgeproto.UUIDKey(steve.UUID.String()), steveMapping},
		{edgeproto.NameKey("bare"), edgeproto.Mapping{Player: &edgeproto.Player{PID: int64(bare.ID), UUID: bare.UUID.String(), Name: "Bare"}}},
		{edgeproto.NameKey("unknown"), edgeproto.Mapping{}},
		{edgeproto.UIDKey(int64(ann.ID)), edgeproto.Mapping{User: &edgeproto.User{UID: int64(ann.ID), Avatar: int64(b.ID), Texture: mapped(b)}}},
		{edgeproto.UIDKey(int64(bob.ID)), edgeproto.Mapping{User: &edgeproto.User{UID: int64(bob.ID), Avatar: 12345}}}, // a deleted texture
		{edgeproto.UIDKey(999), edgeproto.Mapping{}},
		{edgeproto.TIDKey(int64(cape.ID)), edgeproto.Mapping{Texture: mapped(cape)}},
		{edgeproto.TIDKey(0), edgeproto.Mapping{}},
		{edgeproto.HashKey(first.Hash), edgeproto.Mapping{Texture: mapped(a)}}, // the lowest TID decides
		{edgeproto.HashKey(skin.Hash{}), edgeproto.Mapping{}},
		{"name:with\x00nul", edgeproto.Mapping{}},
		{"name:not utf-8 \xff", edgeproto.Mapping{}},
		{"uid:99999999999999999999", edgeproto.Mapping{}},
		{"uuid:nonsense", edgeproto.Mapping{}},
		{"hash:nonsense", edgeproto.Mapping{}},
		{"nonsense", edgeproto.Mapping{}},
		{edgeproto.NameKey("Steve"), steveMapping}, // asked twice
	}
	keys, want := make([]edgeproto.Key, len(lookups)), make([]edgeproto.Mapping, len(lookups))
	for i, a := range lookups {
		keys[i], want[i] = a.key, a.want
	}
	head := must(db.NumberChanges(t.Context()))(t)
	got := must(db.Mappings(t.Context(), keys))(t)
	undated := cmpopts.IgnoreFields(edgeproto.Mapping{}, "Modified") // has a test of its own
	if diff := cmp.Diff(edgeproto.LookupResponse{Cursor: head.Cursor, Mappings: want}, got, undated); diff != "" {
		t.Errorf("mappings (-want +got):\n%s", diff)
	}

	nothing := must(db.Mappings(t.Context(), nil))(t)
	if nothing.Cursor != head.Cursor {
		t.Errorf("the position of an answer without keys is %v; want %v", nothing.Cursor, head.Cursor)
	}
}

// The revision of a response is that of its snapshot: a change that is committed but not
// numbered is included, and gets a later revision.
func TestMappingsBeforeNumbering(t *testing.T) {
	t.Parallel()
	db := postgrestest.Open(t)
	ann := addUser(t, db, "ann")
	head := must(db.NumberChanges(t.Context()))(t)
	addPlayer(t, db, ann.ID, "Steve")

	got := must(db.Mappings(t.Context(), []edgeproto.Key{edgeproto.NameKey("steve")}))(t)
	if got.Cursor != head.Cursor || got.Mappings[0].Player == nil {
		t.Errorf("answer %+v; want the player, at %v", got, head.Cursor)
	}
	if after := must(db.NumberChanges(t.Context()))(t); after.Revision != head.Revision+1 {
		t.Errorf("head %v after numbering; want one more than %v", after, head)
	}
}
