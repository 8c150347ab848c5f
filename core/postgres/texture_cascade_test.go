package postgres_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/core/postgres"
	"github.com/veneer-skins/veneer/core/postgres/postgrestest"
	"github.com/veneer-skins/veneer/shared/edgeproto"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// addToCloset adds a texture to a user's closet.
func addToCloset(t *testing.T, db *postgres.DB, user core.User, tid core.TextureID) {
	t.Helper()
	if err := db.AddClosetItem(t.Context(), user.ID, tid, "N", core.Pricing{}); err != nil {
		t.Fatal(err)
	}
}

// addWearingPlayer adds a player that wears a skin.
func addWearingPlayer(t *testing.T, db *postgres.DB, owner core.User, name string, tid core.TextureID) core.Player {
	t.Helper()
	return must(db.SetPlayerTextures(t.Context(), owner.ID, addPlayer(t, db, owner.ID, name).ID, core.TextureSelection{Skin: &tid}))(t)
}

// closetOwners returns the users with a texture in their closet.
func closetOwners(t *testing.T, address string, tid core.TextureID) []core.UserID {
	t.Helper()
	var holders []core.UserID
	if err := postgrestest.Conn(t, address).QueryRow(t.Context(),
		"SELECT coalesce(array_agg(uid ORDER BY uid), '{}') FROM closet_items WHERE tid = $1", tid).Scan(&holders); err != nil {
		t.Fatal(err)
	}
	return holders
}

func TestDeleteTexture(t *testing.T) {
	t.Parallel()
	address := postgrestest.URL(t)
	db := postgrestest.Connect(t, address)
	ann, bob := addUser(t, db, "ann"), addUser(t, db, "bob")
	target := addTexture(t, db, texture(ann.ID, skin.Classic, "target", true))
	twin := addTexture(t, db, texture(ann.ID, skin.Slim, "target", true)) // of the same file
	addToCloset(t, db, bob, target.ID)
	first, second := addWearingPlayer(t, db, ann, "First", target.ID), addWearingPlayer(t, db, bob, "Second", target.ID)
	addWearingPlayer(t, db, bob, "Other", twin.ID)
	must(db.SetAvatar(t.Context(), bob.ID, target.ID))(t)
	wantKeys := watchChanges(t, db)
	calls := 0
	db.OnChange(func() { calls++ })

	if err := db.DeleteTexture(t.Context(), target.ID); err != nil {
		t.Fatal(err)
	}
	wantKeys("the deletion", slices.Concat(playerKeys(first), playerKeys(second), textureKeys(target), []edgeproto.Key{edgeproto.UIDKey(int64(bob.ID))})...)
	if calls == 0 {
		t.Error("onChange was not called")
	}
	if got := closetOwners(t, address, target.ID); len(got) > 0 {
		t.Errorf("the closets of %v hold it", got)
	}
	_, err := db.Texture(t.Context(), target.ID)
	wantKind(t, err, fault.NotFound)
	wantKind(t, db.DeleteTexture(t.Context(), target.ID), fault.NotFound)
	wantKeys("a deletion of nothing")

	response := must(db.Mappings(t.Context(), []edgeproto.Key{
		edgeproto.TIDKey(int64(target.ID)), edgeproto.NameKey("first"), edgeproto.NameKey("second"), edgeproto.NameKey("other"), edgeproto.HashKey(target.Hash), edgeproto.UIDKey(int64(bob.ID)),
	}))(t)
	if got := response.Mappings[0]; got != (edgeproto.Mapping{}) {
		t.Errorf("the TID is mapped to %+v", got)
	}
	for _, m := range response.Mappings[1:3] {
		if m.Player.Skin != nil {
			t.Errorf("%s wears %+v", m.Player.Name, m.Player.Skin)
		}
	}
	for _, got := range []*edgeproto.Texture{response.Mappings[3].Player.Skin, response.Mappings[4].Texture} {
		if got == nil || got.TID != int64(twin.ID) {
			t.Errorf("the other texture of this file is %+v; want %d", got, twin.ID)
		}
	}
	if got := response.Mappings[5].User; got.Avatar != int64(target.ID) || got.Texture != nil {
		t.Errorf("the user's avatar is %d, of texture %+v; want the number, and none", got.Avatar, got.Texture)
	}
}

// A texture that becomes private stays only with its uploader.
func TestHideTexture(t *testing.T) {
	t.Parallel()
	address := postgrestest.URL(t)
	db := postgrestest.Connect(t, address)
	ann, bob := addUser(t, db, "ann"), addUser(t, db, "bob")
	hidden := addTexture(t, db, texture(ann.ID, skin.Classic, "hidden", true))
	addToCloset(t, db, bob, hidden.ID)
	own, theirs := addWearingPlayer(t, db, ann, "Own", hidden.ID), addWearingPlayer(t, db, bob, "Theirs", hidden.ID)
	must(db.SetAvatar(t.Context(), ann.ID, hidden.ID))(t)
	must(db.SetAvatar(t.Context(), bob.ID, hidden.ID))(t)
	wantKeys := watchChanges(t, db)

	got := must(db.ChangeTexture(t.Context(), hidden.ID, core.TextureChange{Public: new(false)}, core.Scores{}))(t)
	want := hidden
	want.Public, want.UploadAt = false, got.UploadAt
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the texture (-want +got):\n%s", diff)
	}
	wantKeys("becoming private", append(playerKeys(theirs), edgeproto.UIDKey(int64(bob.ID)))...)
	if got := must(db.SetAvatar(t.Context(), ann.ID, hidden.ID))(t); got.Avatar != hidden.ID {
		t.Errorf("the uploader's avatar is %d; want %d", got.Avatar, hidden.ID)
	}
	if got := must(db.UserByEmail(t.Context(), bob.Email))(t); got.Avatar != 0 {
		t.Errorf("the other user's avatar is %d; want none", got.Avatar)
	}
	if got := closetOwners(t, address, hidden.ID); !slices.Equal(got, []core.UserID{ann.ID}) {
		t.Errorf("the closets of %v hold it; want the uploader's", got)
	}
	if got := playersOf(t, db, bob.ID)[0]; got.Skin != 0 || !got.LastModified.After(theirs.LastModified) {
		t.Errorf("the other user's player is %+v", got)
	}
	if got := playersOf(t, db, ann.ID)[0]; got != own {
		t.Errorf("the uploader's player is %+v; want %+v, untouched", got, own)
	}

	// Making a private texture private changes nothing.
	if err := db.SetPermission(t.Context(), bob.ID, core.Administrator); err != nil {
		t.Fatal(err)
	}
	addToCloset(t, db, bob, hidden.ID)
	if got := must(db.ChangeTexture(t.Context(), hidden.ID, core.TextureChange{Public: new(false), Name: new("N")}, core.Scores{}))(t); got.Likes != 2 || got.Name != "N" {
		t.Errorf("renamed, it is %+v; want 2 likes", got)
	}
	if got := must(db.ChangeTexture(t.Context(), hidden.ID, core.TextureChange{Public: new(true)}, core.Scores{}))(t); got.Likes != 2 || !got.Public {
		t.Errorf("public again, it is %+v; want 2 likes", got)
	}
	wantKeys("a change that is not visible")

	// A public texture of a deleted user has no uploader.
	if err := db.DeleteUser(t.Context(), credentialsOf(ann)); err != nil {
		t.Fatal(err)
	}
	if got := must(db.ChangeTexture(t.Context(), hidden.ID, core.TextureChange{Public: new(false)}, core.Scores{}))(t); got.Likes != 0 || got.Uploader != 0 {
		t.Errorf("without an uploader, it is %+v; want no likes", got)
	}
	_, err := db.ChangeTexture(t.Context(), hidden.ID+100, core.TextureChange{Public: new(false)}, core.Scores{})
	wantKind(t, err, fault.NotFound)
}

// The type of a skin is visible in every picture of it.
func TestRetypeTexture(t *testing.T) {
	t.Parallel()
	db := postgrestest.Open(t)
	ann, bob := addUser(t, db, "ann"), addUser(t, db, "bob")
	changed := addTexture(t, db, texture(ann.ID, skin.Classic, "changed", true))
	addToCloset(t, db, bob, changed.ID)
	own, theirs := addWearingPlayer(t, db, ann, "Own", changed.ID), addWearingPlayer(t, db, bob, "Theirs", changed.ID)
	must(db.SetAvatar(t.Context(), bob.ID, changed.ID))(t)
	wantKeys := watchChanges(t, db)
	all := slices.Concat(playerKeys(own), playerKeys(theirs), textureKeys(changed), []edgeproto.Key{edgeproto.UIDKey(int64(bob.ID))})

	if got := must(db.ChangeTexture(t.Context(), changed.ID, core.TextureChange{Type: new(skin.Slim)}, core.Scores{}))(t); got.Type != skin.Slim || got.Likes != 2 {
		t.Errorf("the texture is %+v", got)
	}
	wantKeys("another type", all...)
	must(db.ChangeTexture(t.Context(), changed.ID, core.TextureChange{Type: new(skin.Slim), Name: new("N")}, core.Scores{}))(t)
	wantKeys("the same type")
	must(db.ChangeTexture(t.Context(), changed.ID, core.TextureChange{Type: new(skin.Classic), Public: new(false)}, core.Scores{}))(t)
	wantKeys("another type, and private", slices.Concat(all)...)
}

func TestChangeTextureCollides(t *testing.T) {
	t.Parallel()
	db := postgrestest.Open(t)
	ann, bob := addUser(t, db, "ann"), addUser(t, db, "bob")
	f := func(change core.TextureChange, tid, of core.TextureID) {
		t.Helper()
		_, err := db.ChangeTexture(t.Context(), tid, change, core.Scores{})
		wantKind(t, err, fault.Duplicate)
		if got, _ := fault.Of(err).Data.(map[string]core.TextureID); got["tid"] != of {
			t.Errorf("data %v; want tid %d", fault.Of(err).Data, of)
		}
	}

	steve, alex := addTexture(t, db, texture(ann.ID, skin.Classic, "a", true)), addTexture(t, db, texture(ann.ID, skin.Slim, "a", true))
	f(core.TextureChange{Type: new(skin.Slim)}, steve.ID, alex.ID)
	private := addTexture(t, db, texture(ann.ID, skin.Classic, "b", false))
	public := addTexture(t, db, texture(bob.ID, skin.Classic, "b", true))
	f(core.TextureChange{Public: new(true)}, private.ID, public.ID)
	own := addTexture(t, db, texture(bob.ID, skin.Slim, "b", false))
	f(core.TextureChange{Type: new(skin.Slim)}, public.ID, own.ID)
	must(db.ChangeTexture(t.Context(), private.ID, core.TextureChange{Type: new(skin.Slim)}, core.Scores{}))(t) // another user's private texture does not conflict
}

// A deletion of a texture waits for a transaction that applies it to a player.
func TestDeleteTextureWaitsForSetTextures(t *testing.T) {
	t.Parallel()
	db, address := openNamed(t)
	ann, bob := addUser(t, db, "ann"), addUser(t, db, "bob")
	alex := addPlayer(t, db, bob.ID, "Alex")
	target := addTexture(t, db, texture(ann.ID, skin.Classic, "target", true))
	other := beginLockTx(t, address)
	other.exec(t, "UPDATE players SET last_modified = now() WHERE pid = $1", alex.ID) // which blocks the request

	applied, deleted := make(chan error, 1), make(chan error, 1)
	go func() {
		_, err := db.SetPlayerTextures(t.Context(), bob.ID, alex.ID, core.TextureSelection{Skin: &target.ID})
		applied <- err
	}()
	other.waitBlocked(t, 1)
	go func() { deleted <- db.DeleteTexture(t.Context(), target.ID) }()
	other.commitOnceBlocked(t, 2)
	if err := <-applied; err != nil {
		t.Error(err)
	}
	if err := <-deleted; err != nil {
		t.Error(err)
	}
	if got := playersOf(t, db, bob.ID)[0]; got.Skin != 0 {
		t.Errorf("the player wears %d, which is deleted", got.Skin)
	}
}

// A change of the type names the current name of a player that is renamed meanwhile.
func TestRetypeNamesTheLatestNames(t *testing.T) {
	t.Parallel()
	db, address := openNamed(t)
	ann := addUser(t, db, "ann")
	changed := addTexture(t, db, texture(ann.ID, skin.Classic, "changed", true))
	steve := addWearingPlayer(t, db, ann, "Steve", changed.ID)
	wantKeys := watchChanges(t, db)
	other := beginLockTx(t, address)
	other.exec(t, "UPDATE players SET name = 'Between', name_key = 'between' WHERE pid = $1", steve.ID)

	retyped := make(chan error, 1)
	go func() {
		_, err := db.ChangeTexture(t.Context(), changed.ID, core.TextureChange{Type: new(skin.Slim)}, core.Scores{})
		retyped <- err
	}()
	other.commitOnceBlocked(t, 1)
	if err := <-retyped; err != nil {
		t.Fatal(err)
	}
	steve.Name = "Between"
	wantKeys("the change", append(playerKeys(steve), textureKeys(changed)...)...)
}

// A deletion of a texture locks the players that wear it by pid, whatever their physical order.
func TestDeleteTextureLocksPlayersInOrder(t *testing.T) {
	t.Parallel()
	db, address := openNamed(t)
	ann := addUser(t, db, "ann")
	target := addTexture(t, db, texture(ann.ID, skin.Classic, "target", true)).ID
	first, second := addPlayer(t, db, ann.ID, "First"), addPlayer(t, db, ann.ID, "Second")
	for _, player := range []core.PlayerID{second.ID, first.ID} { // which sets their physical order
		must(db.SetPlayerTextures(t.Context(), ann.ID, player, core.TextureSelection{Skin: &target}))(t)
	}
	other := beginLockTx(t, address)
	other.exec(t, "SELECT FROM players WHERE pid = $1 FOR UPDATE", first.ID)

	deleted := make(chan error, 1)
	go func() { deleted <- db.DeleteTexture(t.Context(), target) }()
	other.waitBlocked(t, 1)
	other.exec(t, "SELECT FROM players WHERE pid = $1 FOR UPDATE NOWAIT", second.ID)
	other.commitOnceBlocked(t, 1)
	if err := <-deleted; err != nil {
		t.Error(err)
	}
}

// The deletion of a texture that many players wear writes few changes.
func TestDeleteTextureOfMany(t *testing.T) {
	t.Parallel()
	address := postgrestest.URL(t)
	db := postgrestest.Connect(t, address)
	ann := addUser(t, db, "ann")
	target := addTexture(t, db, texture(ann.ID, skin.Classic, "target", true))
	const many = 2001
	if _, err := postgrestest.Conn(t, address).Exec(t.Context(), `
		WITH u AS (
			INSERT INTO users (email, email_key, nickname, password_hash, avatar)
			SELECT 'u' || n, 'u' || n, 'U', 'x', $1 FROM generate_series(1, $2) n RETURNING uid
		), p AS (
			INSERT INTO players (uid, name, name_key, tid_skin) SELECT uid, 'p' || uid, 'p' || uid, $1 FROM u
		)
		INSERT INTO closet_items (uid, tid, cape, item_name) SELECT uid, $1, false, 'N' FROM u`, target.ID, many); err != nil {
		t.Fatal(err)
	}
	before := must(db.NumberChanges(t.Context()))(t).Revision
	if err := db.DeleteTexture(t.Context(), target.ID); err != nil {
		t.Fatal(err)
	}
	must(db.NumberChanges(t.Context()))(t)
	changes, keys := keysAfter(t, db, before), 0
	for _, change := range changes {
		keys += len(change)
	}
	if want := 4*many + 2; keys != want || len(changes) > 2*(many/20+1)+1 {
		t.Errorf("%d changes name %d keys; want %d keys, 20 rows to a change", len(changes), keys, want)
	}
	if got := closetOwners(t, address, target.ID); len(got) > 0 {
		t.Errorf("%d closets hold it", len(got))
	}
}

// After concurrent changes of textures, closets, likes and players are consistent.
func TestTexturesAtOnce(t *testing.T) {
	t.Parallel()
	testenv.SkipShort(t)
	address := postgrestest.URL(t)
	db := postgrestest.Connect(t, address)
	var users []core.User
	var players []core.Player
	var tids []core.TextureID
	for i := range 4 {
		users = append(users, addUser(t, db, fmt.Sprintf("user%d", i)))
		players = append(players, addPlayer(t, db, users[i].ID, fmt.Sprintf("Player%d", i)))
		for j := range 6 {
			tids = append(tids, addTexture(t, db, texture(users[i].ID, skin.Classic, fmt.Sprint(i, j), true)).ID)
		}
	}
	var group sync.WaitGroup
	allow := func(err error) {
		if kind := fault.KindOf(err); err != nil && !slices.Contains([]fault.Kind{fault.NotFound, fault.Forbidden, fault.Duplicate}, kind) {
			t.Error(err)
		}
	}
	for i, user := range users {
		group.Go(func() {
			for _, tid := range tids {
				allow(db.AddClosetItem(t.Context(), user.ID, tid, "N", core.Pricing{}))
				_, err := db.SetPlayerTextures(t.Context(), user.ID, players[i].ID, core.TextureSelection{Skin: &tid})
				allow(err)
			}
		})
		group.Go(func() {
			for j, tid := range slices.Backward(tids) {
				switch (i + j) % 4 {
				case 0:
					_, err := db.ChangeTexture(t.Context(), tid, core.TextureChange{Public: new(i%2 == 0)}, core.Scores{})
					allow(err)
				case 1:
					_, err := db.ChangeTexture(t.Context(), tid, core.TextureChange{Type: new(skin.Slim)}, core.Scores{})
					allow(err)
				case 2:
					allow(db.RemoveClosetItem(t.Context(), user.ID, tid))
				case 3:
					if j%2 == 0 {
						allow(db.DeleteTexture(t.Context(), tid))
					}
				}
			}
		})
	}
	group.Wait()

	var wrong int
	if err := postgrestest.Conn(t, address).QueryRow(t.Context(), `
		SELECT (SELECT count(*) FROM textures t WHERE likes <> (SELECT count(*) FROM closet_items c WHERE c.tid = t.tid))
			+ (SELECT count(*) FROM closet_items c JOIN textures t USING (tid) WHERE NOT t.public AND t.uploader <> c.uid)
			+ (SELECT count(*) FROM players p JOIN textures t ON p.tid_skin = t.tid WHERE NOT t.public AND t.uploader <> p.uid)`).Scan(&wrong); err != nil {
		t.Fatal(err)
	}
	if wrong > 0 {
		t.Errorf("%d rows are inconsistent", wrong)
	}
}
