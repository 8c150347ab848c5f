// Package api is the public HTTP interface of the edge: it parses a URL into an edge.Request,
// and writes an edge.Response as headers and bytes. It also forwards core's roots to core.
package api

import (
	"bytes"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/edge"
	"github.com/veneer-skins/veneer/shared/config"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/httpserver"
	"github.com/veneer-skins/veneer/shared/roots"
	"github.com/veneer-skins/veneer/shared/yggproto"
)

// Config configures the headers for caches and the forwarding to core.
// Its settings are EDGE_CACHE_TAGS, EDGE_S_MAXAGE, EDGE_UNKNOWN_PLAYER_STATUS, EDGE_COMPAT_ROUTES,
// EDGE_API_UPSTREAM, EDGE_API_CA, EDGE_EXAMPLE_PLAYER, EDGE_YGGDRASIL_URL.
type Config struct {
	CacheTags Tags          `env:"CACHE_TAGS" envDefault:"both" help:"headers that name for CDNs what a response depends on: off, surrogate-key, cache-tag or both"`
	SMaxage   time.Duration `env:"S_MAXAGE" envDefault:"0s" min:"0s" help:"s-maxage of what changes with a player or user, for CDNs that are purged by tag; 0s sends none"`
	// UnknownPlayerStatus is 404 or 204.
	UnknownPlayerStatus int    `env:"UNKNOWN_PLAYER_STATUS" envDefault:"404" oneof:"404,204" help:"status of a profile or file that a game requests by a player's name, when there is no such player or it wears no such texture: 404, or 204, which CustomSkinLoader remembers for a minute; it requests a 404 again each time"`
	CompatRoutes        bool   `env:"COMPAT_ROUTES" envDefault:"true" help:"serve the URLs of other skin services (Crafatar, mc-heads.net, Minotar and others) as well, so that plugins and sites need another host only"`
	APIUpstream         string `env:"API_UPSTREAM" example:"http://127.0.0.1:8080" help:"core's public listener, as in http://127.0.0.1:8080, to which what core serves (/, /api, /console, pages of players) and the profiles of compatible URLs are forwarded; empty: they are not found here"`
	APICA               string `env:"API_CA" example:"/etc/ssl/certs/ca-certificates.crt" needs:"API_UPSTREAM" help:"path of a PEM file with the certificate authorities of core's public listener; empty: the system's"`
	ExamplePlayer       string `env:"EXAMPLE_PLAYER" example:"Steve" help:"name of the player whose pictures the page at /pictures shows; empty: the default skin"`
	LaunchersURL        string `env:"YGGDRASIL_URL" example:"/api/yggdrasil/" help:"core's API of launchers, which they are told at /: /api/yggdrasil/ if API_UPSTREAM forwards it, else its address; empty: they are told nothing"`
}

// Server answers the edge's public requests.
type Server struct {
	opts               httpserver.Options
	pictures           *edge.Pictures
	tags               Tags
	playerCacheControl []byte    // Cache-Control of what changes with a player or user
	noContent          bool      // 204 for players that do not exist
	hasCompatRoutes    bool      // compatible URLs
	upstream           *upstream // nil if nothing is forwarded
	routes             *routes
	limiter            *httpserver.AddressLimiter
	repeats            *repeats

	startPage    startPage
	notFoundPage *httpserver.Page
	launchersURL string // empty for none
}

// New returns a server of pictures. Errors begin with the name of a setting.
func New(opts httpserver.Options, pictures *edge.Pictures, cfg Config) (*Server, error) {
	upstream, err := newUpstream(cfg, opts)
	if err != nil {
		return nil, err
	}
	if cfg.SMaxage%time.Second != 0 {
		return nil, config.Errorf("S_MAXAGE", "is %s, but must be whole seconds", cfg.SMaxage)
	}
	if !isName(cfg.ExamplePlayer) {
		return nil, config.Errorf("EXAMPLE_PLAYER", "is %.100q, but must be the name of a player", cfg.ExamplePlayer)
	}
	if err := checkLaunchersURL(cfg.LaunchersURL); err != nil {
		return nil, err
	}
	opts.Listener, opts.DefaultHeaders = "public", setDefaultHeaders
	opts.ErrorFormat, opts.IsUnlimited = formatError, yggproto.IsGameServer
	links := []httpserver.Link{{Path: roots.Front, Text: "Start page"}}
	var pageLinks []httpserver.Link // none for the page that is the start page itself
	if upstream != nil {
		links = append(links,
			httpserver.Link{Path: roots.Console + "/", Text: "Sign in, and dress your players"},
			httpserver.Link{Path: "/api/docs", Text: "Documentation of the API"})
		pageLinks = links
	}
	return &Server{
		opts: opts, pictures: pictures, tags: cfg.CacheTags, playerCacheControl: newPlayerCacheControl(cfg.SMaxage),
		hasCompatRoutes: cfg.CompatRoutes,
		noContent:       cfg.UnknownPlayerStatus == fasthttp.StatusNoContent,
		upstream:        upstream, routes: newRoutes(opts), limiter: opts.AddressLimiter(), repeats: newRepeats(),
		launchersURL: cfg.LaunchersURL,
		startPage:    newStartPage(pageLinks, cfg.ExamplePlayer, cfg.CompatRoutes),
		notFoundPage: httpserver.NotFoundPage(links...),
	}, nil
}

// formatError is the format of errors. Files of games below the API of launchers have the errors of
// all other files, which the fast path writes.
func formatError(path []byte, f *fault.Error) (status int, body any) {
	if bytes.HasPrefix(path, []byte(yggproto.Root+"/skins/")) {
		return 0, nil
	}
	return yggproto.FormatError(path, f)
}

// checkLaunchersURL checks the setting YGGDRASIL_URL.
func checkLaunchersURL(text string) error {
	if _, isAddress := config.ParseURL(text); text == "" || isAddress || isAPI(text) {
		return nil
	}
	return config.Errorf("YGGDRASIL_URL", "is %s, but must be /api/yggdrasil/ or an address as in https://skins.example.org/api/yggdrasil/", config.QuoteRedacted(text))
}

// HTTP returns the fasthttp server of the public listener.
func (s *Server) HTTP() *fasthttp.Server {
	return s.opts.NewServer(s.limiter.Handler(s.opts.HandleNoContext(s.handle)))
}

// FastPath returns the fast path, which serves most cache hits.
func (s *Server) FastPath() *httpserver.FastPath {
	return s.opts.FastPath(s.limiter, s.serveFast)
}

// handle serves a request.
func (s *Server) handle(rc *fasthttp.RequestCtx) error {
	path := unsafeString(rc.Path())
	target, isHere := s.parsePath(path, unsafeString(rc.URI().QueryString()))
	if sent := rc.URI().PathOriginal(); len(sent) != len(path) && bytes.Contains(sent, []byte("//")) {
		if empty, ok := s.parseEmptySubject(sent); ok {
			target, isHere = empty, true
		}
	}
	if to := s.profileTarget(path, target.value, unsafeString(rc.URI().QueryString())); to != "" {
		s.routes.api.AssignTo(rc)
		return s.forwardProfile(rc, to)
	}
	if !isHere {
		if isBatch, err := s.serveBatch(rc, path); isBatch {
			return err
		}
		return s.serveNonImage(rc, path)
	}
	// Cache-Status is set behind ETag, as the fast path does: both write the same bytes of a hit.
	setCommonHeaders(httpserver.ResponseTo(rc))
	isRead, err := s.allowView(rc, target.route.number, "A picture")
	if isRead {
		if err = s.serve(rc, target); err == nil {
			return nil
		}
		s.routes.set(rc, target.route.number, noFormat, errorOutcome(err))
	}
	if len(rc.Response.Header.PeekBytes(keyCacheStatus)) == 0 {
		rc.Response.Header.Set(headerCacheStatus, cacheStatusNoCache)
	}
	return err
}

// beginView sets the headers of a response below a numbered route, and reports whether it is to be served: otherwise
// it is a preflight or an error.
func (s *Server) beginView(rc *fasthttp.RequestCtx, number int, what string) (isRead bool, err error) {
	setDefaultHeaders(rc)
	return s.allowView(rc, number, what)
}

// allowView is beginView without the headers.
func (s *Server) allowView(rc *fasthttp.RequestCtx, number int, what string) (isRead bool, err error) {
	if isRead, err = allowRead(rc, what); !isRead {
		outcome := outcomePreflight
		if err != nil {
			outcome = outcomeInvalid
		}
		s.routes.set(rc, number, noFormat, outcome)
	}
	return isRead, err
}

// allowRead reports whether a request is GET or HEAD. It responds to a preflight, and returns the fault of other
// methods.
func allowRead(rc *fasthttp.RequestCtx, what string) (isRead bool, err error) {
	switch {
	case rc.IsGet() || rc.IsHead():
		return true, nil
	case rc.IsOptions():
		writePreflight(rc)
		return false, nil
	}
	rc.Response.Header.Set(fasthttp.HeaderAllow, methods)
	return false, fault.New(fault.MethodNotAllowed, "%s can only be fetched.", what)
}

// writePreflight responds to a CORS preflight (Fetch standard, section 4.8).
func writePreflight(rc *fasthttp.RequestCtx) {
	header := &rc.Response.Header
	header.Set(fasthttp.HeaderAllow, methods)
	header.Set(fasthttp.HeaderAccessControlAllowMethods, methods)
	header.Set(fasthttp.HeaderAccessControlAllowHeaders, "*")
	header.Set(fasthttp.HeaderAccessControlMaxAge, "86400")
	header.Set(fasthttp.HeaderCacheControl, "no-store")
	rc.SetStatusCode(fasthttp.StatusNoContent)
}

// headerLaunchers tells launchers where their API is.
const headerLaunchers = "X-Authlib-Injector-API-Location"

// picturesPath is the path of the page of addresses, which an edge without core behind it has at / as well.
const picturesPath = "/pictures"

// isAPI reports whether a path is /api or below it.
func isAPI(path string) bool { return roots.IsBelow(path, roots.API) }

// serveNonImage serves a request for anything but a picture, a file or a profile.
func (s *Server) serveNonImage(rc *fasthttp.RequestCtx, path string) error {
	root := roots.Of(path)
	if root == roots.API {
		s.routes.api.AssignTo(rc)
		httpserver.Canonicalise(rc.URI(), roots.API+"/")
	}
	if s.upstream != nil && root != "" && isCanonical(rc.URI(), root) {
		s.routes.core[root].AssignTo(rc)
		return s.forwardRoot(rc, root)
	}
	if root == roots.API {
		setAPIDefaultHeaders(rc)
		return fault.New(fault.NotFound, "There is no API here.")
	}
	setDefaultHeaders(rc)
	switch {
	case path == picturesPath, path == roots.Front && s.upstream == nil:
		s.routes.pictures.AssignTo(rc)
		if path == roots.Front {
			s.setLaunchers(rc)
		}
		return serveGet(rc, func() { s.startPage.write(rc) })
	case path == roots.Robots:
		s.routes.core[path].AssignTo(rc)
		return serveGet(rc, func() { httpserver.Robots(rc, false) })
	default:
		if rc.IsOptions() && string(rc.RequestURI()) == "*" { // of the server (RFC 9110, section 9.3.7)
			writePreflight(rc)
			return nil
		}
		rc.Response.Header.SetCanonical(keyCacheControl, ccNotFound)
		return s.notFoundPage.WriteNotFound(rc)
	}
}

// forwardRoot forwards a request for what core has below a root.
func (s *Server) forwardRoot(rc *fasthttp.RequestCtx, root string) error {
	err := s.upstream.forward(rc, httpserver.OriginForm(rc.URI()))
	if root == roots.Front && err == nil {
		s.setLaunchers(rc)
	}
	return err
}

// setLaunchers tells launchers where their API is, if it is to be told.
func (s *Server) setLaunchers(rc *fasthttp.RequestCtx) {
	if s.launchersURL != "" {
		rc.Response.Header.Set(headerLaunchers, s.launchersURL)
	}
}

// forwardProfile forwards a request for a profile as one for a path and query.
func (s *Server) forwardProfile(rc *fasthttp.RequestCtx, target string) error {
	err := s.upstream.forward(rc, []byte(target))
	if s.noContent && err == nil && rc.Response.StatusCode() == fasthttp.StatusNotFound {
		rc.Response.ResetBody()
		rc.Response.Header.Del(fasthttp.HeaderContentType)
		rc.SetStatusCode(fasthttp.StatusNoContent)
	}
	return err
}

// serveGet calls answer for GET and HEAD, and responds to other methods itself.
func serveGet(rc *fasthttp.RequestCtx, answer func()) error {
	isRead, err := allowRead(rc, "This")
	if isRead {
		rc.Response.Header.Set(fasthttp.HeaderCacheControl, "no-store")
		answer()
	}
	return err
}

const methods = "GET, HEAD, OPTIONS"

// setDefaultHeaders sets the common headers and the Cache-Status of a response without a
// cache.
func setDefaultHeaders(rc *fasthttp.RequestCtx) {
	setCommonHeaders(httpserver.ResponseTo(rc))
	rc.Response.Header.Set(headerCacheStatus, cacheStatusNoCache)
}

// setAPIDefaultHeaders sets the headers of the edge's own responses in place of core's.
func setAPIDefaultHeaders(rc *fasthttp.RequestCtx) {
	setDefaultHeaders(rc)
	httpserver.SetSecurityHeaders(rc)
}

func notFound() error { return fault.New(fault.NotFound, "There is nothing at this address.") }
