package api_test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/veneer-skins/veneer/shared/testenv"
)

// playerJSON returns a player of the client as the API writes it.
func (c client) playerJSON(path, name, skin, cape string) string {
	return fmt.Sprintf(`{"pid":%s,"uid":%d,"uuid":"<uuid>","name":"%s","tid_skin":%s,"tid_cape":%s,"last_modified":"<time>"}`,
		strings.TrimPrefix(path, "/api/players/"), c.UID, name, skin, cape)
}

// outfit has the tids of a player's textures.
type outfit struct{ skin, cape string }

// outfit returns the textures of the client's player of a name.
func (c client) outfit(t *testing.T, name string) outfit {
	t.Helper()
	var players []struct {
		Name string
		Skin int `json:"tid_skin"`
		Cape int `json:"tid_cape"`
	}
	testenv.Do(t, json.Unmarshal(c.Get(t, "/api/players").Body, &players))
	for _, p := range players {
		if p.Name == name {
			return outfit{strconv.Itoa(p.Skin), strconv.Itoa(p.Cape)}
		}
	}
	t.Fatalf("there is no player %s", name)
	return outfit{}
}

// outfitOf returns the textures of the player in a response.
func outfitOf(t *testing.T, r response) outfit {
	t.Helper()
	return outfit{r.Field(t, "data", "tid_skin"), r.Field(t, "data", "tid_cape")}
}

// done returns an envelope with data.
func done(data string) string { return `{"code":0,"message":"<text>","data":` + data + `}` }

func TestPlayers(t *testing.T) {
	t.Parallel()
	c := start(t).signUp(t)
	c.Get(t, "/api/players").Is(t, 200, `[]`)
	c.Post(t, "/api/players", `{"name":" Zombie "}`).Is(t, 200,
		done(fmt.Sprintf(`{"pid":"<integer>","uid":%d,"uuid":"<uuid>","name":"Zombie","tid_skin":0,"tid_cape":0,"last_modified":"<time>"}`, c.UID)))
	alex := c.player(t, "Alex")
	c.signUp(t).player(t, "Stranger")
	steve := c.player(t, "Steve")

	a := c.Get(t, "/api/players")
	a.Is(t, 200, `[`+strings.Replace(c.playerJSON("", "Zombie", "0", "0"), `"pid":`, `"pid":"<integer>"`, 1)+`,`+
		c.playerJSON(alex, "Alex", "0", "0")+`,`+c.playerJSON(steve, "Steve", "0", "0")+`]`)
}

func TestAddPlayerBodyFormats(t *testing.T) {
	t.Parallel()
	c := start(t).signUp(t)
	for i, body := range []body{
		encodeJSON(`{"name":"Steve0","unknown":[{}]}`),
		raw("application/json; charset=utf-8", `{"name":"Steve1"}`),
		encodeForm("name=Steve2&unknown=1"),
		encodeMultipart(t, "name=Steve3&unknown=1", nil),
	} {
		c.Send(t, "POST", "/api/players", body).Has(t, "data.name", fmt.Sprintf("Steve%d", i))
	}
}

// names are bodies with invalid names of players.
var names = []string{
	`{}`, `{"name":null}`, `{"name":""}`, `{"name":"ab"}`, `{"name":"abcdefghijklmnopq"}`, `{"name":"a b"}`, `{"name":"Steve-99"}`, `{"name":"Zoë"}`,
	`{"name":"Ste\u0000ve"}`, `{"name":"Ste\nve"}`, `{"name":5}`, `{"name":12345}`, `{"name":["Steve"]}`, `{"name":true}`,
}

func TestAddPlayerRefuses(t *testing.T) {
	t.Parallel()
	c := start(t).signUp(t)
	for _, name := range names {
		c.Post(t, "/api/players", name).IsError(t, 422, 4, "name")
	}
	c.Send(t, "POST", "/api/players", body{}).IsError(t, 422, 4, "name")
	const rule = "A player name has 3 to 16 characters: letters A to Z, digits and underscores."
	c.Post(t, "/api/players", `{"name":"José"}`).HasField(t, rule, "message")
	c.player(t, "Steve")
	c.Post(t, "/api/players", `{"name":"sTEVE"}`).IsError(t, 409, 2, "name")
	c.signUp(t).Post(t, "/api/players", `{"name":"Steve"}`).IsError(t, 409, 2, "name")
}

func TestPlayerQuota(t *testing.T) {
	t.Parallel()
	c := start(t, "QUOTA_PLAYERS=2").signUp(t)
	c.player(t, "Steve")
	alex := c.player(t, "Alex")
	c.Post(t, "/api/players", `{"name":"Zombie"}`).IsError(t, 403, 1)
	c.Delete(t, alex)
	c.player(t, "Zombie")
}

func TestRenamePlayer(t *testing.T) {
	t.Parallel()
	c := start(t).signUp(t)
	steve, alex := c.player(t, "Steve"), c.signUp(t).player(t, "Alex")
	uuid := func(a response) string { return a.Field(t, "data", "uuid") }

	first := c.Put(t, steve+"/name", `{"name":" Herobrine "}`)
	first.Is(t, 200, done(c.playerJSON(steve, "Herobrine", "0", "0")))
	second := c.Send(t, "PUT", steve+"/name", encodeForm("name=HEROBRINE")) // the player's own name in another case
	second.Is(t, 200, done(c.playerJSON(steve, "HEROBRINE", "0", "0")))
	testenv.Equal(t, uuid(second), uuid(first), "the UUID after a new name")
	c.player(t, "Steve") // the name is free again

	for _, name := range names {
		c.Put(t, steve+"/name", name).IsError(t, 422, 4, "name")
	}
	c.Put(t, steve+"/name", `{"name":"alex"}`).IsError(t, 409, 2, "name")
	c.Put(t, alex+"/name", `{"name":"Mine"}`).IsError(t, 403, 6)
	c.Put(t, "/api/players/999999/name", `{"name":"Mine"}`).IsError(t, 404, 3)
	c.Put(t, "/api/players/0/name", `{"name":"Mine"}`).IsError(t, 404, 3)
}

func TestLastModified(t *testing.T) {
	t.Parallel()
	c := start(t).signUp(t)
	steve, skin := c.player(t, "Steve"), c.texture(t, "name=Skin&type=steve", skinFile(t, 1))
	f := func(changes bool, method, path, object string) {
		t.Helper()
		c.site.Exec(t, "UPDATE players SET last_modified = '2024-05-06 07:08:09+00'")
		a := c.Send(t, method, steve+path, encodeJSON(object))
		got := a.Field(t, "data", "last_modified")
		testenv.Equal(t, got != "2024-05-06 07:08:09", changes, "%s changes last_modified, which is %s", a.Request(), got)
	}

	f(true, "PUT", "/name", `{"name":"STEVE"}`)
	f(false, "PUT", "/name", `{"name":"STEVE"}`)
	f(true, "PUT", "/textures", `{"skin":`+skin+`}`)
	f(false, "PUT", "/textures", `{"skin":`+skin+`}`)
	f(false, "DELETE", "/textures", `{"cape":1}`)
	f(true, "DELETE", "/textures", `{"type":["skin","cape"]}`)
	f(false, "DELETE", "/textures", `{"skin":1}`)
}

func TestDeletePlayer(t *testing.T) {
	t.Parallel()
	c := start(t).signUp(t)
	steve, alex := c.player(t, "Steve"), c.signUp(t).player(t, "Alex")
	c.Delete(t, alex).IsError(t, 403, 6)
	c.Delete(t, steve).Is(t, 200, `{"code":0,"message":"<text>"}`)
	c.Delete(t, steve).IsError(t, 404, 3)
	c.Get(t, "/api/players").Is(t, 200, `[]`)
	c.player(t, "Steve") // the name is free again, for the user
}

// restore restores a player.
func (c client) restore(t *testing.T, path string) response {
	t.Helper()
	return c.Send(t, "POST", path+"/restore", body{})
}

// For a day only the former owner can restore a deleted player or take its name.
func TestRestorePlayer(t *testing.T) {
	t.Parallel()
	c := start(t, "QUOTA_PLAYERS=1").signUp(t)
	other := c.signUp(t)
	skin, cape := c.texture(t, "name=Skin&type=steve", skinFile(t, 1)), c.texture(t, "name=Cape&type=cape", capeFile(t))
	steve := c.player(t, "Steve")
	c.Put(t, steve+"/textures", `{"skin":`+skin+`,"cape":`+cape+`}`)
	uuid := c.site.Count(t, "SELECT hashtext(uuid::text) FROM players")
	c.Get(t, "/api/deleted-players").Is(t, 200, `[]`)
	c.restore(t, steve).IsError(t, 404, 3)
	c.Delete(t, steve)
	c.Delete(t, "/api/textures/"+cape)
	listed := fmt.Sprintf(`[{"pid":%s,"uuid":"<uuid>","name":"Steve","tid_skin":%s,"tid_cape":%s,"deleted_at":"<time>","restorable_until":"<time>"}]`,
		strings.TrimPrefix(steve, "/api/players/"), skin, cape)
	c.Get(t, "/api/deleted-players").Is(t, 200, listed)
	other.Get(t, "/api/deleted-players").Is(t, 200, `[]`)

	for _, taken := range []response{
		other.Post(t, "/api/players", `{"name":"sTEVE"}`),
		other.Put(t, other.player(t, "Alex")+"/name", `{"name":"Steve"}`),
	} {
		taken.IsError(t, 409, 2, "name")
	}
	const registration = `{"email":"a@example.com","password":"correct horse","nickname":"A","player_name":"Steve"}`
	c.Post(t, "/api/auth/register", registration).IsError(t, 409, 2, "player_name")
	other.restore(t, steve).IsError(t, 404, 3)
	c.Put(t, steve+"/name", `{"name":"Herobrine"}`).IsError(t, 404, 3)

	changes := c.site.Count(t, "SELECT count(*) FROM changes")
	c.restore(t, steve).Is(t, 200, done(c.playerJSON(steve, "Steve", skin, "0")))
	c.Get(t, "/api/players").Is(t, 200, "["+c.playerJSON(steve, "Steve", skin, "0")+"]")
	testenv.Equal(t, c.site.Count(t, "SELECT hashtext(uuid::text) FROM players WHERE name = 'Steve'"), uuid, "the hash of the UUID")
	c.site.HasCount(t, changes+1, "SELECT count(*) FROM changes")
	c.Get(t, "/api/deleted-players").Is(t, 200, `[]`)

	// The name that the owner takes again, and the quota, leave no room.
	c.Delete(t, steve)
	again := c.player(t, "STEVE")
	c.restore(t, steve).IsError(t, 403, 1)
	c.Delete(t, again)
	c.site.Exec(t, "UPDATE players SET name = 'Steve', name_key = 'steve'")
	c.restore(t, steve).IsError(t, 409, 2, "name")
	c.site.Exec(t, "UPDATE players SET name = 'Alex', name_key = 'alex'")

	c.site.Exec(t, "UPDATE deleted_players SET deleted_at = deleted_at - interval '1 day'")
	c.Get(t, "/api/deleted-players").Is(t, 200, `[]`)
	c.restore(t, steve).IsError(t, 404, 3)
	other.Put(t, "/api/players/"+fmt.Sprint(c.site.Count(t, "SELECT pid FROM players"))+"/name", `{"name":"Steve"}`).HasStatus(t, 200)
	testenv.Equal(t, testenv.Must(c.Domain.Players.Trim(t.Context()))(t), 2, "rows are trimmed")
}

// To restore a player takes its refund back, so that doing and undoing gains nothing. Of many, the latest 100 stay.
func TestRestoredPlayerCosts(t *testing.T) {
	t.Parallel()
	c := start(t, "SCORE_REGISTRATION=10", "SCORE_PLAYER=7", "SCORE_REFUND_PLAYER=true").signUp(t)
	scoreIs := func(want string) {
		t.Helper()
		c.Get(t, "/api/user").HasField(t, want, "score")
	}
	c.site.Exec(t, "UPDATE users SET score = 10")
	steve := c.player(t, "Steve")
	for range 2 {
		c.Delete(t, steve)
		scoreIs("10")
		c.restore(t, steve).HasStatus(t, 200)
		scoreIs("3")
	}
	c.Delete(t, steve)
	c.site.Exec(t, "UPDATE users SET score = 6")
	c.restore(t, steve).IsError(t, 403, 7)

	c.site.Exec(t, `INSERT INTO deleted_players (pid, uid, uuid, name, name_key)
		SELECT n, $1, gen_random_uuid(), 'P' || n, 'p' || n FROM generate_series(1000, 1149) n`, c.UID)
	c.site.Exec(t, "UPDATE users SET score = 7")
	c.Delete(t, c.player(t, "Alex"))
	c.site.HasCount(t, 100, "SELECT count(*) FROM deleted_players")
}

func TestApplyTextures(t *testing.T) {
	t.Parallel()
	c := start(t).signUp(t)
	steve := c.player(t, "Steve")
	classic := c.texture(t, "name=Classic&type=steve", skinFile(t, 1))
	slim := c.texture(t, "name=Slim&type=alex&public=false", skinFile(t, 2))
	cape := c.signUp(t).texture(t, "name=Cape&type=cape", capeFile(t))
	f := func(body body, skin, cape string) {
		c.Send(t, "PUT", steve+"/textures", body).Is(t, 200, done(c.playerJSON(steve, "Steve", skin, cape)))
		c.Get(t, "/api/players").Is(t, 200, `[`+c.playerJSON(steve, "Steve", skin, cape)+`]`)
	}

	f(encodeJSON(`{"skin":`+classic+`}`), classic, "0")
	f(encodeJSON(`{"cape":`+cape+`,"skin":null}`), classic, cape)
	f(encodeForm("skin=+"+slim+"+"), slim, cape)
	f(encodeMultipart(t, "skin="+classic+"&cape="+cape, nil), classic, cape)
	f(encodeJSON(`{"skin":`+slim+`,"cape":`+cape+`}`), slim, cape)
}

func TestApplyTexturesRefuses(t *testing.T) {
	t.Parallel()
	c := start(t).signUp(t)
	otherUser := c.signUp(t)
	steve, alex := c.player(t, "Steve"), otherUser.player(t, "Alex")
	skin := c.texture(t, "name=Skin&type=steve", skinFile(t, 1))
	cape := c.texture(t, "name=Cape&type=cape", capeFile(t))
	private := otherUser.texture(t, "name=Private&type=steve&public=false", skinFile(t, 2))
	dress := func(object string) response { return c.Put(t, steve+"/textures", object) }

	dress(`{}`).IsError(t, 422, 4, "skin", "cape")
	c.Send(t, "PUT", steve+"/textures", body{}).IsError(t, 422, 4, "skin", "cape")
	dress(`{"skin":0}`).IsError(t, 422, 4, "skin")
	dress(`{"skin":-1,"cape":0}`).IsError(t, 422, 4, "skin", "cape")
	dress(`{"skin":"Steve"}`).IsError(t, 422, 4, "skin")
	dress(`{"skin":1.5,"cape":true}`).IsError(t, 422, 4, "skin", "cape")
	dress(`{"skin":99999999999999999999}`).IsError(t, 422, 4, "skin")
	c.Send(t, "PUT", steve+"/textures", encodeForm("skin=&cape=")).IsError(t, 422, 4, "skin", "cape")
	c.Send(t, "PUT", steve+"/textures", encodeForm("skin=&cape=one")).IsError(t, 422, 4, "cape")
	dress(`{"skin":`+cape+`}`).IsError(t, 422, 4, "skin")
	dress(`{"cape":`+skin+`}`).IsError(t, 422, 4, "cape")
	dress(`{"skin":999999}`).IsError(t, 404, 3)
	dress(`{"skin":`+private+`}`).IsError(t, 403, 6)
	c.Put(t, alex+"/textures", `{"skin":`+skin+`}`).IsError(t, 403, 6)
	c.Put(t, "/api/players/999999/textures", `{"skin":`+skin+`}`).IsError(t, 404, 3)

	// Both slots, or neither.
	dress(`{"skin":`+skin+`,"cape":999999}`).IsError(t, 404, 3)
	dress(`{"skin":`+private+`,"cape":`+cape+`}`).IsError(t, 403, 6)
	dress(`{"skin":`+skin+`,"cape":`+skin+`}`).IsError(t, 422, 4, "cape")
	c.Get(t, "/api/players").Is(t, 200, `[`+c.playerJSON(steve, "Steve", "0", "0")+`]`)

	// A private texture in the closet may be applied.
	c.site.Exec(t, "INSERT INTO closet_items (uid, tid, cape, item_name) VALUES ($1, (SELECT max(tid) FROM textures), false, 'Gift')", c.UID)
	dress(`{"skin":`+private+`}`).Is(t, 200, done(c.playerJSON(steve, "Steve", private, "0")))
}

func TestRemoveTextures(t *testing.T) {
	t.Parallel()
	c := start(t).signUp(t)
	steve := c.player(t, "Steve")
	skin := c.texture(t, "name=Skin&type=steve", skinFile(t, 1))
	cape := c.texture(t, "name=Cape&type=cape", capeFile(t))
	f := func(query string, body body, left string) {
		t.Helper()
		c.Put(t, steve+"/textures", `{"skin":`+skin+`,"cape":`+cape+`}`)
		want := map[string][2]string{"": {"0", "0"}, "skin": {skin, "0"}, "cape": {"0", cape}}[left]
		c.Send(t, "DELETE", steve+"/textures"+query, body).Is(t, 200, done(c.playerJSON(steve, "Steve", want[0], want[1])))
	}

	// A list of slots.
	f("", encodeJSON(`{"type":["skin"]}`), "cape")
	f("", encodeJSON(`{"type":["cape"]}`), "skin")
	f("", encodeJSON(`{"type":["cape","skin"]}`), "")
	f("", encodeJSON(`{"type":["skin","skin"]}`), "cape")
	f("", encodeForm("type[]=skin"), "cape")
	f("", encodeForm("type%5B%5D=skin&type%5B%5D=cape"), "")
	f("", encodeForm("type=cape"), "skin")
	f("", encodeForm("type=skin&type=cape"), "")
	f("", encodeMultipart(t, "type[]=skin&type[]=cape", nil), "")
	f("?type[]=skin", body{}, "cape")
	f("?type=cape", body{}, "skin")
	f("?type%5B%5D=skin&type%5B%5D=cape", body{}, "")

	// Slots named by the presence of a field, with any value.
	f("", encodeJSON(`{"skin":true}`), "cape")
	f("", encodeJSON(`{"skin":false}`), "cape")
	f("", encodeJSON(`{"cape":null}`), "skin")
	f("", encodeJSON(`{"skin":{},"cape":0}`), "")
	f("", encodeForm("skin"), "cape")
	f("", encodeForm("cape=&other=1"), "skin")
	f("", encodeMultipart(t, "skin=0&cape=no", nil), "")
	f("?skin", body{}, "cape")
	f("?cape=false", body{}, "skin")
	f("?skin=&cape", body{}, "")
	f("?skin=1", encodeJSON(`{"cape":1}`), "")

	// The list takes precedence.
	f("", encodeJSON(`{"type":["skin"],"cape":1}`), "cape")

	// Empty slots are no error.
	c.Delete(t, steve+"/textures?skin&cape").Is(t, 200, done(c.playerJSON(steve, "Steve", "0", "0")))
	c.Delete(t, steve+"/textures?skin&cape").Is(t, 200, done(c.playerJSON(steve, "Steve", "0", "0")))
}

func TestRemoveTexturesRefuses(t *testing.T) {
	t.Parallel()
	c := start(t).signUp(t)
	steve, alex := c.player(t, "Steve"), c.signUp(t).player(t, "Alex")
	skin := c.texture(t, "name=Skin&type=steve", skinFile(t, 1))
	c.Put(t, steve+"/textures", `{"skin":`+skin+`}`)
	f := func(query string, body body) {
		t.Helper()
		c.Send(t, "DELETE", steve+"/textures"+query, body).IsError(t, 422, 4, "type")
	}

	f("", body{})
	for _, object := range []string{
		`{}`, `{"other":1}`, `{"type":[]}`, `{"type":null}`, `{"type":["skin","cape","skin"]}`, `{"type":["skin","hat"]}`,
		`{"type":["Skin"]}`, `{"type":[null]}`, `{"type":"skin"}`, `{"type":{"skin":1}}`, `{"type":["hat"],"skin":1}`,
	} {
		f("", encodeJSON(object))
	}
	f("", encodeForm("type[]=hat"))
	f("", encodeForm("type[]="))
	f("?type[]=skin&type[]=cape&type[]=skin", body{})
	f("?type=skin,cape", body{})

	c.Delete(t, alex+"/textures?skin").IsError(t, 403, 6)
	c.Delete(t, "/api/players/999999/textures?skin").IsError(t, 404, 3)
	c.Get(t, "/api/players").Is(t, 200, `[`+c.playerJSON(steve, "Steve", skin, "0")+`]`)
}
