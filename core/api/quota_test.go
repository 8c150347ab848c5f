package api_test

import (
	"testing"

	"github.com/veneer-skins/veneer/shared/testenv"
)

// totals returns the numbers of players, textures, closet items, likes and files, and the sum of
// all scores.
func (s testSite) totals(t *testing.T) [6]int {
	t.Helper()
	files := 0
	for _, err := range s.Files.List(t.Context()) {
		testenv.Do(t, err)
		files++
	}
	return [6]int{
		s.Count(t, "SELECT count(*) FROM players"), s.Count(t, "SELECT count(*) FROM textures"), s.Count(t, "SELECT count(*) FROM closet_items"),
		s.Count(t, "SELECT coalesce(sum(likes), 0) FROM textures"), s.Count(t, "SELECT sum(score) FROM users"), files,
	}
}

// isRefusedUnchanged sends a request that must get 403, and checks that the totals stay the same.
func (s testSite) isRefusedUnchanged(t *testing.T, code int, do func() response) {
	t.Helper()
	before := s.totals(t)
	do().IsError(t, 403, code)
	testenv.Equal(t, s.totals(t), before, "players, textures, items, likes, score and files after a refusal")
}

func TestClosetItemQuota(t *testing.T) {
	t.Parallel()
	c := start(t, "QUOTA_CLOSET_ITEMS=2").signUp(t)
	uploader := c.signUp(t)
	first := uploader.texture(t, "name=N&type=steve", skinFile(t, 1))
	second := uploader.texture(t, "name=N&type=steve", skinFile(t, 2))
	uploader.Delete(t, "/api/closet/"+first)
	third := uploader.texture(t, "name=N&type=cape", capeFile(t))
	add := func(tid string) response { return c.Post(t, "/api/closet", `{"tid":`+tid+`,"name":"N"}`) }

	add(first)
	add(second)
	c.site.isRefusedUnchanged(t, 1, func() response { return add(third) })
	add(second).IsError(t, 409, 2, "tid")
	c.site.isRefusedUnchanged(t, 1, func() response { return c.upload(t, "name=N&type=steve", skinFile(t, 3)) }) // an upload adds an item, too
	c.Delete(t, "/api/closet/"+first)
	add(third).Is(t, 200, `{"code":0,"message":"<text>"}`)
}

func TestTextureQuota(t *testing.T) {
	t.Parallel()
	c := start(t, "QUOTA_TEXTURES=2").signUp(t)
	c.texture(t, "name=N&type=steve", skinFile(t, 1))
	c.Delete(t, "/api/closet/"+c.texture(t, "name=N&type=steve&public=false", skinFile(t, 2)))
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
	s.Setup.Quotas.TextureBytes = int64(s.Count(t, "SELECT sum(bytes) - 1 FROM textures"))
	c = s.serve(t).as(c.Token)
	s.isRefusedUnchanged(t, 1, func() response { return c.upload(t, "name=N&type=steve&public=false", skinFile(t, 2)) })
	s.Setup.Quotas.TextureBytes++
	s.serve(t).as(c.Token).texture(t, "name=N&type=steve&public=false", skinFile(t, 2))
}

// A request that costs more than the user's score gets 403 and changes nothing; one that fails for
// another reason costs nothing.
func TestScores(t *testing.T) {
	t.Parallel()
	s := newSite(t, "SCORE_PLAYER=5", "SCORE_CLOSET_ITEM=3", "SCORE_TEXTURE_KIB=2")
	c := s.serve(t).signUp(t)
	uploader := c.signUp(t)
	s.Exec(t, "UPDATE users SET score = 1000 WHERE uid = $1", uploader.UID)
	tid := uploader.texture(t, "name=N&type=steve", skinFile(t, 1))
	size := s.Count(t, "SELECT (bytes + 1023) / 1024 FROM textures")
	testenv.Equal(t, uploader.score(t), 1000-2*size, "after an upload of %d KiB the score", size)

	player := func() response { return c.Post(t, "/api/players", `{"name":"Steve"}`) }
	item := func() response { return c.Post(t, "/api/closet", `{"tid":`+tid+`,"name":"N"}`) }
	upload := func() response { return c.upload(t, "name=N&type=steve", skinFile(t, 2)) }
	f := func(cost int, do func() response) {
		t.Helper()
		s.Exec(t, "UPDATE users SET score = $2 WHERE uid = $1", c.UID, cost-1)
		s.isRefusedUnchanged(t, 7, do)
		s.Exec(t, "UPDATE users SET score = $2 WHERE uid = $1", c.UID, cost)
		do().HasStatus(t, 200)
		testenv.Equal(t, c.score(t), 0, "after paying all, the score")
		s.Exec(t, "UPDATE users SET score = $2 WHERE uid = $1", c.UID, 10*cost)
		do().HasStatus(t, 409)
		testenv.Equal(t, c.score(t), 10*cost, "the score after a refusal")
	}
	f(5, player)
	f(3, item)
	f(2*size, upload)
}

// score returns the score of the client's user.
func (c client) score(t *testing.T) int {
	t.Helper()
	return c.site.Count(t, "SELECT score FROM users WHERE uid = $1", c.UID)
}
