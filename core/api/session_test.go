package api_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/bcrypt"

	"github.com/veneer-skins/veneer/core/coretest"
	"github.com/veneer-skins/veneer/shared/testenv"
)

func TestLogin(t *testing.T) {
	t.Parallel()
	c := start(t).signUp(t)
	c.withPassword(t, "correct horse")
	c.site.Advance(time.Hour)
	c = c.as("")
	for _, body := range []body{
		encodeJSON(`{"email":"user1@example.com","password":"correct horse"}`),
		encodeForm("email=user1%40example.com&password=correct+horse"),
		encodeMultipart(t, "email=user1%40example.com&password=correct+horse", nil),
	} {
		a := c.Send(t, "POST", "/api/auth/login", body)
		a.Is(t, 200, `{"token":"<jwt>","token_type":"Bearer","expires_in":3600}`)
		c.as(a.Field(t, "token")).Get(t, "/api/user").HasField(t, "2031-02-03 05:05:06", "last_sign_at")
	}
}

// Two accounts whose addresses are equal since domains are mapped both sign in, each as its address is
// written; others find the account that has the key.
func TestLoginWithEqualAddresses(t *testing.T) {
	t.Parallel()
	c := start(t)
	first, second := c.signUp(t), c.signUp(t)
	for _, c := range []client{first, second} {
		c.withPassword(t, "correct horse")
	}
	c.site.Exec(t, "UPDATE users SET email = 'a@bücher.example', email_key = 'a@bücher.example' WHERE uid = $1", first.UID)
	c.site.Exec(t, "UPDATE users SET email = 'a@XN--BCHER-KVA.example', email_key = 'a@xn--bcher-kva.example' WHERE uid = $1", second.UID)
	for address, want := range map[string]client{
		"a@bücher.example": first, "A@BU\u0308CHER.Example\u200b": first, "a@ｂücher.example": first, "a@xn--bcher-kva.example": second,
	} {
		a := c.Post(t, "/api/auth/login", map[string]string{"email": address, "password": "correct horse"})
		c.as(a.Field(t, "token")).Get(t, "/api/user").HasField(t, fmt.Sprint(want.UID), "uid")
	}
}

// The response does not reveal whether the e-mail address or the password is wrong.
func TestLoginRefuses(t *testing.T) {
	t.Parallel()
	c := start(t, "LIMIT_REQUESTS=0").signUp(t) // else each response has another number of requests left
	c.withPassword(t, "correct horse")
	c.player(t, "Steve")
	c = c.as("")
	f := func(email, password string) response {
		t.Helper()
		a := c.Send(t, "POST", "/api/auth/login", encodeJSON(`{"email":"`+email+`","password":"`+password+`"}`), "X-Request-ID", "same")
		a.IsError(t, 401, 5)
		return a
	}

	wrong := f("user1@example.com", "wrong horse")
	for _, a := range []response{
		f("user2@example.com", "correct horse"),
		f("nobody", "correct horse"),
		f("", ""),
		f("Steve", "correct horse"), // a player's name does not sign in
		f("user1@example.com", "Correct horse"),
		f("user1@example.com", ""),
		f("user1@example.com", strings.Repeat("x", 10000)),
	} {
		a.IsSameAs(t, wrong)
	}

	c.Post(t, "/api/auth/login", `{}`).IsError(t, 422, 4, "email", "password")
	c.Send(t, "POST", "/api/auth/login", body{}).IsError(t, 422, 4, "email", "password")
	c.Post(t, "/api/auth/login", `{"email":"user1@example.com"}`).IsError(t, 422, 4, "password")
	c.Post(t, "/api/auth/login", `{"email":"user1@example.com","password":null}`).IsError(t, 422, 4, "password")
	c.Post(t, "/api/auth/login", `{"email":"user1\u0000@example.com","password":"correct horse"}`).IsError(t, 422, 4, "email")
}

// Imported accounts keep their passwords: a bcrypt hash is replaced at the first log-in.
func TestLoginWithBcrypt(t *testing.T) {
	t.Parallel()
	c := start(t, coretest.FullPasswords).signUp(t)
	old := testenv.Must(bcrypt.GenerateFromPassword([]byte("correct horse"), bcrypt.MinCost))(t)
	c.site.Exec(t, "UPDATE users SET password_hash = $1", string(old))
	hash := func() string { return c.site.Text(t, "SELECT password_hash FROM users") }

	c.Post(t, "/api/auth/login", `{"email":"user1@example.com","password":"wrong horse"}`).IsError(t, 401, 5)
	testenv.Equal(t, hash(), string(old), "after a wrong password the hash")
	for range 2 { // with the old hash, then with the new one
		isToken(t, c.logIn(t, knownEmail, "correct horse"))
		testenv.Contains(t, hash(), "$argon2id$v=19$m=19456,t=2,p=1$", "the hash after a log-in")
	}
}

func TestLogout(t *testing.T) {
	t.Parallel()
	c := start(t).signUp(t)
	otherServer := c.site.serve(t).as(c.Token)
	other := c.signIn(t)
	otherServer.Get(t, "/api/user").HasStatus(t, 200)

	c.Send(t, "POST", "/api/auth/logout", body{}).IsEmpty(t)
	for _, c := range []client{otherServer, c} {
		c.Get(t, "/api/user").IsError(t, 401, 5)
		c.Send(t, "POST", "/api/auth/refresh", body{}).IsError(t, 401, 5)
		c.Send(t, "POST", "/api/auth/logout", body{}).IsError(t, 401, 5)
	}
	other.Get(t, "/api/user").HasStatus(t, 200)
}

// refresh returns the client with the successor of its token.
func (c client) refresh(t *testing.T) client {
	t.Helper()
	a := c.Send(t, "POST", "/api/auth/refresh", body{})
	a.Is(t, 200, `{"token":"<jwt>","token_type":"Bearer","expires_in":3600}`)
	return c.as(a.Field(t, "token"))
}

// works checks whether the client's token is accepted.
func (c client) works(t *testing.T, want bool) {
	t.Helper()
	if a := c.Get(t, "/api/user"); want && a.Status != 200 {
		t.Errorf("the token is refused: %d %s", a.Status, a.Body)
	} else if !want {
		a.IsError(t, 401, 5)
	}
}

func TestRefresh(t *testing.T) {
	t.Parallel()
	first := start(t).signUp(t)
	first.site.Advance(time.Minute)
	second := first.refresh(t)
	testenv.Equal(t, second.Token == first.Token, false, "the successor is the token itself")
	second.works(t, true)

	// A refresh can be repeated for 30 s, after a lost response or from parallel requests.
	first.site.Advance(29 * time.Second)
	first.works(t, true)
	testenv.Equal(t, first.refresh(t).Token, second.Token, "within the grace, the successor")
	otherServer := first.site.serve(t).as(first.Token)
	testenv.Equal(t, otherServer.refresh(t).Token, second.Token, "within the grace, the one of another server")

	// After that the replaced token is rejected, and a refresh with it ends the session: the token
	// was stolen, from or by its sender.
	first.site.Advance(2 * time.Second)
	first.works(t, false)
	second.works(t, true)
	first.Send(t, "POST", "/api/auth/refresh", body{}).IsError(t, 401, 5)
	second.works(t, false)
	second.Send(t, "POST", "/api/auth/refresh", body{}).IsError(t, 401, 5)
}

func TestRefreshOfExpiredToken(t *testing.T) {
	t.Parallel()
	c := start(t).signUp(t)
	c.site.Advance(time.Hour + 6*time.Second) // clocks may differ by 5 s
	c.works(t, false)
	c = c.refresh(t)
	c.works(t, true)

	// A session ends 14 days after its last refresh.
	c.site.Advance(14*24*time.Hour - time.Second)
	c.works(t, false)
	c = c.refresh(t)
	c.works(t, true)
	c.site.Advance(14 * 24 * time.Hour)
	c.Send(t, "POST", "/api/auth/refresh", body{}).IsError(t, 401, 5)
}

func TestSessionMaxAge(t *testing.T) {
	t.Parallel()
	c := start(t).signUp(t)
	for range 8 {
		c.site.Advance(11 * 24 * time.Hour)
		c = c.refresh(t)
	}
	c.site.Advance(2*24*time.Hour - time.Minute)
	c = c.refresh(t)
	c.works(t, true)
	c.site.Advance(time.Minute)
	c.works(t, false)
	c.Send(t, "POST", "/api/auth/refresh", body{}).IsError(t, 401, 5)
}

func TestSessionLimit(t *testing.T) {
	t.Parallel()
	first := start(t).signUp(t)
	var last client
	for range 20 {
		first.site.Advance(time.Second)
		first.works(t, true)
		last = first.signIn(t)
	}
	first.works(t, false)
	last.works(t, true)
	first.site.HasCount(t, 20, "SELECT count(*) FROM sessions")
}
