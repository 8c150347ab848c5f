package postgres_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/core/postgres/postgrestest"
	"github.com/veneer-skins/veneer/shared/edgeproto"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// lockTx is a concurrent transaction that holds locks until it commits.
type lockTx struct {
	pgx.Tx
	store store
}

// begin begins a transaction in a connection of its own.
func (s store) begin(t *testing.T) lockTx {
	t.Helper()
	return lockTx{must(postgrestest.Conn(t, s.address).Begin(t.Context()))(t), s}
}

// lock begins a transaction with a statement.
func (s store) lock(t *testing.T, sql string, args ...any) lockTx {
	t.Helper()
	tx := s.begin(t)
	tx.exec(t, sql, args...)
	return tx
}

func (tx lockTx) exec(t *testing.T, sql string, args ...any) {
	t.Helper()
	must(tx.Exec(t.Context(), sql, args...))(t)
}

// commitOnceBlocked commits once n others wait for its locks.
func (tx lockTx) commitOnceBlocked(t *testing.T, n int) {
	t.Helper()
	tx.waitBlocked(t, n)
	do(t, tx.Commit(t.Context()))
}

// delays returns the error of a call that waits for the locks of the transaction. Once it waits, what shall happen
// meanwhile is done, and the transaction is committed.
func (tx lockTx) delays(t *testing.T, call func() error, meanwhile ...func()) error {
	t.Helper()
	outcome := start(call)
	tx.waitBlocked(t, 1)
	for _, act := range meanwhile {
		act()
	}
	tx.commitOnceBlocked(t, 1)
	return <-outcome
}

// waitBlocked waits until n others wait for locks.
func (tx lockTx) waitBlocked(t *testing.T, n int) {
	t.Helper()
	testenv.Eventually(t, fmt.Sprintf("%d transactions wait for a lock", n), func() bool { return tx.blocked(t) >= n })
}

// blocked returns how many wait for locks. Transactions that wait for a row queue behind each other: all of them wait
// for a lock.
func (tx lockTx) blocked(t *testing.T) int {
	t.Helper()
	return tx.store.count(t, `SELECT count(*) FROM pg_stat_activity
		WHERE wait_event_type = 'Lock' AND cardinality(pg_blocking_pids(pid)) > 0 AND application_name = current_database()`)
}

// A rename that waited for another one names the name that the other set.
func TestRenameAfterWaitingNamesTheLatestName(t *testing.T) {
	t.Parallel()
	db, ann := openForOne(t)
	steve := addPlayer(t, db, ann.ID, "Steve")
	other := db.lock(t, "UPDATE players SET name = 'Between', name_key = 'between' WHERE pid = $1", steve.ID)

	rename := func() error { return errOf(db.RenamePlayer(t.Context(), as(ann.ID), steve.ID, player("Last"))) }
	do(t, other.delays(t, rename))
	head := must(db.NumberChanges(t.Context()))(t)
	keys := keysAfter(t, db, head.Revision-1)[0]
	testenv.Check(t, slices.Contains(keys, edgeproto.NameKey("Between")) &&
		slices.Contains(keys, edgeproto.NameKey("Last")), "the rename names %v; want the name it replaced, and its own", keys)
}

// A private texture that is removed from the closet while a request to apply it waits is not
// applied.
func TestSetTexturesAfterWaitingChecksAgain(t *testing.T) {
	t.Parallel()
	db, ann, bob := openForTwo(t)
	steve := addPlayer(t, db, ann.ID, "Steve")
	gift := addTexture(t, db, texture(bob.ID, skin.Classic, "gift", false)).ID
	before := db.begin(t)
	before.exec(t, "INSERT INTO closet_items (uid, tid, cape, item_name) VALUES ($1, $2, false, 'gift')", ann.ID, gift)
	do(t, before.Commit(t.Context()))

	other := db.lock(t, "UPDATE textures SET likes = likes - 1 WHERE tid = $1", gift)
	other.exec(t, "DELETE FROM closet_items WHERE uid = $1", ann.ID)
	wantKind(t, other.delays(t, func() error { return db.wear(t.Context(), ann.ID, steve.ID, gift) }), fault.Forbidden)
}

// A request that waits to change one slot keeps a concurrent change of the other.
func TestSetTexturesAfterWaitingKeepsOtherSlot(t *testing.T) {
	t.Parallel()
	db, ann := openForOne(t)
	steve := addPlayer(t, db, ann.ID, "Steve")
	tid := addTexture(t, db, texture(ann.ID, skin.Classic, "skin", true)).ID
	cape := addTexture(t, db, texture(ann.ID, skin.Cape, "cape", true)).ID
	other := db.lock(t, "UPDATE players SET tid_cape = $2 WHERE pid = $1", steve.ID, cape)

	do(t, other.delays(t, func() error { return db.wear(t.Context(), ann.ID, steve.ID, tid) }))
	testenv.Equal(t, outfitOf(playersOf(t, db, ann.ID)[0]), outfit{tid, cape}, "what the player wears")
}

// Applying textures locks them until the commit: a request that makes one private waits, and
// then finds the player.
func TestSetTexturesLocksTextures(t *testing.T) {
	t.Parallel()
	db, ann, bob := openForTwo(t)
	steve := addPlayer(t, db, ann.ID, "Steve")
	tid := addTexture(t, db, texture(bob.ID, skin.Classic, "x", true)).ID

	other := db.lock(t, "UPDATE players SET last_modified = now() WHERE pid = $1", steve.ID) // which blocks the request
	do(t, other.delays(t, func() error { return db.wear(t.Context(), ann.ID, steve.ID, tid) }, func() {
		db.hasCount(t, 0, "SELECT count(*) FROM (SELECT FROM textures WHERE tid = $1 FOR NO KEY UPDATE SKIP LOCKED) x", tid)
	}))
}

// Concurrent refreshes of a session are serialised, and so return the same successor.
func TestRefreshesWaitForEachOther(t *testing.T) {
	t.Parallel()
	s := newSessionTest(t)
	first := s.open(t)
	other := s.db.lock(t, "SELECT FROM sessions WHERE sid = $1 FOR UPDATE", first.Session)

	successors := make(chan core.Token, 4)
	for range cap(successors) {
		go func() {
			successor, _, err := s.db.RefreshSession(t.Context(), s.verified(first), s.token(first.Session))
			testenv.Is(t, err, nil, "a refresh")
			successors <- successor
		}()
	}
	other.commitOnceBlocked(t, cap(successors))
	one := <-successors
	for range cap(successors) - 1 {
		testenv.Equal(t, <-successors, one, "another successor")
	}
	testenv.Equal(t, one == first, false, "the successor is the token itself")
	s.wantWorking(t, "after refreshes at once", one)
}

// An upload and the sweep of the same file exclude each other.
func TestUploadWaitsForTheSweep(t *testing.T) {
	t.Parallel()
	db := open(t)
	upload := texture(addUser(t, db, "ann").ID, skin.Classic, "swept", true)
	sweep := db.lock(t, "SELECT pg_advisory_xact_lock($1)", int64(binary.BigEndian.Uint64(upload.Hash[:])))

	do(t, sweep.delays(t, func() error { return errOf(db.AddTexture(t.Context(), upload, core.Pricing{}, putOK)) }))
}

// Look-ups of edges and the feed are not blocked by requests that wait for locks.
func TestEdgesDoNotWaitForRequests(t *testing.T) {
	t.Parallel()
	db, ann := openForOne(t)
	other := db.lock(t, "SELECT FROM users WHERE uid = $1 FOR UPDATE", ann.ID)

	var created []<-chan error
	for i := range 20 { // more than there are connections
		created = append(created, start(func() error {
			return errOf(db.CreatePlayer(t.Context(), ann.ID, player("waiting"+string(rune('a'+i))), core.Pricing{}))
		}))
	}
	other.waitBlocked(t, 8) // which occupies the whole pool for writes
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	keys := []edgeproto.Key{edgeproto.UIDKey(int64(ann.ID))}
	testenv.Is(t, errOf(db.Mappings(ctx, keys)), nil, "a look-up while requests wait")
	testenv.Is(t, errOf(db.NumberChanges(ctx)), nil, "numbering while requests wait")
	other.commitOnceBlocked(t, 8)
	for _, outcome := range created {
		do(t, <-outcome)
	}
}

// failWrites makes the next writes to tables fail with an error, as many as the sequence tries is below 1.
func (s store) failWrites(t *testing.T, code string, tables ...string) {
	t.Helper()
	s.exec(t, `
		CREATE SEQUENCE IF NOT EXISTS tries MINVALUE -100; -- which no rollback sets back
		CREATE OR REPLACE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
			BEGIN
				IF nextval('tries') <= 0 THEN
					RAISE EXCEPTION 'conflict' USING ERRCODE = '`+code+`';
				END IF;
				RETURN new;
			END
		$$`)
	for _, table := range tables {
		s.exec(t, "CREATE OR REPLACE TRIGGER fail BEFORE INSERT OR UPDATE ON "+table+" FOR EACH ROW EXECUTE FUNCTION fail()")
	}
}

// A transaction that loses a conflict is tried four times in all.
func TestConflictsAreRetried(t *testing.T) {
	t.Parallel()
	db, ann := openForOne(t)
	steve := addPlayer(t, db, ann.ID, "Steve")
	f := func(work func() error) {
		t.Helper()
		db.exec(t, "SELECT setval('tries', -4)")
		wantKind(t, work(), fault.Unavailable)
		db.exec(t, "SELECT setval('tries', -3)")
		testenv.Is(t, work(), nil, "after three losses")
	}

	for _, code := range []string{"40P01", "40001"} { // a deadlock, and one that cannot be serialised
		db.failWrites(t, code, "users", "players")
		f(func() error { return errOf(db.SetNickname(t.Context(), as(ann.ID), ann.ID, "Ann")) })
		f(func() error { return errOf(db.RenamePlayer(t.Context(), as(ann.ID), steve.ID, player("Steve"+code))) })
		f(func() error { return errOf(db.CreatePlayer(t.Context(), ann.ID, player("Alex"+code), core.Pricing{})) })
	}

	// Other errors are not retried.
	db.failWrites(t, "22000", "users")
	db.exec(t, "SELECT setval('tries', -1)")
	err := errOf(db.SetNickname(t.Context(), as(ann.ID), ann.ID, "Ann"))
	testenv.Equal(t, err == nil, false, "an invalid statement is retried")
}

func TestBannedRefreshChangesNothing(t *testing.T) {
	t.Parallel()
	s := newSessionTest(t)
	token := s.open(t)
	ban := func(permission core.Permission) {
		t.Helper()
		s.db.exec(t, "UPDATE users SET permission = $1", permission)
	}

	ban(core.Banned)
	_, user, err := s.db.RefreshSession(t.Context(), s.verified(token), s.token(token.Session))
	testenv.Is(t, err, nil, "a refresh of the banned")
	testenv.Equal(t, user.Permission, core.Banned, "the permission")
	ban(core.Normal)
	s.now = s.now.Add(time.Hour)
	_, ok := s.refresh(t, token)
	testenv.Equal(t, ok, true, "the token works after the ban")
}

// A log-in with a password that is changed meanwhile fails.
func TestLoginWithAPasswordThatChangedMeanwhile(t *testing.T) {
	t.Parallel()
	s := newSessionTest(t)
	token := s.token([16]byte{1})
	other := s.db.lock(t, "UPDATE users SET password_hash = 'another'")
	openSession := func() error { return s.db.OpenSession(t.Context(), s.session(token, "x", 20)) }
	wantKind(t, other.delays(t, openSession), fault.Unauthenticated)
	s.wantEnded(t, "after the change", token)
}

// A log-in that fails ends no session.
func TestFailedLoginKeepsSessions(t *testing.T) {
	t.Parallel()
	s := newSessionTest(t)
	existing := s.open(t)
	wantKind(t, s.db.OpenSession(t.Context(), s.session(s.token([16]byte{7}), "another hash", 1)), fault.Unauthenticated)
	s.wantWorking(t, "after the log-in", existing)
}

// The newest session is kept, even if the clock of another core is ahead.
func TestNewSessionIsNotEvicted(t *testing.T) {
	t.Parallel()
	s := newSessionTest(t)
	ahead := s.session(s.token([16]byte{9}), "x", 1)
	ahead.Window.Now = s.now.Add(time.Minute)
	do(t, s.db.OpenSession(t.Context(), ahead))
	behind := s.token([16]byte{8})
	do(t, s.db.OpenSession(t.Context(), s.session(behind, "x", 1)))
	s.wantWorking(t, "the new session", behind)
	s.wantEnded(t, "the old session", ahead.Token)
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
				return errOf(l.CreateUser(t.Context(), core.Registrant, fresh("taken@example.com", "Other")))
			}
		}},
		"registration, player": {insertPlayer, "player_name", func(l *linkTest, _ core.User) func() error {
			return func() error {
				return errOf(l.CreateUser(t.Context(), core.Registrant, fresh("other@example.com", "Taken")))
			}
		}},
		"confirmed registration": {insertPlayer, "player_name", func(l *linkTest, _ core.User) func() error {
			token := l.mail(t, core.ForRegistration, "taken")
			return func() error { return l.confirm(t, token, applicant("taken")) }
		}},
		"new player": {insertPlayer, "name", func(l *linkTest, ann core.User) func() error {
			return func() error { return errOf(l.CreatePlayer(t.Context(), ann.ID, player("Taken"), core.Pricing{})) }
		}},
		"renamed player": {insertPlayer, "name", func(l *linkTest, ann core.User) func() error {
			steve := addPlayer(t, l.store, ann.ID, "Steve")
			return func() error { return errOf(l.RenamePlayer(t.Context(), as(ann.ID), steve.ID, player("Taken"))) }
		}},
		"changed address": {insertUser, "email", func(l *linkTest, _ core.User) func() error {
			user := must(l.UserByEmail(t.Context(), "ann@example.com"))(t)
			return func() error {
				return errOf(l.SetEmail(t.Context(), as(user.ID), core.EmailChange{User: user.ID, PasswordHash: user.PasswordHash, Email: "taken@example.com", EmailKey: "taken@example.com"}))
			}
		}},
		"confirmed address": {strings.ReplaceAll(insertUser, "taken@", "new@"), "email", func(l *linkTest, _ core.User) func() error {
			token := l.mail(t, core.ForAddress, "ann")
			return func() error { return l.VerifyEmail(t.Context(), token, l.now) }
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := open(t)
			l := &linkTest{store: db, now: time.Now()}
			work := c.work(l, addUser(t, db, "ann"))
			other := db.lock(t, c.writes)
			wantDuplicate(t, other.delays(t, work), c.field)
		})
	}
}
