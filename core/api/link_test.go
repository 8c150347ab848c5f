package api_test

import (
	"crypto/sha256"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/core/coretest"
	"github.com/veneer-skins/veneer/core/mail"
	"github.com/veneer-skins/veneer/core/mail/mailtest"
	"github.com/veneer-skins/veneer/core/postgres/postgrestest"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// newMailSite returns a site that sends its e-mail to the returned server.
func newMailSite(t *testing.T, environ ...string) (testSite, *mailtest.Server) {
	t.Helper()
	server := mailtest.Start(t, mailtest.Options{})
	s := newSite(t, append(environ, fmt.Sprintf("SMTP_PORT=%d", server.Port))...)
	client := testenv.Must(mail.New(s.Setup.SMTP))(t)
	outbox := core.NewOutbox(postgrestest.Connect(t, s.URL), mail.NewSender(client, s.Setup.Site.Name, s.Setup.Mail.URL), s.Setup.Mail, s.Setup.SMTP.Timeout, slog.New(slog.DiscardHandler), s.Clock)
	coretest.Background(t, outbox.Run)
	return s, server
}

var linkPattern = regexp.MustCompile(`https://skins\.example\.org/(\w+)(?:\?registration)?#token=([\w-]{43})&email=\S+\n`)

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
	c.Send(t, "POST", "/api/user/verification", body{}).Is(t, 200, emptySuccess)
	token := tokenIn(t, server.Await(t, 1)[0], "user1@example.com", "verify")

	anonymous := s.serve(t)
	for _, wrong := range []string{"", "x", strings.ToUpper(token), token + "=", strings.Repeat("x", 10000)} {
		anonymous.Post(t, "/api/auth/verify", `{"token":"`+wrong+`"}`).IsError(t, 404, 3)
	}
	anonymous.Post(t, "/api/auth/verify", `{}`).IsError(t, 422, 4, "token")
	anonymous.Post(t, "/api/auth/password", `{"token":"`+token+`","password":"correct horse"}`).IsError(t, 404, 3) // the token has another purpose
	c.Get(t, "/api/user").HasField(t, "false", "verified")
	anonymous.Send(t, "POST", "/api/auth/verify", encodeForm("token=+%0D%0A"+token+"%0A")).Is(t, 200, emptySuccess)
	c.Get(t, "/api/user").HasField(t, "true", "verified")
	anonymous.Post(t, "/api/auth/verify", `{"token":"`+token+`"}`).IsError(t, 404, 3)
	c.Send(t, "POST", "/api/user/verification", body{}).IsError(t, 403, 1)

	// The number of e-mails an hour is limited across all cores, and a link expires after a day.
	s.Exec(t, "UPDATE users SET verified = false")
	c.Send(t, "POST", "/api/user/verification", body{}).Is(t, 200, emptySuccess)
	otherServer := s.serve(t).as(c.Token)
	a := otherServer.Send(t, "POST", "/api/user/verification", body{})
	a.IsError(t, 429, 8)
	testenv.Equal(t, a.Header.Get("Retry-After") != "", true, "there is a Retry-After")
	token = tokenIn(t, server.Await(t, 2)[1], "user1@example.com", "verify")
	s.Advance(24 * time.Hour)
	anonymous.Post(t, "/api/auth/verify", `{"token":"`+token+`"}`).IsError(t, 404, 3)
	s.Advance(-time.Second)
	anonymous.Post(t, "/api/auth/verify", `{"token":"`+token+`"}`).Is(t, 200, emptySuccess)
}

// A registration sends a link that verifies the address.
func TestRegistrationSendsVerification(t *testing.T) {
	t.Parallel()
	s, server := newMailSite(t)
	c := s.serve(t)
	c = c.as(c.Post(t, "/api/auth/register", `{"email":"Zoe@Example.com","password":"correct horse","nickname":"Zoe"}`).Field(t, "data", "token"))
	c.Post(t, "/api/auth/verify", `{"token":"`+tokenIn(t, server.Await(t, 1)[0], "Zoe@Example.com", "verify")+`"}`).Is(t, 200, emptySuccess)
	c.Get(t, "/api/user").HasField(t, "true", "verified")
}

func TestResetPassword(t *testing.T) {
	t.Parallel()
	s, server := newMailSite(t)
	c := s.serve(t).signUp(t)
	other := s.serve(t).as(c.signIn(t).Token)
	otherUser := c.signUp(t)
	anonymous := s.serve(t)
	anonymous.Post(t, "/api/auth/reset", `{"email":" USER1@example.com\n"}`).Is(t, 200, emptySuccess)
	token := tokenIn(t, server.Await(t, 1)[0], "user1@example.com", "reset")

	reset := func(password string) response {
		return anonymous.Post(t, "/api/auth/password", `{"token":"`+token+`","password":"`+password+`"}`)
	}
	reset("short").IsError(t, 422, 4, "password")
	anonymous.Post(t, "/api/auth/password", `{"password":"correct horse"}`).IsError(t, 422, 4, "token")
	anonymous.Post(t, "/api/auth/verify", `{"token":"`+token+`"}`).IsError(t, 404, 3) // the token has another purpose
	c.works(t, true)
	token = `\t` + token + `\r\n` // white space of a copied token
	reset(" correct horse ").Is(t, 200, emptySuccess)
	for _, session := range []client{c, other} {
		session.works(t, false)
		session.Send(t, "POST", "/api/auth/refresh", body{}).IsError(t, 401, 5)
	}
	otherUser.works(t, true)
	reset("another horse").IsError(t, 404, 3)
	anonymous.logIn(t, "user1@example.com", "another horse").IsError(t, 401, 5)
	c = c.as(anonymous.logIn(t, "user1@example.com", " correct horse ").Field(t, "token"))
	c.Get(t, "/api/user").HasField(t, "true", "verified")

	// A link expires after an hour, and with a change of the password.
	server.Await(t, 2) // the notice of the change
	anonymous.Send(t, "POST", "/api/auth/reset", encodeForm("email=user1@example.com")).Is(t, 200, emptySuccess)
	token = tokenIn(t, server.Await(t, 3)[2], "user1@example.com", "reset")
	s.Advance(time.Hour)
	reset("another horse").IsError(t, 404, 3)
	s.Advance(-time.Second)
	c.Put(t, "/api/user/password", `{"current_password":" correct horse ","new_password":"third horse"}`).Is(t, 200, emptySuccess)
	reset("another horse").IsError(t, 404, 3)
}

// Without a token, no response reveals whether an account exists, and the work behind it does not
// depend on that: not even a lock on all accounts delays it.
func TestResponsesDoNotRevealAccounts(t *testing.T) {
	t.Parallel()
	s := newSite(t, "LIMIT_REQUESTS=0", "LIMIT_RESETS=0", "LIMIT_REGISTRATIONS=0", "REGISTRATION=confirm")
	c := s.serve(t).signUp(t).signUp(t).as("")
	s.Exec(t, "UPDATE users SET permission = -1 WHERE uid = $1", c.UID) // the second user
	lock := testenv.Must(postgrestest.Conn(t, s.URL).Begin(t.Context()))(t)
	testenv.Must(lock.Exec(t.Context(), "LOCK TABLE users IN ACCESS EXCLUSIVE MODE"))(t)
	f := func(path, fields string, status int) {
		t.Helper()
		var first response
		for i, email := range []string{"nobody@example.com", "user1@example.com", "USER2@example.com"} {
			a := c.Send(t, "POST", path, encodeJSON(`{"email":"`+email+`"`+fields+`}`), "X-Request-ID", "same")
			a.Is(t, status, emptySuccess)
			if i == 0 {
				first = a
			}
			a.IsSameAs(t, first)
		}
	}
	f("/api/auth/reset", "", 200)
	f("/api/auth/register", `,"password":"correct horse","nickname":"A","player_name":"Steve"`, 202)
	testenv.Do(t, lock.Rollback(t.Context()))
	s.HasCount(t, 6, "SELECT count(*) FROM mails")
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
		return c.Post(t, "/api/auth/register", `{"email":"`+email+`","password":"ignored horse","nickname":"Zoë","player_name":"`+player+`"}`) // the password is ignored
	}
	verify := func(fields string) response { return c.Post(t, "/api/auth/verify", `{`+fields+`}`) }
	register("zoe@example.com", "STEVE").IsError(t, 409, 2, "player_name")
	register("user1@example.com", "STEVE").IsError(t, 409, 2, "player_name")
	register("Zoe@example.com", "Zoe_99").Is(t, 202, emptySuccess)
	token := `"token":" ` + tokenIn(t, server.Await(t, 1)[0], "Zoe@example.com", "verify") + `\n"`
	s.HasCount(t, 1, "SELECT count(*) FROM users")

	// A failed confirmation does not use up the link.
	verify(token).IsError(t, 422, 4, "password")
	verify(token+`,"password":"short"`).IsError(t, 422, 4, "password")
	verify(token+`,"password":"short","nickname":"","player_name":"-"`).IsError(t, 422, 4, "nickname", "password", "player_name")
	verify(token+`,"password":"second horse","player_name":"steve"`).IsError(t, 409, 2, "player_name")
	s.Exec(t, "UPDATE players SET name = 'Zoe_99', name_key = 'zoe_99'")
	verify(token+`,"password":"second horse"`).IsError(t, 409, 2, "player_name")
	verify(token+`,"password":"second horse","nickname":null,"player_name":null`).IsError(t, 409, 2, "player_name")
	s.Exec(t, "UPDATE players SET name = 'Steve', name_key = 'steve'")

	user := `{"uid":"<integer>","email":"Zoe@example.com","nickname":"Zoë","avatar":0,"score":7,"permission":0,"last_sign_at":"<time>","next_sign_at":"<time>","register_at":"<time>","verified":true}`
	a := verify(token + `,"password":" second horse "`)
	a.Is(t, 200, fmt.Sprintf(registered, user))
	verify(token+`,"password":"third horse"`).IsError(t, 404, 3)
	c.as(a.Field(t, "data", "token")).Get(t, "/api/user").Is(t, 200, strings.TrimSuffix(user, "}")+`,"unread":0}`)
	zoe := c.as(c.logIn(t, "zoe@example.com", " second horse ").Field(t, "token"))
	testenv.Equal(t, zoe.outfit(t, "Zoe_99"), outfit{"0", "0"}, "what the player wears")

	// The confirmation may change the names of the registration.
	register("ann@example.com", "Ann_1").Is(t, 202, emptySuccess)
	token = tokenIn(t, server.Await(t, 2)[1], "ann@example.com", "verify")
	a = c.Send(t, "POST", "/api/auth/verify", encodeForm("token="+token+"&password=correct+horse&nickname=+Ann&player_name="))
	a.HasField(t, "Ann", "data", "user", "nickname")
	c.as(a.Field(t, "data", "token")).Get(t, "/api/players").Is(t, 200, "[]")

	// A registration with a registered address sends an e-mail to its user, and changes nothing.
	register("ZOE@example.com", "Other").Is(t, 202, emptySuccess)
	notice := server.Await(t, 3)[2]
	testenv.Check(t, notice.To == "Zoe@example.com" && !linkPattern.MatchString(notice.Text) &&
		strings.Contains(notice.Text, "There is one with it already"), "a mail to %s says %q", notice.To, notice.Text)
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
		c.Post(t, "/api/auth/register", `{"email":"zoe@example.com","password":"`+password+`","nickname":"N"}`).Is(t, 202, emptySuccess)
	}
	for range 3 {
		register("the third party's")
	}
	mails := server.Await(t, 3)
	register("the owner's own") // beyond the limit, so no e-mail is sent
	s.HasCount(t, 0, "SELECT count(*) FROM registrations WHERE password_hash IS NOT NULL")
	token := tokenIn(t, mails[0], "zoe@example.com", "verify")
	c.Post(t, "/api/auth/verify", `{"token":"`+token+`","password":"the owner's own"}`).Is(t, 200, fmt.Sprintf(registered,
		`{"uid":"<integer>","email":"zoe@example.com","nickname":"N","avatar":0,"score":0,"permission":0,"last_sign_at":"<time>","next_sign_at":"<time>","register_at":"<time>","verified":true}`))
	c.logIn(t, "zoe@example.com", "the third party's").IsError(t, 401, 5)
	isToken(t, c.logIn(t, "zoe@example.com", "the owner's own"))
	for _, m := range mails {
		c.Post(t, "/api/auth/verify", `{"token":"`+tokenIn(t, m, "zoe@example.com", "verify")+`","password":"the third party's"}`).IsError(t, 404, 3)
	}
}

func TestEmailChangeNotifiesOldAddress(t *testing.T) {
	t.Parallel()
	s, server := newMailSite(t)
	c := s.serve(t).signUp(t)
	c.withPassword(t, "correct horse")
	c.Put(t, "/api/user/email", `{"email":"user1@example.com","password":"correct horse"}`)
	c.Put(t, "/api/user/email", `{"email":"b@example.com","password":"wrong horse"}`)
	c.Put(t, "/api/user/email", `{"email":"b@example.com","password":"correct horse"}`).HasStatus(t, 200)
	mails := server.Await(t, 2)
	slices.SortFunc(mails, func(a, b mailtest.Mail) int { return strings.Compare(b.To, a.To) })
	testenv.Check(t, mails[0].To == "user1@example.com" && strings.Contains(mails[0].Text, "now has another one") &&
		!strings.Contains(mails[0].Raw, "b@example.com"), "a mail to %s says %q", mails[0].To, mails[0].Text)
	c.Post(t, "/api/auth/verify", `{"token":"`+tokenIn(t, mails[1], "b@example.com", "verify")+`"}`).Is(t, 200, emptySuccess)
	c.Get(t, "/api/user").HasField(t, "true", "verified")
	s.HasCount(t, 2, "SELECT count(*) FROM mails_sent")
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
		if a.Status != 200 {
			t.Fatalf("%s is answered with %d %s", what, a.Status, a.Body)
		}
		m := server.Await(t, before+1)[before]
		if m.To != "user1@example.com" || linkPattern.MatchString(m.Text) || strings.Contains(m.Raw, "horse") ||
			!strings.Contains(m.Text, "was changed, or reset") || !strings.Contains(m.Text, "If it was not you") {
			t.Errorf("after %s a mail to %s says %q", what, m.To, m.Raw)
		}
	}
	c.Put(t, "/api/user/password", `{"current_password":"wrong horse","new_password":"second horse"}`).IsError(t, 422, 4, "current_password")
	c.Post(t, "/api/auth/password", `{"token":"x","password":"second horse"}`).IsError(t, 404, 3)
	c.Put(t, admin.user()+"/password", `{"password":"second horse"}`).IsError(t, 403, 6)
	sendsMail("a change", c.Put(t, "/api/user/password", `{"current_password":"correct horse","new_password":"second horse"}`))
	sendsMail("a reset", c.Post(t, "/api/auth/password", `{"token":"`+c.link(t, core.ForReset)+`","password":"third horse"}`))
	sendsMail("an administrator's change", admin.Put(t, c.user()+"/password", `{"password":"fourth horse"}`))
	s.HasCount(t, 3, "SELECT count(*) FROM mails_sent")
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
		return c.Send(t, "PUT", "/api/user/email", encodeJSON(`{"email":"`+email+`","password":"`+password+`"}`), "X-Request-ID", "same")
	}
	change("b@example.com", "wrong horse").IsError(t, 422, 4, "password")
	change("nobody", "correct horse").IsError(t, 422, 4, "email")
	known, fresh := change("USER2@example.com", "correct horse"), change("B@example.com", "correct horse")
	for _, a := range []response{known, fresh} {
		a.Is(t, 202, emptySuccess)
	}
	known.IsSameAs(t, fresh)
	mails := server.Await(t, 2)
	slices.SortFunc(mails, func(a, b mailtest.Mail) int { return strings.Compare(a.To, b.To) })
	testenv.Check(t, mails[1].To == "user2@example.com" && !linkPattern.MatchString(mails[1].Text) &&
		strings.Contains(mails[1].Text, "There is one with it already"), "a mail to %s says %q", mails[1].To, mails[1].Text)
	c.Get(t, "/api/user").HasField(t, "user1@example.com", "email")
	c.Post(t, "/api/auth/verify", `{"token":"`+tokenIn(t, mails[0], "B@example.com", "verify")+`"}`).Is(t, 200, emptySuccess)
	c.Get(t, "/api/user").Has(t, "email", "B@example.com", "verified", "true")
	notice := server.Await(t, 3)[2]
	testenv.Equal(t, notice.To, "user1@example.com", "the receiver of the notice")
	testenv.Contains(t, notice.Text, "now has another one", "the notice")
}

func TestResetsAreLimited(t *testing.T) {
	t.Parallel()
	c := start(t, "LIMIT_RESETS=2")
	f := func(email string) response { return c.Post(t, "/api/auth/reset", `{"email":"`+email+`"}`) }
	hasRateLimit(t, f("a@example.com"), 200, rateLimit{"2", "1", "1800", ""})
	hasRateLimit(t, f("b@example.com"), 200, rateLimit{"2", "0", "3600", ""})
	hasRateLimit(t, f("c@example.com"), 429, rateLimit{"2", "0", "3600", "1800"})
	c.from(t, "192.0.2.7").Post(t, "/api/auth/reset", `{"email":"d@example.com"}`).Is(t, 200, emptySuccess)
	c.site.Advance(30 * time.Minute)
	f("nobody").IsError(t, 422, 4, "email")
}

func TestWithoutMail(t *testing.T) {
	t.Parallel()
	c := start(t, "SMTP_HOST=", "SMTP_FROM=").signUp(t)
	c.withPassword(t, "correct horse")
	c.Send(t, "POST", "/api/user/verification", body{}).IsError(t, 403, 1)
	c.Post(t, "/api/auth/verify", `{"token":"x"}`).IsError(t, 403, 1)
	c.Post(t, "/api/auth/reset", `{"email":"user1@example.com"}`).IsError(t, 403, 1)
	c.Post(t, "/api/auth/password", `{"token":"x","password":"correct horse"}`).IsError(t, 403, 1)
	c.Put(t, "/api/user/email", `{"email":"b@example.com","password":"correct horse"}`).HasStatus(t, 200)
	admin := c.signUpAs(t, core.Administrator)
	c.Put(t, "/api/user/password", `{"current_password":"correct horse","new_password":"second horse"}`).HasStatus(t, 200)
	admin.Put(t, c.user()+"/password", `{"password":"third horse"}`).HasStatus(t, 200)
	c.site.HasCount(t, 0, "SELECT count(*) FROM mails")
}

// link inserts a link of a purpose for the client's user, as if it had been mailed, and returns its
// token.
func (c client) link(t *testing.T, purpose core.Purpose) string {
	t.Helper()
	token := string(purpose) + " token"
	hash := sha256.Sum256([]byte(token))
	c.site.Exec(t, `INSERT INTO mail_tokens (hash, expires_at, uid, purpose, email, email_key, bound)
		SELECT $1, 'infinity', uid, $2, email, email_key, sha256(convert_to(email || chr(10) || password_hash, 'UTF8')) FROM users WHERE uid = $3`, hash[:], purpose, c.UID)
	return token
}

// registrationLink inserts a registration to be confirmed, and returns the token of its link.
func (c client) registrationLink(t *testing.T, name string) string {
	t.Helper()
	token, email := name+" token", name+"@example.com"
	hash := sha256.Sum256([]byte(token))
	testenv.Do(t, c.Domain.Users.RequestRegistration(t.Context(), core.Registration{Email: email, Nickname: name}))
	c.site.Exec(t, `INSERT INTO mail_tokens (hash, expires_at, registration, purpose, email, email_key)
		SELECT $1, 'infinity', rid, 'registration', email, email_key FROM registrations WHERE email = $2`, hash[:], email)
	return token
}

// recordMail records the responses to requests about links in e-mails.
func recordMail(t *testing.T, s testSite, seen seenResponses) {
	t.Helper()
	configured := s.Setup
	c := s.serve(t).signUp(t)
	email := fmt.Sprintf("user%d@example.com", s.Users.Load())
	ask := func(c client) response { return c.Send(t, "POST", "/api/user/verification", body{}) }
	verify := func(c client, token string) response {
		return c.Post(t, "/api/auth/verify", `{"token":"`+token+`","password":"correct horse","nickname":null}`)
	}
	askReset := func(c client, email string) response { return c.Post(t, "/api/auth/reset", `{"email":"`+email+`"}`) }
	reset := func(c client, token string) response {
		return c.Post(t, "/api/auth/password", `{"token":"`+token+`","password":"correct horse"}`)
	}
	register := func(c client) response {
		return c.Post(t, "/api/auth/register", `{"email":"new@example.com","password":"correct horse","nickname":"A"}`)
	}

	taken, fresh := c.registrationLink(t, "taken"), c.registrationLink(t, "fresh")
	s.Exec(t, "INSERT INTO users (email, email_key, nickname, password_hash) VALUES ('taken@example.com', 'taken@example.com', 'A', 'x')")
	seen.record(t,
		ask(c),
		verify(c, "none"),
		c.Post(t, "/api/auth/verify", `{}`),
		verify(c, taken),
		c.Post(t, "/api/auth/verify", `{"token":"`+fresh+`"}`),
		verify(c, fresh),
		askReset(c, email),
		askReset(c, "nobody"),
		c.Post(t, "/api/auth/password", `{"password":"correct horse"}`),
		reset(c, "none"),
	)
	resetting := c.link(t, core.ForReset)
	seen.record(t, verify(c, c.link(t, core.ForVerification)), ask(c), reset(c, resetting))

	other := c.signUp(t)
	s.Setup.Mail.PerHour, s.Setup.API.Limits.Resets, s.Setup.API.Registration = 1, 1, "confirm"
	limited := s.serve(t).as(other.Token)
	ask(limited)
	askReset(limited, email)
	seen.record(t, ask(limited), askReset(limited, email), register(limited))
	other.withPassword(t, rightPassword)
	seen.record(t, s.serve(t).as(other.Token).Put(t, "/api/user/email", `{"email":"new@example.com","password":"`+rightPassword+`"}`))
	s.Setup = configured

	s.Setup.SMTP.Host = ""
	withoutMail := s.serve(t).as(other.Token)
	seen.record(t, ask(withoutMail), verify(withoutMail, "none"), askReset(withoutMail, email), reset(withoutMail, "none"))
	s.Setup = configured
}
