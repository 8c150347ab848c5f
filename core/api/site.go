package api

import (
	"context"
	"encoding/json"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/shared/httpserver"
	"github.com/veneer-skins/veneer/shared/skin"
)

// siteJSON is what clients must know of a site before they send something.
type siteJSON struct {
	Name         string         `json:"name"`
	Description  string         `json:"description"`
	Accent       string         `json:"accent"`
	Contact      string         `json:"contact"`
	Logo         string         `json:"logo"` // path; empty for none
	Pages        []sitePageJSON `json:"pages"`
	Announcement string         `json:"announcement"`  // HTML; empty for none
	TermsVersion string         `json:"terms_version"` // empty without terms
	Registration string         `json:"registration"`
	Mail         bool           `json:"mail"`
	Launchers    string         `json:"launchers,omitempty"` // path of their API; empty for none
	TexturesURL  string         `json:"textures_url,omitempty"`
	PlayerName   playerNameJSON `json:"player_name"`
	Nickname     boundsJSON     `json:"nickname"`
	TextureName  boundsJSON     `json:"texture_name"`
	Password     boundsJSON     `json:"password"`
	ReportReason boundsJSON     `json:"report_reason"`
	Upload       uploadJSON     `json:"upload"`
	Costs        costsJSON      `json:"costs"`
	Rewards      rewardsJSON    `json:"rewards"`
	Quotas       quotasJSON     `json:"quotas"`
}

// sitePageJSON is a page of the operator, at /site/{name}.
type sitePageJSON struct {
	Name  string `json:"name"`
	Title string `json:"title"`
}

// boundsJSON are the least and the most characters of a text.
type boundsJSON struct {
	Min int `json:"min"`
	Max int `json:"max"`
}

type playerNameJSON struct {
	boundsJSON
	Pattern string `json:"pattern"`
	Rule    string `json:"rule"`
}

type uploadJSON struct {
	MaxBytes int        `json:"max_bytes"` // 0 for any number
	MaxScale int        `json:"max_scale"`
	Sizes    []sizeJSON `json:"sizes"`
}

type sizeJSON struct {
	Type   skin.Type `json:"type"`
	Width  int       `json:"width"`
	Height int       `json:"height"`
}

type costsJSON struct {
	Player            int64 `json:"player"`
	ClosetItem        int64 `json:"closet_item"`
	TextureKiB        int64 `json:"texture_kib"`
	PrivateTextureKiB int64 `json:"private_texture_kib"`
}

type rewardsJSON struct {
	Registration int64 `json:"registration"`
	Upload       int64 `json:"upload"`
	Like         int64 `json:"like"`
	SignIn       int64 `json:"sign_in"`
}

// quotasJSON are quotas of a user, 0 for any number.
type quotasJSON struct {
	Players      int   `json:"players"`
	ClosetItems  int   `json:"closet_items"`
	Textures     int   `json:"textures"`
	TextureBytes int64 `json:"texture_bytes"`
}

// site returns what the site says of itself.
func (s *Server) site(texts *core.SiteTexts, language string) siteJSON {
	site := s.Site
	name := boundsJSON{1, core.MaxName}
	body := siteJSON{
		Name: site.Branding.Name, Description: site.Branding.Description, Accent: site.Branding.Accent, Contact: site.Branding.Contact, Logo: s.LogoPath(),
		Pages: []sitePageJSON{}, TermsVersion: texts.TermsVersion(),
		Registration: s.config.Registration, Mail: s.Links != nil, TexturesURL: site.TexturesURL,
		PlayerName: playerNameJSON{boundsJSON{site.Players.NameMin, site.Players.NameMax}, site.Players.NamePattern, site.Players.Rule()},
		Nickname:   name, TextureName: name,
		Password:     boundsJSON{core.MinPassword, core.MaxPassword},
		ReportReason: boundsJSON{1, core.MaxReason},
		Upload:       uploadJSON{MaxBytes: s.fileBytes, MaxScale: site.Textures.LargestScale()},
		Costs:        costsJSON{site.Scores.Player, site.Scores.ClosetItem, site.Scores.TextureKiB, site.Scores.PrivateTextureKiB},
		Rewards:      rewardsJSON{site.Scores.Registration, site.Scores.UploadReward, site.Scores.LikeReward, site.Scores.SignReward},
		Quotas:       quotasJSON(site.Quotas),
	}
	for _, page := range texts.Pages(language) {
		body.Pages = append(body.Pages, sitePageJSON{page.Name, page.Title})
	}
	announcement, _ := texts.Page(core.Announcement, language)
	body.Announcement = announcement.HTML
	for _, size := range skin.UploadSizes() {
		body.Upload.Sizes = append(body.Upload.Sizes, sizeJSON(size))
	}
	if s.launchers != nil {
		body.Launchers = s.launchers.Root
	}
	return body
}

// logoPath is the path of the site's logo.
const logoPath = "/site/logo.png"

// LogoPath returns the path of the site's logo, empty without one.
func (s *Server) LogoPath() string {
	if s.Site.Logo == nil {
		return ""
	}
	return logoPath
}

// handleSite handles GET /api/site, which is the same until core starts again or a page of the site changes.
func (s *Server) handleSite(_ context.Context, rc *fasthttp.RequestCtx) error {
	texts := s.Pages.Texts()
	language := httpserver.Language(rc, texts.AllLanguages()...)
	s.siteAssets.get(texts, language, func() *httpserver.Asset {
		body, err := json.Marshal(s.site(texts, language))
		if err != nil {
			panic(err) // of strings and numbers it never fails
		}
		return httpserver.NewAsset(body, typeJSON, "")
	}).Serve(rc)
	return nil
}
