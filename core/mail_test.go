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
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/core/mail"
	"github.com/veneer-skins/veneer/core/mail/mailtest"
	"github.com/veneer-skins/veneer/core/postgres"
	"github.com/veneer-skins/veneer/core/postgres/postgrestest"
)

// mailEnv is a site that sends e-mail, with its mail server.
type mailEnv struct {
	*mailtest.Server
	conn   *pgx.Conn
	db     *postgres.DB
	now    *atomic.Int64 // Unix time, in seconds
	config core.MailConfig
	log    *logBuffer
}

// logBuffer is a log for concurrent writers.
type logBuffer struct {
	mu    sync.Mutex
	lines bytes.Buffer
}

func (j *logBuffer) Write(line []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.lines.Write(line)
}

func (j *logBuffer) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.lines.String()
}

func newMailEnv(t *testing.T) mailEnv {
	t.Helper()
	address := postgrestest.URL(t)
	o := mailEnv{
		mailtest.Start(t, mailtest.Options{StartTLS: true, User: "operator", Password: "hunter2"}),
		postgrestest.Conn(t, address), postgrestest.Connect(t, address), new(atomic.Int64),
		core.MailConfig{Site: "Skins & More", URL: "https://skins.example.org/", Verification: 24 * time.Hour, Reset: time.Hour, PerHour: 5, RetryFor: 24 * time.Hour},
		&logBuffer{},
	}
	o.now.Store(time.Date(2031, 2, 3, 4, 5, 6, 0, time.UTC).Unix())
	t.Cleanup(func() {
		for _, secret := range []string{"@example.com", "token=", "hunter2"} {
			if strings.Contains(o.log.String(), secret) {
				t.Errorf("the log tells %q:\n%s", secret, o.log)
			}
		}
	})
	return o
}

// newOutbox returns the outbox of another core.
func (o mailEnv) newOutbox(t *testing.T) *core.Outbox {
	t.Helper()
	const timeout = 10 * time.Second
	client, err := mail.New(mail.Config{
		Host: o.Host, Port: o.Port, TLS: "starttls", CA: o.CA, User: "operator", Password: "hunter2", From: "noreply@skins.example.org", Timeout: timeout,
	})
	if err != nil {
		t.Fatal(err)
	}
	return core.NewOutbox(o.db, mail.NewSender(client, o.config), o.config, timeout, slog.New(slog.NewTextHandler(o.log, nil)), o.clock)
}

func (o mailEnv) clock() time.Time { return time.Unix(o.now.Load(), 0) }

func (o mailEnv) exec(t *testing.T, sql string, args ...any) {
	t.Helper()
	if _, err := o.conn.Exec(t.Context(), sql, args...); err != nil {
		t.Fatal(err)
	}
}

func (o mailEnv) count(t *testing.T, sql string, args ...any) (n int) {
	t.Helper()
	if err := o.conn.QueryRow(t.Context(), sql, args...).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func (o mailEnv) addUser(t *testing.T, name string) core.User {
	t.Helper()
	user, err := o.db.CreateUser(t.Context(), core.NewUser{
		Email: name + "@Example.com", EmailKey: strings.ToLower(name) + "@example.com", Nickname: "<b>Evil", PasswordHash: "x",
	})
	if err != nil {
		t.Fatal(err)
	}
	return user
}

// queue adds a mail to the outbox.
func (o mailEnv) queue(t *testing.T, purpose core.Purpose, email string) {
	t.Helper()
	o.exec(t, "INSERT INTO mails (purpose, email, email_key) VALUES ($1, $2, lower($2))", purpose, email)
}

// requestEmail requests a change of a user's e-mail address.
func (o mailEnv) requestEmail(t *testing.T, key, email string) {
	t.Helper()
	user, err := o.db.UserByEmail(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	if err := o.db.QueueEmail(t.Context(), core.VerifiedCredentials{Credentials: user}, email, strings.ToLower(email)); err != nil {
		t.Fatal(err)
	}
}

// drain sends due mails, and returns those that arrived, in the order of their addresses.
func (o mailEnv) drain(t *testing.T, outbox *core.Outbox) []mailtest.Mail {
	t.Helper()
	before := len(o.Mails())
	if _, err := outbox.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	arrived := o.Mails()[before:]
	slices.SortFunc(arrived, func(a, b mailtest.Mail) int { return strings.Compare(a.To, b.To) })
	return arrived
}

var tokenPattern = regexp.MustCompile(`#token=([\w-]{43})\n`)

// format returns a mail with its token replaced. The database must have the hash of the token.
func (o mailEnv) format(t *testing.T, m mailtest.Mail) string {
	t.Helper()
	text := m.Text
	if found := tokenPattern.FindStringSubmatch(text); found != nil {
		text = strings.Replace(text, found[1], "T", 1)
		hash := sha256.Sum256([]byte(found[1]))
		if n := o.count(t, "SELECT count(*) FROM mail_tokens WHERE hash = $1", hash[:]); n != 1 {
			t.Errorf("of the token in the mail to %s there are %d hashes", m.To, n)
		}
	}
	return m.To + "\n" + m.Subject(t) + "\n" + text
}

func TestMailTexts(t *testing.T) {
	t.Parallel()
	o := newMailEnv(t)
	o.addUser(t, "Ann")
	o.addUser(t, "Ben")
	o.exec(t, "UPDATE users SET verified = true WHERE email_key = 'ben@example.com'")
	for _, name := range []string{"ann", "dan"} {
		if err := o.db.QueueRegistration(t.Context(), core.NewUser{Email: name + "@example.com", EmailKey: name + "@example.com", Nickname: "<b>Evil"}); err != nil {
			t.Fatal(err)
		}
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
	confirm := "\nSkins & More: Confirm your new e-mail address\nSomebody, most likely you, wants this e-mail address for an account at Skins & More that has another one. " +
		"To change it, open this link:\n\nhttps://skins.example.org/verify#token=T\n\nThe link works once, until 2031-02-04 04:05 UTC. If it was not you who asked, you need do nothing." + signature
	owner := "\nSkins & More: You have an account already\nSomebody, perhaps you, has tried to use this e-mail address for another account at Skins & More. " +
		"There is one with it already, and nothing was changed.\n\nIf it was you, sign in; if you have forgotten your password, ask for a new one there. If it was not you, you need do nothing." + signature
	want := []string{
		"ANN@Example.com" + confirm,
		"Ann@Example.com\nSkins & More: Verify your e-mail address\nPlease verify that this e-mail address of your account at Skins & More is yours. To do so, open this link:\n\n" +
			"https://skins.example.org/verify#token=T\n\nThe link works once, until 2031-02-04 04:05 UTC. If you have no account there, you need do nothing." + signature,
		"Ann@Example.com" + owner,
		"Ben@Example.com\nSkins & More: Choose a new password\nSomebody, most likely you, has asked for a new password for your account at Skins & More. To choose one, open this link:\n\n" +
			"https://skins.example.org/reset#token=T\n\nThe link works once, until 2031-02-03 05:05 UTC. If it was not you who asked, you need do nothing: your password stays as it is. " +
			"Do not pass the link on." + signature,
		"Ben@Example.com" + owner,
		"Eve@example.com" + confirm,
		"cat@example.com\nSkins & More: Your e-mail address was changed\nAn account at Skins & More had this e-mail address, and now has another one. From here on this address does not sign in to it.\n\n" +
			"If you did not change it, somebody else did who is signed in as you, or an administrator. Please tell those who run Skins & More at once." + signature,
		"dan@example.com\nSkins & More: Confirm your registration\nSomebody, most likely you, wants an account at Skins & More with this e-mail address. To make it, open this link and choose a password:\n\n" +
			"https://skins.example.org/verify?registration#token=T\n\nThe link works once, until 2031-02-04 04:05 UTC. " +
			"If it was not you who asked, you need do nothing, and there will be no account. Do not pass the link on." + signature,
		"fay@example.com\nSkins & More: Your password was changed\nThe password of your account at Skins & More was changed, or reset by a link in an e-mail. If it was you, you need do nothing.\n\n" +
			"If it was not you, ask for a new password at Skins & More now. The link to it goes to this address, and all sessions of the account end when you use it. " +
			"Then tell those who run Skins & More: administrators can change passwords, too." + signature,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the mails (-want +got):\n%s", diff)
	}
	if n := o.count(t, "SELECT count(*) FROM mails"); n != 0 {
		t.Errorf("%d mails are left", n)
	}
	if n := o.count(t, "SELECT count(*) FROM mail_tokens"); n != 5 {
		t.Errorf("there are %d tokens; want 5", n)
	}
}

// During an upgrade cores of a later release queue mails that this release cannot render. They wait
// for a core that can.
func TestMailsOfALaterReleaseWait(t *testing.T) {
	t.Parallel()
	o := newMailEnv(t)
	o.exec(t, "ALTER TABLE mails DROP CONSTRAINT mails_purpose_check")
	o.queue(t, "birthday", "ann@example.com")
	o.queue(t, core.ForChange, "ben@example.com")
	if arrived := o.drain(t, o.newOutbox(t)); len(arrived) != 1 || arrived[0].To != "ben@example.com" {
		t.Errorf("%v arrived; want the other one", arrived)
	}
	if n := o.count(t, "SELECT count(*) FROM mails"); n != 1 {
		t.Errorf("%d mails wait; want the one of the later release", n)
	}
}

// However many cores send concurrently, each mail arrives once.
func TestSeveralCoresSendEachMailOnce(t *testing.T) {
	t.Parallel()
	o := newMailEnv(t)
	const mails = 60
	for i := range mails {
		o.queue(t, core.ForChange, fmt.Sprintf("user%d@example.com", i))
	}
	var cores sync.WaitGroup
	for range 3 {
		outbox := o.newOutbox(t)
		cores.Go(func() {
			if _, err := outbox.Drain(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	cores.Wait()
	arrived := map[string]int{}
	for _, m := range o.Mails() {
		arrived[m.To]++
	}
	for to, times := range arrived {
		if times != 1 {
			t.Errorf("%s got %d mails", to, times)
		}
	}
	if len(arrived) != mails {
		t.Errorf("%d mails arrived; want %d", len(arrived), mails)
	}
}

// A core that dies during a delivery loses no mail: another core takes over.
func TestMailsOfADeadCoreAreSent(t *testing.T) {
	t.Parallel()
	o := newMailEnv(t)
	o.queue(t, core.ForChange, "ann@example.com")
	if claimed, err := o.db.ClaimMails(t.Context(), []core.Purpose{core.ForChange}, 10, time.Minute); err != nil || len(claimed) != 1 {
		t.Fatalf("claimed %v, %v; want one", claimed, err)
	}
	outbox := o.newOutbox(t)
	if arrived := o.drain(t, outbox); len(arrived) != 0 {
		t.Errorf("%d mails arrived that another core has claimed", len(arrived))
	}
	if n := o.count(t, "SELECT count(*) FROM mails WHERE due_at BETWEEN now() + interval '50 s' AND now() + interval '60 s'"); n != 1 {
		t.Error("the mail is not held for the lease")
	}
	o.exec(t, "UPDATE mails SET due_at = now() - interval '1 s'") // the clock may be set back meanwhile
	if arrived := o.drain(t, outbox); len(arrived) != 1 {
		t.Errorf("%d mails arrived; want 1", len(arrived))
	}
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
	if dealt, err := outbox.Drain(t.Context()); err == nil || dealt > 4 {
		t.Errorf("without a server %d mails were tried, %v; want one round, and an error", dealt, err)
	}
	if n := o.count(t, "SELECT count(*) FROM mails WHERE due_at <= now() + interval '1 s'"); n != 10 {
		t.Errorf("%d mails are due soon; want all 10", n)
	}
	o.Restart(t)
	o.exec(t, "UPDATE mails SET due_at = now() - interval '1 s'") // the clock may be set back meanwhile
	if arrived := o.drain(t, outbox); len(arrived) != 10 {
		t.Errorf("%d mails arrived; want 10", len(arrived))
	}
}

// rejectRecipient makes the server answer mails to an address with a reply.
func (o mailEnv) rejectRecipient(address, reply string) {
	o.SetReply(func(command string) string {
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
	if err := o.conn.QueryRow(t.Context(), "SELECT id FROM mails WHERE purpose = 'reset'").Scan(&id); err != nil {
		t.Fatal(err)
	}
	outbox := o.newOutbox(t)
	o.rejectRecipient("ann@Example.com", "450 4.2.0 ann@example.com is greylisted")
	if arrived := o.drain(t, outbox); len(arrived) != 1 || arrived[0].To != "ben@example.com" {
		t.Fatalf("%v arrived; want the other one", arrived)
	}
	due := func(from, to string) {
		t.Helper()
		if n := o.count(t, "SELECT count(*) FROM mails WHERE due_at BETWEEN now() + $1::interval AND now() + $2::interval", from, to); n != 1 {
			t.Errorf("the mail is not due in %s to %s", from, to)
		}
	}
	due("10 s", "30 s")
	o.exec(t, "UPDATE mails SET due_at = now(), queued_at = now() - interval '10 min'")
	o.drain(t, outbox)
	due("5 min", "10 min")
	o.exec(t, "UPDATE mails SET due_at = now(), queued_at = now() - interval '10 h'")
	o.drain(t, outbox)
	due("29 min", "60 min")

	o.SetReply(nil)
	o.exec(t, "UPDATE mails SET due_at = now() - interval '1 s'") // the clock may be set back meanwhile
	arrived := o.drain(t, outbox)
	if len(arrived) != 1 || arrived[0].Header.Get("Message-Id") != "<"+id.String()+"@skins.example.org>" {
		t.Fatalf("%v arrived; want the mail %s", arrived, id)
	}
	o.format(t, arrived[0])
	if n := o.count(t, "SELECT count(*) FROM mails_sent WHERE purpose = 'reset'"); n != 1 {
		t.Errorf("a mail that was tried again counts %d times", n)
	}
}

func TestMailsAreGivenUp(t *testing.T) {
	t.Parallel()
	o := newMailEnv(t)
	outbox := o.newOutbox(t)
	f := func(what, reply, age string, left int) {
		t.Helper()
		o.exec(t, "DELETE FROM mails")
		o.queue(t, core.ForChange, "ann@example.com")
		o.exec(t, "UPDATE mails SET queued_at = now() - $1::interval", age)
		o.rejectRecipient("ann@example.com", reply)
		if arrived := o.drain(t, outbox); len(arrived) != 0 {
			t.Errorf("%s: it arrived", what)
		}
		if n := o.count(t, "SELECT count(*) FROM mails"); n != left {
			t.Errorf("%s: %d mails are left; want %d", what, n, left)
		}
	}
	f("no such user", "550 5.1.1 no ann@example.com", "0", 0)
	f("young", "450 4.2.0 no ann@example.com", "22 h", 1)
	f("about to be too old", "450 4.2.0 no ann@example.com", "23 h 59 min 50 s", 0)
	f("too old", "", "25 h", 0)
	if n := strings.Count(o.log.String(), "an e-mail is given up"); n != 3 {
		t.Errorf("the log tells of %d mails given up; want 3:\n%s", n, o.log)
	}
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
	var cores sync.WaitGroup
	for range 2 {
		outbox := o.newOutbox(t)
		cores.Go(func() {
			if _, err := outbox.Drain(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	cores.Wait()
	if n := len(o.Mails()); n != 5+2 {
		t.Errorf("%d mails arrived; want 5 of a kind, and one each of two others", n)
	}
	if n := o.count(t, "SELECT count(*) FROM mails"); n != 0 {
		t.Errorf("%d mails are left", n)
	}

	outbox := o.newOutbox(t)
	o.now.Add(59 * 60)
	o.queue(t, core.ForReset, "ann@example.com")
	if arrived := o.drain(t, outbox); len(arrived) != 0 {
		t.Error("a sixth mail arrived within the hour")
	}
	o.now.Add(2 * 60)
	o.queue(t, core.ForReset, "ann@example.com")
	if arrived := o.drain(t, outbox); len(arrived) != 1 {
		t.Error("after an hour no mail arrived")
	}

	o.config.PerHour = 0
	unlimited := o.newOutbox(t)
	for range 10 {
		o.queue(t, core.ForChange, "ann@example.com")
	}
	if arrived := o.drain(t, unlimited); len(arrived) != 10 {
		t.Errorf("%d mails arrived; want 10", len(arrived))
	}
}

// Tokens, registrations and counts are deleted once they are useless.
func TestMailsAreTrimmed(t *testing.T) {
	t.Parallel()
	o := newMailEnv(t)
	o.addUser(t, "ann")
	outbox := o.newOutbox(t)
	register := func(name string) {
		t.Helper()
		if err := o.db.QueueRegistration(t.Context(), core.NewUser{Email: name + "@example.com", EmailKey: name + "@example.com", Nickname: "N", PasswordHash: "x"}); err != nil {
			t.Fatal(err)
		}
	}
	register("ann") // has an account
	register("ben")
	o.queue(t, core.ForReset, "ann@example.com")
	o.drain(t, outbox)
	register("cat") // its mail is queued
	trim := func(want, tokens, registrations, sent int) {
		t.Helper()
		if n, err := outbox.Trim(t.Context()); n != want || err != nil {
			t.Errorf("%d trimmed, %v; want %d", n, err, want)
		}
		got := [3]int{o.count(t, "SELECT count(*) FROM mail_tokens"), o.count(t, "SELECT count(*) FROM registrations"), o.count(t, "SELECT count(*) FROM mails_sent")}
		if got != [3]int{tokens, registrations, sent} {
			t.Errorf("tokens, registrations and counts are %v; want %d, %d, %d", got, tokens, registrations, sent)
		}
	}
	trim(1, 2, 2, 3) // the registration of an address that has an account
	o.now.Add(3601)
	trim(1, 1, 2, 0) // the token that resets
	o.now.Add(23 * 3600)
	trim(2, 0, 1, 0) // the token that confirms, and its registration
}

// Run sends queued mails, and lets a delivery end when it is stopped.
func TestOutboxRuns(t *testing.T) {
	t.Parallel()
	o := newMailEnv(t)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	outbox, ended := o.newOutbox(t), make(chan struct{})
	o.SetReply(func(command string) string {
		if command == "DATA" {
			stop()
		}
		return ""
	})
	o.queue(t, core.ForChange, "ann@example.com")
	go func() {
		outbox.Run(ctx)
		close(ended)
	}()
	<-ended
	if n := len(o.Mails()); n != 1 {
		t.Errorf("%d mails arrived; want 1", n)
	}
	if n := o.count(t, "SELECT count(*) FROM mails"); n != 0 {
		t.Errorf("%d mails are left, and would be sent again", n)
	}
}

// The log has one line when the server becomes unavailable, and one when it is available again.
func TestOutboxLogsServerOutage(t *testing.T) {
	t.Parallel()
	o := newMailEnv(t)
	o.Stop()
	o.queue(t, core.ForChange, "ann@example.com")
	outbox := o.newOutbox(t)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		outbox.Run(ctx)
		close(ended)
	}()
	await := func(text string) {
		t.Helper()
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for !strings.Contains(o.log.String(), text) {
			select {
			case <-tick.C:
			case <-ended:
				t.Fatal("it ended by itself")
			}
		}
	}
	await("e-mail cannot be sent, it stays queued")
	o.Restart(t)
	await("e-mail is sent again")
	o.Await(t, 1)
	stop()
	<-ended
	if n := strings.Count(o.log.String(), "\n"); n != 2 {
		t.Errorf("the log has %d lines; want 2:\n%s", n, o.log)
	}
}
