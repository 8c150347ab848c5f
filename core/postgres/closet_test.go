package postgres_test

import (
	"slices"
	"testing"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/core/postgres/postgrestest"
	"github.com/veneer-skins/veneer/shared/edgeproto"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// Changes of a closet name players that lose a texture, and nothing else.
func TestClosetChangesNameClearedPlayers(t *testing.T) {
	t.Parallel()
	db := postgrestest.Open(t)
	ann, bob := addUser(t, db, "ann"), addUser(t, db, "bob")
	if err := db.SetPermission(t.Context(), ann.ID, core.Administrator); err != nil {
		t.Fatal(err)
	}
	public := addTexture(t, db, texture(bob.ID, skin.Classic, "public", true)).ID
	private := addTexture(t, db, texture(bob.ID, skin.Classic, "private", false)).ID
	first, second, bare := addPlayer(t, db, ann.ID, "First"), addPlayer(t, db, ann.ID, "Second"), addPlayer(t, db, ann.ID, "Bare")
	bobs := addPlayer(t, db, bob.ID, "Bobs")
	must(db.SetPlayerTextures(t.Context(), bob.ID, bobs.ID, core.TextureSelection{Skin: &private}))(t)
	wantKeys := watchChanges(t, db)
	do := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}

	do(db.AddClosetItem(t.Context(), ann.ID, public, "N", core.Pricing{}))
	do(db.AddClosetItem(t.Context(), ann.ID, private, "N", core.Pricing{}))
	do(db.RenameClosetItem(t.Context(), ann.ID, private, "M"))
	wantKeys("what happens in a closet")

	must(db.SetPlayerTextures(t.Context(), ann.ID, first.ID, core.TextureSelection{Skin: &private}))(t)
	must(db.SetPlayerTextures(t.Context(), ann.ID, second.ID, core.TextureSelection{Skin: &private}))(t)
	must(db.SetPlayerTextures(t.Context(), ann.ID, bare.ID, core.TextureSelection{Skin: &public}))(t)
	wantKeys("applied textures", slices.Concat(playerKeys(first), playerKeys(second), playerKeys(bare))...)
	must(db.SetAvatar(t.Context(), ann.ID, public))(t)
	must(db.SetAvatar(t.Context(), bob.ID, private))(t)
	wantKeys("avatars", edgeproto.UIDKey(int64(ann.ID)), edgeproto.UIDKey(int64(bob.ID)))
	do(db.RemoveClosetItem(t.Context(), ann.ID, public))
	wantKeys("a removal of what is public")
	must(db.SetAvatar(t.Context(), ann.ID, private))(t)
	wantKeys("another avatar", edgeproto.UIDKey(int64(ann.ID)))
	calls := 0
	db.OnChange(func() { calls++ })
	do(db.RemoveClosetItem(t.Context(), ann.ID, private))
	wantKeys("a removal of what is private", slices.Concat(playerKeys(first), playerKeys(second), []edgeproto.Key{edgeproto.UIDKey(int64(ann.ID))})...)
	if got, uploaders := must(db.UserByEmail(t.Context(), ann.Email))(t).Avatar, must(db.UserByEmail(t.Context(), bob.Email))(t).Avatar; got != 0 || uploaders != private {
		t.Errorf("the avatars are %d, and the uploader's %d; want 0 and %d", got, uploaders, private)
	}
	if calls == 0 {
		t.Error("onChange was not called")
	}
	wantKind(t, db.RemoveClosetItem(t.Context(), ann.ID, private), fault.NotFound)
	wantKeys("a removal of what is not there")

	response := must(db.Mappings(t.Context(), []edgeproto.Key{edgeproto.NameKey("first"), edgeproto.NameKey("bobs")}))(t)
	if got := response.Mappings[0].Player.Skin; got != nil {
		t.Errorf("the mapping has the skin %+v", got)
	}
	if got := response.Mappings[1].Player.Skin; got == nil || got.TID != int64(private) {
		t.Errorf("the uploader's player wears %+v", got)
	}
}

// A texture that is applied while it is removed from the closet is taken off, or not applied.
func TestRemoveItemWaitsForSetTextures(t *testing.T) {
	t.Parallel()
	db, address := openNamed(t)
	ann, bob := addUser(t, db, "ann"), addUser(t, db, "bob")
	if err := db.SetPermission(t.Context(), ann.ID, core.Administrator); err != nil {
		t.Fatal(err)
	}
	steve := addPlayer(t, db, ann.ID, "Steve")
	private := addTexture(t, db, texture(bob.ID, skin.Classic, "private", false)).ID
	if err := db.AddClosetItem(t.Context(), ann.ID, private, "N", core.Pricing{}); err != nil {
		t.Fatal(err)
	}
	other := beginLockTx(t, address)
	other.exec(t, "UPDATE players SET last_modified = now() WHERE pid = $1", steve.ID) // which blocks the request

	applied, removed := make(chan error, 1), make(chan error, 1)
	go func() {
		_, err := db.SetPlayerTextures(t.Context(), ann.ID, steve.ID, core.TextureSelection{Skin: &private})
		applied <- err
	}()
	other.waitBlocked(t, 1)
	go func() { removed <- db.RemoveClosetItem(t.Context(), ann.ID, private) }()
	other.commitOnceBlocked(t, 2)
	if err := <-applied; err != nil {
		t.Error(err)
	}
	if err := <-removed; err != nil {
		t.Error(err)
	}
	if got := playersOf(t, db, ann.ID)[0]; got.Skin != 0 {
		t.Errorf("the player wears %d, which the user may not use", got.Skin)
	}
}

// A removal locks the players that wear the texture by pid, whatever their physical order.
func TestRemoveLocksPlayersInOrder(t *testing.T) {
	t.Parallel()
	db, address := openNamed(t)
	ann, bob := addUser(t, db, "ann"), addUser(t, db, "bob")
	if err := db.SetPermission(t.Context(), ann.ID, core.Administrator); err != nil {
		t.Fatal(err)
	}
	private := addTexture(t, db, texture(bob.ID, skin.Classic, "private", false)).ID
	if err := db.AddClosetItem(t.Context(), ann.ID, private, "N", core.Pricing{}); err != nil {
		t.Fatal(err)
	}
	first, second := addPlayer(t, db, ann.ID, "First"), addPlayer(t, db, ann.ID, "Second")
	for _, player := range []core.PlayerID{second.ID, first.ID} { // which sets their physical order
		must(db.SetPlayerTextures(t.Context(), ann.ID, player, core.TextureSelection{Skin: &private}))(t)
	}
	other := beginLockTx(t, address)
	other.exec(t, "SELECT FROM players WHERE pid = $1 FOR UPDATE", first.ID)

	removed := make(chan error, 1)
	go func() { removed <- db.RemoveClosetItem(t.Context(), ann.ID, private) }()
	other.waitBlocked(t, 1)
	other.exec(t, "SELECT FROM players WHERE pid = $1 FOR UPDATE NOWAIT", second.ID)
	other.commitOnceBlocked(t, 1)
	if err := <-removed; err != nil {
		t.Error(err)
	}
}

// Of many concurrent additions no more succeed than the quota or the score allows.
func TestClosetItemsAtOnce(t *testing.T) {
	t.Parallel()
	testenv.SkipShort(t)
	address := postgrestest.URL(t)
	db, conn := postgrestest.Connect(t, address), postgrestest.Conn(t, address)
	ann, bob := addUser(t, db, "ann"), addUser(t, db, "bob")
	var tids []core.TextureID
	for i := range 10 {
		tids = append(tids, addTexture(t, db, texture(bob.ID, skin.Classic, string(rune('a'+i)), true)).ID)
	}
	f := func(pricing core.Pricing, refusal fault.Kind) {
		t.Helper()
		if _, err := conn.Exec(t.Context(), "UPDATE users SET score = 20 WHERE uid = $1", ann.ID); err != nil {
			t.Fatal(err)
		}
		outcomes := make(chan error, len(tids))
		for _, tid := range tids {
			go func() { outcomes <- db.AddClosetItem(t.Context(), ann.ID, tid, "N", pricing) }()
		}
		if got := countKinds(t, outcomes); got[nil] != 4 || got[refusal] != 6 {
			t.Errorf("10 additions with a limit of 4: %v; want 4 successes and 6 faults", got)
		}
		var items, score int
		if err := conn.QueryRow(t.Context(), "SELECT count(*), min(score) FROM closet_items JOIN users USING (uid) WHERE uid = $1", ann.ID).Scan(&items, &score); err != nil {
			t.Fatal(err)
		}
		if want := 20 - 4*int(pricing.Cost); items != 4 || score != want {
			t.Errorf("%d items and a score of %d; want 4 and %d", items, score, want)
		}
		for _, tid := range tids {
			if err := db.RemoveClosetItem(t.Context(), ann.ID, tid); err != nil && fault.KindOf(err) != fault.NotFound {
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
	db, address := openNamed(t)
	ann, bob := addUser(t, db, "ann"), addUser(t, db, "bob")
	tid := addTexture(t, db, texture(bob.ID, skin.Classic, "x", true)).ID
	other := beginLockTx(t, address)
	other.exec(t, "UPDATE textures SET public = false WHERE tid = $1", tid)

	added := make(chan error, 1)
	go func() { added <- db.AddClosetItem(t.Context(), ann.ID, tid, "N", core.Pricing{}) }()
	other.commitOnceBlocked(t, 1)
	wantKind(t, <-added, fault.Forbidden)
}
