package api_test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
)

// playerJSON returns a player of the client as the API writes it.
func (c client) playerJSON(path, name, skin, cape string) string {
	return fmt.Sprintf(`{"pid":%s,"uid":%d,"uuid":"<uuid>","name":"%s","tid_skin":%s,"tid_cape":%s,"last_modified":"<time>"}`,
		strings.TrimPrefix(path, "/api/players/"), c.uid, name, skin, cape)
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
	if err := json.Unmarshal(c.get(t, "/api/players").body, &players); err != nil {
		t.Fatal(err)
	}
	for _, p := range players {
		if p.Name == name {
			return outfit{strconv.Itoa(p.Skin), strconv.Itoa(p.Cape)}
		}
	}
	t.Fatalf("there is no player %s", name)
	return outfit{}
}

// done returns an envelope with data.
func done(data string) string { return `{"code":0,"message":"<text>","data":` + data + `}` }

func TestPlayers(t *testing.T) {
	t.Parallel()

	c := start(t).signUp(t)
	c.get(t, "/api/players").is(t, 200, `[]`)
	c.post(t, "/api/players", `{"name":" Zombie "}`).is(t, 200,
		done(fmt.Sprintf(`{"pid":"<integer>","uid":%d,"uuid":"<uuid>","name":"Zombie","tid_skin":0,"tid_cape":0,"last_modified":"<time>"}`, c.uid)))
	alex := c.player(t, "Alex")
	c.signUp(t).player(t, "Stranger")
	steve := c.player(t, "Steve")

	a := c.get(t, "/api/players")
	a.is(t, 200, `[`+strings.Replace(c.playerJSON("", "Zombie", "0", "0"), `"pid":`, `"pid":"<integer>"`, 1)+`,`+
		c.playerJSON(alex, "Alex", "0", "0")+`,`+c.playerJSON(steve, "Steve", "0", "0")+`]`)
}

func TestAddPlayerBodyFormats(t *testing.T) {
	t.Parallel()

	c := start(t).signUp(t)
	for i, body := range []body{
		encodeJSON(`{"name":"Steve0","unknown":[{}]}`),
		{"application/json; charset=utf-8", []byte(`{"name":"Steve1"}`)},
		encodeForm("name=Steve2&unknown=1"),
		encodeMultipart(t, "name=Steve3&unknown=1", nil),
	} {
		a := c.send(t, "POST", "/api/players", body)
		if got := a.field(t, "data", "name"); a.status != 200 || got != fmt.Sprintf("Steve%d", i) {
			t.Errorf("%s is answered with %d %s", body.content, a.status, a.body)
		}
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
		c.post(t, "/api/players", name).isError(t, 422, 4, "name")
	}
	c.send(t, "POST", "/api/players", body{}).isError(t, 422, 4, "name")
	const rule = "A player name has 3 to 16 characters: letters A to Z, digits and underscores."
	if a := c.post(t, "/api/players", `{"name":"José"}`); a.field(t, "message") != rule {
		t.Errorf("%s: %s; want it to say %s", a.request, a.body, rule)
	}
	c.player(t, "Steve")
	c.post(t, "/api/players", `{"name":"sTEVE"}`).isError(t, 409, 2, "name")
	c.signUp(t).post(t, "/api/players", `{"name":"Steve"}`).isError(t, 409, 2, "name")
}

func TestPlayerQuota(t *testing.T) {
	t.Parallel()

	c := start(t, "QUOTA_PLAYERS=2").signUp(t)
	c.player(t, "Steve")
	alex := c.player(t, "Alex")
	c.post(t, "/api/players", `{"name":"Zombie"}`).isError(t, 403, 1)
	c.delete(t, alex)
	c.player(t, "Zombie")
}

func TestRenamePlayer(t *testing.T) {
	t.Parallel()

	c := start(t).signUp(t)
	steve, alex := c.player(t, "Steve"), c.signUp(t).player(t, "Alex")
	uuid := func(a response) string { return a.field(t, "data", "uuid") }

	first := c.put(t, steve+"/name", `{"name":" Herobrine "}`)
	first.is(t, 200, done(c.playerJSON(steve, "Herobrine", "0", "0")))
	second := c.send(t, "PUT", steve+"/name", encodeForm("name=HEROBRINE")) // the player's own name in another case
	second.is(t, 200, done(c.playerJSON(steve, "HEROBRINE", "0", "0")))
	if uuid(first) != uuid(second) {
		t.Errorf("the UUID was %s, and is %s after a new name", uuid(first), uuid(second))
	}
	c.player(t, "Steve") // the name is free again

	for _, name := range names {
		c.put(t, steve+"/name", name).isError(t, 422, 4, "name")
	}
	c.put(t, steve+"/name", `{"name":"alex"}`).isError(t, 409, 2, "name")
	c.put(t, alex+"/name", `{"name":"Mine"}`).isError(t, 403, 6)
	c.put(t, "/api/players/999999/name", `{"name":"Mine"}`).isError(t, 404, 3)
	c.put(t, "/api/players/0/name", `{"name":"Mine"}`).isError(t, 404, 3)
}

func TestLastModified(t *testing.T) {
	t.Parallel()

	c := start(t).signUp(t)
	steve, skin := c.player(t, "Steve"), c.texture(t, "name=Skin&type=steve", skinFile(t, 1))
	f := func(changes bool, method, path, object string) {
		t.Helper()
		c.site.exec(t, "UPDATE players SET last_modified = '2024-05-06 07:08:09+00'")
		a := c.send(t, method, steve+path, encodeJSON(object))
		if got := a.field(t, "data", "last_modified"); (got != "2024-05-06 07:08:09") != changes {
			t.Errorf("after %s %s %s, last_modified is %s; want it changed: %t", method, path, object, got, changes)
		}
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
	c.delete(t, alex).isError(t, 403, 6)
	c.delete(t, steve).is(t, 200, `{"code":0,"message":"<text>"}`)
	c.delete(t, steve).isError(t, 404, 3)
	c.get(t, "/api/players").is(t, 200, `[]`)
	c.player(t, "Steve") // the name is free again
}

func TestApplyTextures(t *testing.T) {
	t.Parallel()

	c := start(t).signUp(t)
	steve := c.player(t, "Steve")
	classic := c.texture(t, "name=Classic&type=steve", skinFile(t, 1))
	slim := c.texture(t, "name=Slim&type=alex&public=false", skinFile(t, 2))
	cape := c.signUp(t).texture(t, "name=Cape&type=cape", capeFile(t))
	f := func(body body, skin, cape string) {
		t.Helper()
		a := c.send(t, "PUT", steve+"/textures", body)
		a.is(t, 200, done(c.playerJSON(steve, "Steve", skin, cape)))
		c.get(t, "/api/players").is(t, 200, `[`+c.playerJSON(steve, "Steve", skin, cape)+`]`)
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
	dress := func(object string) response {
		t.Helper()
		return c.put(t, steve+"/textures", object)
	}

	dress(`{}`).isError(t, 422, 4, "skin", "cape")
	c.send(t, "PUT", steve+"/textures", body{}).isError(t, 422, 4, "skin", "cape")
	dress(`{"skin":0}`).isError(t, 422, 4, "skin")
	dress(`{"skin":-1,"cape":0}`).isError(t, 422, 4, "skin", "cape")
	dress(`{"skin":"Steve"}`).isError(t, 422, 4, "skin")
	dress(`{"skin":1.5,"cape":true}`).isError(t, 422, 4, "skin", "cape")
	dress(`{"skin":99999999999999999999}`).isError(t, 422, 4, "skin")
	c.send(t, "PUT", steve+"/textures", encodeForm("skin=&cape=")).isError(t, 422, 4, "skin", "cape")
	c.send(t, "PUT", steve+"/textures", encodeForm("skin=&cape=one")).isError(t, 422, 4, "cape")
	dress(`{"skin":`+cape+`}`).isError(t, 422, 4, "skin")
	dress(`{"cape":`+skin+`}`).isError(t, 422, 4, "cape")
	dress(`{"skin":999999}`).isError(t, 404, 3)
	dress(`{"skin":`+private+`}`).isError(t, 403, 6)
	c.put(t, alex+"/textures", `{"skin":`+skin+`}`).isError(t, 403, 6)
	c.put(t, "/api/players/999999/textures", `{"skin":`+skin+`}`).isError(t, 404, 3)

	// Both slots, or neither.
	dress(`{"skin":`+skin+`,"cape":999999}`).isError(t, 404, 3)
	dress(`{"skin":`+private+`,"cape":`+cape+`}`).isError(t, 403, 6)
	dress(`{"skin":`+skin+`,"cape":`+skin+`}`).isError(t, 422, 4, "cape")
	c.get(t, "/api/players").is(t, 200, `[`+c.playerJSON(steve, "Steve", "0", "0")+`]`)

	// A private texture in the closet may be applied.
	c.site.exec(t, "INSERT INTO closet_items (uid, tid, cape, item_name) VALUES ($1, (SELECT max(tid) FROM textures), false, 'Gift')", c.uid)
	dress(`{"skin":`+private+`}`).is(t, 200, done(c.playerJSON(steve, "Steve", private, "0")))
}

func TestRemoveTextures(t *testing.T) {
	t.Parallel()

	c := start(t).signUp(t)
	steve := c.player(t, "Steve")
	skin := c.texture(t, "name=Skin&type=steve", skinFile(t, 1))
	cape := c.texture(t, "name=Cape&type=cape", capeFile(t))
	f := func(query string, body body, left string) {
		t.Helper()
		c.put(t, steve+"/textures", `{"skin":`+skin+`,"cape":`+cape+`}`)
		want := map[string][2]string{"": {"0", "0"}, "skin": {skin, "0"}, "cape": {"0", cape}}[left]
		c.send(t, "DELETE", steve+"/textures"+query, body).is(t, 200, done(c.playerJSON(steve, "Steve", want[0], want[1])))
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
	c.delete(t, steve+"/textures?skin&cape").is(t, 200, done(c.playerJSON(steve, "Steve", "0", "0")))
	c.delete(t, steve+"/textures?skin&cape").is(t, 200, done(c.playerJSON(steve, "Steve", "0", "0")))
}

func TestRemoveTexturesRefuses(t *testing.T) {
	t.Parallel()

	c := start(t).signUp(t)
	steve, alex := c.player(t, "Steve"), c.signUp(t).player(t, "Alex")
	skin := c.texture(t, "name=Skin&type=steve", skinFile(t, 1))
	c.put(t, steve+"/textures", `{"skin":`+skin+`}`)
	f := func(query string, body body) {
		t.Helper()
		c.send(t, "DELETE", steve+"/textures"+query, body).isError(t, 422, 4, "type")
	}

	f("", body{})
	f("", encodeJSON(`{}`))
	f("", encodeJSON(`{"other":1}`))
	f("", encodeJSON(`{"type":[]}`))
	f("", encodeJSON(`{"type":null}`))
	f("", encodeJSON(`{"type":["skin","cape","skin"]}`))
	f("", encodeJSON(`{"type":["skin","hat"]}`))
	f("", encodeJSON(`{"type":["Skin"]}`))
	f("", encodeJSON(`{"type":[null]}`))
	f("", encodeJSON(`{"type":"skin"}`))
	f("", encodeJSON(`{"type":{"skin":1}}`))
	f("", encodeJSON(`{"type":["hat"],"skin":1}`))
	f("", encodeForm("type[]=hat"))
	f("", encodeForm("type[]="))
	f("?type[]=skin&type[]=cape&type[]=skin", body{})
	f("?type=skin,cape", body{})

	c.delete(t, alex+"/textures?skin").isError(t, 403, 6)
	c.delete(t, "/api/players/999999/textures?skin").isError(t, 404, 3)
	c.get(t, "/api/players").is(t, 200, `[`+c.playerJSON(steve, "Steve", skin, "0")+`]`)
}
