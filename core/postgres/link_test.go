package postgres_test

import (
	"crypto/sha256"
	"net/netip"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/core/postgres"
	"github.com/veneer-skins/veneer/core/postgres/postgrestest"
	"github.com/veneer-skins/veneer/shared/casefold"
	"github.com/veneer-skins/veneer/shared/edgeproto"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// linkTest is a database with functions that prepare the mails of its outbox without sending
// them.
type linkTest struct {
	*postgres.DB
	conn   *pgx.Conn
	now    time.Time
	tokens byte
}

func newLinkTest(t *testing.T) *linkTest {
	t.Helper()
	address := postgrestest.URL(t)
	return &linkTest{DB: postgrestest.Connect(t, address), conn: postgrestest.Conn(t, address), now: time.Now()}
}

func (l *linkTest) exec(t *testing.T, sql string, args ...any) {
	t.Helper()
	if _, err := l.conn.Exec(t.Context(), sql, args...); err != nil {
		t.Fatal(err)
	}
}

func (l *linkTest) count(t *testing.T, sql string, args ...any) (n int) {
	t.Helper()
	if err := l.conn.QueryRow(t.Context(), sql, args...).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// mail queues a mail, prepares it, and returns its token.
func (l *linkTest) mail(t *testing.T, purpose core.Purpose, name string) core.LinkHash {
	t.Helper()
	email := name + "@example.com"
	switch purpose {
	case core.ForRegistration:
		if err := l.QueueRegistration(t.Context(), core.NewUser{Email: email, EmailKey: email, Nickname: name, Player: player(name)}); err != nil {
			t.Fatal(err)
		}
	case core.ForAddress:
		l.requestAddress(t, name)
	case core.ForVerification, core.ForReset, core.ForChange, core.ForPassword, core.ForOwner:
		l.exec(t, "INSERT INTO mails (purpose, email, email_key) VALUES ($1, $2, $2)", purpose, email)
	}
	queued := l.claim(t)
	if len(queued) != 1 {
		t.Fatalf("%d mails are due; want 1", len(queued))
	}
	return l.open(t, queued[0])
}

// claim returns the mails that are due.
func (l *linkTest) claim(t *testing.T) []core.QueuedMail {
	t.Helper()
	return must(l.ClaimMails(t.Context(), []core.Purpose{core.ForVerification, core.ForAddress, core.ForReset, core.ForRegistration}, 10, time.Minute))(t)
}

// requestAddress queues a change of the user's address to New@example.com.
func (l *linkTest) requestAddress(t *testing.T, name string) {
	t.Helper()
	user := must(l.UserByEmail(t.Context(), name+"@example.com"))(t)
	if err := l.QueueEmail(t.Context(), core.VerifiedCredentials{Credentials: user}, "New@example.com", "new@example.com"); err != nil {
		t.Fatal(err)
	}
}

func (l *linkTest) open(t *testing.T, queued core.QueuedMail) core.LinkHash {
	t.Helper()
	l.tokens++
	token := core.LinkHash(sha256.Sum256([]byte{l.tokens}))
	must(l.PrepareMail(t.Context(), core.MailParams{
		Mail: queued, EmailHash: sha256.Sum256([]byte(queued.EmailKey)), Token: token, Now: l.now, Expires: l.now.Add(time.Hour),
	}))(t)
	if err := l.DeleteMail(t.Context(), queued.ID); err != nil {
		t.Fatal(err)
	}
	return token
}

// uses are all functions that take a token.
func (l *linkTest) uses(t *testing.T, token core.LinkHash) map[core.Purpose]func() error {
	t.Helper()
	return map[core.Purpose]func() error{
		core.ForVerification: func() error { return l.VerifyEmail(t.Context(), token, l.now) },
		core.ForReset:        func() error { return l.ResetPassword(t.Context(), token, "fresh", homeNetwork, l.now) },
		core.ForRegistration: func() error { return l.confirm(t, token, applicant("ben")) },
	}
}

// applicant returns a user with a chosen password, to confirm a registration with.
func applicant(name string) core.NewUser {
	email := name + "@example.com"
	return core.NewUser{Email: email, EmailKey: email, Nickname: name, Player: player(name), PasswordHash: "chosen by " + name, Verified: true, Score: 7}
}

// confirm confirms a registration.
func (l *linkTest) confirm(t *testing.T, token core.LinkHash, user core.NewUser) error {
	t.Helper()
	added, err := l.ConfirmRegistration(t.Context(), token, user, l.now)
	if err == nil && (added.Email != user.Email || added.Nickname != user.Nickname) {
		t.Errorf("the user is %+v; want %+v", added, user)
	}
	return err
}

// A token works once, for its purpose only, and until it expires.
func TestLinksWorkOnceForTheirPurpose(t *testing.T) {
	t.Parallel()
	l := newLinkTest(t)
	addUser(t, l.DB, "ann")
	for _, purpose := range []core.Purpose{core.ForVerification, core.ForReset, core.ForRegistration} {
		name := "ann"
		if purpose == core.ForRegistration {
			name = "ben"
		}
		l.exec(t, "UPDATE users SET verified = false")
		token := l.mail(t, purpose, name)
		for other, use := range l.uses(t, token) {
			if other != purpose {
				wantKind(t, use(), fault.NotFound)
			}
		}
		l.now = l.now.Add(time.Hour)
		wantKind(t, l.uses(t, token)[purpose](), fault.NotFound)
		l.now = l.now.Add(-time.Second)
		if err := l.uses(t, token)[purpose](); err != nil {
			t.Errorf("%s: %v", purpose, err)
		}
		wantKind(t, l.uses(t, token)[purpose](), fault.NotFound)
		if n := l.count(t, "SELECT count(*) FROM mail_tokens"); n != 0 {
			t.Errorf("%s: %d tokens are left", purpose, n)
		}
	}
	for _, use := range l.uses(t, core.LinkHash{1}) {
		wantKind(t, use(), fault.NotFound)
	}
}

// Of many concurrent uses of a link, one succeeds.
func TestLinksAtOnce(t *testing.T) {
	t.Parallel()
	testenv.SkipShort(t)
	l := newLinkTest(t)
	addUser(t, l.DB, "ann")
	f := func(purpose core.Purpose, name string) {
		t.Helper()
		token := l.mail(t, purpose, name)
		outcomes := make(chan error, 6)
		for range cap(outcomes) {
			go func() { outcomes <- l.uses(t, token)[purpose]() }()
		}
		succeeded := 0
		for range cap(outcomes) {
			if err := <-outcomes; err == nil {
				succeeded++
			} else if fault.KindOf(err) != fault.NotFound {
				t.Error(err)
			}
		}
		if succeeded != 1 {
			t.Errorf("%s: %d concurrent uses succeed; want 1", purpose, succeeded)
		}
	}
	f(core.ForVerification, "ann")
	f(core.ForReset, "ann")
	f(core.ForRegistration, "ben")
}

// A change of the address or of the password voids the links sent before, and so does the use
// of a link of the same purpose.
func TestLinksAreVoided(t *testing.T) {
	t.Parallel()
	l := newLinkTest(t)
	ann := addUser(t, l.DB, "ann")
	f := func(what string, change func() error) {
		t.Helper()
		l.exec(t, "UPDATE users SET verified = false, email = 'ann@example.com', email_key = 'ann@example.com', password_hash = 'x'")
		verification, reset, address := l.mail(t, core.ForVerification, "ann"), l.mail(t, core.ForReset, "ann"), l.mail(t, core.ForAddress, "ann")
		if err := change(); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		l.exec(t, "DELETE FROM mails")
		wantKind(t, l.VerifyEmail(t.Context(), verification, l.now), fault.NotFound)
		wantKind(t, l.VerifyEmail(t.Context(), address, l.now), fault.NotFound)
		wantKind(t, l.CheckReset(t.Context(), reset, l.now), fault.NotFound)
		wantKind(t, l.ResetPassword(t.Context(), reset, "stolen", homeNetwork, l.now), fault.NotFound)
		if n := l.count(t, "SELECT count(*) FROM users WHERE password_hash = 'stolen'"); n != 0 {
			t.Errorf("%s: the password is changed nevertheless", what)
		}
	}
	f("another address", func() error {
		_, err := l.SetEmail(t.Context(), credentialsOf(ann), core.EmailChange{Email: "cat@example.com", EmailKey: "cat@example.com"})
		return err
	})
	f("another case", func() error {
		_, err := l.SetEmail(t.Context(), credentialsOf(ann), core.EmailChange{Email: "Ann@example.com", EmailKey: "ann@example.com"})
		return err
	})
	f("another password", func() error { return l.SetPassword(t.Context(), core.PasswordChange{User: ann.ID, NewHash: "y"}) })
	f("another reset", func() error {
		return l.ResetPassword(t.Context(), l.mail(t, core.ForReset, "ann"), "y", homeNetwork, l.now)
	})
	f("the account is deleted", func() error {
		if err := l.DeleteUser(t.Context(), credentialsOf(ann)); err != nil {
			return err
		}
		ann = addUser(t, l.DB, "ann") // a new user with the same name
		return nil
	})
}

// A link to a new address makes it the user's, unless another user has it by then. A request
// made with an older password gets no link.
func TestLinkToAnotherAddress(t *testing.T) {
	t.Parallel()
	l := newLinkTest(t)
	ann := addUser(t, l.DB, "ann")
	token := l.mail(t, core.ForAddress, "ann")
	if err := l.VerifyEmail(t.Context(), token, l.now); err != nil {
		t.Fatal(err)
	}
	if got := must(l.UserByEmail(t.Context(), "new@example.com"))(t); got.ID != ann.ID || got.Email != "New@example.com" || !got.Verified {
		t.Errorf("the address is that of %+v", got)
	}
	if n := l.count(t, "SELECT count(*) FROM mails WHERE purpose = 'change' AND email = 'ann@example.com'"); n != 1 {
		t.Errorf("the old address gets %d notices", n)
	}
	l.exec(t, "DELETE FROM mails")

	ben := addUser(t, l.DB, "ben")
	l.exec(t, "UPDATE users SET email = 'old@example.com', email_key = 'old@example.com' WHERE uid = $1", ann.ID)
	token = l.mail(t, core.ForAddress, "ben")
	l.exec(t, "UPDATE users SET email = 'new@example.com', email_key = 'new@example.com' WHERE uid = $1", ann.ID)
	err := l.VerifyEmail(t.Context(), token, l.now)
	wantKind(t, err, fault.Duplicate)
	if fault.Of(err).Fields["email"] == nil {
		t.Errorf("%v does not name the field", err)
	}

	l.exec(t, "UPDATE users SET email = 'old@example.com', email_key = 'old@example.com' WHERE uid = $1", ann.ID)
	l.requestAddress(t, "ben")
	l.exec(t, "UPDATE users SET password_hash = 'y' WHERE uid = $1", ben.ID)
	queued := l.claim(t)
	_, err = l.PrepareMail(t.Context(), core.MailParams{Mail: queued[0], EmailHash: sha256.Sum256([]byte("new@example.com")), Now: l.now, Expires: l.now.Add(time.Hour)})
	wantKind(t, err, fault.NotFound)
	wantKind(t, l.QueueEmail(t.Context(), credentialsOf(ben), "x@example.com", "x@example.com"), fault.Unauthenticated)
}

// A reset ends all sessions and launchers' tokens of the user, and no others.
func TestResetEndsSessions(t *testing.T) {
	t.Parallel()
	l := newLinkTest(t)
	tokens := func() (n int) {
		t.Helper()
		if err := l.conn.QueryRow(t.Context(), "SELECT count(*) FROM launcher_tokens").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	s := &sessionTest{db: l.DB, user: addUser(t, l.DB, "ann"), now: time.Now().UTC().Truncate(time.Second)}
	other := &sessionTest{db: l.DB, user: addUser(t, l.DB, "ben"), now: s.now}
	first, second, theirs := s.open(t), s.open(t), other.open(t)
	for i, user := range []core.User{s.user, other.user} {
		must(l.IssueLauncherToken(t.Context(), core.NewLauncherToken{
			Hash: core.LauncherHash{byte(i)}, Credentials: credentialsOf(user), Network: homeNetwork,
		}))(t)
	}
	if n := tokens(); n != 2 {
		t.Fatalf("there are %d tokens; want 2", n)
	}
	if err := l.ResetPassword(t.Context(), l.mail(t, core.ForReset, "ann"), "fresh", homeNetwork, l.now); err != nil {
		t.Fatal(err)
	}
	if s.isValid(t, first) || s.isValid(t, second) || !other.isValid(t, theirs) {
		t.Errorf("sessions of the user live: %t, %t; of another: %t", s.isValid(t, first), s.isValid(t, second), other.isValid(t, theirs))
	}
	if n := tokens(); n != 1 {
		t.Errorf("there are %d tokens after the reset; want that of the other user", n)
	}
	ann := must(l.UserByEmail(t.Context(), "ann@example.com"))(t)
	if ann.PasswordHash != "fresh" || !ann.Verified {
		t.Errorf("the hash is %s, the address verified: %t", ann.PasswordHash, ann.Verified)
	}
}

// A confirmed registration adds the user, with player and score, and names their keys. Other
// registrations of the address become void.
func TestConfirmRegistration(t *testing.T) {
	t.Parallel()
	l := newLinkTest(t)
	first, second := l.mail(t, core.ForRegistration, "Ann"), l.mail(t, core.ForRegistration, "Ann")
	user := must(l.Registration(t.Context(), second, l.now))(t)
	if want := (core.NewUser{Email: "Ann@example.com", EmailKey: "Ann@example.com", Nickname: "Ann", Player: player("Ann")}); user != want { // the test takes the address for a key
		t.Errorf("the registration is of %+v; want %+v", user, want)
	}
	user.PasswordHash, user.Score, user.Verified = "chosen by Ann", 7, true
	head := must(l.NumberChanges(t.Context()))(t)
	if err := l.confirm(t, second, user); err != nil {
		t.Fatal(err)
	}
	ann := must(l.UserByEmail(t.Context(), "Ann@example.com"))(t)
	if ann.Email != "Ann@example.com" || ann.Nickname != "Ann" || ann.Score != 7 || !ann.Verified || ann.PasswordHash != "chosen by Ann" || ann.Permission != core.Normal {
		t.Errorf("the user is %+v", ann)
	}
	if n := l.count(t, "SELECT count(*) FROM players WHERE uid = $1 AND name = 'Ann'", ann.ID); n != 1 {
		t.Errorf("the user has %d players of the name; want 1", n)
	}
	must(l.NumberChanges(t.Context()))(t)
	if keys := keysAfter(t, l.DB, head.Revision); len(keys) != 1 || !slices.Contains(keys[0], edgeproto.UIDKey(int64(ann.ID))) || !slices.Contains(keys[0], edgeproto.NameKey("Ann")) {
		t.Errorf("the keys of the change are %v", keys)
	}
	_, err := l.Registration(t.Context(), first, l.now)
	wantKind(t, err, fault.NotFound)
	wantKind(t, l.confirm(t, first, user), fault.NotFound)
	if n := l.count(t, "SELECT count(*) FROM registrations"); n != 0 {
		t.Errorf("%d registrations are left", n)
	}
}

// Address and name may be taken between registration and confirmation. The link still works
// with others.
func TestConfirmRegistrationConflicts(t *testing.T) {
	t.Parallel()
	l := newLinkTest(t)
	ann, ben := l.mail(t, core.ForRegistration, "ann"), l.mail(t, core.ForRegistration, "ben")
	cat := addUser(t, l.DB, "cat")
	addPlayer(t, l.DB, cat.ID, "Ann")
	wantDuplicate := func(err error, field string) {
		t.Helper()
		wantKind(t, err, fault.Duplicate)
		if fault.Of(err).Fields[field] == nil {
			t.Errorf("%v does not name the field %s", err, field)
		}
	}
	user := applicant("ann")
	wantDuplicate(l.confirm(t, ann, user), "player_name")
	user.Player = core.NewPlayer{}
	if err := l.confirm(t, ann, user); err != nil {
		t.Fatal(err)
	}
	if n := l.count(t, "SELECT count(*) FROM players WHERE uid <> $1", cat.ID); n != 0 {
		t.Errorf("the user has %d players; want none", n)
	}
	addUser(t, l.DB, "ben")
	wantDuplicate(l.confirm(t, ben, applicant("ben")), "email")
	wantDuplicate(l.QueueRegistration(t.Context(), core.NewUser{Email: "d@example.com", EmailKey: "d@example.com", Nickname: "D", Player: player("aNN")}), "player_name")
}

// A migration deletes the password of pending registrations and nothing else. Their links work
// with a new password.
func TestMigrationOfPendingRegistrations(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("migrations/*_registrations.sql")
	if err != nil || len(files) != 1 {
		t.Fatalf("%v, %v; want one migration", files, err)
	}
	number, err := strconv.Atoi(filepath.Base(files[0])[:3])
	do(t, err)
	address := postgrestest.Empty(t)
	l := &linkTest{DB: postgrestest.Connect(t, address), now: time.Now()}
	do(t, l.MigrateTo(t.Context(), int32(number-1)))
	l.conn = postgrestest.Conn(t, address)
	token := core.LinkHash{1}
	l.exec(t, `WITH inserted AS (
			INSERT INTO registrations (email, email_key, nickname, password_hash, player, player_key)
			VALUES ('ann@example.com', 'ann@example.com', 'ann', 'chosen by others', 'ann', 'ann'), ('ben@example.com', 'ben@example.com', 'ben', 'chosen by others', '', '')
			RETURNING rid, email, email_key
		), inserted_mail AS (
			INSERT INTO mails (purpose, registration, email, email_key) SELECT 'registration', rid, email, email_key FROM inserted WHERE email = 'ben@example.com'
		)
		INSERT INTO mail_tokens (hash, expires_at, registration, purpose, email, email_key)
		SELECT $1, 'infinity', rid, 'registration', email, email_key FROM inserted WHERE email = 'ann@example.com'`, token[:])

	if _, _, err := l.Migrate(t.Context(), func(string) {}); err != nil {
		t.Fatal(err)
	}
	if n := l.count(t, "SELECT count(*) FROM registrations WHERE password_hash IS NULL"); n != 2 {
		t.Errorf("%d registrations are pending without a password; want 2", n)
	}
	for token, name := range map[core.LinkHash]string{token: "ann", l.open(t, l.claim(t)[0]): "ben"} {
		user := must(l.Registration(t.Context(), token, l.now))(t)
		user.PasswordHash = "chosen by " + name
		if err := l.confirm(t, token, user); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got := must(l.UserByEmail(t.Context(), name+"@example.com"))(t); got.Nickname != name || got.PasswordHash != "chosen by "+name {
			t.Errorf("the user is %+v", got)
		}
	}

	// Down, and up again.
	l.exec(t, "INSERT INTO registrations (email, email_key, nickname, player, player_key) VALUES ('c@example.com', 'c@example.com', 'c', '', '')")
	do(t, l.MigrateTo(t.Context(), int32(number-1)))
	do(t, l.MigrateTo(t.Context(), int32(number)))
	if n := l.count(t, "SELECT count(*) FROM registrations"); n != 0 {
		t.Errorf("%d registrations are left that the release before cannot confirm", n)
	}
}

// Concurrent confirmations of several registrations of an address add one user.
func TestConfirmationsAtOnce(t *testing.T) {
	t.Parallel()
	testenv.SkipShort(t)
	l := newLinkTest(t)
	var tokens []core.LinkHash
	for range 5 {
		tokens = append(tokens, l.mail(t, core.ForRegistration, "ann"))
	}
	var group sync.WaitGroup
	for _, token := range tokens {
		group.Go(func() {
			if err := l.confirm(t, token, applicant("ann")); err != nil && fault.KindOf(err) != fault.NotFound {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if users, players := l.count(t, "SELECT count(*) FROM users"), l.count(t, "SELECT count(*) FROM players"); users != 1 || players != 1 {
		t.Errorf("there are %d users and %d players; want one each", users, players)
	}
}

// A change of the address queues a notice to the old one and a link to the new one, in the same
// transaction.
func TestSetEmailQueuesMails(t *testing.T) {
	t.Parallel()
	l := newLinkTest(t)
	ann := addUser(t, l.DB, "ann")
	addUser(t, l.DB, "ben")
	f := func(email string, tell bool, want int) {
		t.Helper()
		_, _ = l.SetEmail(t.Context(), credentialsOf(ann), core.EmailChange{Email: email, EmailKey: casefold.Key(email), Notify: tell})
		if n := l.count(t, "SELECT count(*) FROM mails"); n != want {
			t.Errorf("after a change to %s there are %d mails; want %d", email, n, want)
		}
	}
	f("ann@example.com", true, 0) // it is the same
	f("ANN@example.com", true, 1) // and must be verified, since no link to it works any more
	l.exec(t, "UPDATE users SET verified = true")
	f("ann@example.com", true, 1)
	l.exec(t, "DELETE FROM mails")
	f("ben@example.com", true, 0) // it is taken
	f("cat@example.com", false, 0)
	f("Dan@example.com", true, 2)
	if n := l.count(t, "SELECT count(*) FROM mails WHERE (purpose, email, email_key) IN (('change', 'cat@example.com', 'cat@example.com'), ('verification', 'Dan@example.com', 'dan@example.com'))"); n != 2 {
		t.Error("the mails are not those to the old and the new address")
	}
}

func TestQueueVerificationIsLimited(t *testing.T) {
	t.Parallel()
	l := newLinkTest(t)
	ann := addUser(t, l.DB, "ann")
	ask := func() error { return l.QueueVerification(t.Context(), ann.ID, 3, l.now) }
	for range 2 {
		if err := ask(); err != nil {
			t.Fatal(err)
		}
	}
	for _, queued := range l.claim(t) {
		l.open(t, queued)
	}
	l.now = l.now.Add(10 * time.Minute)
	if err := ask(); err != nil {
		t.Fatal(err)
	}
	err := ask()
	wantKind(t, err, fault.TooMany)
	if wait := fault.Of(err).RetryAfter; wait < 50*time.Minute-time.Second || wait > 50*time.Minute {
		t.Errorf("the wait is %s; want 50m", wait)
	}
	l.now = l.now.Add(51 * time.Minute)
	if err := ask(); err != nil {
		t.Errorf("after the first ones are an hour old: %v", err)
	}
	if err := l.QueueVerification(t.Context(), ann.ID, 0, l.now); err != nil {
		t.Errorf("without a limit: %v", err)
	}
	l.exec(t, "UPDATE users SET verified = true")
	before := l.count(t, "SELECT count(*) FROM mails")
	if err := ask(); err != nil || l.count(t, "SELECT count(*) FROM mails") != before {
		t.Errorf("of a verified address: %v, or there is one mail more", err)
	}
}

// Requests without a session read no account, so that neither the response nor its time tells
// whether there is one.
func TestQueueingMailReadsNoAccount(t *testing.T) {
	t.Parallel()
	db, address := openNamed(t)
	addUser(t, db, "ann")
	other := beginLockTx(t, address)
	other.exec(t, "LOCK TABLE users IN ACCESS EXCLUSIVE MODE")
	for _, name := range []string{"ann", "unknown"} {
		email := name + "@example.com"
		if err := db.QueueReset(t.Context(), email, email); err != nil {
			t.Error(err)
		}
		if err := db.QueueRegistration(t.Context(), core.NewUser{Email: email, EmailKey: email, Nickname: "N", Player: player("P" + name)}); err != nil {
			t.Error(err)
		}
	}
	if err := other.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// Cores of the previous release, which ignore the purpose, do not claim mails about a changed
// password. This release does.
func TestFormerReleaseSkipsPasswordMails(t *testing.T) {
	t.Parallel()
	l := newLinkTest(t)
	ann := addUser(t, l.DB, "ann")
	do(t, l.SetPassword(t.Context(), core.PasswordChange{User: ann.ID, OldHash: "x", NewHash: "y", Notify: true}))
	do(t, l.ResetPassword(t.Context(), l.mail(t, core.ForReset, "ann"), "z", netip.MustParsePrefix("192.0.2.0/32"), l.now))
	l.exec(t, "DELETE FROM mails WHERE purpose = 'reset'")

	// This is the statement of the previous release.
	l.exec(t, `
		WITH due AS (
			SELECT id FROM mails WHERE due_at <= now() ORDER BY due_at LIMIT 10 FOR UPDATE SKIP LOCKED
		)
		DELETE FROM mails m USING due WHERE m.id = due.id`)
	claim := func(want int) []core.QueuedMail {
		t.Helper()
		claimed := must(l.ClaimMails(t.Context(), []core.Purpose{core.ForPassword}, 10, time.Hour))(t)
		if len(claimed) != want {
			t.Fatalf("%d mails are claimed; want %d", len(claimed), want)
		}
		return claimed
	}
	claimed := claim(2)
	claim(0)
	do(t, l.DeferMail(t.Context(), claimed[0].ID, 0))
	do(t, l.DeferMail(t.Context(), claimed[1].ID, time.Hour))
	if again := claim(1); again[0].ID != claimed[0].ID {
		t.Error("another mail is due than the one that was deferred for no time")
	}
	if n := l.count(t, "SELECT count(*) FROM mails WHERE due_at <> 'infinity'"); n != 0 {
		t.Errorf("the former release would claim %d mails", n)
	}
}
