package postgres_test

import (
	"crypto/sha256"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/shared/casefold"
	"github.com/veneer-skins/veneer/shared/edgeproto"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// linkTest is a database with functions that prepare the mails of its outbox without sending
// them.
type linkTest struct {
	store
	now    time.Time
	tokens byte
}

func newLinkTest(t *testing.T) *linkTest {
	t.Helper()
	return &linkTest{store: open(t), now: time.Now()}
}

// mail queues a mail, prepares it, and returns its token.
func (l *linkTest) mail(t *testing.T, purpose core.Purpose, name string) core.LinkHash {
	t.Helper()
	email := name + "@example.com"
	switch purpose {
	case core.ForRegistration:
		do(t, l.QueueRegistration(t.Context(), core.NewUser{Email: email, EmailKey: email, Nickname: name, Player: player(name)}))
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
	return l.claimSome(t, 10, 0)
}

// claimSome returns due mails, the most and within the number to unconfirmed addresses.
func (l *linkTest) claimSome(t *testing.T, limit, unconfirmed int) []core.QueuedMail {
	t.Helper()
	purposes := []core.Purpose{core.ForVerification, core.ForAddress, core.ForReset, core.ForRegistration}
	return must(l.ClaimMails(t.Context(), core.MailClaim{Purposes: purposes, Limit: limit, Lease: time.Minute, UnconfirmedPerHour: unconfirmed}))(t)
}

// Mails to addresses that are not confirmed are sent last, and wait once there were too many in an hour.
func TestMailsToUnconfirmedAddressesWait(t *testing.T) {
	t.Parallel()
	l := newLinkTest(t)
	for _, email := range []string{"ann@example.com", "ben@example.com"} {
		do(t, l.QueueRegistration(t.Context(), core.NewUser{Email: email, EmailKey: email, Nickname: "A"}))
	}
	for _, purpose := range []core.Purpose{core.ForVerification, core.ForReset} {
		l.exec(t, "INSERT INTO mails (purpose, email, email_key) VALUES ($1, 'c@example.com', 'c@example.com')", purpose)
	}
	first := l.claimSome(t, 1, 2)
	testenv.Equal(t, len(first) == 1 && first[0].Purpose == core.ForReset, true, "the reset, due last, is claimed first: %v", first)
	send := func(purpose core.Purpose, ago string) {
		t.Helper()
		l.exec(t, "INSERT INTO mails_sent (id, account, purpose, sent_at) VALUES (gen_random_uuid(), sha256('a'), $1, now() - $2::interval)", purpose, ago)
	}
	send(core.ForRegistration, "59 min")
	send(core.ForReset, "1 min")
	testenv.Equal(t, len(l.claimSome(t, 1, 2)), 1, "mails below the number")
	send(core.ForVerification, "1 min")
	testenv.Equal(t, len(l.claimSome(t, 10, 2)), 0, "mails above the number")
	l.exec(t, "INSERT INTO mails (purpose, email, email_key) VALUES ('reset', 'u9@example.com', 'u9@example.com')")
	testenv.Equal(t, len(l.claimSome(t, 10, 2)), 1, "resets above it")
	l.exec(t, "INSERT INTO mails_sent (id, account, purpose, sent_at) SELECT id, sha256('b'), purpose, now() FROM mails WHERE purpose = 'registration' LIMIT 1")
	l.exec(t, "UPDATE mails SET due_at = now()")
	tried := l.claimSome(t, 10, 2)
	testenv.Equal(t, len(tried), 3, "two resets, and a registration that is tried again: %v", tried)
	l.exec(t, "UPDATE mails_sent SET sent_at = sent_at - interval '1 hour'")
	testenv.Equal(t, len(l.claimSome(t, 10, 2)), 2, "mails once one of those sent is an hour ago")
}

// requestAddress queues a change of the user's address to New@example.com.
func (l *linkTest) requestAddress(t *testing.T, name string) {
	t.Helper()
	user := must(l.UserByEmail(t.Context(), name+"@example.com"))(t)
	do(t, l.QueueEmail(t.Context(), core.VerifiedCredentials{Credentials: user}, "New@example.com", "new@example.com"))
}

func (l *linkTest) open(t *testing.T, queued core.QueuedMail) core.LinkHash {
	t.Helper()
	l.tokens++
	token := core.LinkHash(sha256.Sum256([]byte{l.tokens}))
	must(l.PrepareMail(t.Context(), core.MailParams{
		Mail: queued, EmailHash: sha256.Sum256([]byte(queued.EmailKey)), Token: token, Now: l.now, Expires: l.now.Add(time.Hour),
	}))(t)
	do(t, l.DeleteMail(t.Context(), queued.ID))
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
	testenv.Check(t, err != nil || added.Email == user.Email && added.Nickname == user.Nickname,
		"the user is %+v; want %+v", added, user)
	return err
}

// A token works once, for its purpose only, and until it expires.
func TestLinksWorkOnceForTheirPurpose(t *testing.T) {
	t.Parallel()
	l := newLinkTest(t)
	addUser(t, l.store, "ann")
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
		testenv.Is(t, l.uses(t, token)[purpose](), nil, "%s", purpose)
		wantKind(t, l.uses(t, token)[purpose](), fault.NotFound)
		l.hasCount(t, 0, "SELECT count(*) FROM mail_tokens")
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
	addUser(t, l.store, "ann")
	f := func(purpose core.Purpose, name string) {
		t.Helper()
		token := l.mail(t, purpose, name)
		atOnce(t, 6, 1, fault.NotFound, func(int) error { return l.uses(t, token)[purpose]() })
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
	ann := addUser(t, l.store, "ann")
	f := func(what string, change func() error) {
		t.Helper()
		l.exec(t, "UPDATE users SET verified = false, email = 'ann@example.com', email_key = 'ann@example.com', password_hash = 'x'")
		verification, reset, address := l.mail(t, core.ForVerification, "ann"), l.mail(t, core.ForReset, "ann"), l.mail(t, core.ForAddress, "ann")
		testenv.Is(t, change(), nil, "%s", what)
		l.exec(t, "DELETE FROM mails")
		wantKind(t, l.VerifyEmail(t.Context(), verification, l.now), fault.NotFound)
		wantKind(t, l.VerifyEmail(t.Context(), address, l.now), fault.NotFound)
		wantKind(t, testenv.ErrOf(l.CheckReset(t.Context(), reset, l.now)), fault.NotFound)
		wantKind(t, l.ResetPassword(t.Context(), reset, "stolen", homeNetwork, l.now), fault.NotFound)
		l.hasCount(t, 0, "SELECT count(*) FROM users WHERE password_hash = 'stolen'")
	}
	f("another address", func() error {
		return errOf(l.SetEmail(t.Context(), as(ann.ID), core.EmailChange{User: ann.ID, PasswordHash: "x", Email: "cat@example.com", EmailKey: "cat@example.com"}))
	})
	f("another case", func() error {
		return errOf(l.SetEmail(t.Context(), as(ann.ID), core.EmailChange{User: ann.ID, PasswordHash: "x", Email: "Ann@example.com", EmailKey: "ann@example.com"}))
	})
	f("another password", func() error {
		return errOf(l.SetPassword(t.Context(), as(ann.ID), core.PasswordChange{User: ann.ID, NewHash: "y"}))
	})
	f("another reset", func() error {
		return l.ResetPassword(t.Context(), l.mail(t, core.ForReset, "ann"), "y", homeNetwork, l.now)
	})
	f("the account is deleted", func() error {
		if err := l.DeleteUser(t.Context(), as(ann.ID), credentialsOf(ann)); err != nil {
			return err
		}
		ann = addUser(t, l.store, "ann") // a new user with the same name
		return nil
	})
}

// A link to a new address makes it the user's, unless another user has it by then. A request
// made with an older password gets no link.
func TestLinkToAnotherAddress(t *testing.T) {
	t.Parallel()
	l := newLinkTest(t)
	ann := addUser(t, l.store, "ann")
	token := l.mail(t, core.ForAddress, "ann")
	do(t, l.VerifyEmail(t.Context(), token, l.now))
	got := must(l.UserByEmail(t.Context(), "new@example.com"))(t)
	testenv.Check(t, got.ID == ann.ID && got.Email == "New@example.com" && got.Verified, "its user is %+v", got)
	l.hasCount(t, 1, "SELECT count(*) FROM mails WHERE purpose = 'change' AND email = 'ann@example.com'")
	l.exec(t, "DELETE FROM mails")

	ben := addUser(t, l.store, "ben")
	l.exec(t, "UPDATE users SET email = 'old@example.com', email_key = 'old@example.com' WHERE uid = $1", ann.ID)
	token = l.mail(t, core.ForAddress, "ben")
	l.exec(t, "UPDATE users SET email = 'new@example.com', email_key = 'new@example.com' WHERE uid = $1", ann.ID)
	wantDuplicate(t, l.VerifyEmail(t.Context(), token, l.now), "email")

	l.exec(t, "UPDATE users SET email = 'old@example.com', email_key = 'old@example.com' WHERE uid = $1", ann.ID)
	l.requestAddress(t, "ben")
	l.exec(t, "UPDATE users SET password_hash = 'y' WHERE uid = $1", ben.ID)
	queued := l.claim(t)
	_, err := l.PrepareMail(t.Context(), core.MailParams{Mail: queued[0], EmailHash: sha256.Sum256([]byte("new@example.com")), Now: l.now, Expires: l.now.Add(time.Hour)})
	wantKind(t, err, fault.NotFound)
	wantKind(t, l.QueueEmail(t.Context(), credentialsOf(ben), "x@example.com", "x@example.com"), fault.Unauthenticated)
}

// A reset ends all sessions and launchers' tokens of the user, and no others.
func TestResetEndsSessions(t *testing.T) {
	t.Parallel()
	l := newLinkTest(t)
	const tokens = "SELECT count(*) FROM launcher_tokens"
	s := &sessionTest{db: l.store, user: addUser(t, l.store, "ann"), now: time.Now().UTC().Truncate(time.Second)}
	other := &sessionTest{db: l.store, user: addUser(t, l.store, "ben"), now: s.now}
	first, second, theirs := s.open(t), s.open(t), other.open(t)
	for i, user := range []core.User{s.user, other.user} {
		must(l.IssueLauncherToken(t.Context(), core.NewLauncherToken{
			Hash: core.LauncherHash{byte(i)}, Credentials: credentialsOf(user), Network: homeNetwork,
		}))(t)
	}
	l.hasCount(t, 2, tokens)
	do(t, l.ResetPassword(t.Context(), l.mail(t, core.ForReset, "ann"), "fresh", homeNetwork, l.now))
	s.wantEnded(t, "after a reset", first, second)
	other.wantWorking(t, "after another user's reset", theirs)
	l.hasCount(t, 1, tokens) // the other user's
	ann := must(l.UserByEmail(t.Context(), "ann@example.com"))(t)
	testenv.Equal(t, ann.PasswordHash, "fresh", "the hash")
	testenv.Equal(t, ann.Verified, true, "the address is verified")
}

// A confirmed registration adds the user, with player and score, and names their keys. Other
// registrations of the address become void.
func TestConfirmRegistration(t *testing.T) {
	t.Parallel()
	l := newLinkTest(t)
	first, second := l.mail(t, core.ForRegistration, "Ann"), l.mail(t, core.ForRegistration, "Ann")
	user := must(l.Registration(t.Context(), second, l.now))(t)
	// The test takes the address for a key.
	want := core.NewUser{Email: "Ann@example.com", EmailKey: "Ann@example.com", Nickname: "Ann", Player: player("Ann")}
	testenv.Equal(t, user, want, "the registration")
	user.PasswordHash, user.Score, user.Verified = "chosen by Ann", 7, true
	head := must(l.NumberChanges(t.Context()))(t)
	do(t, l.confirm(t, second, user))
	ann := must(l.UserByEmail(t.Context(), "Ann@example.com"))(t)
	if ann.Email != "Ann@example.com" || ann.Nickname != "Ann" || ann.Score != 7 || !ann.Verified || ann.PasswordHash != "chosen by Ann" || ann.Permission != core.Normal {
		t.Errorf("the user is %+v", ann)
	}
	l.hasCount(t, 1, "SELECT count(*) FROM players WHERE uid = $1 AND name = 'Ann'", ann.ID)
	must(l.NumberChanges(t.Context()))(t)
	if keys := keysAfter(t, l.store, head.Revision); len(keys) != 1 || !slices.Contains(keys[0], edgeproto.UIDKey(int64(ann.ID))) || !slices.Contains(keys[0], edgeproto.NameKey("Ann")) {
		t.Errorf("the keys of the change are %v", keys)
	}
	wantKind(t, errOf(l.Registration(t.Context(), first, l.now)), fault.NotFound)
	wantKind(t, l.confirm(t, first, user), fault.NotFound)
	l.hasCount(t, 0, "SELECT count(*) FROM registrations")
}

// Address and name may be taken between registration and confirmation. The link still works
// with others.
func TestConfirmRegistrationConflicts(t *testing.T) {
	t.Parallel()
	l := newLinkTest(t)
	ann, ben := l.mail(t, core.ForRegistration, "ann"), l.mail(t, core.ForRegistration, "ben")
	cat := addUser(t, l.store, "cat")
	addPlayer(t, l.store, cat.ID, "Ann")
	user := applicant("ann")
	wantDuplicate(t, l.confirm(t, ann, user), "player_name")
	user.Player = core.NewPlayer{}
	do(t, l.confirm(t, ann, user))
	l.hasCount(t, 0, "SELECT count(*) FROM players WHERE uid <> $1", cat.ID)
	addUser(t, l.store, "ben")
	wantDuplicate(t, l.confirm(t, ben, applicant("ben")), "email")
	wantDuplicate(t, l.QueueRegistration(t.Context(), core.NewUser{Email: "d@example.com", EmailKey: "d@example.com", Nickname: "D", Player: player("aNN")}), "player_name")
}

// A migration deletes the password of pending registrations and nothing else. Their links work
// with a new password.
func TestMigrationOfPendingRegistrations(t *testing.T) {
	t.Parallel()
	number := migration(t, "registrations")
	l := &linkTest{store: openEmpty(t), now: time.Now()}
	do(t, l.MigrateTo(t.Context(), number-1))
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

	l.migrate(t)
	l.hasCount(t, 2, "SELECT count(*) FROM registrations WHERE password_hash IS NULL")
	for token, name := range map[core.LinkHash]string{token: "ann", l.open(t, l.claim(t)[0]): "ben"} {
		user := must(l.Registration(t.Context(), token, l.now))(t)
		user.PasswordHash = "chosen by " + name
		testenv.Is(t, l.confirm(t, token, user), nil, "%s", name)
		got := must(l.UserByEmail(t.Context(), name+"@example.com"))(t)
		testenv.Check(t, got.Nickname == name && got.PasswordHash == "chosen by "+name, "the user is %+v", got)
	}

	// Down, and up again.
	l.exec(t, "INSERT INTO registrations (email, email_key, nickname, player, player_key) VALUES ('c@example.com', 'c@example.com', 'c', '', '')")
	do(t, l.MigrateTo(t.Context(), number-1))
	do(t, l.MigrateTo(t.Context(), number))
	l.hasCount(t, 0, "SELECT count(*) FROM registrations")
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
	atOnce(t, 5, 1, fault.NotFound, func(i int) error { return l.confirm(t, tokens[i], applicant("ann")) })
	l.hasCount(t, 1, "SELECT count(*) FROM users")
	l.hasCount(t, 1, "SELECT count(*) FROM players")
}

// A change of the address queues a notice to the old one and a link to the new one, in the same
// transaction.
func TestSetEmailQueuesMails(t *testing.T) {
	t.Parallel()
	l := newLinkTest(t)
	ann := addUser(t, l.store, "ann")
	addUser(t, l.store, "ben")
	f := func(email string, tell bool, want int) {
		t.Helper()
		_, _ = l.SetEmail(t.Context(), as(ann.ID), core.EmailChange{User: ann.ID, PasswordHash: "x", Email: email, EmailKey: casefold.Key(email), Notify: tell})
		l.hasCount(t, want, "SELECT count(*) FROM mails")
	}
	f("ann@example.com", true, 0) // it is the same
	f("ANN@example.com", true, 1) // and must be verified, since no link to it works any more
	l.exec(t, "UPDATE users SET verified = true")
	f("ann@example.com", true, 1)
	l.exec(t, "DELETE FROM mails")
	f("ben@example.com", true, 0) // it is taken
	f("cat@example.com", false, 0)
	f("Dan@example.com", true, 2)
	l.hasCount(t, 2, "SELECT count(*) FROM mails WHERE (purpose, email, email_key) IN (('change', 'cat@example.com', 'cat@example.com'), ('verification', 'Dan@example.com', 'dan@example.com'))")
}

func TestQueueVerificationIsLimited(t *testing.T) {
	t.Parallel()
	l := newLinkTest(t)
	ann := addUser(t, l.store, "ann")
	ask := func() error { return l.QueueVerification(t.Context(), ann.ID, 3, l.now) }
	for range 2 {
		do(t, ask())
	}
	for _, queued := range l.claim(t) {
		l.open(t, queued)
	}
	l.now = l.now.Add(10 * time.Minute)
	do(t, ask())
	err := ask()
	wantKind(t, err, fault.TooMany)
	wait := fault.Of(err).RetryAfter
	testenv.Check(t, wait >= 50*time.Minute-time.Second && wait <= 50*time.Minute, "the wait is %s; want 50m", wait)
	l.now = l.now.Add(51 * time.Minute)
	testenv.Is(t, ask(), nil, "after the first ones are an hour old")
	testenv.Is(t, l.QueueVerification(t.Context(), ann.ID, 0, l.now), nil, "without a limit")
	l.exec(t, "UPDATE users SET verified = true")
	before := l.count(t, "SELECT count(*) FROM mails")
	testenv.Is(t, ask(), nil, "of a verified address")
	l.hasCount(t, before, "SELECT count(*) FROM mails")
}

// Requests without a session read no account, so that neither the response nor its time tells
// whether there is one.
func TestQueueingMailReadsNoAccount(t *testing.T) {
	t.Parallel()
	db := open(t)
	addUser(t, db, "ann")
	other := db.lock(t, "LOCK TABLE users IN ACCESS EXCLUSIVE MODE")
	for _, name := range []string{"ann", "unknown"} {
		email := name + "@example.com"
		testenv.Is(t, db.QueueReset(t.Context(), email, email), nil, "a reset for %s", email)
		fresh := core.NewUser{Email: email, EmailKey: email, Nickname: "N", Player: player("P" + name)}
		testenv.Is(t, db.QueueRegistration(t.Context(), fresh), nil, "a registration of %s", email)
	}
	do(t, other.Commit(t.Context()))
}

// Cores of the previous release, which ignore the purpose, do not claim mails about a changed
// password. This release does.
func TestFormerReleaseSkipsPasswordMails(t *testing.T) {
	t.Parallel()
	l := newLinkTest(t)
	ann := addUser(t, l.store, "ann")
	must(l.SetPassword(t.Context(), as(ann.ID), core.PasswordChange{User: ann.ID, OldHash: "x", NewHash: "y", Notify: true}))(t)
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
		claimed := must(l.ClaimMails(t.Context(), core.MailClaim{Purposes: []core.Purpose{core.ForPassword}, Limit: 10, Lease: time.Hour}))(t)
		if len(claimed) != want {
			t.Fatalf("%d mails are claimed; want %d", len(claimed), want)
		}
		return claimed
	}
	claimed := claim(2)
	claim(0)
	do(t, l.DeferMail(t.Context(), claimed[0].ID, 0))
	do(t, l.DeferMail(t.Context(), claimed[1].ID, time.Hour))
	testenv.Equal(t, claim(1)[0].ID, claimed[0].ID, "the mail that is due, which was deferred for no time")
	l.hasCount(t, 0, "SELECT count(*) FROM mails WHERE due_at <> 'infinity'")
}
