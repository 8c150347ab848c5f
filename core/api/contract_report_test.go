package api_test

import (
	"testing"

	"github.com/veneer-skins/veneer/core"
)

// forReports tries what becomes of reports.
func forReports(t *testing.T, s *site, said hearing) {
	t.Helper()
	configured := s.setup
	c := s.serve(t)
	normal, admin, user := c.signUp(t), c.signUpAs(t, core.Administrator), c.signUp(t)
	public := user.texture(t, "name=A&type=skin", skinFile(t, 21))
	private := user.texture(t, "name=A&type=skin&public=false", skinFile(t, 22))
	const missing = "999999"

	said.hear(t,
		normal.reports(t, public), normal.reports(t, public), normal.reports(t, private), normal.reports(t, missing),
		normal.post(t, "/api/reports", `{"tid":1}`),
		normal.get(t, "/api/admin/reports"), admin.get(t, "/api/admin/reports"), admin.get(t, "/api/admin/reports?state=x"),
	)
	rid := c.latest(t)
	user.permit(t, core.SuperAdministrator)
	said.hear(t, admin.settles(t, rid, "ban"))
	user.permit(t, core.Normal)
	said.hear(t,
		normal.settles(t, rid, "reject"), admin.settles(t, rid, "x"), admin.settles(t, missing, "reject"),
		admin.settles(t, rid, "reject"), admin.settles(t, rid, "reject"),
	)
	normal.reports(t, public)
	s.exec(t, "UPDATE reports SET uploader = NULL")
	said.hear(t, admin.settles(t, c.latest(t), "ban"))
	s.setup.API.Limits.Reports = 1
	eager := s.serve(t).as(normal.token)
	said.hear(t, eager.reports(t, public), eager.reports(t, public))
	s.setup = configured
}
