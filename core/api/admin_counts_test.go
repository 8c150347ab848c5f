package api_test

import (
	"testing"
	"time"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// Administrators see what the site has; of larger tables a sample is counted.
func TestCounts(t *testing.T) {
	t.Parallel()
	c := start(t)
	admin, user := c.signUpAs(t, core.Administrator), c.signUp(t)
	user.Get(t, "/api/admin/counts").IsError(t, 403, 6)
	user.player(t, "Steve")
	tid := user.texture(t, "name=A&type=steve", skinFile(t, 1))
	user.texture(t, "name=Old&type=steve&public=false", skinFile(t, 2))
	admin.Post(t, "/api/reports", `{"tid":`+tid+`,"reason":"Rude."}`).HasStatus(t, 200)
	c.site.Exec(t, "UPDATE textures SET upload_at = now() - interval '40 days' WHERE name = 'Old'")

	var counts struct {
		Users, Players, Textures int
		TextureBytes             int `json:"texture_bytes"`
		Approximate              bool
		OpenReports              int `json:"open_reports"`
		Uploads                  []struct {
			Day     string
			Uploads int
		}
		Versions struct {
			Core, Database string
			Schema         int
		}
	}
	admin.Get(t, "/api/admin/counts").Decode(t, &counts)
	testenv.Check(t, counts.Users == 2 && counts.Players == 1 && counts.Textures == 2 && counts.OpenReports == 1 && !counts.Approximate, "the counts are %+v", counts)
	testenv.Check(t, counts.TextureBytes > 0 && counts.Versions.Core != "" && counts.Versions.Database != "" && counts.Versions.Schema > 0, "the counts are %+v", counts)
	testenv.Equal(t, len(counts.Uploads), 30, "the days")
	sum := 0
	for _, day := range counts.Uploads {
		testenv.Must(time.Parse(time.DateOnly, day.Day))(t)
		sum += day.Uploads
	}
	testenv.Equal(t, sum, 1, "the uploads of 30 days")

	c.site.Exec(t, `
		INSERT INTO textures (name, type, hash, pixels, bytes, public, uploader)
		SELECT 'x', 'steve', sha256(n::text::bytea), sha256(n::text::bytea), 1000, true, NULL FROM generate_series(1, 120000) n`)
	c.site.Exec(t, "ANALYZE textures")
	admin.Get(t, "/api/admin/counts").Decode(t, &counts)
	testenv.Check(t, counts.Approximate && counts.Textures > 110_000 && counts.Textures < 130_000, "the counts of many textures are %+v", counts)
	testenv.Check(t, counts.TextureBytes > 110_000_000 && counts.TextureBytes < 130_000_000, "the bytes of many textures are %d", counts.TextureBytes)
}
