package api_test

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/core/coretest"
	"github.com/veneer-skins/veneer/shared/testenv"
	"github.com/veneer-skins/veneer/shared/testenv/cmptest"
)

// launcher signs a launcher in as the client's user, and returns the hash of its token.
func (c client) launcher(t *testing.T, token string, player core.PlayerID) core.LauncherHash {
	t.Helper()
	passwordHash := c.site.Text(t, "SELECT password_hash FROM users WHERE uid = $1", c.UID)
	credentials := core.Credentials{User: core.User{ID: c.UID}, PasswordHash: passwordHash}
	hash := core.LauncherHash(sha256.Sum256([]byte(token)))
	testenv.Must(c.Domain.DB.IssueLauncherToken(t.Context(), core.NewLauncherToken{
		Hash: hash, Credentials: core.VerifiedCredentials{Credentials: credentials}, Network: coretest.HomeNetwork, ClientToken: "client", Player: player,
	}))(t)
	return hash
}

// signIns is the response of GET /api/user/sessions.
type signIns struct {
	Sessions []struct {
		ID              string
		Current         bool
		Browser, System string
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
	c.Get(t, "/api/user/sessions").Decode(t, &list)
	return list
}

func TestListSessions(t *testing.T) {
	t.Parallel()
	first := start(t).signUp(t)
	stranger := first.signUp(t)
	first.Get(t, "/api/user/sessions").Is(t, 200,
		`{"sessions":[{"id":"<uuid>","created_at":"2031-02-03 04:05:06","refreshed_at":"2031-02-03 04:05:06","current":true,"browser":"","system":""}],"launchers":[]}`)
	first.site.Advance(time.Hour)
	first = first.refresh(t)
	first.site.Advance(time.Second)
	second := first.signIn(t)
	second.Get(t, "/api/user/sessions").Is(t, 200, `{"sessions":[
		{"id":"<uuid>","created_at":"2031-02-03 05:05:07","refreshed_at":"2031-02-03 05:05:07","current":true,"browser":"","system":""},
		{"id":"<uuid>","created_at":"2031-02-03 04:05:06","refreshed_at":"2031-02-03 05:05:06","current":false,"browser":"","system":""}],"launchers":[]}`)
	list := first.signIns(t)
	current := [2]bool{list.Sessions[0].Current, list.Sessions[1].Current}
	testenv.Equal(t, current, [2]bool{false, true}, "which session belongs to the first token")
	testenv.Equal(t, len(stranger.refresh(t).signIns(t).Sessions), 1, "sessions of another user")

	// A session that has ended is not listed, though its row is not deleted yet.
	first.site.Advance(14*24*time.Hour - time.Second)
	got := second.refresh(t).signIns(t)
	testenv.Check(t, len(got.Sessions) == 1 && got.Sessions[0].Current, "then the sessions are %+v", got.Sessions)
	first.as("").Get(t, "/api/user/sessions").IsError(t, 401, 5)
}

// A session has the name of the browser that has signed in.
func TestSessionsNameBrowsers(t *testing.T) {
	t.Parallel()
	c := start(t).signUp(t)
	c.withPassword(t, "correct horse")
	c.Send(t, "POST", "/api/auth/login", encodeJSON(`{"email":"user1@example.com","password":"correct horse"}`),
		"User-Agent", "Mozilla/5.0 (X11; Linux x86_64; rv:102.0) Gecko/20100101 Firefox/102.0").HasStatus(t, 200)
	var got [][2]string
	for _, session := range c.signIns(t).Sessions {
		got = append(got, [2]string{session.Browser, session.System})
	}
	slices.SortFunc(got, func(a, b [2]string) int { return strings.Compare(a[0], b[0]) })
	cmptest.Same(t, got, [][2]string{{"", ""}, {"Firefox", "Linux"}}, "what has signed in")
}

func TestListLaunchers(t *testing.T) {
	t.Parallel()
	c := start(t).signUp(t)
	steve := testenv.Must(strconv.ParseInt(strings.TrimPrefix(c.player(t, "Steve"), "/api/players/"), 10, 64))(t)
	c.player(t, "Alex")
	hash := c.launcher(t, "free", 0)
	c.launcher(t, "bound", core.PlayerID(steve))
	a := c.Get(t, "/api/user/sessions")
	a.Is(t, 200, fmt.Sprintf(`{"sessions":[{"id":"<uuid>","created_at":"<time>","refreshed_at":"<time>","current":true,"browser":"","system":""}],"launchers":[
		{"id":%q,"issued_at":"<time>","valid":true,"pid":%d,"player_name":"Steve"},{"id":%q,"issued_at":"<time>","valid":true,"pid":0}]}`,
		c.signIns(t).Launchers[0].ID, steve, c.signIns(t).Launchers[1].ID))
	id, err := uuid.Parse(c.signIns(t).Launchers[1].ID)
	testenv.Check(t, err == nil && id.Version() == 8 && id.Variant() == uuid.RFC4122,
		"the id %v, %v is no UUID of version 8", id, err)
	digits := strings.ReplaceAll(id.String(), "-", "")
	testenv.Check(t, !strings.Contains(fmt.Sprintf("%x", hash), digits[:12]), "the id %s is in the hash %x", id, hash)

	// After a renaming the token must be refreshed, as it must when it is 15 days old.
	c.Put(t, fmt.Sprintf("/api/players/%d/name", steve), `{"name":"Herobrine"}`)
	list := c.signIns(t).Launchers
	testenv.Check(t, len(list) == 2 && !list[0].Valid && *list[0].PlayerName == "Herobrine" && list[1].Valid,
		"after a renaming the launchers are %+v", list)
	c.site.Exec(t, "UPDATE launcher_tokens SET issued_at = now() - interval '15 days' WHERE pid IS NULL")
	list = c.signIns(t).Launchers
	testenv.Check(t, len(list) == 2 && !list[1].Valid, "after 15 days the launchers are %+v", list)
	// One that can no longer be refreshed is not listed, nor one for a player of another user.
	c.site.Exec(t, "UPDATE launcher_tokens SET issued_at = now() - interval '45 days' WHERE pid IS NULL")
	testenv.Equal(t, len(c.signIns(t).Launchers), 1, "launchers after 45 days")
	c.site.Exec(t, "UPDATE players SET uid = $2 WHERE pid = $1", steve, c.signUp(t).UID)
	testenv.Equal(t, len(c.signIns(t).Launchers), 0, "launchers after the player has moved")
}

// Sessions end at once at every server.
func TestEndOtherSessions(t *testing.T) {
	t.Parallel()
	c := start(t).signUp(t)
	others := []client{c.signIn(t), c.site.serve(t).as(c.signIn(t).Token)}
	stranger := c.signUp(t)
	c.launcher(t, "a", 0)
	stranger.launcher(t, "b", 0)
	for _, other := range others {
		other.works(t, true)
	}
	c.Delete(t, "/api/user/sessions").Is(t, 200, `{"code":0,"message":"<text>"}`)
	for _, other := range others {
		other.works(t, false)
		other.Send(t, "POST", "/api/auth/refresh", body{}).IsError(t, 401, 5)
	}
	c.works(t, true)
	stranger.works(t, true)
	list, theirs := c.signIns(t), stranger.signIns(t)
	testenv.Equal(t, [2]int{len(list.Sessions), len(list.Launchers)}, [2]int{1, 0}, "sign-ins, the current one only")
	testenv.Equal(t, [2]int{len(theirs.Sessions), len(theirs.Launchers)}, [2]int{1, 1}, "sign-ins of another user")
	c.Delete(t, "/api/user/sessions").Is(t, 200, `{"code":0,"message":"<text>"}`)
	c.as("").Delete(t, "/api/user/sessions").IsError(t, 401, 5)
}

func TestEndSession(t *testing.T) {
	t.Parallel()
	c := start(t).signUp(t)
	other := c.site.serve(t).as(c.signIn(t).Token)
	stranger := c.signUp(t)
	c.launcher(t, "a", 0)
	c.launcher(t, "b", 0)
	list, theirs := c.signIns(t), stranger.signIns(t)
	otherID, ownID := list.Sessions[0].ID, list.Sessions[1].ID
	if list.Sessions[0].Current {
		otherID, ownID = ownID, otherID
	}
	end := func(id string) response { return c.Delete(t, "/api/user/sessions/"+id) }

	for _, id := range []string{theirs.Sessions[0].ID, uuid.NewString(), "1", strings.ReplaceAll(otherID, "-", "")} {
		end(id).IsError(t, 404, 3)
	}
	stranger.works(t, true)
	stranger.Delete(t, "/api/user/sessions/"+list.Launchers[0].ID).IsError(t, 404, 3)
	end(otherID).Is(t, 200, `{"code":0,"message":"<text>"}`)
	other.works(t, false)
	end(otherID).IsError(t, 404, 3)
	end(strings.ToUpper(list.Launchers[0].ID)).Is(t, 200, `{"code":0,"message":"<text>"}`)
	got := c.signIns(t)
	testenv.Equal(t, len(got.Sessions), 1, "the sessions that are left")
	cmptest.Same(t, got.Launchers, list.Launchers[1:], "the launchers that are left")
	end(ownID).Is(t, 200, `{"code":0,"message":"<text>"}`)
	c.works(t, false)
}
