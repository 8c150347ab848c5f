package api_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// adminPath returns the administrators' path of a player.
func adminPath(player string) string { return strings.Replace(player, "/api/", "/api/admin/", 1) }

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
		a.Is(t, 200, want)
		admin.logs(t, entries, entry)
		entries++
	}
	wantBody := func(name, skin, cape string) string { return done(user.playerJSON(steve, name, skin, cape)) }
	note := func(action, name, details string) string {
		return fmt.Sprintf(`%s %s {%s"uid": %d, %s"name": %q}`, action, auditSubject(steve), strings.Split(details, "|")[0], user.UID, strings.Split(details, "|")[1], name)
	}

	f(admin.Put(t, path+"/name", `{"name":" Herobrine "}`), wantBody("Herobrine", "0", "0"), note("player.rename", "Steve", `"to": "Herobrine", |"from": "Steve", `))
	f(admin.Send(t, "PUT", path+"/name", encodeForm("name=Herobrine")), wantBody("Herobrine", "0", "0"), note("player.rename", "Herobrine", `"to": "Herobrine", |"from": "Herobrine", `))
	f(admin.Put(t, path+"/textures", `{"skin":`+classic+`,"cape":`+cape+`}`), wantBody("Herobrine", classic, cape), // the cape is the owner's
		note("player.dress", "Herobrine", `"to": {"cape": `+cape+`, "skin": `+classic+`}, |"from": {"cape": 0, "skin": 0}, `))
	f(admin.Delete(t, path+"/textures?type=skin"), wantBody("Herobrine", "0", cape),
		note("player.undress", "Herobrine", `"to": {"cape": `+cape+`, "skin": 0}, |"from": {"cape": `+cape+`, "skin": `+classic+`}, `))
	f(admin.Send(t, "DELETE", path+"/textures", encodeJSON(`{"cape":null}`)), wantBody("Herobrine", "0", "0"),
		note("player.undress", "Herobrine", `"to": {"cape": 0, "skin": 0}, |"from": {"cape": `+cape+`, "skin": 0}, `))

	for _, name := range names {
		admin.Put(t, path+"/name", name).IsError(t, 422, 4, "name")
	}
	admin.Put(t, path+"/name", `{"name":"ALEX"}`).IsError(t, 409, 2, "name")
	admin.Put(t, path+"/textures", `{}`).IsError(t, 422, 4, "skin", "cape")
	admin.Put(t, path+"/textures", `{"skin":0,"cape":-1}`).IsError(t, 422, 4, "skin", "cape")
	admin.Put(t, path+"/textures", `{"skin":`+cape+`}`).IsError(t, 422, 4, "skin")
	admin.Put(t, path+"/textures", `{"skin":999999}`).IsError(t, 404, 3)
	admin.Put(t, path+"/textures", `{"skin":`+classic+`,"cape":999999}`).IsError(t, 404, 3)
	admin.Put(t, path+"/textures", `{"skin":`+private+`}`).IsError(t, 403, 6) // the texture is the administrator's
	admin.Delete(t, path+"/textures").IsError(t, 422, 4, "type")
	admin.Delete(t, path+"/textures?type=hat").IsError(t, 422, 4, "type")
	admin.logs(t, entries)
	testenv.Equal(t, user.outfit(t, "Herobrine"), (outfit{"0", "0"}), "the outfit after refusals")

	f(admin.Delete(t, path), `{"code":0,"message":"<text>"}`, fmt.Sprintf(`player.delete %s {"uid": %d, "name": "Herobrine"}`, auditSubject(steve), user.UID))
	admin.Delete(t, path).IsError(t, 404, 3)
	user.Get(t, "/api/players").Is(t, 200, "["+user.playerJSON(alex, "Alex", "0", "0")+"]")
	user.Get(t, "/api/deleted-players").Is(t, 200, `[]`)
	user.restore(t, steve).IsError(t, 404, 3)
	admin.player(t, "Herobrine") // the name is free
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
			by.Put(t, path+"/name", `{"name":"`+name+`"}`),
			by.Put(t, path+"/owner", fmt.Sprintf(`{"uid":%d}`, owner.UID)),
			by.Delete(t, path+"/textures?skin"),
			by.Delete(t, path),
		}
	}
	granted, refused := 0, 0
	for by, owners := range map[*client][]client{&admin: {user, admin}, &root: {user, admin, peer, root}} {
		for _, owner := range owners {
			for _, a := range acts(*by, owner.player(t, fmt.Sprintf("Steve%d", granted)), fmt.Sprintf("Alex%d", granted), owner) {
				granted++
				a.HasStatus(t, 200)
			}
		}
	}
	testenv.Equal(t, len(c.site.acts(t)), granted, "entries for changes")
	for by, owners := range map[*client][]client{&admin: {peer, root}, &root: {other}} {
		for i, owner := range owners {
			player := owner.player(t, fmt.Sprintf("Theirs%d%d", by.UID, i))
			for _, a := range acts(*by, player, "Alex", owner) {
				refused++
				a.IsError(t, 403, 6)
			}
			// A player cannot be moved out of the administrator's reach.
			own := by.player(t, fmt.Sprintf("Own%d%d", by.UID, i))
			by.Put(t, adminPath(own)+"/owner", fmt.Sprintf(`{"uid":%d}`, owner.UID)).IsError(t, 403, 6)
		}
	}
	for _, a := range acts(root, "/api/players/999999", "Alex", user) {
		a.IsError(t, 404, 3)
	}
	testenv.Equal(t, refused, 12, "refusals")
	testenv.Equal(t, len(c.site.acts(t)), granted, "entries after refusals")
}

func TestMovePlayer(t *testing.T) {
	t.Parallel()
	c := start(t, "QUOTA_PLAYERS=2")
	admin, ann, bob := c.signUpAs(t, core.Administrator), c.signUp(t), c.signUp(t)
	steve := ann.player(t, "Steve")
	private := ann.texture(t, "name=A&type=steve&public=false", skinFile(t, 1))
	public := ann.texture(t, "name=B&type=cape", capeFile(t))
	ann.Put(t, steve+"/textures", `{"skin":`+private+`,"cape":`+public+`}`)
	move := func(object string) response { return admin.Put(t, adminPath(steve)+"/owner", object) }
	to := func(c client) string { return fmt.Sprintf(`{"uid":%d}`, c.UID) }

	move(to(ann)).Is(t, 200, done(ann.playerJSON(steve, "Steve", private, public)))
	move(to(bob)).Is(t, 200, done(bob.playerJSON(steve, "Steve", "0", public)))
	admin.logs(t, 1, fmt.Sprintf(`player.move %s {"to": {"uid": %d, "cape": %s, "skin": 0}, "uid": %d, "from": {"uid": %d, "cape": %s, "skin": %s}, "name": "Steve"}`,
		auditSubject(steve), bob.UID, public, ann.UID, ann.UID, public, private))
	ann.Get(t, "/api/players").Is(t, 200, "[]")
	ann.Put(t, steve+"/name", `{"name":"Mine"}`).IsError(t, 403, 6)
	bob.Get(t, "/api/players").Is(t, 200, "["+bob.playerJSON(steve, "Steve", "0", public)+"]")
	admin.Send(t, "PUT", adminPath(steve)+"/owner", encodeForm("uid="+fmt.Sprint(ann.UID))).HasStatus(t, 200)

	before := len(c.site.acts(t))
	for _, object := range []string{`{}`, `{"uid":null}`, `{"uid":0}`, `{"uid":-1}`, `{"uid":"x"}`} {
		move(object).IsError(t, 422, 4, "uid")
	}
	move(`{"uid":999999}`).IsError(t, 404, 3)
	bob.player(t, "Alex")
	bob.player(t, "Zombie")
	move(to(bob)).IsError(t, 403, 1)
	testenv.Equal(t, len(c.site.acts(t)), before, "entries after refusals")
	ann.player(t, "Ender")
	move(to(ann)).Is(t, 200, done(ann.playerJSON(steve, "Steve", "0", public))) // the owner stays the same
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
		admin.Get(t, "/api/admin/players?"+query).Is(t, 200, fmt.Sprintf(
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
	finds(fmt.Sprintf("uid=%d", bob.UID), 2, third, second)
	finds(fmt.Sprintf("uid=%d&name=ste", bob.UID), 1, second)
	finds("uid=steven", 2, third, second)
	finds("pid="+strings.TrimPrefix(steve, "/api/players/"), 1, first)
	finds("pid=999999", 0)
	page := admin.Get(t, "/api/admin/players?perPage=2&page=2")
	page.Is(t, 200, `{"per_page":2,"from":3,"to":3,"total":3,"total_is_lower_bound":false,"current_page":2,"last_page":2,"data":[`+first+`]}`)
	for query, field := range map[string]string{
		"page=0": "page", "page=1001": "page", "perPage=0": "perPage", "perPage=101": "perPage", "uid=0": "uid", "uid=nobody": "uid", "pid=x": "pid",
		"name=" + strings.Repeat("x", 65): "name", "name=%0a%00": "name",
	} {
		admin.Get(t, "/api/admin/players?"+query).IsError(t, 422, 4, field)
	}
}
