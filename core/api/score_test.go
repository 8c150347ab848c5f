package api_test

import (
	"fmt"
	"testing"
	"time"
)

// sign sends the daily sign-in of the client's user.
func (c client) sign(t *testing.T) response {
	t.Helper()
	return c.send(t, "POST", "/api/user/sign", body{})
}

// A sign-in is rewarded once per calendar day in UTC; log-ins do not count.
func TestSign(t *testing.T) {
	t.Parallel()

	c := start(t, "SCORE_SIGN_REWARD=10").signUp(t) // at 2031-02-03 04:05:06
	other := c.site.serve(t)
	other.uid = c.uid
	f := func(c client, gained, score int, next string) {
		t.Helper()
		c = c.signIn(t) // the token may have expired
		c.sign(t).is(t, 200, done(fmt.Sprintf(`{"gained":%d,"score":%d,"next_sign_at":%q}`, gained, score, next)))
		if got := c.get(t, "/api/user").field(t, "score"); got != fmt.Sprint(score) {
			t.Errorf("the score is %s; want %d", got, score)
		}
	}
	early := func(c client, next string) {
		t.Helper()
		c.signIn(t).sign(t).is(t, 403, fmt.Sprintf(`{"code":1,"message":"<text>","data":{"next_sign_at":%q}}`, next))
	}

	f(c, 10, 10, "2031-02-04 00:00:00")
	early(c, "2031-02-04 00:00:00")
	c.site.advance(19*time.Hour + 54*time.Minute + 53*time.Second)
	early(other, "2031-02-04 00:00:00")
	c.site.advance(time.Second)
	f(other, 10, 20, "2031-02-05 00:00:00")
	// A core with a slow clock rewards no day twice, and returns the right time of the next
	// sign-in.
	c.site.advance(-time.Second)
	early(c, "2031-02-05 00:00:00")

	c.site.advance(49 * time.Hour)
	f(c, 10, 30, "2031-02-07 00:00:00")
	if n := c.site.count(t, "SELECT count(*) FROM score_changes WHERE reason = 'sign' AND subject = ''"); n != 3 {
		t.Errorf("%d sign-ins are recorded; want 3", n)
	}
}

// A sign-in without a reward changes only last_sign_at.
func TestSignWithoutReward(t *testing.T) {
	t.Parallel()

	c := start(t).signUp(t)
	if a := c.get(t, "/api/user"); a.field(t, "next_sign_at") != a.field(t, "register_at") {
		t.Errorf("next_sign_at of a new user is not register_at: %s", a.body)
	}
	c.site.advance(time.Hour)
	c.sign(t).is(t, 200, done(`{"gained":0,"score":0,"next_sign_at":"2031-02-04 00:00:00"}`))
	c.sign(t).is(t, 403, `{"code":1,"message":"<text>","data":{"next_sign_at":"2031-02-04 00:00:00"}}`)
	if got := c.get(t, "/api/user").field(t, "last_sign_at"); got != "2031-02-03 05:05:06" {
		t.Errorf("last_sign_at is %s; want the time of the sign-in", got)
	}
	if got := c.get(t, "/api/user").field(t, "next_sign_at"); got != "2031-02-04 00:00:00" {
		t.Errorf("next_sign_at is %s; want the beginning of the next day", got)
	}
	if n := c.site.count(t, "SELECT count(*) FROM score_changes"); n != 0 {
		t.Errorf("%d changes of scores are recorded; want none", n)
	}
}

// Users see the changes of their own score only.
func TestScoreChanges(t *testing.T) {
	t.Parallel()

	c := start(t, "SCORE_REGISTRATION=100", "SCORE_PLAYER=7", "SCORE_REFUND_PLAYER=true", "SCORE_LIKE_REWARD=3", "SCORE_CLOSET_ITEM=2")
	registered := func(email string) client {
		t.Helper()
		a := c.post(t, "/api/auth/register", fmt.Sprintf(`{"email":%q,"password":"correct horse","nickname":"A","player_name":%q}`, email, email[:3]+"Free"))
		return c.as(a.field(t, "data", "token"))
	}
	ann, bob := registered("ann@example.com"), registered("bob@example.com")
	tid := ann.texture(t, "name=N&type=steve", skinFile(t, 1))
	player := ann.player(t, "Steve")
	ann.delete(t, player)
	bob.post(t, "/api/closet", `{"tid":`+tid+`,"name":"N"}`)

	change := func(amount, balance int, reason, subject string) string {
		return fmt.Sprintf(`{"time":"<time>","amount":%d,"balance":%d,"reason":%q,"subject":%q}`, amount, balance, reason, subject)
	}
	page := func(perPage, from, to, total, current, last int, data string) string {
		return fmt.Sprintf(`{"per_page":%d,"from":%d,"to":%d,"total":%d,"current_page":%d,"last_page":%d,"data":[%s]}`, perPage, from, to, total, current, last, data)
	}
	subject := "player:" + player[len("/api/players/"):]
	first, second := change(100, 100, "registration", ""), change(-7, 93, "player", subject)
	third, fourth := change(7, 100, "player_refund", subject), change(3, 103, "like", "texture:"+tid)
	ann.get(t, "/api/user/score").is(t, 200, page(20, 1, 4, 4, 1, 1, fourth+","+third+","+second+","+first))
	ann.get(t, "/api/user/score?perPage=3&page=2").is(t, 200, page(3, 4, 4, 4, 2, 2, first))
	ann.get(t, "/api/user/score?perPage=3&page=3").is(t, 200, page(3, 0, 0, 4, 3, 2, ""))
	bob.get(t, "/api/user/score").is(t, 200, page(20, 1, 2, 2, 1, 1, change(-2, 98, "closet_item", "texture:"+tid)+","+first))
	for _, wrong := range []string{"page=0", "page=-1", "page=x", "page=2147483649"} {
		ann.get(t, "/api/user/score?"+wrong).isError(t, 422, 4, "page")
	}
	ann.get(t, "/api/user/score?perPage=0&page=0").isError(t, 422, 4, "page", "perPage")
}

// A private texture has its own price.
func TestUploadCostsByVisibility(t *testing.T) {
	t.Parallel()

	c := start(t, "SCORE_TEXTURE_KIB=2", "SCORE_PRIVATE_TEXTURE_KIB=5", "SCORE_UPLOAD_REWARD=1").signUp(t)
	c.site.exec(t, "UPDATE users SET score = 1000")
	f := func(form string, variant byte, rate int) {
		t.Helper()
		before := c.score(t)
		tid := c.texture(t, form, skinFile(t, variant))
		want := rate*c.site.count(t, "SELECT (bytes + 1023) / 1024 FROM textures WHERE tid = $1", tid) - 1
		if got := before - c.score(t); got != want {
			t.Errorf("an upload of %s has cost %d; want %d, the reward taken off", form, got, want)
		}
	}
	f("name=N&type=steve", 1, 2)
	f("name=N&type=steve&public=false", 2, 5)
}
