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
	add := func(tid, name string) response {
		t.Helper()
		return admin.post(t, closet, `{"tid":`+tid+`,"name":"`+name+`"}`)
	}

	add(public, " Gift ").is(t, 200, `{"code":0,"message":"<text>"}`)
	for _, query := range []string{"", "?category=cape", "?q=gift", "?q=x", "?page=2", "?perPage=1"} {
		want := user.get(t, "/api/closet"+query)
		admin.get(t, closet+query).is(t, want.status, string(want.body))
	}
	add(public, "N").isError(t, 409, 2, "tid")
	other := admin.texture(t, "name=Other&type=steve", skinFile(t, 3))
	add(other, "N").isError(t, 403, 1) // the closet is full
	admin.delete(t, closet+"/"+cape).is(t, 200, `{"code":0,"message":"<text>"}`)
	admin.delete(t, closet+"/"+cape).isError(t, 404, 3)
	add(private, "N").isError(t, 403, 6)
	add(cape, "N").is(t, 200, `{"code":0,"message":"<text>"}`) // the texture is the user's own
	add("999999", "N").isError(t, 404, 3)
	admin.post(t, closet, `{}`).isError(t, 422, 4, "name", "tid")
	admin.post(t, closet, `{"tid":0,"name":" "}`).isError(t, 422, 4, "name", "tid")
	admin.get(t, closet+"?category=hat").isError(t, 422, 4, "category")
	admin.get(t, closet+"?page=0").isError(t, 422, 4, "page")
	for _, uid := range []string{"999999", "0", "-1", "x", "01"} {
		path := "/api/admin/users/" + uid + "/closet"
		admin.get(t, path).isError(t, 404, 3)
		admin.post(t, path, `{"tid":`+public+`,"name":"N"}`).isError(t, 404, 3)
		admin.delete(t, path+"/"+public).isError(t, 404, 3)
	}
	for _, tid := range []string{"999999", "0", "x"} {
		admin.delete(t, closet+"/"+tid).isError(t, 404, 3)
	}
	user.permit(t, core.Administrator)
	add(private, "N").isError(t, 403, 6)
	admin.delete(t, closet+"/"+public).isError(t, 403, 6)
	if got := user.get(t, "/api/closet").field(t, "total"); got != "1" {
		t.Errorf("the closet holds %s skins; want the one that was given", got)
	}
	admin.logs(t, 0,
		fmt.Sprintf(`closet.add user:%d {"tid": %s, "name": "N", "email": "user2@example.com"}`, user.uid, cape),
		fmt.Sprintf(`closet.remove user:%d {"tid": %s, "email": "user2@example.com"}`, user.uid, cape),
		fmt.Sprintf(`closet.add user:%d {"tid": %s, "name": "Gift", "email": "user2@example.com"}`, user.uid, public),
	)
	c.site.checkLikes(t)
}

// An item that an administrator adds costs no score and earns none.
func TestAdminClosetItemsAreFree(t *testing.T) {
	t.Parallel()

	c := start(t, "SCORE_CLOSET_ITEM=5", "SCORE_LIKE_REWARD=3")
	admin, user := c.signUpAs(t, core.Administrator), c.signUp(t)
	public := admin.texture(t, "name=Public&type=steve", skinFile(t, 1))
	admin.post(t, user.user()+"/closet", `{"tid":`+public+`,"name":"N"}`).is(t, 200, `{"code":0,"message":"<text>"}`)
	for _, of := range []client{admin, user} {
		if got := of.get(t, "/api/user").field(t, "score"); got != "0" {
			t.Errorf("the score is %s; want 0", got)
		}
	}
}
