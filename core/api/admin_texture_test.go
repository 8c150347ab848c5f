package api_test

import (
	"fmt"
	"testing"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/shared/testenv"
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

	finds(t, admin.Get(t, "/api/admin/textures"), 4, "Roots", "Own", "Public", "Private")
	finds(t, admin.Get(t, fmt.Sprintf("/api/admin/textures?q=priv&uploader=%d&type=skin&sort=likes", ann.UID)), 1, "Private")
	finds(t, admin.Get(t, "/api/admin/textures?uploader=user3%40example.com"), 2, "Public", "Private")
	admin.Get(t, "/api/admin/textures?q=x").IsError(t, 422, 4, "q")
	admin.Get(t, "/api/admin/textures?uploader=nobody").IsError(t, 422, 4, "uploader")
	admin.Get(t, "/api/admin/textures?uploader=-1").IsError(t, 422, 4, "uploader")

	for _, path := range []string{"/api/admin/textures/", "/api/textures/"} {
		before := len(c.site.acts(t))
		a := admin.Put(t, path+private, `{"name":" N ","type":"alex"}`)
		a.Has(t, "data.name", "N", "data.type", "alex", "data.public", "false")
		admin.logs(t, before, fmt.Sprintf(`texture.change texture:%s {"to": {"name": "N", "type": "alex", "public": false}, `+
			`"from": {"name": "Private", "type": "steve", "public": false}, "name": "Private", "uploader": %d}`, private, ann.UID))
		ann.Put(t, "/api/textures/"+private, `{"name":"Private","type":"steve"}`)

		// A super administrator's texture is out of reach.
		admin.Put(t, path+roots, `{"name":"N"}`).IsError(t, 403, 6)
		admin.Delete(t, path+roots).IsError(t, 403, 6)
		admin.Put(t, path+private, `{}`).IsError(t, 422, 4, "name")
		admin.Put(t, path+private, `{"type":"cape"}`).IsError(t, 422, 4, "type")
		for _, tid := range []string{"999999", "0", "-1", "x"} {
			admin.Put(t, path+tid, `{"name":"N"}`).IsError(t, 404, 3)
			admin.Delete(t, path+tid).IsError(t, 404, 3)
		}
	}

	// A change of one's own texture is logged by the administrators' route only.
	before := len(c.site.acts(t))
	admin.Put(t, "/api/textures/"+own, `{"name":"Mine"}`)
	admin.logs(t, before)
	admin.Put(t, "/api/admin/textures/"+own, `{"name":"Own"}`)
	admin.logs(t, before, fmt.Sprintf(`texture.change texture:%s {"to": {"name": "Own", "type": "steve", "public": true}, `+
		`"from": {"name": "Mine", "type": "steve", "public": true}, "name": "Mine", "uploader": %d}`, own, admin.UID))

	// A deletion settles the reports of the texture.
	before = len(c.site.acts(t))
	for _, tid := range []string{private, public} {
		admin.report(t, tid)
	}
	first := c.site.Count(t, "SELECT min(rid) FROM reports")
	admin.Delete(t, "/api/admin/textures/"+private).Is(t, 200, yes)
	admin.Delete(t, "/api/textures/"+public).Is(t, 200, yes)
	admin.logs(t, before,
		fmt.Sprintf(`texture.delete texture:%s {"name": "Public", "reports": [%s], "uploader": %d}`, public, c.latestReport(t), ann.UID),
		fmt.Sprintf(`texture.delete texture:%s {"name": "Private", "reports": [%d], "uploader": %d}`, private, first, ann.UID),
	)
	admin.Get(t, "/api/admin/reports?state=deleted").HasField(t, "2", "total")
	testenv.Equal(t, len(admin.unread(t)), 2, "notifications of the reporter")
	ann.Delete(t, "/api/textures/"+public).IsError(t, 404, 3)
}

// The pixels of a removed texture are refused to all but administrators, by whatever way they come, until that is undone.
func TestRefusedPixels(t *testing.T) {
	t.Parallel()
	c := start(t)
	admin, ann, bob := c.signUpAs(t, core.Administrator), c.signUp(t), c.signUp(t)
	removed := ann.texture(t, "name=Rude&type=steve", skinFile(t, 1))
	kept := bob.texture(t, "name=Kept&type=alex&public=false", skinFile(t, 1))
	upload := func(of client, fields string) response { return of.upload(t, fields, skinFile(t, 1)) }
	refused := func(a response) { t.Helper(); a.IsError(t, 403, 1) }

	admin.Delete(t, "/api/admin/textures/"+removed+"?refuse=perhaps").IsError(t, 422, 4, "refuse")
	ann.Delete(t, "/api/admin/textures/"+removed+"?refuse=true").IsError(t, 403, 6)
	admin.Delete(t, "/api/admin/textures/"+removed+"?refuse=true").Is(t, 200, `{"code":0,"message":"<text>"}`)
	admin.logs(t, 0, fmt.Sprintf(`texture.delete texture:%s {"name": "Rude", "refused": true, "uploader": %d}`, removed, ann.UID))
	refused(upload(ann, "name=Again&type=steve"))
	refused(upload(ann, "name=Again&type=alex&public=false"))
	refused(bob.Put(t, "/api/textures/"+kept, `{"public":true}`))
	bob.Put(t, "/api/textures/"+kept, `{"name":"Mine"}`).HasStatus(t, 200)
	own := upload(admin, "name=Evidence&type=steve&public=false")
	own.HasStatus(t, 200)

	list := func(total int) response {
		t.Helper()
		a := admin.Get(t, "/api/admin/refusals")
		a.HasField(t, fmt.Sprint(total), "total")
		return a
	}
	list(1).Is(t, 200, fmt.Sprintf(`{"per_page":20,"from":1,"to":1,"total":1,"total_is_lower_bound":false,"current_page":1,"last_page":1,"data":[
		{"tid":%s,"name":"Rude","type":"steve","refused_at":"<time>","refused_by":%d,"refused_by_nickname":"Somebody"}]}`, removed, admin.UID))
	admin.Get(t, "/api/admin/refusals?perPage=0").IsError(t, 422, 4, "perPage")
	admin.Delete(t, "/api/admin/refusals/"+kept).IsError(t, 404, 3)
	admin.Delete(t, "/api/admin/refusals/"+removed).Is(t, 200, `{"code":0,"message":"<text>"}`)
	admin.logs(t, 1, fmt.Sprintf(`texture.allow texture:%s {"name": "Rude", "type": "steve"}`, removed))
	list(0)
	again := ann.texture(t, "name=Again&type=steve", skinFile(t, 1))

	// A report that is accepted refuses them, too.
	bob.Post(t, "/api/reports", `{"tid":`+again+`,"reason":"Rude."}`).HasStatus(t, 200)
	rid := fmt.Sprint(1)
	admin.Put(t, "/api/admin/reports/"+rid, `{"action":"delete","refuse":"perhaps"}`).IsError(t, 422, 4, "refuse")
	admin.Put(t, "/api/admin/reports/"+rid, `{"action":"reject","refuse":true}`).IsError(t, 422, 4, "refuse")
	admin.Put(t, "/api/admin/reports/"+rid, `{"action":"delete","reason":"Rude."}`).IsError(t, 422, 4, "action")
	admin.Put(t, "/api/admin/reports/"+rid, `{"action":"delete","refuse":true}`).HasStatus(t, 200)
	list(1)
	refused(upload(ann, "name=Again&type=steve"))

	// So does one about a texture that its uploader has deleted meanwhile.
	hidden := ann.texture(t, "name=Hidden&type=steve", skinFile(t, 2))
	bob.Post(t, "/api/reports", `{"tid":`+hidden+`,"reason":"Rude."}`).HasStatus(t, 200)
	ann.Delete(t, "/api/textures/"+hidden).HasStatus(t, 200)
	admin.Put(t, "/api/admin/reports/2", `{"action":"delete","refuse":true}`).HasStatus(t, 200)
	testenv.Contains(t, string(list(2).Body), `"name":"Hidden"`, "refusals")
	refused(ann.upload(t, "name=Again&type=steve", skinFile(t, 2)))
	gone := ann.texture(t, "name=Gone&type=steve", skinFile(t, 3))
	bob.Post(t, "/api/reports", `{"tid":`+gone+`,"reason":"Rude."}`).HasStatus(t, 200)
	ann.Delete(t, "/api/textures/"+gone).HasStatus(t, 200)
	c.site.Exec(t, "UPDATE reports SET pixels = NULL") // as of a core of the release before
	admin.Put(t, "/api/admin/reports/3", `{"action":"delete","refuse":true}`).IsError(t, 404, 3)
	admin.Put(t, "/api/admin/reports/3", `{"action":"delete"}`).HasStatus(t, 200)
}
