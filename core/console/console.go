// Package console serves the web console: pages with which users dress players, and administrators
// keep order. The pages are JavaScript modules that use the API like any client; app and vendor have
// them as they are served, but for the names of the libraries in their imports, and nothing is built.
//
// Server is no HTTP server of its own: package api mounts it on the public listener. It serves the
// files, an index page for each page of the console, and three routes, in session.go, that keep a
// session in a cookie.
package console

import (
	"cmp"
	"context"
	"crypto/sha256"
	"embed"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/core/clientapi"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/httpserver"
	"github.com/veneer-skins/veneer/shared/logging"
)

// Root is the path of the console.
const Root = "/console"

// embedded holds the files of the console, and the licences of the vendored ones.
//
//go:embed app/index.html app/style.css app/icon.svg app/*.js app/parts/*.js app/pages/*.js app/pages/admin/*.js app/words/*.js
//go:embed vendor/*.js vendor/LICENSES
var embedded embed.FS

// Site describes the site to the pages.
type Site struct {
	Branding core.Branding
	LogoPath string // empty without a logo
	// Texts returns the operator's present texts.
	Texts func() *core.SiteTexts
	// PicturesURL is the origin of pictures, as in https://pictures.example.org, if it is not that
	// of the pages; empty if it is.
	PicturesURL string
	// LaunchersPath is the path of the API of launchers, which a header of the index page has; empty
	// without one.
	LaunchersPath string
	// UserJSON returns a user as GET /api/user responds with it.
	UserJSON func(core.User) any
}

// Server serves the console.
type Server struct {
	sessions *core.Sessions
	site     Site
	opts     httpserver.Options
	limiters clientapi.Limiters
	insecure logging.OncePerMinute // warnings that the cookie is not protected by TLS

	policy string // Content-Security-Policy of the index pages
	accent accent

	mu      sync.Mutex
	indexes map[string]*httpserver.Asset // by the path below Root, as in newIndexes
	texts   *core.SiteTexts              // with which the indexes were made
}

// New returns a server of the console.
func New(opts httpserver.Options, sessions *core.Sessions, site Site, limiters clientapi.Limiters) (*Server, error) {
	opts.Listener = "public"
	s := &Server{sessions: sessions, site: site, opts: opts, limiters: limiters, accent: newAccent(site.Branding)}
	pages, err := newIndexes(site, s.accent.path, nil)
	if err != nil {
		return nil, err
	}
	s.setIndexes(pages)
	s.policy = newPolicy(site.PicturesURL)
	return s, nil
}

func (s *Server) setIndexes(pages map[string]string) {
	s.indexes = make(map[string]*httpserver.Asset, len(pages))
	for path, page := range pages {
		s.indexes[path] = httpserver.NewAsset([]byte(page), contentType("index.html"), "no-cache")
	}
}

// index returns the index page of a path below Root, with the operator's present texts, and whether the console has that page.
func (s *Server) index(path string) (index *httpserver.Asset, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if texts := s.site.Texts(); texts != s.texts {
		pages, err := newIndexes(s.site, s.accent.path, texts)
		if err != nil {
			panic(fmt.Sprintf("BUG: %v", err)) // there was none before
		}
		s.setIndexes(pages)
		s.texts = texts
	}
	index, ok = s.indexes[path]
	return cmp.Or(index, s.indexes[""]), ok
}

// newPolicy returns the Content-Security-Policy of the index page. There are no inline scripts, and pictures
// are the only files of another origin.
func newPolicy(picturesURL string) string {
	from := func(sources ...string) string {
		return strings.TrimSuffix(strings.Join(append(sources, picturesURL), " "), " ")
	}
	return strings.Join([]string{
		"default-src 'none'",
		"script-src 'self'",
		"style-src 'self'",
		"img-src " + from("'self'", "blob:", "data:"),
		"connect-src " + from("'self'"),
		"manifest-src 'self'",
		"base-uri 'none'",
		"frame-ancestors 'none'",
		"form-action 'self'",
		"require-trusted-types-for 'script'",
		"trusted-types 'none'",
	}, "; ")
}

// files returns the embedded files by path, as in app/main.js, without the index page. Modules import libraries by
// their paths.
var files = sync.OnceValue(func() map[string][]byte {
	all := map[string][]byte{}
	err := fs.WalkDir(embedded, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || name == indexName {
			return err
		}
		content, err := embedded.ReadFile(name)
		if path.Ext(name) == ".js" {
			content = withPaths(name, content)
		}
		all[name] = content
		return err
	})
	if err != nil {
		panic(fmt.Sprintf("BUG: %v", err))
	}
	return all
})

// base returns the path of the files. It has the digest of all of them, so their content never
// changes there, and relative imports stay within one release.
var base = sync.OnceValue(func() string {
	all := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(files())) {
		fmt.Fprintf(all, "%s %d\n%s", name, len(files()[name]), files()[name])
	}
	return Root + "/" + fmt.Sprintf("%x", all.Sum(nil)[:8])
})

// Base returns the path of the files, for other pages of the site.
func Base() string { return base() }

// assets returns the files by the path at which they are served.
var assets = sync.OnceValue(func() map[string]*httpserver.Asset {
	all := make(map[string]*httpserver.Asset, len(files()))
	for name, content := range files() {
		all[base()+"/"+name] = httpserver.NewAsset(content, contentType(name), httpserver.CacheForever)
	}
	return all
})

// Compress compresses the files for all servers until its context ends. It takes a second of a
// processor, for which the first requests would wait.
func Compress(ctx context.Context) {
	all := assets()
	for _, name := range slices.Sorted(maps.Keys(all)) { // pages come before the larger libraries
		if ctx.Err() != nil {
			return
		}
		all[name].Compress()
	}
}

// contentType returns the media type of a file by its suffix; the licences have none.
func contentType(name string) string {
	switch path.Ext(name) {
	case ".html":
		return "text/html; charset=utf-8"
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	default:
		return "text/plain; charset=utf-8"
	}
}

// maxBody is the limit of a body: an e-mail address and a password, or a token.
const maxBody = 16 << 10

// Handler returns the handler of the paths under Root.
func (s *Server) Handler(limiter *httpserver.AddressLimiter) fasthttp.RequestHandler {
	withRoute := func(name string, h fasthttp.RequestHandler) (*httpserver.Route, fasthttp.RequestHandler) {
		route := s.opts.Route(name)
		return route, func(rc *fasthttp.RequestCtx) {
			route.AssignTo(rc)
			h(rc)
		}
	}
	_, page := withRoute("GET "+Root+"/{page}", s.opts.HandleNoContext(s.handlePage))
	notAllowed := s.opts.HandleNoContext(handleNotAllowed)
	sessions := map[string]fasthttp.RequestHandler{}
	for name, h := range map[string]httpserver.Handler{
		"POST " + sessionPath:   s.handleSignIn,
		"DELETE " + sessionPath: s.handleSignOut,
		"POST " + tokenPath:     s.handleToken,
	} {
		route, handler := withRoute(name, s.ownPages(h))
		route.AcceptBody(maxBody, 0)
		sessions[name] = handler
	}
	return limiter.Handler(func(rc *fasthttp.RequestCtx) {
		httpserver.SetSecurityHeaders(rc)
		requested := string(rc.Path())
		session := sessions[string(rc.Method())+" "+requested]
		switch {
		case session != nil:
			session(rc)
		case (rc.IsGet() || rc.IsHead()) && requested != sessionPath && requested != tokenPath:
			page(rc)
		default: // preflights too: pages of other sites then send nothing
			notAllowed(rc)
		}
	})
}

// handleNotAllowed handles methods that a path does not have.
func handleNotAllowed(rc *fasthttp.RequestCtx) error {
	allowed := "GET, HEAD"
	switch string(rc.Path()) {
	case sessionPath:
		allowed = "POST, DELETE"
	case tokenPath:
		allowed = "POST"
	}
	rc.Response.Header.Set(fasthttp.HeaderAllow, allowed)
	return fault.New(fault.MethodNotAllowed, "%s is not possible here.", rc.Method())
}

// handlePage handles GET /console/{page}: a file, or the index page, which shows the page that the
// URL names.
func (s *Server) handlePage(rc *fasthttp.RequestCtx) error {
	requested := string(rc.Path())
	if asset, ok := assets()[requested]; ok {
		asset.Serve(rc)
		return nil
	}
	if s.accent.path == requested {
		s.accent.asset.Serve(rc)
		return nil
	}
	if strings.Contains(path.Base(requested), ".") { // maybe a file of another release
		return fault.New(fault.NotFound, "There is no such file.")
	}
	if requested == Root {
		rc.Response.Header.Set(fasthttp.HeaderLocation, Root+"/")
		rc.SetStatusCode(fasthttp.StatusFound)
		return nil
	}
	header := &rc.Response.Header
	header.Set(fasthttp.HeaderContentSecurityPolicy, s.policy)
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	header.Set(fasthttp.HeaderReferrerPolicy, "same-origin")
	if s.site.LaunchersPath != "" {
		header.Set(clientapi.HeaderLaunchers, s.site.LaunchersPath)
	}
	name := "/" + strings.Trim(strings.TrimPrefix(requested, Root), "/")
	index, ok := s.index(name)
	if name == "/texture" && rc.QueryArgs().GetUintOrZero("tid") == 0 {
		ok = false
	}
	index.Serve(rc)
	if !ok && rc.Response.StatusCode() == fasthttp.StatusOK {
		rc.SetStatusCode(fasthttp.StatusNotFound) // the page says so
	}
	return nil
}
