// Package yggdrasil is core's API for launchers and game servers: the protocol Yggdrasil, as
// authlib-injector describes it. A handler parses the request, calls the domain once, and writes the
// response; it decides nothing itself.
//
// The handlers are in a file for each noun, as in package core, and openapi.yaml documents them.
// routes lists all of them. Errors have the protocol's own bodies, which launchers act on: see
// FormatError.
//
// Server is no HTTP server of its own: package api mounts it on the public listener.
package yggdrasil

import (
	"cmp"
	"context"
	"log/slog"
	"net/netip"
	"net/url"
	"strings"

	"github.com/fasthttp/router"
	"github.com/google/uuid"
	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/core/clientapi"
	"github.com/veneer-skins/veneer/shared/config"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/httpserver"
	"github.com/veneer-skins/veneer/shared/httpserver/clientip"
	"github.com/veneer-skins/veneer/shared/yggproto"
)

// Root is the path of the API.
const Root = yggproto.Root

// Config has the settings of the API.
// Its settings are CORE_YGGDRASIL_PROFILE_KEYS, CORE_YGGDRASIL_SKIN_DOMAINS.
type Config struct {
	ProfileKeys bool     `env:"PROFILE_KEYS" envDefault:"false" help:"sign the keys of players for signed chat; game servers without authlib-injector then reject these players"`
	SkinDomains []string `env:"SKIN_DOMAINS" example:".cdn.example.org" help:"further hosts that games load textures from, comma-separated, with a dot in front for all below it; that of TEXTURES_URL needs no entry"`
}

// Check returns an error that names an invalid setting.
func (c Config) Check() error {
	for _, domain := range c.SkinDomains {
		if domain == "" || strings.ContainsAny(domain, "/:* \t") {
			return config.Errorf("SKIN_DOMAINS", "has %q, but must be hosts without a scheme and a port, as in cdn.example.org or .example.org", domain)
		}
	}
	return nil
}

// Site describes the site to launchers.
type Site struct {
	Name         string
	Homepage     string // URL of the site's pages
	TexturesHost string // host of texture URLs, without a port
}

// Services is the domain behind the API.
type Services struct {
	Tokens       *core.LauncherTokens
	Joins        *core.JoinServer
	Profiles     *core.Profiles
	Certificates *core.PlayerCertificates
	Players      *core.Players
	Uploads      *core.LauncherUploads
}

// Server serves the API.
type Server struct {
	Services
	opts      httpserver.Options
	limiters  clientapi.Limiters
	fileBytes int
	metadata  []byte
	keys      []byte // response of handlePublicKeys
}

// New returns a server of the API. fileBytes is the size of the largest texture file that the domain
// accepts.
func New(opts httpserver.Options, services Services, cfg Config, site Site, limiters clientapi.Limiters, fileBytes int) (*Server, error) {
	opts.Listener = "public"
	s := &Server{Services: services, opts: opts, limiters: limiters, fileBytes: fileBytes}
	var err error
	if s.metadata, err = newMetadata(cfg, site, services.Profiles.Key()); err != nil {
		return nil, err
	}
	s.keys, err = newPublicKeys(services.Profiles.Key())
	return s, err
}

// maxBody is the limit of a body without a file. Launchers send less than a kilobyte, and game
// servers up to 100 names.
const maxBody = 64 << 10

// uploadLimit returns the limit of an upload's body; 0 for no limit.
func (s *Server) uploadLimit() int {
	if s.fileBytes == 0 {
		return 0
	}
	return s.fileBytes + maxBody
}

// Handler returns the handler of the paths under Root. Requests are counted by limiter.
func (s *Server) Handler(limiter *httpserver.AddressLimiter) fasthttp.RequestHandler {
	return limiter.Handler(s.routes().Handler)
}

// routes returns the route table.
func (s *Server) routes() *router.Router {
	r := router.New()
	r.RedirectTrailingSlash, r.RedirectFixedPath = false, false
	r.HandleOPTIONS = false // package api handles preflights
	r.NotFound = s.open(func(context.Context, *fasthttp.RequestCtx) error {
		return fault.New(fault.NotFound, "There is nothing at this path.")
	})
	r.MethodNotAllowed = s.open(func(_ context.Context, rc *fasthttp.RequestCtx) error {
		return fault.New(fault.MethodNotAllowed, "%s is not possible here.", rc.Method())
	})

	handle := func(method, path string, h fasthttp.RequestHandler) *httpserver.Route {
		route := s.opts.Route(method + " " + Root + path)
		withRoute := func(rc *fasthttp.RequestCtx) {
			route.AssignTo(rc)
			h(rc)
		}
		r.Handle(method, Root+path, withRoute)
		if method == fasthttp.MethodGet { // HEAD is GET without the body, which fasthttp leaves out
			r.Handle(fasthttp.MethodHead, Root+path, withRoute)
		} else {
			route.AcceptBody(maxBody, 0)
		}
		return route
	}

	handle(fasthttp.MethodGet, "", s.open(s.handleMetadata))
	handle(fasthttp.MethodGet, "/openapi.yaml", s.open(s.handleDocument))

	handle(fasthttp.MethodPost, "/authserver/authenticate", s.public(s.handleAuthenticate))
	handle(fasthttp.MethodPost, "/authserver/refresh", s.public(s.handleRefresh))
	handle(fasthttp.MethodPost, "/authserver/validate", s.public(s.handleValidate))
	handle(fasthttp.MethodPost, "/authserver/invalidate", s.public(s.handleInvalidate))
	handle(fasthttp.MethodPost, "/authserver/signout", s.public(s.handleSignOut))

	handle(fasthttp.MethodPost, "/sessionserver/session/minecraft/join", s.public(s.handleJoin))
	handle(fasthttp.MethodGet, "/sessionserver/game/joinserver.jsp", s.public(s.handleOldJoin))
	handle(fasthttp.MethodGet, "/sessionserver/game/checkserver.jsp", s.open(s.handleOldCheck))
	handle(fasthttp.MethodGet, "/sessionserver/blockedservers", s.open(s.handleBlockedServers))
	handle(fasthttp.MethodGet, "/sessionserver/session/minecraft/hasJoined", s.open(s.handleHasJoined))
	handle(fasthttp.MethodGet, "/sessionserver/session/minecraft/profile/{uuid}", s.open(s.handleProfile))

	// Edges pass addresses of other skin services on as these.
	handle(fasthttp.MethodGet, "/profile/{player}", s.open(s.handlePlayerProfile))
	handle(fasthttp.MethodGet, "/textures/{player}", s.open(s.handlePlayerTextures))

	for _, path := range []string{"/api/profiles/minecraft", "/minecraftservices/minecraft/profile/lookup/bulk/byname", "/api/minecraft/profile/lookup/bulk/byname"} {
		handle(fasthttp.MethodPost, path, s.open(s.handlePlayersNamed))
	}
	for _, path := range []string{"/api/users/profiles/minecraft", "/minecraftservices/minecraft/profile/lookup/name", "/api/minecraft/profile/lookup/name"} {
		handle(fasthttp.MethodGet, path+"/{name}", s.open(s.handlePlayerNamed))
	}
	for _, path := range []string{"/minecraftservices/minecraft/profile/lookup", "/api/minecraft/profile/lookup"} {
		handle(fasthttp.MethodGet, path+"/{uuid}", s.open(s.handlePlayerByUUID))
	}

	upload := func(method, path string, of slot, respond tokenHandler) {
		handle(method, path, s.withToken(s.handleUpload(of, respond), s.mayUpload(of))).AcceptBody(s.uploadLimit(), s.opts.Limits.UploadTimeout)
	}
	noContent := func(_ context.Context, rc *fasthttp.RequestCtx, _ core.LauncherUser) error { return writeNoContent(rc) }
	upload(fasthttp.MethodPut, "/api/user/profile/{uuid}/{slot}", boundSlot, noContent)
	handle(fasthttp.MethodDelete, "/api/user/profile/{uuid}/{slot}", s.withToken(s.handleClear(boundSlot, noContent)))

	const own = "/minecraftservices/minecraft/profile"
	handle(fasthttp.MethodGet, own, s.withToken(s.handleOwnProfile))
	upload(fasthttp.MethodPost, own+"/skins", ownSkin, s.handleOwnProfile)
	handle(fasthttp.MethodDelete, own+"/skins/active", s.withToken(s.handleClear(ownSkin, s.handleOwnProfile)))
	handle(fasthttp.MethodPut, own+"/capes/active", s.withToken(s.handleWearCape))
	handle(fasthttp.MethodDelete, own+"/capes/active", s.withToken(s.handleClear(ownCape, s.handleOwnProfile)))
	handle(fasthttp.MethodPost, "/minecraftservices/player/certificates", s.withToken(s.handleCertificates))
	handle(fasthttp.MethodGet, "/minecraftservices/player/attributes", s.open(s.handleAttributes))
	handle(fasthttp.MethodGet, "/minecraftservices/privileges", s.open(s.handlePrivileges))
	handle(fasthttp.MethodGet, "/minecraftservices/privacy/blocklist", s.open(s.handleBlockList))
	handle(fasthttp.MethodGet, "/minecraftservices/publickeys", s.open(s.handlePublicKeys))

	handle(fasthttp.MethodGet, "/skins/MinecraftSkins/{file}", s.open(s.redirectToTexture("/legacy/")))
	handle(fasthttp.MethodGet, "/skins/MinecraftCloaks/{file}", s.open(s.redirectToTexture("/cape/")))
	return r
}

// open wraps a handler that needs no token and has no limit but the limit of addresses.
func (s *Server) open(h httpserver.Handler) fasthttp.RequestHandler {
	return s.opts.HandleNoContext(func(rc *fasthttp.RequestCtx) error { return s.readAndServe(rc, 0, h) })
}

// public wraps a handler without a token in a header. Requests count for the client's network.
func (s *Server) public(h httpserver.Handler) fasthttp.RequestHandler {
	return s.opts.HandleNoContext(func(rc *fasthttp.RequestCtx) error {
		if err := s.limiters.Requests.Take(rc, s.addressKey(rc)); err != nil {
			return err
		}
		return s.readAndServe(rc, 0, h)
	})
}

// tokenHandler handles a request with a launcher's token.
type tokenHandler func(context.Context, *fasthttp.RequestCtx, core.LauncherUser) error

// tokenCheck refuses a request with a launcher's token before its body is read.
type tokenCheck func(*fasthttp.RequestCtx, core.LauncherUser) error

// withToken wraps a handler that takes a launcher's token in the Authorization header. The token is
// checked, and then the request, before the body is read. Requests count for the user, and for the
// client's network if the token is wrong.
func (s *Server) withToken(h tokenHandler, checks ...tokenCheck) fasthttp.RequestHandler {
	return s.opts.Handle(func(ctx context.Context, rc *fasthttp.RequestCtx) error {
		scheme, token, _ := strings.Cut(string(rc.Request.Header.Peek(fasthttp.HeaderAuthorization)), " ")
		if !strings.EqualFold(scheme, "Bearer") {
			return cmp.Or(s.limiters.Requests.Take(rc, s.addressKey(rc)), error(core.ErrLauncherToken))
		}
		user, err := s.Tokens.Validate(core.WithClient(ctx, core.Client{Network: s.clientNetwork(rc)}), strings.TrimSpace(token), nil)
		if err != nil {
			return cmp.Or(s.limiters.Requests.Take(rc, s.addressKey(rc)), err)
		}
		httpserver.AddLogAttr(rc, slog.Int64("uid", int64(user.ID)))
		if err := s.limiters.Requests.Take(rc, clientapi.Key{User: user.ID}); err != nil {
			return err
		}
		for _, check := range checks {
			if err := check(rc, user); err != nil {
				return err
			}
		}
		return s.readAndServe(rc, user.ID, func(ctx context.Context, rc *fasthttp.RequestCtx) error { return h(ctx, rc, user) })
	})
}

// readAndServe reads the body and calls h; user is 0 for none. The timeout of h begins after the
// body has arrived.
func (s *Server) readAndServe(rc *fasthttp.RequestCtx, user core.UserID, h httpserver.Handler) error {
	if err := httpserver.ReadBody(rc); err != nil {
		return err
	}
	ctx, cancel := s.opts.RequestContext(rc)
	defer cancel()
	return h(core.WithClient(ctx, core.Client{Network: s.clientNetwork(rc), User: user}), rc)
}

// clientNetwork returns the network that resources are shared by.
func (s *Server) clientNetwork(rc *fasthttp.RequestCtx) netip.Prefix {
	return clientip.Network(s.opts.Proxies.ClientIP(rc))
}

// network returns the network that log-ins and joins are counted by.
func (s *Server) network(rc *fasthttp.RequestCtx) netip.Prefix {
	return clientip.Prefix(s.opts.Proxies.ClientIP(rc))
}

func (s *Server) addressKey(rc *fasthttp.RequestCtx) clientapi.Key {
	return clientapi.Key{Network: s.network(rc)}
}

// writeNoContent writes status 204.
func writeNoContent(rc *fasthttp.RequestCtx) error {
	rc.SetStatusCode(fasthttp.StatusNoContent)
	return nil
}

// parseID parses a UUID without or with hyphens.
func parseID(text string) (uuid.UUID, bool) {
	if len(text) != 32 && len(text) != 36 {
		return uuid.UUID{}, false
	}
	id, err := uuid.Parse(text)
	return id, err == nil
}

// pathText returns a segment of the path; empty if it is malformed.
func pathText(rc *fasthttp.RequestCtx, name string) string {
	escaped, _ := rc.UserValue(name).(string) // the router matches the path as it was sent
	text, err := url.PathUnescape(escaped)
	if err != nil {
		return ""
	}
	return text
}
