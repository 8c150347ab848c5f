package api_test

import (
	"testing"

	"github.com/veneer-skins/veneer/core"
)

// forAdministrators tries what becomes of acts of administrators.
func forAdministrators(t *testing.T, s *site, said hearing) {
	t.Helper()
	c := s.serve(t)
	normal, admin, root := c.signUp(t), c.signUpAs(t, core.Administrator), c.signUpAs(t, core.SuperAdministrator)
	user := c.signUp(t)

	permission := func(by client, of, object string) {
		t.Helper()
		said.hear(t, by.put(t, of+"/permission", object))
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
		said.hear(t,
			normal.put(t, user.user()+"/"+act.name, act.right),
			admin.put(t, root.user()+"/"+act.name, act.right),
			admin.put(t, "/api/admin/users/999999/"+act.name, act.right),
			admin.put(t, user.user()+"/"+act.name, act.wrong),
			admin.put(t, user.user()+"/"+act.name, act.right),
		)
	}
	other := c.signUp(t)
	const users = "/api/admin/users"
	said.hear(t,
		admin.put(t, other.user()+"/email", `{"email":"zoe9@example.com"}`),
		normal.delete(t, user.user()), admin.delete(t, root.user()), admin.delete(t, users+"/999999"), admin.delete(t, user.user()),
		normal.get(t, users), admin.get(t, users), admin.get(t, users+"?perPage=101"),
	)

	const audit = "/api/admin/audit"
	said.hear(t, normal.get(t, audit), admin.get(t, audit), admin.get(t, audit+"?perPage=101"))
}
