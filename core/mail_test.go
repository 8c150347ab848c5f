package core_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/core/coretest"
	"github.com/veneer-skins/veneer/core/mail"
	"github.com/veneer-skins/veneer/core/mail/mailtest"
	"github.com/veneer-skins/veneer/core/postgres"
	"github.com/veneer-skins/veneer/core/postgres/postgrestest"
	"github.com/veneer-skins/veneer/shared/testenv"
	"github.com/veneer-skins/veneer/shared/testenv/cmptest"
)

// mailEnv is a site that sends e-mail, with its mail server.
type mailEnv struct {
	*mailtest.Server
	*coretest.Site
	db     *postgres.DB
	config core.MailConfig
	log    *logBuffer
}

// logBuffer is a log for concurrent writers.
type logBuffer struct {
	mu    sync.Mutex
	lines bytes.Buffer
}

func (l *logBuffer) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lines.Write(line)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lines.String()
}

func newMailEnv(t *testing.T) mailEnv {
	t.Helper()
	site := coretest.NewSite(t)
	o := mailEnv{
		mailtest.Start(t, mailtest.Options{StartTLS: true, User: "operator", Password: "hunter2"}),
		site, postgrestest.Connect(t, site.URL),
		core.MailConfig{URL: "https://skins.example.org/", Verification: 24 * time.Hour, Reset: time.Hour, PerHour: 5, RetryFor: 24 * time.Hour},
		&logBuffer{},
	}
	t.Cleanup(func() {
		for _, secret := range []string{"@example.com", "token=", "hunter2"} {
			testenv.Equal(t, strings.Contains(o.log.String(), secret), false, "the log tells %q:\n%s\n", secret, o.log)
		}
	})
	return o
}

// newOutbox returns the outbox of another core.
func (e mailEnv) newOutbox(t *testing.T) *core.Outbox {
	t.Helper()
	const timeout = 10 * time.Second
	client := testenv.Must(mail.New(mail.Config{
		Host: e.Host, Port: e.Port, TLS: "starttls", CA: e.CA, User: "operator", Password: "hunter2", From: "noreply@skins.example.org", Timeout: timeout,
	}))(t)
	log := slog.New(slog.NewTextHandler(e.log, nil))
	return core.NewOutbox(e.db, mail.NewSender(client, "Skins & More", e.config.URL), e.config, timeout, log, e.Clock)
}

func (e mailEnv) addUser(t *testing.T, name string) {
	t.Helper()
	testenv.Must(e.db.CreateUser(t.Context(), core.Registrant, core.NewUser{
		Email: name + "@Example.com", EmailKey: strings.ToLower(name) + "@example.com", Nickname: "<b>Evil", PasswordHash: "x",
	}))(t)
}

// queue adds a mail to the outbox.
func (e mailEnv) queue(t *testing.T, purpose core.Purpose, email string) {
	t.Helper()
	e.Exec(t, "INSERT INTO mails (purpose, email, email_key) VALUES ($1, $2, lower($2))", purpose, email)
}

// requestEmail requests a change of a user's e-mail address.
func (e mailEnv) requestEmail(t *testing.T, key, email string) {
	t.Helper()
	user := testenv.Must(e.db.UserByEmail(t.Context(), key))(t)
	testenv.Do(t, e.db.QueueEmail(t.Context(), core.VerifiedCredentials{Credentials: user}, email, strings.ToLower(email)))
}

// drain sends due mails, and returns those that arrived, in the order of their addresses.
func (e mailEnv) drain(t *testing.T, outbox *core.Outbox) []mailtest.Mail {
	t.Helper()
	before := len(e.Mails())
	testenv.Must(outbox.Drain(t.Context()))(t)
	arrived := e.Mails()[before:]
	slices.SortFunc(arrived, func(a, b mailtest.Mail) int { return strings.Compare(a.To, b.To) })
	return arrived
}

// drainAtOnce sends due mails from several cores.
func (e mailEnv) drainAtOnce(t *testing.T, cores int) {
	t.Helper()
	var group sync.WaitGroup
	for range cores {
		outbox := e.newOutbox(t)
		group.Go(func() { testenv.Is(t, testenv.ErrOf(outbox.Drain(t.Context())), nil, "Drain") })
	}
	group.Wait()
}

var tokenPattern = regexp.MustCompile(`#token=([\w-]{43})&`)

// format returns a mail with its token replaced. The database must have the hash of the token.
func (e mailEnv) format(t *testing.T, m mailtest.Mail) string {
	t.Helper()
	text := m.Text
	if found := tokenPattern.FindStringSubmatch(text); found != nil {
		text = strings.Replace(text, found[1], "T", 1)
		hash := sha256.Sum256([]byte(found[1]))
		e.HasCount(t, 1, "SELECT count(*) FROM mail_tokens WHERE hash = $1", hash[:])
	}
	return m.To + "\n" + m.Subject(t) + "\n" + text
}

func TestMailTexts(t *testing.T) {
	t.Parallel()
	o := newMailEnv(t)
	o.addUser(t, "Ann")
	o.addUser(t, "Ben")
	o.Exec(t, "UPDATE users SET verified = true WHERE email_key = 'ben@example.com'")
	for _, name := range []string{"ann", "dan"} {
		testenv.Do(t, o.db.QueueRegistration(t.Context(), core.NewUser{Email: name + "@example.com", EmailKey: name + "@example.com", Nickname: "<b>Evil"}))
	}
	o.queue(t, core.ForVerification, "Ann@Example.com")
	o.queue(t, core.ForVerification, "Ben@Example.com") // verified already
	o.queue(t, core.ForVerification, "ann@example.com") // spelled differently in the account
	o.queue(t, core.ForReset, "BEN@example.com")
	o.queue(t, core.ForReset, "nobody@example.com")
	o.queue(t, core.ForChange, "cat@example.com")
	o.queue(t, core.ForPassword, "fay@example.com")
	o.requestEmail(t, "ben@example.com", "Eve@example.com")
	o.requestEmail(t, "ann@example.com", "ANN@Example.com")
	o.requestEmail(t, "ann@example.com", "ben@example.com")

	var got []string
	for _, m := range o.drain(t, o.newOutbox(t)) {
		got = append(got, o.format(t, m))
	}
	slices.Sort(got)
	const signature = "\n\nSkins & More\nhttps://skins.example.org/\n"
	confirm := "%s\nSkins & More: Confirm your new e-mail address\nSomebody, most likely you, wants this e-mail address for an account at Skins & More that has another one. " +
		"To change it, open this link:\n\nhttps://skins.example.org/verify#token=T&email=%s\n\nThe link works once, until 2031-02-04 04:05 UTC. If it was not you who asked, you need do nothing." + signature
	owner := "\nSkins & More: You have an account already\nSomebody, perhaps you, has tried to use this e-mail address for another account at Skins & More. " +
		"There is one with it already, and nothing was changed.\n\nIf it was you, sign in; if you have forgotten your password, ask for a new one there. If it was not you, you need do nothing." + signature
	want := []string{
		fmt.Sprintf(confirm, "ANN@Example.com", "ANN%40Example.com"),
		"Ann@Example.com\nSkins & More: Verify your e-mail address\nPlease verify that this e-mail address of your account at Skins & More is yours. To do so, open this link:\n\n" +
			"https://skins.example.org/verify#token=T&email=Ann%40Example.com\n\nThe link works once, until 2031-02-04 04:05 UTC. If you have no account there, you need do nothing." + signature,
		"Ann@Example.com" + owner,
		"Ben@Example.com\nSkins & More: Choose a new password\nSomebody, most likely you, has asked for a new password for your account at Skins & More. To choose one, open this link:\n\n" +
			"https://skins.example.org/reset#token=T&email=Ben%40Example.com\n\nThe link works once, until 2031-02-03 05:05 UTC. If it was not you who asked, you need do nothing: your password stays as it is. " +
			"Do not pass the link on." + signature,
		"Ben@Example.com" + owner,
		fmt.Sprintf(confirm, "Eve@example.com", "Eve%40example.com"),
		"cat@example.com\nSkins & More: Your e-mail address was changed\nAn account at Skins & More had this e-mail address, and now has another one. From here on this address does not sign in to it.\n\n" +
			"If you did not change it, somebody else did who is signed in as you, or an administrator. Please tell those who run Skins & More at once." + signature,
		"dan@example.com\nSkins & More: Confirm your registration\nSomebody, most likely you, wants an account at Skins & More with this e-mail address. To make it, open this link and choose a password:\n\n" +
			"https://skins.example.org/verify?registration#token=T&email=dan%40example.com\n\nThe link works once, until 2031-02-04 04:05 UTC. " +
			"If it was not you who asked, you need do nothing, and there will be no account. Do not pass the link on." + signature,
		"fay@example.com\nSkins & More: Your password was changed\nThe password of your account at Skins & More was changed, or reset by a link in an e-mail. If it was you, you need do nothing.\n\n" +
			"If it was not you, ask for a new password at Skins & More now. The link to it goes to this address, and all sessions of the account end when you use it. " +
			"Then tell those who run Skins & More: administrators can change passwords, too." + signature,
	}
	cmptest.Same(t, got, want, "the mails")
	o.HasCount(t, 0, "SELECT count(*) FROM mails")
	o.HasCount(t, 5, "SELECT count(*) FROM mail_tokens")
}

// During an upgrade cores of a later release queue mails that this release cannot render. They wait
// for a core that can.
func TestMailsOfALaterReleaseWait(t *testing.T) {
	t.Parallel()
	o := newMailEnv(t)
	o.Exec(t, "ALTER TABLE mails DROP CONSTRAINT mails_purpose_check")
	o.queue(t, "birthday", "ann@example.com")
	o.queue(t, core.ForChange, "ben@example.com")
	arrived := o.drain(t, o.newOutbox(t))
	testenv.Check(t, len(arrived) == 1 && arrived[0].To == "ben@example.com", "%v arrived; want the other one", arrived)
	o.HasCount(t, 1, "SELECT count(*) FROM mails")
}

// However many cores send concurrently, each mail arrives once.
func TestSeveralCoresSendEachMailOnce(t *testing.T) {
	t.Parallel()
	o := newMailEnv(t)
	const mails = 60
	for i := range mails {
		o.queue(t, core.ForChange, fmt.Sprintf("user%d@example.com", i))
	}
	o.drainAtOnce(t, 3)
	arrived := map[string]int{}
	for _, m := range o.Mails() {
		arrived[m.To]++
	}
	for to, times := range arrived {
		testenv.Equal(t, times, 1, "mails to %s", to)
	}
	testenv.Equal(t, len(arrived), mails, "mails arrived")
}

// A core that dies during a delivery loses no mail: another core takes over.
func TestMailsOfADeadCoreAreSent(t *testing.T) {
	t.Parallel()
	o := newMailEnv(t)
	o.queue(t, core.ForChange, "ann@example.com")
	claimed := testenv.Must(o.db.ClaimMails(t.Context(), core.MailClaim{Purposes: []core.Purpose{core.ForChange}, Limit: 10, Lease: time.Minute}))(t)
	testenv.Equal(t, len(claimed), 1, "mails are claimed")
	outbox := o.newOutbox(t)
	testenv.Equal(t, len(o.drain(t, outbox)), 0, "mails arrived that another core has claimed")
	o.HasCount(t, 1, "SELECT count(*) FROM mails WHERE due_at BETWEEN now() + interval '50 s' AND now() + interval '60 s'")
	o.Exec(t, "UPDATE mails SET due_at = now() - interval '1 s'") // the clock may be set back meanwhile
	testenv.Equal(t, len(o.drain(t, outbox)), 1, "mails arrived")
}

// Nothing is lost while the mail server is unavailable.
func TestMailsWaitForTheServer(t *testing.T) {
	t.Parallel()
	o := newMailEnv(t)
	for i := range 10 {
		o.queue(t, core.ForChange, fmt.Sprintf("user%d@example.com", i))
	}
	outbox := o.newOutbox(t)
	o.Stop()
	dealt, err := outbox.Drain(t.Context())
	testenv.Check(t, err != nil && dealt <= 4, "without a server %d mails were tried, %v; want one round", dealt, err)
	o.HasCount(t, 10, "SELECT count(*) FROM mails WHERE due_at <= now() + interval '1 s'")
	o.Restart(t)
	o.Exec(t, "UPDATE mails SET due_at = now() - interval '1 s'") // the clock may be set back meanwhile
	testenv.Equal(t, len(o.drain(t, outbox)), 10, "mails arrived")
}

// rejectRecipient makes the server answer mails to an address with a reply.
func (e mailEnv) rejectRecipient(address, reply string) {
	e.SetReply(func(command string) string {
		if strings.HasPrefix(command, "RCPT") && strings.Contains(command, address) {
			return reply
		}
		return ""
	})
}

// A mail that the server rejects for now is retried with growing delays and the same Message-ID;
// other mails are not delayed.
func TestMailsAreTriedAgain(t *testing.T) {
	t.Parallel()
	o := newMailEnv(t)
	o.addUser(t, "ann")
	o.queue(t, core.ForReset, "ann@example.com")
	o.queue(t, core.ForChange, "ben@example.com")
	var id uuid.UUID
	testenv.Do(t, o.SQL.QueryRow(t.Context(), "SELECT id FROM mails WHERE purpose = 'reset'").Scan(&id))
	outbox := o.newOutbox(t)
	o.rejectRecipient("ann@Example.com", "450 4.2.0 ann@example.com is greylisted")
	if arrived := o.drain(t, outbox); len(arrived) != 1 || arrived[0].To != "ben@example.com" {
		t.Fatalf("%v arrived; want the other one", arrived)
	}
	due := func(from, to string) {
		t.Helper()
		o.HasCount(t, 1, "SELECT count(*) FROM mails WHERE due_at - now() BETWEEN $1::interval AND $2::interval", from, to)
	}
	due("10 s", "30 s")
	o.Exec(t, "UPDATE mails SET due_at = now(), queued_at = now() - interval '10 min'")
	o.drain(t, outbox)
	due("5 min", "10 min")
	o.Exec(t, "UPDATE mails SET due_at = now(), queued_at = now() - interval '10 h'")
	o.drain(t, outbox)
	due("29 min", "60 min")

	o.SetReply(nil)
	o.Exec(t, "UPDATE mails SET due_at = now() - interval '1 s'") // the clock may be set back meanwhile
	arrived := o.drain(t, outbox)
	if len(arrived) != 1 || arrived[0].Header.Get("Message-Id") != "<"+id.String()+"@skins.example.org>" {
		t.Fatalf("%v arrived; want the mail %s", arrived, id)
	}
	o.format(t, arrived[0])
	o.HasCount(t, 1, "SELECT count(*) FROM mails_sent WHERE purpose = 'reset'")
}

func TestMailsAreGivenUp(t *testing.T) {
	t.Parallel()
	o := newMailEnv(t)
	outbox := o.newOutbox(t)
	f := func(what, reply, age string, left int) {
		t.Helper()
		o.Exec(t, "DELETE FROM mails")
		o.queue(t, core.ForChange, "ann@example.com")
		o.Exec(t, "UPDATE mails SET queued_at = now() - $1::interval", age)
		o.rejectRecipient("ann@example.com", reply)
		testenv.Equal(t, len(o.drain(t, outbox)), 0, "%s: mails arrived", what)
		testenv.Equal(t, o.Count(t, "SELECT count(*) FROM mails"), left, "%s: mails are left", what)
	}
	f("no such user", "550 5.1.1 no ann@example.com", "0", 0)
	f("young", "450 4.2.0 no ann@example.com", "22 h", 1)
	f("about to be too old", "450 4.2.0 no ann@example.com", "23 h 59 min 50 s", 0)
	f("too old", "", "25 h", 0)
	testenv.Equal(t, strings.Count(o.log.String(), "an e-mail is given up"), 3, "mails given up by the log\n%s\n", o.log)
}

// An address gets only a few mails of a kind in an hour, however many requests and cores there are.
func TestMailsToAnAddressAreLimited(t *testing.T) {
	t.Parallel()
	o := newMailEnv(t)
	o.addUser(t, "ann")
	for range 8 {
		o.queue(t, core.ForReset, "ann@example.com")
		o.queue(t, core.ForReset, "ANN@example.com")
	}
	o.queue(t, core.ForVerification, "ann@Example.com")
	o.queue(t, core.ForChange, "ann@example.com")
	o.drainAtOnce(t, 2)
	testenv.Equal(t, len(o.Mails()), 5+2, "mails arrived, 5 of a kind, and one each of two others")
	o.HasCount(t, 0, "SELECT count(*) FROM mails")

	outbox := o.newOutbox(t)
	o.Advance(59 * time.Minute)
	o.queue(t, core.ForReset, "ann@example.com")
	testenv.Equal(t, len(o.drain(t, outbox)), 0, "mails arrived beyond the limit of the hour")
	o.Advance(2 * time.Minute)
	o.queue(t, core.ForReset, "ann@example.com")
	testenv.Equal(t, len(o.drain(t, outbox)), 1, "mails arrived after an hour")

	o.config.PerHour = 0
	unlimited := o.newOutbox(t)
	for range 10 {
		o.queue(t, core.ForChange, "ann@example.com")
	}
	testenv.Equal(t, len(o.drain(t, unlimited)), 10, "mails arrived")
}

// Tokens, registrations and counts are deleted once they are useless.
func TestMailsAreTrimmed(t *testing.T) {
	t.Parallel()
	o := newMailEnv(t)
	o.addUser(t, "ann")
	outbox := o.newOutbox(t)
	register := func(name string) {
		t.Helper()
		testenv.Do(t, o.db.QueueRegistration(t.Context(), core.NewUser{Email: name + "@example.com", EmailKey: name + "@example.com", Nickname: "N", PasswordHash: "x"}))
	}
	register("ann") // has an account
	register("ben")
	o.queue(t, core.ForReset, "ann@example.com")
	o.drain(t, outbox)
	register("cat") // its mail is queued
	trim := func(want, tokens, registrations, sent int) {
		t.Helper()
		testenv.Equal(t, testenv.Must(outbox.Trim(t.Context()))(t), want, "rows are trimmed")
		o.HasCount(t, tokens, "SELECT count(*) FROM mail_tokens")
		o.HasCount(t, registrations, "SELECT count(*) FROM registrations")
		o.HasCount(t, sent, "SELECT count(*) FROM mails_sent")
	}
	trim(1, 2, 2, 3) // the registration of an address that has an account
	o.Advance(3601 * time.Second)
	trim(1, 1, 2, 0) // the token that resets
	o.Advance(23 * time.Hour)
	trim(2, 0, 1, 0) // the token that confirms, and its registration
}

// Run sends queued mails, and lets a delivery end when it is stopped.
func TestOutboxRuns(t *testing.T) {
	t.Parallel()
	o := newMailEnv(t)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	outbox := o.newOutbox(t)
	o.SetReply(func(command string) string {
		if command == "DATA" {
			stop()
		}
		return ""
	})
	o.queue(t, core.ForChange, "ann@example.com")
	outbox.Run(ctx)
	testenv.Equal(t, len(o.Mails()), 1, "mails arrived")
	o.HasCount(t, 0, "SELECT count(*) FROM mails") // left ones would be sent again
}

// The log has one line when the server becomes unavailable, and one when it is available again.
func TestOutboxLogsServerOutage(t *testing.T) {
	t.Parallel()
	o := newMailEnv(t)
	o.Stop()
	o.queue(t, core.ForChange, "ann@example.com")
	outbox := o.newOutbox(t)
	t.Cleanup(func() { // once the outbox has ended
		testenv.Equal(t, strings.Count(o.log.String(), "\n"), 2, "lines of the log\n%s\n", o.log)
	})
	coretest.Background(t, outbox.Run)
	await := func(text string) {
		t.Helper()
		testenv.Eventually(t, "the log has "+text, func() bool { return strings.Contains(o.log.String(), text) })
	}
	await("e-mail cannot be sent, it stays queued")
	o.Restart(t)
	await("e-mail is sent again")
	o.Await(t, 1)
}
