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

	const audit = "/api/admin/audit"
	said.hear(t, normal.get(t, audit), admin.get(t, audit), admin.get(t, audit+"?perPage=101"))
}
