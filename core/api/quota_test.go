package api_test

import (
	"testing"
)

// totals returns the numbers of players, textures, closet items, likes and files, and the sum of
// all scores.
func (s *testSite) totals(t *testing.T) [6]int {
	t.Helper()
	files := 0
	for _, err := range s.files.List(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		files++
	}
	return [6]int{
		s.count(t, "SELECT count(*) FROM players"), s.count(t, "SELECT count(*) FROM textures"), s.count(t, "SELECT count(*) FROM closet_items"),
		s.count(t, "SELECT coalesce(sum(likes), 0) FROM textures"), s.count(t, "SELECT sum(score) FROM users"), files,
	}
}

// isRefusedUnchanged sends a request that must get 403, and checks that the totals stay the same.
func (s *testSite) isRefusedUnchanged(t *testing.T, code int, do func() response) {
	t.Helper()
	before := s.totals(t)
	do().isError(t, 403, code)
	if after := s.totals(t); after != before {
		t.Errorf("players, textures, items, likes, score and files were %v, and are %v after a refusal", before, after)
	}
}

func TestClosetItemQuota(t *testing.T) {
	t.Parallel()

	c := start(t, "QUOTA_CLOSET_ITEMS=2").signUp(t)
	uploader := c.signUp(t)
	first := uploader.texture(t, "name=N&type=steve", skinFile(t, 1))
	second := uploader.texture(t, "name=N&type=steve", skinFile(t, 2))
	uploader.delete(t, "/api/closet/"+first)
	third := uploader.texture(t, "name=N&type=cape", capeFile(t))
	add := func(tid string) response { return c.post(t, "/api/closet", `{"tid":`+tid+`,"name":"N"}`) }

	add(first)
	add(second)
	c.site.isRefusedUnchanged(t, 1, func() response { return add(third) })
	add(second).isError(t, 409, 2, "tid")
	c.site.isRefusedUnchanged(t, 1, func() response { return c.upload(t, "name=N&type=steve", skinFile(t, 3)) }) // an upload adds an item, too
	c.delete(t, "/api/closet/"+first)
	add(third).is(t, 200, `{"code":0,"message":"<text>"}`)
}

func TestTextureQuota(t *testing.T) {
	t.Parallel()

	c := start(t, "QUOTA_TEXTURES=2").signUp(t)
	c.texture(t, "name=N&type=steve", skinFile(t, 1))
	c.delete(t, "/api/closet/"+c.texture(t, "name=N&type=steve&public=false", skinFile(t, 2)))
	c.site.isRefusedUnchanged(t, 1, func() response { return c.upload(t, "name=N&type=steve", skinFile(t, 3)) })
	c.signUp(t).texture(t, "name=N&type=steve", skinFile(t, 3))
}

func TestTextureBytesQuota(t *testing.T) {
	t.Parallel()

	s := newSite(t)
	c := s.serve(t).signUp(t)
	c.texture(t, "name=N&type=steve", skinFile(t, 1))
	c.signUp(t).texture(t, "name=N&type=steve&public=false", skinFile(t, 2))
	// The quota fits the first file, and the second but for one byte.
	s.setup.Quotas.TextureBytes = int64(s.count(t, "SELECT sum(bytes) - 1 FROM textures"))
	c = s.serve(t).as(c.token)
	s.isRefusedUnchanged(t, 1, func() response { return c.upload(t, "name=N&type=steve&public=false", skinFile(t, 2)) })
	s.setup.Quotas.TextureBytes++
	s.serve(t).as(c.token).texture(t, "name=N&type=steve&public=false", skinFile(t, 2))
}

func TestRegistrationRewards(t *testing.T) {
	t.Parallel()

	c := start(t, "SCORE_REGISTRATION=7")
	a := c.post(t, "/api/auth/register", `{"email":"a@example.com","password":"correct horse","nickname":"A"}`)
	if got := a.field(t, "data", "user", "score"); got != "7" {
		t.Errorf("a new user's score is %s; want 7", got)
	}
}

// A request that costs more than the user's score gets 403 and changes nothing; one that fails for
// another reason costs nothing.
func TestScores(t *testing.T) {
	t.Parallel()

	s := newSite(t, "SCORE_PLAYER=5", "SCORE_CLOSET_ITEM=3", "SCORE_TEXTURE_KIB=2")
	c := s.serve(t).signUp(t)
	uploader := c.signUp(t)
	s.exec(t, "UPDATE users SET score = 1000 WHERE uid = $1", uploader.uid)
	tid := uploader.texture(t, "name=N&type=steve", skinFile(t, 1))
	size := s.count(t, "SELECT (bytes + 1023) / 1024 FROM textures")
	if got := uploader.score(t); got != 1000-2*size {
		t.Errorf("after an upload of %d KiB the score is %d; want %d", size, got, 1000-2*size)
	}

	player := func() response { return c.post(t, "/api/players", `{"name":"Steve"}`) }
	item := func() response { return c.post(t, "/api/closet", `{"tid":`+tid+`,"name":"N"}`) }
	upload := func() response { return c.upload(t, "name=N&type=steve", skinFile(t, 2)) }
	f := func(cost int, do func() response) {
		t.Helper()
		s.exec(t, "UPDATE users SET score = $2 WHERE uid = $1", c.uid, cost-1)
		s.isRefusedUnchanged(t, 7, do)
		s.exec(t, "UPDATE users SET score = $2 WHERE uid = $1", c.uid, cost)
		if a := do(); a.status != 200 {
			t.Errorf("a request that costs the whole score is answered with %d %s", a.status, a.body)
		}
		if got := c.score(t); got != 0 {
			t.Errorf("after paying all, the score is %d", got)
		}
		s.exec(t, "UPDATE users SET score = $2 WHERE uid = $1", c.uid, 10*cost)
		if a := do(); a.status != 409 {
			t.Errorf("a duplicate is answered with %d %s", a.status, a.body)
		}
		if got := c.score(t); got != 10*cost {
			t.Errorf("a refusal costs: the score was %d, and is %d", 10*cost, got)
		}
	}
	f(5, player)
	f(3, item)
	f(2*size, upload)
}

// score returns the score of the client's user.
func (c client) score(t *testing.T) int {
	t.Helper()
	return c.site.count(t, "SELECT score FROM users WHERE uid = $1", c.uid)
}
