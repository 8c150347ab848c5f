package postgres_test

import (
	"slices"
	"testing"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/shared/edgeproto"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/testenv"
	"github.com/veneer-skins/veneer/shared/testenv/cmptest"
)

// watchChanges returns a function that checks the keys of all changes since its last call, and that onChange was
// called if there are some.
func watchChanges(t *testing.T, db store) func(what string, want ...edgeproto.Key) {
	t.Helper()
	at, calls := must(db.NumberChanges(t.Context()))(t).Revision, db.changed.Load()
	return func(what string, want ...edgeproto.Key) {
		t.Helper()
		head := must(db.NumberChanges(t.Context()))(t).Revision
		got := slices.Concat(keysAfter(t, db, at)...)
		slices.Sort(got)
		slices.Sort(want)
		cmptest.Same(t, got, want, "%s names", what)
		testenv.Equal(t, db.changed.Load() > calls || len(want) == 0, true, "%s: onChange was called", what)
		at, calls = head, db.changed.Load()
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
	db, ann := openForOne(t)
	a := addTexture(t, db, texture(ann.ID, skin.Classic, "a", true))
	cape := addTexture(t, db, texture(ann.ID, skin.Cape, "c", true))
	wantKeys := watchChanges(t, db)

	must(db.SetAvatar(t.Context(), ann.ID, a.ID))(t)
	wantKeys("an avatar", edgeproto.UIDKey(int64(ann.ID)))
	must(db.SetAvatar(t.Context(), ann.ID, a.ID))(t)
	wantKeys("the same avatar")
	wantKind(t, errOf(db.SetAvatar(t.Context(), ann.ID, cape.ID)), fault.Invalid)
	wantKeys("an avatar that is refused")
	must(db.SetAvatar(t.Context(), ann.ID, 0))(t)
	wantKeys("no avatar any more", edgeproto.UIDKey(int64(ann.ID)))
	wantKind(t, errOf(db.SetAvatar(t.Context(), ann.ID+100, 0)), fault.Unauthenticated)
}

// SetAvatar locks the user before the texture, as a deletion of the user does, and then finds
// no user.
func TestAvatarAfterWaitingForADeletion(t *testing.T) {
	t.Parallel()
	db, ann, bob := openForTwo(t)
	tid := addTexture(t, db, texture(bob.ID, skin.Classic, "x", true)).ID
	other := db.lock(t, "SELECT FROM users WHERE uid = $1 FOR UPDATE", ann.ID)

	set := start(func() error { return errOf(db.SetAvatar(t.Context(), ann.ID, tid)) })
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
	db, ann, bob := openForTwo(t)
	do(t, db.ForcePermission(t.Context(), ann.ID, core.Administrator))
	private := addTexture(t, db, texture(bob.ID, skin.Classic, "private", false))
	do(t, db.AddClosetItem(t.Context(), as(ann.ID), ann.ID, private.ID, "gift", core.Pricing{}))
	wantKeys := watchChanges(t, db)
	// SetAvatar takes no row lock between reading the texture and the commit, so the update
	// itself must wait.
	db.exec(t, `
		CREATE FUNCTION pause() RETURNS trigger LANGUAGE plpgsql AS $$
			BEGIN
				PERFORM pg_advisory_xact_lock('users'::regclass::bigint);
				RETURN new;
			END
		$$;
		CREATE TRIGGER pause BEFORE UPDATE OF avatar ON users FOR EACH ROW EXECUTE FUNCTION pause()`)
	other := db.lock(t, "SELECT pg_advisory_xact_lock('users'::regclass::bigint)")

	set := start(func() error { return errOf(db.SetAvatar(t.Context(), ann.ID, private.ID)) })
	other.waitBlocked(t, 1)
	deleted := start(func() error { return db.DeleteUser(t.Context(), as(bob.ID), credentialsOf(bob)) })
	other.commitOnceBlocked(t, 2)
	do(t, <-set)
	do(t, <-deleted)
	wantKeys("an avatar that is set, and deleted", append(
		textureKeys(private), edgeproto.UIDKey(int64(ann.ID)), edgeproto.UIDKey(int64(ann.ID)), edgeproto.UIDKey(int64(bob.ID)))...)
}

// A deletion names exactly the keys that edges may have cached of the user.
func TestDeletedUserNamesItsKeys(t *testing.T) {
	t.Parallel()
	db, ann, bob := openForTwo(t)
	do(t, db.ForcePermission(t.Context(), bob.ID, core.Administrator))
	public := addTexture(t, db, texture(ann.ID, skin.Classic, "public", true))
	private := addTexture(t, db, texture(ann.ID, skin.Classic, "private", false))
	cape := addTexture(t, db, texture(ann.ID, skin.Cape, "cape", false))
	bobs := addTexture(t, db, texture(bob.ID, skin.Classic, "bobs", false))
	own := addPlayer(t, db, ann.ID, "Own")
	skinned, caped, both, bare := addPlayer(t, db, bob.ID, "Skinned"), addPlayer(t, db, bob.ID, "Caped"), addPlayer(t, db, bob.ID, "Both"), addPlayer(t, db, bob.ID, "Bare")
	for _, texture := range []core.Texture{private, cape, public} {
		do(t, db.AddClosetItem(t.Context(), as(bob.ID), bob.ID, texture.ID, "gift", core.Pricing{}))
	}
	do(t, db.wear(t.Context(), bob.ID, skinned.ID, private.ID))
	worn := core.TextureSelection{Skin: &public.ID, Cape: &cape.ID}
	must(db.SetPlayerTextures(t.Context(), as(bob.ID), caped.ID, worn))(t)
	worn.Skin = &private.ID
	must(db.SetPlayerTextures(t.Context(), as(bob.ID), both.ID, worn))(t)
	do(t, db.wear(t.Context(), bob.ID, bare.ID, bobs.ID))
	must(db.SetAvatar(t.Context(), ann.ID, private.ID))(t)
	must(db.SetAvatar(t.Context(), bob.ID, private.ID))(t)
	wantKeys := watchChanges(t, db)

	outdated := credentialsOf(ann)
	outdated.PasswordHash = "another"
	wantKind(t, db.DeleteUser(t.Context(), as(outdated.ID), outdated), fault.Unauthenticated)
	wantKeys("a deletion with an outdated password")

	calls := db.changed.Load()
	do(t, db.DeleteUser(t.Context(), as(ann.ID), credentialsOf(ann)))
	wantKeys("a deleted user", slices.Concat(
		[]edgeproto.Key{edgeproto.UIDKey(int64(ann.ID)), edgeproto.UIDKey(int64(bob.ID))}, // bob's avatar is deleted
		playerKeys(own), playerKeys(skinned), playerKeys(caped), playerKeys(both), textureKeys(private), textureKeys(cape),
	)...)
	testenv.Equal(t, db.changed.Load()-calls, 1, "calls of onChange")
	wantKind(t, db.DeleteUser(t.Context(), as(ann.ID), credentialsOf(ann)), fault.Unauthenticated)

	// After the changes, edges read the new state.
	response := must(db.Mappings(t.Context(), []edgeproto.Key{
		edgeproto.UIDKey(int64(ann.ID)), edgeproto.NameKey("own"), edgeproto.TIDKey(int64(private.ID)), edgeproto.HashKey(private.Hash), edgeproto.TIDKey(int64(public.ID)), edgeproto.NameKey("caped"),
	}))(t)
	for i, m := range response.Mappings[:4] {
		testenv.Equal(t, m, (edgeproto.Mapping{}), "what key %d of what is deleted is mapped to", i)
	}
	mapped, wearer := response.Mappings[4].Texture, response.Mappings[5].Player
	testenv.Check(t, mapped != nil && mapped.TID == int64(public.ID), "the public texture is %+v", mapped)
	testenv.Check(t, wearer.Skin != nil && wearer.Skin.TID == int64(public.ID) && wearer.Cape == nil,
		"the player that wore a private cape wears %+v and %+v", wearer.Skin, wearer.Cape)
}

// A deletion of a user waits for transactions that use the user's textures, and then sees their
// players.
func TestDeleteUserSeesConcurrentSetTextures(t *testing.T) {
	t.Parallel()
	db, ann, bob := openForTwo(t)
	alex := addPlayer(t, db, bob.ID, "Alex")
	private := addTexture(t, db, texture(ann.ID, skin.Classic, "private", false))
	other := db.lock(t, "SELECT FROM textures WHERE tid = $1 FOR SHARE", private.ID)
	other.exec(t, "UPDATE players SET tid_skin = $2 WHERE pid = $1", alex.ID, private.ID)

	do(t, other.delays(t, func() error { return db.DeleteUser(t.Context(), as(ann.ID), credentialsOf(ann)) }))
	testenv.Equal(t, playersOf(t, db, bob.ID)[0].Skin, 0, "what the player wears of what is deleted")
}

// A deletion of a user waits for a transaction that clears a player's skin, and then does not
// change that player.
func TestDeleteUserSeesConcurrentClearing(t *testing.T) {
	t.Parallel()
	db, ann, bob := openForTwo(t)
	alex := addPlayer(t, db, bob.ID, "Alex")
	private := addTexture(t, db, texture(ann.ID, skin.Classic, "private", false))
	db.exec(t, "UPDATE players SET tid_skin = $2 WHERE pid = $1", alex.ID, private.ID)
	wantKeys := watchChanges(t, db)
	other := db.lock(t, "UPDATE players SET tid_skin = NULL WHERE pid = $1", alex.ID)

	do(t, other.delays(t, func() error { return db.DeleteUser(t.Context(), as(ann.ID), credentialsOf(ann)) }))
	wantKeys("the deleted user", append(textureKeys(private), edgeproto.UIDKey(int64(ann.ID)))...)
	testenv.Equal(t, playersOf(t, db, bob.ID)[0], alex, "the player")
}

// A deletion of a user locks textures before players, also textures that only lose their
// uploader.
func TestDeleteLocksTexturesBeforePlayers(t *testing.T) {
	t.Parallel()
	db, ann := openForOne(t)
	steve := addPlayer(t, db, ann.ID, "Steve")
	public := addTexture(t, db, texture(ann.ID, skin.Classic, "public", true))
	do(t, db.RemoveClosetItem(t.Context(), as(ann.ID), ann.ID, public.ID))
	other := db.lock(t, "SELECT FROM textures WHERE tid = $1 FOR SHARE", public.ID)

	do(t, other.delays(t, func() error { return db.DeleteUser(t.Context(), as(ann.ID), credentialsOf(ann)) }, func() {
		other.exec(t, "SELECT FROM players WHERE pid = $1 FOR UPDATE NOWAIT", steve.ID)
	}))
}

func TestSetPasswordEndsSessions(t *testing.T) {
	t.Parallel()
	s := newSessionTest(t)
	current, ended := s.open(t), s.open(t)

	outdated := core.PasswordChange{User: s.user.ID, OldHash: "another", NewHash: "fresh", KeepSession: current.Session}
	wantKind(t, errOf(s.db.SetPassword(t.Context(), as(s.user.ID), outdated)), fault.Unauthenticated)
	s.wantWorking(t, "after a change that is refused", current, ended)
	must(s.db.SetPassword(t.Context(), as(s.user.ID), core.PasswordChange{User: s.user.ID, OldHash: "x", NewHash: "fresh", KeepSession: current.Session}))(t)
	s.wantWorking(t, "after a change by the first one", current)
	s.wantEnded(t, "after a change by another session", ended)
	must(s.db.SetPassword(t.Context(), as(s.user.ID), core.PasswordChange{User: s.user.ID, NewHash: "reset"}))(t)
	s.wantEnded(t, "after a reset", current)
	wantKind(t, errOf(s.db.SetPassword(t.Context(), as(s.user.ID+100), core.PasswordChange{User: s.user.ID + 100, NewHash: "reset"})), fault.Unauthenticated)
}

// A session that is opened during a change of the password is either ended or not opened.
func TestNoSessionOutlivesAPasswordChange(t *testing.T) {
	t.Parallel()
	s := newSessionTest(t)
	other := s.db.lock(t, "SELECT FROM users WHERE uid = $1 FOR UPDATE", s.user.ID)

	token := s.token([16]byte{5})
	opened := start(func() error { return s.db.OpenSession(t.Context(), s.session(token, "x", 20)) })
	other.waitBlocked(t, 1)
	changed := start(func() error {
		change := core.PasswordChange{User: s.user.ID, OldHash: "x", NewHash: "fresh"}
		return errOf(s.db.SetPassword(t.Context(), as(s.user.ID), change))
	})
	other.commitOnceBlocked(t, 2)
	do(t, <-opened)
	do(t, <-changed)
	s.wantEnded(t, "after the change", token)
}

func TestSetEmailNeedsThePassword(t *testing.T) {
	t.Parallel()
	db, ann := openForOne(t)
	change := core.EmailChange{User: ann.ID, PasswordHash: "another", Email: "b@example.com", EmailKey: "b@example.com"}
	wantKind(t, errOf(db.SetEmail(t.Context(), as(ann.ID), change)), fault.Unauthenticated)
	change.PasswordHash = "x"
	testenv.Equal(t, must(db.SetEmail(t.Context(), as(ann.ID), change))(t).Email, "b@example.com", "the address")
}

// Avatars that cores of the previous release left to users without a right to the texture are
// cleared in batches, and no others.
func TestClearLostAvatars(t *testing.T) {
	t.Parallel()
	l := newLinkTest(t)
	ann, ben := addUser(t, l.store, "ann"), addUser(t, l.store, "ben")
	private := addTexture(t, l.store, texture(ann.ID, skin.Classic, "private", false)).ID
	public := addTexture(t, l.store, texture(ann.ID, skin.Classic, "public", true)).ID
	l.exec(t, "INSERT INTO closet_items (uid, tid, cape, item_name) VALUES ($1, $2, false, 'x')", ben.ID, private)
	l.exec(t, "UPDATE users SET avatar = $1", private)
	l.exec(t, "INSERT INTO users (email, email_key, nickname, password_hash, avatar) SELECT n || '@b.c', n || '@b.c', 'x', 'x', $1 FROM generate_series(1, 1500) n", private)
	l.exec(t, "INSERT INTO users (email, email_key, nickname, password_hash, avatar) VALUES ('p@b.c', 'p@b.c', 'x', 'x', $1)", public)
	l.exec(t, "DELETE FROM changes")
	for _, want := range []int{1500, 0} {
		testenv.Equal(t, must(l.ClearLostAvatars(t.Context()))(t), want, "avatars are cleared")
	}
	l.hasCount(t, 3, "SELECT count(*) FROM users WHERE avatar <> 0 AND (uid IN ($1, $2) OR email = 'p@b.c')", ann.ID, ben.ID)
	l.hasCount(t, 1500, "SELECT count(*) FROM changes")
}
