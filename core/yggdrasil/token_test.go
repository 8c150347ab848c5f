package yggdrasil_test

import (
	"testing"

	"github.com/google/uuid"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/core/coretest"
	"github.com/veneer-skins/veneer/shared/testenv"
	"github.com/veneer-skins/veneer/shared/testenv/cmptest"
)

// A refresh replaces the token, and keeps the client token and the player. The old one is dead.
func TestRefresh(t *testing.T) {
	t.Parallel()
	c, u := startForOne(t)
	s := c.issue(t, u)
	isError(t, c.Post(t, "/authserver/refresh", map[string]string{"accessToken": s.AccessToken, "clientToken": "other"}), 403, forbidden, badToken)
	c.isValid(t, s.AccessToken)
	for range 3 {
		next := decode[session](t, c.Post(t, "/authserver/refresh", map[string]string{"accessToken": s.AccessToken, "clientToken": s.ClientToken}))
		if next.AccessToken == s.AccessToken || next.ClientToken != s.ClientToken || next.SelectedProfile == nil || *next.SelectedProfile != toNamed(u.players[0]) || next.User != nil {
			t.Errorf("%+v is refreshed to %+v", s, next)
		}
		c.isRevoked(t, s.AccessToken)
		c.isValid(t, next.AccessToken)
		s = next
	}
}

// A token without a player is bound by selecting one.
func TestSelectProfile(t *testing.T) {
	t.Parallel()
	c := start(t)
	u, other := c.signUp(t, "First", "Second"), c.signUp(t, "Foreign")
	refresh := func(token string, profile any) response {
		return c.Post(t, "/authserver/refresh", map[string]any{"accessToken": token, "selectedProfile": profile})
	}
	s := c.issue(t, u)
	s = decode[session](t, refresh(s.AccessToken, nil))
	testenv.Check(t, s.SelectedProfile == nil && len(s.AvailableProfiles) == 2, "without a selection: %+v", s)

	// A selection that fails leaves the token as it was.
	for _, unknown := range []any{map[string]string{"id": "992960dfc7a54afca041760004499434", "name": "x"}, map[string]string{"id": "x"}, map[string]string{}, map[string]string{"id": hexID(uuid.Nil)}} {
		isError(t, refresh(s.AccessToken, unknown), 400, illegal, "Access token already has a profile assigned.")
		c.isValid(t, s.AccessToken)
	}
	isError(t, refresh(s.AccessToken, toNamed(other.players[0])), 403, forbidden, "")
	isError(t, refresh(s.AccessToken, `text`), 400, "Bad Request", "")
	c.isValid(t, s.AccessToken)

	second := toNamed(u.players[1])
	bound := decode[session](t, refresh(s.AccessToken, map[string]string{"id": u.players[1].UUID.String(), "name": "another name"}))
	cmptest.Same(t, bound.SelectedProfile, &second, "after a selection it")
	for _, profile := range []named{toNamed(u.players[0]), second} {
		isError(t, refresh(bound.AccessToken, profile), 400, illegal, "Access token already has a profile assigned.")
	}
	again := decode[session](t, refresh(bound.AccessToken, nil))
	cmptest.Same(t, again.SelectedProfile, &second, "refreshed again it")
}

// Of two refreshes at once one wins, and its token is the only one.
func TestRefreshAtOnce(t *testing.T) {
	t.Parallel()
	c, u := startForOne(t)
	for range 5 {
		s := c.issue(t, u)
		got := c.AtOnce(t, 2, "/authserver/refresh", func(int) body { return jsonBody(map[string]string{"accessToken": s.AccessToken}) })
		cmptest.Same(t, got, map[int]int{200: 1, 403: 1}, "the statuses")
		c.isRevoked(t, s.AccessToken)
	}
	c.site.HasCount(t, 5, "SELECT count(*) FROM launcher_tokens")
}

// After 15 days a token is temporarily invalid, and after 45 it is gone.
func TestTokenLifetimes(t *testing.T) {
	t.Parallel()
	c, u := startForOne(t)
	id := hexID(u.players[0].UUID)
	s := c.issue(t, u)
	age := func(interval string) {
		t.Helper()
		c.site.Exec(t, "UPDATE launcher_tokens SET issued_at = issued_at - $1::interval", interval)
	}
	age("14 days 23 hours")
	c.isValid(t, s.AccessToken)
	age("1 hour")
	c.isInvalid(t, s.AccessToken)
	isError(t, c.join(t, s.AccessToken, id, "s"), 403, forbidden, badToken)
	isError(t, c.as(s.AccessToken).Get(t, "/minecraftservices/minecraft/profile"), 401, "Unauthorized", badToken)
	age("29 days 23 hours")
	s = decode[session](t, c.Post(t, "/authserver/refresh", map[string]string{"accessToken": s.AccessToken}))
	c.isValid(t, s.AccessToken)
	c.join(t, s.AccessToken, id, "s").IsEmpty(t)
	age("45 days")
	c.isRevoked(t, s.AccessToken)
	testenv.Equal(t, testenv.Must(c.services.Tokens.Trim(t.Context()))(t), 1, "the trimmed tokens")
}

// A new name makes a token temporarily invalid, so that the launcher learns the name by a refresh.
func TestRename(t *testing.T) {
	t.Parallel()
	c := start(t)
	u := c.signUp(t, "Before")
	s := c.issue(t, u)
	for _, name := range []string{"After", "AFTER"} { // a change of case is one, too
		testenv.Must(c.Domain.Players.Rename(t.Context(), core.Caller{User: u.User}.Owner(), u.players[0].ID, name))(t)
		c.isInvalid(t, s.AccessToken)
		isError(t, c.join(t, s.AccessToken, hexID(u.players[0].UUID), "s"), 403, forbidden, badToken)
		s = decode[session](t, c.Post(t, "/authserver/refresh", map[string]string{"accessToken": s.AccessToken}))
		cmptest.Same(t, s.SelectedProfile, &named{hexID(u.players[0].UUID), name}, "after the new name %s", name)
		c.isValid(t, s.AccessToken)
		c.join(t, s.AccessToken, hexID(u.players[0].UUID), "s").IsEmpty(t)
	}
}

// invalidate ends that token and no other, whatever the client token, and never fails.
func TestInvalidate(t *testing.T) {
	t.Parallel()
	c := start(t)
	u := c.signUp(t)
	kept := c.issue(t, u)
	invalidate := func(body any) {
		t.Helper()
		c.Post(t, "/authserver/invalidate", body).IsEmpty(t)
	}
	for _, clientToken := range []any{nil, "other", ""} {
		s := c.issue(t, u)
		invalidate(map[string]any{"accessToken": s.AccessToken, "clientToken": clientToken})
		c.isRevoked(t, s.AccessToken)
		invalidate(map[string]any{"accessToken": s.AccessToken})
	}
	invalidate("{}")
	invalidate(`{"accessToken":null}`)
	invalidate(map[string]string{"accessToken": "fa0e97770dec465aa3c5db8d70162857"})
	c.isValid(t, kept.AccessToken)
}

// What ends sessions ends tokens and joins, on every server at once.
func TestRevocation(t *testing.T) {
	t.Parallel()
	c := start(t)
	again := serve(t, c.site)
	f := func(what string, change func(u user)) {
		t.Helper()
		u, other := c.signUp(t, "A"+what), c.signUp(t, "B"+what)
		s, others := c.issue(t, u), c.issue(t, other)
		again.isValid(t, s.AccessToken)
		c.join(t, s.AccessToken, hexID(u.players[0].UUID), "before").IsEmpty(t)
		decode[signedProfile](t, c.hasJoined(t, u.players[0].Name, "before"))
		change(u)
		for _, c := range []client{c, again} {
			c.hasJoined(t, u.players[0].Name, "before").IsEmpty(t)
			c.isRevoked(t, s.AccessToken)
			isError(t, c.join(t, s.AccessToken, hexID(u.players[0].UUID), "s"), 403, forbidden, badToken)
			c.isValid(t, others.AccessToken)
		}
	}
	admin := core.CLIActor
	caller := func(u user) core.Caller {
		u.Email = u.email
		return core.Caller{User: u.User}
	}
	f("_change", func(u user) {
		err := c.Domain.Accounts.ChangePassword(t.Context(), caller(u), password, "another password", coretest.HomeNetwork)
		testenv.Do(t, err)
	})
	f("_reset", func(u user) {
		testenv.Must(c.Domain.Accounts.ResetPassword(t.Context(), admin, u.ID, "another password"))(t)
	})
	f("_signout", func(u user) { c.Post(t, "/authserver/signout", credentials(u.email, password)).IsEmpty(t) })
	f("_all", func(u user) { testenv.Do(t, c.Domain.UserSessions.EndOthers(t.Context(), caller(u))) })
	f("_ban", func(u user) {
		testenv.Must(c.Domain.Accounts.SetPermission(t.Context(), admin, u.ID, core.PermissionChange{Permission: int64(core.Banned)}))(t)
	})
	f("_unban", func(u user) {
		c.site.Exec(t, "UPDATE users SET permission = -1 WHERE uid = $1", u.ID) // as a core of the release before does
		testenv.Must(c.Domain.Accounts.SetPermission(t.Context(), admin, u.ID, core.PermissionChange{Permission: int64(core.Normal)}))(t)
	})
	f("_delete", func(u user) {
		testenv.Do(t, c.Domain.Accounts.Delete(t.Context(), caller(u), password, coretest.HomeNetwork))
	})
	f("_player", func(u user) {
		testenv.Do(t, c.Domain.Players.Delete(t.Context(), caller(u).Owner(), u.players[0].ID))
	})
	f("_move", func(u user) {
		testenv.Must(c.Domain.Players.Move(t.Context(), admin, u.players[0].ID, c.signUp(t).ID))(t)
	})
	f("_back", func(u user) {
		for _, owner := range []core.UserID{c.signUp(t).ID, u.ID} {
			testenv.Must(c.Domain.Players.Move(t.Context(), admin, u.players[0].ID, owner))(t)
		}
	})
}

// A refresh that runs beside a change of the password leaves no token behind.
func TestRefreshBesideNewPassword(t *testing.T) {
	t.Parallel()
	c := start(t, "LIMIT_REQUESTS=0")
	for range 4 {
		u := c.signUp(t)
		s := c.issue(t, u)
		changed := make(chan error, 1)
		go func() {
			changed <- testenv.ErrOf(c.Domain.Accounts.ResetPassword(t.Context(), core.CLIActor, u.ID, "another password"))
		}()
		token := s.AccessToken
		for {
			got := testenv.Must(c.Exchange("POST", "/authserver/refresh", jsonBody(map[string]string{"accessToken": token})))(t)
			if got.Status != 200 {
				break // by the change
			}
			token = decode[session](t, got).AccessToken
		}
		testenv.Do(t, <-changed)
		c.site.HasCount(t, 0, "SELECT count(*) FROM launcher_tokens WHERE uid = $1", u.ID)
	}
}

// Tokens are stored hashed, and anything else than the token is wrong.
func TestTokensAreOpaque(t *testing.T) {
	t.Parallel()
	c := start(t)
	s := c.issue(t, c.signUp(t, "Ann_1"))
	c.site.HasCount(t, 1, "SELECT count(*) FROM launcher_tokens WHERE token = sha256(convert_to($1, 'UTF8'))", s.AccessToken)
	for _, wrong := range []string{"", " " + s.AccessToken, s.AccessToken + "\n", s.AccessToken[:63], s.AccessToken + "0", "\x00", "' OR 1=1"} {
		c.isRevoked(t, wrong)
		isError(t, c.join(t, wrong, "992960dfc7a54afca041760004499434", "s"), 403, forbidden, badToken)
	}
	for _, path := range []string{"validate", "refresh"} {
		for _, wrong := range []string{"", "{}", `{"accessToken":null}`} {
			isError(t, c.Post(t, "/authserver/"+path, wrong), 403, forbidden, badToken)
		}
	}
}
