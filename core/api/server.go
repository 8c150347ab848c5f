// Package api is core's public JSON API. A handler parses the request, calls the domain once, and
// writes the response; it decides nothing itself.
//
// The handlers are in a file for each noun, as in package core, and openapi.yaml documents them.
// routes lists all of them with the middleware that authenticates: public, withToken, requireUser,
// optionalUser, requireAdmin. Package decode parses bodies and queries, and collects the errors of
// all fields. clientapi.Limiters count requests per user, network or token. /api/docs serves the
// document with Swagger UI.
package api

import (
	"bytes"
	"context"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fasthttp/router"
	"github.com/google/uuid"
	"github.com/valyala/fasthttp"
	"golang.org/x/net/http/httpguts"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/core/clientapi"
	"github.com/veneer-skins/veneer/shared/config"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/httpserver"
	"github.com/veneer-skins/veneer/shared/roots"
)

// Config has the settings of the API.
// Its settings are CORE_CORS_ORIGINS, CORE_REGISTRATION, CORE_BODY_BYTES.
type Config struct {
	CORSOrigins  []string         `env:"CORS_ORIGINS" envDefault:"*" example:"https://skins.example.org" help:"origins whose pages may call /api, comma-separated; * for all"`
	Registration string           `env:"REGISTRATION" envDefault:"open" oneof:"open,confirm,closed" help:"registration: open, confirm (by a link sent by e-mail), or closed"`
	BodyBytes    int              `env:"BODY_BYTES" envDefault:"65536" help:"largest request body, in bytes, 0 for as many as BODIES_BYTES; uploads may carry a texture file besides"`
	Limits       clientapi.Limits `envPrefix:"LIMIT_"`
}

// Services is the domain behind the API.
type Services struct {
	Users         *core.Users
	Accounts      *core.Accounts
	Sessions      *core.Sessions
	UserSessions  *core.UserSessions
	Players       *core.Players
	Closets       *core.Closets
	Textures      *core.Textures
	Library       *core.Library
	Notifications *core.Notifications
	Scores        *core.Scores
	Reports       *core.Reports
	Audit         *core.Audit
	Links         *core.Links     // nil if the site sends no e-mail
	Pages         *core.SitePages // nil for none
	Site          core.Site
	// Counts counts what the site has, for administrators.
	Counts func(context.Context) (core.Counts, error)
	// Check returns an error unless the database answers.
	Check func(context.Context) error
}

// Server serves /api.
type Server struct {
	Services
	config    Config
	opts      httpserver.Options
	fileBytes int

	limiters  clientapi.Limiters
	database  healthCheck
	launchers *Mount // nil for none
	console   *Mount // nil for none
	pages     Pages

	siteAssets assetCache
	pageAssets assetCache
}

// Mount is another adapter on the public listener.
type Mount struct {
	Root string // path of the adapter, without a slash at the end
	// Handler returns the handler of the paths under Root. It counts requests by limiter.
	Handler func(limiter *httpserver.AddressLimiter) fasthttp.RequestHandler
}

// Pages is the adapter with the pages for visitors.
type Pages struct {
	Roots   []string // of shared/roots; none without pages
	Handler func(limiter *httpserver.AddressLimiter) fasthttp.RequestHandler
}

// has reports whether a path is the root of a mount, or below it. A nil mount has none.
func (m *Mount) has(path []byte) bool {
	if m == nil {
		return false
	}
	rest, ok := bytes.CutPrefix(path, []byte(m.Root))
	return ok && (len(rest) == 0 || rest[0] == '/')
}

// MountLaunchers adds the API of launchers. Responses of the server then say where it is. Those of
// the mount have the server's headers, and preflights are answered for it.
func (s *Server) MountLaunchers(mount Mount) { s.launchers = &mount }

// LaunchersPath returns the path of the API of launchers, with a slash at the end; empty without one.
func (s *Server) LaunchersPath() string {
	if s.launchers == nil {
		return ""
	}
	return s.launchers.Root + "/"
}

// MountPages adds the pages for visitors, / among them. Their responses have no headers of the server.
func (s *Server) MountPages(pages Pages) { s.pages = pages }

// MountConsole adds the web console. Its responses have no headers of the
// server: pages of other sites must not use it.
func (s *Server) MountConsole(mount Mount) { s.console = &mount }

// Limiters returns the rate limits of clients, which other APIs share.
func (s *Server) Limiters() clientapi.Limiters { return s.limiters }

// New returns a server of the API. fileBytes is the size of the largest texture file that the
// domain accepts.
func New(opts httpserver.Options, services Services, cfg Config, fileBytes int, now core.Clock) (*Server, error) {
	if cfg.BodyBytes != 0 && cfg.BodyBytes < minBodyBytes {
		return nil, config.Errorf("BODY_BYTES", "is %d, but must be 0 or at least %d", cfg.BodyBytes, minBodyBytes)
	}
	if limit := (&Server{config: cfg, fileBytes: fileBytes}).uploadLimit(); limit > opts.Limits.BodiesBytes {
		return nil, config.Errorf("BODIES_BYTES", "is %d, but must be at least %d, an upload of UPLOAD_MAX_BYTES and BODY_BYTES", opts.Limits.BodiesBytes, limit)
	}
	origins, err := parseOrigins(cfg.CORSOrigins)
	if err != nil {
		return nil, err
	}
	cfg.CORSOrigins = origins
	opts.Listener = "public"
	return &Server{
		Services: services, config: cfg, opts: opts, fileBytes: fileBytes, limiters: cfg.Limits.Limiters(now),
		database: healthCheck{check: services.Check, now: now},
	}, nil
}

// parseOrigins checks the setting CORS_ORIGINS: an origin has a scheme and a host and nothing else,
// or is *.
func parseOrigins(values []string) ([]string, error) {
	var origins []string
	for _, origin := range values {
		origin = strings.TrimSpace(origin)
		parsed, err := url.Parse(origin)
		if origin != "*" && (err != nil || parsed.Host == "" || strings.Contains(origin, "*") || parsed.Scheme+"://"+parsed.Host != origin) {
			return nil, config.Errorf("CORS_ORIGINS", "has %q, but must be *, or origins as in https://skins.example", origin)
		}
		origins = append(origins, origin)
	}
	return origins, nil
}

// Paths of requests with a texture file.
const (
	uploadPath = "/api/textures"
	pricePath  = "/api/price"
)

// isUpload reports whether a request carries a texture file.
func isUpload(rc *fasthttp.RequestCtx) bool {
	path := string(rc.Path())
	return rc.IsPost() && (path == uploadPath || path == pricePath)
}

// uploadLimiter returns the limit of a request that carries a texture file.
func (s *Server) uploadLimiter(rc *fasthttp.RequestCtx) *clientapi.Limiter {
	if string(rc.Path()) == pricePath {
		return s.limiters.Prices
	}
	return s.limiters.Uploads
}

// HTTP returns the server behind the public listener.
func (s *Server) HTTP() *fasthttp.Server {
	opts := s.opts
	opts.DefaultHeaders = s.setDefaultHeaders
	limiter := opts.AddressLimiter()
	handler := limiter.Handler(s.withDefaults(s.routes().Handler))
	var launchers, console, pages fasthttp.RequestHandler
	if s.launchers != nil {
		launchers = s.withDefaults(s.launchers.Handler(limiter))
	}
	if s.console != nil {
		console = s.console.Handler(limiter)
	}
	if s.pages.Roots != nil {
		pages = s.pages.Handler(limiter)
	}
	return opts.NewServer(func(rc *fasthttp.RequestCtx) {
		httpserver.Canonicalise(rc.URI(), "/api/")
		switch path := rc.Path(); {
		case s.launchers.has(path):
			launchers(rc)
		case s.console.has(path):
			console(rc)
		case pages != nil && !bytes.HasPrefix(path, []byte(roots.API+"/")) && slices.Contains(s.pages.Roots, roots.Of(string(path))):
			pages(rc)
		default:
			handler(rc)
		}
	})
}

// maxCharacterBytes is the maximum size of a character in a body: an emoji as two escaped
// surrogates in JSON, or as %XX for each of its four bytes in a form.
const maxCharacterBytes = 12

// minBodyBytes is the minimum of BODY_BYTES: the reason of a report may have 1,000 characters.
const minBodyBytes = 16 << 10

// bodyLimit returns the limit of a body that may be larger than others by extra bytes; 0 for no
// limit.
func (s *Server) bodyLimit(extra int) int {
	if s.config.BodyBytes == 0 {
		return 0
	}
	return s.config.BodyBytes + extra
}

// uploadLimit returns the limit of an upload's body; 0 for no limit.
func (s *Server) uploadLimit() int {
	if s.fileBytes == 0 {
		return 0
	}
	return s.bodyLimit(s.fileBytes)
}

// routes returns the route table.
func (s *Server) routes() *router.Router {
	r := router.New()
	r.RedirectTrailingSlash, r.RedirectFixedPath = false, false
	r.HandleOPTIONS = false // withDefaults handles preflights of all paths
	r.NotFound = s.public(func(_ context.Context, rc *fasthttp.RequestCtx) error {
		if isAPI(string(rc.Path())) {
			return notFound()
		}
		if s.redirectToEdges(rc) {
			return nil
		}
		return notFoundPage.WriteNotFound(rc)
	})
	r.MethodNotAllowed = s.public(func(_ context.Context, rc *fasthttp.RequestCtx) error {
		return fault.New(fault.MethodNotAllowed, "%s is not possible here.", rc.Method())
	})

	handleWithoutBody := func(method, path string, h fasthttp.RequestHandler) *httpserver.Route {
		route := s.opts.Route(method + " " + path)
		withRoute := func(rc *fasthttp.RequestCtx) {
			route.AssignTo(rc)
			h(rc)
		}
		r.Handle(method, path, withRoute)
		if method == fasthttp.MethodGet { // HEAD is GET without the body, which fasthttp leaves out
			r.Handle(fasthttp.MethodHead, path, withRoute)
		}
		return route
	}
	handle := func(method, path string, h fasthttp.RequestHandler) *httpserver.Route {
		route := handleWithoutBody(method, path, h)
		if method != fasthttp.MethodGet {
			route.AcceptBody(s.bodyLimit(0), 0)
		}
		return route
	}

	handle(fasthttp.MethodGet, "/", s.public(s.handleIndex))
	handle(fasthttp.MethodGet, "/robots.txt", s.public(s.handleRobots))
	if s.Site.Logo != nil {
		handle(fasthttp.MethodGet, logoPath, s.public(serveAsset(httpserver.NewCompressedAsset(s.Site.Logo, "image/png", "no-cache"))))
	}
	handle(fasthttp.MethodGet, "/api", s.public(s.handleIndex))
	handle(fasthttp.MethodGet, "/api/site", s.public(s.handleSite))
	handle(fasthttp.MethodGet, sitePagePath+"{page}", s.public(s.handleSitePage))

	handle(fasthttp.MethodPost, "/api/auth/login", s.public(s.handleLogin))
	handle(fasthttp.MethodPost, "/api/auth/logout", s.requireUser(s.handleLogout))
	handleWithoutBody(fasthttp.MethodPost, "/api/auth/refresh", s.public(s.handleRefreshToken))
	handle(fasthttp.MethodPost, "/api/auth/register", s.public(s.handleRegister))
	handle(fasthttp.MethodPost, "/api/auth/verify", s.public(s.handleVerifyEmail))
	handle(fasthttp.MethodPost, "/api/auth/reset", s.public(s.handleRequestPasswordReset))
	handle(fasthttp.MethodPost, "/api/auth/password", s.public(s.handleResetPassword))

	handle(fasthttp.MethodGet, "/api/user", s.withToken(s.handleGetUser))
	handle(fasthttp.MethodPut, "/api/user", s.requireUser(s.handleUpdateUser))
	handle(fasthttp.MethodDelete, "/api/user", s.requireUser(s.handleDeleteUser))
	handle(fasthttp.MethodPut, "/api/user/avatar", s.requireUser(s.limitChanges(s.handleSetAvatar)))
	handle(fasthttp.MethodPut, "/api/user/email", s.requireUser(s.handleChangeEmail))
	handle(fasthttp.MethodPut, "/api/user/password", s.requireUser(s.handleChangePassword))
	handle(fasthttp.MethodPost, "/api/user/verification", s.requireUser(s.handleRequestVerification))
	handle(fasthttp.MethodGet, "/api/user/sessions", s.withToken(s.handleListSessions))
	handle(fasthttp.MethodDelete, "/api/user/sessions", s.requireUser(s.handleEndOtherSessions))
	handle(fasthttp.MethodDelete, "/api/user/sessions/{id}", s.requireUser(s.handleEndSession))
	handle(fasthttp.MethodGet, "/api/user/notifications", s.withToken(s.handleListNotifications))
	handle(fasthttp.MethodGet, "/api/notifications", s.withToken(s.handleListAllNotifications))
	handle(fasthttp.MethodPost, "/api/user/notifications/{id}", s.requireUser(s.handleReadNotification))

	handle(fasthttp.MethodGet, "/api/user/score", s.withToken(s.handleListScoreChanges))
	handle(fasthttp.MethodPost, "/api/user/sign", s.requireUser(s.handleSignForToday))

	handle(fasthttp.MethodGet, "/api/players", s.withToken(s.handleListPlayers))
	handle(fasthttp.MethodPost, "/api/players", s.requireUser(s.limitChanges(s.handleAddPlayer)))
	handle(fasthttp.MethodGet, "/api/deleted-players", s.withToken(s.handleListDeletedPlayers))
	handle(fasthttp.MethodPost, "/api/players/{pid}/restore", s.requireUser(s.limitChanges(s.handleRestorePlayer)))

	handle(fasthttp.MethodGet, "/api/closet", s.withToken(s.handleListClosetItems))
	handle(fasthttp.MethodPost, "/api/closet", s.requireUser(s.limitChanges(s.handleAddClosetItem)))
	handle(fasthttp.MethodPut, "/api/closet/{tid}", s.requireUser(s.limitChanges(s.handleRenameClosetItem)))
	handle(fasthttp.MethodDelete, "/api/closet/{tid}", s.requireUser(s.limitChanges(s.handleRemoveClosetItem)))

	handle(fasthttp.MethodPost, uploadPath, s.requireUser(s.handleUploadTexture)).AcceptBody(s.uploadLimit(), s.opts.Limits.UploadTimeout)
	handle(fasthttp.MethodPost, pricePath, s.requireUser(s.handlePriceUpload)).AcceptBody(s.uploadLimit(), s.opts.Limits.UploadTimeout)
	handle(fasthttp.MethodGet, "/api/textures", s.optionalUser(s.handleListTextures))
	handle(fasthttp.MethodGet, "/api/textures/{tid}", s.optionalUser(s.handleGetTexture))
	handle(fasthttp.MethodGet, "/api/reports", s.withToken(s.handleListOwnReports))
	handle(fasthttp.MethodPost, "/api/reports", s.requireUser(s.handleReportTexture))

	// What an owner and administrators may do: each has a path for both.
	for _, by := range []struct {
		root    string
		require func(actorHandler) fasthttp.RequestHandler
	}{{"/api", s.requireOwner}, {"/api/admin", s.requireAdmin}} {
		player, texture := by.root+"/players/{pid}", by.root+"/textures/{tid}"
		handle(fasthttp.MethodDelete, player, by.require(deleteByID("pid", "The player is deleted.", s.Players.Delete)))
		handle(fasthttp.MethodPut, player+"/name", by.require(changeByID("pid", "The player is renamed.", str("name"), s.Players.Rename, toPlayerJSON)))
		handle(fasthttp.MethodPut, player+"/textures", by.require(changeByID("pid", "The player is dressed.", textureSelection, s.Players.SetTextures, toPlayerJSON)))
		handle(fasthttp.MethodDelete, player+"/textures", by.require(changeByID("pid", "The textures are taken off.", slotsToClear, s.clearTextures, toPlayerJSON)))
		handle(fasthttp.MethodPut, texture, by.require(changeByID("tid", "The texture is changed.", textureChange, s.Textures.Change, toTextureJSON)))
	}

	handle(fasthttp.MethodDelete, "/api/textures/{tid}", s.requireOwner(deleteByID("tid", "The texture is deleted.", s.Textures.Delete)))
	handle(fasthttp.MethodDelete, "/api/admin/textures/{tid}", s.requireAdmin(s.handleRemoveTexture))
	handle(fasthttp.MethodGet, "/api/admin/refusals", s.requireAdmin(s.handleListRefusals))
	handle(fasthttp.MethodDelete, "/api/admin/refusals/{tid}", s.requireAdmin(deleteByID("tid", "The pixels are allowed again.", s.Textures.LiftRefusal)))

	const user = "/api/admin/users/{uid}"
	setUser := func(field string, h actorHandler) { handle(fasthttp.MethodPut, user+"/"+field, s.requireAdmin(h)) }
	setUser("nickname", changeByID("uid", "The nickname is changed.", str("nickname"), s.Accounts.Rename, toUserJSON))
	setUser("email", changeByID("uid", "The e-mail address is changed.", str("email"), s.Accounts.SetEmail, toUserJSON))
	setUser("password", changeByID("uid", "The password is changed. The user's sessions have ended.", str("password"), s.Accounts.ResetPassword, toUserJSON))
	setUser("verified", changeByID("uid", "The verification is changed.", requiredBool("verified"), s.Accounts.SetVerified, toUserJSON))
	setUser("score", changeByID("uid", "The score is set.", integer[int64]("score"), s.Accounts.SetScore, toUserJSON))
	setUser("permission", changeByID("uid", "The permission is changed.", permissionChange, s.Accounts.SetPermission, toUserJSON))
	handle(fasthttp.MethodDelete, user, s.requireAdmin(deleteByID("uid", "The account is deleted.", s.Accounts.DeleteUser)))
	handle(fasthttp.MethodGet, "/api/admin/users", s.requireAdmin(s.handleFindUsers))
	handle(fasthttp.MethodGet, "/api/admin/users/{uid}/closet", s.requireAdmin(s.handleListUserClosetItems))
	handle(fasthttp.MethodPost, "/api/admin/users/{uid}/closet", s.requireAdmin(s.handleAddUserClosetItem))
	handle(fasthttp.MethodDelete, "/api/admin/users/{uid}/closet/{tid}", s.requireAdmin(s.handleRemoveUserClosetItem))

	handle(fasthttp.MethodGet, "/api/admin/players", s.requireAdmin(s.handleFindPlayers))
	handle(fasthttp.MethodPut, "/api/admin/players/{pid}/owner", s.requireAdmin(changeByID("pid", "The player is moved.", integer[core.UserID]("uid"), s.Players.Move, toPlayerJSON)))

	handle(fasthttp.MethodGet, "/api/admin/textures", s.requireAdmin(s.handleListTexturesAsAdmin))
	handle(fasthttp.MethodGet, "/api/admin/reports", s.requireAdmin(s.handleListReports))
	handle(fasthttp.MethodPut, "/api/admin/reports/{rid}", s.requireAdmin(changeByID("rid", "The report is settled.", settlement, s.Reports.Settle, toReportJSON)))
	handle(fasthttp.MethodPost, "/api/admin/notifications", s.requireAdmin(s.handleSendNotification)).
		AcceptBody(s.bodyLimit(maxCharacterBytes*core.MaxContent), 0)
	handle(fasthttp.MethodGet, "/api/admin/counts", s.requireAdmin(s.handleCount))
	handle(fasthttp.MethodGet, "/api/admin/audit", s.requireAdmin(s.handleListAuditEntries))

	for _, path := range []string{documentPath, pagePath, pagePath + "/{digest}/{file}"} {
		handle(fasthttp.MethodGet, path, s.public(s.handleDocs))
	}

	return r
}

// withDefaults sets the headers of every response, removes trailing slashes, and handles
// preflights.
func (s *Server) withDefaults(next fasthttp.RequestHandler) fasthttp.RequestHandler {
	preflights := s.opts.Route("OPTIONS")
	return func(rc *fasthttp.RequestCtx) {
		s.setDefaultHeaders(rc)
		// The router matches the path as it was sent.
		if path := rc.URI().PathOriginal(); bytes.HasSuffix(path, []byte("/")) && isAPI(string(path)) {
			rc.URI().SetPathBytes(bytes.TrimRight(path, "/"))
		}
		if rc.IsOptions() {
			preflights.AssignTo(rc)
			header := &rc.Response.Header
			header.Set(fasthttp.HeaderAccessControlAllowMethods, "GET, HEAD, POST, PUT, DELETE")
			if names := requestedHeaders(&rc.Request.Header); names != "" {
				header.Set(fasthttp.HeaderAccessControlAllowHeaders, names)
			}
			header.Set(fasthttp.HeaderAccessControlMaxAge, "86400")
			rc.SetStatusCode(fasthttp.StatusNoContent)
			return
		}
		next(rc)
	}
}

// Limits of the header names in a preflight, which are echoed.
const (
	maxRequestedHeaders = 32
	maxHeaderName       = 64
)

// requestedHeaders returns the list of header names in a preflight, without invalid ones (RFC 9110,
// section 5.6.2).
func requestedHeaders(header *fasthttp.RequestHeader) string {
	var names []string
	for _, line := range header.PeekAll(fasthttp.HeaderAccessControlRequestHeaders) {
		for name := range strings.SplitSeq(string(line), ",") {
			name = strings.Trim(name, " \t")
			if len(names) < maxRequestedHeaders && len(name) <= maxHeaderName && httpguts.ValidHeaderFieldName(name) {
				names = append(names, name)
			}
		}
	}
	return strings.Join(names, ", ")
}

// setDefaultHeaders sets the headers of every response, also to a request that cannot be parsed: a
// page must be able to read why its upload was too large.
func (s *Server) setDefaultHeaders(rc *fasthttp.RequestCtx) {
	httpserver.SetSecurityHeaders(rc)
	s.allowOrigin(rc)
	if path := s.LaunchersPath(); path != "" {
		rc.Response.Header.Set(clientapi.HeaderLaunchers, path)
	}
}

// allowOrigin sets the CORS headers. Credentials are never allowed: pages set the bearer token
// themselves, and there are no cookies.
func (s *Server) allowOrigin(rc *fasthttp.RequestCtx) {
	header := &rc.Response.Header
	header.Set(fasthttp.HeaderAccessControlExposeHeaders, "Allow, RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset, Retry-After, WWW-Authenticate, X-Request-ID")
	origin := string(rc.Request.Header.Peek(fasthttp.HeaderOrigin))
	for _, allowed := range s.config.CORSOrigins {
		if allowed == "*" {
			header.Set(fasthttp.HeaderAccessControlAllowOrigin, "*")
			return
		}
		if origin != "" && allowed == origin {
			header.Set(fasthttp.HeaderAccessControlAllowOrigin, origin)
			break
		}
	}
	header.Add(fasthttp.HeaderVary, fasthttp.HeaderOrigin)
}

// isAPI reports whether a path belongs to the API, where all errors are JSON.
func isAPI(path string) bool { return path == "/api" || strings.HasPrefix(path, "/api/") }

func notFound() error { return fault.New(fault.NotFound, "There is nothing at this path.") }

// pathInteger returns an integer of the path; anything else is not found.
func pathInteger(rc *fasthttp.RequestCtx, name string) (int64, error) {
	text, _ := rc.UserValue(name).(string)
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || strconv.FormatInt(n, 10) != text { // only the canonical form: one path for each thing
		return 0, notFound()
	}
	return n, nil
}

// pathUUID returns a UUID of the path; anything else is not found.
func pathUUID(rc *fasthttp.RequestCtx, name string) (uuid.UUID, error) {
	text, _ := rc.UserValue(name).(string)
	id, err := uuid.Parse(text)
	if err != nil || !strings.EqualFold(id.String(), text) { // uuid.Parse accepts other forms
		return uuid.UUID{}, notFound()
	}
	return id, nil
}

// envelope is the body of most successful responses.
type envelope struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Data    any    `json:"data,omitempty"`
}

// writeOK writes status 200 with an envelope.
func writeOK(rc *fasthttp.RequestCtx, message string, data any) error {
	return httpserver.WriteJSON(rc, fasthttp.StatusOK, envelope{Message: message, Data: data})
}

// writeAccepted writes status 202 with an envelope: the request must be confirmed by e-mail.
func writeAccepted(rc *fasthttp.RequestCtx, message string) error {
	return httpserver.WriteJSON(rc, fasthttp.StatusAccepted, envelope{Message: message})
}

// timestamp is a time in UTC, to the second.
type timestamp time.Time

// MarshalJSON writes YYYY-MM-DD HH:MM:SS.
func (t timestamp) MarshalJSON() ([]byte, error) {
	return time.Time(t).UTC().AppendFormat(nil, `"2006-01-02 15:04:05"`), nil
}
