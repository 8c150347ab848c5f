package api_test

import (
	"testing"

	"github.com/veneer-skins/veneer/core"
)

// forClosets tries what becomes of closets that administrators change.
func forClosets(t *testing.T, s *site, said hearing) {
	t.Helper()
	configured := s.setup
	c := s.serve(t)
	normal, admin, user := c.signUp(t), c.signUpAs(t, core.Administrator), c.signUp(t)
	public := user.texture(t, "name=A&type=skin", skinFile(t, 31))
	private := user.texture(t, "name=A&type=skin&public=false", skinFile(t, 32))
	other := user.texture(t, "name=A&type=skin", skinFile(t, 33))
	const missing = "999999"

	closet := normal.user() + "/closet"
	keep := func(by client, closet, tid string) answer {
		t.Helper()
		return by.post(t, closet, `{"tid":`+tid+`,"name":"D"}`)
	}
	nobodys := "/api/admin/users/" + missing + "/closet"
	said.hear(t,
		keep(admin, closet, public), keep(admin, closet, public), keep(admin, closet, private), keep(admin, closet, missing),
		keep(admin, nobodys, public), keep(admin, admin.user()+"/closet", public), keep(normal, closet, public),
		admin.post(t, closet, `{"tid":1}`),
		admin.get(t, closet+"?category=cape"), normal.get(t, closet), admin.get(t, nobodys), admin.get(t, closet+"?perPage=101"),
		normal.delete(t, closet+"/"+public), admin.delete(t, nobodys+"/"+public),
	)
	normal.permit(t, core.Administrator)
	said.hear(t, keep(admin, closet, private), admin.delete(t, closet+"/"+public))
	normal.permit(t, core.Normal)
	s.setup.Quotas.ClosetItems = 1
	said.hear(t, keep(s.serve(t).as(admin.token), closet, other))
	s.setup = configured
	s.setup.Scores.ClosetItem = 5
	said.hear(t, keep(s.serve(t).as(admin.token), closet, other))
	s.setup = configured
	said.hear(t, admin.delete(t, closet+"/"+public), admin.delete(t, closet+"/"+public))
}
