package postgres_test

import (
	"slices"
	"testing"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/shared/edgeproto"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// Changes of a closet name players that lose a texture, and nothing else.
func TestClosetChangesNameClearedPlayers(t *testing.T) {
	t.Parallel()
	db, ann, bob := openForTwo(t)
	do(t, db.ForcePermission(t.Context(), ann.ID, core.Administrator))
	public := addTexture(t, db, texture(bob.ID, skin.Classic, "public", true)).ID
	private := addTexture(t, db, texture(bob.ID, skin.Classic, "private", false)).ID
	first, second, bare := addPlayer(t, db, ann.ID, "First"), addPlayer(t, db, ann.ID, "Second"), addPlayer(t, db, ann.ID, "Bare")
	bobs := addPlayer(t, db, bob.ID, "Bobs")
	must(db.SetPlayerTextures(t.Context(), as(bob.ID), bobs.ID, core.TextureSelection{Skin: &private}))(t)
	wantKeys := watchChanges(t, db)
	do(t, db.AddClosetItem(t.Context(), as(ann.ID), ann.ID, public, "N", core.Pricing{}))
	do(t, db.AddClosetItem(t.Context(), as(ann.ID), ann.ID, private, "N", core.Pricing{}))
	do(t, db.RenameClosetItem(t.Context(), ann.ID, private, "M"))
	wantKeys("what happens in a closet")

	must(db.SetPlayerTextures(t.Context(), as(ann.ID), first.ID, core.TextureSelection{Skin: &private}))(t)
	must(db.SetPlayerTextures(t.Context(), as(ann.ID), second.ID, core.TextureSelection{Skin: &private}))(t)
	must(db.SetPlayerTextures(t.Context(), as(ann.ID), bare.ID, core.TextureSelection{Skin: &public}))(t)
	wantKeys("applied textures", slices.Concat(playerKeys(first), playerKeys(second), playerKeys(bare))...)
	must(db.SetAvatar(t.Context(), ann.ID, public))(t)
	must(db.SetAvatar(t.Context(), bob.ID, private))(t)
	wantKeys("avatars", edgeproto.UIDKey(int64(ann.ID)), edgeproto.UIDKey(int64(bob.ID)))
	do(t, db.RemoveClosetItem(t.Context(), as(ann.ID), ann.ID, public))
	wantKeys("a removal of what is public")
	must(db.SetAvatar(t.Context(), ann.ID, private))(t)
	wantKeys("another avatar", edgeproto.UIDKey(int64(ann.ID)))
	do(t, db.RemoveClosetItem(t.Context(), as(ann.ID), ann.ID, private))
	wantKeys("a removal of what is private", slices.Concat(playerKeys(first), playerKeys(second), []edgeproto.Key{edgeproto.UIDKey(int64(ann.ID))})...)
	testenv.Equal(t, must(db.UserByEmail(t.Context(), ann.Email))(t).Avatar, 0, "the avatar")
	testenv.Equal(t, must(db.UserByEmail(t.Context(), bob.Email))(t).Avatar, private, "the uploader's avatar")
	wantKind(t, db.RemoveClosetItem(t.Context(), as(ann.ID), ann.ID, private), fault.NotFound)
	wantKeys("a removal of what is not there")

	testenv.Equal(t, mapping(t, db, edgeproto.NameKey("first")).Player.Skin, nil, "the skin of the player")
	worn := mapping(t, db, edgeproto.NameKey("bobs")).Player.Skin
	testenv.Equal(t, worn.TID, int64(private), "the skin of the uploader's player")
}

// A texture that is applied while it is removed from the closet is taken off, or not applied.
func TestRemoveItemWaitsForSetTextures(t *testing.T) {
	t.Parallel()
	db, ann, bob := openForTwo(t)
	do(t, db.ForcePermission(t.Context(), ann.ID, core.Administrator))
	steve := addPlayer(t, db, ann.ID, "Steve")
	private := addTexture(t, db, texture(bob.ID, skin.Classic, "private", false)).ID
	do(t, db.AddClosetItem(t.Context(), as(ann.ID), ann.ID, private, "N", core.Pricing{}))
	other := db.lock(t, "UPDATE players SET last_modified = now() WHERE pid = $1", steve.ID) // which blocks the request

	applied := start(func() error { return db.wear(t.Context(), ann.ID, steve.ID, private) })
	other.waitBlocked(t, 1)
	removed := start(func() error { return db.RemoveClosetItem(t.Context(), as(ann.ID), ann.ID, private) })
	other.commitOnceBlocked(t, 2)
	do(t, <-applied)
	do(t, <-removed)
	testenv.Equal(t, playersOf(t, db, ann.ID)[0].Skin, 0, "what the player wears of what the user may not use")
}

// The removal of a texture from a closet, and its deletion, lock the players that wear it by pid, whatever their
// physical order.
func TestRemovalsLockPlayersInOrder(t *testing.T) {
	t.Parallel()
	for name, remove := range map[string]func(db store, user core.UserID, tid core.TextureID) error{
		"from a closet": func(db store, user core.UserID, tid core.TextureID) error {
			return db.RemoveClosetItem(t.Context(), as(user), user, tid)
		},
		"deletion": func(db store, _ core.UserID, tid core.TextureID) error {
			return db.DeleteTexture(t.Context(), anyOwner, tid, false)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, ann, bob := openForTwo(t)
			do(t, db.ForcePermission(t.Context(), ann.ID, core.Administrator))
			private := addTexture(t, db, texture(bob.ID, skin.Classic, "private", false)).ID
			addToCloset(t, db, ann, private)
			first, second := addPlayer(t, db, ann.ID, "First"), addPlayer(t, db, ann.ID, "Second")
			for _, player := range []core.PlayerID{second.ID, first.ID} { // which sets their physical order
				do(t, db.wear(t.Context(), ann.ID, player, private))
			}
			other := db.lock(t, "SELECT FROM players WHERE pid = $1 FOR UPDATE", first.ID)
			do(t, other.delays(t, func() error { return remove(db, ann.ID, private) }, func() {
				other.exec(t, "SELECT FROM players WHERE pid = $1 FOR UPDATE NOWAIT", second.ID)
			}))
		})
	}
}

// Of many concurrent additions no more succeed than the quota or the score allows.
func TestClosetItemsAtOnce(t *testing.T) {
	t.Parallel()
	testenv.SkipShort(t)
	db, ann, bob := openForTwo(t)
	var tids []core.TextureID
	for i := range 10 {
		tids = append(tids, addTexture(t, db, texture(bob.ID, skin.Classic, string(rune('a'+i)), true)).ID)
	}
	f := func(pricing core.Pricing, refusal fault.Kind) {
		t.Helper()
		db.exec(t, "UPDATE users SET score = 20 WHERE uid = $1", ann.ID)
		atOnce(t, 10, 4, refusal, func(i int) error {
			return db.AddClosetItem(t.Context(), as(ann.ID), ann.ID, tids[i], "N", pricing)
		})
		db.hasCount(t, 4, "SELECT count(*) FROM closet_items WHERE uid = $1", ann.ID)
		db.hasCount(t, 20-4*int(pricing.Cost), "SELECT score FROM users WHERE uid = $1", ann.ID)
		for _, tid := range tids {
			if err := db.RemoveClosetItem(t.Context(), as(ann.ID), ann.ID, tid); err != nil && fault.KindOf(err) != fault.NotFound {
				t.Fatal(err)
			}
		}
	}

	f(core.Pricing{Quotas: core.Quotas{ClosetItems: 4}}, fault.Refused)
	f(core.Pricing{Cost: 5}, fault.ScoreTooLow)
}

// A texture that becomes private while an addition waits for it is not added.
func TestAddToClosetAfterWaitingLooksAgain(t *testing.T) {
	t.Parallel()
	db, ann, bob := openForTwo(t)
	tid := addTexture(t, db, texture(bob.ID, skin.Classic, "x", true)).ID
	other := db.lock(t, "UPDATE textures SET public = false WHERE tid = $1", tid)

	add := func() error { return db.AddClosetItem(t.Context(), as(ann.ID), ann.ID, tid, "N", core.Pricing{}) }
	wantKind(t, other.delays(t, add), fault.Forbidden)
}
