package api_test

import (
	"fmt"
	"testing"

	"github.com/veneer-skins/veneer/core"
)

// An administrator sees the same closet as its user, and the rules of the user hold for changes.
func TestAdminChangesCloset(t *testing.T) {
	t.Parallel()
	c := start(t, "QUOTA_CLOSET_ITEMS=2")
	admin, user, uploader := c.signUpAs(t, core.Administrator), c.signUp(t), c.signUp(t)
	public := uploader.texture(t, "name=Public&type=steve", skinFile(t, 1))
	private := uploader.texture(t, "name=Private&type=steve&public=false", skinFile(t, 2))
	cape := user.texture(t, "name=Dawn&type=cape&public=false", capeFile(t))
	closet := user.user() + "/closet"
	add := func(tid, name string) response { return admin.Post(t, closet, `{"tid":`+tid+`,"name":"`+name+`"}`) }

	add(public, " Gift ").Is(t, 200, `{"code":0,"message":"<text>"}`)
	for _, query := range []string{"", "?category=cape", "?q=gift", "?q=x", "?page=2", "?perPage=1"} {
		want := user.Get(t, "/api/closet"+query)
		admin.Get(t, closet+query).Is(t, want.Status, string(want.Body))
	}
	add(public, "N").IsError(t, 409, 2, "tid")
	other := admin.texture(t, "name=Other&type=steve", skinFile(t, 3))
	add(other, "N").IsError(t, 403, 1) // the closet is full
	admin.Delete(t, closet+"/"+cape).Is(t, 200, `{"code":0,"message":"<text>"}`)
	admin.Delete(t, closet+"/"+cape).IsError(t, 404, 3)
	add(private, "N").IsError(t, 403, 6)
	add(cape, "N").Is(t, 200, `{"code":0,"message":"<text>"}`) // the texture is the user's own
	add("999999", "N").IsError(t, 404, 3)
	admin.Post(t, closet, `{}`).IsError(t, 422, 4, "name", "tid")
	admin.Post(t, closet, `{"tid":0,"name":" "}`).IsError(t, 422, 4, "name", "tid")
	admin.Get(t, closet+"?category=hat").IsError(t, 422, 4, "category")
	admin.Get(t, closet+"?page=0").IsError(t, 422, 4, "page")
	for _, uid := range []string{"999999", "0", "-1", "x", "01"} {
		path := "/api/admin/users/" + uid + "/closet"
		admin.Get(t, path).IsError(t, 404, 3)
		admin.Post(t, path, `{"tid":`+public+`,"name":"N"}`).IsError(t, 404, 3)
		admin.Delete(t, path+"/"+public).IsError(t, 404, 3)
	}
	for _, tid := range []string{"999999", "0", "x"} {
		admin.Delete(t, closet+"/"+tid).IsError(t, 404, 3)
	}
	user.permit(t, core.Administrator)
	add(private, "N").IsError(t, 403, 6)
	admin.Delete(t, closet+"/"+public).IsError(t, 403, 6)
	user.Get(t, "/api/closet").HasField(t, "1", "total")
	admin.logs(t, 0,
		fmt.Sprintf(`closet.add user:%d {"tid": %s, "name": "N", "email": "user2@example.com"}`, user.UID, cape),
		fmt.Sprintf(`closet.remove user:%d {"tid": %s, "email": "user2@example.com"}`, user.UID, cape),
		fmt.Sprintf(`closet.add user:%d {"tid": %s, "name": "Gift", "email": "user2@example.com"}`, user.UID, public),
	)
	c.site.checkLikes(t)
}

// An item that an administrator adds costs no score and earns none.
func TestAdminClosetItemsAreFree(t *testing.T) {
	t.Parallel()
	c := start(t, "SCORE_CLOSET_ITEM=5", "SCORE_LIKE_REWARD=3")
	admin, user := c.signUpAs(t, core.Administrator), c.signUp(t)
	public := admin.texture(t, "name=Public&type=steve", skinFile(t, 1))
	admin.Post(t, user.user()+"/closet", `{"tid":`+public+`,"name":"N"}`).Is(t, 200, `{"code":0,"message":"<text>"}`)
	for _, of := range []client{admin, user} {
		of.Get(t, "/api/user").HasField(t, "0", "score")
	}
}
