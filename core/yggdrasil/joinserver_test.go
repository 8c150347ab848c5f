package yggdrasil_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// A join at one server is known to another, as often as it is asked for, for 30 seconds.
func TestJoin(t *testing.T) {
	t.Parallel()
	c := start(t)
	again := serve(t, c.site)
	u := c.signUp(t, "Ann_1", "Other")
	s := c.issue(t, u, "Ann_1")
	for _, id := range []string{hexID(u.players[0].UUID), u.players[0].UUID.String()} {
		c.join(t, s.AccessToken, id, "server").IsEmpty(t)
	}
	for _, c := range []client{c, again, again} {
		got := decode[signedProfile](t, c.hasJoined(t, "Ann_1", "server"))
		testenv.Equal(t, got.named, toNamed(u.players[0]), "the player that has joined")
		got.verify(t)
	}
	for _, name := range []string{"ann_1", "ANN_1", "Other", "Ann_1 ", "Ann_1\x00", "", "\xff", strings.Repeat("x", 1000)} {
		c.hasJoined(t, name, "server").IsEmpty(t)
	}
	c.hasJoined(t, "Ann_1", "Server").IsEmpty(t)
	for _, query := range []string{"", "?username=Ann_1", "?serverId=server", "?username=Ann_1&serverId="} {
		c.Get(t, "/sessionserver/session/minecraft/hasJoined"+query).IsEmpty(t)
	}

	c.site.Exec(t, "UPDATE game_joins SET joined_at = joined_at - interval '10 seconds'")
	decode[signedProfile](t, c.hasJoined(t, "Ann_1", "server"))
	c.site.Exec(t, "UPDATE game_joins SET joined_at = joined_at - interval '20 seconds'")
	c.hasJoined(t, "Ann_1", "server").IsEmpty(t)
	c.join(t, s.AccessToken, hexID(u.players[0].UUID), "server").IsEmpty(t)
	decode[signedProfile](t, c.hasJoined(t, "Ann_1", "server"))
}

// Look-ups that find nothing are limited by network and in all, since each costs a query. What is found
// does not count, and neither known players and tokens nor other networks are refused.
func TestUnknownLimit(t *testing.T) {
	t.Parallel()
	c, u := startForOne(t, "YGGDRASIL_UNKNOWN_PER_SECOND=4", "LIMIT_REQUESTS=0")
	player := u.players[0]
	s := c.issue(t, u, player.Name)
	c.join(t, s.AccessToken, hexID(player.UUID), "server").IsEmpty(t)
	for range 30 {
		decode[signedProfile](t, c.hasJoined(t, player.Name, "server"))
	}
	other := c.from(t, "198.51.100.1")
	const profile = "/sessionserver/session/minecraft/profile/"
	unknown := []func(c client) response{
		func(c client) response { return c.hasJoined(t, "Nobody", "other") },
		func(c client) response { return c.Get(t, profile+hexID(uuid.New())) },
		func(c client) response { return c.Get(t, "/api/users/profiles/minecraft/Nobody") },
		func(c client) response { return c.Post(t, "/api/profiles/minecraft", []string{"Nobody", "Nobody_2"}) },
		func(c client) response { return c.as("x").Get(t, ownPath) },
	}
	known := []func(c client) response{
		func(c client) response { return c.hasJoined(t, player.Name, "server") },
		func(c client) response { return c.Get(t, profile+hexID(player.UUID)) },
		func(c client) response { return c.Get(t, "/api/users/profiles/minecraft/"+player.Name) },
		func(c client) response { return c.as(s.AccessToken).Get(t, ownPath) },
	}
	for _, look := range known {
		look(c).HasStatus(t, 200)
	}
	refused := 0
	for range 20 {
		for _, look := range unknown {
			if got := look(c); got.Status == 429 {
				isError(t, got, 429, "Too Many Requests", "")
				refused++
			}
		}
	}
	testenv.Check(t, refused > 20, "of 100 requests for what does not exist %d are refused", refused)
	for _, look := range known {
		look(c).HasStatus(t, 200)
	}
	other.Get(t, profile+hexID(uuid.New())).IsEmpty(t)
}

// Games and servers before 1.7 join with a session in the query, and read a text.
func TestOldJoin(t *testing.T) {
	t.Parallel()
	c, u := startForOne(t)
	name, token := u.players[0].Name, c.issue(t, u, u.players[0].Name).AccessToken
	f := func(path, want string) {
		t.Helper()
		got := c.Get(t, "/sessionserver/"+path)
		got.HasStatus(t, 200)
		testenv.Equal(t, string(got.Body), want, "%s", path)
		testenv.Equal(t, got.Header.Get("Content-Type"), "text/plain; charset=utf-8", "%s: the type", path)
	}
	join := func(session, want string) {
		t.Helper()
		f("game/joinserver.jsp?user="+name+"&sessionId="+session+"&serverId=-7c9d", want)
	}
	const check = "game/checkserver.jsp?user=%s&serverId=%s"
	f(fmt.Sprintf(check, name, "-7c9d"), "NO")
	for _, session := range []string{"", "-", "token:" + token, "token:x:" + hexID(u.players[0].UUID), "token:" + token + ":" + hexID(uuid.New())} {
		join(session, "Bad login")
	}
	join("token:"+token+":"+hexID(u.players[0].UUID), "OK")
	f(fmt.Sprintf(check, name, "-7c9d"), "YES")
	f(fmt.Sprintf(check, name, "other"), "NO")
	f(fmt.Sprintf(check, "Nobody", "-7c9d"), "NO")
	f("blockedservers", "")
}

// The token must be bound to the very player.
func TestJoinWithWrongProfile(t *testing.T) {
	t.Parallel()
	c := start(t)
	u, other := c.signUp(t, "First", "Second"), c.signUp(t, "Foreign")
	unbound, bound := c.issue(t, u), c.issue(t, u, "First")
	f := func(token, profile string) {
		t.Helper()
		isError(t, c.join(t, token, profile, "server"), 403, forbidden, badToken)
	}
	for _, profile := range []string{
		hexID(u.players[1].UUID), hexID(other.players[0].UUID), "992960dfc7a54afca041760004499434", hexID(uuid.Nil), "", "x", "{" + u.players[0].UUID.String() + "}",
	} {
		f(bound.AccessToken, profile)
	}
	f(unbound.AccessToken, hexID(u.players[0].UUID))
	f("", hexID(u.players[0].UUID))
	isError(t, c.Post(t, "/sessionserver/session/minecraft/join", map[string]string{"accessToken": bound.AccessToken, "selectedProfile": hexID(u.players[0].UUID)}),
		400, "Bad Request", "")
	for _, name := range []string{"First", "Second", "Foreign"} {
		c.hasJoined(t, name, "server").IsEmpty(t)
	}
	// Some clients send the whole profile.
	profile := map[string]string{"id": hexID(u.players[0].UUID), "name": "First"}
	c.Post(t, "/sessionserver/session/minecraft/join", map[string]any{"accessToken": bound.AccessToken, "selectedProfile": profile, "serverId": "server"}).IsEmpty(t)
	testenv.Equal(t, c.hasJoined(t, "First", "server").Status, 200, "after a join with the whole profile")
}

// Ids of servers are any text: the game sends a signed number in hexadecimal.
func TestServerIDs(t *testing.T) {
	t.Parallel()
	c, u := startForOne(t)
	s := c.issue(t, u)
	ids := []string{"", "0", "-7c9d5b0044c130109a5d7b5fb5c317c02b4e28c1", "4ed1f46bbe04bc756bcb17c0c7ce3e4632f06a48", "a\x00b", "a b&c=d%20", "皮肤\U0001f600", strings.Repeat("f", 10000)}
	for i, id := range ids {
		c.join(t, s.AccessToken, hexID(u.players[0].UUID), id).IsEmpty(t)
		for j, later := range ids {
			want := map[bool]int{true: 200, false: 204}[j <= i]
			testenv.Equal(t, c.hasJoined(t, "Ann_1", later).Status, want, "after joins of %q, %q", ids[:i+1], later)
		}
	}
}

// The address of the client counts only if the site wants that, and within one family of addresses.
func TestJoinAddresses(t *testing.T) {
	t.Parallel()
	f := func(check, from string, want map[string]int) {
		t.Helper()
		c := start(t, "YGGDRASIL_CHECK_IP="+check).from(t, from)
		u := c.signUp(t, "Ann_1")
		c.join(t, c.issue(t, u).AccessToken, hexID(u.players[0].UUID), "s").IsEmpty(t)
		for address, status := range want {
			c.hasJoined(t, "Ann_1", "s", "&ip="+address).HasStatus(t, status)
		}
	}
	f("false", "192.0.2.1", map[string]int{"": 200, "192.0.2.1": 200, "192.0.2.2": 200, "2001:db8::1": 200, "x": 200})
	f("true", "192.0.2.1", map[string]int{"": 200, "192.0.2.1": 200, "::ffff:192.0.2.1": 200, "192.0.2.2": 204, "2001:db8::1": 200, "x": 204})
	f("true", "2001:db8::1", map[string]int{"": 200, "2001:db8::2": 200, "2001:db8::1%25eth0": 200, "2001:db8:0:1::1": 204, "192.0.2.2": 200})
}

// Joins at once neither fail nor replace each other.
func TestJoinsAtOnce(t *testing.T) {
	t.Parallel()
	c, u := startForOne(t)
	s, id := c.issue(t, u), hexID(u.players[0].UUID)
	joins := func(of func(i int) string) {
		t.Helper()
		got := c.AtOnce(t, 50, "/sessionserver/session/minecraft/join", func(i int) body {
			return jsonBody(map[string]string{"accessToken": s.AccessToken, "selectedProfile": id, "serverId": of(i)})
		})
		testenv.Equal(t, got[204], 50, "the successes of %v", got)
	}
	joins(func(int) string { return "one" })
	joins(func(i int) string { return fmt.Sprint(i) })
	for i := range 50 {
		decode[signedProfile](t, c.hasJoined(t, "Ann_1", fmt.Sprint(i)))
	}
	c.site.HasCount(t, 51, "SELECT count(*) FROM game_joins")
}

// A join does not outlive what it needs: a ban, a new name, the player, the token.
func TestJoinEnds(t *testing.T) {
	t.Parallel()
	c := start(t)
	owner := func(u user) core.Actor { return core.Caller{User: u.User}.Owner() }
	for name, change := range map[string]func(u user) error{
		"Banned": func(u user) error {
			return testenv.ErrOf(c.Domain.Accounts.SetPermission(t.Context(), core.CLIActor, u.ID, core.PermissionChange{Permission: int64(core.Banned)}))
		},
		"Renamed": func(u user) error {
			return testenv.ErrOf(c.Domain.Players.Rename(t.Context(), owner(u), u.players[0].ID, "New_name"))
		},
		"Deleted": func(u user) error { return c.Domain.Players.Delete(t.Context(), owner(u), u.players[0].ID) },
	} {
		u := c.signUp(t, name)
		c.join(t, c.issue(t, u).AccessToken, hexID(u.players[0].UUID), "s").IsEmpty(t)
		decode[signedProfile](t, c.hasJoined(t, name, "s"))
		testenv.Do(t, change(u))
		c.hasJoined(t, name, "s").IsEmpty(t)
	}

	u := c.signUp(t, "Signed_out")
	s, id := c.issue(t, u), hexID(u.players[0].UUID)
	other := c.issue(t, u)
	for _, token := range []string{s.AccessToken, other.AccessToken} {
		c.join(t, token, id, "by "+token).IsEmpty(t)
	}
	c.Post(t, "/authserver/invalidate", map[string]string{"accessToken": s.AccessToken}).IsEmpty(t)
	c.hasJoined(t, "Signed_out", "by "+s.AccessToken).IsEmpty(t)
	decode[signedProfile](t, c.hasJoined(t, "Signed_out", "by "+other.AccessToken))
}

// Game servers ask from one address for all their players, beyond any limit of an address.
func TestGameServersAreUnlimited(t *testing.T) {
	t.Parallel()
	c, u := startForOne(t, "LIMIT_REQUESTS=1", "LIMIT_REQUESTS_BURST=1", "ADDRESS_REQUESTS=1", "ADDRESS_BURST=1")
	for range 5 {
		c.hasJoined(t, "Ann_1", "s").IsEmpty(t)
		for _, path := range []string{
			"", "/sessionserver/session/minecraft/profile/" + hexID(u.players[0].UUID), "/api/users/profiles/minecraft/Ann_1", "/minecraftservices/publickeys",
		} {
			c.Get(t, path).HasStatus(t, 200)
		}
		c.Post(t, "/api/profiles/minecraft", []string{"Ann_1"}).HasStatus(t, 200)
	}

	// Launchers are limited. Under authserver they are told in a way that they understand.
	validate := func() response { return c.Post(t, "/authserver/validate", map[string]string{"accessToken": "x"}) }
	isError(t, validate(), 403, forbidden, badToken)
	isError(t, validate(), 403, forbidden, "There were too many requests from your address. Please wait before the next one.")
	limited := start(t, "LIMIT_REQUESTS=1", "LIMIT_REQUESTS_BURST=1")
	isError(t, limited.Post(t, "/authserver/validate", "{}"), 403, forbidden, badToken)
	isError(t, limited.Post(t, "/authserver/validate", "{}"), 403, forbidden, "There were too many requests. Please wait before the next one.")
	isError(t, limited.join(t, "x", "x", "x"), 429, "Too Many Requests", "")
	isError(t, limited.as("x").Get(t, "/minecraftservices/minecraft/profile"), 429, "Too Many Requests", "")
}
