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
	"github.com/veneer-skins/veneer/core/postgres/postgrestest"
	"github.com/veneer-skins/veneer/shared/edgeproto"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/testenv"
	"github.com/veneer-skins/veneer/shared/testenv/cmptest"
)

// keysAfter returns the keys of every change after a revision, sorted within
// each change.
func keysAfter(t *testing.T, db store, revision int64) [][]edgeproto.Key {
	t.Helper()
	events := must(db.ChangesAfter(t.Context(), revision, 1000))(t)
	keys := [][]edgeproto.Key{}
	for i, e := range events {
		testenv.Equal(t, e.Revision, revision+int64(i)+1, "the revision of change %d", i)
		keys = append(keys, slices.Sorted(slices.Values(e.Keys)))
	}
	return keys
}

// Each write names the keys of the mappings that it changes, in the format of the wire
// protocol. A write that changes nothing names none.
func TestWritesNameTheirKeys(t *testing.T) {
	t.Parallel()
	db := open(t)
	var calls, at int64
	expect := func(what string, want ...edgeproto.Key) {
		t.Helper()
		head := must(db.NumberChanges(t.Context()))(t).Revision
		wantChanges := [][]edgeproto.Key{}
		if len(want) > 0 {
			wantChanges = append(wantChanges, slices.Sorted(slices.Values(want)))
			testenv.Equal(t, db.changed.Load() > calls, true, "%s: onChange was called", what)
		}
		cmptest.Same(t, keysAfter(t, db, at), wantChanges, "%s names", what)
		at, calls = head, db.changed.Load()
	}

	ann := addUser(t, db, "ann")
	expect("a registration", edgeproto.UIDKey(int64(ann.ID)))
	bob := must(db.CreateUser(t.Context(), core.Registrant, core.NewUser{Email: "b@x.org", EmailKey: "b@x.org", Nickname: "b", PasswordHash: "x", Player: player("Bob")}))(t)
	bobs := playersOf(t, db, bob.ID)[0]
	expect("a registration with a player", append(playerKeys(bobs), edgeproto.UIDKey(int64(bob.ID)))...)

	steve := addPlayer(t, db, ann.ID, "Steve")
	pid, uuid := edgeproto.PIDKey(int64(steve.ID)), edgeproto.UUIDKey(steve.UUID.String())
	expect("an added player", pid, edgeproto.NameKey("Steve"), uuid)
	must(db.RenamePlayer(t.Context(), as(ann.ID), steve.ID, player("Alex")))(t)
	expect("a renamed player", pid, edgeproto.NameKey("Steve"), edgeproto.NameKey("Alex"), uuid)
	must(db.RenamePlayer(t.Context(), as(ann.ID), steve.ID, player("Alex")))(t)
	expect("a player renamed to the same")

	a := addTexture(t, db, texture(ann.ID, skin.Classic, "a", true))
	expect("an upload", edgeproto.TIDKey(int64(a.ID)), edgeproto.HashKey(a.Hash))
	must(db.SetPlayerTextures(t.Context(), as(ann.ID), steve.ID, core.TextureSelection{Skin: &a.ID}))(t)
	expect("applied textures", pid, edgeproto.NameKey("Alex"), uuid)
	must(db.SetPlayerTextures(t.Context(), as(ann.ID), steve.ID, core.TextureSelection{Skin: &a.ID}))(t)
	expect("the same textures again")
	wantKind(t, errOf(db.ClearPlayerTextures(t.Context(), as(bob.ID), steve.ID, true, true)), fault.Forbidden)
	expect("a refusal")
	must(db.ClearPlayerTextures(t.Context(), as(ann.ID), steve.ID, true, true))(t)
	expect("cleared textures", pid, edgeproto.NameKey("Alex"), uuid)
	do(t, db.DeletePlayer(t.Context(), as(ann.ID), steve.ID))
	expect("a deleted player", pid, edgeproto.NameKey("Alex"), uuid)
}

// write inserts a change with a key.
func write(t *testing.T, tx pgx.Tx, key edgeproto.Key) {
	t.Helper()
	must(tx.Exec(t.Context(), "INSERT INTO changes (keys) VALUES ($1)", []edgeproto.Key{key}))(t)
}

// A transaction that inserts its change first, but commits after the change of another one was
// numbered, gets the later number, so that no reader of the feed misses it.
func TestRevisionsFollowCommits(t *testing.T) {
	t.Parallel()
	db := open(t)
	early, late := db.begin(t), db.begin(t)

	write(t, early, "name:early")
	write(t, late, "name:late")
	do(t, late.Commit(t.Context()))
	testenv.Equal(t, must(db.NumberChanges(t.Context()))(t).Revision, 1, "the revision after the first commit")
	do(t, early.Commit(t.Context()))
	testenv.Equal(t, must(db.NumberChanges(t.Context()))(t).Revision, 2, "the revision after the second commit")
	cmptest.Same(t, keysAfter(t, db, 0), [][]edgeproto.Key{{"name:late"}, {"name:early"}}, "changes")
}

// With several cores that number concurrently, each change gets one number, without gaps.
func TestNumberingInParallel(t *testing.T) {
	t.Parallel()
	db, ann := openForOne(t)

	var group sync.WaitGroup
	for n := range 4 {
		db := postgrestest.Connect(t, db.address)
		group.Go(func() {
			for i := range 25 {
				name := "p" + string(rune('a'+n)) + string(rune('a'+i))
				testenv.Is(t, errOf(db.CreatePlayer(t.Context(), ann.ID, player(name), core.Pricing{})), nil, "a player")
				testenv.Is(t, errOf(db.NumberChanges(t.Context())), nil, "numbering")
			}
		})
	}
	group.Wait()

	testenv.Equal(t, must(db.NumberChanges(t.Context()))(t).Revision, 101, "the revision after 101 changes")
	counts := map[edgeproto.Key]int{}
	for _, keys := range keysAfter(t, db, 0) {
		for _, key := range keys {
			counts[key]++
		}
	}
	testenv.Equal(t, len(counts), 301, "keys that were named") // a uid, and a pid, a name and a uuid for each player
}

// On another server, database or timeline the numbers handed out before are meaningless. A table that was restored
// in place has an old revision, but another oid.
func TestOtherHistoryBeginsAnEpoch(t *testing.T) {
	t.Parallel()
	for name, restore := range map[string]string{
		"another history": "UPDATE feed SET history = 'before the restore'",
		"as pg_restore --clean": "CREATE TABLE restored (LIKE feed INCLUDING ALL); " +
			"INSERT INTO restored SELECT * FROM feed; DROP TABLE feed; ALTER TABLE restored RENAME TO feed",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := open(t)
			addUser(t, db, "ann")
			before := must(db.NumberChanges(t.Context()))(t)
			testenv.Equal(t, must(db.NumberChanges(t.Context()))(t), before, "the head without a change")

			db.exec(t, restore)
			after := must(db.NumberChanges(t.Context()))(t)
			testenv.Equal(t, after.Epoch == before.Epoch, false, "after a restore the epoch is that before it")
			testenv.Equal(t, after.Revision, before.Revision, "the revision after a restore")
			testenv.Equal(t, must(db.NumberChanges(t.Context()))(t), after, "the head after the restore")
		})
	}
}

func TestTrimChanges(t *testing.T) {
	t.Parallel()
	db := open(t)
	addUser(t, db, "ann")
	addUser(t, db, "bob")
	must(db.NumberChanges(t.Context()))(t)
	db.exec(t, "UPDATE changes SET numbered_at = now() - interval '25 hours' WHERE revision = 1")
	addUser(t, db, "cid") // not numbered yet, so it must stay

	testenv.Equal(t, must(db.TrimChanges(t.Context(), time.Now().Add(-core.ChangeRetention)))(t), 1, "changes trimmed")
	head := must(db.NumberChanges(t.Context()))(t)
	testenv.Equal(t, [2]int64{head.Trimmed, head.Revision}, [2]int64{1, 3}, "the revision trimmed through, and the last")
	testenv.Equal(t, len(keysAfter(t, db, 1)), 2, "changes left")
}

func TestMappings(t *testing.T) {
	t.Parallel()
	db, ann, bob := openForTwo(t)
	first := texture(ann.ID, skin.Classic, "a", true)
	a := addTexture(t, db, first)
	again := texture(bob.ID, skin.Slim, "b", false) // the same file as another type
	again.Hash = first.Hash
	b := addTexture(t, db, again)
	cape := addTexture(t, db, texture(ann.ID, skin.Cape, "c", true))
	steve := addPlayer(t, db, ann.ID, "Steve")
	bare := addPlayer(t, db, ann.ID, "Bare")
	must(db.SetPlayerTextures(t.Context(), as(ann.ID), steve.ID, core.TextureSelection{Skin: &a.ID, Cape: &cape.ID}))(t)
	db.exec(t, "UPDATE users SET avatar = CASE uid WHEN $1 THEN $2 ELSE 12345 END", ann.ID, b.ID)

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
		{edgeproto.TIDKey(int64(b.ID)), edgeproto.Mapping{Texture: &edgeproto.Texture{TID: int64(b.ID), Hash: b.Hash, Type: b.Type, Private: true}}},
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
	diff := cmp.Diff(edgeproto.LookupResponse{Cursor: head.Cursor, Mappings: want}, got, undated)
	testenv.Check(t, diff == "", "mappings (-want +got):\n%s", diff)

	nothing := must(db.Mappings(t.Context(), nil))(t)
	testenv.Equal(t, nothing.Cursor, head.Cursor, "the position of an answer without keys")
}

// The revision of a response is that of its snapshot: a change that is committed but not
// numbered is included, and gets a later revision.
func TestMappingsBeforeNumbering(t *testing.T) {
	t.Parallel()
	db, ann := openForOne(t)
	head := must(db.NumberChanges(t.Context()))(t)
	addPlayer(t, db, ann.ID, "Steve")

	got := must(db.Mappings(t.Context(), []edgeproto.Key{edgeproto.NameKey("steve")}))(t)
	testenv.Check(t, got.Cursor == head.Cursor && got.Mappings[0].Player != nil,
		"answer %+v; want the player, at %v", got, head.Cursor)
	testenv.Equal(t, must(db.NumberChanges(t.Context()))(t).Revision, head.Revision+1, "the revision after numbering")
}
