package api_test

import (
	"fmt"
	"testing"

	"github.com/veneer-skins/veneer/core"
)

// recordAdminUsers records the responses to administrators' changes of users.
func recordAdminUsers(t *testing.T, s *testSite, seen seenResponses) {
	t.Helper()
	c := s.serve(t)
	normal, admin, root := c.signUp(t), c.signUpAs(t, core.Administrator), c.signUpAs(t, core.SuperAdministrator)
	user := c.signUp(t)

	permission := func(by client, of, object string) {
		t.Helper()
		seen.record(t, by.put(t, of+"/permission", object))
	}
	permission(normal, user.user(), `{"permission":-1}`)
	permission(admin, root.user(), `{"permission":-1}`)
	permission(admin, user.user(), `{"permission":1}`)
	permission(admin, "/api/admin/users/999999", `{"permission":-1}`)
	permission(admin, user.user(), `{"permission":2}`)
	permission(admin, user.user(), `{"permission":0}`)

	for _, act := range []struct{ name, right, wrong string }{
		{"nickname", `{"nickname":"Zoë"}`, `{}`},
		{"email", `{"email":"zoe9@example.com"}`, `{"email":"nobody"}`},
		{"password", `{"password":"correct horse"}`, `{"password":"1234567"}`},
		{"verified", `{"verified":true}`, `{}`},
		{"score", `{"score":100}`, `{"score":-1}`},
	} {
		seen.record(t,
			normal.put(t, user.user()+"/"+act.name, act.right),
			admin.put(t, root.user()+"/"+act.name, act.right),
			admin.put(t, "/api/admin/users/999999/"+act.name, act.right),
			admin.put(t, user.user()+"/"+act.name, act.wrong),
			admin.put(t, user.user()+"/"+act.name, act.right),
		)
	}
	other := c.signUp(t)
	const users = "/api/admin/users"
	seen.record(t,
		admin.put(t, other.user()+"/email", `{"email":"zoe9@example.com"}`),
		normal.delete(t, user.user()), admin.delete(t, root.user()), admin.delete(t, users+"/999999"), admin.delete(t, user.user()),
		normal.get(t, users), admin.get(t, users), admin.get(t, users+"?perPage=101"),
	)

	recordAdminPlayers(t, s, seen)

	const audit = "/api/admin/audit"
	seen.record(t, normal.get(t, audit), admin.get(t, audit), admin.get(t, audit+"?perPage=101"))
}

// recordAdminPlayers records the responses to administrators' changes of players.
func recordAdminPlayers(t *testing.T, s *testSite, seen seenResponses) {
	t.Helper()
	configured := s.setup
	c := s.serve(t)
	normal, admin, root, user := c.signUp(t), c.signUpAs(t, core.Administrator), c.signUpAs(t, core.SuperAdministrator), c.signUp(t)
	const players, missing = "/api/admin/players", "/api/admin/players/999999"
	own, roots := adminPath(user.player(t, "Own")), adminPath(root.player(t, "Roots"))
	tid := user.texture(t, "name=G&type=skin", skinFile(t, 7))
	private := root.texture(t, "name=H&type=skin&public=false", skinFile(t, 8))
	owner := func(c client) string { return fmt.Sprintf(`{"uid":%d}`, c.uid) }

	for by, player := range map[*client]string{&normal: own, &root: missing, &admin: roots, &user: own} {
		seen.record(t,
			by.put(t, player+"/name", `{"name":"Hacker"}`),
			by.put(t, player+"/owner", owner(user)),
			by.put(t, player+"/textures", `{"skin":`+tid+`}`),
			by.delete(t, player+"/textures?skin"),
			by.delete(t, player),
		)
	}
	seen.record(t,
		admin.put(t, own+"/name", `{"name":"Named"}`), admin.put(t, own+"/name", `{"name":"Roots"}`), admin.put(t, own+"/name", `{}`),
		admin.put(t, own+"/textures", `{"skin":`+tid+`}`), admin.put(t, own+"/textures", `{"skin":`+private+`}`),
		admin.put(t, own+"/textures", `{"skin":999999}`), admin.put(t, own+"/textures", `{"cape":`+tid+`}`),
		admin.delete(t, own+"/textures?skin"), admin.delete(t, own+"/textures"),
		admin.put(t, own+"/owner", owner(normal)), admin.put(t, own+"/owner", `{"uid":999999}`), admin.put(t, own+"/owner", `{}`),
		normal.get(t, players), admin.get(t, players), admin.get(t, players+"?perPage=101"),
	)
	s.setup.Quotas.Players = 1
	full := s.serve(t).as(admin.token)
	user.player(t, "Another")
	seen.record(t, full.put(t, own+"/owner", owner(user)))
	s.setup = configured
	seen.record(t, admin.delete(t, own))
}
