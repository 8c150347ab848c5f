package postgres_test

import (
	"testing"
	"time"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/shared/edgeproto"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/testenv"
	"github.com/veneer-skins/veneer/shared/testenv/cmptest"
)

// The mapping of a player is dated by the last change of its files or its profile, that of a
// file by its upload, in seconds, rounded up.
func TestMappingsModified(t *testing.T) {
	t.Parallel()
	db, ann, bob := openForTwo(t)
	own := addTexture(t, db, texture(ann.ID, skin.Classic, "own", true))
	lent := addTexture(t, db, texture(bob.ID, skin.Classic, "lent", true))
	target := addTexture(t, db, texture(bob.ID, skin.Cape, "target", true))
	steve := addPlayer(t, db, ann.ID, "Steve")
	uuid := edgeproto.UUIDKey(steve.UUID.String())

	const past, pastUp = "2024-05-06 07:08:09.000001+00", 1714979290 // 07:08:10
	reset := func() {
		t.Helper()
		db.exec(t, "UPDATE players SET last_modified = $1", past)
		db.exec(t, "UPDATE textures SET retyped_at = NULL, upload_at = $1", past)
		testenv.Equal(t, mapping(t, db, uuid).Modified, pastUp, "the date of a player of %s", past)
	}
	changes := func(name string, change func() error) {
		t.Helper()
		reset()
		began := time.Now().Unix()
		testenv.Is(t, change(), nil, "%s", name)
		got := mapping(t, db, uuid).Modified
		testenv.Check(t, got >= began && got <= time.Now().Unix()+1, "%s: the date is %d; want %d or later", name, got, began)
	}
	changes("textures applied", func() error {
		return errOf(db.SetPlayerTextures(t.Context(), as(ann.ID), steve.ID, core.TextureSelection{Skin: &own.ID, Cape: &target.ID}))
	})
	changes("renamed", func() error { return errOf(db.RenamePlayer(t.Context(), as(ann.ID), steve.ID, player("Alex"))) })
	retype := core.TextureChange{Type: new(skin.Slim)}
	changes("the skin's model changed", func() error {
		return errOf(db.change(t.Context(), own.ID, retype))
	})
	changes("the cape deleted", func() error { return db.DeleteTexture(t.Context(), anyOwner, target.ID, false) })
	changes("textures cleared", func() error { return errOf(db.ClearPlayerTextures(t.Context(), as(ann.ID), steve.ID, true, false)) })
	changes("another's texture applied", func() error { return db.wear(t.Context(), ann.ID, steve.ID, lent.ID) })
	changes("that made private", func() error {
		return errOf(db.change(t.Context(), lent.ID, core.TextureChange{Public: new(false)}))
	})

	reset()
	must(db.change(t.Context(), own.ID, core.TextureChange{Type: new(skin.Slim), Name: new("Other")}))(t)
	for key, want := range map[edgeproto.Key]int64{
		edgeproto.NameKey("alex"):              pastUp, // changing a texture that is not worn dates no player
		edgeproto.HashKey(own.Hash):            pastUp,
		edgeproto.TIDKey(int64(own.ID)):        pastUp,
		edgeproto.UIDKey(int64(ann.ID)):        0,
		edgeproto.NameKey("unknown"):           0,
		edgeproto.TIDKey(int64(own.ID) + 1000): 0,
	} {
		testenv.Equal(t, mapping(t, db, key).Modified, want, "the date of %s", key)
	}
	db.exec(t, "UPDATE players SET last_modified = '2024-05-06 07:08:10+00'")
	testenv.Equal(t, mapping(t, db, uuid).Modified, pastUp, "the date of a full second")
}

// A change that waited for another one is dated after it, though its transaction began before.
func TestModifiedAfterWaiting(t *testing.T) {
	t.Parallel()
	db, ann := openForOne(t)
	steve := addPlayer(t, db, ann.ID, "Steve")
	other := db.lock(t, "SELECT FROM players WHERE pid = $1 FOR UPDATE", steve.ID)

	var renamed core.Player
	done := start(func() (err error) {
		renamed, err = db.RenamePlayer(t.Context(), as(ann.ID), steve.ID, player("Last"))
		return err
	})
	other.waitBlocked(t, 1)
	var before time.Time
	do(t, other.QueryRow(t.Context(), "UPDATE players SET last_modified = clock_timestamp() WHERE pid = $1 RETURNING last_modified", steve.ID).Scan(&before))
	do(t, other.Commit(t.Context()))
	do(t, <-done)
	got := renamed.LastModified
	testenv.Check(t, got.After(before), "the later change is dated %s; want it after %s", got, before)
}

func TestMostLiked(t *testing.T) {
	t.Parallel()
	db := open(t)
	want := func(limit int, words ...string) {
		t.Helper()
		hashes := make([]skin.Hash, len(words))
		for i, word := range words {
			hashes[i] = skin.HashOf([]byte("file " + word))
		}
		cmptest.Same(t, must(db.MostLiked(t.Context(), limit))(t), hashes, "the %d most liked", limit)
	}
	want(10)

	ann, bob, eve := addUser(t, db, "ann"), addUser(t, db, "bob"), addUser(t, db, "eve")
	like := func(user core.User, texture core.Texture) {
		t.Helper()
		do(t, db.AddClosetItem(t.Context(), as(user.ID), user.ID, texture.ID, "N", core.Pricing{}))
	}
	// Each texture has the like of its uploader.
	for _, word := range []string{"old", "older than the last"} {
		addTexture(t, db, texture(ann.ID, skin.Classic, word, true))
	}
	loved := addTexture(t, db, texture(ann.ID, skin.Cape, "loved", true))
	liked := addTexture(t, db, texture(ann.ID, skin.Slim, "liked", true))
	addTexture(t, db, texture(ann.ID, skin.Classic, "private", false))
	addTexture(t, db, texture(ann.ID, skin.Classic, "new", true))
	like(bob, loved)
	like(eve, loved)
	like(bob, liked)
	want(10, "loved", "liked", "new", "older than the last", "old")
	want(3, "loved", "liked", "new")
}
