package api_test

import (
	"fmt"
	"testing"
	"time"
)

// sign sends the daily sign-in of the client's user.
func (c client) sign(t *testing.T) response {
	t.Helper()
	return c.Send(t, "POST", "/api/user/sign", body{})
}

// A sign-in is rewarded once per calendar day in UTC; log-ins do not count.
func TestSign(t *testing.T) {
	t.Parallel()
	c := start(t, "SCORE_SIGN_REWARD=10").signUp(t) // at 2031-02-03 04:05:06
	other := c.site.serve(t)
	other.UID = c.UID
	f := func(c client, gained, score int, next string) {
		t.Helper()
		c = c.signIn(t) // the token may have expired
		c.sign(t).Is(t, 200, done(fmt.Sprintf(`{"gained":%d,"score":%d,"next_sign_at":%q}`, gained, score, next)))
		c.Get(t, "/api/user").HasField(t, fmt.Sprint(score), "score")
	}
	early := func(c client, next string) {
		t.Helper()
		c.signIn(t).sign(t).Is(t, 403, fmt.Sprintf(`{"code":1,"message":"<text>","data":{"next_sign_at":%q}}`, next))
	}

	f(c, 10, 10, "2031-02-04 00:00:00")
	early(c, "2031-02-04 00:00:00")
	c.site.Advance(19*time.Hour + 54*time.Minute + 53*time.Second)
	early(other, "2031-02-04 00:00:00")
	c.site.Advance(time.Second)
	f(other, 10, 20, "2031-02-05 00:00:00")
	// A core with a slow clock rewards no day twice, and returns the right time of the next
	// sign-in.
	c.site.Advance(-time.Second)
	early(c, "2031-02-05 00:00:00")

	c.site.Advance(49 * time.Hour)
	f(c, 10, 30, "2031-02-07 00:00:00")
	c.site.HasCount(t, 3, "SELECT count(*) FROM score_changes WHERE reason = 'sign' AND subject = ''")
}

// A sign-in without a reward changes only last_sign_at.
func TestSignWithoutReward(t *testing.T) {
	t.Parallel()
	c := start(t).signUp(t)
	a := c.Get(t, "/api/user")
	a.HasField(t, a.Field(t, "register_at"), "next_sign_at")
	c.site.Advance(time.Hour)
	c.sign(t).Is(t, 200, done(`{"gained":0,"score":0,"next_sign_at":"2031-02-04 00:00:00"}`))
	c.sign(t).Is(t, 403, `{"code":1,"message":"<text>","data":{"next_sign_at":"2031-02-04 00:00:00"}}`)
	c.Get(t, "/api/user").HasField(t, "2031-02-03 05:05:06", "last_sign_at")
	c.Get(t, "/api/user").HasField(t, "2031-02-04 00:00:00", "next_sign_at")
	c.site.HasCount(t, 0, "SELECT count(*) FROM score_changes")
}

// Users see the changes of their own score only.
func TestScoreChanges(t *testing.T) {
	t.Parallel()
	c := start(t, "SCORE_REGISTRATION=100", "SCORE_PLAYER=7", "SCORE_REFUND_PLAYER=true", "SCORE_LIKE_REWARD=3", "SCORE_CLOSET_ITEM=2")
	registered := func(email string) client {
		t.Helper()
		a := c.Post(t, "/api/auth/register", fmt.Sprintf(`{"email":%q,"password":"correct horse","nickname":"A","player_name":%q}`, email, email[:3]+"Free"))
		a.HasField(t, "100", "data", "user", "score")
		return c.as(a.Field(t, "data", "token"))
	}
	ann, bob := registered("ann@example.com"), registered("bob@example.com")
	tid := ann.texture(t, "name=N&type=steve", skinFile(t, 1))
	player := ann.player(t, "Steve")
	ann.Delete(t, player)
	bob.Post(t, "/api/closet", `{"tid":`+tid+`,"name":"N"}`)

	change := func(amount, balance int, reason, subject string) string {
		return fmt.Sprintf(`{"time":"<time>","amount":%d,"balance":%d,"reason":%q,"subject":%q}`, amount, balance, reason, subject)
	}
	subject := "player:" + player[len("/api/players/"):]
	first, second := change(100, 100, "registration", ""), change(-7, 93, "player", subject)
	third, fourth := change(7, 100, "player_refund", subject), change(3, 103, "like", "texture:"+tid)
	ann.Get(t, "/api/user/score").Is(t, 200, pageOf(20, 1, 4, 4, 1, 1, fourth, third, second, first))
	ann.Get(t, "/api/user/score?perPage=3&page=2").Is(t, 200, pageOf(3, 4, 4, 4, 2, 2, first))
	ann.Get(t, "/api/user/score?perPage=3&page=3").Is(t, 200, pageOf(3, 0, 0, 4, 3, 2))
	bobs := change(-2, 98, "closet_item", "texture:"+tid)
	bob.Get(t, "/api/user/score").Is(t, 200, pageOf(20, 1, 2, 2, 1, 1, bobs, first))
	for _, wrong := range []string{"page=0", "page=-1", "page=x", "page=2147483649"} {
		ann.Get(t, "/api/user/score?"+wrong).IsError(t, 422, 4, "page")
	}
	ann.Get(t, "/api/user/score?perPage=0&page=0").IsError(t, 422, 4, "page", "perPage")
}
