package api_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/bcrypt"

	"github.com/veneer-skins/veneer/shared/testenv"
)

func TestLogin(t *testing.T) {
	t.Parallel()

	c := start(t).signUp(t)
	c.withPassword(t, "correct horse")
	c.site.advance(time.Hour)
	c = c.as("")
	for _, body := range []body{
		encodeJSON(`{"email":"user1@example.com","password":"correct horse"}`),
		encodeForm("email=user1%40example.com&password=correct+horse"),
		encodeMultipart(t, "email=user1%40example.com&password=correct+horse", nil),
	} {
		a := c.send(t, "POST", "/api/auth/login", body)
		a.is(t, 200, `{"token":"<jwt>","token_type":"Bearer","expires_in":3600}`)
		if got := c.as(a.field(t, "token")).get(t, "/api/user").field(t, "last_sign_at"); got != "2031-02-03 05:05:06" {
			t.Errorf("after the log-in, last_sign_at is %s", got)
		}
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
		a := c.send(t, "POST", "/api/auth/login", encodeJSON(`{"email":"`+email+`","password":"`+password+`"}`), "X-Request-ID", "same")
		a.isError(t, 401, 5)
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
		if !bytes.Equal(a.body, wrong.body) {
			t.Errorf("the answers differ: %s and %s", wrong.body, a.body)
		}
		wrong.header.Del("Date")
		a.header.Del("Date")
		if got, want := a.header.String(), wrong.header.String(); got != want {
			t.Errorf("the headers differ: %s and %s", want, got)
		}
	}

	c.post(t, "/api/auth/login", `{}`).isError(t, 422, 4, "email", "password")
	c.send(t, "POST", "/api/auth/login", body{}).isError(t, 422, 4, "email", "password")
	c.post(t, "/api/auth/login", `{"email":"user1@example.com"}`).isError(t, 422, 4, "password")
	c.post(t, "/api/auth/login", `{"email":"user1@example.com","password":null}`).isError(t, 422, 4, "password")
	c.post(t, "/api/auth/login", `{"email":"user1\u0000@example.com","password":"correct horse"}`).isError(t, 422, 4, "email")
}

// Imported accounts keep their passwords: a bcrypt hash is replaced at the first log-in.
func TestLoginWithBcrypt(t *testing.T) {
	t.Parallel()

	c := start(t).signUp(t)
	old, err := bcrypt.GenerateFromPassword([]byte("correct horse"), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	c.site.exec(t, "UPDATE users SET password_hash = $1", string(old))
	hash := func() (hash string) {
		if err := c.site.sql.QueryRow(t.Context(), "SELECT password_hash FROM users").Scan(&hash); err != nil {
			t.Fatal(err)
		}
		return hash
	}

	c.post(t, "/api/auth/login", `{"email":"user1@example.com","password":"wrong horse"}`).isError(t, 401, 5)
	if got := hash(); got != string(old) {
		t.Errorf("after a wrong password the hash is %s", got)
	}
	for range 2 { // with the old hash, then with the new one
		c.post(t, "/api/auth/login", `{"email":"user1@example.com","password":"correct horse"}`).
			is(t, 200, `{"token":"<jwt>","token_type":"Bearer","expires_in":3600}`)
		if got := hash(); !strings.HasPrefix(got, "$argon2id$v=19$m=19456,t=2,p=1$") {
			t.Errorf("after a log-in the hash is %s", got)
		}
	}
}

// Of concurrent log-ins with the right password none fails because another one has replaced the
// hash.
func TestConcurrentLoginsRehash(t *testing.T) {
	t.Parallel()
	testenv.SkipShort(t)

	c := start(t).signUp(t)
	old, err := bcrypt.GenerateFromPassword([]byte("correct horse"), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		c.site.exec(t, "UPDATE users SET password_hash = $2 WHERE uid = $1", c.uid, string(old))
		outcomes := make(chan error, 4)
		for range cap(outcomes) {
			go func() {
				_, err := c.services.Sessions.Login(t.Context(), "user1@example.com", "correct horse", homeNetwork)
				outcomes <- err
			}()
		}
		for range cap(outcomes) {
			if err := <-outcomes; err != nil {
				t.Error(err)
			}
		}
	}
}

func TestLogout(t *testing.T) {
	t.Parallel()

	c := start(t).signUp(t)
	otherServer := c.site.serve(t).as(c.token)
	other := c.signIn(t)
	if a := otherServer.get(t, "/api/user"); a.status != 200 {
		t.Fatalf("another server answers with %d %s", a.status, a.body)
	}

	if a := c.send(t, "POST", "/api/auth/logout", body{}); a.status != 204 || a.headerValue("Content-Type") != "" {
		t.Errorf("the log-out is answered with %d, of type %q", a.status, a.headerValue("Content-Type"))
	}
	for _, c := range []client{otherServer, c} {
		c.get(t, "/api/user").isError(t, 401, 5)
		c.send(t, "POST", "/api/auth/refresh", body{}).isError(t, 401, 5)
		c.send(t, "POST", "/api/auth/logout", body{}).isError(t, 401, 5)
	}
	if a := other.get(t, "/api/user"); a.status != 200 {
		t.Errorf("the log-out ended another session: %d %s", a.status, a.body)
	}
}

// refresh returns the client with the successor of its token.
func (c client) refresh(t *testing.T) client {
	t.Helper()
	a := c.send(t, "POST", "/api/auth/refresh", body{})
	a.is(t, 200, `{"token":"<jwt>","token_type":"Bearer","expires_in":3600}`)
	return c.as(a.field(t, "token"))
}

// works checks whether the client's token is accepted.
func (c client) works(t *testing.T, want bool) {
	t.Helper()
	if a := c.get(t, "/api/user"); want && a.status != 200 {
		t.Errorf("the token is refused: %d %s", a.status, a.body)
	} else if !want {
		a.isError(t, 401, 5)
	}
}

func TestRefresh(t *testing.T) {
	t.Parallel()

	first := start(t).signUp(t)
	first.site.advance(time.Minute)
	second := first.refresh(t)
	if second.token == first.token {
		t.Error("the successor is the token itself")
	}
	second.works(t, true)

	// A refresh can be repeated for 30 s, after a lost response or from parallel requests.
	first.site.advance(29 * time.Second)
	first.works(t, true)
	if again := first.refresh(t); again.token != second.token {
		t.Error("within the grace, the successor is another")
	}
	if again := first.site.serve(t).as(first.token).refresh(t); again.token != second.token {
		t.Error("within the grace, the successor is another on another server")
	}

	// After that the replaced token is rejected, and a refresh with it ends the session: the token
	// was stolen, from or by its sender.
	first.site.advance(2 * time.Second)
	first.works(t, false)
	second.works(t, true)
	first.send(t, "POST", "/api/auth/refresh", body{}).isError(t, 401, 5)
	second.works(t, false)
	second.send(t, "POST", "/api/auth/refresh", body{}).isError(t, 401, 5)
}

// Eight concurrent refreshes at two servers return the same successor.
func TestConcurrentRefreshes(t *testing.T) {
	t.Parallel()
	testenv.SkipShort(t)

	c := start(t).signUp(t)
	servers := []client{c, c.site.serve(t).as(c.token)}
	tokens := make([]string, 8)
	var clients sync.WaitGroup
	for i := range tokens {
		clients.Go(func() {
			var bearer struct{ Token string }
			if err := json.Unmarshal(servers[i%2].send(t, "POST", "/api/auth/refresh", body{}).body, &bearer); err != nil {
				t.Error(err)
			}
			tokens[i] = bearer.Token
		})
	}
	clients.Wait()
	for _, token := range tokens {
		if token == "" || token != tokens[0] {
			t.Fatalf("the successors are %q; want one", tokens)
		}
	}
	for _, server := range servers {
		server.as(tokens[0]).works(t, true)
	}
	if n := c.site.count(t, "SELECT count(*) FROM session_tokens"); n != 2 {
		t.Errorf("the session has %d tokens; want the first and its successor", n)
	}
}

func TestRefreshOfExpiredToken(t *testing.T) {
	t.Parallel()

	c := start(t).signUp(t)
	c.site.advance(time.Hour + 6*time.Second) // clocks may differ by 5 s
	c.works(t, false)
	c = c.refresh(t)
	c.works(t, true)

	// A session ends 14 days after its last refresh.
	c.site.advance(14*24*time.Hour - time.Second)
	c.works(t, false)
	c = c.refresh(t)
	c.works(t, true)
	c.site.advance(14 * 24 * time.Hour)
	c.send(t, "POST", "/api/auth/refresh", body{}).isError(t, 401, 5)
}

func TestSessionMaxAge(t *testing.T) {
	t.Parallel()

	c := start(t).signUp(t)
	for range 8 {
		c.site.advance(11 * 24 * time.Hour)
		c = c.refresh(t)
	}
	c.site.advance(2*24*time.Hour - time.Minute)
	c = c.refresh(t)
	c.works(t, true)
	c.site.advance(time.Minute)
	c.works(t, false)
	c.send(t, "POST", "/api/auth/refresh", body{}).isError(t, 401, 5)
}

func TestSessionLimit(t *testing.T) {
	t.Parallel()

	first := start(t).signUp(t)
	var last client
	for range 20 {
		first.site.advance(time.Second)
		first.works(t, true)
		last = first.signIn(t)
	}
	first.works(t, false)
	last.works(t, true)
	if n := first.site.count(t, "SELECT count(*) FROM sessions"); n != 20 {
		t.Errorf("there are %d sessions; want 20", n)
	}
}
