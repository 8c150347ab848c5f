// Package pages serves the pages for visitors, which are complete without scripts: the front page at /,
// a player's page at /p/{name} and a texture's at /t/{tid}, and the icons of the site. Crawlers and the
// previews of shared links read them, so their heads say what they show.
//
// Server is no HTTP server of its own: package api mounts it on the public listener. Rendered pages are
// kept in memory by language (cache.go), so a page takes one query in some seconds, whatever the load.
// html has the templates with their style and scripts, words the texts.
package pages

import (
	"bytes"
	"context"
	"embed"
	"fmt"
	"html/template"
	"slices"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/core/clientapi"
	"github.com/veneer-skins/veneer/shared/edgeproto"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/httpserver"
	"github.com/veneer-skins/veneer/shared/httpserver/clientip"
	"github.com/veneer-skins/veneer/shared/roots"
)

// Config has the settings of the pages.
// Its settings are CORE_SITE_WALL, CORE_SITE_INDEXING.
type Config struct {
	Wall     string `env:"WALL" envDefault:"on" oneof:"on,off" help:"the newest and the most liked skins on the front page: on or off"`
	Indexing string `env:"INDEXING" envDefault:"on" oneof:"on,off" help:"search engines may list the pages of the site, of its players and textures: on or off"`
}

// Site describes the site to the pages.
type Site struct {
	core.Branding
	LogoPath      string // empty for none
	Logo          []byte // a PNG; nil for none
	PublicURL     string // of the pages, without a slash at the end; empty if it is not known
	PicturesURL   string // origin of pictures, if it is not that of the pages; else empty
	LaunchersPath string // path of the API of launchers; empty without one
	Files         string // path of the console's files
	Texts         func() *core.SiteTexts
	IsOpen        bool // for registrations
}

// Names of the roots that the pages have.
const (
	playerRoot   = "/p"
	textureRoot  = "/t"
	manifestPath = "/manifest.webmanifest"
	faviconPath  = "/favicon.ico"
	touchPath    = "/apple-touch-icon.png"
	changePath   = "/.well-known/change-password"
)

// Roots are the roots of shared/roots that the pages have.
func Roots() []string {
	return []string{roots.Front, playerRoot, textureRoot, manifestPath, faviconPath, touchPath, changePath}
}

// Server serves the pages.
type Server struct {
	Site
	config   Config
	opts     httpserver.Options
	limiters clientapi.Limiters
	showcase *core.Showcase

	cache *cache
	files map[string]*httpserver.Asset // by path
	style template.CSS

	LightAccent, DarkAccent string // as in #1f6b3a
}

// New returns a server of the pages. The feed has the store's changes, and does not run yet.
func New(opts httpserver.Options, showcase *core.Showcase, feed *core.Feed, cfg Config, site Site, limiters clientapi.Limiters, now core.Clock) *Server {
	opts.Listener = "public"
	s := &Server{Site: site, config: cfg, opts: opts, limiters: limiters, showcase: showcase, cache: newCache(now)}
	feed.OnChange(s.cache.apply)
	s.LightAccent, s.DarkAccent = site.Accents()
	s.files = s.newFiles()
	s.style = template.CSS(strings.NewReplacer("{light}", s.LightAccent, "{dark}", s.DarkAccent).Replace(readFile("style.css"))) //nolint:gosec // embedded
	return s
}

// newPolicy returns the Content-Security-Policy of a page with a script. The script may import files of the
// console, and pictures are the only files of another origin.
func (s *Server) newPolicy(script template.JS) string {
	return strings.Join([]string{
		"default-src 'none'", "script-src 'self' " + httpserver.SourceHash(string(script)), "style-src " + httpserver.SourceHash(string(s.style)),
		strings.TrimSuffix("img-src 'self' blob: data: "+s.PicturesURL, " "), "manifest-src 'self'", "base-uri 'none'", "frame-ancestors 'none'", "form-action 'self'",
		"require-trusted-types-for 'script'", "trusted-types 'none'",
	}, "; ")
}

//go:embed html
var htmlFiles embed.FS

var templates = template.Must(template.ParseFS(htmlFiles, "html/*.html"))

func readFile(name string) string {
	content, err := htmlFiles.ReadFile("html/" + name)
	if err != nil {
		panic(fmt.Sprintf("BUG: %v", err))
	}
	return string(content)
}

// Handler returns the handler of the pages.
func (s *Server) Handler(limiter *httpserver.AddressLimiter) fasthttp.RequestHandler {
	names := map[string]string{playerRoot: "/p/{name}", textureRoot: "/t/{tid}"}
	routes := map[string]*httpserver.Route{}
	for _, root := range Roots() {
		name, ok := names[root]
		if !ok {
			name = root
		}
		routes[root] = s.opts.Route("GET " + name)
	}
	handle := s.opts.HandleNoContext(s.handle)
	return limiter.Handler(func(rc *fasthttp.RequestCtx) {
		httpserver.SetSecurityHeaders(rc)
		if s.LaunchersPath != "" {
			rc.Response.Header.Set(clientapi.HeaderLaunchers, s.LaunchersPath)
		}
		routes[roots.Of(string(rc.Path()))].AssignTo(rc)
		handle(rc)
		s.showError(rc)
	})
}

// showError replaces the JSON of an error by a page, for browsers.
func (s *Server) showError(rc *fasthttp.RequestCtx) {
	status := rc.Response.StatusCode()
	if status >= fasthttp.StatusBadRequest && bytes.HasPrefix(rc.Response.Header.ContentType(), []byte("application/json")) && httpserver.PrefersHTML(rc) {
		s.writeNotice(rc, languageOf(rc), "failed", "", status)
	}
}

// handle handles a request. It counts for the client's network.
func (s *Server) handle(rc *fasthttp.RequestCtx) error {
	if !rc.IsGet() && !rc.IsHead() {
		rc.Response.Header.Set(fasthttp.HeaderAllow, "GET, HEAD")
		return fault.New(fault.MethodNotAllowed, "%s is not possible here.", rc.Method())
	}
	path := string(rc.Path())
	if path == changePath { // where password managers look for the page
		rc.Response.Header.Set(fasthttp.HeaderLocation, roots.Console+"/account?change=password")
		rc.SetStatusCode(fasthttp.StatusFound)
		return nil
	}
	if file := s.files[path]; file != nil {
		file.Serve(rc)
		return nil
	}
	address := s.opts.Proxies.ClientIP(rc)
	if err := s.limiters.Requests.Take(rc, clientapi.Key{Network: clientip.Prefix(address)}); err != nil {
		return err
	}
	lang := languageOf(rc)
	key, tag, load := s.route(strings.TrimSuffix(path, "/"), lang)
	if load == nil {
		s.writeMissing(rc, lang, "")
		return nil
	}
	ctx, cancel := s.opts.RequestContext(rc)
	defer cancel()
	ctx = core.WithClient(ctx, core.Client{Network: clientip.Network(address)})
	page, err := s.cache.get(ctx, lang.key()+key, load)
	switch {
	case fault.KindOf(err) == fault.NotFound && err != nil:
		s.writeMissing(rc, lang, tag)
		return nil
	case err != nil:
		return err
	}
	rc.Response.Header.Set(fasthttp.HeaderCacheControl, "public, max-age=60, stale-while-revalidate=600")
	s.write(rc, lang, page, page.tags)
	return nil
}

// write responds with a page, with cache tags.
func (s *Server) write(rc *fasthttp.RequestCtx, lang *language, page *page, tags string) {
	header := &rc.Response.Header
	header.Set(fasthttp.HeaderContentSecurityPolicy, page.policy)
	header.Set(fasthttp.HeaderContentLanguage, lang.Tag)
	if s.config.Indexing == "off" {
		header.Set("X-Robots-Tag", "noindex")
	}
	if tags != "" {
		header.Set("Surrogate-Key", strings.ReplaceAll(tags, ",", " "))
		header.Set("Cache-Tag", tags)
	}
	page.asset.Serve(rc)
}

// writeMissing responds with the page for what does not exist.
func (s *Server) writeMissing(rc *fasthttp.RequestCtx, lang *language, tag string) {
	rc.Response.Header.Set(fasthttp.HeaderCacheControl, "public, max-age=15")
	s.writeNotice(rc, lang, "missing", tag, fasthttp.StatusNotFound)
}

// writeNotice responds with a page of a heading and a sentence, the texts name.title and name.text.
func (s *Server) writeNotice(rc *fasthttp.RequestCtx, lang *language, name, tag string, status int) {
	page, err := s.cache.get(rc, lang.key()+" "+name, func(context.Context) (*page, error) {
		view := s.newView(lang, "", lang.T(name+".title"), lang.T(name+".text"))
		view.IsHidden = true
		return view.newPage("notice"), nil
	})
	if err != nil {
		return // the client is gone
	}
	rc.Request.Header.Del(fasthttp.HeaderIfNoneMatch) // or it would be a 304
	s.write(rc, lang, page, tag)
	rc.SetStatusCode(status)
}

// view is what the templates show.
type view struct {
	*Server
	Language       *language
	Title, Heading string // Title is of the window
	Description    string
	Canonical      string // URL of the page; empty if it is not known
	Card           string // URL of a picture for shared links; empty for none
	IsHidden       bool   // from search engines
	Style          template.CSS
	Script         template.JS
	Data           any
}

// newView returns what all pages show. The path of a page that does not exist is empty.
func (s *Server) newView(lang *language, path, heading, description string, scripts ...string) *view {
	v := &view{Server: s, Language: lang, Title: heading + " · " + s.Name, Heading: heading, Description: description, Style: s.style, IsHidden: s.config.Indexing == "off"}
	if s.PublicURL != "" && path != "" {
		v.Canonical = s.PublicURL + path
	}
	for _, name := range append([]string{"known.js"}, scripts...) {
		v.Script += template.JS(readFile(name)) //nolint:gosec // embedded
	}
	return v
}

// Link returns an address with the language that the visitor has chosen, if any.
func (v *view) Link(address string) string {
	switch {
	case !v.Language.IsChosen:
		return address
	case strings.Contains(address, "?"):
		return address + "&lang=" + v.Language.Code
	default:
		return address + "?lang=" + v.Language.Code
	}
}

// T returns a text in the visitor's language.
func (v *view) T(key string, args ...any) string { return v.Language.T(key, args...) }

// Texts returns the operator's pages, in the visitor's language where they have it.
func (v *view) Texts() []core.SitePage { return v.Site.Texts().Pages(v.Language.Code) }

// Announcement returns the operator's announcement; nil if there is none. Its HTML is sanitized.
func (v *view) Announcement() *announcement {
	page, ok := v.Site.Texts().Page(core.Announcement, v.Language.Code)
	if !ok {
		return nil
	}
	return &announcement{page.Language, template.HTML(page.HTML)} //nolint:gosec // sanitized
}

// announcement is the operator's announcement in a language.
type announcement struct {
	Language string
	HTML     template.HTML
}

// Languages returns all languages.
func (*view) Languages() []*language { return languages }

// Console returns the path of the console.
func (*Server) Console() string { return roots.Console }

// setCard sets the picture for shared links, a card of the edges. Links must have a host.
func (v *view) setCard(path string) {
	if base := v.absolute(); base != "" {
		v.Card = base + "/card/" + path + ".png?background=" + strings.TrimPrefix(v.LightAccent, "#")
	}
}

// absolute returns the origin of pictures; empty if it is not known.
func (s *Server) absolute() string {
	if s.PicturesURL != "" {
		return s.PicturesURL
	}
	return s.PublicURL
}

// newPage renders a template, which shows what has keys.
func (v *view) newPage(name string, keys ...edgeproto.Key) *page {
	var body bytes.Buffer
	if err := templates.ExecuteTemplate(&body, name, v); err != nil {
		panic(fmt.Sprintf("BUG: %v", err)) // of the template: it has all that it shows
	}
	tags := make([]string, 0, len(keys))
	for _, key := range keys {
		if tag := key.Tag(); tag != "" && !slices.Contains(tags, tag) {
			tags = append(tags, tag)
		}
	}
	return &page{
		asset: httpserver.NewAsset(body.Bytes(), "text/html; charset=utf-8", ""), bytes: body.Len(),
		policy: v.newPolicy(v.Script), shows: keys, tags: strings.Join(tags, ","),
	}
}
