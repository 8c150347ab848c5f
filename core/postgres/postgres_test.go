package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/core/postgres/postgrestest"
	"github.com/veneer-skins/veneer/shared/casefold"
	"github.com/veneer-skins/veneer/shared/edgeproto"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/testenv"
	"github.com/veneer-skins/veneer/shared/testenv/cmptest"
)

// wantKind fails the test unless err is a fault of a kind.
func wantKind(t *testing.T, err error, want fault.Kind) {
	t.Helper()
	if err == nil || fault.KindOf(err) != want {
		t.Fatalf("%v, a %s fault; want %s", err, fault.KindOf(err), want)
	}
}

// wantDuplicate fails the test unless err is a duplicate that names a field.
func wantDuplicate(t *testing.T, err error, field string) {
	t.Helper()
	wantKind(t, err, fault.Duplicate)
	testenv.Check(t, fault.Of(err).Fields[field] != nil, "%v does not name the field %s", err, field)
}

// wantDuplicateOf fails the test unless err is a duplicate of a texture.
func wantDuplicateOf(t *testing.T, err error, texture core.TextureID) {
	t.Helper()
	wantKind(t, err, fault.Duplicate)
	cmptest.Same(t, fault.Of(err).Data, map[string]core.TextureID{"tid": texture}, "data")
}

// must fails the test on an error.
func must[T any](value T, err error) func(testing.TB) T { return testenv.Must(value, err) }

// do fails the test on an error.
var do = testenv.Do

// errOf returns the error of a call that also returns a value.
func errOf[T any](_ T, err error) error { return err }

// as returns a user as the owner of their things.
func as(user core.UserID) core.Actor { return core.Actor{ID: user, Owner: true} }

// anyOwner is the owner of a texture: the store does not ask which.
var anyOwner = as(0)

// byID returns the credentials of a user for an administrator, without a password hash.
func byID(user core.UserID) core.VerifiedCredentials {
	return core.VerifiedCredentials{Credentials: core.Credentials{User: core.User{ID: user}}}
}

func addUser(t *testing.T, db store, name string) core.User {
	t.Helper()
	email := name + "@example.com"
	return must(db.CreateUser(t.Context(), core.Registrant, core.NewUser{Email: email, EmailKey: casefold.Key(email), Nickname: name, PasswordHash: "x"}))(t)
}

// openForOne returns a new database with the user ann.
func openForOne(t *testing.T) (db store, ann core.User) {
	t.Helper()
	db = open(t)
	return db, addUser(t, db, "ann")
}

// openForTwo returns a new database with the users ann and bob.
func openForTwo(t *testing.T) (db store, ann, bob core.User) {
	t.Helper()
	db, ann = openForOne(t)
	return db, ann, addUser(t, db, "bob")
}

func addPlayer(t *testing.T, db store, owner core.UserID, name string) core.Player {
	t.Helper()
	return must(db.CreatePlayer(t.Context(), owner, player(name), core.Pricing{}))(t)
}

func player(name string) core.NewPlayer { return core.NewPlayer{Name: name, Key: casefold.Key(name)} }

// outfit is the skin and the cape of a player.
type outfit [2]core.TextureID

func outfitOf(p core.Player) outfit { return outfit{p.Skin, p.Cape} }

// wear applies a skin to a player.
func (s store) wear(ctx context.Context, owner core.UserID, player core.PlayerID, skin core.TextureID) error {
	return errOf(s.SetPlayerTextures(ctx, as(owner), player, core.TextureSelection{Skin: &skin}))
}

// change changes a texture by its owner, without a price.
func (s store) change(ctx context.Context, tid core.TextureID, change core.TextureChange) (core.Texture, error) {
	return s.ChangeTexture(ctx, anyOwner, tid, change, core.ScorePrices{})
}

// mapping returns the mapping of a key.
func mapping(t *testing.T, db store, key edgeproto.Key) edgeproto.Mapping {
	t.Helper()
	return must(db.Mappings(t.Context(), []edgeproto.Key{key}))(t).Mappings[0]
}

// texture returns a texture to add, with pixels and hash derived from a word.
func texture(uploader core.UserID, kind skin.Type, word string, public bool) core.NewTexture {
	return core.NewTexture{
		Name: word, Type: kind, Hash: skin.HashOf([]byte("file " + word)), Pixels: skin.HashOf([]byte(word)), Bytes: 100,
		Uploader: uploader, Public: public,
	}
}

func putOK(context.Context) error { return nil }

func addTexture(t *testing.T, db store, texture core.NewTexture) core.Texture {
	t.Helper()
	return must(db.AddTexture(t.Context(), texture, core.Pricing{}, putOK))(t)
}

func TestMigrate(t *testing.T) {
	t.Parallel()

	db := openEmpty(t)
	testenv.ErrorHas(t, db.Check(t.Context()), "core migrate", "Check of an empty schema")

	// Concurrent migrations: one works, the others find nothing to do.
	var group sync.WaitGroup
	for range 4 {
		db := postgrestest.ConnectOwner(t, db.address)
		group.Go(func() {
			_, after, err := db.Migrate(t.Context(), func(string) {})
			testenv.Check(t, err == nil && after >= 1, "Migrate: version %d, %v", after, err)
		})
	}
	group.Wait()

	before, after, err := db.Migrate(t.Context(), func(string) {})
	testenv.Is(t, err, nil, "Migrate again")
	testenv.Equal(t, after, before, "the version after migrating again")
	testenv.Is(t, db.Check(t.Context()), nil, "Check after Migrate")
	db.exec(t, "UPDATE schema_version SET version = 0")
	testenv.ErrorHas(t, db.Check(t.Context()), "version 0", "Check of an old schema")
}

func TestUnreachable(t *testing.T) {
	t.Parallel()

	// Port 1 of loopback refuses connections.
	db := postgrestest.Connect(t, "postgres://nobody@127.0.0.1:1/nothing")
	wantKind(t, db.Check(t.Context()), fault.Unavailable)
	wantKind(t, errOf(db.Players(t.Context(), core.VerifiedToken{})), fault.Unavailable)
	wantKind(t, errOf(db.NumberChanges(t.Context())), fault.Unavailable)
}

func TestCreateUser(t *testing.T) {
	t.Parallel()
	db := open(t)

	first := must(db.CreateUser(t.Context(), core.Registrant, core.NewUser{
		Email: "Ann@Example.com", EmailKey: "ann@example.com", Nickname: "Ann", PasswordHash: "x", Player: player("Ann"),
	}))(t)
	got := must(db.UserByEmail(t.Context(), "ann@example.com"))(t)
	testenv.Check(t, got.User == first && got.PasswordHash == "x", "by e-mail: %+v; want %+v", got, first)
	players := playersOf(t, db, first.ID)
	testenv.Check(t, len(players) == 1 && players[0].Name == "Ann", "players: %v; want the registered one", players)

	_, err := db.CreateUser(t.Context(), core.Registrant, core.NewUser{Email: "ANN@example.com", EmailKey: "ann@example.com", Nickname: "x", PasswordHash: "x"})
	wantDuplicate(t, err, "email")

	_, err = db.CreateUser(t.Context(), core.Registrant, core.NewUser{Email: "b@example.com", EmailKey: "b@example.com", Nickname: "x", PasswordHash: "x", Player: player("aNN")})
	wantDuplicate(t, err, "player_name")
	_, err = db.UserByEmail(t.Context(), "b@example.com")
	wantKind(t, err, fault.NotFound) // neither user nor player
}

func TestRehash(t *testing.T) {
	t.Parallel()
	db := open(t)
	user := addUser(t, db, "ann")

	do(t, db.Rehash(t.Context(), user.ID, "another", "late"))
	got := must(db.UserByEmail(t.Context(), "ann@example.com"))(t).PasswordHash
	testenv.Equal(t, got, "x", "the hash, which changed meanwhile")
	do(t, db.Rehash(t.Context(), user.ID, "x", "fresh"))
	testenv.Equal(t, must(db.UserByEmail(t.Context(), "ann@example.com"))(t).PasswordHash, "fresh", "the hash")
}

func TestPlayers(t *testing.T) {
	t.Parallel()
	db, ann, bob := openForTwo(t)
	steve := addPlayer(t, db, ann.ID, "Steve")

	wantKind(t, errOf(db.CreatePlayer(t.Context(), bob.ID, player("STEVE"), core.Pricing{})), fault.Duplicate)
	wantKind(t, errOf(db.CreatePlayer(t.Context(), ann.ID, player("Other"), core.Pricing{Quotas: core.Quotas{Players: 1}})), fault.Refused)

	wantKind(t, errOf(db.RenamePlayer(t.Context(), as(bob.ID), steve.ID, player("Mine"))), fault.Forbidden)
	wantKind(t, errOf(db.RenamePlayer(t.Context(), as(bob.ID), steve.ID+100, player("Mine"))), fault.NotFound)
	wantKind(t, db.DeletePlayer(t.Context(), as(bob.ID), steve.ID), fault.Forbidden)
	wantKind(t, db.DeletePlayer(t.Context(), as(bob.ID), steve.ID+100), fault.NotFound)

	same := must(db.RenamePlayer(t.Context(), as(ann.ID), steve.ID, player("Steve")))(t)
	testenv.Equal(t, same, steve, "renamed to its own name")
	renamed := must(db.RenamePlayer(t.Context(), as(ann.ID), steve.ID, player("sTEVE")))(t)
	testenv.Check(t, renamed.Name == "sTEVE" && renamed.UUID == steve.UUID &&
		renamed.LastModified.After(steve.LastModified), "renamed: %+v; want %+v in the new case, later", renamed, steve)
	do(t, db.DeletePlayer(t.Context(), as(ann.ID), steve.ID))
	testenv.Equal(t, len(playersOf(t, db, ann.ID)), 0, "players after the deletion")
	wantKind(t, errOf(db.CreatePlayer(t.Context(), bob.ID, player("Steve"), core.Pricing{})), fault.Duplicate)
	addPlayer(t, db, ann.ID, "Steve") // for the former owner alone the name is free again
}

// Of concurrent requests for one name, one succeeds. Concurrent additions do not exceed the
// quota.
func TestCreatePlayerInParallel(t *testing.T) {
	t.Parallel()
	db, ann := openForOne(t)

	atOnce(t, 50, 1, fault.Duplicate, func(int) error {
		return errOf(db.CreatePlayer(t.Context(), ann.ID, player("Wanted"), core.Pricing{}))
	})
	// One of ten players is there.
	atOnce(t, 50, 9, fault.Refused, func(i int) error {
		ten := core.Pricing{Quotas: core.Quotas{Players: 10}}
		return errOf(db.CreatePlayer(t.Context(), ann.ID, player(fmt.Sprintf("Player%d", i)), ten))
	})
}

func TestSetPlayerTextures(t *testing.T) {
	t.Parallel()
	db, ann, bob := openForTwo(t)
	steve := addPlayer(t, db, ann.ID, "Steve")
	public := addTexture(t, db, texture(bob.ID, skin.Classic, "public", true)).ID
	alex := addTexture(t, db, texture(bob.ID, skin.Slim, "alex", true)).ID
	cape := addTexture(t, db, texture(bob.ID, skin.Cape, "cape", true)).ID
	bobs := addTexture(t, db, texture(bob.ID, skin.Classic, "bobs", false)).ID
	own := addTexture(t, db, texture(ann.ID, skin.Classic, "own", false)).ID
	none := core.TextureID(1 << 40)

	wantRejected := func(owner core.UserID, player core.PlayerID, want fault.Kind, selection core.TextureSelection) {
		t.Helper()
		wantKind(t, errOf(db.SetPlayerTextures(t.Context(), as(owner), player, selection)), want)
	}
	wantRejected(bob.ID, steve.ID, fault.Forbidden, core.TextureSelection{Skin: &public})
	wantRejected(ann.ID, steve.ID+100, fault.NotFound, core.TextureSelection{Skin: &public})
	wantRejected(ann.ID, steve.ID, fault.NotFound, core.TextureSelection{Skin: &none})
	wantRejected(ann.ID, steve.ID, fault.Invalid, core.TextureSelection{Skin: &cape})
	wantRejected(ann.ID, steve.ID, fault.Invalid, core.TextureSelection{Cape: &public})
	wantRejected(ann.ID, steve.ID, fault.Forbidden, core.TextureSelection{Skin: &bobs})
	wantRejected(ann.ID, steve.ID, fault.NotFound, core.TextureSelection{Skin: &public, Cape: &none}) // all or nothing
	testenv.Equal(t, playersOf(t, db, ann.ID)[0], steve, "the player after refusals")

	changed := must(db.SetPlayerTextures(t.Context(), as(ann.ID), steve.ID, core.TextureSelection{Skin: &public, Cape: &cape}))(t)
	testenv.Check(t, changed.Skin == public && changed.Cape == cape && changed.LastModified.After(steve.LastModified),
		"with textures: %+v; want skin %d and cape %d", changed, public, cape)
	again := must(db.SetPlayerTextures(t.Context(), as(ann.ID), steve.ID, core.TextureSelection{Skin: &public}))(t)
	testenv.Equal(t, again, changed, "with the same textures")
	for _, tid := range []core.TextureID{alex, own} {
		got := must(db.SetPlayerTextures(t.Context(), as(ann.ID), steve.ID, core.TextureSelection{Skin: &tid}))(t)
		testenv.Equal(t, outfitOf(got), outfit{tid, cape}, "with another skin")
	}

	bare := must(db.ClearPlayerTextures(t.Context(), as(ann.ID), steve.ID, true, false))(t)
	testenv.Equal(t, outfitOf(bare), outfit{0, cape}, "without a skin")
	testenv.Equal(t, must(db.ClearPlayerTextures(t.Context(), as(ann.ID), steve.ID, true, false))(t), bare, "cleared again")
	wantKind(t, errOf(db.ClearPlayerTextures(t.Context(), as(bob.ID), steve.ID, true, true)), fault.Forbidden)
}

// A player may wear a private texture that is in the owner's closet.
func TestSetPlayerTexturesFromCloset(t *testing.T) {
	t.Parallel()
	db, ann, bob := openForTwo(t)
	steve := addPlayer(t, db, ann.ID, "Steve")
	bobs := addTexture(t, db, texture(bob.ID, skin.Classic, "bobs", false)).ID

	db.exec(t, "INSERT INTO closet_items (uid, tid, cape, item_name) VALUES ($1, $2, false, 'gift')", ann.ID, bobs)
	do(t, db.wear(t.Context(), ann.ID, steve.ID, bobs))
	testenv.Equal(t, playersOf(t, db, ann.ID)[0].Skin, bobs, "a texture of the closet")
}

func TestAddTexture(t *testing.T) {
	t.Parallel()
	db, ann, bob := openForTwo(t)

	first := addTexture(t, db, texture(ann.ID, skin.Classic, "a", true))
	db.hasCount(t, 1, "SELECT count(*) FROM closet_items WHERE (uid, tid, item_name) = ($1, $2, 'a')", ann.ID, first.ID)
	db.hasCount(t, 1, "SELECT likes FROM textures WHERE tid = $1", first.ID)
	testenv.Equal(t, first.Likes, 1, "the likes that are returned")

	duplicate := func(texture core.NewTexture, of core.TextureID) {
		t.Helper()
		_, err := db.AddTexture(t.Context(), texture, core.Pricing{}, func(context.Context) error {
			t.Error("the file of a duplicate is stored")
			return nil
		})
		wantDuplicateOf(t, err, of)
	}
	duplicate(texture(ann.ID, skin.Classic, "a", true), first.ID)
	duplicate(texture(ann.ID, skin.Classic, "a", false), first.ID)
	duplicate(texture(bob.ID, skin.Classic, "a", true), first.ID)
	addTexture(t, db, texture(ann.ID, skin.Slim, "a", true)) // another type is another texture

	hidden := addTexture(t, db, texture(ann.ID, skin.Classic, "b", false))
	duplicate(texture(ann.ID, skin.Classic, "b", true), hidden.ID)
	addTexture(t, db, texture(bob.ID, skin.Classic, "b", true)) // another user's private texture is no duplicate

	putErr := errors.New("disk full")
	failing := func(context.Context) error { return putErr }
	_, err := db.AddTexture(t.Context(), texture(ann.ID, skin.Classic, "c", true), core.Pricing{}, failing)
	testenv.Is(t, err, putErr, "put fails")
	addTexture(t, db, texture(ann.ID, skin.Classic, "c", true)) // nothing was recorded before
}

// Of two uploads of the same pixels that have both stored their file, one succeeds, and the
// other is a duplicate.
func TestAddTextureInParallel(t *testing.T) {
	t.Parallel()
	db, ann, bob := openForTwo(t)

	var both sync.WaitGroup
	both.Add(2)
	atOnce(t, 2, 1, fault.Duplicate, func(i int) error {
		upload := texture([]core.UserID{ann.ID, bob.ID}[i], skin.Classic, "same", true)
		return errOf(db.AddTexture(t.Context(), upload, core.Pricing{}, func(context.Context) error {
			both.Done()
			both.Wait()
			return nil
		}))
	})
}

// sessionTest is a store of sessions with a clock that the test sets.
type sessionTest struct {
	db   store
	user core.User
	now  time.Time
}

func newSessionTest(t *testing.T) *sessionTest {
	t.Helper()
	db := open(t)
	return &sessionTest{db: db, user: addUser(t, db, "ann"), now: time.Now().UTC().Truncate(time.Second)}
}

func (s *sessionTest) window() core.SessionWindow {
	return core.SessionWindow{
		Now: s.now, RefreshedAfter: s.now.Add(-14 * 24 * time.Hour), CreatedAfter: s.now.Add(-90 * 24 * time.Hour), ReplacedAfter: s.now.Add(-30 * time.Second),
	}
}

func (s *sessionTest) token(session uuid.UUID) core.Token {
	return core.Token{User: s.user.ID, Session: session, ID: uuid.New(), IssuedAt: s.now}
}

func (s *sessionTest) verified(token core.Token) core.VerifiedToken {
	return core.VerifiedToken{Token: token, Window: s.window()}
}

// session returns a session to open, after a log-in that read that password hash.
func (s *sessionTest) session(token core.Token, hash string, perUser int) core.NewSession {
	return core.NewSession{
		Token: token, Credentials: core.VerifiedCredentials{Credentials: core.Credentials{PasswordHash: hash}}, From: core.Origin{Network: homeNetwork}, PerUser: perUser, Window: s.window(),
	}
}

// homeNetwork is the network from which test users sign in.
var homeNetwork = netip.MustParsePrefix("192.0.2.1/32")

// playersOf lists a user's players, through a new session.
func playersOf(t *testing.T, db store, user core.UserID) []core.Player {
	t.Helper()
	s := &sessionTest{db: db, user: core.User{ID: user}, now: time.Now().UTC().Truncate(time.Second)}
	return must(db.Players(t.Context(), s.verified(s.open(t))))(t)
}

func (s *sessionTest) open(t *testing.T) core.Token {
	t.Helper()
	token := s.token(uuid.New())
	do(t, s.db.OpenSession(t.Context(), s.session(token, "x", 20)))
	return token
}

func (s *sessionTest) isValid(t *testing.T, token core.Token) bool {
	t.Helper()
	user, err := s.db.SessionUser(t.Context(), s.verified(token))
	if err != nil && fault.KindOf(err) != fault.Unauthenticated {
		t.Fatal(err)
	}
	if err == nil && user.ID != s.user.ID {
		t.Fatalf("the session is user %d's; want %d", user.ID, s.user.ID)
	}
	return err == nil
}

// wantWorking checks that tokens work.
func (s *sessionTest) wantWorking(t *testing.T, when string, tokens ...core.Token) {
	t.Helper()
	for i, token := range tokens {
		testenv.Equal(t, s.isValid(t, token), true, "%s, token %d of %d works", when, i+1, len(tokens))
	}
}

// wantEnded checks that tokens neither work nor can be refreshed.
func (s *sessionTest) wantEnded(t *testing.T, when string, tokens ...core.Token) {
	t.Helper()
	for i, token := range tokens {
		_, refreshed := s.refresh(t, token)
		testenv.Equal(t, refreshed || s.isValid(t, token), false, "%s, token %d of %d works", when, i+1, len(tokens))
	}
}

func (s *sessionTest) refresh(t *testing.T, token core.Token) (core.Token, bool) {
	t.Helper()
	successor, _, err := s.db.RefreshSession(t.Context(), s.verified(token), s.token(token.Session))
	if err != nil && fault.KindOf(err) != fault.Unauthenticated {
		t.Fatal(err)
	}
	return successor, err == nil
}

func TestRefreshGivesTheSameSuccessorWithinTheGrace(t *testing.T) {
	t.Parallel()
	s := newSessionTest(t)
	first := s.open(t)
	s.now = s.now.Add(time.Minute)
	second, _ := s.refresh(t, first)

	s.now = s.now.Add(20 * time.Second)
	third, _ := s.refresh(t, second)
	for _, pair := range [][2]core.Token{{first, second}, {second, third}} {
		again, _ := s.refresh(t, pair[0])
		testenv.Equal(t, again, pair[1], "the successor of a token that is refreshed again")
	}
	s.wantWorking(t, "within the grace", first, second, third)

	s.now = s.now.Add(15 * time.Second) // 35 s after the first was replaced, 15 s after the second
	s.wantWorking(t, "35 s later", second, third)
	s.wantEnded(t, "35 s later", first)
	s.wantEnded(t, "after a token was presented that was replaced long ago", second, third)
}

// A session that is refreshed for months keeps only valid tokens.
func TestRefreshForgetsTokens(t *testing.T) {
	t.Parallel()
	s := newSessionTest(t)
	token := s.open(t)
	for range 5 {
		s.now = s.now.Add(31 * time.Second)
		token, _ = s.refresh(t, token)
		s.db.hasCount(t, 2, "SELECT count(*) FROM session_tokens")
	}
}

func TestSessionsEnd(t *testing.T) {
	t.Parallel()
	s := newSessionTest(t)

	ended := s.open(t)
	do(t, s.db.EndSession(t.Context(), ended.Session))
	s.wantEnded(t, "a session that was ended", ended)

	idle := s.open(t)
	s.now = s.now.Add(14*24*time.Hour + time.Second)
	s.wantEnded(t, "14 days after the last refresh", idle)

	longest := s.open(t)
	for range 90 {
		var ok bool
		s.now = s.now.Add(24*time.Hour - time.Second)
		if longest, ok = s.refresh(t, longest); !ok {
			t.Fatal("a session that is refreshed daily ends before 90 days")
		}
	}
	s.now = s.now.Add(2 * time.Minute)
	s.wantEnded(t, "90 days after the log-in", longest)
	testenv.Equal(t, must(s.db.TrimSessions(t.Context(), s.window()))(t), 1, "sessions are trimmed, the one expired")

	wrongUser := s.open(t)
	wrongUser.User++
	s.wantEnded(t, "as another user", wrongUser)
}

func TestOldestSessionsEnd(t *testing.T) {
	t.Parallel()
	s := newSessionTest(t)

	var tokens []core.Token
	for range 22 {
		s.now = s.now.Add(time.Second)
		tokens = append(tokens, s.open(t))
	}
	for i, token := range tokens {
		testenv.Equal(t, s.isValid(t, token), i >= 2, "session %d of 22 works", i+1)
	}
}
