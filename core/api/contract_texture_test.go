package api_test

import (
	"testing"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/shared/skin/artwork"
)

// recordAdminTextures records the responses to administrators' changes of textures.
func recordAdminTextures(t *testing.T, s testSite, seen seenResponses) {
	t.Helper()
	c := s.serve(t)
	normal, admin, user := c.signUp(t), c.signUpAs(t, core.Administrator), c.signUp(t)
	skin := user.texture(t, "name=A&type=skin", skinFile(t, 41))
	cape := user.texture(t, "name=A&type=cape", fileOf(t, artwork.Sunrise(), 41))
	flat := user.texture(t, "name=A&type=steve", fileOf(t, artwork.Sunrise(), 42))
	user.texture(t, "name=A&type=alex", skinFile(t, 41))
	const textures, missing = "/api/admin/textures", "999999"
	change := func(by client, tid, object string) response { return by.Put(t, textures+"/"+tid, object) }

	user.permit(t, core.Administrator)
	seen.record(t, change(admin, skin, `{"name":"B"}`), admin.Delete(t, textures+"/"+skin))
	user.permit(t, core.Normal)
	seen.record(t,
		normal.Get(t, textures), admin.Get(t, textures), admin.Get(t, textures+"?q=ab"),
		change(normal, skin, `{"name":"B"}`), change(admin, skin, `{"name":"B"}`), change(admin, missing, `{"name":"B"}`),
		change(admin, skin, `{}`), change(admin, flat, `{"type":"alex"}`), change(admin, cape, `{"type":"steve"}`), change(admin, skin, `{"type":"alex"}`),
		normal.Delete(t, textures+"/"+skin), admin.Delete(t, textures+"/"+skin+"?refuse=x"),
		admin.Delete(t, textures+"/"+skin+"?refuse=true"), admin.Delete(t, textures+"/"+skin),
	)
	const refusals = "/api/admin/refusals"
	seen.record(t,
		normal.Get(t, refusals), admin.Get(t, refusals), admin.Get(t, refusals+"?perPage=101"),
		normal.Delete(t, refusals+"/"+skin), admin.Delete(t, refusals+"/"+skin), admin.Delete(t, refusals+"/"+skin),
	)
}
