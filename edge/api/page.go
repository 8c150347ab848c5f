package api

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"net/url"
	"slices"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/edge"
	"github.com/veneer-skins/veneer/edge/render"
	"github.com/veneer-skins/veneer/shared/httpserver"
)

//go:embed page
var pageFiles embed.FS

var startTemplate = template.Must(template.ParseFS(pageFiles, "page/index.html"))

// startPage is the page at /pictures: examples, and all addresses.
type startPage struct {
	asset  *httpserver.Asset
	policy string
}

// startPageText is what the template of the page shows.
type startPageText struct {
	Style    template.CSS
	Script   template.JS
	Links    []httpserver.Link
	Subject  string // of the examples, as in a path
	Examples []example

	Pictures, Files []viewText
	Parameters      []edge.Parameter
	Services        []service // empty if their addresses are not answered

	// Of responses about many subjects.
	HeadsPath, SpriteRoot                                        string
	Lists                                                        []listText
	MaxBatch, MaxSpriteSize, MaxSpriteColumns, DefaultSpriteSize int
}

// viewText is a view on the page.
type viewText struct {
	Title, Help string
	Groups      []viewGroup
}

// viewGroup is addresses that respond with the same.
type viewGroup struct {
	Help, Lifetime       string
	Patterns, Parameters []string
}

// listText is a parameter that lists subjects.
type listText struct {
	Name, Of    string
	OnlySprites bool
}

// newStartPage returns the page with links to other pages, and examples of a player, empty for the
// default skin.
func newStartPage(links []httpserver.Link, player string, hasCompatRoutes bool) startPage {
	read := func(name string) string {
		content, err := pageFiles.ReadFile("page/" + name)
		if err != nil {
			panic(fmt.Sprintf("BUG: %v", err))
		}
		return string(content)
	}
	style, script := httpserver.PageColours+"\n"+read("style.css"), read("script.js")
	subject := "user/0"
	if player != "" {
		subject = "player/" + url.PathEscape(player)
	}
	text := startPageText{
		Style: template.CSS(style), Script: template.JS(script), //nolint:gosec // both are embedded
		Links: links, Subject: subject, Examples: newExamples(subject),
		Parameters: edge.Parameters,
		HeadsPath:  headsPath, SpriteRoot: spriteRoot,
		MaxBatch: edge.MaxBatch, MaxSpriteSize: edge.MaxSpriteSize, MaxSpriteColumns: edge.MaxSpriteColumns, DefaultSpriteSize: defaultSpriteSize,
	}
	for _, view := range edge.Views {
		if view.Picture == nil || view.Picture.Mode.IsSheet() {
			text.Files = append(text.Files, newViewText(view))
		} else {
			text.Pictures = append(text.Pictures, newViewText(view))
		}
	}
	for _, list := range lists {
		text.Lists = append(text.Lists, listText{list.name, list.of, list.subject == edge.ByHash})
	}
	if hasCompatRoutes {
		text.Services = newServices()
	}
	var body bytes.Buffer
	if err := startTemplate.Execute(&body, text); err != nil {
		panic(fmt.Sprintf("BUG: %v", err))
	}
	return startPage{
		asset: httpserver.NewAsset(body.Bytes(), "text/html; charset=utf-8", "no-cache"),
		policy: "default-src 'none'; style-src " + httpserver.SourceHash(style) + "; script-src " + httpserver.SourceHash(script) + "; img-src 'self' data:; " +
			"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
	}
}

func newViewText(view *edge.View) viewText {
	plain := func(help string) string { return strings.ReplaceAll(help, "`", "") } // which is Markdown
	text := viewText{Title: view.Pattern(view.Routes[0]), Help: plain(view.Routes[0].Help)}
	for _, routes := range view.Groups() {
		group := viewGroup{Help: plain(routes[0].Help), Lifetime: routes[0].CacheClass.Lifetime(), Parameters: view.Parameters(routes[0].Subject)}
		for _, route := range routes {
			group.Patterns = append(group.Patterns, view.Pattern(route))
		}
		text.Groups = append(text.Groups, group)
	}
	return text
}

// example is a picture on the page.
type example struct {
	Caption, Path string
	Width, Height int // in pixels of CSS
}

// newExamples returns the examples of a subject.
func newExamples(subject string) (all []example) {
	square := func(caption, view, query string) {
		all = append(all, example{caption, "/" + view + "/" + subject + query, render.DefaultSize, render.DefaultSize})
	}
	figure := func(caption, view, query string) { // smaller than its pixels, which is sharp on dense screens
		const height = 160
		all = append(all, example{caption, "/" + view + "/" + subject + query, height / 2, height})
	}
	square("Face", "face", "")
	square("Head", "head", "")
	square("Head from its other side", "head", "?turn=7")
	square("Head without its hat", "head", "?no=hat")
	square("Bust", "bust", "")
	figure("Figure", "body", "")
	figure("Walking", "body", "?pose=walk")
	figure("Waving", "body", "?pose=wave")
	figure("Sitting", "body", "?pose=sit")
	figure("Sneaking", "body", "?pose=sneak")
	figure("From behind, with a cape", "body", "?turn=3")
	figure("With elytra", "body", "?turn=3&wear=elytra")
	figure("Flat, from the front", "front", "")
	figure("Flat, from the left", "left", "")
	figure("Flat, from behind", "back", "")
	return all
}

// service is another service, with what it has in common with this one.
type service struct {
	Name  string
	Kinds []serviceKind
}

// serviceKind is one kind of a service's pictures or files.
type serviceKind struct {
	Name     string // of the view that shows the same, as in its path
	Patterns []string
}

// newServices returns the other services in alphabetical order.
func newServices() (all []service) {
	names := map[render.Mode]string{}
	for _, view := range edge.Views {
		if view.Picture != nil && view.Picture.IsAdjustable {
			names[view.Picture.Mode] = view.Name()
		}
	}
	for _, route := range edge.CompatRoutes {
		kind := names[route.Mode]
		if route.Kind == edge.KindFile {
			kind = map[edge.TextureSlot]string{edge.SkinSlot: "skin", edge.CapeSlot: "cape"}[route.Slot]
		}
		for _, name := range route.Services {
			i := slices.IndexFunc(all, func(s service) bool { return s.Name == name })
			if i < 0 {
				i, all = len(all), append(all, service{Name: name})
			}
			all[i].add(kind, route.Pattern(name))
		}
	}
	slices.SortFunc(all, func(a, b service) int { return strings.Compare(strings.ToLower(a.Name), strings.ToLower(b.Name)) })
	return all
}

func (s *service) add(kind, pattern string) {
	i := slices.IndexFunc(s.Kinds, func(k serviceKind) bool { return k.Name == kind })
	if i < 0 {
		i, s.Kinds = len(s.Kinds), append(s.Kinds, serviceKind{Name: kind})
	}
	s.Kinds[i].Patterns = append(s.Kinds[i].Patterns, pattern)
}

// write responds with the page.
func (p *startPage) write(rc *fasthttp.RequestCtx) {
	rc.Response.Header.Set(fasthttp.HeaderContentSecurityPolicy, p.policy)
	p.asset.Serve(rc)
}
