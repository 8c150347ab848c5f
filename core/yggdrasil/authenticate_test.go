package yggdrasil_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/veneer-skins/veneer/shared/testenv"
	"github.com/veneer-skins/veneer/shared/testenv/cmptest"
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
		want := []named{}
		var selected *named
		for _, p := range u.players {
			want = append(want, toNamed(p))
		}
		if len(want) == 1 {
			selected = &want[0]
		}
		cmptest.Same(t, s.AvailableProfiles, want, "%v: the available profiles", players)
		cmptest.Same(t, s.SelectedProfile, selected, "%v: selected", players)
		testenv.Check(t, hexToken.MatchString(s.AccessToken) && s.User == nil, "%v: %+v", players, s)
		testenv.Equal(t, testenv.Must(uuid.Parse(s.ClientToken))(t).Version(), 4, "%v: the client token's version", players)
		testenv.Equal(t, len(s.ClientToken), 32, "%v: the length of the fresh client token %q", players, s.ClientToken)
		c.isValid(t, s.AccessToken)
	}
	f()
	f("Alone")
	f("First", "Second")

	// Some launchers leave the agent out.
	u := c.signUp(t, "No_agent")
	s := decode[session](t, c.Post(t, "/authserver/authenticate", map[string]any{"username": u.email, "password": password}))
	cmptest.Same(t, s.SelectedProfile, new(toNamed(u.players[0])), "without agent: selected")
}

// By the name of a player, without case, that one is bound, and all are listed.
func TestAuthenticateByName(t *testing.T) {
	t.Parallel()
	c := start(t)
	u := c.signUp(t, "First", "Second")
	for _, p := range u.players {
		for _, name := range []string{p.Name, strings.ToUpper(p.Name), " " + p.Name + "\n"} {
			s := c.authenticate(t, name)
			testenv.Equal(t, len(s.AvailableProfiles), 2, "%q: the number of available profiles", name)
			cmptest.Same(t, s.SelectedProfile, new(toNamed(p)), "%q: the selected profile", name)
		}
	}
	isError(t, c.Post(t, "/authserver/authenticate", credentials("First", "wrong")), 403, forbidden, badCredentials)
	isError(t, c.Post(t, "/authserver/authenticate", credentials("Nobody", password)), 403, forbidden, badCredentials)
}

// The client token is echoed verbatim, whatever it is; user comes if it is asked for, and its id
// stays.
func TestClientTokenAndUser(t *testing.T) {
	t.Parallel()
	c, u := startForOne(t)
	ids := map[string]bool{}
	for _, clientToken := range []string{"0d275e50-f5d1-4b7f-8d39-d66a3f904549X", "", "  ", "a\x00b", "皮肤\U0001f600", strings.Repeat("x", 1024)} {
		request := credentials(u.email, password)
		request["clientToken"], request["requestUser"] = clientToken, true
		s := decode[session](t, c.Post(t, "/authserver/authenticate", request))
		testenv.Check(t, s.ClientToken == clientToken,
			"the client token %q comes back as %q", clientToken, s.ClientToken)
		refreshed := decode[session](t, c.Post(t, "/authserver/refresh", map[string]any{"accessToken": s.AccessToken, "requestUser": true}))
		testenv.Check(t, refreshed.ClientToken == clientToken,
			"the client token %q is %q after a refresh", clientToken, refreshed.ClientToken)
		c.Post(t, "/authserver/validate", map[string]string{"accessToken": refreshed.AccessToken, "clientToken": clientToken}).IsEmpty(t)
		isError(t, c.Post(t, "/authserver/validate", map[string]string{"accessToken": refreshed.AccessToken, "clientToken": clientToken + "x"}), 403, forbidden, badToken)
		for _, answer := range []session{s, refreshed} {
			if answer.User == nil || answer.User.Properties == nil {
				t.Fatalf("the user is %+v", answer.User)
			}
			testenv.Equal(t, testenv.Must(uuid.Parse(answer.User.ID))(t).Version(), 4, "the version of the user's id")
			ids[answer.User.ID] = true
		}
	}
	testenv.Equal(t, len(ids), 1, "the number of ids of the user, %v,", ids)
	request := credentials(u.email, password)
	for written, isAsked := range map[any]bool{"true": true, "True": true, 1: true, "false": false, 0: false, nil: false} {
		request["requestUser"] = written
		s := decode[session](t, c.Post(t, "/authserver/authenticate", request))
		testenv.Equal(t, s.User != nil, isAsked, "with requestUser %#v the user", written)
	}
	request["requestUser"] = "please"
	isError(t, c.Post(t, "/authserver/authenticate", request), 400, "Bad Request", "")
	delete(request, "requestUser")
	request["clientToken"] = strings.Repeat("x", 1025)
	isError(t, c.Post(t, "/authserver/authenticate", request), 400, "Bad Request", "")
}

// A user of a core of the release before has no id yet.
func TestUserWithoutID(t *testing.T) {
	t.Parallel()
	c, u := startForOne(t)
	c.site.Exec(t, "UPDATE users SET account_uuid = NULL")
	request := credentials(u.email, password)
	request["requestUser"] = true
	first := decode[session](t, c.Post(t, "/authserver/authenticate", request))
	second := decode[session](t, c.Post(t, "/authserver/authenticate", request))
	testenv.Check(t, first.User.ID == second.User.ID && len(first.User.ID) == 32,
		"the ids are %s and %s", first.User.ID, second.User.ID)
}

// What is wrong with the credentials is not revealed.
func TestWrongCredentials(t *testing.T) {
	t.Parallel()
	c := start(t)
	u := c.signUp(t)
	wrong := func(path string, body any) {
		t.Helper()
		isError(t, c.Post(t, path, body), 403, forbidden, badCredentials)
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
	c.site.HasCount(t, 0, "SELECT count(*) FROM launcher_tokens")
}

// signout revokes all tokens of the user, and no others.
func TestSignOut(t *testing.T) {
	t.Parallel()
	c := start(t)
	u, other := c.signUp(t, "Ann_1"), c.signUp(t, "Ben_1")
	first, second, others := c.issue(t, u), c.issue(t, u), c.issue(t, other)
	c.Post(t, "/authserver/signout", credentials("ann_1", password)).IsEmpty(t)
	c.isRevoked(t, first.AccessToken)
	c.isRevoked(t, second.AccessToken)
	c.isValid(t, others.AccessToken)
	c.Post(t, "/authserver/signout", credentials(u.email, password)).IsEmpty(t)
}

// One attempt a second for an account from a client network, by e-mail and by name alike, over all
// servers, right or wrong.
func TestLoginInterval(t *testing.T) {
	t.Parallel()
	c := start(t, "YGGDRASIL_LOGIN_INTERVAL=1h")
	again, elsewhere := serve(t, c.site), c.from(t, "192.0.2.2")
	u, other := c.signUp(t, "Ann_1"), c.signUp(t, "Ben_1")
	tooOften := func(c client, path, username, password string) {
		t.Helper()
		got := c.Post(t, path, credentials(username, password))
		isError(t, got, 403, forbidden, "There were too many attempts to log in. Please wait before you try again.")
		testenv.Equal(t, got.Header.Get("Retry-After") != "", true, "%s: there is a Retry-After", got.Request())
	}
	c.authenticate(t, u.email)
	tooOften(c, "/authserver/authenticate", u.email, password)
	tooOften(c, "/authserver/authenticate", u.email, "wrong")
	tooOften(c, "/authserver/authenticate", "ANN_1", password)
	tooOften(c, "/authserver/signout", "Ann_1", password)
	tooOften(again, "/authserver/authenticate", u.email, password)
	c.authenticate(t, other.email)
	elsewhere.authenticate(t, u.email)

	isError(t, c.Post(t, "/authserver/authenticate", credentials("nobody@example.com", "wrong")), 403, forbidden, badCredentials)
	tooOften(c, "/authserver/authenticate", "nobody@example.com", "wrong")
	isError(t, c.Post(t, "/authserver/authenticate", credentials("Nobody", "wrong")), 403, forbidden, badCredentials)
	tooOften(c, "/authserver/authenticate", "nobody", "wrong")

	c.site.Exec(t, "UPDATE launcher_attempts SET attempted_at = attempted_at - interval '1 hour'")
	c.Post(t, "/authserver/signout", credentials(u.email, password)).IsEmpty(t)
	tooOften(c, "/authserver/signout", u.email, password)
}

// Of concurrent attempts one is admitted.
func TestLoginIntervalAtOnce(t *testing.T) {
	t.Parallel()
	c := start(t, "YGGDRASIL_LOGIN_INTERVAL=1h")
	u := c.signUp(t)
	got := c.AtOnce(t, 20, "/authserver/authenticate", func(int) body { return jsonBody(credentials(u.email, password)) })
	cmptest.Same(t, got, map[int]int{200: 1, 403: 19}, "the statuses")
}

// Failed log-ins of launchers and of the site count together.
func TestFailuresCountTogether(t *testing.T) {
	t.Parallel()
	c, u := startForOne(t, "LIMIT_LOGIN_FAILURES=3")
	for _, username := range []string{u.email, "Ann_1", u.email} {
		isError(t, c.Post(t, "/authserver/authenticate", credentials(username, "wrong")), 403, forbidden, badCredentials)
	}
	isError(t, c.Post(t, "/authserver/authenticate", credentials("Ann_1", password)), 403, forbidden, "There were too many attempts to log in. Please wait before you try again.")
	login := jsonBody(map[string]string{"email": u.email, "password": password})
	testenv.Must(c.atRoot().Exchange("POST", "/api/auth/login", login))(t).HasStatus(t, 429)
	// A success is not counted.
	for range 5 {
		c.from(t, "192.0.2.9").authenticate(t, u.email)
	}
}

// A banned user gets no token, and is told why; users must have verified addresses if the site
// wants that.
func TestBannedAndUnverified(t *testing.T) {
	t.Parallel()
	c, u := startForOne(t, "YGGDRASIL_REQUIRE_VERIFIED=true")
	c.site.Exec(t, "UPDATE users SET verified = false")
	isError(t, c.Post(t, "/authserver/authenticate", credentials(u.email, "wrong")), 403, forbidden, badCredentials)
	isError(t, c.Post(t, "/authserver/authenticate", credentials(u.email, password)), 403, forbidden, "Please verify your e-mail address first.")
	c.site.Exec(t, "UPDATE users SET verified = true")
	s := c.authenticate(t, u.email)
	c.site.Exec(t, "UPDATE users SET permission = -1") // as a core of the release before does
	const banned = "This account is banned."
	isError(t, c.Post(t, "/authserver/authenticate", credentials(u.email, "wrong")), 403, forbidden, badCredentials)
	isError(t, c.Post(t, "/authserver/authenticate", credentials(u.email, password)), 403, forbidden, banned)
	isError(t, c.Post(t, "/authserver/refresh", map[string]string{"accessToken": s.AccessToken}), 403, forbidden, banned)
	isError(t, c.Post(t, "/authserver/validate", map[string]string{"accessToken": s.AccessToken}), 403, forbidden, banned)
	isError(t, c.join(t, s.AccessToken, hexID(u.players[0].UUID), "s"), 403, forbidden, banned)
	isError(t, c.as(s.AccessToken).Get(t, "/minecraftservices/minecraft/profile"), 403, forbidden, banned)
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
	got := c.AtOnce(t, 4, "/authserver/authenticate", func(int) body { return jsonBody(credentials(u.email, password)) })
	testenv.Equal(t, got[200], 4, "the successes of %v", got)
	c.site.HasCount(t, 3, "SELECT count(*) FROM launcher_tokens WHERE uid = $1", u.ID)
}
