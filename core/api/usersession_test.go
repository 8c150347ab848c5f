package api_test

import (
	"crypto/sha256"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/veneer-skins/veneer/core"
)

// launcher signs a launcher in as the client's user, and returns the hash of its token.
func (c client) launcher(t *testing.T, token string, player core.PlayerID) core.LauncherHash {
	t.Helper()
	credentials := core.Credentials{User: core.User{ID: c.uid}}
	if err := c.site.sql.QueryRow(t.Context(), "SELECT password_hash FROM users WHERE uid = $1", c.uid).Scan(&credentials.PasswordHash); err != nil {
		t.Fatal(err)
	}
	hash := core.LauncherHash(sha256.Sum256([]byte(token)))
	_, err := c.db.IssueLauncherToken(t.Context(), core.NewLauncherToken{
		Hash: hash, Credentials: core.VerifiedCredentials{Credentials: credentials}, Network: homeNetwork, ClientToken: "client", Player: player,
	})
	if err != nil {
		t.Fatal(err)
	}
	return hash
}

// signIns is the response of GET /api/user/sessions.
type signIns struct {
	Sessions []struct {
		ID      string
		Current bool
	}
	Launchers []struct {
		ID         string
		Valid      bool
		PID        core.PlayerID
		PlayerName *string `json:"player_name"`
	}
}

func (c client) signIns(t *testing.T) (list signIns) {
	t.Helper()
	c.get(t, "/api/user/sessions").decode(t, &list)
	return list
}

func TestListSessions(t *testing.T) {
	t.Parallel()

	first := start(t).signUp(t)
	stranger := first.signUp(t)
	first.get(t, "/api/user/sessions").is(t, 200,
		`{"sessions":[{"id":"<uuid>","created_at":"2031-02-03 04:05:06","refreshed_at":"2031-02-03 04:05:06","current":true}],"launchers":[]}`)
	first.site.advance(time.Hour)
	first = first.refresh(t)
	first.site.advance(time.Second)
	second := first.signIn(t)
	second.get(t, "/api/user/sessions").is(t, 200, `{"sessions":[
		{"id":"<uuid>","created_at":"2031-02-03 05:05:07","refreshed_at":"2031-02-03 05:05:07","current":true},
		{"id":"<uuid>","created_at":"2031-02-03 04:05:06","refreshed_at":"2031-02-03 05:05:06","current":false}],"launchers":[]}`)
	list := first.signIns(t)
	if list.Sessions[0].Current || !list.Sessions[1].Current {
		t.Errorf("the sessions of the first token are %+v; want the second to be current", list.Sessions)
	}
	if got := stranger.refresh(t).signIns(t); len(got.Sessions) != 1 {
		t.Errorf("another user has the sessions %+v; want one", got.Sessions)
	}

	// A session that has ended is not listed, though its row is not deleted yet.
	first.site.advance(14*24*time.Hour - time.Second)
	if got := second.refresh(t).signIns(t); len(got.Sessions) != 1 || !got.Sessions[0].Current {
		t.Errorf("after the first session has ended, the sessions are %+v", got.Sessions)
	}
	first.as("").get(t, "/api/user/sessions").isError(t, 401, 5)
}

func TestListLaunchers(t *testing.T) {
	t.Parallel()

	c := start(t).signUp(t)
	steve, err := strconv.ParseInt(strings.TrimPrefix(c.player(t, "Steve"), "/api/players/"), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	c.player(t, "Alex")
	hash := c.launcher(t, "free", 0)
	c.launcher(t, "bound", core.PlayerID(steve))
	a := c.get(t, "/api/user/sessions")
	a.is(t, 200, fmt.Sprintf(`{"sessions":[{"id":"<uuid>","created_at":"<time>","refreshed_at":"<time>","current":true}],"launchers":[
		{"id":%q,"issued_at":"<time>","valid":true,"pid":%d,"player_name":"Steve"},{"id":%q,"issued_at":"<time>","valid":true,"pid":0}]}`,
		c.signIns(t).Launchers[0].ID, steve, c.signIns(t).Launchers[1].ID))
	id, err := uuid.Parse(c.signIns(t).Launchers[1].ID)
	if err != nil || id.Version() != 8 || id.Variant() != uuid.RFC4122 {
		t.Errorf("the id %v, %v is no UUID of version 8", id, err)
	}
	if digits := regexp.MustCompile("-").ReplaceAllString(id.String(), ""); strings.Contains(fmt.Sprintf("%x", hash), digits[:12]) {
		t.Errorf("the id %s is a part of the token's hash %x", id, hash)
	}

	// After a renaming the token must be refreshed, as it must when it is 15 days old.
	c.put(t, fmt.Sprintf("/api/players/%d/name", steve), `{"name":"Herobrine"}`)
	list := c.signIns(t).Launchers
	if len(list) != 2 || list[0].Valid || *list[0].PlayerName != "Herobrine" || !list[1].Valid {
		t.Errorf("after a renaming the launchers are %+v", list)
	}
	c.site.exec(t, "UPDATE launcher_tokens SET issued_at = now() - interval '15 days' WHERE pid IS NULL")
	if list := c.signIns(t).Launchers; len(list) != 2 || list[1].Valid {
		t.Errorf("after 15 days the launchers are %+v", list)
	}
	// One that can no longer be refreshed is not listed, nor one for a player of another user.
	c.site.exec(t, "UPDATE launcher_tokens SET issued_at = now() - interval '45 days' WHERE pid IS NULL")
	if list := c.signIns(t).Launchers; len(list) != 1 {
		t.Errorf("after 45 days the launchers are %+v", list)
	}
	c.site.exec(t, "UPDATE players SET uid = $2 WHERE pid = $1", steve, c.signUp(t).uid)
	if list := c.signIns(t).Launchers; len(list) != 0 {
		t.Errorf("after the player has moved the launchers are %+v", list)
	}
}

// Sessions end at once at every server.
func TestEndOtherSessions(t *testing.T) {
	t.Parallel()

	c := start(t).signUp(t)
	others := []client{c.signIn(t), c.site.serve(t).as(c.signIn(t).token)}
	stranger := c.signUp(t)
	c.launcher(t, "a", 0)
	stranger.launcher(t, "b", 0)
	for _, other := range others {
		other.works(t, true)
	}
	c.delete(t, "/api/user/sessions").is(t, 200, `{"code":0,"message":"<text>"}`)
	for _, other := range others {
		other.works(t, false)
		other.send(t, "POST", "/api/auth/refresh", body{}).isError(t, 401, 5)
	}
	c.works(t, true)
	stranger.works(t, true)
	if list := c.signIns(t); len(list.Sessions) != 1 || len(list.Launchers) != 0 {
		t.Errorf("the sign-ins are %+v; want the current session only", list)
	}
	if list := stranger.signIns(t); len(list.Sessions) != 1 || len(list.Launchers) != 1 {
		t.Errorf("the sign-ins of another user are %+v; want a session and a launcher", list)
	}
	c.delete(t, "/api/user/sessions").is(t, 200, `{"code":0,"message":"<text>"}`)
	c.as("").delete(t, "/api/user/sessions").isError(t, 401, 5)
}

func TestEndSession(t *testing.T) {
	t.Parallel()

	c := start(t).signUp(t)
	other := c.site.serve(t).as(c.signIn(t).token)
	stranger := c.signUp(t)
	c.launcher(t, "a", 0)
	c.launcher(t, "b", 0)
	list, theirs := c.signIns(t), stranger.signIns(t)
	otherID, ownID := list.Sessions[0].ID, list.Sessions[1].ID
	if list.Sessions[0].Current {
		otherID, ownID = ownID, otherID
	}
	end := func(id string) response {
		t.Helper()
		return c.delete(t, "/api/user/sessions/"+id)
	}

	for _, id := range []string{theirs.Sessions[0].ID, uuid.NewString(), "1", strings.ReplaceAll(otherID, "-", "")} {
		end(id).isError(t, 404, 3)
	}
	stranger.works(t, true)
	stranger.delete(t, "/api/user/sessions/"+list.Launchers[0].ID).isError(t, 404, 3)
	end(otherID).is(t, 200, `{"code":0,"message":"<text>"}`)
	other.works(t, false)
	end(otherID).isError(t, 404, 3)
	end(strings.ToUpper(list.Launchers[0].ID)).is(t, 200, `{"code":0,"message":"<text>"}`)
	if got := c.signIns(t); len(got.Sessions) != 1 || len(got.Launchers) != 1 || got.Launchers[0] != list.Launchers[1] {
		t.Errorf("the sign-ins are %+v; want the current session, and the launcher %+v", got, list.Launchers[1])
	}
	end(ownID).is(t, 200, `{"code":0,"message":"<text>"}`)
	c.works(t, false)
}
