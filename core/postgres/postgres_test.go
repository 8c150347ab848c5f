package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/core/postgres"
	"github.com/veneer-skins/veneer/core/postgres/postgrestest"
	"github.com/veneer-skins/veneer/shared/casefold"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// wantKind fails the test unless err is a fault of a kind.
func wantKind(t *testing.T, err error, want fault.Kind) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error; want a %s fault", want)
	}
	if got := fault.KindOf(err); got != want {
		t.Fatalf("%v, a %s fault; want %s", err, got, want)
	}
}

// must fails the test on an error.
func must[T any](value T, err error) func(t *testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

func addUser(t *testing.T, db *postgres.DB, name string) core.User {
	t.Helper()
	email := name + "@example.com"
	return must(db.CreateUser(t.Context(), core.NewUser{Email: email, EmailKey: casefold.Key(email), Nickname: name, PasswordHash: "x"}))(t)
}

func addPlayer(t *testing.T, db *postgres.DB, owner core.UserID, name string) core.Player {
	t.Helper()
	return must(db.CreatePlayer(t.Context(), owner, player(name), core.Pricing{}))(t)
}

func player(name string) core.NewPlayer { return core.NewPlayer{Name: name, Key: casefold.Key(name)} }

// texture returns a texture to add, with pixels and hash derived from a word.
func texture(uploader core.UserID, kind skin.Type, word string, public bool) core.NewTexture {
	return core.NewTexture{
		Name: word, Type: kind, Hash: skin.HashOf([]byte("file " + word)), Pixels: skin.HashOf([]byte(word)), Bytes: 100,
		Uploader: uploader, Public: public,
	}
}

func putOK(context.Context) error { return nil }

func addTexture(t *testing.T, db *postgres.DB, texture core.NewTexture) core.Texture {
	t.Helper()
	return must(db.AddTexture(t.Context(), texture, core.Pricing{}, putOK))(t)
}

func TestMigrate(t *testing.T) {
	t.Parallel()

	address := postgrestest.Empty(t)
	if err := postgrestest.Connect(t, address).Check(t.Context()); err == nil || !strings.Contains(err.Error(), "core migrate") {
		t.Errorf("Check of an empty schema: %v; want advice to migrate", err)
	}

	// Concurrent migrations: one works, the others find nothing to do.
	var group sync.WaitGroup
	for range 4 {
		db := postgrestest.Connect(t, address)
		group.Go(func() {
			if _, after, err := db.Migrate(t.Context(), func(string) {}); err != nil || after < 1 {
				t.Errorf("Migrate: version %d, %v", after, err)
			}
		})
	}
	group.Wait()

	db := postgrestest.Connect(t, address)
	if before, after, err := db.Migrate(t.Context(), func(string) {}); err != nil || before != after {
		t.Errorf("Migrate again: from version %d to %d, %v; want nothing to do", before, after, err)
	}
	if err := db.Check(t.Context()); err != nil {
		t.Errorf("Check after Migrate: %v", err)
	}
	if _, err := postgrestest.Conn(t, address).Exec(t.Context(), "UPDATE schema_version SET version = 0"); err != nil {
		t.Fatal(err)
	}
	if err := db.Check(t.Context()); err == nil || !strings.Contains(err.Error(), "version 0") {
		t.Errorf("Check of an old schema: %v; want its version", err)
	}
}

func TestUnreachable(t *testing.T) {
	t.Parallel()

	// Port 1 of loopback refuses connections.
	db := postgrestest.Connect(t, "postgres://nobody@127.0.0.1:1/nothing")
	wantKind(t, db.Check(t.Context()), fault.Unavailable)
	_, err := db.Players(t.Context(), core.VerifiedToken{})
	wantKind(t, err, fault.Unavailable)
	_, err = db.NumberChanges(t.Context())
	wantKind(t, err, fault.Unavailable)
}

func TestCreateUser(t *testing.T) {
	t.Parallel()
	db := postgrestest.Open(t)

	first := must(db.CreateUser(t.Context(), core.NewUser{
		Email: "Ann@Example.com", EmailKey: "ann@example.com", Nickname: "Ann", PasswordHash: "x", Player: player("Ann"),
	}))(t)
	if got := must(db.UserByEmail(t.Context(), "ann@example.com"))(t); got.User != first || got.PasswordHash != "x" {
		t.Errorf("by e-mail: %+v; want %+v", got, first)
	}
	if players := playersOf(t, db, first.ID); len(players) != 1 || players[0].Name != "Ann" {
		t.Errorf("players: %v; want the one named at registration", players)
	}

	_, err := db.CreateUser(t.Context(), core.NewUser{Email: "ANN@example.com", EmailKey: "ann@example.com", Nickname: "x", PasswordHash: "x"})
	wantKind(t, err, fault.Duplicate)
	if fault.Of(err).Fields["email"] == nil {
		t.Errorf("%v does not name the field", err)
	}

	_, err = db.CreateUser(t.Context(), core.NewUser{Email: "b@example.com", EmailKey: "b@example.com", Nickname: "x", PasswordHash: "x", Player: player("aNN")})
	wantKind(t, err, fault.Duplicate)
	if fault.Of(err).Fields["player_name"] == nil {
		t.Errorf("%v does not name the field", err)
	}
	_, err = db.UserByEmail(t.Context(), "b@example.com")
	wantKind(t, err, fault.NotFound) // neither user nor player
}

func TestRehash(t *testing.T) {
	t.Parallel()
	db := postgrestest.Open(t)
	user := addUser(t, db, "ann")

	if err := db.Rehash(t.Context(), user.ID, "another", "late"); err != nil {
		t.Fatal(err)
	}
	if got := must(db.UserByEmail(t.Context(), "ann@example.com"))(t); got.PasswordHash != "x" {
		t.Errorf("the hash is %q although it changed meanwhile", got.PasswordHash)
	}
	if err := db.Rehash(t.Context(), user.ID, "x", "fresh"); err != nil {
		t.Fatal(err)
	}
	if got := must(db.UserByEmail(t.Context(), "ann@example.com"))(t); got.PasswordHash != "fresh" {
		t.Errorf("the hash is %q; want fresh", got.PasswordHash)
	}
}

func TestPlayers(t *testing.T) {
	t.Parallel()
	db := postgrestest.Open(t)
	ann, bob := addUser(t, db, "ann"), addUser(t, db, "bob")
	steve := addPlayer(t, db, ann.ID, "Steve")

	_, err := db.CreatePlayer(t.Context(), bob.ID, player("STEVE"), core.Pricing{})
	wantKind(t, err, fault.Duplicate)
	_, err = db.CreatePlayer(t.Context(), ann.ID, player("Other"), core.Pricing{Quotas: core.Quotas{Players: 1}})
	wantKind(t, err, fault.Refused)

	_, err = db.RenamePlayer(t.Context(), bob.ID, steve.ID, player("Mine"))
	wantKind(t, err, fault.Forbidden)
	_, err = db.RenamePlayer(t.Context(), bob.ID, steve.ID+100, player("Mine"))
	wantKind(t, err, fault.NotFound)
	wantKind(t, db.DeletePlayer(t.Context(), bob.ID, steve.ID), fault.Forbidden)
	wantKind(t, db.DeletePlayer(t.Context(), bob.ID, steve.ID+100), fault.NotFound)

	same := must(db.RenamePlayer(t.Context(), ann.ID, steve.ID, player("Steve")))(t)
	if same != steve {
		t.Errorf("renamed to its own name: %+v; want nothing changed from %+v", same, steve)
	}
	renamed := must(db.RenamePlayer(t.Context(), ann.ID, steve.ID, player("sTEVE")))(t)
	if renamed.Name != "sTEVE" || renamed.UUID != steve.UUID || !renamed.LastModified.After(steve.LastModified) {
		t.Errorf("renamed: %+v; want the new case, the same uuid and a later time than %+v", renamed, steve)
	}
	if err := db.DeletePlayer(t.Context(), ann.ID, steve.ID); err != nil {
		t.Fatal(err)
	}
	if players := playersOf(t, db, ann.ID); len(players) != 0 {
		t.Errorf("players after deletion: %v", players)
	}
	addPlayer(t, db, bob.ID, "Steve") // the name is free again
}

// Of concurrent requests for one name, one succeeds. Concurrent additions do not exceed the
// quota.
func TestCreatePlayerInParallel(t *testing.T) {
	t.Parallel()
	db := postgrestest.Open(t)
	ann := addUser(t, db, "ann")

	outcomes := make(chan error, 50)
	for range cap(outcomes) {
		go func() {
			_, err := db.CreatePlayer(t.Context(), ann.ID, player("Wanted"), core.Pricing{})
			outcomes <- err
		}()
	}
	got := countKinds(t, outcomes)
	if got[nil] != 1 || got[fault.Duplicate] != 49 {
		t.Errorf("50 adds of one name: %v; want 1 success and 49 duplicates", got)
	}

	for i := range cap(outcomes) {
		go func() {
			_, err := db.CreatePlayer(t.Context(), ann.ID, player(fmt.Sprintf("Player%d", i)), core.Pricing{Quotas: core.Quotas{Players: 10}})
			outcomes <- err
		}()
	}
	got = countKinds(t, outcomes)
	if got[nil] != 9 || got[fault.Refused] != 41 {
		t.Errorf("50 additions with a limit of 9 more: %v; want 9 successes and 41 faults", got)
	}
}

// countKinds counts errors by the kind of their fault, nil for success.
func countKinds(t *testing.T, outcomes chan error) map[any]int {
	t.Helper()
	counts := map[any]int{}
	for range cap(outcomes) {
		switch err := <-outcomes; {
		case err == nil:
			counts[nil]++
		case fault.KindOf(err) == fault.Internal:
			t.Fatal(err)
		default:
			counts[fault.KindOf(err)]++
		}
	}
	return counts
}

func TestSetPlayerTextures(t *testing.T) {
	t.Parallel()
	db := postgrestest.Open(t)
	ann, bob := addUser(t, db, "ann"), addUser(t, db, "bob")
	steve := addPlayer(t, db, ann.ID, "Steve")
	public := addTexture(t, db, texture(bob.ID, skin.Classic, "public", true)).ID
	alex := addTexture(t, db, texture(bob.ID, skin.Slim, "alex", true)).ID
	cape := addTexture(t, db, texture(bob.ID, skin.Cape, "cape", true)).ID
	bobs := addTexture(t, db, texture(bob.ID, skin.Classic, "bobs", false)).ID
	own := addTexture(t, db, texture(ann.ID, skin.Classic, "own", false)).ID
	none := core.TextureID(1 << 40)

	wantRejected := func(owner core.UserID, player core.PlayerID, want fault.Kind, selection core.TextureSelection) {
		t.Helper()
		_, err := db.SetPlayerTextures(t.Context(), owner, player, selection)
		wantKind(t, err, want)
	}
	wantRejected(bob.ID, steve.ID, fault.Forbidden, core.TextureSelection{Skin: &public})
	wantRejected(ann.ID, steve.ID+100, fault.NotFound, core.TextureSelection{Skin: &public})
	wantRejected(ann.ID, steve.ID, fault.NotFound, core.TextureSelection{Skin: &none})
	wantRejected(ann.ID, steve.ID, fault.Invalid, core.TextureSelection{Skin: &cape})
	wantRejected(ann.ID, steve.ID, fault.Invalid, core.TextureSelection{Cape: &public})
	wantRejected(ann.ID, steve.ID, fault.Forbidden, core.TextureSelection{Skin: &bobs})
	wantRejected(ann.ID, steve.ID, fault.NotFound, core.TextureSelection{Skin: &public, Cape: &none}) // all or nothing
	if got := playersOf(t, db, ann.ID)[0]; got != steve {
		t.Fatalf("after refusals: %+v; want %+v", got, steve)
	}

	changed := must(db.SetPlayerTextures(t.Context(), ann.ID, steve.ID, core.TextureSelection{Skin: &public, Cape: &cape}))(t)
	if changed.Skin != public || changed.Cape != cape || !changed.LastModified.After(steve.LastModified) {
		t.Errorf("with textures: %+v; want skin %d and cape %d", changed, public, cape)
	}
	if again := must(db.SetPlayerTextures(t.Context(), ann.ID, steve.ID, core.TextureSelection{Skin: &public}))(t); again != changed {
		t.Errorf("with the same textures: %+v; want nothing changed from %+v", again, changed)
	}
	for _, tid := range []core.TextureID{alex, own} {
		if got := must(db.SetPlayerTextures(t.Context(), ann.ID, steve.ID, core.TextureSelection{Skin: &tid}))(t); got.Skin != tid || got.Cape != cape {
			t.Errorf("with texture %d: %+v; want the cape untouched", tid, got)
		}
	}

	bare := must(db.ClearPlayerTextures(t.Context(), ann.ID, steve.ID, true, false))(t)
	if bare.Skin != 0 || bare.Cape != cape {
		t.Errorf("without skin: %+v; want the cape untouched", bare)
	}
	if again := must(db.ClearPlayerTextures(t.Context(), ann.ID, steve.ID, true, false))(t); again != bare {
		t.Errorf("cleared again: %+v; want nothing changed from %+v", again, bare)
	}
	_, err := db.ClearPlayerTextures(t.Context(), bob.ID, steve.ID, true, true)
	wantKind(t, err, fault.Forbidden)
}

// A player may wear a private texture that is in the owner's closet.
func TestSetPlayerTexturesFromCloset(t *testing.T) {
	t.Parallel()
	address := postgrestest.URL(t)
	db := postgrestest.Connect(t, address)
	ann, bob := addUser(t, db, "ann"), addUser(t, db, "bob")
	steve := addPlayer(t, db, ann.ID, "Steve")
	bobs := addTexture(t, db, texture(bob.ID, skin.Classic, "bobs", false)).ID

	if _, err := postgrestest.Conn(t, address).Exec(t.Context(),
		"INSERT INTO closet_items (uid, tid, cape, item_name) VALUES ($1, $2, false, 'gift')", ann.ID, bobs); err != nil {
		t.Fatal(err)
	}
	if got := must(db.SetPlayerTextures(t.Context(), ann.ID, steve.ID, core.TextureSelection{Skin: &bobs}))(t); got.Skin != bobs {
		t.Errorf("with a texture of the closet: %+v", got)
	}
}

func TestAddTexture(t *testing.T) {
	t.Parallel()
	address := postgrestest.URL(t)
	db, conn := postgrestest.Connect(t, address), postgrestest.Conn(t, address)
	ann, bob := addUser(t, db, "ann"), addUser(t, db, "bob")

	first := addTexture(t, db, texture(ann.ID, skin.Classic, "a", true))
	var items, likes int
	if err := conn.QueryRow(t.Context(),
		"SELECT count(*), min(likes) FROM closet_items JOIN textures USING (tid) WHERE uid = $1 AND tid = $2 AND item_name = 'a'", ann.ID, first.ID,
	).Scan(&items, &likes); err != nil {
		t.Fatal(err)
	}
	if items != 1 || likes != 1 || first.Likes != 1 {
		t.Errorf("%d closet items, %d likes stored, %d returned; want 1 of each", items, likes, first.Likes)
	}

	duplicate := func(texture core.NewTexture, of core.TextureID) {
		t.Helper()
		_, err := db.AddTexture(t.Context(), texture, core.Pricing{}, func(context.Context) error {
			t.Error("the file of a duplicate is stored")
			return nil
		})
		wantKind(t, err, fault.Duplicate)
		if got, _ := fault.Of(err).Data.(map[string]core.TextureID); got["tid"] != of {
			t.Errorf("data %v; want tid %d", fault.Of(err).Data, of)
		}
	}
	duplicate(texture(ann.ID, skin.Classic, "a", true), first.ID)
	duplicate(texture(ann.ID, skin.Classic, "a", false), first.ID)
	duplicate(texture(bob.ID, skin.Classic, "a", true), first.ID)
	addTexture(t, db, texture(ann.ID, skin.Slim, "a", true)) // another type is another texture

	hidden := addTexture(t, db, texture(ann.ID, skin.Classic, "b", false))
	duplicate(texture(ann.ID, skin.Classic, "b", true), hidden.ID)
	addTexture(t, db, texture(bob.ID, skin.Classic, "b", true)) // another user's private texture is no duplicate

	putErr := errors.New("disk full")
	if _, err := db.AddTexture(t.Context(), texture(ann.ID, skin.Classic, "c", true), core.Pricing{}, func(context.Context) error { return putErr }); !errors.Is(err, putErr) {
		t.Errorf("put fails: %v; want its error", err)
	}
	addTexture(t, db, texture(ann.ID, skin.Classic, "c", true)) // nothing was recorded before
}

// Of two uploads of the same pixels that have both stored their file, one succeeds, and the
// other is a duplicate.
func TestAddTextureInParallel(t *testing.T) {
	t.Parallel()
	db := postgrestest.Open(t)
	ann, bob := addUser(t, db, "ann"), addUser(t, db, "bob")

	var both sync.WaitGroup
	both.Add(2)
	outcomes := make(chan error, 2)
	for _, uploader := range []core.UserID{ann.ID, bob.ID} {
		go func() {
			_, err := db.AddTexture(t.Context(), texture(uploader, skin.Classic, "same", true), core.Pricing{}, func(context.Context) error {
				both.Done()
				both.Wait()
				return nil
			})
			outcomes <- err
		}()
	}
	if got := countKinds(t, outcomes); got[nil] != 1 || got[fault.Duplicate] != 1 {
		t.Errorf("two uploads at once: %v; want one success, one duplicate", got)
	}
}

// sessionTest is a store of sessions with a clock that the test sets.
type sessionTest struct {
	db   *postgres.DB
	user core.User
	now  time.Time
}

func newSessionTest(t *testing.T) *sessionTest {
	t.Helper()
	db := postgrestest.Open(t)
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
		Token: token, Credentials: core.VerifiedCredentials{Credentials: core.Credentials{PasswordHash: hash}}, Network: homeNetwork, PerUser: perUser, Window: s.window(),
	}
}

// homeNetwork is the network from which test users sign in.
var homeNetwork = netip.MustParsePrefix("192.0.2.1/32")

// playersOf lists a user's players, through a new session.
func playersOf(t *testing.T, db *postgres.DB, user core.UserID) []core.Player {
	t.Helper()
	s := &sessionTest{db: db, user: core.User{ID: user}, now: time.Now().UTC().Truncate(time.Second)}
	return must(db.Players(t.Context(), s.verified(s.open(t))))(t)
}

func (s *sessionTest) open(t *testing.T) core.Token {
	t.Helper()
	token := s.token(uuid.New())
	if err := s.db.OpenSession(t.Context(), s.session(token, "x", 20)); err != nil {
		t.Fatal(err)
	}
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
	if again, ok := s.refresh(t, first); !ok || again != second {
		t.Errorf("refreshing the first token again: %v, %v; want its successor %v", again, ok, second)
	}
	if again, ok := s.refresh(t, second); !ok || again != third {
		t.Errorf("refreshing the second token again: %v, %v; want its successor %v", again, ok, third)
	}
	for i, token := range []core.Token{first, second, third} {
		if !s.isValid(t, token) {
			t.Errorf("token %d does not work within the grace", i+1)
		}
	}

	s.now = s.now.Add(15 * time.Second) // 35 s after the first was replaced, 15 s after the second
	if s.isValid(t, first) || !s.isValid(t, second) || !s.isValid(t, third) {
		t.Errorf("35 s later work: first %v, second %v, third %v; want all but the first", s.isValid(t, first), s.isValid(t, second), s.isValid(t, third))
	}
	if _, ok := s.refresh(t, first); ok {
		t.Error("a token that was replaced long ago is refreshed")
	}
	if s.isValid(t, second) || s.isValid(t, third) {
		t.Error("presenting a token that was replaced long ago does not end the session")
	}
}

// A session that is refreshed for months keeps only valid tokens.
func TestRefreshForgetsTokens(t *testing.T) {
	t.Parallel()
	address := postgrestest.URL(t)
	db, conn := postgrestest.Connect(t, address), postgrestest.Conn(t, address)
	s := &sessionTest{db: db, user: addUser(t, db, "ann"), now: time.Now().UTC().Truncate(time.Second)}
	token := s.open(t)
	for i := range 5 {
		s.now = s.now.Add(31 * time.Second)
		token, _ = s.refresh(t, token)
		var tokens int
		if err := conn.QueryRow(t.Context(), "SELECT count(*) FROM session_tokens").Scan(&tokens); err != nil {
			t.Fatal(err)
		}
		if tokens != 2 {
			t.Errorf("after %d refreshes %d tokens are kept; want the current one and the one it replaced", i+1, tokens)
		}
	}
}

func TestRefreshesAtOnce(t *testing.T) {
	t.Parallel()
	testenv.SkipShort(t)
	s := newSessionTest(t)
	first := s.open(t)

	successors := make(chan core.Token, 8)
	for range cap(successors) {
		go func() {
			successor, _, err := s.db.RefreshSession(t.Context(), s.verified(first), s.token(first.Session))
			if err != nil {
				t.Error(err)
			}
			successors <- successor
		}()
	}
	one := <-successors
	for range cap(successors) - 1 {
		if other := <-successors; other != one {
			t.Errorf("successors %v and %v; want one", one, other)
		}
	}
	if one == first || !s.isValid(t, one) {
		t.Errorf("successor %v of %v works: %v", one, first, s.isValid(t, one))
	}
}

func TestSessionsEnd(t *testing.T) {
	t.Parallel()
	s := newSessionTest(t)

	ended := s.open(t)
	if err := s.db.EndSession(t.Context(), ended.Session); err != nil {
		t.Fatal(err)
	}
	if _, ok := s.refresh(t, ended); ok || s.isValid(t, ended) {
		t.Error("a session that was ended works")
	}

	idle := s.open(t)
	s.now = s.now.Add(14*24*time.Hour + time.Second)
	if _, ok := s.refresh(t, idle); ok || s.isValid(t, idle) {
		t.Error("a session works 14 days after its last refresh")
	}

	longest := s.open(t)
	for range 90 {
		var ok bool
		s.now = s.now.Add(24*time.Hour - time.Second)
		if longest, ok = s.refresh(t, longest); !ok {
			t.Fatal("a session that is refreshed daily ends before 90 days")
		}
	}
	s.now = s.now.Add(2 * time.Minute)
	if _, ok := s.refresh(t, longest); ok || s.isValid(t, longest) {
		t.Error("a session works 90 days after its log-in")
	}
	if n, err := s.db.TrimSessions(t.Context(), s.window()); err != nil || n != 1 {
		t.Errorf("trimmed %d sessions, %v; want the one expired", n, err)
	}

	wrongUser := s.open(t)
	wrongUser.User++
	if _, ok := s.refresh(t, wrongUser); ok || s.isValid(t, wrongUser) {
		t.Error("a session works for another user than its own")
	}
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
		if got, want := s.isValid(t, token), i >= 2; got != want {
			t.Errorf("session %d of 22 works: %v; want %v", i+1, got, want)
		}
	}
}
