package yggdrasil_test

import (
	"testing"

	"github.com/google/uuid"

	"github.com/veneer-skins/veneer/core"
)

// A refresh replaces the token, and keeps the client token and the player. The old one is dead.
func TestRefresh(t *testing.T) {
	t.Parallel()

	c := start(t)
	u := c.signUp(t, "Ann_1")
	s := c.issue(t, u)
	c.post(t, "/authserver/refresh", map[string]string{"accessToken": s.AccessToken, "clientToken": "other"}).isError(t, 403, forbidden, badToken)
	c.isValid(t, s.AccessToken)
	for range 3 {
		next := decode[session](t, c.post(t, "/authserver/refresh", map[string]string{"accessToken": s.AccessToken, "clientToken": s.ClientToken}))
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
		t.Helper()
		return c.post(t, "/authserver/refresh", map[string]any{"accessToken": token, "selectedProfile": profile})
	}
	s := c.issue(t, u)
	s = decode[session](t, refresh(s.AccessToken, nil))
	if s.SelectedProfile != nil || len(s.AvailableProfiles) != 2 {
		t.Errorf("without a selection: %+v", s)
	}

	// A selection that fails leaves the token as it was.
	for _, unknown := range []any{map[string]string{"id": "992960dfc7a54afca041760004499434", "name": "x"}, map[string]string{"id": "x"}, map[string]string{}, map[string]string{"id": hexID(uuid.Nil)}} {
		refresh(s.AccessToken, unknown).isError(t, 400, illegal, "Access token already has a profile assigned.")
		c.isValid(t, s.AccessToken)
	}
	refresh(s.AccessToken, toNamed(other.players[0])).isError(t, 403, forbidden, "")
	refresh(s.AccessToken, `text`).isError(t, 400, "Bad Request", "")
	c.isValid(t, s.AccessToken)

	second := toNamed(u.players[1])
	bound := decode[session](t, refresh(s.AccessToken, map[string]string{"id": u.players[1].UUID.String(), "name": "another name"}))
	if bound.SelectedProfile == nil || *bound.SelectedProfile != second {
		t.Errorf("after a selection: %+v", bound)
	}
	for _, profile := range []named{toNamed(u.players[0]), second} {
		refresh(bound.AccessToken, profile).isError(t, 400, illegal, "Access token already has a profile assigned.")
	}
	again := decode[session](t, refresh(bound.AccessToken, nil))
	if again.SelectedProfile == nil || *again.SelectedProfile != second {
		t.Errorf("refreshed again: %+v", again)
	}
}

// Of two refreshes at once one wins, and its token is the only one.
func TestRefreshAtOnce(t *testing.T) {
	t.Parallel()

	c := start(t)
	u := c.signUp(t, "Ann_1")
	for range 5 {
		s := c.issue(t, u)
		got := c.atOnce(t, 2, "/authserver/refresh", func(int) body { return jsonBody(t, map[string]string{"accessToken": s.AccessToken}) })
		if got[200] != 1 || got[403] != 1 {
			t.Errorf("the statuses are %v", got)
		}
		c.isRevoked(t, s.AccessToken)
	}
	if n := c.site.count(t, "SELECT count(*) FROM launcher_tokens"); n != 5 {
		t.Errorf("there are %d tokens; want 5", n)
	}
}

// After 15 days a token is temporarily invalid, and after 45 it is gone.
func TestTokenLifetimes(t *testing.T) {
	t.Parallel()

	c := start(t)
	u := c.signUp(t, "Ann_1")
	id := hexID(u.players[0].UUID)
	s := c.issue(t, u)
	age := func(interval string) {
		t.Helper()
		c.site.exec(t, "UPDATE launcher_tokens SET issued_at = issued_at - $1::interval", interval)
	}
	age("14 days 23 hours")
	c.isValid(t, s.AccessToken)
	age("1 hour")
	c.isInvalid(t, s.AccessToken)
	c.join(t, s.AccessToken, id, "s").isError(t, 403, forbidden, badToken)
	c.as(s.AccessToken).get(t, "/minecraftservices/minecraft/profile").isError(t, 401, "Unauthorized", badToken)
	age("29 days 23 hours")
	s = decode[session](t, c.post(t, "/authserver/refresh", map[string]string{"accessToken": s.AccessToken}))
	c.isValid(t, s.AccessToken)
	c.join(t, s.AccessToken, id, "s").isEmpty(t)
	age("45 days")
	c.isRevoked(t, s.AccessToken)
	if n, err := c.services.Tokens.Trim(t.Context()); n != 1 || err != nil {
		t.Errorf("%d tokens are trimmed, %v; want 1", n, err)
	}
}

// A new name makes a token temporarily invalid, so that the launcher learns the name by a refresh.
func TestRename(t *testing.T) {
	t.Parallel()

	c := start(t)
	u := c.signUp(t, "Before")
	s := c.issue(t, u)
	for _, name := range []string{"After", "AFTER"} { // a change of case is one, too
		if _, err := c.services.Players.Rename(t.Context(), core.Caller{User: u.User}, u.players[0].ID, name); err != nil {
			t.Fatal(err)
		}
		c.isInvalid(t, s.AccessToken)
		c.join(t, s.AccessToken, hexID(u.players[0].UUID), "s").isError(t, 403, forbidden, badToken)
		s = decode[session](t, c.post(t, "/authserver/refresh", map[string]string{"accessToken": s.AccessToken}))
		if s.SelectedProfile == nil || s.SelectedProfile.Name != name || s.SelectedProfile.ID != hexID(u.players[0].UUID) {
			t.Errorf("after the new name %s: %+v", name, s.SelectedProfile)
		}
		c.isValid(t, s.AccessToken)
		c.join(t, s.AccessToken, hexID(u.players[0].UUID), "s").isEmpty(t)
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
		c.post(t, "/authserver/invalidate", body).isEmpty(t)
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
	again := c.site.serve(t)
	f := func(what string, change func(u user)) {
		t.Helper()
		u, other := c.signUp(t, "A"+what), c.signUp(t, "B"+what)
		s, others := c.issue(t, u), c.issue(t, other)
		again.isValid(t, s.AccessToken)
		c.join(t, s.AccessToken, hexID(u.players[0].UUID), "before").isEmpty(t)
		decode[signedProfile](t, c.hasJoined(t, u.players[0].Name, "before"))
		change(u)
		for _, c := range []client{c, again} {
			c.hasJoined(t, u.players[0].Name, "before").isEmpty(t)
			c.isRevoked(t, s.AccessToken)
			c.join(t, s.AccessToken, hexID(u.players[0].UUID), "s").isError(t, 403, forbidden, badToken)
			c.isValid(t, others.AccessToken)
		}
	}
	admin := core.CLIActor
	caller := func(u user) core.Caller {
		u.Email = u.email
		return core.Caller{User: u.User}
	}
	f("_change", func(u user) {
		if err := c.services.accounts.ChangePassword(t.Context(), caller(u), password, "another password", homeNetwork); err != nil {
			t.Fatal(err)
		}
	})
	f("_reset", func(u user) {
		if _, err := c.services.accounts.ResetPasswordBy(t.Context(), admin, u.ID, "another password"); err != nil {
			t.Fatal(err)
		}
	})
	f("_signout", func(u user) {
		c.post(t, "/authserver/signout", credentials(u.email, password)).isEmpty(t)
	})
	f("_all", func(u user) {
		if err := c.services.userSessions.EndOthers(t.Context(), caller(u)); err != nil {
			t.Fatal(err)
		}
	})
	f("_ban", func(u user) {
		if _, err := c.services.accounts.SetPermissionBy(t.Context(), admin, u.ID, int64(core.Banned)); err != nil {
			t.Fatal(err)
		}
	})
	f("_unban", func(u user) {
		c.site.exec(t, "UPDATE users SET permission = -1 WHERE uid = $1", u.ID) // as a core of the release before does
		if _, err := c.services.accounts.SetPermissionBy(t.Context(), admin, u.ID, int64(core.Normal)); err != nil {
			t.Fatal(err)
		}
	})
	f("_delete", func(u user) {
		if err := c.services.accounts.Delete(t.Context(), caller(u), password, homeNetwork); err != nil {
			t.Fatal(err)
		}
	})
	f("_player", func(u user) {
		if err := c.services.Players.Delete(t.Context(), caller(u), u.players[0].ID); err != nil {
			t.Fatal(err)
		}
	})
	f("_move", func(u user) {
		if _, err := c.services.Players.MoveBy(t.Context(), admin, u.players[0].ID, c.signUp(t).ID); err != nil {
			t.Fatal(err)
		}
	})
	f("_back", func(u user) {
		for _, owner := range []core.UserID{c.signUp(t).ID, u.ID} {
			if _, err := c.services.Players.MoveBy(t.Context(), admin, u.players[0].ID, owner); err != nil {
				t.Fatal(err)
			}
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
			_, err := c.services.accounts.ResetPasswordBy(t.Context(), core.CLIActor, u.ID, "another password")
			changed <- err
		}()
		token := s.AccessToken
		for {
			got, err := c.exchange("POST", "/authserver/refresh", jsonBody(t, map[string]string{"accessToken": token}))
			if err != nil {
				t.Fatal(err)
			}
			if got.status != 200 {
				break // by the change
			}
			token = decode[session](t, got).AccessToken
		}
		if err := <-changed; err != nil {
			t.Fatal(err)
		}
		if n := c.site.count(t, "SELECT count(*) FROM launcher_tokens WHERE uid = $1", u.ID); n != 0 {
			t.Errorf("%d tokens survive the change", n)
		}
	}
}

// Tokens are stored hashed, and anything else than the token is wrong.
func TestTokensAreOpaque(t *testing.T) {
	t.Parallel()

	c := start(t)
	s := c.issue(t, c.signUp(t, "Ann_1"))
	if n := c.site.count(t, "SELECT count(*) FROM launcher_tokens WHERE token = sha256(convert_to($1, 'UTF8'))", s.AccessToken); n != 1 {
		t.Errorf("%d tokens are stored under their SHA-256", n)
	}
	for _, wrong := range []string{"", " " + s.AccessToken, s.AccessToken + "\n", s.AccessToken[:63], s.AccessToken + "0", "\x00", "' OR 1=1"} {
		c.isRevoked(t, wrong)
		c.join(t, wrong, "992960dfc7a54afca041760004499434", "s").isError(t, 403, forbidden, badToken)
	}
	for _, path := range []string{"validate", "refresh"} {
		for _, wrong := range []string{"", "{}", `{"accessToken":null}`} {
			c.post(t, "/authserver/"+path, wrong).isError(t, 403, forbidden, badToken)
		}
	}
}
