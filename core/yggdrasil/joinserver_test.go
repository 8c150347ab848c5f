package yggdrasil_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/veneer-skins/veneer/core"
)

// A join at one server is known to another, as often as it is asked for, for 30 seconds.
func TestJoin(t *testing.T) {
	t.Parallel()

	c := start(t)
	again := c.site.serve(t)
	u := c.signUp(t, "Ann_1", "Other")
	s := c.issue(t, u, "Ann_1")
	for _, id := range []string{hexID(u.players[0].UUID), u.players[0].UUID.String()} {
		c.join(t, s.AccessToken, id, "server").isEmpty(t)
	}
	for _, c := range []client{c, again, again} {
		got := decode[signedProfile](t, c.hasJoined(t, "Ann_1", "server"))
		if got.ID != hexID(u.players[0].UUID) || got.Name != "Ann_1" {
			t.Errorf("%+v has joined", got)
		}
		got.verify(t)
	}
	for _, name := range []string{"ann_1", "ANN_1", "Other", "Ann_1 ", "Ann_1\x00", "", "\xff", strings.Repeat("x", 1000)} {
		c.hasJoined(t, name, "server").isEmpty(t)
	}
	c.hasJoined(t, "Ann_1", "Server").isEmpty(t)
	for _, query := range []string{"", "?username=Ann_1", "?serverId=server", "?username=Ann_1&serverId="} {
		c.get(t, "/sessionserver/session/minecraft/hasJoined"+query).isEmpty(t)
	}

	c.site.exec(t, "UPDATE game_joins SET joined_at = joined_at - interval '10 seconds'")
	decode[signedProfile](t, c.hasJoined(t, "Ann_1", "server"))
	c.site.exec(t, "UPDATE game_joins SET joined_at = joined_at - interval '20 seconds'")
	c.hasJoined(t, "Ann_1", "server").isEmpty(t)
	c.join(t, s.AccessToken, hexID(u.players[0].UUID), "server").isEmpty(t)
	decode[signedProfile](t, c.hasJoined(t, "Ann_1", "server"))
}

// The token must be bound to the very player.
func TestJoinWithWrongProfile(t *testing.T) {
	t.Parallel()

	c := start(t)
	u, other := c.signUp(t, "First", "Second"), c.signUp(t, "Foreign")
	unbound, bound := c.issue(t, u), c.issue(t, u, "First")
	f := func(token, profile string) {
		t.Helper()
		c.join(t, token, profile, "server").isError(t, 403, forbidden, badToken)
	}
	for _, profile := range []string{
		hexID(u.players[1].UUID), hexID(other.players[0].UUID), "992960dfc7a54afca041760004499434", hexID(uuid.Nil), "", "x", "{" + u.players[0].UUID.String() + "}",
	} {
		f(bound.AccessToken, profile)
	}
	f(unbound.AccessToken, hexID(u.players[0].UUID))
	f("", hexID(u.players[0].UUID))
	c.post(t, "/sessionserver/session/minecraft/join", map[string]string{"accessToken": bound.AccessToken, "selectedProfile": hexID(u.players[0].UUID)}).
		isError(t, 400, "Bad Request", "")
	for _, name := range []string{"First", "Second", "Foreign"} {
		c.hasJoined(t, name, "server").isEmpty(t)
	}
}

// Ids of servers are any text: the game sends a signed number in hexadecimal.
func TestServerIDs(t *testing.T) {
	t.Parallel()

	c := start(t)
	u := c.signUp(t, "Ann_1")
	s := c.issue(t, u)
	ids := []string{"", "0", "-7c9d5b0044c130109a5d7b5fb5c317c02b4e28c1", "4ed1f46bbe04bc756bcb17c0c7ce3e4632f06a48", "a\x00b", "a b&c=d%20", "皮肤\U0001f600", strings.Repeat("f", 10000)}
	for i, id := range ids {
		c.join(t, s.AccessToken, hexID(u.players[0].UUID), id).isEmpty(t)
		for j, later := range ids {
			got := c.hasJoined(t, "Ann_1", later).status
			if want := map[bool]int{true: 200, false: 204}[j <= i]; got != want {
				t.Errorf("after joins of %q, %q: %d; want %d", ids[:i+1], later, got, want)
			}
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
		c.join(t, c.issue(t, u).AccessToken, hexID(u.players[0].UUID), "s").isEmpty(t)
		for address, status := range want {
			if got := c.hasJoined(t, "Ann_1", "s", "&ip="+address); got.status != status {
				t.Errorf("check %s, joined from %s, asked with %s: %d; want %d", check, from, address, got.status, status)
			}
		}
	}
	f("false", "192.0.2.1", map[string]int{"": 200, "192.0.2.1": 200, "192.0.2.2": 200, "2001:db8::1": 200, "x": 200})
	f("true", "192.0.2.1", map[string]int{"": 200, "192.0.2.1": 200, "::ffff:192.0.2.1": 200, "192.0.2.2": 204, "2001:db8::1": 200, "x": 204})
	f("true", "2001:db8::1", map[string]int{"": 200, "2001:db8::2": 200, "2001:db8::1%25eth0": 200, "2001:db8:0:1::1": 204, "192.0.2.2": 200})
}

// Joins at once neither fail nor replace each other.
func TestJoinsAtOnce(t *testing.T) {
	t.Parallel()

	c := start(t)
	u := c.signUp(t, "Ann_1")
	s, id := c.issue(t, u), hexID(u.players[0].UUID)
	joins := func(of func(i int) string) {
		t.Helper()
		got := c.atOnce(t, 50, "/sessionserver/session/minecraft/join", func(i int) body {
			return jsonBody(t, map[string]string{"accessToken": s.AccessToken, "selectedProfile": id, "serverId": of(i)})
		})
		if got[204] != 50 {
			t.Errorf("the statuses are %v; want 204", got)
		}
	}
	joins(func(int) string { return "one" })
	joins(func(i int) string { return fmt.Sprint(i) })
	for i := range 50 {
		decode[signedProfile](t, c.hasJoined(t, "Ann_1", fmt.Sprint(i)))
	}
	if n := c.site.count(t, "SELECT count(*) FROM game_joins"); n != 51 {
		t.Errorf("there are %d joins; want 51", n)
	}

	// A later join deletes those that are over; the trimmer does the rest.
	c.site.exec(t, "UPDATE game_joins SET joined_at = joined_at - interval '30 seconds'")
	c.join(t, s.AccessToken, id, "one").isEmpty(t)
	if n := c.site.count(t, "SELECT count(*) FROM game_joins"); n != 1 {
		t.Errorf("there are %d joins; want 1", n)
	}
	c.site.exec(t, "UPDATE game_joins SET joined_at = joined_at - interval '30 seconds'")
	if n, err := c.services.Joins.Trim(t.Context()); n != 1 || err != nil {
		t.Errorf("%d joins are trimmed, %v; want 1", n, err)
	}
}

// A join does not outlive what it needs: a ban, a new name, the player.
func TestJoinEnds(t *testing.T) {
	t.Parallel()

	c := start(t)
	for name, change := range map[string]func(u user) error{
		"Banned": func(u user) error {
			_, err := c.services.accounts.SetPermissionBy(t.Context(), core.CLIActor, u.ID, int64(core.Banned))
			return err
		},
		"Renamed": func(u user) error {
			_, err := c.services.Players.Rename(t.Context(), core.Caller{User: u.User}, u.players[0].ID, "New_name")
			return err
		},
		"Deleted": func(u user) error {
			return c.services.Players.Delete(t.Context(), core.Caller{User: u.User}, u.players[0].ID)
		},
	} {
		u := c.signUp(t, name)
		c.join(t, c.issue(t, u).AccessToken, hexID(u.players[0].UUID), "s").isEmpty(t)
		decode[signedProfile](t, c.hasJoined(t, name, "s"))
		if err := change(u); err != nil {
			t.Fatal(err)
		}
		c.hasJoined(t, name, "s").isEmpty(t)
	}
}

// Game servers ask from one address for all their players, beyond any limit of an address.
func TestGameServersAreUnlimited(t *testing.T) {
	t.Parallel()

	c := start(t, "LIMIT_REQUESTS=1", "LIMIT_REQUESTS_BURST=1", "ADDRESS_REQUESTS=1", "ADDRESS_BURST=1")
	u := c.signUp(t, "Ann_1")
	for range 5 {
		c.hasJoined(t, "Ann_1", "s").isEmpty(t)
		for _, path := range []string{
			"", "/sessionserver/session/minecraft/profile/" + hexID(u.players[0].UUID), "/api/users/profiles/minecraft/Ann_1", "/minecraftservices/publickeys",
		} {
			if got := c.get(t, path); got.status != 200 {
				t.Errorf("%s: %d", got.request, got.status)
			}
		}
		if got := c.post(t, "/api/profiles/minecraft", []string{"Ann_1"}); got.status != 200 {
			t.Errorf("%s: %d", got.request, got.status)
		}
	}

	// Launchers are limited. Under authserver they are told in a way that they understand.
	validate := func() response {
		t.Helper()
		return c.post(t, "/authserver/validate", map[string]string{"accessToken": "x"})
	}
	validate().isError(t, 403, forbidden, badToken)
	validate().isError(t, 403, forbidden, "There were too many requests from your address. Please wait before the next one.")
	limited := start(t, "LIMIT_REQUESTS=1", "LIMIT_REQUESTS_BURST=1")
	limited.post(t, "/authserver/validate", "{}").isError(t, 403, forbidden, badToken)
	limited.post(t, "/authserver/validate", "{}").isError(t, 403, forbidden, "There were too many requests. Please wait before the next one.")
	limited.join(t, "x", "x", "x").isError(t, 429, "Too Many Requests", "")
	limited.as("x").get(t, "/minecraftservices/minecraft/profile").isError(t, 429, "Too Many Requests", "")
}
