package api

import (
	"bytes"
	"context"
	"fmt"
	"html/template"
	"sync"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/shared/httpserver"
)

// assetCache has responses that are made of the operator's texts, by key, until these change.
type assetCache struct {
	mu    sync.Mutex
	texts *core.SiteTexts
	byKey map[string]*httpserver.Asset
}

// get returns the response of a key, which it makes unless it was made of the same texts.
func (c *assetCache) get(texts *core.SiteTexts, key string, build func() *httpserver.Asset) *httpserver.Asset {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.texts != texts || c.byKey == nil {
		c.texts, c.byKey = texts, map[string]*httpserver.Asset{}
	}
	asset, ok := c.byKey[key]
	if !ok {
		asset = build()
		c.byKey[key] = asset
	}
	return asset
}

// sitePagePath is the path of the operator's pages, with a slash at the end.
const sitePagePath = "/site/"

const sitePageStyle = httpserver.PageColours +
	`body{margin:0;background:var(--back);color:var(--text);font:1rem/1.6 system-ui,sans-serif;overflow-wrap:anywhere}` +
	`main,header,footer{max-width:44rem;margin:0 auto;padding:1rem 1.5rem}footer{display:flex;flex-wrap:wrap;gap:0 1.5rem}` +
	`h1{font-size:1.75rem;line-height:1.2}a{color:var(--link)}header a,footer a{display:inline-block;padding:.5rem 0}pre{white-space:pre-wrap}`

// sitePageTemplate has an empty icon, so that browsers do not request /favicon.ico.
var sitePageTemplate = template.Must(template.New("page").Parse(`<!doctype html>
<html lang="{{.Page.Language}}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{.Page.Title}} · {{.Site.Name}}</title>
<link rel="icon" href="data:,">
<style>{{.Style}}</style>
</head>
<body>
<header><a href="/">{{.Site.Name}}</a></header>
<main dir="auto">
<h1>{{.Page.Title}}</h1>
{{.Content}}</main>
<footer>{{range .Pages}}<a href="/site/{{.Name}}?lang={{$.Page.Language}}" lang="{{.Language}}">{{.Title}}</a>
{{end}}{{with .Site.ContactURL}}<a href="{{.}}">{{$.Site.Contact}}</a>{{end}}{{if gt (len .Languages) 1}}{{range .Languages}}<a href="?lang={{.}}" lang="{{.}}" hreflang="{{.}}">{{.}}</a>
{{end}}{{end}}</footer>
</body>
</html>
`))

// handleSitePage handles GET /site/{page}.
func (s *Server) handleSitePage(_ context.Context, rc *fasthttp.RequestCtx) error {
	texts := s.Pages.Texts()
	name, _ := rc.UserValue("page").(string)
	languages := texts.Languages(name)
	if len(languages) == 0 || name == core.Announcement {
		return notFoundPage.WriteNotFound(rc)
	}
	language := httpserver.Language(rc, languages...)
	if s.Site.IsHidden {
		rc.Response.Header.Set("X-Robots-Tag", "noindex")
	}
	style := s.sitePageCSS()
	rc.Response.Header.Set(fasthttp.HeaderContentSecurityPolicy, "default-src 'none'; style-src "+httpserver.SourceHash(style)+
		"; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	s.pageAssets.get(texts, name+"."+language, func() *httpserver.Asset {
		page, _ := texts.Page(name, language)
		var body bytes.Buffer
		err := sitePageTemplate.Execute(&body, map[string]any{
			"Page": page, "Content": template.HTML(page.HTML), "Pages": texts.Pages(language), "Languages": languages, "Site": s.Site.Branding, "Style": template.CSS(style), //nolint:gosec // sanitized
		})
		if err != nil {
			panic(fmt.Sprintf("BUG: %v", err))
		}
		return httpserver.NewAsset(body.Bytes(), typeHTML, "no-cache")
	}).Serve(rc)
	return nil
}

// sitePageCSS returns the style of the pages, with the site's accent colour.
func (s *Server) sitePageCSS() string {
	light, dark := s.Site.Branding.Accents()
	return sitePageStyle + ":root{--link:" + light + "}@media (prefers-color-scheme:dark){:root{--link:" + dark + "}}"
}
