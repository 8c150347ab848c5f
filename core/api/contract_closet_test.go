package api_test

import (
	"testing"

	"github.com/veneer-skins/veneer/core"
)

// recordAdminClosets records the responses to administrators' changes of closets.
func recordAdminClosets(t *testing.T, s testSite, seen seenResponses) {
	t.Helper()
	configured := s.Setup
	c := s.serve(t)
	normal, admin, user := c.signUp(t), c.signUpAs(t, core.Administrator), c.signUp(t)
	public := user.texture(t, "name=A&type=skin", skinFile(t, 31))
	private := user.texture(t, "name=A&type=skin&public=false", skinFile(t, 32))
	other := user.texture(t, "name=A&type=skin", skinFile(t, 33))
	const missing = "999999"

	closet := normal.user() + "/closet"
	addItem := func(by client, closet, tid string) response { return by.Post(t, closet, `{"tid":`+tid+`,"name":"D"}`) }
	missingCloset := "/api/admin/users/" + missing + "/closet"
	seen.record(t,
		addItem(admin, closet, public), addItem(admin, closet, public), addItem(admin, closet, private), addItem(admin, closet, missing),
		addItem(admin, missingCloset, public), addItem(admin, admin.user()+"/closet", public), addItem(normal, closet, public),
		admin.Post(t, closet, `{"tid":1}`),
		admin.Get(t, closet+"?category=cape"), normal.Get(t, closet), admin.Get(t, missingCloset), admin.Get(t, closet+"?perPage=101"),
		normal.Delete(t, closet+"/"+public), admin.Delete(t, missingCloset+"/"+public),
	)
	normal.permit(t, core.Administrator)
	seen.record(t, addItem(admin, closet, private), admin.Delete(t, closet+"/"+public))
	normal.permit(t, core.Normal)
	s.Setup.Quotas.ClosetItems = 1
	seen.record(t, addItem(s.serve(t).as(admin.Token), closet, other))
	s.Setup = configured
	s.Setup.Scores.ClosetItem = 5
	seen.record(t, addItem(s.serve(t).as(admin.Token), closet, other))
	s.Setup = configured
	seen.record(t, admin.Delete(t, closet+"/"+public), admin.Delete(t, closet+"/"+public))
}
