package api_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/core/mail"
	"github.com/veneer-skins/veneer/core/mail/mailtest"
	"github.com/veneer-skins/veneer/core/postgres/postgrestest"
)

// newMailSite returns a site that sends its e-mail to the returned server.
func newMailSite(t *testing.T, environ ...string) (*testSite, *mailtest.Server) {
	t.Helper()
	server := mailtest.Start(t, mailtest.Options{})
	s := newSite(t, append(environ, fmt.Sprintf("SMTP_PORT=%d", server.Port))...)
	client, err := mail.New(s.setup.SMTP)
	if err != nil {
		t.Fatal(err)
	}
	outbox := core.NewOutbox(postgrestest.Connect(t, s.url), mail.NewSender(client, s.setup.Mail), s.setup.Mail, s.setup.SMTP.Timeout, slog.New(slog.DiscardHandler), s.clock)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		outbox.Run(ctx)
		close(ended)
	}()
	t.Cleanup(func() { stop(); <-ended })
	return s, server
}

var linkPattern = regexp.MustCompile(`https://skins\.example\.org/(\w+)(?:\?registration)?#token=([\w-]{43})\n`)

// tokenIn returns the token of the link to a page in an e-mail.
func tokenIn(t *testing.T, m mailtest.Mail, to, page string) string {
	t.Helper()
	found := linkPattern.FindStringSubmatch(m.Text)
	if m.To != to || found == nil || found[1] != page {
		t.Fatalf("a mail to %s says %q; want one to %s with a link to /%s", m.To, m.Text, to, page)
	}
	return found[2]
}

const emptySuccess = `{"code":0,"message":"<text>"}`

func TestVerification(t *testing.T) {
	t.Parallel()
	s, server := newMailSite(t, "MAIL_PER_HOUR=2")
	c := s.serve(t).signUp(t)
	c.send(t, "POST", "/api/user/verification", body{}).is(t, 200, emptySuccess)
	token := tokenIn(t, server.Await(t, 1)[0], "user1@example.com", "verify")

	anonymous := s.serve(t)
	for _, wrong := range []string{"", "x", strings.ToUpper(token), token + "=", strings.Repeat("x", 10000)} {
		anonymous.post(t, "/api/auth/verify", `{"token":"`+wrong+`"}`).isError(t, 404, 3)
	}
	anonymous.post(t, "/api/auth/verify", `{}`).isError(t, 422, 4, "token")
	anonymous.post(t, "/api/auth/password", `{"token":"`+token+`","password":"correct horse"}`).isError(t, 404, 3) // the token has another purpose
	if got := c.get(t, "/api/user").field(t, "verified"); got != "false" {
		t.Errorf("after refusals the address is verified: %s", got)
	}
	anonymous.send(t, "POST", "/api/auth/verify", encodeForm("token=+%0D%0A"+token+"%0A")).is(t, 200, emptySuccess)
	if got := c.get(t, "/api/user").field(t, "verified"); got != "true" {
		t.Errorf("the address is verified: %s", got)
	}
	anonymous.post(t, "/api/auth/verify", `{"token":"`+token+`"}`).isError(t, 404, 3)
	c.send(t, "POST", "/api/user/verification", body{}).isError(t, 403, 1)

	// The number of e-mails an hour is limited across all cores, and a link expires after a day.
	s.exec(t, "UPDATE users SET verified = false")
	c.send(t, "POST", "/api/user/verification", body{}).is(t, 200, emptySuccess)
	otherServer := s.serve(t).as(c.token)
	a := otherServer.send(t, "POST", "/api/user/verification", body{})
	a.isError(t, 429, 8)
	if a.headerValue("Retry-After") == "" {
		t.Error("there is no Retry-After")
	}
	token = tokenIn(t, server.Await(t, 2)[1], "user1@example.com", "verify")
	s.advance(24 * time.Hour)
	anonymous.post(t, "/api/auth/verify", `{"token":"`+token+`"}`).isError(t, 404, 3)
	s.advance(-time.Second)
	anonymous.post(t, "/api/auth/verify", `{"token":"`+token+`"}`).is(t, 200, emptySuccess)
}

// A registration sends a link that verifies the address.
func TestRegistrationSendsVerification(t *testing.T) {
	t.Parallel()
	s, server := newMailSite(t)
	c := s.serve(t)
	c = c.as(c.post(t, "/api/auth/register", `{"email":"Zoe@Example.com","password":"correct horse","nickname":"Zoe"}`).field(t, "data", "token"))
	c.post(t, "/api/auth/verify", `{"token":"`+tokenIn(t, server.Await(t, 1)[0], "Zoe@Example.com", "verify")+`"}`).is(t, 200, emptySuccess)
	if got := c.get(t, "/api/user").field(t, "verified"); got != "true" {
		t.Errorf("the address is verified: %s", got)
	}
}

func TestResetPassword(t *testing.T) {
	t.Parallel()
	s, server := newMailSite(t)
	c := s.serve(t).signUp(t)
	other := s.serve(t).as(c.signIn(t).token)
	otherUser := c.signUp(t)
	anonymous := s.serve(t)
	anonymous.post(t, "/api/auth/reset", `{"email":" USER1@example.com\n"}`).is(t, 200, emptySuccess)
	token := tokenIn(t, server.Await(t, 1)[0], "user1@example.com", "reset")

	reset := func(password string) response {
		t.Helper()
		return anonymous.post(t, "/api/auth/password", `{"token":"`+token+`","password":"`+password+`"}`)
	}
	reset("short").isError(t, 422, 4, "password")
	anonymous.post(t, "/api/auth/password", `{"password":"correct horse"}`).isError(t, 422, 4, "token")
	anonymous.post(t, "/api/auth/verify", `{"token":"`+token+`"}`).isError(t, 404, 3) // the token has another purpose
	c.works(t, true)
	token = `\t` + token + `\r\n` // white space of a copied token
	reset(" correct horse ").is(t, 200, emptySuccess)
	for _, session := range []client{c, other} {
		session.works(t, false)
		session.send(t, "POST", "/api/auth/refresh", body{}).isError(t, 401, 5)
	}
	otherUser.works(t, true)
	reset("another horse").isError(t, 404, 3)
	anonymous.logIn(t, "user1@example.com", "another horse").isError(t, 401, 5)
	c = c.as(anonymous.logIn(t, "user1@example.com", " correct horse ").field(t, "token"))
	if got := c.get(t, "/api/user").field(t, "verified"); got != "true" {
		t.Errorf("after a reset by mail the address is verified: %s", got)
	}

	// A link expires after an hour, and with a change of the password.
	server.Await(t, 2) // the notice of the change
	anonymous.send(t, "POST", "/api/auth/reset", encodeForm("email=user1@example.com")).is(t, 200, emptySuccess)
	token = tokenIn(t, server.Await(t, 3)[2], "user1@example.com", "reset")
	s.advance(time.Hour)
	reset("another horse").isError(t, 404, 3)
	s.advance(-time.Second)
	c.put(t, "/api/user/password", `{"current_password":" correct horse ","new_password":"third horse"}`).is(t, 200, emptySuccess)
	reset("another horse").isError(t, 404, 3)
}

// Without a token, no response reveals whether an account exists, and the work behind it does not
// depend on that: not even a lock on all accounts delays it.
func TestResponsesDoNotRevealAccounts(t *testing.T) {
	t.Parallel()
	s := newSite(t, "LIMIT_REQUESTS=0", "LIMIT_RESETS=0", "LIMIT_REGISTRATIONS=0", "REGISTRATION=confirm")
	c := s.serve(t).signUp(t).signUp(t).as("")
	s.exec(t, "UPDATE users SET permission = -1 WHERE uid = $1", c.uid) // the second user
	lock, err := postgrestest.Conn(t, s.url).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lock.Exec(t.Context(), "LOCK TABLE users IN ACCESS EXCLUSIVE MODE"); err != nil {
		t.Fatal(err)
	}
	f := func(path, fields string, status int) {
		t.Helper()
		var first response
		for i, email := range []string{"nobody@example.com", "user1@example.com", "USER2@example.com"} {
			a := c.send(t, "POST", path, encodeJSON(`{"email":"`+email+`"`+fields+`}`), "X-Request-ID", "same")
			a.is(t, status, emptySuccess)
			a.header.Del("Date")
			if i == 0 {
				first = a
			} else if !bytes.Equal(a.body, first.body) || a.header.String() != first.header.String() {
				t.Errorf("%s tells %s from others: %s %s", path, email, a.header, a.body)
			}
		}
	}
	f("/api/auth/reset", "", 200)
	f("/api/auth/register", `,"password":"correct horse","nickname":"A","player_name":"Steve"`, 202)
	if err := lock.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := s.count(t, "SELECT count(*) FROM mails"); n != 6 {
		t.Errorf("there are %d mails; want one of each request", n)
	}
}

// registered is the body of a response with a new user.
const registered = `{"code":0,"message":"<text>","data":{"token":"<jwt>","token_type":"Bearer","expires_in":3600,"user":%s}}`

func TestRegistrationWithConfirmation(t *testing.T) {
	t.Parallel()
	s, server := newMailSite(t, "REGISTRATION=confirm", "SCORE_REGISTRATION=7")
	c := s.serve(t).signUp(t)
	c.player(t, "Steve")
	c = c.as("")
	register := func(email, player string) response {
		t.Helper()
		return c.post(t, "/api/auth/register", `{"email":"`+email+`","password":"ignored horse","nickname":"Zoë","player_name":"`+player+`"}`) // the password is ignored
	}
	verify := func(fields string) response { return c.post(t, "/api/auth/verify", `{`+fields+`}`) }
	register("zoe@example.com", "STEVE").isError(t, 409, 2, "player_name")
	register("user1@example.com", "STEVE").isError(t, 409, 2, "player_name")
	register("Zoe@example.com", "Zoe_99").is(t, 202, emptySuccess)
	token := `"token":" ` + tokenIn(t, server.Await(t, 1)[0], "Zoe@example.com", "verify") + `\n"`
	if n := s.count(t, "SELECT count(*) FROM users"); n != 1 {
		t.Errorf("there are %d users before the confirmation; want 1", n)
	}

	// A failed confirmation does not use up the link.
	verify(token).isError(t, 422, 4, "password")
	verify(token+`,"password":"short"`).isError(t, 422, 4, "password")
	verify(token+`,"password":"short","nickname":"","player_name":"-"`).isError(t, 422, 4, "nickname", "password", "player_name")
	verify(token+`,"password":"second horse","player_name":"steve"`).isError(t, 409, 2, "player_name")
	s.exec(t, "UPDATE players SET name = 'Zoe_99', name_key = 'zoe_99'")
	verify(token+`,"password":"second horse"`).isError(t, 409, 2, "player_name")
	verify(token+`,"password":"second horse","nickname":null,"player_name":null`).isError(t, 409, 2, "player_name")
	s.exec(t, "UPDATE players SET name = 'Steve', name_key = 'steve'")

	user := `{"uid":"<integer>","email":"Zoe@example.com","nickname":"Zoë","avatar":0,"score":7,"permission":0,"last_sign_at":"<time>","next_sign_at":"<time>","register_at":"<time>","verified":true}`
	a := verify(token + `,"password":" second horse "`)
	a.is(t, 200, fmt.Sprintf(registered, user))
	verify(token+`,"password":"third horse"`).isError(t, 404, 3)
	c.as(a.field(t, "data", "token")).get(t, "/api/user").is(t, 200, user)
	zoe := c.as(c.logIn(t, "zoe@example.com", " second horse ").field(t, "token"))
	if players := zoe.get(t, "/api/players"); !strings.Contains(string(players.body), `"name":"Zoe_99"`) {
		t.Errorf("the players are %s", players.body)
	}

	// The confirmation may change the names of the registration.
	register("ann@example.com", "Ann_1").is(t, 202, emptySuccess)
	token = tokenIn(t, server.Await(t, 2)[1], "ann@example.com", "verify")
	a = c.send(t, "POST", "/api/auth/verify", encodeForm("token="+token+"&password=correct+horse&nickname=+Ann&player_name="))
	if nickname, players := a.field(t, "data", "user", "nickname"), c.as(a.field(t, "data", "token")).get(t, "/api/players"); nickname != "Ann" || string(players.body) != "[]" {
		t.Errorf("the nickname is %s, the players %s; want Ann without players", nickname, players.body)
	}

	// A registration with a registered address sends an e-mail to its user, and changes nothing.
	register("ZOE@example.com", "Other").is(t, 202, emptySuccess)
	notice := server.Await(t, 3)[2]
	if notice.To != "Zoe@example.com" || linkPattern.MatchString(notice.Text) || !strings.Contains(notice.Text, "There is one with it already") {
		t.Errorf("a mail to %s says %q", notice.To, notice.Text)
	}
	zoe.works(t, true)
}

// A third party that registers another person's address, as often as e-mails are sent there, gains
// nothing: every link in them creates the account with the password that the reader of the mailbox
// chooses.
func TestRegistrationByThirdParty(t *testing.T) {
	t.Parallel()
	s, server := newMailSite(t, "REGISTRATION=confirm", "MAIL_PER_HOUR=3")
	c := s.serve(t)
	register := func(password string) {
		t.Helper()
		c.post(t, "/api/auth/register", `{"email":"zoe@example.com","password":"`+password+`","nickname":"N"}`).is(t, 202, emptySuccess)
	}
	for range 3 {
		register("the third party's")
	}
	mails := server.Await(t, 3)
	register("the owner's own") // beyond the limit, so no e-mail is sent
	if n := s.count(t, "SELECT count(*) FROM registrations WHERE password_hash IS NOT NULL"); n != 0 {
		t.Errorf("%d passwords are kept", n)
	}
	token := tokenIn(t, mails[0], "zoe@example.com", "verify")
	c.post(t, "/api/auth/verify", `{"token":"`+token+`","password":"the owner's own"}`).is(t, 200, fmt.Sprintf(registered,
		`{"uid":"<integer>","email":"zoe@example.com","nickname":"N","avatar":0,"score":0,"permission":0,"last_sign_at":"<time>","next_sign_at":"<time>","register_at":"<time>","verified":true}`))
	c.logIn(t, "zoe@example.com", "the third party's").isError(t, 401, 5)
	c.logIn(t, "zoe@example.com", "the owner's own").isToken(t)
	for _, m := range mails {
		c.post(t, "/api/auth/verify", `{"token":"`+tokenIn(t, m, "zoe@example.com", "verify")+`","password":"the third party's"}`).isError(t, 404, 3)
	}
}

func TestEmailChangeNotifiesOldAddress(t *testing.T) {
	t.Parallel()
	s, server := newMailSite(t)
	c := s.serve(t).signUp(t)
	c.withPassword(t, "correct horse")
	c.put(t, "/api/user/email", `{"email":"user1@example.com","password":"correct horse"}`)
	c.put(t, "/api/user/email", `{"email":"b@example.com","password":"wrong horse"}`)
	if a := c.put(t, "/api/user/email", `{"email":"b@example.com","password":"correct horse"}`); a.status != 200 {
		t.Fatalf("the change is answered with %d %s", a.status, a.body)
	}
	mails := server.Await(t, 2)
	slices.SortFunc(mails, func(a, b mailtest.Mail) int { return strings.Compare(b.To, a.To) })
	if mails[0].To != "user1@example.com" || !strings.Contains(mails[0].Text, "now has another one") || strings.Contains(mails[0].Raw, "b@example.com") {
		t.Errorf("a mail to %s says %q", mails[0].To, mails[0].Text)
	}
	c.post(t, "/api/auth/verify", `{"token":"`+tokenIn(t, mails[1], "b@example.com", "verify")+`"}`).is(t, 200, emptySuccess)
	if got := c.get(t, "/api/user").field(t, "verified"); got != "true" {
		t.Errorf("the address is verified: %s", got)
	}
	if n := s.count(t, "SELECT count(*) FROM mails_sent"); n != 2 {
		t.Errorf("%d mails were sent; want 2", n)
	}
}

// Every change of a password sends an e-mail to the user, also an administrator's; a failed one
// sends none.
func TestPasswordChangeSendsMail(t *testing.T) {
	t.Parallel()
	s, server := newMailSite(t)
	c := s.serve(t).signUp(t)
	admin := c.signUpAs(t, core.Administrator)
	c.withPassword(t, "correct horse")
	sendsMail := func(what string, a response) {
		t.Helper()
		before := len(server.Mails())
		if a.status != 200 {
			t.Fatalf("%s is answered with %d %s", what, a.status, a.body)
		}
		m := server.Await(t, before+1)[before]
		if m.To != "user1@example.com" || linkPattern.MatchString(m.Text) || strings.Contains(m.Raw, "horse") ||
			!strings.Contains(m.Text, "was changed, or reset") || !strings.Contains(m.Text, "If it was not you") {
			t.Errorf("after %s a mail to %s says %q", what, m.To, m.Raw)
		}
	}
	c.put(t, "/api/user/password", `{"current_password":"wrong horse","new_password":"second horse"}`).isError(t, 422, 4, "current_password")
	c.post(t, "/api/auth/password", `{"token":"x","password":"second horse"}`).isError(t, 404, 3)
	c.put(t, admin.user()+"/password", `{"password":"second horse"}`).isError(t, 403, 6)
	sendsMail("a change", c.put(t, "/api/user/password", `{"current_password":"correct horse","new_password":"second horse"}`))
	sendsMail("a reset", c.post(t, "/api/auth/password", `{"token":"`+c.link(t, core.ForReset)+`","password":"third horse"}`))
	sendsMail("an administrator's change", admin.put(t, c.user()+"/password", `{"password":"fourth horse"}`))
	if n := s.count(t, "SELECT count(*) FROM mails_sent"); n != 3 {
		t.Errorf("%d mails were sent; want 3", n)
	}
}

// Where registrations must be confirmed, changes of an address must be, too, and do not reveal
// whether an address is registered.
func TestEmailChangeWithConfirmation(t *testing.T) {
	t.Parallel()
	s, server := newMailSite(t, "REGISTRATION=confirm", "LIMIT_REQUESTS=0", "LIMIT_REGISTRATIONS=0")
	c := s.serve(t).signUp(t)
	c.signUp(t) // user2@example.com
	c.withPassword(t, "correct horse")
	change := func(email, password string) response {
		t.Helper()
		return c.send(t, "PUT", "/api/user/email", encodeJSON(`{"email":"`+email+`","password":"`+password+`"}`), "X-Request-ID", "same")
	}
	change("b@example.com", "wrong horse").isError(t, 422, 4, "password")
	change("nobody", "correct horse").isError(t, 422, 4, "email")
	known, fresh := change("USER2@example.com", "correct horse"), change("B@example.com", "correct horse")
	for _, a := range []response{known, fresh} {
		a.is(t, 202, emptySuccess)
		a.header.Del("Date")
	}
	if !bytes.Equal(known.body, fresh.body) || known.header.String() != fresh.header.String() {
		t.Errorf("the answers differ: %s %s and %s %s", known.header, known.body, fresh.header, fresh.body)
	}
	mails := server.Await(t, 2)
	slices.SortFunc(mails, func(a, b mailtest.Mail) int { return strings.Compare(a.To, b.To) })
	if mails[1].To != "user2@example.com" || linkPattern.MatchString(mails[1].Text) || !strings.Contains(mails[1].Text, "There is one with it already") {
		t.Errorf("a mail to %s says %q", mails[1].To, mails[1].Text)
	}
	if got := c.get(t, "/api/user").field(t, "email"); got != "user1@example.com" {
		t.Errorf("before the confirmation the address is %s", got)
	}
	c.post(t, "/api/auth/verify", `{"token":"`+tokenIn(t, mails[0], "B@example.com", "verify")+`"}`).is(t, 200, emptySuccess)
	if a := c.get(t, "/api/user"); a.field(t, "email") != "B@example.com" || a.field(t, "verified") != "true" {
		t.Errorf("after the confirmation the user is %s", a.body)
	}
	if notice := server.Await(t, 3)[2]; notice.To != "user1@example.com" || !strings.Contains(notice.Text, "now has another one") {
		t.Errorf("a mail to %s says %q", notice.To, notice.Text)
	}
}

func TestResetsAreLimited(t *testing.T) {
	t.Parallel()
	c := start(t, "LIMIT_RESETS=2")
	f := func(email string) response {
		t.Helper()
		return c.post(t, "/api/auth/reset", `{"email":"`+email+`"}`)
	}
	f("a@example.com").hasRateLimit(t, 200, rateLimit{"2", "1", "1800", ""})
	f("b@example.com").hasRateLimit(t, 200, rateLimit{"2", "0", "3600", ""})
	f("c@example.com").hasRateLimit(t, 429, rateLimit{"2", "0", "3600", "1800"})
	c.from(t, "192.0.2.7").post(t, "/api/auth/reset", `{"email":"d@example.com"}`).is(t, 200, emptySuccess)
	c.site.advance(30 * time.Minute)
	f("nobody").isError(t, 422, 4, "email")
}

func TestWithoutMail(t *testing.T) {
	t.Parallel()
	c := start(t, "SMTP_HOST=", "SMTP_FROM=").signUp(t)
	c.withPassword(t, "correct horse")
	c.send(t, "POST", "/api/user/verification", body{}).isError(t, 403, 1)
	c.post(t, "/api/auth/verify", `{"token":"x"}`).isError(t, 403, 1)
	c.post(t, "/api/auth/reset", `{"email":"user1@example.com"}`).isError(t, 403, 1)
	c.post(t, "/api/auth/password", `{"token":"x","password":"correct horse"}`).isError(t, 403, 1)
	if a := c.put(t, "/api/user/email", `{"email":"b@example.com","password":"correct horse"}`); a.status != 200 {
		t.Errorf("a change of address is answered with %d %s", a.status, a.body)
	}
	admin := c.signUpAs(t, core.Administrator)
	for _, a := range []response{
		c.put(t, "/api/user/password", `{"current_password":"correct horse","new_password":"second horse"}`),
		admin.put(t, c.user()+"/password", `{"password":"third horse"}`),
	} {
		if a.status != 200 {
			t.Errorf("a change of password is answered with %d %s", a.status, a.body)
		}
	}
	if n := c.site.count(t, "SELECT count(*) FROM mails"); n != 0 {
		t.Errorf("%d mails are queued on a site that sends none", n)
	}
}

// link inserts a link of a purpose for the client's user, as if it had been mailed, and returns its
// token.
func (c client) link(t *testing.T, purpose core.Purpose) string {
	t.Helper()
	token := string(purpose) + " token"
	hash := sha256.Sum256([]byte(token))
	c.site.exec(t, `INSERT INTO mail_tokens (hash, expires_at, uid, purpose, email, email_key, bound)
		SELECT $1, 'infinity', uid, $2, email, email_key, sha256(convert_to(email || chr(10) || password_hash, 'UTF8')) FROM users WHERE uid = $3`, hash[:], purpose, c.uid)
	return token
}

// registrationLink inserts a registration to be confirmed, and returns the token of its link.
func (c client) registrationLink(t *testing.T, name string) string {
	t.Helper()
	token, email := name+" token", name+"@example.com"
	hash := sha256.Sum256([]byte(token))
	if err := c.services.Users.RequestRegistration(t.Context(), core.Registration{Email: email, Nickname: name}); err != nil {
		t.Fatal(err)
	}
	c.site.exec(t, `INSERT INTO mail_tokens (hash, expires_at, registration, purpose, email, email_key)
		SELECT $1, 'infinity', rid, 'registration', email, email_key FROM registrations WHERE email = $2`, hash[:], email)
	return token
}

// recordMail records the responses to requests about links in e-mails.
func recordMail(t *testing.T, s *testSite, seen seenResponses) {
	t.Helper()
	configured := s.setup
	c := s.serve(t).signUp(t)
	email := fmt.Sprintf("user%d@example.com", s.users.Load())
	ask := func(c client) response { return c.send(t, "POST", "/api/user/verification", body{}) }
	verify := func(c client, token string) response {
		return c.post(t, "/api/auth/verify", `{"token":"`+token+`","password":"correct horse","nickname":null}`)
	}
	askReset := func(c client, email string) response {
		return c.post(t, "/api/auth/reset", `{"email":"`+email+`"}`)
	}
	reset := func(c client, token string) response {
		return c.post(t, "/api/auth/password", `{"token":"`+token+`","password":"correct horse"}`)
	}
	register := func(c client) response {
		return c.post(t, "/api/auth/register", `{"email":"new@example.com","password":"correct horse","nickname":"A"}`)
	}

	taken, fresh := c.registrationLink(t, "taken"), c.registrationLink(t, "fresh")
	s.exec(t, "INSERT INTO users (email, email_key, nickname, password_hash) VALUES ('taken@example.com', 'taken@example.com', 'A', 'x')")
	seen.record(t,
		ask(c),
		verify(c, "none"),
		c.post(t, "/api/auth/verify", `{}`),
		verify(c, taken),
		c.post(t, "/api/auth/verify", `{"token":"`+fresh+`"}`),
		verify(c, fresh),
		askReset(c, email),
		askReset(c, "nobody"),
		c.post(t, "/api/auth/password", `{"password":"correct horse"}`),
		reset(c, "none"),
	)
	resetting := c.link(t, core.ForReset)
	seen.record(t, verify(c, c.link(t, core.ForVerification)), ask(c), reset(c, resetting))

	other := c.signUp(t)
	s.setup.Mail.PerHour, s.setup.API.Limits.Resets, s.setup.API.Registration = 1, 1, "confirm"
	limited := s.serve(t).as(other.token)
	ask(limited)
	askReset(limited, email)
	seen.record(t, ask(limited), askReset(limited, email), register(limited))
	other.withPassword(t, rightPassword)
	seen.record(t, s.serve(t).as(other.token).put(t, "/api/user/email", `{"email":"new@example.com","password":"`+rightPassword+`"}`))
	s.setup = configured

	s.setup.SMTP.Host = ""
	withoutMail := s.serve(t).as(other.token)
	seen.record(t, ask(withoutMail), verify(withoutMail, "none"), askReset(withoutMail, email), reset(withoutMail, "none"))
	s.setup = configured
}
