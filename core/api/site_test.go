package api_test

import (
	"fmt"
	"image"
	"strings"
	"testing"

	"github.com/veneer-skins/veneer/shared/testenv"
)

// Without other settings the site is that of the document's example, except for launchers, an address
// of pictures, a score, a description, a contact and a logo.
func TestSite(t *testing.T) {
	t.Parallel()
	c := start(t)
	const site = `{"name":"Veneer","description":"","accent":"#1f6b3a","contact":"","logo":"","registration":%q,"mail":%t,"player_name":%s,
		"nickname":{"min":1,"max":64},"texture_name":{"min":1,"max":64},"password":{"min":8,"max":128},"report_reason":{"min":1,"max":1000},
		"upload":{"max_bytes":%d,"max_scale":%d,"sizes":[{"type":"steve","width":64,"height":64},{"type":"steve","width":64,"height":32},
			{"type":"alex","width":64,"height":64},{"type":"cape","width":64,"height":32},{"type":"cape","width":22,"height":17},{"type":"cape","width":46,"height":22}]},
		"costs":{"player":%d,"closet_item":%d,"texture_kib":%d,"private_texture_kib":%d},"rewards":{"registration":%d,"upload":%d,"like":%d,"sign_in":%d},
		"quotas":{"players":%d,"closet_items":%d,"textures":%d,"texture_bytes":%d}}`
	c.Get(t, "/api/site").Is(t, 200, fmt.Sprintf(site, "open", true,
		`{"min":3,"max":16,"pattern":"[A-Za-z0-9_]+","rule":"A player name has 3 to 16 characters: letters A to Z, digits and underscores."}`,
		1<<20, 8, 0, 0, 0, 0, 0, 0, 0, 0, 100, 5000, 1000, 64<<20))

	s := newSite(t, "REGISTRATION=closed", "PLAYER_NAME_PATTERN=<[\\p{Han}&]+>", "PLAYER_NAME_ALLOWED=Chinese", "PLAYER_NAME_MIN=2", "PLAYER_NAME_MAX=2",
		"UPLOAD_MAX_BYTES=0", "UPLOAD_MAX_SCALE=0", "QUOTA_PLAYERS=0", "QUOTA_CLOSET_ITEMS=2", "QUOTA_TEXTURES=3", "QUOTA_TEXTURE_BYTES=4",
		"SCORE_PLAYER=11", "SCORE_CLOSET_ITEM=12", "SCORE_TEXTURE_KIB=13", "SCORE_PRIVATE_TEXTURE_KIB=14",
		"SCORE_REGISTRATION=15", "SCORE_UPLOAD_REWARD=16", "SCORE_LIKE_REWARD=17", "SCORE_SIGN_REWARD=18")
	s.Setup.SMTP.Host = ""
	s.serve(t).Get(t, "/api/site").Is(t, 200, fmt.Sprintf(site, "closed", false,
		`{"min":2,"max":2,"pattern":"<[\\p{Han}&]+>","rule":"A player name has exactly 2 characters: Chinese."}`,
		0, 16, 11, 12, 13, 14, 15, 16, 17, 18, 0, 2, 3, 4))
}

// A client that has the response gets it only once it has changed.
func TestSiteUnchanged(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	first := s.serve(t).Get(t, "/api/site")
	ask := func() response {
		return s.serve(t).Send(t, "GET", "/api/site", body{}, "If-None-Match", first.Header.Get("ETag"))
	}
	ask().HasStatus(t, 304)
	s.Setup.Quotas.Players++
	a := ask()
	a.HasStatus(t, 200)
	testenv.Check(t, a.Header.Get("ETag") != first.Header.Get("ETag"), "after a change the tag is the same")
}

// The bounds of texts are those of the document.
func TestSiteBoundsAreDocumented(t *testing.T) {
	t.Parallel()
	a := start(t).Get(t, "/api/site")
	schemas := mustLoadContract(t).Components.Schemas
	for field, name := range map[string]string{
		"player_name": "PlayerName", "nickname": "Nickname", "texture_name": "TextureName", "password": "Password", "report_reason": "Reason",
	} {
		schema := schemas[name].Value
		for bound, want := range map[string]uint64{"min": schema.MinLength, "max": *schema.MaxLength} {
			a.HasField(t, fmt.Sprint(want), field, bound)
		}
	}
}

// The sizes, and their multiples, are those that uploads may have.
func TestSiteSizesAreAccepted(t *testing.T) {
	t.Parallel()
	c := start(t, "UPLOAD_MAX_SCALE=3", "LIMIT_UPLOADS=0", "LIMIT_PRICES=0").signUp(t)
	var site struct {
		Upload struct {
			MaxScale int `json:"max_scale"`
			Sizes    []struct {
				Type          string
				Width, Height int
			}
		}
	}
	c.Get(t, "/api/site").Decode(t, &site)
	if site.Upload.MaxScale != 3 || len(site.Upload.Sizes) == 0 {
		t.Fatalf("the upload is %+v", site.Upload)
	}
	for _, size := range site.Upload.Sizes {
		for k := 1; k <= site.Upload.MaxScale+1; k++ {
			file := encodePNG(t, image.NewNRGBA(image.Rect(0, 0, k*size.Width, k*size.Height)))
			a := c.price(t, "name=N&type="+size.Type, file)
			if (a.Status == 200) != (k <= site.Upload.MaxScale) || a.Status != 200 && !strings.Contains(string(a.Body), `"file"`) {
				t.Errorf("a %s of %d × %d is answered with %d %s", size.Type, k*size.Width, k*size.Height, a.Status, a.Body)
			}
		}
	}
}

// The operator's name, contact and colour are told as they are set; the logo is served to whoever does not have it.
func TestSiteBranding(t *testing.T) {
	t.Parallel()
	s := newSite(t, "SITE_NAME=Skins & Capes", "SITE_DESCRIPTION=<b>", "SITE_CONTACT=https://example.org/help", "SITE_ACCENT=#0B57D0")
	logo := encodePNG(t, image.NewNRGBA(image.Rect(0, 0, 64, 64)))
	d := s.NewDomain(t)
	d.Services.Site.Logo = logo
	c := s.clientOf(t, d)
	a := c.Get(t, "/api/site")
	for field, want := range map[string]string{
		"name": `"Skins & Capes"`, "description": `"<b>"`, "contact": `"https://example.org/help"`, "accent": `"#0B57D0"`, "logo": `"/site/logo.png"`,
	} {
		a.HasField(t, want, field)
	}
	got := c.Send(t, "GET", "/site/logo.png", body{}, "Accept-Encoding", "gzip, br")
	got.HasStatus(t, 200)
	testenv.Check(t, string(got.Body) == string(logo) && got.Header.Get("Content-Type") == "image/png" && got.Header.Get("Content-Encoding") == "",
		"the logo is %d bytes, %v", len(got.Body), got.Header)
	c.Send(t, "GET", "/site/logo.png", body{}, "If-None-Match", got.Header.Get("ETag")).HasStatus(t, 304)
	s.serve(t).Get(t, "/site/logo.png").HasStatus(t, 404)
}
