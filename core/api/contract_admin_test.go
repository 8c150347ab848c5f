package api_test

import (
	"fmt"
	"testing"

	"github.com/veneer-skins/veneer/core"
)

// recordAdminUsers records the responses to administrators' changes of users.
func recordAdminUsers(t *testing.T, s testSite, seen seenResponses) {
	t.Helper()
	c := s.serve(t)
	normal, admin, root := c.signUp(t), c.signUpAs(t, core.Administrator), c.signUpAs(t, core.SuperAdministrator)
	user := c.signUp(t)

	permit := func(by client, of, object string) response { return by.Put(t, of+"/permission", object) }
	seen.record(t,
		permit(normal, user.user(), `{"permission":-1}`), permit(admin, root.user(), `{"permission":-1}`),
		permit(admin, user.user(), `{"permission":1}`), permit(admin, "/api/admin/users/999999", `{"permission":-1}`),
		permit(admin, user.user(), `{"permission":2}`), permit(admin, user.user(), `{"permission":0}`),
	)

	for _, act := range []struct{ name, right, wrong string }{
		{"nickname", `{"nickname":"Zoë"}`, `{}`},
		{"email", `{"email":"zoe9@example.com"}`, `{"email":"nobody"}`},
		{"password", `{"password":"correct horse"}`, `{"password":"1234567"}`},
		{"verified", `{"verified":true}`, `{}`},
		{"score", `{"score":100}`, `{"score":-1}`},
	} {
		seen.record(t,
			normal.Put(t, user.user()+"/"+act.name, act.right),
			admin.Put(t, root.user()+"/"+act.name, act.right),
			admin.Put(t, "/api/admin/users/999999/"+act.name, act.right),
			admin.Put(t, user.user()+"/"+act.name, act.wrong),
			admin.Put(t, user.user()+"/"+act.name, act.right),
		)
	}
	other := c.signUp(t)
	const users = "/api/admin/users"
	seen.record(t,
		admin.Put(t, other.user()+"/email", `{"email":"zoe9@example.com"}`),
		normal.Delete(t, user.user()), admin.Delete(t, root.user()), admin.Delete(t, users+"/999999"), admin.Delete(t, user.user()),
		normal.Get(t, users), admin.Get(t, users), admin.Get(t, users+"?perPage=101"),
	)

	recordAdminPlayers(t, s, seen)

	const audit = "/api/admin/audit"
	const counts = "/api/admin/counts"
	seen.record(t, normal.Get(t, counts), admin.Get(t, counts), normal.Get(t, audit), admin.Get(t, audit), admin.Get(t, audit+"?perPage=101"))
}

// recordAdminPlayers records the responses to administrators' changes of players.
func recordAdminPlayers(t *testing.T, s testSite, seen seenResponses) {
	t.Helper()
	configured := s.Setup
	c := s.serve(t)
	normal, admin, root, user := c.signUp(t), c.signUpAs(t, core.Administrator), c.signUpAs(t, core.SuperAdministrator), c.signUp(t)
	const players, missing = "/api/admin/players", "/api/admin/players/999999"
	own, roots := adminPath(user.player(t, "Own")), adminPath(root.player(t, "Roots"))
	tid := user.texture(t, "name=G&type=skin", skinFile(t, 7))
	private := root.texture(t, "name=H&type=skin&public=false", skinFile(t, 8))
	owner := func(c client) string { return fmt.Sprintf(`{"uid":%d}`, c.UID) }

	for by, player := range map[*client]string{&normal: own, &root: missing, &admin: roots, &user: own} {
		seen.record(t,
			by.Put(t, player+"/name", `{"name":"Hacker"}`),
			by.Put(t, player+"/owner", owner(user)),
			by.Put(t, player+"/textures", `{"skin":`+tid+`}`),
			by.Delete(t, player+"/textures?skin"),
			by.Delete(t, player),
		)
	}
	seen.record(t,
		admin.Put(t, own+"/name", `{"name":"Named"}`), admin.Put(t, own+"/name", `{"name":"Roots"}`), admin.Put(t, own+"/name", `{}`),
		admin.Put(t, own+"/textures", `{"skin":`+tid+`}`), admin.Put(t, own+"/textures", `{"skin":`+private+`}`),
		admin.Put(t, own+"/textures", `{"skin":999999}`), admin.Put(t, own+"/textures", `{"cape":`+tid+`}`),
		admin.Delete(t, own+"/textures?skin"), admin.Delete(t, own+"/textures"),
		admin.Put(t, own+"/owner", owner(normal)), admin.Put(t, own+"/owner", `{"uid":999999}`), admin.Put(t, own+"/owner", `{}`),
		normal.Get(t, players), admin.Get(t, players), admin.Get(t, players+"?perPage=101"),
	)
	s.Setup.Quotas.Players = 1
	full := s.serve(t).as(admin.Token)
	user.player(t, "Another")
	seen.record(t, full.Put(t, own+"/owner", owner(user)))
	s.Setup = configured
	seen.record(t, admin.Delete(t, own))
}
