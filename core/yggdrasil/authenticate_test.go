package yggdrasil_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
)

var hexToken = regexp.MustCompile(`^[0-9a-f]{64}$`)

// The user's only player is bound. With none or several the token is bound to none.
func TestAuthenticate(t *testing.T) {
	t.Parallel()

	c := start(t)
	f := func(players ...string) {
		t.Helper()
		u := c.signUp(t, players...)
		s := c.authenticate(t, u.email)
		var want []named
		for _, p := range u.players {
			want = append(want, toNamed(p))
		}
		if len(s.AvailableProfiles) != len(want) || len(want) > 0 && !cmp.Equal(s.AvailableProfiles, want) {
			t.Errorf("%v: the available profiles are %v", players, s.AvailableProfiles)
		}
		switch {
		case len(players) == 1 && (s.SelectedProfile == nil || *s.SelectedProfile != want[0]):
			t.Errorf("%v: selected is %v", players, s.SelectedProfile)
		case len(players) != 1 && s.SelectedProfile != nil:
			t.Errorf("%v: selected is %v; want none", players, s.SelectedProfile)
		}
		if !hexToken.MatchString(s.AccessToken) || s.User != nil {
			t.Errorf("%v: %+v", players, s)
		}
		if id, err := uuid.Parse(s.ClientToken); err != nil || id.Version() != 4 || len(s.ClientToken) != 32 {
			t.Errorf("%v: the fresh client token is %q", players, s.ClientToken)
		}
		c.isValid(t, s.AccessToken)
	}
	f()
	f("Alone")
	f("First", "Second")
}

// By the name of a player, without case, that one is bound, and all are listed.
func TestAuthenticateByName(t *testing.T) {
	t.Parallel()

	c := start(t)
	u := c.signUp(t, "First", "Second")
	for _, p := range u.players {
		for _, name := range []string{p.Name, strings.ToUpper(p.Name), " " + p.Name + "\n"} {
			s := c.authenticate(t, name)
			if len(s.AvailableProfiles) != 2 || s.SelectedProfile == nil || *s.SelectedProfile != toNamed(p) {
				t.Errorf("%q: %+v", name, s)
			}
		}
	}
	c.post(t, "/authserver/authenticate", credentials("First", "wrong")).isError(t, 403, forbidden, badCredentials)
	c.post(t, "/authserver/authenticate", credentials("Nobody", password)).isError(t, 403, forbidden, badCredentials)
}

// The client token is echoed verbatim, whatever it is; user comes if it is asked for, and its id
// stays.
func TestClientTokenAndUser(t *testing.T) {
	t.Parallel()

	c := start(t)
	u := c.signUp(t, "Ann_1")
	ids := map[string]bool{}
	for _, clientToken := range []string{"0d275e50-f5d1-4b7f-8d39-d66a3f904549X", "", "  ", "a\x00b", "皮肤\U0001f600", strings.Repeat("x", 1024)} {
		request := credentials(u.email, password)
		request["clientToken"], request["requestUser"] = clientToken, true
		s := decode[session](t, c.post(t, "/authserver/authenticate", request))
		if s.ClientToken != clientToken {
			t.Errorf("the client token %q comes back as %q", clientToken, s.ClientToken)
		}
		refreshed := decode[session](t, c.post(t, "/authserver/refresh", map[string]any{"accessToken": s.AccessToken, "requestUser": true}))
		if refreshed.ClientToken != clientToken {
			t.Errorf("the client token %q is %q after a refresh", clientToken, refreshed.ClientToken)
		}
		c.post(t, "/authserver/validate", map[string]string{"accessToken": refreshed.AccessToken, "clientToken": clientToken}).isEmpty(t)
		c.post(t, "/authserver/validate", map[string]string{"accessToken": refreshed.AccessToken, "clientToken": clientToken + "x"}).isError(t, 403, forbidden, badToken)
		for _, answer := range []session{s, refreshed} {
			if answer.User == nil || answer.User.Properties == nil {
				t.Fatalf("the user is %+v", answer.User)
			}
			if id, err := uuid.Parse(answer.User.ID); err != nil || id.Version() != 4 {
				t.Errorf("the user's id is %q", answer.User.ID)
			}
			ids[answer.User.ID] = true
		}
	}
	if len(ids) != 1 {
		t.Errorf("the user has the ids %v", ids)
	}
	request := credentials(u.email, password)
	request["clientToken"] = strings.Repeat("x", 1025)
	c.post(t, "/authserver/authenticate", request).isError(t, 400, "Bad Request", "")
}

// A user of a core of the release before has no id yet.
func TestUserWithoutID(t *testing.T) {
	t.Parallel()

	c := start(t)
	u := c.signUp(t, "Ann_1")
	c.site.exec(t, "UPDATE users SET account_uuid = NULL")
	request := credentials(u.email, password)
	request["requestUser"] = true
	first := decode[session](t, c.post(t, "/authserver/authenticate", request))
	second := decode[session](t, c.post(t, "/authserver/authenticate", request))
	if first.User.ID != second.User.ID || len(first.User.ID) != 32 {
		t.Errorf("the ids are %s and %s", first.User.ID, second.User.ID)
	}
}

// What is wrong with the credentials is not revealed.
func TestWrongCredentials(t *testing.T) {
	t.Parallel()

	c := start(t)
	u := c.signUp(t)
	wrong := func(path string, body any) {
		t.Helper()
		c.post(t, path, body).isError(t, 403, forbidden, badCredentials)
	}
	for _, body := range []any{
		credentials(u.email, "wrong"), credentials("notExists@example.com", password), credentials("a\x00b", password),
		credentials(u.email, password+"\x00"), credentials(u.email, " "+password), "", `{"username":null,"password":null}`, `{"username":"` + u.email + `"}`,
	} {
		wrong("/authserver/authenticate", body)
	}
	wrong("/authserver/signout", credentials(u.email, "wrong"))
	wrong("/authserver/signout", credentials("notExists@example.com", password))
	wrong("/authserver/signout", "{}")
	if n := c.site.count(t, "SELECT count(*) FROM launcher_tokens"); n != 0 {
		t.Errorf("%d tokens were issued", n)
	}
}

// signout revokes all tokens of the user, and no others.
func TestSignOut(t *testing.T) {
	t.Parallel()

	c := start(t)
	u, other := c.signUp(t, "Ann_1"), c.signUp(t, "Ben_1")
	first, second, others := c.issue(t, u), c.issue(t, u), c.issue(t, other)
	c.post(t, "/authserver/signout", credentials("ann_1", password)).isEmpty(t)
	c.isRevoked(t, first.AccessToken)
	c.isRevoked(t, second.AccessToken)
	c.isValid(t, others.AccessToken)
	c.post(t, "/authserver/signout", credentials(u.email, password)).isEmpty(t)
}

// One attempt a second for an account from a client network, by e-mail and by name alike, over all
// servers, right or wrong.
func TestLoginInterval(t *testing.T) {
	t.Parallel()

	c := start(t, "YGGDRASIL_LOGIN_INTERVAL=1h")
	again, elsewhere := c.site.serve(t), c.from(t, "192.0.2.2")
	u, other := c.signUp(t, "Ann_1"), c.signUp(t, "Ben_1")
	tooOften := func(c client, path, username, password string) {
		t.Helper()
		got := c.post(t, path, credentials(username, password))
		got.isError(t, 403, forbidden, "There were too many attempts to log in. Please wait before you try again.")
		if len(got.header.Peek("Retry-After")) == 0 {
			t.Errorf("%s: there is no Retry-After", got.request)
		}
	}
	c.authenticate(t, u.email)
	tooOften(c, "/authserver/authenticate", u.email, password)
	tooOften(c, "/authserver/authenticate", u.email, "wrong")
	tooOften(c, "/authserver/authenticate", "ANN_1", password)
	tooOften(c, "/authserver/signout", "Ann_1", password)
	tooOften(again, "/authserver/authenticate", u.email, password)
	c.authenticate(t, other.email)
	elsewhere.authenticate(t, u.email)

	c.post(t, "/authserver/authenticate", credentials("nobody@example.com", "wrong")).isError(t, 403, forbidden, badCredentials)
	tooOften(c, "/authserver/authenticate", "nobody@example.com", "wrong")
	c.post(t, "/authserver/authenticate", credentials("Nobody", "wrong")).isError(t, 403, forbidden, badCredentials)
	tooOften(c, "/authserver/authenticate", "nobody", "wrong")

	c.site.exec(t, "UPDATE launcher_attempts SET attempted_at = attempted_at - interval '1 hour'")
	c.post(t, "/authserver/signout", credentials(u.email, password)).isEmpty(t)
	tooOften(c, "/authserver/signout", u.email, password)
}

// Of concurrent attempts one is admitted.
func TestLoginIntervalAtOnce(t *testing.T) {
	t.Parallel()

	c := start(t, "YGGDRASIL_LOGIN_INTERVAL=1h")
	u := c.signUp(t)
	got := c.atOnce(t, 20, "/authserver/authenticate", func(int) body { return jsonBody(t, credentials(u.email, password)) })
	if got[200] != 1 || got[403] != 19 {
		t.Errorf("the statuses are %v; want one 200", got)
	}
}

// Failed log-ins of launchers and of the site count together.
func TestFailuresCountTogether(t *testing.T) {
	t.Parallel()

	c := start(t, "LIMIT_LOGIN_FAILURES=3")
	u := c.signUp(t, "Ann_1")
	for _, username := range []string{u.email, "Ann_1", u.email} {
		c.post(t, "/authserver/authenticate", credentials(username, "wrong")).isError(t, 403, forbidden, badCredentials)
	}
	c.post(t, "/authserver/authenticate", credentials("Ann_1", password)).isError(t, 403, forbidden, "There were too many attempts to log in. Please wait before you try again.")
	if got, err := c.exchangeAt("POST", "/api/auth/login", jsonBody(t, map[string]string{"email": u.email, "password": password})); err != nil || got.status != 429 {
		t.Errorf("the site's log-in: %d, %v; want 429", got.status, err)
	}
	// A success is not counted.
	for range 5 {
		c.from(t, "192.0.2.9").authenticate(t, u.email)
	}
}

// A banned user gets no token, and is told why; users must have verified addresses if the site
// wants that.
func TestBannedAndUnverified(t *testing.T) {
	t.Parallel()

	c := start(t, "YGGDRASIL_REQUIRE_VERIFIED=true")
	u := c.signUp(t, "Ann_1")
	c.site.exec(t, "UPDATE users SET verified = false")
	c.post(t, "/authserver/authenticate", credentials(u.email, "wrong")).isError(t, 403, forbidden, badCredentials)
	c.post(t, "/authserver/authenticate", credentials(u.email, password)).isError(t, 403, forbidden, "Please verify your e-mail address first.")
	c.site.exec(t, "UPDATE users SET verified = true")
	s := c.authenticate(t, u.email)
	c.site.exec(t, "UPDATE users SET permission = -1") // as a core of the release before does
	const banned = "This account is banned."
	c.post(t, "/authserver/authenticate", credentials(u.email, "wrong")).isError(t, 403, forbidden, badCredentials)
	c.post(t, "/authserver/authenticate", credentials(u.email, password)).isError(t, 403, forbidden, banned)
	c.post(t, "/authserver/refresh", map[string]string{"accessToken": s.AccessToken}).isError(t, 403, forbidden, banned)
	c.post(t, "/authserver/validate", map[string]string{"accessToken": s.AccessToken}).isError(t, 403, forbidden, banned)
	c.join(t, s.AccessToken, hexID(u.players[0].UUID), "s").isError(t, 403, forbidden, banned)
	c.as(s.AccessToken).get(t, "/minecraftservices/minecraft/profile").isError(t, 403, forbidden, banned)
}

// A user has at most so many tokens; one more ends the oldest.
func TestTokensOfAUser(t *testing.T) {
	t.Parallel()

	c := start(t, "YGGDRASIL_TOKENS=3")
	u, other := c.signUp(t), c.signUp(t)
	others := c.issue(t, other)
	var tokens []string
	for range 4 {
		tokens = append(tokens, c.issue(t, u).AccessToken)
	}
	tokens = append(tokens, c.authenticate(t, u.email).AccessToken)
	for i, token := range tokens {
		if i < 2 {
			c.isRevoked(t, token)
		} else {
			c.isValid(t, token)
		}
	}
	c.isValid(t, others.AccessToken)
	if got := c.atOnce(t, 4, "/authserver/authenticate", func(int) body { return jsonBody(t, credentials(u.email, password)) }); got[200] != 4 {
		t.Errorf("the statuses are %v", got)
	}
	if n := c.site.count(t, "SELECT count(*) FROM launcher_tokens WHERE uid = $1", u.ID); n != 3 {
		t.Errorf("the user has %d tokens; want 3", n)
	}
}
