package postgres_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/shared/edgeproto"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/testenv"
	"github.com/veneer-skins/veneer/shared/testenv/cmptest"
)

// addToCloset adds a texture to a user's closet.
func addToCloset(t *testing.T, db store, user core.User, tid core.TextureID) {
	t.Helper()
	do(t, db.AddClosetItem(t.Context(), as(user.ID), user.ID, tid, "N", core.Pricing{}))
}

// addWearingPlayer adds a player that wears a skin.
func addWearingPlayer(t *testing.T, db store, owner core.User, name string, tid core.TextureID) core.Player {
	t.Helper()
	return must(db.SetPlayerTextures(t.Context(), as(owner.ID), addPlayer(t, db, owner.ID, name).ID, core.TextureSelection{Skin: &tid}))(t)
}

// closetOwners returns the users with a texture in their closet.
func closetOwners(t *testing.T, db store, tid core.TextureID) []core.UserID {
	t.Helper()
	var holders []core.UserID
	do(t, db.conn().QueryRow(t.Context(),
		"SELECT coalesce(array_agg(uid ORDER BY uid), '{}') FROM closet_items WHERE tid = $1", tid).Scan(&holders))
	return holders
}

func TestDeleteTexture(t *testing.T) {
	t.Parallel()
	db, ann, bob := openForTwo(t)
	target := addTexture(t, db, texture(ann.ID, skin.Classic, "target", true))
	twin := addTexture(t, db, texture(ann.ID, skin.Slim, "target", true)) // of the same file
	addToCloset(t, db, bob, target.ID)
	first, second := addWearingPlayer(t, db, ann, "First", target.ID), addWearingPlayer(t, db, bob, "Second", target.ID)
	addWearingPlayer(t, db, bob, "Other", twin.ID)
	must(db.SetAvatar(t.Context(), bob.ID, target.ID))(t)
	wantKeys := watchChanges(t, db)

	do(t, db.DeleteTexture(t.Context(), anyOwner, target.ID, false))
	wantKeys("the deletion", slices.Concat(playerKeys(first), playerKeys(second), textureKeys(target), []edgeproto.Key{edgeproto.UIDKey(int64(bob.ID))})...)
	testenv.Equal(t, len(closetOwners(t, db, target.ID)), 0, "closets that hold it")
	wantKind(t, errOf(db.Texture(t.Context(), target.ID)), fault.NotFound)
	wantKind(t, db.DeleteTexture(t.Context(), anyOwner, target.ID, false), fault.NotFound)
	wantKeys("a deletion of nothing")

	response := must(db.Mappings(t.Context(), []edgeproto.Key{
		edgeproto.TIDKey(int64(target.ID)), edgeproto.NameKey("first"), edgeproto.NameKey("second"), edgeproto.NameKey("other"), edgeproto.HashKey(target.Hash), edgeproto.UIDKey(int64(bob.ID)),
	}))(t)
	testenv.Equal(t, response.Mappings[0], (edgeproto.Mapping{}), "what the TID is mapped to")
	for _, m := range response.Mappings[1:3] {
		testenv.Equal(t, m.Player.Skin, nil, "what %s wears", m.Player.Name)
	}
	for _, got := range []*edgeproto.Texture{response.Mappings[3].Player.Skin, response.Mappings[4].Texture} {
		testenv.Check(t, got != nil && got.TID == int64(twin.ID),
			"the other texture of this file is %+v; want %d", got, twin.ID)
	}
	got := response.Mappings[5].User
	testenv.Check(t, got.Avatar == int64(target.ID) && got.Texture == nil,
		"the user's avatar is %d, of texture %+v; want the number, and none", got.Avatar, got.Texture)
}

// A texture that becomes private stays only with its uploader.
func TestHideTexture(t *testing.T) {
	t.Parallel()
	db, ann, bob := openForTwo(t)
	hidden := addTexture(t, db, texture(ann.ID, skin.Classic, "hidden", true))
	addToCloset(t, db, bob, hidden.ID)
	own, theirs := addWearingPlayer(t, db, ann, "Own", hidden.ID), addWearingPlayer(t, db, bob, "Theirs", hidden.ID)
	must(db.SetAvatar(t.Context(), ann.ID, hidden.ID))(t)
	must(db.SetAvatar(t.Context(), bob.ID, hidden.ID))(t)
	wantKeys := watchChanges(t, db)

	got := must(db.change(t.Context(), hidden.ID, core.TextureChange{Public: new(false)}))(t)
	want := hidden
	want.Public, want.UploadAt = false, got.UploadAt
	cmptest.Same(t, got, want, "the texture")
	wantKeys("becoming private", slices.Concat(playerKeys(theirs), textureKeys(hidden), []edgeproto.Key{edgeproto.UIDKey(int64(bob.ID))})...)
	testenv.Equal(t, must(db.SetAvatar(t.Context(), ann.ID, hidden.ID))(t).Avatar, hidden.ID, "the uploader's avatar")
	testenv.Equal(t, must(db.UserByEmail(t.Context(), bob.Email))(t).Avatar, 0, "the other user's avatar")
	cmptest.Same(t, closetOwners(t, db, hidden.ID), []core.UserID{ann.ID}, "whose closets hold it")
	now := playersOf(t, db, bob.ID)[0]
	testenv.Check(t, now.Skin == 0 && now.LastModified.After(theirs.LastModified), "the other user's player is %+v", now)
	testenv.Equal(t, playersOf(t, db, ann.ID)[0], own, "the uploader's player")

	// Making a private texture private changes nothing.
	do(t, db.ForcePermission(t.Context(), bob.ID, core.Administrator))
	addToCloset(t, db, bob, hidden.ID)
	got = must(db.change(t.Context(), hidden.ID, core.TextureChange{Public: new(false), Name: new("N")}))(t)
	testenv.Check(t, got.Likes == 2 && got.Name == "N", "renamed, it is %+v; want 2 likes", got)
	got = must(db.change(t.Context(), hidden.ID, core.TextureChange{Public: new(true)}))(t)
	testenv.Check(t, got.Likes == 2 && got.Public, "public again, it is %+v; want 2 likes", got)
	wantKeys("becoming public", slices.Concat(textureKeys(hidden), playerKeys(own))...)

	// A public texture of a deleted user has no uploader.
	do(t, db.DeleteUser(t.Context(), as(ann.ID), credentialsOf(ann)))
	got = must(db.change(t.Context(), hidden.ID, core.TextureChange{Public: new(false)}))(t)
	testenv.Check(t, got.Likes == 0 && got.Uploader == 0, "without an uploader, it is %+v; want no likes", got)
	wantKind(t, errOf(db.change(t.Context(), hidden.ID+100, core.TextureChange{Public: new(false)})), fault.NotFound)
}

// The type of a skin is visible in every picture of it.
func TestRetypeTexture(t *testing.T) {
	t.Parallel()
	db, ann, bob := openForTwo(t)
	changed := addTexture(t, db, texture(ann.ID, skin.Classic, "changed", true))
	addToCloset(t, db, bob, changed.ID)
	own, theirs := addWearingPlayer(t, db, ann, "Own", changed.ID), addWearingPlayer(t, db, bob, "Theirs", changed.ID)
	must(db.SetAvatar(t.Context(), bob.ID, changed.ID))(t)
	wantKeys := watchChanges(t, db)
	all := slices.Concat(playerKeys(own), playerKeys(theirs), textureKeys(changed), []edgeproto.Key{edgeproto.UIDKey(int64(bob.ID))})

	got := must(db.change(t.Context(), changed.ID, core.TextureChange{Type: new(skin.Slim)}))(t)
	testenv.Check(t, got.Type == skin.Slim && got.Likes == 2, "the texture is %+v", got)
	wantKeys("another type", all...)
	must(db.change(t.Context(), changed.ID, core.TextureChange{Type: new(skin.Slim), Name: new("N")}))(t)
	wantKeys("the same type")
	must(db.change(t.Context(), changed.ID, core.TextureChange{Type: new(skin.Classic), Public: new(false)}))(t)
	wantKeys("another type, and private", slices.Concat(all)...)
}

func TestChangeTextureCollides(t *testing.T) {
	t.Parallel()
	db, ann, bob := openForTwo(t)
	f := func(change core.TextureChange, tid, of core.TextureID) {
		t.Helper()
		wantDuplicateOf(t, errOf(db.ChangeTexture(t.Context(), anyOwner, tid, change, core.ScorePrices{})), of)
	}

	steve, alex := addTexture(t, db, texture(ann.ID, skin.Classic, "a", true)), addTexture(t, db, texture(ann.ID, skin.Slim, "a", true))
	f(core.TextureChange{Type: new(skin.Slim)}, steve.ID, alex.ID)
	private := addTexture(t, db, texture(ann.ID, skin.Classic, "b", false))
	public := addTexture(t, db, texture(bob.ID, skin.Classic, "b", true))
	f(core.TextureChange{Public: new(true)}, private.ID, public.ID)
	own := addTexture(t, db, texture(bob.ID, skin.Slim, "b", false))
	f(core.TextureChange{Type: new(skin.Slim)}, public.ID, own.ID)
	// Another user's private texture does not conflict.
	must(db.change(t.Context(), private.ID, core.TextureChange{Type: new(skin.Slim)}))(t)
}

// A deletion of a texture waits for a transaction that applies it to a player.
func TestDeleteTextureWaitsForSetTextures(t *testing.T) {
	t.Parallel()
	db, ann, bob := openForTwo(t)
	alex := addPlayer(t, db, bob.ID, "Alex")
	target := addTexture(t, db, texture(ann.ID, skin.Classic, "target", true))
	other := db.lock(t, "UPDATE players SET last_modified = now() WHERE pid = $1", alex.ID) // which blocks the request

	applied := start(func() error { return db.wear(t.Context(), bob.ID, alex.ID, target.ID) })
	other.waitBlocked(t, 1)
	deleted := start(func() error { return db.DeleteTexture(t.Context(), anyOwner, target.ID, false) })
	other.commitOnceBlocked(t, 2)
	do(t, <-applied)
	do(t, <-deleted)
	testenv.Equal(t, playersOf(t, db, bob.ID)[0].Skin, 0, "what the player wears of what is deleted")
}

// A change of the type names the current name of a player that is renamed meanwhile.
func TestRetypeNamesTheLatestNames(t *testing.T) {
	t.Parallel()
	db, ann := openForOne(t)
	changed := addTexture(t, db, texture(ann.ID, skin.Classic, "changed", true))
	steve := addWearingPlayer(t, db, ann, "Steve", changed.ID)
	wantKeys := watchChanges(t, db)
	other := db.lock(t, "UPDATE players SET name = 'Between', name_key = 'between' WHERE pid = $1", steve.ID)

	retype := core.TextureChange{Type: new(skin.Slim)}
	do(t, other.delays(t, func() error { return errOf(db.change(t.Context(), changed.ID, retype)) }))
	steve.Name = "Between"
	wantKeys("the change", append(playerKeys(steve), textureKeys(changed)...)...)
}

// The deletion of a texture that many players wear writes few changes.
func TestDeleteTextureOfMany(t *testing.T) {
	t.Parallel()
	db, ann := openForOne(t)
	target := addTexture(t, db, texture(ann.ID, skin.Classic, "target", true))
	const many = 2001
	db.exec(t, `
		WITH u AS (
			INSERT INTO users (email, email_key, nickname, password_hash, avatar)
			SELECT 'u' || n, 'u' || n, 'U', 'x', $1 FROM generate_series(1, $2) n RETURNING uid
		), p AS (
			INSERT INTO players (uid, name, name_key, tid_skin) SELECT uid, 'p' || uid, 'p' || uid, $1 FROM u
		)
		INSERT INTO closet_items (uid, tid, cape, item_name) SELECT uid, $1, false, 'N' FROM u`, target.ID, many)
	before := must(db.NumberChanges(t.Context()))(t).Revision
	do(t, db.DeleteTexture(t.Context(), anyOwner, target.ID, false))
	must(db.NumberChanges(t.Context()))(t)
	changes, keys := keysAfter(t, db, before), 0
	for _, change := range changes {
		keys += len(change)
	}
	testenv.Equal(t, keys, 4*many+2, "the keys that changes name")
	testenv.Check(t, len(changes) <= 2*(many/20+1)+1, "there are %d changes; want 20 rows to a change", len(changes))
	testenv.Equal(t, len(closetOwners(t, db, target.ID)), 0, "closets that hold it")
}

// After concurrent changes of textures, closets, likes and players are consistent.
func TestTexturesAtOnce(t *testing.T) {
	t.Parallel()
	testenv.SkipShort(t)
	db := open(t)
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
				allow(db.AddClosetItem(t.Context(), as(user.ID), user.ID, tid, "N", core.Pricing{}))
				allow(db.wear(t.Context(), user.ID, players[i].ID, tid))
			}
		})
		group.Go(func() {
			for j, tid := range slices.Backward(tids) {
				switch (i + j) % 4 {
				case 0:
					allow(errOf(db.change(t.Context(), tid, core.TextureChange{Public: new(i%2 == 0)})))
				case 1:
					allow(errOf(db.change(t.Context(), tid, core.TextureChange{Type: new(skin.Slim)})))
				case 2:
					allow(db.RemoveClosetItem(t.Context(), as(user.ID), user.ID, tid))
				case 3:
					if j%2 == 0 {
						allow(db.DeleteTexture(t.Context(), anyOwner, tid, false))
					}
				}
			}
		})
	}
	group.Wait()

	db.hasCount(t, 0, `
		SELECT (SELECT count(*) FROM textures t WHERE likes <> (SELECT count(*) FROM closet_items c WHERE c.tid = t.tid))
			+ (SELECT count(*) FROM closet_items c JOIN textures t USING (tid) WHERE NOT t.public AND t.uploader <> c.uid)
			+ (SELECT count(*) FROM players p JOIN textures t ON p.tid_skin = t.tid WHERE NOT t.public AND t.uploader <> p.uid)`)
}
