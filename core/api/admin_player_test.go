package api_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/veneer-skins/veneer/core"
)

// adminPath returns the administrators' path of a player.
func adminPath(player string) string {
	return strings.Replace(player, "/api/", "/api/admin/", 1)
}

// auditSubject returns a player's name in the audit log.
func auditSubject(player string) string {
	return "player:" + strings.TrimPrefix(player, "/api/players/")
}

func TestAdminChangesPlayer(t *testing.T) {
	t.Parallel()

	c := start(t)
	admin, user := c.signUpAs(t, core.Administrator), c.signUp(t)
	steve, alex := user.player(t, "Steve"), user.player(t, "Alex")
	path := adminPath(steve)
	classic := admin.texture(t, "name=A&type=steve", skinFile(t, 1))
	cape := user.texture(t, "name=B&type=cape&public=false", capeFile(t))
	private := admin.texture(t, "name=C&type=steve&public=false", skinFile(t, 2))
	entries := 0
	f := func(a response, want, entry string) {
		t.Helper()
		a.is(t, 200, want)
		admin.logs(t, entries, entry)
		entries++
	}
	wantBody := func(name, skin, cape string) string { return done(user.playerJSON(steve, name, skin, cape)) }
	note := func(action, name, details string) string {
		return fmt.Sprintf(`%s %s {%s"uid": %d, %s"name": %q}`, action, auditSubject(steve), strings.Split(details, "|")[0], user.uid, strings.Split(details, "|")[1], name)
	}

	f(admin.put(t, path+"/name", `{"name":" Herobrine "}`), wantBody("Herobrine", "0", "0"), note("player.rename", "Steve", `"to": "Herobrine", |"from": "Steve", `))
	f(admin.send(t, "PUT", path+"/name", encodeForm("name=Herobrine")), wantBody("Herobrine", "0", "0"), note("player.rename", "Herobrine", `"to": "Herobrine", |"from": "Herobrine", `))
	f(admin.put(t, path+"/textures", `{"skin":`+classic+`,"cape":`+cape+`}`), wantBody("Herobrine", classic, cape), // the cape is the owner's
		note("player.dress", "Herobrine", `"to": {"cape": `+cape+`, "skin": `+classic+`}, |"from": {"cape": 0, "skin": 0}, `))
	f(admin.delete(t, path+"/textures?type=skin"), wantBody("Herobrine", "0", cape),
		note("player.undress", "Herobrine", `"to": {"cape": `+cape+`, "skin": 0}, |"from": {"cape": `+cape+`, "skin": `+classic+`}, `))
	f(admin.send(t, "DELETE", path+"/textures", encodeJSON(`{"cape":null}`)), wantBody("Herobrine", "0", "0"),
		note("player.undress", "Herobrine", `"to": {"cape": 0, "skin": 0}, |"from": {"cape": `+cape+`, "skin": 0}, `))

	for _, name := range names {
		admin.put(t, path+"/name", name).isError(t, 422, 4, "name")
	}
	admin.put(t, path+"/name", `{"name":"ALEX"}`).isError(t, 409, 2, "name")
	admin.put(t, path+"/textures", `{}`).isError(t, 422, 4, "skin", "cape")
	admin.put(t, path+"/textures", `{"skin":0,"cape":-1}`).isError(t, 422, 4, "skin", "cape")
	admin.put(t, path+"/textures", `{"skin":`+cape+`}`).isError(t, 422, 4, "skin")
	admin.put(t, path+"/textures", `{"skin":999999}`).isError(t, 404, 3)
	admin.put(t, path+"/textures", `{"skin":`+classic+`,"cape":999999}`).isError(t, 404, 3)
	admin.put(t, path+"/textures", `{"skin":`+private+`}`).isError(t, 403, 6) // the texture is the administrator's
	admin.delete(t, path+"/textures").isError(t, 422, 4, "type")
	admin.delete(t, path+"/textures?type=hat").isError(t, 422, 4, "type")
	admin.logs(t, entries)
	if got := user.outfit(t, "Herobrine"); got != (outfit{"0", "0"}) {
		t.Errorf("after refusals the player wears %v", got)
	}

	f(admin.delete(t, path), `{"code":0,"message":"<text>"}`, fmt.Sprintf(`player.delete %s {"uid": %d, "name": "Herobrine"}`, auditSubject(steve), user.uid))
	admin.delete(t, path).isError(t, 404, 3)
	user.get(t, "/api/players").is(t, 200, "["+user.playerJSON(alex, "Alex", "0", "0")+"]")
	user.player(t, "Herobrine") // the name is free again
}

// An administrator changes their own players and those of users with a lower permission, and no
// others.
func TestAdminPlayerPermissions(t *testing.T) {
	t.Parallel()

	c := start(t)
	admin, root := c.signUpAs(t, core.Administrator), c.signUpAs(t, core.SuperAdministrator)
	user, peer, other := c.signUp(t), c.signUpAs(t, core.Administrator), c.signUpAs(t, core.SuperAdministrator)
	acts := func(by client, player, name string, owner client) []response {
		t.Helper()
		path := adminPath(player)
		return []response{
			by.put(t, path+"/name", `{"name":"`+name+`"}`),
			by.put(t, path+"/owner", fmt.Sprintf(`{"uid":%d}`, owner.uid)),
			by.delete(t, path+"/textures?skin"),
			by.delete(t, path),
		}
	}
	granted, refused := 0, 0
	for by, owners := range map[*client][]client{&admin: {user, admin}, &root: {user, admin, peer, root}} {
		for _, owner := range owners {
			for _, a := range acts(*by, owner.player(t, "Steve"), "Alex", owner) {
				granted++
				if a.status != 200 {
					t.Errorf("user %d on a player of user %d: %s is answered with %d %s", by.uid, owner.uid, a.request, a.status, a.body)
				}
			}
		}
	}
	if n := len(c.site.acts(t)); n != granted {
		t.Errorf("%d changes are %d entries", granted, n)
	}
	for by, owners := range map[*client][]client{&admin: {peer, root}, &root: {other}} {
		for i, owner := range owners {
			player := owner.player(t, fmt.Sprintf("Theirs%d%d", by.uid, i))
			for _, a := range acts(*by, player, "Alex", owner) {
				refused++
				a.isError(t, 403, 6)
			}
			// A player cannot be moved out of the administrator's reach.
			own := by.player(t, fmt.Sprintf("Own%d%d", by.uid, i))
			by.put(t, adminPath(own)+"/owner", fmt.Sprintf(`{"uid":%d}`, owner.uid)).isError(t, 403, 6)
		}
	}
	for _, a := range acts(root, "/api/players/999999", "Alex", user) {
		a.isError(t, 404, 3)
	}
	if n := len(c.site.acts(t)); n != granted || refused != 12 {
		t.Errorf("after %d refusals there are %d entries; want %d", refused, n, granted)
	}
}

func TestMovePlayer(t *testing.T) {
	t.Parallel()

	c := start(t, "QUOTA_PLAYERS=2")
	admin, ann, bob := c.signUpAs(t, core.Administrator), c.signUp(t), c.signUp(t)
	steve := ann.player(t, "Steve")
	private := ann.texture(t, "name=A&type=steve&public=false", skinFile(t, 1))
	public := ann.texture(t, "name=B&type=cape", capeFile(t))
	ann.put(t, steve+"/textures", `{"skin":`+private+`,"cape":`+public+`}`)
	move := func(object string) response {
		t.Helper()
		return admin.put(t, adminPath(steve)+"/owner", object)
	}
	to := func(c client) string { return fmt.Sprintf(`{"uid":%d}`, c.uid) }

	move(to(ann)).is(t, 200, done(ann.playerJSON(steve, "Steve", private, public)))
	move(to(bob)).is(t, 200, done(bob.playerJSON(steve, "Steve", "0", public)))
	admin.logs(t, 1, fmt.Sprintf(`player.move %s {"to": {"uid": %d, "cape": %s, "skin": 0}, "uid": %d, "from": {"uid": %d, "cape": %s, "skin": %s}, "name": "Steve"}`,
		auditSubject(steve), bob.uid, public, ann.uid, ann.uid, public, private))
	ann.get(t, "/api/players").is(t, 200, "[]")
	ann.put(t, steve+"/name", `{"name":"Mine"}`).isError(t, 403, 6)
	bob.get(t, "/api/players").is(t, 200, "["+bob.playerJSON(steve, "Steve", "0", public)+"]")
	if a := admin.send(t, "PUT", adminPath(steve)+"/owner", encodeForm("uid="+fmt.Sprint(ann.uid))); a.status != 200 {
		t.Errorf("a form is answered with %d %s", a.status, a.body)
	}

	before := len(c.site.acts(t))
	for _, object := range []string{`{}`, `{"uid":null}`, `{"uid":0}`, `{"uid":-1}`, `{"uid":"x"}`} {
		move(object).isError(t, 422, 4, "uid")
	}
	move(`{"uid":999999}`).isError(t, 404, 3)
	bob.player(t, "Alex")
	bob.player(t, "Zombie")
	move(to(bob)).isError(t, 403, 1)
	if n := len(c.site.acts(t)); n != before {
		t.Errorf("refusals are %d entries", n-before)
	}
	ann.player(t, "Ender")
	move(to(ann)).is(t, 200, done(ann.playerJSON(steve, "Steve", "0", public))) // the owner stays the same
}

func TestFindPlayers(t *testing.T) {
	t.Parallel()

	c := start(t)
	admin, ann, bob := c.signUpAs(t, core.Administrator), c.signUp(t), c.signUp(t)
	steve, steven, alex := ann.player(t, "Steve"), bob.player(t, "STEVEN"), bob.player(t, "Al_ex")
	finds := func(query string, total int, want ...string) {
		t.Helper()
		from, to := 0, 0
		if len(want) > 0 {
			from, to = 1, len(want)
		}
		admin.get(t, "/api/admin/players?"+query).is(t, 200, fmt.Sprintf(
			`{"per_page":20,"from":%d,"to":%d,"total":%d,"total_is_lower_bound":false,"current_page":1,"last_page":1,"data":[%s]}`, from, to, total, strings.Join(want, ",")))
	}
	found := func(c client, path, name string) string {
		return strings.TrimSuffix(c.playerJSON(path, name, "0", "0"), "}") + `,"owner_nickname":"Somebody"}`
	}
	first, second, third := found(ann, steve, "Steve"), found(bob, steven, "STEVEN"), found(bob, alex, "Al_ex")

	finds("", 3, third, second, first)
	finds("name=sTe", 2, second, first)
	finds("name=l_", 1, third)
	finds("name=%25", 0)
	finds(fmt.Sprintf("uid=%d", bob.uid), 2, third, second)
	finds(fmt.Sprintf("uid=%d&name=ste", bob.uid), 1, second)
	finds("pid="+strings.TrimPrefix(steve, "/api/players/"), 1, first)
	finds("pid=999999", 0)
	page := admin.get(t, "/api/admin/players?perPage=2&page=2")
	page.is(t, 200, `{"per_page":2,"from":3,"to":3,"total":3,"total_is_lower_bound":false,"current_page":2,"last_page":2,"data":[`+first+`]}`)
	for query, field := range map[string]string{
		"page=0": "page", "page=1001": "page", "perPage=0": "perPage", "perPage=101": "perPage", "uid=0": "uid", "pid=x": "pid",
		"name=" + strings.Repeat("x", 65): "name", "name=%0a%00": "name",
	} {
		admin.get(t, "/api/admin/players?"+query).isError(t, 422, 4, field)
	}
}
