package api_test

import (
	"testing"

	"github.com/veneer-skins/veneer/core"
)

// recordReports records the responses to reports and to their settlement.
func recordReports(t *testing.T, s testSite, seen seenResponses) {
	t.Helper()
	configured := s.Setup
	c := s.serve(t)
	normal, admin, user := c.signUp(t), c.signUpAs(t, core.Administrator), c.signUp(t)
	public := user.texture(t, "name=A&type=skin", skinFile(t, 21))
	private := user.texture(t, "name=A&type=skin&public=false", skinFile(t, 22))
	const missing = "999999"

	seen.record(t,
		normal.report(t, public), normal.report(t, public), normal.report(t, private), normal.report(t, missing),
		normal.Post(t, "/api/reports", `{"tid":1}`), normal.Get(t, "/api/reports"), normal.Get(t, "/api/reports?state=x"),
		normal.Get(t, "/api/admin/reports"), admin.Get(t, "/api/admin/reports"), admin.Get(t, "/api/admin/reports?state=x"),
	)
	rid := c.latestReport(t)
	user.permit(t, core.SuperAdministrator)
	seen.record(t, admin.settleReport(t, rid, "ban"))
	user.permit(t, core.Normal)
	seen.record(t,
		normal.settleReport(t, rid, "reject"), admin.settleReport(t, rid, "x"), admin.settleReport(t, missing, "reject"),
		admin.settleReport(t, rid, "reject"), admin.settleReport(t, rid, "reject"),
	)
	normal.report(t, public)
	s.Exec(t, "UPDATE reports SET uploader = NULL")
	seen.record(t, admin.settleReport(t, c.latestReport(t), "ban"))
	s.Setup.API.Limits.Reports = 1
	limited := s.serve(t).as(normal.Token)
	seen.record(t, limited.report(t, public), limited.report(t, public))
	s.Setup = configured
}
