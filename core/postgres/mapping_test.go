package postgres_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/core/postgres/postgrestest"
	"github.com/veneer-skins/veneer/shared/edgeproto"
	"github.com/veneer-skins/veneer/shared/skin"
)

// The mapping of a player is dated by the last change of its files or its profile, that of a
// file by its upload, in seconds, rounded up.
func TestMappingsModified(t *testing.T) {
	t.Parallel()
	address := postgrestest.URL(t)
	db, conn := postgrestest.Connect(t, address), postgrestest.Conn(t, address)
	exec := func(sql string, args ...any) {
		t.Helper()
		if _, err := conn.Exec(t.Context(), sql, args...); err != nil {
			t.Fatal(err)
		}
	}
	ann, bob := addUser(t, db, "ann"), addUser(t, db, "bob")
	own := addTexture(t, db, texture(ann.ID, skin.Classic, "own", true))
	lent := addTexture(t, db, texture(bob.ID, skin.Classic, "lent", true))
	target := addTexture(t, db, texture(bob.ID, skin.Cape, "target", true))
	steve := addPlayer(t, db, ann.ID, "Steve")
	uuid := edgeproto.UUIDKey(steve.UUID.String())

	modified := func(key edgeproto.Key) int64 {
		t.Helper()
		return must(db.Mappings(t.Context(), []edgeproto.Key{key}))(t).Mappings[0].Modified
	}
	const past, pastUp = "2024-05-06 07:08:09.000001+00", 1714979290 // 07:08:10
	reset := func() {
		t.Helper()
		exec("UPDATE players SET last_modified = $1", past)
		exec("UPDATE textures SET retyped_at = NULL, upload_at = $1", past)
		if got := modified(uuid); got != pastUp {
			t.Fatalf("a player of %s is dated %d; want %d", past, got, pastUp)
		}
	}
	changes := func(name string, change func() error) {
		t.Helper()
		reset()
		began := time.Now().Unix()
		if err := change(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := modified(uuid); got < began || got > time.Now().Unix()+1 {
			t.Errorf("%s: the date is %d; want that of the change, %d or later", name, got, began)
		}
	}
	changes("textures applied", func() error {
		_, err := db.SetPlayerTextures(t.Context(), ann.ID, steve.ID, core.TextureSelection{Skin: &own.ID, Cape: &target.ID})
		return err
	})
	changes("renamed", func() error {
		_, err := db.RenamePlayer(t.Context(), ann.ID, steve.ID, player("Alex"))
		return err
	})
	retype := core.TextureChange{Type: new(skin.Slim)}
	changes("the skin's model changed", func() error {
		_, err := db.ChangeTexture(t.Context(), own.ID, retype, core.Scores{})
		return err
	})
	changes("the cape deleted", func() error { return db.DeleteTexture(t.Context(), target.ID) })
	changes("textures cleared", func() error {
		_, err := db.ClearPlayerTextures(t.Context(), ann.ID, steve.ID, true, false)
		return err
	})
	changes("another's texture applied", func() error {
		_, err := db.SetPlayerTextures(t.Context(), ann.ID, steve.ID, core.TextureSelection{Skin: &lent.ID})
		return err
	})
	changes("that made private", func() error {
		_, err := db.ChangeTexture(t.Context(), lent.ID, core.TextureChange{Public: new(false)}, core.Scores{})
		return err
	})

	reset()
	if _, err := db.ChangeTexture(t.Context(), own.ID, core.TextureChange{Type: new(skin.Slim), Name: new("Other")}, core.Scores{}); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[edgeproto.Key]int64{
		edgeproto.NameKey("alex"):              pastUp, // changing a texture that is not worn dates no player
		edgeproto.HashKey(own.Hash):            pastUp,
		edgeproto.TIDKey(int64(own.ID)):        pastUp,
		edgeproto.UIDKey(int64(ann.ID)):        0,
		edgeproto.NameKey("unknown"):           0,
		edgeproto.TIDKey(int64(own.ID) + 1000): 0,
	} {
		if got := modified(key); got != want {
			t.Errorf("%s is dated %d; want %d", key, got, want)
		}
	}
	exec("UPDATE players SET last_modified = '2024-05-06 07:08:10+00'")
	if got := modified(uuid); got != pastUp {
		t.Errorf("a full second is dated %d; want %d", got, pastUp)
	}
}

// A change that waited for another one is dated after it, though its transaction began before.
func TestModifiedAfterWaiting(t *testing.T) {
	t.Parallel()
	db, address := openNamed(t)
	ann := addUser(t, db, "ann")
	steve := addPlayer(t, db, ann.ID, "Steve")
	other := beginLockTx(t, address)
	other.exec(t, "SELECT FROM players WHERE pid = $1 FOR UPDATE", steve.ID)

	renamed := make(chan core.Player, 1)
	go func() {
		defer close(renamed)
		player, err := db.RenamePlayer(t.Context(), ann.ID, steve.ID, player("Last"))
		if err != nil {
			t.Error(err)
			return
		}
		renamed <- player
	}()
	other.waitBlocked(t, 1)
	var before time.Time
	if err := other.QueryRow(t.Context(), "UPDATE players SET last_modified = clock_timestamp() WHERE pid = $1 RETURNING last_modified", steve.ID).Scan(&before); err != nil {
		t.Fatal(err)
	}
	if err := other.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := (<-renamed).LastModified; !got.After(before) {
		t.Errorf("the later change is dated %s; want it after %s", got, before)
	}
}

func TestMostLiked(t *testing.T) {
	t.Parallel()
	db := postgrestest.Open(t)
	want := func(limit int, words ...string) {
		t.Helper()
		hashes := make([]skin.Hash, len(words))
		for i, word := range words {
			hashes[i] = skin.HashOf([]byte("file " + word))
		}
		if diff := cmp.Diff(hashes, must(db.MostLiked(t.Context(), limit))(t)); diff != "" {
			t.Errorf("the %d most liked (-want +got):\n%s", limit, diff)
		}
	}
	want(10)

	ann, bob, eve := addUser(t, db, "ann"), addUser(t, db, "bob"), addUser(t, db, "eve")
	like := func(user core.User, texture core.Texture) {
		t.Helper()
		if err := db.AddClosetItem(t.Context(), user.ID, texture.ID, "N", core.Pricing{}); err != nil {
			t.Fatal(err)
		}
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
