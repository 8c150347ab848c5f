package api_test

import (
	"fmt"
	"testing"

	"github.com/veneer-skins/veneer/core"
)

// A change of another user's texture is one entry in the audit log by either route; a change of the
// administrator's own texture is none by /api/textures.
func TestAdminChangesTexture(t *testing.T) {
	t.Parallel()

	c := start(t)
	admin, root, ann := c.signUpAs(t, core.Administrator), c.signUpAs(t, core.SuperAdministrator), c.signUp(t)
	private := ann.texture(t, "name=Private&type=steve&public=false", skinFile(t, 1))
	public := ann.texture(t, "name=Public&type=steve", skinFile(t, 2))
	own := admin.texture(t, "name=Own&type=steve", skinFile(t, 3))
	roots := root.texture(t, "name=Roots&type=steve", skinFile(t, 4))
	const yes = `{"code":0,"message":"<text>"}`

	admin.get(t, "/api/admin/textures").finds(t, 4, "Roots", "Own", "Public", "Private")
	admin.get(t, fmt.Sprintf("/api/admin/textures?q=priv&uploader=%d&type=skin&sort=likes", ann.uid)).finds(t, 1, "Private")
	admin.get(t, "/api/admin/textures?q=x").isError(t, 422, 4, "q")

	for _, path := range []string{"/api/admin/textures/", "/api/textures/"} {
		before := len(c.site.acts(t))
		a := admin.put(t, path+private, `{"name":" N ","type":"alex"}`)
		if a.status != 200 || a.field(t, "data", "name") != "N" || a.field(t, "data", "type") != "alex" || a.field(t, "data", "public") != "false" {
			t.Errorf("%s: %d %s", a.request, a.status, a.body)
		}
		admin.logs(t, before, fmt.Sprintf(`texture.change texture:%s {"to": {"name": "N", "type": "alex", "public": false}, `+
			`"from": {"name": "Private", "type": "steve", "public": false}, "name": "Private", "uploader": %d}`, private, ann.uid))
		ann.put(t, "/api/textures/"+private, `{"name":"Private","type":"steve"}`)

		// A super administrator's texture is out of reach.
		admin.put(t, path+roots, `{"name":"N"}`).isError(t, 403, 6)
		admin.delete(t, path+roots).isError(t, 403, 6)
		admin.put(t, path+private, `{}`).isError(t, 422, 4, "name")
		admin.put(t, path+private, `{"type":"cape"}`).isError(t, 422, 4, "type")
		for _, tid := range []string{"999999", "0", "-1", "x"} {
			admin.put(t, path+tid, `{"name":"N"}`).isError(t, 404, 3)
			admin.delete(t, path+tid).isError(t, 404, 3)
		}
	}

	// A change of one's own texture is logged by the administrators' route only.
	before := len(c.site.acts(t))
	admin.put(t, "/api/textures/"+own, `{"name":"Mine"}`)
	admin.logs(t, before)
	admin.put(t, "/api/admin/textures/"+own, `{"name":"Own"}`)
	admin.logs(t, before, fmt.Sprintf(`texture.change texture:%s {"to": {"name": "Own", "type": "steve", "public": true}, `+
		`"from": {"name": "Mine", "type": "steve", "public": true}, "name": "Mine", "uploader": %d}`, own, admin.uid))

	// A deletion settles the reports of the texture.
	before = len(c.site.acts(t))
	for _, tid := range []string{private, public} {
		admin.report(t, tid)
	}
	first := c.site.count(t, "SELECT min(rid) FROM reports")
	admin.delete(t, "/api/admin/textures/"+private).is(t, 200, yes)
	admin.delete(t, "/api/textures/"+public).is(t, 200, yes)
	admin.logs(t, before,
		fmt.Sprintf(`texture.delete texture:%s {"name": "Public", "reports": [%s], "uploader": %d}`, public, c.latestReport(t), ann.uid),
		fmt.Sprintf(`texture.delete texture:%s {"name": "Private", "reports": [%d], "uploader": %d}`, private, first, ann.uid),
	)
	if got := admin.get(t, "/api/admin/reports?state=deleted").field(t, "total"); got != "2" {
		t.Errorf("%s reports are settled; want both", got)
	}
	if got := len(admin.unread(t)); got != 2 {
		t.Errorf("the reporter has %d notifications; want 2", got)
	}
	ann.delete(t, "/api/textures/"+public).isError(t, 404, 3)
}

// A report stays open when the uploader deletes the texture: the administrators may still ban the
// user.
func TestUploaderDeletionLeavesReportsOpen(t *testing.T) {
	t.Parallel()

	c := start(t)
	admin, ann := c.signUpAs(t, core.Administrator), c.signUp(t)
	tid := ann.texture(t, "name=Public&type=steve", skinFile(t, 1))
	admin.report(t, tid)
	ann.delete(t, "/api/textures/"+tid)
	if got := admin.get(t, "/api/admin/reports?state=open").field(t, "total"); got != "1" {
		t.Errorf("%s reports are open; want 1", got)
	}
	admin.settleReport(t, c.latestReport(t), "ban")
	ann.get(t, "/api/user").isError(t, 403, -1)
}
