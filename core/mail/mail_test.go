package mail_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/veneer-skins/veneer/core/mail"
	"github.com/veneer-skins/veneer/core/mail/mailtest"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/testenv"
	"github.com/veneer-skins/veneer/shared/testenv/cmptest"
)

// email is the e-mail that the tests send.
var email = mail.Message{
	ID: uuid.MustParse("1f7f3f0e-6d3c-4c64-9a52-6f0a3a1f2b7c"), To: "Zoe+Skins@example.com", Subject: "Skins & More – Grüße: a subject that is too long for one line of a header",
	Text: "A line.\n.\n.hidden\n\nhttps://skins.example.org/reset#token=" + strings.Repeat("0123456789", 10) + "\nGrüße\n",
}

// config returns the settings for a test server.
func config(s *mailtest.Server, tls string) mail.Config {
	return mail.Config{Host: s.Host, Port: s.Port, TLS: tls, CA: s.CA, From: "Skïns <noreply@skins.example.org>", Timeout: 10 * time.Second}
}

func newClient(t *testing.T, c mail.Config) *mail.Client {
	t.Helper()
	return testenv.Must(mail.New(c))(t)
}

// wantKind checks the kind of an error, which must contain nothing of the e-mail.
func wantKind(t *testing.T, what string, err error, want fault.Kind) {
	t.Helper()
	if err == nil || fault.KindOf(err) != want {
		t.Errorf("%s: %v; want a %s fault", what, err, want)
		return
	}
	for _, secret := range []string{"oe+", "example.com", "token", "0123456789", "hunter2", "operator"} {
		testenv.Check(t, !strings.Contains(err.Error(), secret), "%s: the error contains %q: %v", what, secret, err)
	}
}

// replyTo has a server send a reply to a command; the empty command is the connection.
func replyTo(s *mailtest.Server, command, reply string) {
	s.SetReply(func(received string) string {
		if received == command || command != "" && strings.HasPrefix(received, command) {
			return reply
		}
		return ""
	})
}

func TestDeliver(t *testing.T) {
	t.Parallel()

	f := func(name, mode string, options mailtest.Options) {
		t.Helper()
		s := mailtest.Start(t, options)
		c := config(s, mode)
		c.User, c.Password = options.User, options.Password
		testenv.Do(t, newClient(t, c).Deliver(t.Context(), email))
		got := s.Await(t, 1)[0]
		testenv.Check(t, got.From == "noreply@skins.example.org" && got.To == email.To && got.Text == email.Text,
			"%s: from %s to %s: %q", name, got.From, got.To, got.Text)
		testenv.Equal(t, got.Secure, mode != "none", "%s: over TLS", name)
		testenv.Equal(t, testenv.Must(got.Header.AddressList("From"))(t)[0].Name, "Skïns", "%s: the sender", name)
		testenv.Equal(t, got.Subject(t), email.Subject, "%s: the subject", name)
		testenv.Is(t, testenv.ErrOf(got.Header.Date()), nil, "%s: the date", name)
		want := map[string]string{
			"To": "<" + email.To + ">", "Message-Id": "<1f7f3f0e-6d3c-4c64-9a52-6f0a3a1f2b7c@skins.example.org>", "Auto-Submitted": "auto-generated",
			"X-Auto-Response-Suppress": "All", "Mime-Version": "1.0", "Content-Type": "text/plain; charset=UTF-8", "Content-Transfer-Encoding": "quoted-printable",
		}
		headers := map[string]string{}
		for name := range got.Header {
			if name != "From" && name != "Subject" && name != "Date" {
				headers[name] = got.Header.Get(name)
			}
		}
		cmptest.Same(t, headers, want, "%s: the other headers", name)
		testenv.Equal(t, s.Commands()[0], "EHLO skins.example.org", "%s: the greeting", name)
	}

	f("in the clear", "none", mailtest.Options{})
	f("STARTTLS", "starttls", mailtest.Options{StartTLS: true})
	f("TLS", "tls", mailtest.Options{ImplicitTLS: true})
	f("STARTTLS and a log-in", "starttls", mailtest.Options{StartTLS: true, User: "operator@example.net", Password: "hunter2"})
	f("TLS and a log-in", "tls", mailtest.Options{ImplicitTLS: true, User: "operator", Password: "hunter2", Auth: "LOGIN"})
}

// Without TLS, a server that requires it gets no e-mail. A server without TLS or with an invalid
// certificate gets neither an e-mail nor a password.
func TestNothingIsSentInTheClear(t *testing.T) {
	t.Parallel()

	f := func(name, mode string, options mailtest.Options, trusted bool) {
		t.Helper()
		s := mailtest.Start(t, options)
		c := config(s, mode)
		if !trusted {
			c.CA = ""
		}
		if mode != "none" {
			c.User, c.Password = "operator", "hunter2"
		}
		wantKind(t, name, newClient(t, c).Deliver(t.Context(), email), fault.Unavailable)
		testenv.Equal(t, len(s.Mails()), 0, "%s: the number of mails that have arrived", name)
		for _, command := range s.Commands() {
			testenv.Check(t, !strings.HasPrefix(command, "AUTH") && !strings.HasPrefix(command, "RCPT"),
				"%s: the server got %s", name, command)
		}
	}

	f("the server demands TLS", "none", mailtest.Options{StartTLS: true}, true)
	f("the server has no TLS", "starttls", mailtest.Options{User: "operator", Password: "hunter2"}, true)
	f("an unknown certificate", "starttls", mailtest.Options{StartTLS: true}, false)
	f("an unknown certificate from the first byte", "tls", mailtest.Options{ImplicitTLS: true}, false)
}

func TestServerErrors(t *testing.T) {
	t.Parallel()

	s := mailtest.Start(t, mailtest.Options{})
	client := newClient(t, config(s, "none"))
	f := func(command, reply string, want fault.Kind) {
		t.Helper()
		replyTo(s, command, reply)
		wantKind(t, command+" "+reply, client.Deliver(t.Context(), email), want)
	}

	f("", "554 5.7.1 Zoe+Skins@example.com is not welcome", fault.Unavailable)
	f("", "421 busy", fault.Unavailable)
	f("EHLO", "500 what", fault.Unavailable)
	f("MAIL", "550 5.7.1 sender rejected for Zoe+Skins@example.com", fault.Unavailable)
	f("MAIL", "452 4.3.1 no room", fault.Unavailable)
	f("RCPT", "550 5.1.1 <Zoe+Skins@example.com>: no such user", fault.Refused)
	f("RCPT", "450 4.2.0 <Zoe+Skins@example.com>: come again", fault.Internal)
	f("RCPT", "421 4.3.2 Zoe+Skins@example.com: shutting down", fault.Unavailable)
	f("DATA", "554 5.5.1 no recipients", fault.Refused)
	f("DATA", "451 4.3.0 not now", fault.Internal)
	f(".", "550 5.7.1 token=0123456789 looks like spam", fault.Refused)
	f(".", "451 4.7.1 greylisted", fault.Internal)
	f(".", "nonsense", fault.Unavailable)
	testenv.Equal(t, len(s.Mails()), 0, "the number of mails that have arrived")

	// An error after the e-mail was accepted is ignored.
	for _, command := range []string{"QUIT", "RSET"} {
		replyTo(s, command, "451 no")
		testenv.Is(t, client.Deliver(t.Context(), email), nil, "%s fails", command)
	}

	withAuth := mailtest.Start(t, mailtest.Options{StartTLS: true, User: "operator", Password: "another"})
	c := config(withAuth, "starttls")
	c.User, c.Password = "operator", "hunter2"
	wantKind(t, "a wrong password", newClient(t, c).Deliver(t.Context(), email), fault.Unavailable)
	c.User, c.Password = "", ""
	wantKind(t, "no password", newClient(t, c).Deliver(t.Context(), email), fault.Unavailable)
}

// A server that hangs at any command, or is down, makes the delivery fail in time.
func TestSlowAndAbsentServers(t *testing.T) {
	t.Parallel()

	s := mailtest.Start(t, mailtest.Options{})
	c := config(s, "none")
	c.Timeout = 200 * time.Millisecond
	for _, command := range []string{"", "EHLO", "MAIL", "RCPT", "DATA", "."} {
		replyTo(s, command, mailtest.Hang)
		wantKind(t, "hangs at "+command, newClient(t, c).Deliver(t.Context(), email), fault.Unavailable)
	}

	c.Timeout = time.Hour
	hanging := make(chan struct{})
	s.SetReply(func(received string) string {
		if strings.HasPrefix(received, "RCPT") {
			close(hanging)
			return mailtest.Hang
		}
		return ""
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-hanging
		cancel()
	}()
	wantKind(t, "the context ends", newClient(t, c).Deliver(ctx, email), fault.Unavailable)

	tlsOnly := mailtest.Start(t, mailtest.Options{ImplicitTLS: true})
	slow := config(tlsOnly, "none") // client and server wait for each other
	slow.Timeout = 200 * time.Millisecond
	wantKind(t, "TLS is not expected", newClient(t, slow).Deliver(t.Context(), email), fault.Unavailable)

	s.Stop()
	wantKind(t, "gone", newClient(t, c).Deliver(t.Context(), email), fault.Unavailable)
	s.SetReply(nil)
	s.Restart(t)
	testenv.Is(t, newClient(t, c).Deliver(t.Context(), email), nil, "back again")
}

// Line breaks in addresses and subjects are rejected before anything is sent.
func TestHeadersCannotBeInjected(t *testing.T) {
	t.Parallel()

	s := mailtest.Start(t, mailtest.Options{})
	client := newClient(t, config(s, "none"))
	refuses := func(change func(*mail.Message)) {
		t.Helper()
		injected := email
		change(&injected)
		err := client.Deliver(t.Context(), injected)
		testenv.Equal(t, fault.KindOf(err), fault.Refused, "to %q about %q: %v: the kind", injected.To, injected.Subject, err)
	}
	for _, address := range []string{
		"a@example.com\r\nBcc: b@example.com", "a@example.com\nBcc: b@example.com", "a@example.com>\r\nRCPT TO:<b@example.com", "a@example.com, b@example.com",
		"A <a@example.com>", "", "a@example.com\r", "<a@example.com> SIZE=1",
	} {
		refuses(func(m *mail.Message) { m.To = address })
	}
	refuses(func(m *mail.Message) { m.Subject = "A\r\nBcc: b@example.com" })
	testenv.Equal(t, len(s.Commands()), 0, "the number of commands, %q,", s.Commands())
}

func TestNewNamesTheSetting(t *testing.T) {
	t.Parallel()

	good := mail.Config{Host: "smtp.example.org", TLS: "starttls", From: "noreply@example.org", Timeout: time.Second}
	testenv.Must(mail.New(good))(t)
	none := filepath.Join(t.TempDir(), "none.pem")
	testenv.Do(t, os.WriteFile(none, []byte("no certificate"), 0o600))
	f := func(name string, change func(*mail.Config)) {
		t.Helper()
		c := good
		change(&c)
		if _, err := mail.New(c); err == nil || !strings.HasPrefix(err.Error(), name) || strings.ContainsAny(err.Error(), "\n") || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%+v: %v; want one line that names %s", c, err, name)
		}
	}
	f("HOST", func(c *mail.Config) { c.Host = "smtp.example.org:25" })
	f("HOST", func(c *mail.Config) { c.Host = "smtp://example.org" })
	f("FROM", func(c *mail.Config) { c.From = "" })
	f("FROM", func(c *mail.Config) { c.From = "noreply" })
	f("FROM", func(c *mail.Config) { c.From = "a@example.org\r\nBcc: b@example.org" })
	f("HOST", func(c *mail.Config) { c.Host = "" })
	f("TLS", func(c *mail.Config) { c.User, c.Password, c.TLS = "operator", "hunter2", "none" })
	f("CA", func(c *mail.Config) { c.CA = "/nowhere/ca.pem" })
	f("CA", func(c *mail.Config) { c.CA = none })
}
