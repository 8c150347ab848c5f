package api_test

import (
	"fmt"
	"image"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/shared/httpserver"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// Without other settings the site is that of the document's example, except for launchers, an address
// of pictures, a score, a description, a contact and a logo.
func TestSite(t *testing.T) {
	t.Parallel()
	c := start(t)
	const site = `{"name":"Veneer","description":"","accent":"#1f6b3a","contact":"","logo":"","pages":[],"announcement":"","terms_version":"","registration":%q,"mail":%t,"player_name":%s,
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

// GET /api/site has the operator's name, contact and colour as they are set; the logo has an entity tag.
func TestSiteBranding(t *testing.T) {
	t.Parallel()
	s := newSite(t, "SITE_NAME=Skins & Capes", "SITE_DESCRIPTION=<b>", "SITE_CONTACT=https://example.org/help", "SITE_ACCENT=#0B57D0")
	logo := encodePNG(t, image.NewNRGBA(image.Rect(0, 0, 64, 64)))
	d := s.NewDomain(t)
	d.Site.Logo = logo
	c := s.clientOf(t, d).from(t, "0.0.0.0")
	a := c.Get(t, "/api/site")
	for field, want := range map[string]string{
		"name": "Skins & Capes", "description": "<b>", "contact": "https://example.org/help", "accent": "#0B57D0", "logo": "/site/logo.png",
	} {
		a.HasField(t, want, field)
	}
	got := c.raw(t, "GET", "/site/logo.png", "Accept-Encoding", "gzip, br")
	got.HasStatus(t, 200)
	testenv.Check(t, string(got.Body) == string(logo) && got.Header.Get("Content-Type") == "image/png" && got.Header.Get("Content-Encoding") == "",
		"the logo is %d bytes, %v", len(got.Body), got.Header)
	c.raw(t, "GET", "/site/logo.png", "If-None-Match", got.Header.Get("ETag")).HasStatus(t, 304)
	s.serve(t).raw(t, "GET", "/site/logo.png").HasStatus(t, 404)
}

// writePages writes the operator's pages, by their files' names, into a directory.
func writePages(t *testing.T, dir string, pages map[string]string) {
	t.Helper()
	for name, text := range pages {
		testenv.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
}

// Pages are served in the request's language, and GET /api/site lists them; a registration accepts the terms.
func TestSitePages(t *testing.T) {
	t.Parallel()
	s, dir := newSite(t, "SITE_CONTACT=help@example.org", "SITE_ACCENT=#0B57D0"), t.TempDir()
	writePages(t, dir, map[string]string{
		"rules.md": "Be <script>alert(1)</script> *kind*.", "terms.md": "# Terms & more\nObey.", "terms.zh.md": "遵守。", "announcement.md": "**Sunday**",
	})
	s.Pages = testenv.Must(core.NewSitePages(dir, s.Log))(t)
	c := s.serve(t)
	site := c.Get(t, "/api/site")
	site.HasField(t, "[map[name:rules title:Rules] map[name:terms title:Terms & more]]", "pages")
	site.HasField(t, "<p><strong>Sunday</strong></p>\n", "announcement")
	c.Get(t, "/api/site?lang=zh").HasField(t, "[map[name:rules title:Rules] map[name:terms title:条款]]", "pages")

	f := func(path, language string, want ...string) {
		t.Helper()
		a := c.raw(t, "GET", path, "Accept-Language", language)
		a.HasStatus(t, 200)
		policy := a.Header.Get("Content-Security-Policy")
		style := regexp.MustCompile(`(?s)<style>(.*)</style>`).FindStringSubmatch(string(a.Body))
		testenv.Check(t, strings.HasPrefix(policy, "default-src 'none'; style-src "+httpserver.SourceHash(style[1])), "%s: the policy is %s", path, policy)
		for _, part := range append(want, `<a href="mailto:help@example.org">help@example.org</a>`, "--link:#0b57d0") {
			testenv.Contains(t, string(a.Body), part, "%s", path)
		}
	}
	f("/site/rules", "zh", `<html lang="en">`, "<p>Be alert(1) <em>kind</em>.</p>", `<a href="/site/terms?lang=en" lang="en">Terms &amp; more</a>`)
	f("/site/terms", "zh-CN, en;q=0.5", `<html lang="zh">`, "<h1>条款</h1>", "<p>遵守。</p>", `<title>条款 · Veneer</title>`)
	f("/site/terms?lang=en", "zh", `<html lang="en">`, "<h1>Terms &amp; more</h1>\n<p>Obey.</p>")
	for _, path := range []string{"/site/privacy", "/site/announcement", "/site/", "/site/terms.md", "/site/..%2fterms"} {
		c.raw(t, "GET", path).HasStatus(t, 404)
	}

	var version struct {
		TermsVersion string `json:"terms_version"`
	}
	site.Decode(t, &version)
	register := func(version string) response {
		return c.Post(t, "/api/auth/register", `{"email":"ann@example.com","password":"correct horse","nickname":"Ann"`+version+`}`)
	}
	register("").IsError(t, 422, 4, "terms_version")
	register(`,"terms_version":"0123456789abcdef"`).IsError(t, 422, 4, "terms_version")
	register(`,"terms_version":"`+version.TermsVersion+`"`).HasStatus(t, 200)
	testenv.Equal(t, s.Text(t, "SELECT terms_version FROM users"), version.TermsVersion, "the stored version")

	writePages(t, dir, map[string]string{"terms.zh.md": "", "announcement.md": ""})
	testenv.Do(t, s.Pages.Refresh(t.Context()))
	changed := c.Get(t, "/api/site?lang=zh")
	changed.HasField(t, "", "announcement")
	testenv.Check(t, !strings.Contains(string(changed.Body), version.TermsVersion), "with other terms the version is the same")
	f("/site/terms?lang=zh", "zh", `<html lang="en">`, "<p>Obey.</p>")
}

// A registration that is confirmed by e-mail takes the terms with the password: another person may have sent the address.
func TestTermsOfConfirmedRegistration(t *testing.T) {
	t.Parallel()
	s, server := newMailSite(t, "REGISTRATION=confirm")
	dir := t.TempDir()
	writePages(t, dir, map[string]string{"terms.md": "Obey."})
	s.Pages = testenv.Must(core.NewSitePages(dir, s.Log))(t)
	c := s.serve(t)
	c.Post(t, "/api/auth/register", `{"email":"ann@example.com","password":"correct horse","nickname":"Ann"}`).HasStatus(t, 202)
	token := tokenIn(t, server.Await(t, 1)[0], "ann@example.com", "verify")
	confirm := func(version string) response {
		return c.Post(t, "/api/auth/verify", `{"token":"`+token+`","password":"correct horse","terms_version":"`+version+`"}`)
	}
	confirm("").IsError(t, 422, 4, "terms_version")
	confirm(s.Pages.Texts().TermsVersion()).HasStatus(t, 200)
	testenv.Equal(t, s.Text(t, "SELECT terms_version FROM users"), s.Pages.Texts().TermsVersion(), "the stored version")
}
