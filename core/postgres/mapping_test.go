package postgres_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/core/postgres/postgrestest"
	"github.com/veneer-skins/veneer/shared/skin"
)

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
	like := func(who core.User, texture core.Texture) {
		t.Helper()
		if err := db.AddClosetItem(t.Context(), who.ID, texture.ID, "N", core.Terms{}); err != nil {
			t.Fatal(err)
		}
	}
	// Each is in its uploader's closet from the start.
	for _, word := range []string{"old", "older than the last"} {
		addTexture(t, db, texture(ann.ID, skin.Steve, word, true))
	}
	loved := addTexture(t, db, texture(ann.ID, skin.Cape, "loved", true))
	liked := addTexture(t, db, texture(ann.ID, skin.Alex, "liked", true))
	addTexture(t, db, texture(ann.ID, skin.Steve, "private", false))
	addTexture(t, db, texture(ann.ID, skin.Steve, "new", true))
	like(bob, loved)
	like(eve, loved)
	like(bob, liked)
	want(10, "loved", "liked", "new", "older than the last", "old")
	want(3, "loved", "liked", "new")
}
