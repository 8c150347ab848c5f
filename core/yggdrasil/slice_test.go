package yggdrasil_test

import "testing"

func TestSlice(t *testing.T) {
	t.Parallel()
	c := start(t)
	u := c.signUp(t, "Ann_1")
	c.dress(t, u.players[0], skinFile(t, 1), capeFile(t), "steve")
	t.Logf("%s", c.get(t, "").body)
	s := c.authenticate(t, u.email)
	t.Logf("%+v", s)
	c.isValid(t, s.AccessToken)
	c.join(t, s.AccessToken, hexID(u.players[0].UUID), "-abc").isEmpty(t)
	t.Logf("%s", c.hasJoined(t, "Ann_1", "-abc").body)
	r := decode[session](t, c.post(t, "/authserver/refresh", map[string]string{"accessToken": s.AccessToken}))
	t.Logf("%+v", r)
	c.isRevoked(t, s.AccessToken)
	c.isValid(t, r.AccessToken)
	t.Logf("%s", c.get(t, "/sessionserver/session/minecraft/profile/"+hexID(u.players[0].UUID)).body)
	t.Logf("%s", c.get(t, "/x").body)
}
