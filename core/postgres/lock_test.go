package postgres_test

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/core/postgres"
	"github.com/veneer-skins/veneer/core/postgres/postgrestest"
	"github.com/veneer-skins/veneer/shared/edgeproto"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/skin"
)

// lockTx is a concurrent transaction that holds locks until it commits.
type lockTx struct {
	pgx.Tx
	address string
}

func beginLockTx(t *testing.T, address string) lockTx {
	t.Helper()
	return lockTx{must(postgrestest.Conn(t, address).Begin(t.Context()))(t), address}
}

func (tx lockTx) exec(t *testing.T, sql string, args ...any) {
	t.Helper()
	if _, err := tx.Exec(t.Context(), sql, args...); err != nil {
		t.Fatal(err)
	}
}

// commitOnceBlocked commits once n others wait for its locks.
func (tx lockTx) commitOnceBlocked(t *testing.T, n int) {
	t.Helper()
	tx.waitBlocked(t, n)
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// waitBlocked waits until n others wait for locks.
func (tx lockTx) waitBlocked(t *testing.T, n int) {
	t.Helper()
	tx.waitUntil(t, strconv.Itoa(n), func(blocked int) bool { return blocked >= n })
}

// waitNoneBlocked waits until none waits for a lock any more.
func (tx lockTx) waitNoneBlocked(t *testing.T) {
	t.Helper()
	tx.waitUntil(t, "none", func(blocked int) bool { return blocked == 0 })
}

func (tx lockTx) waitUntil(t *testing.T, wanted string, enough func(blocked int) bool) {
	t.Helper()
	watch := postgrestest.Conn(t, tx.address)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(20 * time.Second)
	for {
		var blocked int
		// Transactions that wait for a row queue behind each other: all of them wait for a
		// lock.
		if err := watch.QueryRow(t.Context(),
			"SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND cardinality(pg_blocking_pids(pid)) > 0 AND application_name = current_schema()",
		).Scan(&blocked); err != nil {
			t.Fatal(err)
		}
		if enough(blocked) {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("%d transactions wait for a lock; want %s", blocked, wanted)
		}
	}
}

// openNamed returns a database that has the schema's name as application_name of its
// connections, so that a test can count those that wait.
func openNamed(t *testing.T) (*postgres.DB, string) {
	t.Helper()
	address := postgrestest.URL(t)
	_, schema, _ := strings.Cut(address, "search_path=")
	return postgrestest.Connect(t, address+"&application_name="+schema), address
}

// A rename that waited for another one names the name that the other set.
func TestRenameAfterWaitingNamesTheLatestName(t *testing.T) {
	t.Parallel()
	db, address := openNamed(t)
	ann := addUser(t, db, "ann")
	steve := addPlayer(t, db, ann.ID, "Steve")
	other := beginLockTx(t, address)
	other.exec(t, "UPDATE players SET name = 'Between', name_key = 'between' WHERE pid = $1", steve.ID)

	renamed := make(chan error, 1)
	go func() {
		_, err := db.RenamePlayer(t.Context(), ann.ID, steve.ID, player("Last"))
		renamed <- err
	}()
	other.commitOnceBlocked(t, 1)
	if err := <-renamed; err != nil {
		t.Fatal(err)
	}
	head := must(db.NumberChanges(t.Context()))(t)
	keys := keysAfter(t, db, head.Revision-1)[0]
	if !slices.Contains(keys, edgeproto.NameKey("Between")) || !slices.Contains(keys, edgeproto.NameKey("Last")) {
		t.Errorf("the rename names %v; want the name it replaced and the one it gave", keys)
	}
}

// A private texture that is removed from the closet while a request to apply it waits is not
// applied.
func TestSetTexturesAfterWaitingChecksAgain(t *testing.T) {
	t.Parallel()
	db, address := openNamed(t)
	ann, bob := addUser(t, db, "ann"), addUser(t, db, "bob")
	steve := addPlayer(t, db, ann.ID, "Steve")
	gift := addTexture(t, db, texture(bob.ID, skin.Classic, "gift", false)).ID
	before := beginLockTx(t, address)
	before.exec(t, "INSERT INTO closet_items (uid, tid, cape, item_name) VALUES ($1, $2, false, 'gift')", ann.ID, gift)
	if err := before.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}

	other := beginLockTx(t, address)
	other.exec(t, "UPDATE textures SET likes = likes - 1 WHERE tid = $1", gift)
	other.exec(t, "DELETE FROM closet_items WHERE uid = $1", ann.ID)
	applied := make(chan error, 1)
	go func() {
		_, err := db.SetPlayerTextures(t.Context(), ann.ID, steve.ID, core.TextureSelection{Skin: &gift})
		applied <- err
	}()
	other.commitOnceBlocked(t, 1)
	wantKind(t, <-applied, fault.Forbidden)
}

// A request that waits to change one slot keeps a concurrent change of the other.
func TestSetTexturesAfterWaitingKeepsOtherSlot(t *testing.T) {
	t.Parallel()
	db, address := openNamed(t)
	ann := addUser(t, db, "ann")
	steve := addPlayer(t, db, ann.ID, "Steve")
	tid := addTexture(t, db, texture(ann.ID, skin.Classic, "skin", true)).ID
	cape := addTexture(t, db, texture(ann.ID, skin.Cape, "cape", true)).ID
	other := beginLockTx(t, address)
	other.exec(t, "UPDATE players SET tid_cape = $2 WHERE pid = $1", steve.ID, cape)

	applied := make(chan error, 1)
	go func() {
		_, err := db.SetPlayerTextures(t.Context(), ann.ID, steve.ID, core.TextureSelection{Skin: &tid})
		applied <- err
	}()
	other.commitOnceBlocked(t, 1)
	if err := <-applied; err != nil {
		t.Fatal(err)
	}
	if got := playersOf(t, db, ann.ID)[0]; got.Skin != tid || got.Cape != cape {
		t.Errorf("the player wears %d and %d; want %d and %d", got.Skin, got.Cape, tid, cape)
	}
}

// Applying textures locks them until the commit: a request that makes one private waits, and
// then finds the player.
func TestSetTexturesLocksTextures(t *testing.T) {
	t.Parallel()
	db, address := openNamed(t)
	ann, bob := addUser(t, db, "ann"), addUser(t, db, "bob")
	steve := addPlayer(t, db, ann.ID, "Steve")
	tid := addTexture(t, db, texture(bob.ID, skin.Classic, "x", true)).ID

	other := beginLockTx(t, address)
	other.exec(t, "UPDATE players SET last_modified = now() WHERE pid = $1", steve.ID) // which blocks the request
	applied := make(chan error, 1)
	go func() {
		_, err := db.SetPlayerTextures(t.Context(), ann.ID, steve.ID, core.TextureSelection{Skin: &tid})
		applied <- err
	}()
	other.waitBlocked(t, 1)
	var free int
	if err := postgrestest.Conn(t, address).QueryRow(t.Context(),
		"SELECT count(*) FROM (SELECT FROM textures WHERE tid = $1 FOR NO KEY UPDATE SKIP LOCKED) free", tid,
	).Scan(&free); err != nil {
		t.Fatal(err)
	}
	if free != 0 {
		t.Error("the texture can be changed while a request is about to apply it")
	}
	other.commitOnceBlocked(t, 1)
	if err := <-applied; err != nil {
		t.Error(err)
	}
}

// Concurrent refreshes of a session are serialised, and so return the same successor.
func TestRefreshesWaitForEachOther(t *testing.T) {
	t.Parallel()
	db, address := openNamed(t)
	s := &sessionTest{db: db, user: addUser(t, db, "ann"), now: time.Now().UTC().Truncate(time.Second)}
	first := s.open(t)
	other := beginLockTx(t, address)
	other.exec(t, "SELECT FROM sessions WHERE sid = $1 FOR UPDATE", first.Session)

	successors := make(chan core.Token, 4)
	for range cap(successors) {
		go func() {
			successor, _, err := db.RefreshSession(t.Context(), s.verified(first), s.token(first.Session))
			if err != nil {
				t.Error(err)
			}
			successors <- successor
		}()
	}
	other.commitOnceBlocked(t, cap(successors))
	one := <-successors
	for range cap(successors) - 1 {
		if another := <-successors; another != one {
			t.Errorf("successors %v and %v; want one", one, another)
		}
	}
}

// An upload and the sweep of the same file exclude each other.
func TestUploadWaitsForTheSweep(t *testing.T) {
	t.Parallel()
	db, address := openNamed(t)
	upload := texture(addUser(t, db, "ann").ID, skin.Classic, "swept", true)
	sweep := beginLockTx(t, address)
	sweep.exec(t, "SELECT pg_advisory_xact_lock($1)", int64(binary.BigEndian.Uint64(upload.Hash[:])))

	added := make(chan error, 1)
	go func() {
		_, err := db.AddTexture(t.Context(), upload, core.Pricing{}, putOK)
		added <- err
	}()
	sweep.commitOnceBlocked(t, 1)
	if err := <-added; err != nil {
		t.Error(err)
	}
}

// Look-ups of edges and the feed are not blocked by requests that wait for locks.
func TestEdgesDoNotWaitForRequests(t *testing.T) {
	t.Parallel()
	db, address := openNamed(t)
	ann := addUser(t, db, "ann")
	other := beginLockTx(t, address)
	other.exec(t, "SELECT FROM users WHERE uid = $1 FOR UPDATE", ann.ID)

	outcomes := make(chan error, 20) // more than there are connections
	for i := range cap(outcomes) {
		go func() {
			_, err := db.CreatePlayer(t.Context(), ann.ID, player("waiting"+string(rune('a'+i))), core.Pricing{})
			outcomes <- err
		}()
	}
	other.waitBlocked(t, 8) // which occupies the whole pool for writes
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if _, err := db.Mappings(ctx, []edgeproto.Key{edgeproto.UIDKey(int64(ann.ID))}); err != nil {
		t.Errorf("a look-up fails while requests wait: %v", err)
	}
	if _, err := db.NumberChanges(ctx); err != nil {
		t.Errorf("numbering fails while requests wait: %v", err)
	}
	other.commitOnceBlocked(t, 8)
	if got := countKinds(t, outcomes); got[nil] != cap(outcomes) {
		t.Errorf("outcomes %v; want %d successes", got, cap(outcomes))
	}
}

// A transaction that loses a conflict is tried four times in all.
func TestConflictsAreRetried(t *testing.T) {
	t.Parallel()
	address := postgrestest.URL(t)
	db, conn := postgrestest.Connect(t, address), postgrestest.Conn(t, address)
	ann := addUser(t, db, "ann")
	steve := addPlayer(t, db, ann.ID, "Steve")
	exec := func(sql string, args ...any) {
		t.Helper()
		if _, err := conn.Exec(t.Context(), sql, args...); err != nil {
			t.Fatal(err)
		}
	}
	exec("CREATE SEQUENCE tries MINVALUE -100") // which a rollback does not reset
	fail := func(code string) {
		exec(`
			CREATE OR REPLACE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$
				BEGIN
					IF nextval('tries') <= 0 THEN
						RAISE EXCEPTION 'conflict' USING ERRCODE = '` + code + `';
					END IF;
					RETURN new;
				END
			$$`)
	}
	fail("40P01")
	for _, table := range []string{"users", "players"} {
		exec("CREATE TRIGGER fail BEFORE INSERT OR UPDATE ON " + table + " FOR EACH ROW EXECUTE FUNCTION fail()")
	}
	f := func(work func() error) {
		t.Helper()
		exec("SELECT setval('tries', -4)")
		wantKind(t, work(), fault.Unavailable)
		exec("SELECT setval('tries', -3)")
		if err := work(); err != nil {
			t.Errorf("after three losses: %v", err)
		}
	}

	for _, code := range []string{"40P01", "40001"} { // a deadlock, and one that cannot be serialised
		fail(code)
		f(func() error {
			_, err := db.SetNickname(t.Context(), ann.ID, "Ann")
			return err
		})
		f(func() error {
			_, err := db.RenamePlayer(t.Context(), ann.ID, steve.ID, player("Steve"+code))
			return err
		})
		f(func() error {
			_, err := db.CreatePlayer(t.Context(), ann.ID, player("Alex"+code), core.Pricing{})
			return err
		})
	}

	// Other errors are not retried.
	fail("22000")
	exec("SELECT setval('tries', -1)")
	if _, err := db.SetNickname(t.Context(), ann.ID, "Ann"); err == nil {
		t.Error("an invalid statement is retried")
	}
}

func TestBannedRefreshChangesNothing(t *testing.T) {
	t.Parallel()
	db, address := openNamed(t)
	s := &sessionTest{db: db, user: addUser(t, db, "ann"), now: time.Now().UTC().Truncate(time.Second)}
	token := s.open(t)
	conn := postgrestest.Conn(t, address)
	ban := func(permission core.Permission) {
		t.Helper()
		if _, err := conn.Exec(t.Context(), "UPDATE users SET permission = $1", permission); err != nil {
			t.Fatal(err)
		}
	}

	ban(core.Banned)
	if _, permission, err := db.RefreshSession(t.Context(), s.verified(token), s.token(token.Session)); err != nil || permission != core.Banned {
		t.Errorf("refresh of the banned: permission %d, %v", permission, err)
	}
	ban(core.Normal)
	s.now = s.now.Add(time.Hour)
	if _, ok := s.refresh(t, token); !ok {
		t.Error("the token does not work after the ban")
	}
}

// A log-in with a password that is changed meanwhile fails.
func TestLoginWithAPasswordThatChangedMeanwhile(t *testing.T) {
	t.Parallel()
	db, address := openNamed(t)
	s := &sessionTest{db: db, user: addUser(t, db, "ann"), now: time.Now()}
	token := core.Token{User: s.user.ID, Session: s.token([16]byte{1}).ID, ID: s.token([16]byte{1}).ID, IssuedAt: s.now}
	other := beginLockTx(t, address)
	other.exec(t, "UPDATE users SET password_hash = 'another'")

	opened := make(chan error, 1)
	go func() { opened <- db.OpenSession(t.Context(), s.session(token, "x", 20)) }()
	other.commitOnceBlocked(t, 1)
	wantKind(t, <-opened, fault.Unauthenticated)
	if s.isValid(t, token) {
		t.Error("the session works")
	}
}

// A log-in that fails ends no session.
func TestFailedLoginKeepsSessions(t *testing.T) {
	t.Parallel()
	s := newSessionTest(t)
	existing := s.open(t)
	wantKind(t, s.db.OpenSession(t.Context(), s.session(s.token([16]byte{7}), "another hash", 1)), fault.Unauthenticated)
	if !s.isValid(t, existing) {
		t.Error("the session that was there is ended")
	}
}

// The newest session is kept, even if the clock of another core is ahead.
func TestNewSessionIsNotEvicted(t *testing.T) {
	t.Parallel()
	s := newSessionTest(t)
	ahead := s.session(s.token([16]byte{9}), "x", 1)
	ahead.Window.Now = s.now.Add(time.Minute)
	if err := s.db.OpenSession(t.Context(), ahead); err != nil {
		t.Fatal(err)
	}
	behind := s.token([16]byte{8})
	if err := s.db.OpenSession(t.Context(), s.session(behind, "x", 1)); err != nil {
		t.Fatal(err)
	}
	if !s.isValid(t, behind) || s.isValid(t, ahead.Token) {
		t.Errorf("the new session works: %v, the old one: %v; want only the new one", s.isValid(t, behind), s.isValid(t, ahead.Token))
	}
}

// A core of the previous release writes an address or a name without a lock, between this one's
// check and its write.
func TestUnlockedWritesOfFormerRelease(t *testing.T) {
	t.Parallel()
	const (
		insertUser   = "INSERT INTO users (email, email_key, nickname, password_hash) VALUES ('taken@example.com', 'taken@example.com', 'x', 'x')"
		insertPlayer = "INSERT INTO players (uid, name, name_key) SELECT min(uid), 'Taken', 'taken' FROM users"
	)
	fresh := func(email, name string) core.NewUser {
		return core.NewUser{Email: email, EmailKey: email, Nickname: "x", PasswordHash: "x", Player: player(name)}
	}
	for name, c := range map[string]struct {
		writes, field string
		work          func(l *linkTest, ann core.User) func() error
	}{
		"registration, address": {insertUser, "email", func(l *linkTest, _ core.User) func() error {
			return func() error {
				_, err := l.CreateUser(t.Context(), fresh("taken@example.com", "Other"))
				return err
			}
		}},
		"registration, player": {insertPlayer, "player_name", func(l *linkTest, _ core.User) func() error {
			return func() error {
				_, err := l.CreateUser(t.Context(), fresh("other@example.com", "Taken"))
				return err
			}
		}},
		"confirmed registration": {insertPlayer, "player_name", func(l *linkTest, _ core.User) func() error {
			token := l.mail(t, core.ForRegistration, "taken")
			return func() error { return l.confirm(t, token, applicant("taken")) }
		}},
		"new player": {insertPlayer, "name", func(l *linkTest, ann core.User) func() error {
			return func() error {
				_, err := l.CreatePlayer(t.Context(), ann.ID, player("Taken"), core.Pricing{})
				return err
			}
		}},
		"renamed player": {insertPlayer, "name", func(l *linkTest, ann core.User) func() error {
			steve := addPlayer(t, l.DB, ann.ID, "Steve")
			return func() error {
				_, err := l.RenamePlayer(t.Context(), ann.ID, steve.ID, player("Taken"))
				return err
			}
		}},
		"changed address": {insertUser, "email", func(l *linkTest, _ core.User) func() error {
			user := must(l.UserByEmail(t.Context(), "ann@example.com"))(t)
			return func() error {
				_, err := l.SetEmail(t.Context(), core.VerifiedCredentials{Credentials: user}, core.EmailChange{Email: "taken@example.com", EmailKey: "taken@example.com"})
				return err
			}
		}},
		"confirmed address": {strings.ReplaceAll(insertUser, "taken@", "new@"), "email", func(l *linkTest, _ core.User) func() error {
			token := l.mail(t, core.ForAddress, "ann")
			return func() error { return l.VerifyEmail(t.Context(), token, l.now) }
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, address := openNamed(t)
			l := &linkTest{DB: db, conn: postgrestest.Conn(t, address), now: time.Now()}
			work := c.work(l, addUser(t, db, "ann"))
			other := beginLockTx(t, address)
			other.exec(t, c.writes)
			done := make(chan error, 1)
			go func() { done <- work() }()
			other.commitOnceBlocked(t, 1)
			err := <-done
			wantKind(t, err, fault.Duplicate)
			if faultErr, ok := errors.AsType[*fault.Error](err); !ok || faultErr.Fields[c.field] == nil {
				t.Errorf("%v does not name the field %s", err, c.field)
			}
		})
	}
}
