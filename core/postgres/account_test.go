package postgres_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/core/postgres"
	"github.com/veneer-skins/veneer/core/postgres/postgrestest"
	"github.com/veneer-skins/veneer/shared/edgeproto"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/skin"
)

// watchChanges returns a function that checks the keys of all changes since its last call.
func watchChanges(t *testing.T, db *postgres.DB) func(what string, want ...edgeproto.Key) {
	t.Helper()
	at := must(db.NumberChanges(t.Context()))(t).Revision
	return func(what string, want ...edgeproto.Key) {
		t.Helper()
		head := must(db.NumberChanges(t.Context()))(t).Revision
		got := slices.Concat(keysAfter(t, db, at)...)
		slices.Sort(got)
		slices.Sort(want)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s names (-want +got):\n%s", what, diff)
		}
		at = head
	}
}

// credentialsOf returns the credentials of a user that addUser added.
func credentialsOf(user core.User) core.VerifiedCredentials {
	return core.VerifiedCredentials{Credentials: core.Credentials{User: user, PasswordHash: "x"}}
}

// playerKeys are the mapping keys of a player.
func playerKeys(p core.Player) []edgeproto.Key {
	return []edgeproto.Key{edgeproto.PIDKey(int64(p.ID)), edgeproto.NameKey(p.Name), edgeproto.UUIDKey(p.UUID.String())}
}

// textureKeys are the mapping keys of a texture.
func textureKeys(t core.Texture) []edgeproto.Key {
	return []edgeproto.Key{edgeproto.TIDKey(int64(t.ID)), edgeproto.HashKey(t.Hash)}
}

func TestAvatarsNameTheirUser(t *testing.T) {
	t.Parallel()
	db := postgrestest.Open(t)
	ann := addUser(t, db, "ann")
	a := addTexture(t, db, texture(ann.ID, skin.Classic, "a", true))
	cape := addTexture(t, db, texture(ann.ID, skin.Cape, "c", true))
	calls := 0
	db.OnChange(func() { calls++ })
	wantKeys := watchChanges(t, db)

	must(db.SetAvatar(t.Context(), ann.ID, a.ID))(t)
	wantKeys("an avatar", edgeproto.UIDKey(int64(ann.ID)))
	if calls == 0 {
		t.Error("onChange was not called")
	}
	must(db.SetAvatar(t.Context(), ann.ID, a.ID))(t)
	wantKeys("the same avatar")
	_, err := db.SetAvatar(t.Context(), ann.ID, cape.ID)
	wantKind(t, err, fault.Invalid)
	wantKeys("an avatar that is refused")
	must(db.SetAvatar(t.Context(), ann.ID, 0))(t)
	wantKeys("no avatar any more", edgeproto.UIDKey(int64(ann.ID)))
	_, err = db.SetAvatar(t.Context(), ann.ID+100, 0)
	wantKind(t, err, fault.Unauthenticated)
}

// SetAvatar locks the user before the texture, as a deletion of the user does, and then finds
// no user.
func TestAvatarAfterWaitingForADeletion(t *testing.T) {
	t.Parallel()
	db, address := openNamed(t)
	ann, bob := addUser(t, db, "ann"), addUser(t, db, "bob")
	tid := addTexture(t, db, texture(bob.ID, skin.Classic, "x", true)).ID
	other := beginLockTx(t, address)
	other.exec(t, "SELECT FROM users WHERE uid = $1 FOR UPDATE", ann.ID)

	set := make(chan error, 1)
	go func() {
		_, err := db.SetAvatar(t.Context(), ann.ID, tid)
		set <- err
	}()
	other.waitBlocked(t, 1)
	other.exec(t, "SELECT FROM textures WHERE tid = $1 FOR UPDATE NOWAIT", tid)
	other.exec(t, "DELETE FROM users WHERE uid = $1", ann.ID)
	other.commitOnceBlocked(t, 1)
	wantKind(t, <-set, fault.Unauthenticated)
}

// SetAvatar locks the texture until the commit: a deletion of the texture waits, and then its
// change names the user.
func TestAvatarLocksItsTexture(t *testing.T) {
	t.Parallel()
	db, address := openNamed(t)
	ann, bob := addUser(t, db, "ann"), addUser(t, db, "bob")
	if err := db.SetPermission(t.Context(), ann.ID, core.Administrator); err != nil {
		t.Fatal(err)
	}
	private := addTexture(t, db, texture(bob.ID, skin.Classic, "private", false))
	if err := db.AddClosetItem(t.Context(), ann.ID, private.ID, "gift", core.Pricing{}); err != nil {
		t.Fatal(err)
	}
	wantKeys := watchChanges(t, db)
	// SetAvatar takes no row lock between reading the texture and the commit, so the update
	// itself must wait.
	if _, err := postgrestest.Conn(t, address).Exec(t.Context(), `
		CREATE FUNCTION pause() RETURNS trigger LANGUAGE plpgsql AS $$
			BEGIN
				PERFORM pg_advisory_xact_lock('users'::regclass::bigint);
				RETURN new;
			END
		$$;
		CREATE TRIGGER pause BEFORE UPDATE OF avatar ON users FOR EACH ROW EXECUTE FUNCTION pause()`); err != nil {
		t.Fatal(err)
	}
	other := beginLockTx(t, address)
	other.exec(t, "SELECT pg_advisory_xact_lock('users'::regclass::bigint)")

	set, deleted := make(chan error, 1), make(chan error, 1)
	go func() {
		_, err := db.SetAvatar(t.Context(), ann.ID, private.ID)
		set <- err
	}()
	other.waitBlocked(t, 1)
	go func() { deleted <- db.DeleteUser(t.Context(), credentialsOf(bob)) }()
	other.commitOnceBlocked(t, 2)
	if err := <-set; err != nil {
		t.Error(err)
	}
	if err := <-deleted; err != nil {
		t.Error(err)
	}
	wantKeys("an avatar that is set, and deleted", append(
		textureKeys(private), edgeproto.UIDKey(int64(ann.ID)), edgeproto.UIDKey(int64(ann.ID)), edgeproto.UIDKey(int64(bob.ID)))...)
}

// A deletion names exactly the keys that edges may have cached of the user.
func TestDeletedUserNamesItsKeys(t *testing.T) {
	t.Parallel()
	address := postgrestest.URL(t)
	db := postgrestest.Connect(t, address)
	ann, bob := addUser(t, db, "ann"), addUser(t, db, "bob")
	if err := db.SetPermission(t.Context(), bob.ID, core.Administrator); err != nil {
		t.Fatal(err)
	}
	public := addTexture(t, db, texture(ann.ID, skin.Classic, "public", true))
	private := addTexture(t, db, texture(ann.ID, skin.Classic, "private", false))
	cape := addTexture(t, db, texture(ann.ID, skin.Cape, "cape", false))
	bobs := addTexture(t, db, texture(bob.ID, skin.Classic, "bobs", false))
	own := addPlayer(t, db, ann.ID, "Own")
	skinned, caped, both, bare := addPlayer(t, db, bob.ID, "Skinned"), addPlayer(t, db, bob.ID, "Caped"), addPlayer(t, db, bob.ID, "Both"), addPlayer(t, db, bob.ID, "Bare")
	for _, texture := range []core.Texture{private, cape, public} {
		if err := db.AddClosetItem(t.Context(), bob.ID, texture.ID, "gift", core.Pricing{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, update := range []struct {
		player    core.Player
		selection core.TextureSelection
	}{
		{skinned, core.TextureSelection{Skin: &private.ID}},
		{caped, core.TextureSelection{Skin: &public.ID, Cape: &cape.ID}},
		{both, core.TextureSelection{Skin: &private.ID, Cape: &cape.ID}},
		{bare, core.TextureSelection{Skin: &bobs.ID}},
	} {
		must(db.SetPlayerTextures(t.Context(), bob.ID, update.player.ID, update.selection))(t)
	}
	must(db.SetAvatar(t.Context(), ann.ID, private.ID))(t)
	must(db.SetAvatar(t.Context(), bob.ID, private.ID))(t)
	calls := 0
	db.OnChange(func() { calls++ })
	wantKeys := watchChanges(t, db)

	outdated := credentialsOf(ann)
	outdated.PasswordHash = "another"
	wantKind(t, db.DeleteUser(t.Context(), outdated), fault.Unauthenticated)
	wantKeys("a deletion with an outdated password")

	if err := db.DeleteUser(t.Context(), credentialsOf(ann)); err != nil {
		t.Fatal(err)
	}
	wantKeys("a deleted user", slices.Concat(
		[]edgeproto.Key{edgeproto.UIDKey(int64(ann.ID)), edgeproto.UIDKey(int64(bob.ID))}, // bob's avatar is deleted
		playerKeys(own), playerKeys(skinned), playerKeys(caped), playerKeys(both), textureKeys(private), textureKeys(cape),
	)...)
	if calls != 1 {
		t.Errorf("onChange was called %d times; want once", calls)
	}
	wantKind(t, db.DeleteUser(t.Context(), credentialsOf(ann)), fault.Unauthenticated)

	// After the changes, edges read the new state.
	response := must(db.Mappings(t.Context(), []edgeproto.Key{
		edgeproto.UIDKey(int64(ann.ID)), edgeproto.NameKey("own"), edgeproto.TIDKey(int64(private.ID)), edgeproto.HashKey(private.Hash), edgeproto.TIDKey(int64(public.ID)), edgeproto.NameKey("caped"),
	}))(t)
	for i, m := range response.Mappings[:4] {
		if m != (edgeproto.Mapping{}) {
			t.Errorf("key %d of what is deleted is mapped to %+v", i, m)
		}
	}
	if got := response.Mappings[4].Texture; got == nil || got.TID != int64(public.ID) {
		t.Errorf("the public texture is %+v", got)
	}
	if got := response.Mappings[5].Player; got.Skin == nil || got.Skin.TID != int64(public.ID) || got.Cape != nil {
		t.Errorf("the player that wore a private cape wears %+v and %+v", got.Skin, got.Cape)
	}
}

// A deletion of a user waits for transactions that use the user's textures, and then sees their
// players.
func TestDeleteUserSeesConcurrentSetTextures(t *testing.T) {
	t.Parallel()
	db, address := openNamed(t)
	ann, bob := addUser(t, db, "ann"), addUser(t, db, "bob")
	alex := addPlayer(t, db, bob.ID, "Alex")
	private := addTexture(t, db, texture(ann.ID, skin.Classic, "private", false))
	other := beginLockTx(t, address)
	other.exec(t, "SELECT FROM textures WHERE tid = $1 FOR SHARE", private.ID)
	other.exec(t, "UPDATE players SET tid_skin = $2 WHERE pid = $1", alex.ID, private.ID)

	deleted := make(chan error, 1)
	go func() { deleted <- db.DeleteUser(t.Context(), credentialsOf(ann)) }()
	other.commitOnceBlocked(t, 1)
	if err := <-deleted; err != nil {
		t.Fatal(err)
	}
	if got := playersOf(t, db, bob.ID)[0]; got.Skin != 0 {
		t.Errorf("the player wears %d, which is deleted", got.Skin)
	}
}

// A deletion of a user waits for a transaction that clears a player's skin, and then does not
// change that player.
func TestDeleteUserSeesConcurrentClearing(t *testing.T) {
	t.Parallel()
	db, address := openNamed(t)
	ann, bob := addUser(t, db, "ann"), addUser(t, db, "bob")
	alex := addPlayer(t, db, bob.ID, "Alex")
	private := addTexture(t, db, texture(ann.ID, skin.Classic, "private", false))
	if _, err := postgrestest.Conn(t, address).Exec(t.Context(), "UPDATE players SET tid_skin = $2 WHERE pid = $1", alex.ID, private.ID); err != nil {
		t.Fatal(err)
	}
	wantKeys := watchChanges(t, db)
	other := beginLockTx(t, address)
	other.exec(t, "UPDATE players SET tid_skin = NULL WHERE pid = $1", alex.ID)

	deleted := make(chan error, 1)
	go func() { deleted <- db.DeleteUser(t.Context(), credentialsOf(ann)) }()
	other.commitOnceBlocked(t, 1)
	if err := <-deleted; err != nil {
		t.Fatal(err)
	}
	wantKeys("the deleted user", append(textureKeys(private), edgeproto.UIDKey(int64(ann.ID)))...)
	if got := playersOf(t, db, bob.ID)[0]; got != alex {
		t.Errorf("the player is %+v; want %+v, untouched", got, alex)
	}
}

// A deletion of a user locks textures before players, also textures that only lose their
// uploader.
func TestDeleteLocksTexturesBeforePlayers(t *testing.T) {
	t.Parallel()
	db, address := openNamed(t)
	ann := addUser(t, db, "ann")
	steve := addPlayer(t, db, ann.ID, "Steve")
	public := addTexture(t, db, texture(ann.ID, skin.Classic, "public", true))
	if err := db.RemoveClosetItem(t.Context(), ann.ID, public.ID); err != nil {
		t.Fatal(err)
	}
	other := beginLockTx(t, address)
	other.exec(t, "SELECT FROM textures WHERE tid = $1 FOR SHARE", public.ID)

	deleted := make(chan error, 1)
	go func() { deleted <- db.DeleteUser(t.Context(), credentialsOf(ann)) }()
	other.waitBlocked(t, 1)
	other.exec(t, "SELECT FROM players WHERE pid = $1 FOR UPDATE NOWAIT", steve.ID)
	other.commitOnceBlocked(t, 1)
	if err := <-deleted; err != nil {
		t.Error(err)
	}
}

func TestSetPasswordEndsSessions(t *testing.T) {
	t.Parallel()
	s := newSessionTest(t)
	current, ended := s.open(t), s.open(t)

	outdated := core.PasswordChange{User: s.user.ID, OldHash: "another", NewHash: "fresh", KeepSession: current.Session}
	wantKind(t, s.db.SetPassword(t.Context(), outdated), fault.Unauthenticated)
	if !s.isValid(t, current) || !s.isValid(t, ended) {
		t.Error("a change that is refused ends sessions")
	}
	if err := s.db.SetPassword(t.Context(), core.PasswordChange{User: s.user.ID, OldHash: "x", NewHash: "fresh", KeepSession: current.Session}); err != nil {
		t.Fatal(err)
	}
	if !s.isValid(t, current) || s.isValid(t, ended) {
		t.Errorf("the caller's session lives: %t, the other: %t; want only the caller's", s.isValid(t, current), s.isValid(t, ended))
	}
	if err := s.db.SetPassword(t.Context(), core.PasswordChange{User: s.user.ID, NewHash: "reset"}); err != nil {
		t.Fatal(err)
	}
	if s.isValid(t, current) {
		t.Error("a session outlives a reset")
	}
	wantKind(t, s.db.SetPassword(t.Context(), core.PasswordChange{User: s.user.ID + 100, NewHash: "reset"}), fault.Unauthenticated)
}

// A session that is opened during a change of the password is either ended or not opened.
func TestNoSessionOutlivesAPasswordChange(t *testing.T) {
	t.Parallel()
	db, address := openNamed(t)
	s := &sessionTest{db: db, user: addUser(t, db, "ann"), now: time.Now().UTC().Truncate(time.Second)}
	other := beginLockTx(t, address)
	other.exec(t, "SELECT FROM users WHERE uid = $1 FOR UPDATE", s.user.ID)

	token := s.token([16]byte{5})
	opened, changed := make(chan error, 1), make(chan error, 1)
	go func() { opened <- db.OpenSession(t.Context(), s.session(token, "x", 20)) }()
	other.waitBlocked(t, 1)
	go func() {
		changed <- db.SetPassword(t.Context(), core.PasswordChange{User: s.user.ID, OldHash: "x", NewHash: "fresh"})
	}()
	other.commitOnceBlocked(t, 2)
	if err := <-opened; err != nil {
		t.Fatal(err) // it came first
	}
	if err := <-changed; err != nil {
		t.Fatal(err)
	}
	if s.isValid(t, token) {
		t.Error("the session lives")
	}
}

func TestSetEmailNeedsThePassword(t *testing.T) {
	t.Parallel()
	db := postgrestest.Open(t)
	ann := addUser(t, db, "ann")
	outdated := credentialsOf(ann)
	outdated.PasswordHash = "another"
	_, err := db.SetEmail(t.Context(), outdated, core.EmailChange{Email: "b@example.com", EmailKey: "b@example.com"})
	wantKind(t, err, fault.Unauthenticated)
	if got := must(db.SetEmail(t.Context(), credentialsOf(ann), core.EmailChange{Email: "b@example.com", EmailKey: "b@example.com"}))(t); got.Email != "b@example.com" {
		t.Errorf("the address is %s", got.Email)
	}
}

// Avatars that cores of the previous release left to users without a right to the texture are
// cleared in batches, and no others.
func TestClearLostAvatars(t *testing.T) {
	t.Parallel()
	l := newLinkTest(t)
	ann, ben := addUser(t, l.DB, "ann"), addUser(t, l.DB, "ben")
	private := addTexture(t, l.DB, texture(ann.ID, skin.Classic, "private", false)).ID
	public := addTexture(t, l.DB, texture(ann.ID, skin.Classic, "public", true)).ID
	l.exec(t, "INSERT INTO closet_items (uid, tid, cape, item_name) VALUES ($1, $2, false, 'x')", ben.ID, private)
	l.exec(t, "UPDATE users SET avatar = $1", private)
	l.exec(t, "INSERT INTO users (email, email_key, nickname, password_hash, avatar) SELECT n || '@b.c', n || '@b.c', 'x', 'x', $1 FROM generate_series(1, 1500) n", private)
	l.exec(t, "INSERT INTO users (email, email_key, nickname, password_hash, avatar) VALUES ('p@b.c', 'p@b.c', 'x', 'x', $1)", public)
	l.exec(t, "DELETE FROM changes")
	for _, want := range []int{1500, 0} {
		if got := must(l.ClearLostAvatars(t.Context()))(t); got != want {
			t.Errorf("%d avatars are cleared; want %d", got, want)
		}
	}
	if n := l.count(t, "SELECT count(*) FROM users WHERE avatar <> 0 AND (uid IN ($1, $2) OR email = 'p@b.c')", ann.ID, ben.ID); n != 3 {
		t.Errorf("%d users with a right to their avatar have it; want 3", n)
	}
	if n := l.count(t, "SELECT count(*) FROM changes"); n != 1500 {
		t.Errorf("%d changes are written; want 1500", n)
	}
}
